"""The addresses of a Label Studio ML backend: /label-studio/health, /setup and /predict."""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse, Response
from pydantic import BaseModel, ConfigDict, Field

from surelabel._version import __version__
from surelabel.predicting.label_studio import LabelConfig, predictions_of
from surelabel.service.answering import Answerer
from surelabel.service.bodies import read_body
from surelabel.service.errors import ServiceError
from surelabel.service.guard import check_token
from surelabel.service.schemas import PredictRequest
from surelabel.service.settings import ServiceSettings

__all__ = ["add_label_studio"]

_MOST_PREDICTIONS = 9
VERSION = f"surelabel {__version__}"


class _Lenient(BaseModel):
    """Label Studio sends more than is used here, and more with each version."""

    model_config = ConfigDict(extra="ignore")


class _Task(_Lenient):
    data: dict[str, Any] = Field(default_factory=dict)


class PredictTasksRequest(_Lenient):
    """Tasks to predict for, and the labelling interface of their project."""

    tasks: list[_Task]
    label_config: str | None = None


class SetupRequest(_Lenient):
    """A project that is set up."""


def add_label_studio(app: FastAPI, answerer: Answerer, settings: ServiceSettings) -> None:
    """Add the addresses that Label Studio calls."""

    @app.get("/label-studio/health", include_in_schema=False)
    async def health() -> Response:
        return JSONResponse({"status": "UP", "model_class": "surelabel"})

    @app.post("/label-studio/setup", include_in_schema=False)
    async def setup(request: Request) -> Response:
        check_token(request, settings.token, basic=True)
        await read_body(request, SetupRequest, settings)
        return JSONResponse({"model_version": VERSION})

    @app.post("/label-studio/predict", include_in_schema=False)
    async def predict(request: Request) -> Response:
        check_token(request, settings.token, basic=True)
        body = await read_body(request, PredictTasksRequest, settings)
        config = LabelConfig.parse(body.label_config)
        texts = [task.data.get(config.field) for task in body.tasks]
        for number, text in enumerate(texts):
            if not isinstance(text, str):
                raise ServiceError(
                    422,
                    "invalid_request",
                    f"tasks[{number}] must have a text in its field {config.field!r:.60}.",
                    "Name the field of the text in the labelling interface.",
                    field=f"tasks[{number}]",
                )
        answers = await answerer.answers(_question(texts)) if texts else []
        results = [
            predictions_of(
                [(option.labels, option.p_value) for option in answer.top] or [(answer.labels, answer.credibility)],
                VERSION,
                config,
            )
            for answer in answers
        ]
        return JSONResponse({"results": results, "model_version": VERSION})


def _question(texts: list[Any]) -> PredictRequest:
    """Return what is asked about texts."""
    return PredictRequest.model_validate({"texts": texts, "top": _MOST_PREDICTIONS})
