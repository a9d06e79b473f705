"""Optional packages: imported where they are used; the error names the extra that installs them."""

from __future__ import annotations

import importlib
from typing import Any

from surelabel.exceptions import MissingDependencyError


def require(module: str, extra: str, purpose: str) -> Any:
    """Import and return a module, or raise MissingDependencyError that names the extra to install."""
    try:
        return importlib.import_module(module)
    except MissingDependencyError:
        raise
    except ImportError as error:
        package = (error.name or module).partition(".")[0]
        if package == "surelabel":
            raise
        why = "which is not installed" if isinstance(error, ModuleNotFoundError) else f"which has failed ({error})"
        raise MissingDependencyError(
            f"{purpose} needs {package}, {why}. Install it with: pip install 'surelabel[{extra}]'"
        ) from error
