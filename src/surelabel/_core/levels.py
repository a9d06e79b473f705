"""The significances that everything is measured and shown at, unless another is asked for."""

__all__ = ["STANDARD_LEVELS"]

STANDARD_LEVELS = ("0.01", "0.05", "0.1", "0.2")
