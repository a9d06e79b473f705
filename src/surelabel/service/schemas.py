"""What requests and answers look like."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, FailFast, Field, model_validator

from surelabel._core.levels import STANDARD_LEVELS
from surelabel._core.wording import bounds_words
from surelabel._version import __version__
from surelabel.service.pages import example_texts
from surelabel.service.settings import ServiceSettings

if TYPE_CHECKING:
    from surelabel.answers import Answer
    from surelabel.models import Bundle

# A decimal number between 0 and 1 with at most 40 digits.
_DECIMAL = r"^0?\.[0-9]{0,19}[1-9][0-9]{0,19}$"
Level = Annotated[float, Field(gt=0, lt=1, allow_inf_nan=False)] | Annotated[str, Field(pattern=_DECIMAL)]


def _as_whole(value: Any) -> Any:
    """Return 3.0 as 3: to JSON they are the same number."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


Identity = Annotated[str, Field(min_length=1, max_length=200)]
WholeNumber = Annotated[int, BeforeValidator(_as_whole)]


class StrictRequest(BaseModel):
    """Strict: what is not described is refused, nothing is guessed."""

    model_config = ConfigDict(extra="forbid", strict=True)


class PredictRequest(StrictRequest):
    """Texts to predict label-sets for, and how often the answer may be wrong."""

    model_config = ConfigDict(
        json_schema_extra={
            "oneOf": [{"required": ["text"]}, {"required": ["texts"]}],
            "not": {"required": ["significance", "confidence_level"]},
        }
    )

    text: str = Field("", description="One text; or give `texts`.")
    texts: Annotated[list[str], FailFast()] = Field([], min_length=1, description="Several texts; or give `text`.")
    significance: Level = Field(
        "0.05",
        description="Share of texts whose true label-set may be missed, taken as the decimal number that you write; "
        "a number, or a string of digits. By default the model's own `level`, see /v1/model.",
    )
    confidence_level: Level = Field("0.95", description="1 - significance; give one of the two.")
    top: WholeNumber = Field(
        5, ge=0, le=10**6, description="How many of the most plausible label-sets to name for each text."
    )
    describe: bool = Field(False, description="Whether to add a sentence about the plausible label-sets.")
    assurance: Level = Field(
        "0.95",
        description="Hold the level for this calibration with this probability, not only on average over "
        "calibrations; sets are larger. Leave it out for the average.",
    )
    group: str = Field("", description="Group of the text, or of all texts, if the model is calibrated by groups.")
    groups: Annotated[list[str], FailFast()] = Field([], description="Group of each text; or give `group`.")
    picture: bool = Field(False, description="Whether to add a picture of the plausible label-sets.")
    id: Identity = Field(
        "", description="Name to remember the text by, for POST /v1/outcomes once its true labels are known."
    )
    ids: Annotated[list[Identity], FailFast()] = Field([], description="The same for several texts.", max_length=10_000)

    @model_validator(mode="after")
    def _check(self) -> Self:
        """Check what goes with what."""
        if len({"text", "texts"} & self.model_fields_set) != 1:
            raise ValueError("exactly one of 'text' and 'texts' must be given")
        if {"significance", "confidence_level"} <= self.model_fields_set:
            raise ValueError("at most one of 'significance' and 'confidence_level' can be given")
        if {"group", "groups"} <= self.model_fields_set:
            raise ValueError("at most one of 'group' and 'groups' can be given")
        if "groups" in self.model_fields_set and len(self.groups) != len(self.all_texts):
            raise ValueError(
                f"'groups' must have {len(self.all_texts)} groups, one per text; it has {len(self.groups)}"
            )
        return self

    def _given(self, name: str) -> Any:
        """Return a field, None if it was left out."""
        return getattr(self, name) if name in self.model_fields_set else None

    @property
    def all_texts(self) -> list[str]:
        """The texts, however they were given."""
        return [self.text] if "text" in self.model_fields_set else self.texts

    @property
    def all_ids(self) -> list[str] | None:
        """The id of each text, None if texts are not to be remembered."""
        return ([self.id] if "id" in self.model_fields_set else []) + self.ids or None

    @property
    def all_groups(self) -> list[str] | None:
        """The group of each text, however they were given."""
        return [self.group] * len(self.all_texts) if "group" in self.model_fields_set else self._given("groups")

    @property
    def asked_assurance(self) -> float | str | None:
        """The assurance, None if none was asked for."""
        return self.assurance if "assurance" in self.model_fields_set else None

    @property
    def level(self) -> tuple[str, float | str | None]:
        """The level: how it was given, and its value; None stands for the model's own."""
        name = "confidence_level" if "confidence_level" in self.model_fields_set else "significance"
        return name, self._given(name)


class PValueRequest(StrictRequest):
    """A text and a label-set for it."""

    text: str
    labels: Annotated[list[str], FailFast()] = Field(description="Names of labels; none, for the empty label-set.")
    group: str = Field("", description="Group of the text, if the model is calibrated by groups.")

    @property
    def all_groups(self) -> list[str] | None:
        """The group of the text, in a list."""
        return [self.group] if "group" in self.model_fields_set else None


