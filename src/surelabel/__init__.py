"""Multi-label text classification that knows when it is sure."""

from surelabel._version import __version__

__all__ = ["__version__"]
