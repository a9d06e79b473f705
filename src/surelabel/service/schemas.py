"""Requests and responses of the API."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, Literal, Self

from fastapi import Depends, Request
from fastapi.security import HTTPBearer
from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    FailFast,
    Field,
    ValidationInfo,
    create_model,
    field_validator,
    model_validator,
)

from surelabel.service.errors import ServiceError, do_not_fit
from surelabel.service.settings import ServiceSettings

MAX_TOP = 100
MAX_LABEL_SETS = 10_000
MAX_LABELS = 1_000


def _as_whole(value: Any) -> Any:
    """Return 3.0 as 3: JSON has one kind of number."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


Level = (
    Annotated[float, Field(gt=0, lt=1, allow_inf_nan=False)]
    | Annotated[str, Field(pattern=r"^0?\.[0-9]{0,19}[1-9][0-9]{0,19}$")]
)
Dial = Literal["0.01", "0.02", "0.05", "0.1", "0.2", "0.3"]
"""How often an answer may be wrong."""
Identity = Annotated[str, Field(min_length=1, max_length=200)]
Group = Annotated[str, Field(max_length=200)]
LabelName = Annotated[str, Field(max_length=1_000)]
WholeNumber = Annotated[int, BeforeValidator(_as_whole)]


def _absent(description: str, **limits: Any) -> Any:
    """Return a field that may be left out, without a default in the schema."""
    return Field(default_factory=lambda: None, description=description, **limits)


_OF_TEXT = _absent("Group of the text, if the model is calibrated by groups.")


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

    text: str = _absent("One text; or give `texts`.")
    texts: Annotated[list[str], FailFast()] = _absent("Several texts; or give `text`.", min_length=1)
    significance: Level = _absent(
        "Share of texts whose true label-set the prediction set may miss, exactly as you write it. Without it, or "
        "`confidence_level`, answers have no prediction set."
    )
    confidence_level: Level = _absent("1 - significance; give one of the two.")
    assurance: Level = _absent(
        "Probability that the level holds for this calibration, not only on average over calibrations. Sets are larger."
    )
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
        if self.given("text") == self.given("texts"):
            raise ValueError("Give one of 'text' and 'texts'")
        for one, other in _EITHER:
            if self.given(one) and self.given(other):
                raise ValueError(f"Give one of {one!r} and {other!r}, not both")
        return self

    def given(self, name: str) -> bool:
        """Return whether a field was given."""
        return name in self.model_fields_set

    @property
    def all_texts(self) -> list[str]:
        """The texts, however they were given."""
        return self.texts if self.given("texts") else [self.text]

    def check_lengths(self) -> None:
        """Refuse ids or groups that are not as many as the texts."""
        for name in ("ids", "groups"):
            n_texts, values = len(self.all_texts), getattr(self, name)
            if values is not None and len(values) != n_texts:
                raise do_not_fit(name, f"{n_texts:,} texts need as many {name}. Got {len(values):,}.", "Give one each.")

    @property
    def all_groups(self) -> list[str] | None:
        """The group of each text, None if there are no groups."""
        return [self.group] * len(self.all_texts) if self.given("group") else self.groups

    @property
    def all_ids(self) -> list[str]:
        """The id of each text."""
        if self.given("id"):
            return [self.id]
        return self.ids or [str(number) for number in range(1, len(self.all_texts) + 1)]


class CardRequest(StrictRequest):
    """A text for the page."""

    text: str
    level: Dial | None = Field(None, description="How often the answer may be wrong; else as the model promises.")
    group: Group = _OF_TEXT


class PValueRequest(StrictRequest):
    """A text and a label-set."""

    text: str
    labels: Annotated[list[LabelName], FailFast()] = Field(max_length=MAX_LABELS, description="[] for the empty set.")
    group: Group = _OF_TEXT


class WordsRequest(StrictRequest):
    """A text and a label."""

    text: str
    label: LabelName


def limited(request: type[StrictRequest], settings: ServiceSettings) -> type[StrictRequest]:
    """Return a request with the limits of a service in its schema."""
    text = Annotated[str, Field(max_length=settings.max_text_chars)]
    fields: dict[str, Any] = {"text": (text, Field())}
    if issubclass(request, PredictRequest):
        texts = Annotated[list[text], FailFast()]
        most = settings.max_texts
        fields = {
            "text": (text, _absent("One text; or give `texts`.")),
            "texts": (texts, _absent("Several texts; or give `text`.", min_length=1, max_length=most)),
        }
    return create_model(request.__name__, __base__=request, **fields)


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


def described(*statuses: int, **more: Any) -> dict[str, Any]:
    """Return how an address that needs the token is described in OpenAPI."""
    codes = (401, 403, *statuses)
    errors: dict[int | str, dict[str, Any]] = {code: {"model": ErrorResponse} for code in codes}
    bearer = HTTPBearer(auto_error=False, description="The token of the service; SecureRequests compares it.")
    dependencies = [Depends(bearer), *more.pop("dependencies", ())]
    return {"responses": errors | more.pop("responses", {}), "dependencies": dependencies, **more}


def body_type(expected: str) -> Callable[[Request], None]:
    """Return what refuses bodies of other types, such as those that forms of other sites can send."""

    def check_type(request: Request) -> None:
        media_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if media_type != expected:
            got = media_type[:80] or "no type"
            advice = f"Send the header 'Content-Type: {expected}'."
            raise ServiceError(415, "wrong_type", f"The body must be {expected}. Got {got!r}.", advice)

    return check_type


def posted(response: dict[str, Any] | None = None) -> dict[str, Any]:
    """Return how an address is described that takes a JSON body."""
    responses = {} if response is None else {200: response}
    is_json = [Depends(body_type("application/json"))]
    return described(400, 404, 409, 413, 415, 422, 503, responses=responses, dependencies=is_json)
