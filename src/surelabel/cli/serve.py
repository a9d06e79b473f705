"""`surelabel serve`: a model in a browser, and for programs."""

from __future__ import annotations

from typing import Annotated

from surelabel.cli import options
from surelabel.cli.app import app


@app.command()
def serve(
    model: options.Model,
    *,
    host: options.Host = "127.0.0.1",
    port: options.Port = 8000,
    token: options.Token = None,
    workers: Annotated[int, options.option("Processes that serve.", min=1)] = 1,
    watch: Annotated[
        bool, options.option("Watch whether texts resemble the calibration texts; see /metrics.", "--watch")
    ] = False,
) -> None:
    """Serve a model: a page for people at /, and the same for programs under /v1.

    \b
    Examples:
      surelabel serve models/tickets
      SURELABEL_TOKEN=... surelabel serve models/tickets --host 0.0.0.0 --port 8080 --workers 4
    """
    from surelabel import service

    settings = service.ServiceSettings(host=host, port=port, token=token, workers=workers, watch=watch)
    service.serve(model, settings)
