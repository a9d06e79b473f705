"""Settings that all tests share."""

import os

import hypothesis

# Derandomised: a run on an unchanged tree gives the same result. HYPOTHESIS_PROFILE=search looks for new examples.
hypothesis.settings.register_profile("same", deadline=None, derandomize=True, database=None)
hypothesis.settings.register_profile("search", deadline=None, print_blob=True, database=None)
hypothesis.settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "same"))
