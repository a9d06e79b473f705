"""The OpenAPI description: bodies, examples, every status, this service's limits."""

from __future__ import annotations

import copy
from collections.abc import Iterable
from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from surelabel.service.errors import STATUS_TEXTS
from surelabel.service.schemas import ErrorResponse
from surelabel.service.settings import ServiceSettings

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


def body_of(model: type[BaseModel]) -> dict[str, Any]:
    """Return the description of a JSON body; the service reads it by hand, in order to stop at the limit."""
    content = {"schema": {"$ref": _REFERENCES.format(model=model.__name__)}}
    return {"requestBody": {"required": True, "content": {"application/json": content}}}


def complete_description(
    plain: dict[str, Any],
    settings: ServiceSettings,
    texts: list[str],
    label_names: list[str],
    *,
    bodies: Iterable[type[BaseModel]],
    by_groups: bool = False,
) -> dict[str, Any]:
    """Return a copy with the bodies' schemas, this service's limits, examples, and label names if there are any."""
    description = copy.deepcopy(plain)
    _, definitions = models_json_schema([(model, "validation") for model in bodies], ref_template=_REFERENCES)
    schemas = description["components"]["schemas"]
    schemas.update(definitions["$defs"])
    predict, p_value = schemas["PredictRequest"]["properties"], schemas["PValueRequest"]["properties"]
    for text in (predict["text"], predict["texts"]["items"], p_value["text"]):
        text["maxLength"] = settings.max_text_chars
    predict["texts"]["maxItems"] = settings.max_texts
    predict["top"]["maximum"] = settings.max_top
    optional = ("significance", "confidence_level", "assurance", "group", "groups", "id", "ids")
    for name in ("text", "texts", *optional):
        del predict[name]["default"]
    del p_value["group"]["default"]
    if not by_groups:  # a model that is not calibrated by groups refuses them
        for properties, name in ((predict, "group"), (predict, "groups"), (p_value, "group")):
            del properties[name]
    if 0 < len(label_names) <= _MOST_LABELS:
        schemas["Outcome"]["properties"]["labels"]["items"]["enum"] = label_names
        p_value["labels"]["items"]["enum"] = label_names
    if settings.token is not None:
        description["components"]["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
        for path, operations in description["paths"].items():
            if path.startswith(("/v1/", "/label-studio/")) and path != "/label-studio/health":
                for operation in operations.values():
                    operation["security"] = [{"token": []}]
    _add_examples(description["paths"], texts, label_names[:1])
    return description


def _add_examples(paths: dict[str, Any], texts: list[str], labels: list[str]) -> None:
    """Add examples of both bodies."""
    examples: dict[str, dict[str, Any]] = {
        "/v1/predict": {
            "one text": {"value": {"text": texts[0], "significance": 0.05, "describe": True}},
            "several texts": {"value": {"texts": texts, "confidence_level": "0.9", "top": 3}},
        },
        "/v1/p-value": {"a label-set": {"value": {"text": texts[0], "labels": labels}}},
        "/v1/outcomes": {"one outcome": {"value": {"outcomes": [{"id": "ticket-1", "labels": labels}]}}},
    }
    for path, shown in examples.items():
        paths[path]["post"]["requestBody"]["content"]["application/json"]["examples"] = shown
