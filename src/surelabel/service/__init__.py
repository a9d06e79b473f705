"""An HTTP service and a page for a bundle: `create_app` makes it, `run` runs it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from surelabel.exceptions import MissingDependencyError
from surelabel.service.settings import ServiceSettings

if TYPE_CHECKING:
    from surelabel.service.app import create_app
    from surelabel.service.server import run

__all__ = ["ServiceSettings", "create_app", "run"]


def __getattr__(name: str) -> Any:
    if name not in {"create_app", "run"}:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        from surelabel.service import app, server  # noqa: PLC0415
    except ImportError as error:
        if error.name is None or error.name.startswith("surelabel"):
            raise
        raise MissingDependencyError(
            f"The service needs {error.name}, which is not installed: pip install 'surelabel[service]'"
        ) from error
    return app.create_app if name == "create_app" else server.run