class Outcome(StrictRequest):
    """The true label-set of a text that was answered under an id."""

    id: Identity
    labels: Annotated[list[str], FailFast()] = Field(description="Its true labels; none, for the empty label-set.")


class OutcomesRequest(StrictRequest):
    """True label-sets that have become known, in the order in which they did."""

    outcomes: Annotated[list[Outcome], FailFast()] = Field(min_length=1, max_length=1_000)


class OutcomesResponse(BaseModel):
    """What outcomes add up to."""

    missed: list[bool] = Field(description="For each outcome, whether the answer did not hold the true label-set.")
    n_settled: int = Field(description="Texts settled so far.")
    n_missed: int = Field(description="Those of them whose answer did not hold the true label-set.")
    n_waiting: int = Field(description="Texts that wait for their outcome.")
    level: float | None = Field(description="The level of the next text, if it follows errors; else null.")
    alarm: bool = Field(description="Whether texts were found to be unlike those of calibration.")


class Count(BaseModel):
    """A number of label-sets, which may exceed the numbers of JavaScript and JSON libraries."""

    lower: str = Field(description="Certified lower bound, decimal digits.", pattern="^[0-9]+$")
    upper: str = Field(description="Certified upper bound; the same as `lower` if the number is exact.")
    exact: bool = Field(description="Whether the two bounds are the same.")
    readable: str = Field(description="The number for people, like 1.2 × 10^16.")


def _digits(number: int) -> str:
    """Write all digits of a whole number; `str` refuses more than some thousand."""
    return format(Decimal(number), "f")


def count_of(lower: int, upper: int) -> Count:
    """Return a number of label-sets that is known by certified bounds."""
    return Count(lower=_digits(lower), upper=_digits(upper), exact=lower == upper, readable=bounds_words(lower, upper))


class PlausibleLabelSetResponse(BaseModel):
    """A plausible label-set."""

    model_config = ConfigDict(from_attributes=True)

    labels: list[str]
    p_value: float = Field(ge=0, le=1)


class TextAnswer(BaseModel):
    """What conformal prediction says about one text."""

    model_config = ConfigDict(from_attributes=True)

    decision: Literal["file", "choose", "read"] | None = Field(
        description="What to do with the text: file the best guess without a person, choose from a short list, or read "
        "it; null if the model has no certificates."
    )
    reason: str | None = Field(description="Why, in plain words.")
    labels: list[str] = Field(
        description="The best guess: the label-set with the highest p-value; if the model decides for F1, the labels "
        "above its thresholds."
    )
    confidence: float = Field(
        ge=0, le=1, description="1 - the highest p-value of all other label-sets: how implausible they are."
    )
    credibility: float = Field(
        ge=0,
        le=1,
        description="The p-value of the best guess: low if the text is unlike the calibration texts, or if the model "
        "decides for F1 and another label-set is more plausible.",
    )
    size: Annotated[Count, BeforeValidator(lambda bounds: count_of(*bounds))] = Field(
        description="How many label-sets are plausible.", validation_alias="size_bounds"
    )
    certain: list[str] = Field(description="Labels in all plausible label-sets.")
    open: list[str] = Field(
        description="Labels in some plausible label-sets, but not in all; if a model of very many labels leaves "
        "more than 1,000 of them, the most probable ones."
    )
    n_more_open: int = Field(ge=0, description="Open labels that are not named; 0 if all are.")
    assign: list[str] = Field(description="Tags to assign, the most probable first: few of them are false.")
    consider: list[str] = Field(
        description="Tags to consider, the most probable first: few true ones are missing. They include those to "
        "assign."
    )
    unfamiliar: bool = Field(description="Whether the text is unlike the calibration texts: read it yourself.")
    top: list[PlausibleLabelSetResponse] = Field(description="The most plausible label-sets, best first.")
    description: str | None = Field(
        description="The plausible label-sets in a sentence; null if you did not ask for it, or if only bounds of "
        "their number are known."
    )
    category: str | None = Field(
        description="The calibration texts that the best guess was compared with, in words; null if with all of them."
    )
    picture: str | None = Field(
        description="The plausible label-sets as a picture, an SVG document; null as `description` is."
    )


class PredictResponse(BaseModel):
    """One answer per text, in the order of the texts."""

    significance: str = Field(description="The level that was used, exactly.")
    n_candidates: Count = Field(description="How many candidates there are.")
    answers: list[TextAnswer]


class PValueResponse(BaseModel):
    """How plausible a label-set is for a text."""

    labels: list[str] = Field(description="The label-set, in the order of the model's labels.")
    p_value: float = Field(ge=0, le=1)
    is_candidate: bool = Field(
        description="Whether it has as many labels as a label-set may have. Prediction sets hold candidates only."
    )


