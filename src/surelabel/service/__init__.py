"""An HTTP service and a page for a bundle: `create_app` makes it, `run` runs it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from surelabel._core.extras import of_extra
from surelabel.service.settings import ReviewPlan, ServiceSettings

if TYPE_CHECKING:
    from surelabel.service.app import create_app
    from surelabel.service.server import run

__all__ = ["ReviewPlan", "ServiceSettings", "create_app", "run"]


if not TYPE_CHECKING:  # else a type checker would take any name

    def __getattr__(name: str) -> Any:
        if name not in {"create_app", "run"}:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        with of_extra("service", "The service"):
            from surelabel.service import app, server  # noqa: PLC0415
        return app.create_app if name == "create_app" else server.run
