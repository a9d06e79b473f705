"""Settings that all tests share."""

import functools
import gc
import logging
import os

import hypothesis
import pytest

# Derandomised: a run on an unchanged tree gives the same result. HYPOTHESIS_PROFILE=search looks for new examples.
hypothesis.settings.register_profile(
    "same",
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=[hypothesis.HealthCheck.too_slow],  # of a busy machine, not of a test
)
hypothesis.settings.register_profile("search", deadline=None, print_blob=True, database=None)
hypothesis.settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "same"))


# Files of tests that share nothing: each of their tests may run on any worker.
_SHARED_OUT = ("tests/docs/test_pages.py", "tests/examples/test_examples.py")
# What compiles kernels comes first, before programs that tests start need them: these would compile them once more.
_COMPILING = ("measures", "answers", "kernels", "text/test_separating.py", "choosing")
# Then what takes longest, so that no worker is left with it at the end.
_LONG = ("docs", "examples", "text", "models", "service", "tools", "predicting", "cli")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """Send a file to one worker (`--dist loadfile`), since its tests share fixtures; pages and examples one by one."""
    # Not at the top: releases are tested without xdist too.
    from xdist.scheduler import LoadFileScheduling

    class Sharing(LoadFileScheduling):
        def _split_scope(self, nodeid):
            return nodeid if nodeid.startswith(_SHARED_OUT) else super()._split_scope(nodeid)

    return Sharing(config, log) if config.getvalue("dist") == "loadfile" else None


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config, items):
    """Begin with what compiles kernels, then with what takes longest, on workers."""
    if not hasattr(config, "workerinput"):
        return
    order = [config.rootpath / "tests" / name for name in (*_COMPILING, *_LONG)]

    @functools.cache
    def place(path):
        return next((place for place, start in enumerate(order) if path.is_relative_to(start)), len(order))

    items.sort(key=lambda item: place(item.path))


@pytest.hookimpl(wrapper=True)
def pytest_collection():
    """Look for garbage of the tests alone: what is imported stays, and to go through it takes long."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.fixture(scope="session", autouse=True)
def _each_kernel_is_compiled_once(request, tmp_path_factory):
    """Let one worker compile a kernel for all."""
    if not hasattr(request.config, "workerinput") or os.name != "posix":
        yield
        return
    from shared_compiling import compiled_by_one

    with compiled_by_one(tmp_path_factory.getbasetemp().parent):
        yield


@pytest.fixture(autouse=True)
def _logging_as_it_was():
    """Take away what a test has set up for the log: the command line logs to a stream that ends with its test."""
    loggers = {logger: logger.level for logger in (logging.getLogger(), logging.getLogger("surelabel"))}
    handlers = logging.getLogger().handlers[:]
    yield
    for logger, level in loggers.items():
        logger.setLevel(level)
    for handler in logging.getLogger().handlers[:]:
        if handler not in handlers:
            logging.getLogger().removeHandler(handler)
