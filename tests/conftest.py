"""Settings that all tests share."""

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
_SHARED_OUT = {"docs/test_pages.py", "examples/test_examples.py"}
# What takes longest starts first, so that no worker is left with it at the end.
_LONGEST_FIRST = ("docs", "examples", "text", "models", "service", "predicting", "cli")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config, items):
    """Share tests out over workers (`--dist loadgroup`): a file to one of them, pages and examples one by one."""
    if not hasattr(config, "workerinput"):
        return
    folders = {item: item.path.relative_to(config.rootpath).parts for item in items}
    for item, parts in folders.items():
        is_alone = "/".join(parts[1:]) in _SHARED_OUT
        item.add_marker(pytest.mark.xdist_group(item.nodeid if is_alone else str(item.path)))
    order = {name: place for place, name in enumerate(_LONGEST_FIRST)}
    items.sort(key=lambda item: order.get(folders[item][1], len(order)) if folders[item][0] == "tests" else len(order))


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
