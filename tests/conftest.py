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
