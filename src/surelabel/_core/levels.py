"""The significance levels that figures are given at: named once, so that every table has the same rows."""

STANDARD_LEVELS = ("0.01", "0.05", "0.1", "0.2")
"""Levels of every table of errors and sizes."""

MAIN_LEVEL = "0.05"
"""The level of summaries, and the default of commands."""

CURVE_LEVELS = tuple(f"0.{i:03d}" for i in range(1, 10)) + tuple(f"0.{i:02d}" for i in range(1, 100))
"""Levels of curves: 0.001 to 0.009, and 0.01 to 0.99 in steps of 0.01."""
