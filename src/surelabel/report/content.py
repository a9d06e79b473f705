"""The content of a report as plain values: no markup here, and no numbers in the template."""

from __future__ import annotations

import dataclasses
import math
import warnings
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from surelabel._core.validation import BoolArray, FloatArray
from surelabel.evaluation import summary
from surelabel.evaluation.bands import Verdict
from surelabel.evaluation.evaluate import EvaluationResult
from surelabel.evaluation.metrics import SizeStatistics
from surelabel.exceptions import CalibrationWarning

if TYPE_CHECKING:
    from surelabel.corpora import Corpus

_MOST_SIZED = 2_000


@dataclasses.dataclass(frozen=True)
class LevelRow:
    """Errors at one level, of all texts and of filed and seen ones, and the sizes of prediction sets."""

    significance: str
    error: float
    lower: float
    upper: float
    verdict: Verdict
    filed: float | None
    seen: float | None
    sizes: SizeStatistics


@dataclasses.dataclass(frozen=True, eq=False)
class Measured:
    """What figures are drawn from: the evaluated texts as the model sees them."""

    probabilities: Any
    labels: Any
    p_values: FloatArray
    confidence: FloatArray
    credibility: FloatArray
    right: BoolArray
    sizes: list[int]


@dataclasses.dataclass(frozen=True, eq=False)
class Content:
    """Everything that a report tells, apart from its figures."""

    info: Any
    evaluation: Any
    texts: str
    lines: list[str]
    rows: list[LevelRow]
    settings: dict[str, Any]
    measured: Measured

    @property
    def result(self) -> EvaluationResult:
        """Best guesses and prediction sets of all texts."""
        result: EvaluationResult = self.evaluation.result
        return result

    @property
    def broken(self) -> bool:
        """Whether there are more errors than chance explains."""
        return any(row.verdict == "above" for row in self.rows)


def build_content(bundle: Any, corpus: Corpus, evaluation: Any) -> Content:
    """Compute everything that a report on a bundle tells about the texts of a corpus that it was evaluated on."""
    info = bundle.info
    return Content(
        info=info,
        evaluation=evaluation,
        texts=f"{evaluation.n_texts:,} texts of {evaluation.corpus} that the model has not seen",
        lines=summary.evaluation_lines(evaluation, info.levels),
        rows=list(_rows(evaluation)),
        settings={
            **{name.replace("_", " "): level for name, level in info.levels.items()},
            "classifier": info.classifier,
            "settings": info.settings,
            "nonconformity measure": info.measure,
            "best guess": info.best_guess,
            "groups": info.group_column or "none",
            "seed": info.seed,
            "texts of training": info.n_train,
            "texts of other parts": {name: n for name, n in info.part_sizes.items() if name != "train"},
            "source": info.provenance,
            "versions": info.versions,
        },
        measured=_measured(bundle, corpus),
    )


def _rows(evaluation: Any) -> Iterable[LevelRow]:
    """Return the errors and sizes at each standard level."""
    result: EvaluationResult = evaluation.result
    for point in result.standard:
        level = point.significance
        filed, seen = ((rates or {}).get(level) for rates in (evaluation.errors_filed, evaluation.errors_seen))
        yield LevelRow(level, point.error, *result.verdict(point), filed, seen, point.sizes)


def _measured(bundle: Any, corpus: Corpus) -> Measured:
    """Return the evaluated texts as the model sees them."""
    given, column, predictor = list(corpus.texts), bundle.group_column, bundle.predictor
    probabilities = bundle.predict_proba(given, scores=corpus.scores)
    groups = None if column is None else list(corpus.column(column))
    texts = predictor.texts(probabilities, bundle.categories(probabilities, bundle.share_known(given), groups))
    forced = predictor.predict(texts)
    with warnings.catch_warnings(action="ignore", category=CalibrationWarning):
        sets = predictor.predict_set(texts[slice(_MOST_SIZED)], significance=bundle.info.levels["significance"])
    return Measured(
        probabilities=probabilities,
        labels=[[name in names for name in bundle.label_names] for names in corpus.label_sets],
        p_values=predictor.predict_p(texts, corpus.label_sets),
        confidence=forced.confidence,
        credibility=forced.credibility,
        right=np.array([one == true for one, true in zip(forced.label_sets, corpus.label_sets, strict=True)]),
        sizes=[math.ceil(size) for size in sets.size_bounds()[1]],
    )
