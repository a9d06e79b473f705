"""Settings that all tests share."""

import os

import hypothesis

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
