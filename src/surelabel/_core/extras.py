"""Optional dependencies: imported where they are used; an error names the extra that brings them."""

from __future__ import annotations

import contextlib
import importlib
from collections.abc import Iterator
from typing import Any

from surelabel.exceptions import MissingDependencyError


@contextlib.contextmanager
def of_extra(extra: str, who: str) -> Iterator[None]:
    """Name the extra (of `pyproject.toml`) to install if an import inside the block fails that `who` needs."""
    try:
        yield
    except MissingDependencyError:
        raise
    except ImportError as error:
        package = (error.name or "").partition(".")[0]
        if package in {"", "surelabel"}:
            raise
        what = "which is not installed" if isinstance(error, ModuleNotFoundError) else f"which has failed ({error})"
        raise MissingDependencyError(
            f"{who} needs {package}, {what}. Install it with: pip install 'surelabel[{extra}]'"
        ) from error


def import_extra(module: str, extra: str, who: str) -> Any:
    """Import a module that has no types; if it is absent, say what to install, as `of_extra` does."""
    with of_extra(extra, who):
        return importlib.import_module(module)
