"""Optional dependencies, imported where they are used."""

from __future__ import annotations

import importlib
from typing import Any

from surelabel.exceptions import MissingDependencyError

__all__ = ["import_extra"]


def import_extra(module: str) -> Any:
    """Import a module of the `corpora` extra; where it is absent, say what to install."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise MissingDependencyError(
            f"surelabel.corpora needs {module.partition('.')[0]!r} for this. "
            "Install it with: pip install 'surelabel[corpora]'"
        ) from error
