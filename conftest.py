"""Import the package before pytest imports its files for their doctests: else an error could be two classes."""

import surelabel  # noqa: F401