class LimitsResponse(BaseModel):
    """Limits of one request."""

    max_body_bytes: int
    max_texts: int
    max_text_chars: int
    max_top: int
    max_label_sets: int = Field(description="Texts times top.")


class LevelResponse(BaseModel):
    """What was measured at one significance."""

    significance: str
    error: float = Field(description="Share of test texts whose true label-set was missed.")
    mean_size: float = Field(description="Mean number of plausible label-sets.")
    median_size: float


class EvaluationResponse(BaseModel):
    """Figures on the test texts."""

    n_texts: int
    accuracy: float = Field(description="Share of texts whose forced prediction is exactly right.")
    f1_micro: float
    f1_macro: float
    levels: list[LevelResponse]


class ModelResponse(BaseModel):
    """What the service answers with."""

    version: str = Field(description="Of Surelabel.")
    name: str
    classifier: str = Field(description="Kind of the text classifier.")
    measure: str = Field(description="Nonconformity measure.")
    corpus: str = Field(description="What the classifier was trained on.")
    labels: list[str]
    min_labels: int
    max_labels: int
    n_candidates: Count
    n_calibration: int = Field(description="Calibration texts.")
    smallest_p_value: float = Field(description="1 / (n_calibration + 1): no smaller significance rules anything out.")
    group_column: str | None = Field(
        description="What groups mean, if the model is calibrated by groups: each text then needs its group."
    )
    groups: list[str] | None = Field(description="Groups with calibration texts; null if there are none.")
    level: str = Field(description="The significance of answers if a request gives none: the recommended one.")
    max_wrong: float | None = Field(
        description="Largest share of wrong texts among those that are filed; null if the model has no certificates."
    )
    verdict: list[str] = Field(description="What the model is good for, in plain words; empty if that is not known.")
    notes: list[str] = Field(description="What a user of the model should know.")
    evaluation: EvaluationResponse | None = Field(description="Figures of its evaluation; null if the bundle has none.")
    has_report: bool = Field(description="Whether /report has something to show.")
    has_review: bool = Field(description="Whether texts are reviewed here, at /review.")
    examples: list[str] = Field(description="Texts to try.")
    limits: LimitsResponse


class HealthResponse(BaseModel):
    """Whether the service is alive, or ready."""

    status: str


class ErrorDetails(BaseModel):
    """What is wrong and what to do."""

    code: str
    message: str
    what_to_do: str
    field: str | None = Field(description="Which part of the request is wrong; null if it is not one part.")


class ErrorResponse(BaseModel):
    """The one shape of every error."""

    error: ErrorDetails


def text_answer(answer: Answer) -> TextAnswer:
    """Return the answer about one text as the service sends it."""
    return TextAnswer.model_validate(answer)


def _evaluated(bundle: Bundle) -> EvaluationResponse | None:
    """Return the main figures of the bundle's own measure, if it was evaluated."""
    if not bundle.evaluation:
        return None
    figures = next(iter(bundle.evaluation.values()))
    by_level = {float(point.significance): point for point in figures.curve}
    points = [by_level[float(level)] for level in STANDARD_LEVELS if float(level) in by_level]
    return EvaluationResponse(
        n_texts=figures.n_texts,
        accuracy=figures.forced.accuracy,
        f1_micro=figures.forced.f1_micro,
        f1_macro=figures.forced.f1_macro,
        levels=[
            LevelResponse(
                significance=point.significance,
                error=point.error,
                mean_size=point.sizes.mean,
                median_size=point.sizes.median,
            )
            for point in points
        ],
    )


def describe_model(bundle: Bundle, settings: ServiceSettings, *, has_review: bool = False) -> ModelResponse:
    """Describe a bundle and the limits of its service."""
    calibration = bundle.predictor.calibration_
    n_candidates = calibration.n_candidates
    return ModelResponse(
        version=__version__,
        name=bundle.info.name,
        classifier=bundle.info.kind,
        measure=bundle.info.measure,
        corpus=bundle.info.corpus,
        labels=list(bundle.label_names),
        min_labels=calibration.min_labels,
        max_labels=calibration.max_labels,
        n_candidates=count_of(n_candidates, n_candidates),
        n_calibration=calibration.n_texts,
        smallest_p_value=1 / (calibration.n_texts + 1),
        group_column=bundle.info.group_column if bundle.groups is not None else None,
        groups=None if bundle.groups is None else list(bundle.groups),
        level=bundle.level,
        max_wrong=None if bundle.decisions is None else bundle.decisions.automation.max_wrong,
        verdict=[str(line) for line in bundle.info.verdict.get("words", ())],
        notes=list(bundle.info.notes),
        evaluation=_evaluated(bundle),
        has_report=bundle.report is not None,
        has_review=has_review,
        examples=list(bundle.info.examples) or example_texts(bundle.label_names),
        limits=LimitsResponse(**{name: getattr(settings, name) for name in LimitsResponse.model_fields}),
    )
