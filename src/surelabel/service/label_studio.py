"""The addresses of a Label Studio ML backend: /label-studio/health, /setup and /predict."""

from __future__ import annotations

from typing import Any

from fastapi.responses import JSONResponse, Response
from pydantic import BaseModel, Field

from surelabel._version import __version__
from surelabel.predicting.label_studio import LabelConfig, predictions_of
from surelabel.service.answering import Answerer
from surelabel.service.documentation import statuses
from surelabel.service.errors import ServiceError
from surelabel.service.routes import Routes
from surelabel.service.schemas import PredictRequest

__all__ = ["add_label_studio"]

_MOST_PREDICTIONS = 9
VERSION = f"surelabel {__version__}"


# These bodies are not strict: Label Studio sends more than is used here, and more with each version.
class Task(BaseModel):
    """A task; its labelling interface says which field of its data is the text."""

    data: dict[str, Any] = Field(default_factory=dict)


class PredictTasksRequest(BaseModel):
    """Tasks to predict for, and the labelling interface of their project."""

    tasks: list[Task]
    label_config: str | None = None


class SetupRequest(BaseModel):
    """A project that is set up."""


def add_label_studio(routes: Routes, answerer: Answerer) -> None:
    """Add the addresses that Label Studio calls."""

    @routes.app.get(
        "/label-studio/health", responses=statuses(), summary="Whether Label Studio can use it as an ML backend"
    )
    async def health() -> Response:
        return JSONResponse({"status": "UP", "model_class": "surelabel"})

    async def setup(_: SetupRequest) -> dict[str, Any]:
        return {"model_version": VERSION}

    async def predict(body: PredictTasksRequest) -> dict[str, Any]:
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
        asked = {"texts": texts, "top": _MOST_PREDICTIONS}
        answers = await answerer.answers(PredictRequest.model_validate(asked)) if texts else []
        results = [
            predictions_of(
                [(option.labels, option.p_value) for option in answer.top] or [(answer.labels, answer.credibility)],
                VERSION,
                config,
            )
            for answer in answers
        ]
        return {"results": results, "model_version": VERSION}

    routes.post("/label-studio/setup", SetupRequest, setup, "Name the model", basic=True)
    routes.post("/label-studio/predict", PredictTasksRequest, predict, "Predictions for tasks", basic=True)
