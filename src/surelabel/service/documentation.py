"""The OpenAPI description: bodies, examples, every status, this service's limits."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from surelabel.service.errors import STATUS_TEXTS
from surelabel.service.schemas import ErrorResponse, PredictRequest, PValueRequest
from surelabel.service.settings import ServiceSettings

__all__ = ["body_of", "complete_description", "statuses"]

_REFERENCES = "#/components/schemas/{model}"
# More names than this make the description unwieldy; GET /v1/model has them all.
_MOST_LABELS = 1_000


def statuses(*numbers: int) -> dict[int | str, dict[str, Any]]:
    """Return the description of error statuses, with those that any request can meet."""
    described: dict[int | str, dict[str, Any]] = {}
    for number in sorted({*numbers, 405, 421, 500, 503}):
        described[number] = {"model": ErrorResponse, "description": STATUS_TEXTS[number]}
        if number == 503:
            described[number]["headers"] = {
                "Retry-After": {"description": "Seconds.", "schema": {"type": "integer", "minimum": 0}}
            }
    return described


def body_of(model: type[BaseModel], examples: dict[str, Any]) -> dict[str, Any]:
    """Return the description of a JSON body; the service reads it by hand, in order to stop at the limit."""
    content = {"schema": {"$ref": _REFERENCES.format(model=model.__name__)}, "examples": examples}
    return {"requestBody": {"required": True, "content": {"application/json": content}}}


def complete_description(description: dict[str, Any], settings: ServiceSettings, label_names: list[str]) -> None:
    """Add the bodies' schemas with this service's limits, the label names if there are any to show, and the token."""
    _, definitions = models_json_schema(
        [(PredictRequest, "validation"), (PValueRequest, "validation")], ref_template=_REFERENCES
    )
    schemas = description["components"]["schemas"]
    schemas.update(definitions["$defs"])
    predict, p_value = schemas["PredictRequest"]["properties"], schemas["PValueRequest"]["properties"]
    for text in (predict["text"], predict["texts"]["items"], p_value["text"]):
        text["maxLength"] = settings.max_text_chars
    predict["texts"]["maxItems"] = settings.max_texts
    predict["top"]["maximum"] = settings.max_top
    for name in ("text", "texts"):
        del predict[name]["default"]
    del predict["confidence_level"]["default"]
    if 0 < len(label_names) <= _MOST_LABELS:
        p_value["labels"]["items"]["enum"] = label_names
    if settings.token is not None:
        description["components"]["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
        for path, operations in description["paths"].items():
            if path.startswith("/v1/"):
                for operation in operations.values():
                    operation["security"] = [{"token": []}]
