"""Metrics of the paper's section 6.2, and the levels that figures are given at."""

STANDARD_LEVELS = ("0.01", "0.05", "0.1", "0.2")
MAIN_LEVEL = "0.05"
