"""What GET /v1/model says of a bundle."""

from __future__ import annotations

from typing import TYPE_CHECKING

from surelabel._core.levels import STANDARD_LEVELS
from surelabel._version import __version__
from surelabel.service.pages import example_texts
from surelabel.service.schemas import EvaluationResponse, LevelResponse, LimitsResponse, ModelResponse, count_of
from surelabel.service.settings import ServiceSettings

if TYPE_CHECKING:
    from surelabel.models import Bundle


def _evaluated(bundle: Bundle) -> EvaluationResponse | None:
    """Return the main figures of the bundle's own measure, where it was evaluated."""
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
