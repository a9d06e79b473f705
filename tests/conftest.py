"""Settings that all tests share."""

import os

import hypothesis

# Derandomised: a run on an unchanged tree gives the same result. HYPOTHESIS_PROFILE=search looks for new examples.
_SETTINGS = {
    "deadline": None,
    "database": None,
    "suppress_health_check": [hypothesis.HealthCheck.too_slow],  # of a busy machine, not of a test
}
hypothesis.settings.register_profile("same", derandomize=True, max_examples=30, **_SETTINGS)
hypothesis.settings.register_profile("search", max_examples=2000, print_blob=True, **_SETTINGS)
hypothesis.settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "same"))
