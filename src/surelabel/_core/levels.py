"""The significances that everything is measured and shown at, unless another is asked for."""

STANDARD_LEVELS = ("0.01", "0.05", "0.1", "0.2")
