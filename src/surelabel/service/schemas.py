"""Requests, responses and errors of the API."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal, Self

from fastapi import Depends
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from fastapi.security import HTTPBearer
from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    FailFast,
    Field,
    ValidationInfo,
    field_validator,
    model_validator,
)
from starlette.exceptions import HTTPException

from surelabel.exceptions import CorpusError, InvalidInputError, ReviewConflictError, SearchLimitError

_log = logging.getLogger(__name__)
_KNOWN = {
    400: ("not_json", "The body is not JSON.", "Send JSON in UTF-8."),
    404: ("not_found", "There is nothing at this address.", "GET /openapi.json lists the addresses."),
    405: ("wrong_method", "This address has other methods.", "GET /openapi.json lists the methods of each address."),
}
MAX_TEXTS, MAX_TEXT_CHARS, MAX_TOP, MAX_LABEL_SETS, MAX_LABELS = 256, 200_000, 100, 10_000, 1_000


class ServiceError(HTTPException):
    """A request that is refused, with what to do about it."""

    def __init__(
        self,
        status: int,
        code: str,
        message: str,
        what_to_do: str,
        field: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(status, message, headers)
        self.content = {"code": code, "message": message, "what_to_do": what_to_do, "field": field}

    def response(self) -> JSONResponse:
        """Return the error as a client gets it."""
        return JSONResponse({"error": self.content}, self.status_code, self.headers)


def invalid(field: str | None, message: str, what_to_do: str = "Fix the request; see /openapi.json.") -> ServiceError:
    """Build the error of a request with a wrong value."""
    return ServiceError(422, "invalid_request", message, what_to_do, field)


def unknown(field: str, kind: str, name: str) -> ServiceError:
    """Build the error of a name that the model does not have."""
    message, what_to_do = f"There is no {kind} {name[:80]!r}.", f"GET /v1/model lists the {kind}s."
    return ServiceError(404, "unknown_name", message, what_to_do, field)


def do_not_fit(field: str, message: str, what_to_do: str) -> ServiceError:
    """Build the error of values that do not go together, or do not go with the model."""
    return ServiceError(409, "do_not_fit", message, what_to_do, field)


def busy(message: str, seconds: int = 1) -> ServiceError:
    """Build the error that asks a client to come back."""
    return ServiceError(503, "busy", message, f"Try again in {seconds} s.", headers={"Retry-After": str(seconds)})


def as_service_error(error: Exception) -> ServiceError:
    """Return any error as a client may see it; what only the log should have is logged."""
    match error:
        case ServiceError():
            return error
        case RequestValidationError():
            return _of_first(error.errors())
        case HTTPException(status_code=status):
            default = ("refused", str(error.detail), "GET /openapi.json describes the service.")
            return ServiceError(status, *_KNOWN.get(status, default), headers=error.headers)
        case ReviewConflictError():
            return ServiceError(409, "conflict", str(error), "Load the queue again.")
        case InvalidInputError() | CorpusError() | SearchLimitError():
            return invalid(None, str(error))
    _log.error("A request failed.", exc_info=error)
    return ServiceError(500, "internal", "The service failed to answer.", "Ask who runs it: the log has the reason.")


def _of_first(problems: Sequence[Mapping[str, Any]]) -> ServiceError:
    """Return the first of several problems of a body; its field is written like texts[1]."""
    first = problems[0]
    if first["type"] == "json_invalid":
        return ServiceError(400, *_KNOWN[400])
    # After the name of a field come its positions, and what pydantic adds for members of a union.
    _, *path = first["loc"]
    field = "".join([*map(str, path[:1]), *(f"[{part}]" for part in path[1:] if isinstance(part, int))])[:200] or None
    message = str(first["msg"]).removeprefix("Value error, ")
    return invalid(field, f"{field}: {message}." if field else f"{message}.")


def _as_whole(value: Any) -> Any:
    """Return 3.0 as 3: JSON has one kind of number."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


Level = (
    Annotated[float, Field(gt=0, lt=1, allow_inf_nan=False)]
    | Annotated[str, Field(pattern=r"^0?\.[0-9]{0,19}[1-9][0-9]{0,19}$")]
)
Dial = Literal["0.01", "0.02", "0.05", "0.1", "0.2", "0.3"]
"""How often an answer may be wrong."""
OneText = Annotated[str, Field(max_length=MAX_TEXT_CHARS)]
Identity = Annotated[str, Field(min_length=1, max_length=200)]
Group = Annotated[str, Field(max_length=200)]
LabelName = Annotated[str, Field(max_length=1_000)]
WholeNumber = Annotated[int, BeforeValidator(_as_whole)]


def _absent(description: str, **limits: Any) -> Any:
    """Return a field that may be left out, without a default in the schema."""
    return Field(default_factory=lambda: None, description=description, **limits)


class StrictRequest(BaseModel):
    """A request in which nothing is unknown, converted or guessed."""

    model_config = ConfigDict(extra="forbid", strict=True)


_EITHER: tuple[list[Any], ...] = (["significance", "confidence_level"], ["group", "groups"], ["id", "ids"])


