"""The content of a report as plain values: no markup here, and no numbers in the template."""

from __future__ import annotations

import dataclasses
import json
import math
import warnings
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from surelabel._core.formatting import plain
from surelabel._core.validation import BoolArray, FloatArray
from surelabel.evaluation.bands import Verdict, error_band
from surelabel.evaluation.evaluate import EvaluationResult
from surelabel.evaluation.metrics import SizeStatistics, same_label_sets
from surelabel.evaluation.summary import asked, evaluation_lines, share
from surelabel.exceptions import CalibrationWarning

if TYPE_CHECKING:
    from surelabel.corpora import Corpus

_MOST_SIZED = 2_000
_MOST_EXAMPLES = 10
_DECISIONS = (("file", "Filed"), ("choose", "To choose"), ("read", "To read"))


@dataclasses.dataclass(frozen=True)
class Decision:
    """What happens to texts: a heading, their share, and what is wrong or missed among them."""

    kind: str
    heading: str
    share: float
    sentence: str


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
    """Everything that a report says, apart from its figures."""

    title: str
    texts: str
    created: str
    lines: tuple[str, ...]
    notes: tuple[str, ...]
    decisions: tuple[Decision, ...]
    levels: Mapping[str, str]
    rows: tuple[LevelRow, ...]
    result: EvaluationResult
    settings: tuple[tuple[str, str], ...]
    measured: Measured

    @property
    def broken(self) -> bool:
        """Whether there are more errors than chance explains."""
        return any(row.verdict == "above" for row in self.rows)


def build_content(bundle: Any, corpus: Corpus, evaluation: Any) -> Content:
    """Compute everything that a report on a bundle says about the texts of a corpus that it was evaluated on."""
    result: EvaluationResult = evaluation.result
    return Content(
        title=plain(bundle.info.name),
        texts=f"{evaluation.n_texts:,} texts of {plain(evaluation.corpus)} that the model has not seen",
        created=bundle.info.created[:10],
        lines=tuple(map(plain, evaluation_lines(evaluation, bundle.info.levels))),
        notes=tuple(map(plain, bundle.info.notes)),
        decisions=tuple(_decisions(evaluation, bundle.info)),
        levels=bundle.info.levels,
        rows=tuple(_rows(evaluation)),
        result=result,
        settings=tuple(_settings(bundle.info)),
        measured=_measured(bundle, corpus),
    )


def _decisions(evaluation: Any, info: Any) -> Iterable[Decision]:
    """Describe what happens to the texts, each figure with the texts that it is about."""
    for kind, heading in _DECISIONS:
        figures = evaluation.decisions[kind]
        n_texts = f"{figures.n_texts:,} texts"
        if not figures.n_texts:
            sentence = "none of these texts"
        elif kind == "file":
            sentence = f"{share(figures.wrong)} of these {n_texts} are wrong ({asked(info.levels['max_wrong'])})"
        elif kind == "choose":
            sentence = f"one look at {figures.n_tags:.1f} tags for these {n_texts}; {share(figures.missed)} are missed"
        else:
            sentence = f"{n_texts} without a short list"
        yield Decision(kind, heading, figures.share, sentence)


def _rows(evaluation: Any) -> Iterable[LevelRow]:
    """Return the errors and sizes at each standard level."""
    result: EvaluationResult = evaluation.result
    for point in result.standard:
        filed, seen = (
            (rates or {}).get(point.significance) for rates in (evaluation.errors_filed, evaluation.errors_seen)
        )
        band = error_band(point.significance, result.n_texts, result.n_calibration)
        verdict = result.verdict(point)
        yield LevelRow(point.significance, point.error, *band, verdict, filed, seen, point.sizes)


def _measured(bundle: Any, corpus: Corpus) -> Measured:
    """Return the evaluated texts as the model sees them."""
    texts = list(corpus.texts)
    column = bundle.info.group_column
    probabilities = bundle.predict_proba(texts, scores=corpus.scores)
    groups = bundle.categories(
        probabilities, bundle.share_known(texts), None if column is None else list(corpus.columns[column])
    )
    predictor, level = bundle.predictor, bundle.info.levels["significance"]
    forced = predictor.predict(probabilities, groups=groups)
    rows = slice(_MOST_SIZED)
    with warnings.catch_warnings(action="ignore", category=CalibrationWarning):
        sets = predictor.predict_set(
            probabilities[rows], groups=None if groups is None else groups[rows], significance=level
        )
    return Measured(
        probabilities=probabilities,
        labels=[[name in names for name in bundle.label_names] for names in corpus.label_sets],
        p_values=predictor.predict_p(probabilities, corpus.label_sets, groups=groups),
        confidence=forced.confidence,
        credibility=forced.credibility,
        right=same_label_sets(corpus.label_sets, forced.label_sets),
        sizes=[math.ceil(size) for size in sets.size_bounds()[1]],
    )


def _settings(info: Any) -> Iterable[tuple[str, str]]:
    """Return how the model was made, as rows of text."""
    told = {
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
    }
    for name, value in told.items():
        if isinstance(value, Mapping):
            yield name, plain(", ".join(f"{key}: {_plain(inner)}" for key, inner in value.items()))
        else:
            yield name, plain(_plain(value))


def _plain(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
