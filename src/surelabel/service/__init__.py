"""A bundle behind HTTP: JSON for programs, a page for questions, and a page for reviews.

`create_app` returns an ASGI application; `serve` runs it under uvicorn until it is stopped.
"""

from typing import TYPE_CHECKING, Any

from surelabel._core.extras import require
from surelabel.service.settings import ServiceSettings

if TYPE_CHECKING:
    from surelabel.service.app import create_app
    from surelabel.service.server import serve

__all__ = ["ServiceSettings", "create_app", "serve"]


def __getattr__(name: str) -> Any:
    """Import FastAPI and uvicorn when they are first needed."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = {"create_app": "app", "serve": "server"}[name]
    for needed in ("fastapi", "jinja2", "prometheus_client", "uvicorn"):
        require(needed, "service", "the service")
    import importlib  # noqa: PLC0415

    return getattr(importlib.import_module(f"surelabel.service.{module}"), name)