class PredictRequest(StrictRequest):
    """Texts to answer, and how often the prediction set may be wrong."""

    model_config = ConfigDict(
        json_schema_extra={
            "oneOf": [{"required": ["text"]}, {"required": ["texts"]}],
            "allOf": [{"not": {"required": pair}} for pair in _EITHER],
        }
    )

    text: OneText = _absent("One text; or give `texts`.")
    texts: Annotated[list[OneText], FailFast()] = _absent(
        "Several texts; or give `text`.", min_length=1, max_length=MAX_TEXTS
    )
    significance: Level = _absent(
        "Share of texts whose true label-set the prediction set may miss, exactly as you write it. Without it, or "
        "`confidence_level`, answers have no prediction set."
    )
    confidence_level: Level = _absent("1 - significance; give one of the two.")
    assurance: Level = _absent("Probability that the level holds for this very calibration. Sets are larger.")
    top: WholeNumber = Field(5, ge=0, le=MAX_TOP, description="Members of the prediction set to list for each text.")
    group: Group = _absent("Group of all texts, if the model is calibrated by groups.")
    groups: Annotated[list[Group], FailFast()] = _absent("Group of each text; or give `group`.")
    id: Identity = _absent("Id of the text in the answer; by default its number.")
    ids: Annotated[list[Identity], FailFast()] = _absent("Id of each text; or give `id`.")

    @field_validator("top")
    @classmethod
    def _not_too_many(cls, top: int, info: ValidationInfo) -> int:
        n_texts = len(info.data.get("texts") or [""])
        if top * n_texts > MAX_LABEL_SETS:
            raise ValueError(f"it can be {MAX_LABEL_SETS // n_texts:,} for {n_texts:,} texts. Got {top:,}")
        return top

    @model_validator(mode="after")
    def _no_contradiction(self) -> Self:
        if not {"text", "texts"} & self.model_fields_set:
            raise ValueError("Give one of 'text' and 'texts'")
        for one, other in (("text", "texts"), *_EITHER):
            if {one, other} <= self.model_fields_set:
                raise ValueError(f"Give one of {one!r} and {other!r}, not both")
        return self

    def of_each_text(self) -> tuple[list[str], list[str] | None, list[str]]:
        """Return the texts, their groups if there are any, and their ids; raise unless they are equally many."""
        texts = [self.text] if self.texts is None else self.texts
        groups = self.groups if self.group is None else [self.group] * len(texts)
        ids = self.ids if self.id is None else [self.id]
        for name, values in (("ids", ids), ("groups", groups)):
            if values is not None and len(values) != len(texts):
                message = f"{len(texts):,} texts need as many {name}. Got {len(values):,}."
                raise do_not_fit(name, message, "Give one each.")
        return texts, groups, ids or [str(number) for number in range(1, len(texts) + 1)]


class OneTextRequest(StrictRequest):
    """A text."""

    text: OneText
    group: Group = _absent("Group of the text, if the model is calibrated by groups.")

    @property
    def groups(self) -> list[str] | None:
        """The group in a list, None without one."""
        return None if self.group is None else [self.group]


class CardRequest(OneTextRequest):
    """A text for the page."""

    level: Dial | None = Field(None, description="How often the answer may be wrong; else as the model promises.")


class PValueRequest(OneTextRequest):
    """A text and a label-set."""

    labels: Annotated[list[LabelName], FailFast()] = Field(max_length=MAX_LABELS, description="[] for the empty set.")


class WordsRequest(StrictRequest):
    """A text and a label."""

    text: OneText
    label: LabelName


class AnswerResponse(BaseModel):
    """One answer, as `surelabel predict` writes it; the prediction set is there if a level was given."""

    id: str
    decision: Literal["file", "choose", "read"]
    reason: str = Field(description="Why, in a sentence.")
    labels: list[str] = Field(description="The best guess: the label-set with the highest p-value.")
    consider: list[str] = Field(description="Tags to consider: few true ones are missing.")
    assign: list[str] = Field(description="Tags to assign: few are false.")
    confidence: float = Field(ge=0, le=1, description="1 - the second highest p-value.")
    credibility: float = Field(ge=0, le=1, description="The p-value of the best guess.")


class PredictResponse(BaseModel):
    """One answer per text, in the order of the texts."""

    answers: list[AnswerResponse]


class ErrorDetails(BaseModel):
    """What is wrong, and what to do."""

    code: str
    message: str
    what_to_do: str
    field: str | None


class ErrorResponse(BaseModel):
    """The shape of every error."""

    error: ErrorDetails


def described(*statuses: int, responses: Mapping[int | str, Any] | None = None) -> dict[str, Any]:
    """Return how an address that needs the token is described in OpenAPI."""
    errors: dict[int | str, Any] = {code: {"model": ErrorResponse} for code in (401, 403, *statuses)}
    bearer = HTTPBearer(auto_error=False, description="The token of the service; SecureRequests compares it.")
    return {"responses": errors | dict(responses or {}), "dependencies": [Depends(bearer)]}


def posted(response: dict[str, Any] | None = None) -> dict[str, Any]:
    """Return how an address is described that takes a body."""
    return described(400, 404, 409, 413, 422, 503, responses={} if response is None else {200: response})
