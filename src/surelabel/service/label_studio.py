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
from surelabel.service.documentation import body_of, statuses
from surelabel.service.errors import ServiceError
from surelabel.service.guard import check_token
from surelabel.service.schemas import PredictRequest
from surelabel.service.settings import ServiceSettings

__all__ = ["LABEL_STUDIO_BODIES", "add_label_studio"]

_MOST_PREDICTIONS = 9
VERSION = f"surelabel {__version__}"


class _Lenient(BaseModel):
    """Label Studio sends more than is used here, and more with each version."""

    model_config = ConfigDict(extra="ignore")


class Task(_Lenient):
    """A task; its labelling interface says which field of its data is the text."""

    data: dict[str, Any] = Field(default_factory=dict)


class PredictTasksRequest(_Lenient):
    """Tasks to predict for, and the labelling interface of their project."""

    tasks: list[Task]
    label_config: str | None = None


class SetupRequest(_Lenient):
    """A project that is set up."""


LABEL_STUDIO_BODIES = (PredictTasksRequest, SetupRequest)


def add_label_studio(app: FastAPI, answerer: Answerer, settings: ServiceSettings) -> None:
    """Add the addresses that Label Studio calls."""

    @app.get("/label-studio/health", responses=statuses(), summary="Whether Label Studio can use it as an ML backend")
    async def health() -> Response:
        return JSONResponse({"status": "UP", "model_class": "surelabel"})

    errors = statuses(400, 401, 408, 413, 415, 422)

    @app.post("/label-studio/setup", responses=errors, openapi_extra=body_of(SetupRequest), summary="Name the model")
    async def setup(request: Request) -> Response:
        check_token(request, settings.token, basic=True)
        await read_body(request, SetupRequest, settings)
        return JSONResponse({"model_version": VERSION})

    @app.post(
        "/label-studio/predict",
        responses=errors,
        openapi_extra=body_of(PredictTasksRequest),
        summary="Predictions for tasks",
    )
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
