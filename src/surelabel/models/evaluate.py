"""Measure a model on texts with labels that it has not seen: neither in training nor in calibration."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Mapping
from typing import Any

import numpy as np

from surelabel._core.formatting import count
from surelabel._core.progress import step
from surelabel._core.validation import BoolArray, FloatArray
from surelabel.corpora import Corpus
from surelabel.evaluation.conditional import TextInfo
from surelabel.evaluation.evaluate import EvaluationResult, as_dataclass, as_label_sets, evaluate
from surelabel.evaluation.metrics import STANDARD_LEVELS, missed_at
from surelabel.exceptions import InvalidInputError
from surelabel.guarantees.decisions import CHOOSE, FILE, READ, Decision
from surelabel.models.bundle import Bundle, with_names
from surelabel.models.calibrate import held_out_texts
from surelabel.models.evidence import HeldOutTexts


@dataclasses.dataclass(frozen=True)
class DecisionFigures:
    """Texts with one decision.

    Attributes
    ----------
    n_texts : int
    share : float
        Of all texts.
    wrong, wrong_error : float or None
        Share of these texts whose best guess is wrong, and its standard error.
    missed, missed_error : float or None
        Mean share of a text's true tags that are not among its tags to consider, and its standard error.
    n_tags : float or None
        Mean number of tags to consider.

    All but the first two are None without texts.
    """

    n_texts: int
    share: float
    wrong: float | None = None
    wrong_error: float | None = None
    missed: float | None = None
    missed_error: float | None = None
    n_tags: float | None = None


@dataclasses.dataclass(frozen=True)
class BundleEvaluation:
    """What a model does on texts that it has not seen.

    Attributes
    ----------
    corpus : str
    n_texts, n_unknown : int
        Texts that were measured, and those of them with a label that the model does not know; they count as errors.
    left_out : mapping of reason to number of texts
        "no labels", "training", "calibration".
    errors, errors_filed, errors_seen : mapping of level to float
        Share of texts whose label-set is not in the prediction set: of all texts, of those that are filed, and of those
        that people see. None where there are no such texts.
    decisions : mapping of "file", "choose", "read" and "seen" (choose and read together) to DecisionFigures
    result : EvaluationResult
        Best guesses, prediction sets, labels and subgroups, over all texts.
    """

    corpus: str
    n_texts: int
    n_unknown: int
    left_out: Mapping[str, int]
    errors: Mapping[str, float]
    errors_filed: Mapping[str, float] | None
    errors_seen: Mapping[str, float] | None
    decisions: Mapping[str, DecisionFigures]
    result: EvaluationResult

    @property
    def n_filed(self) -> int:
        """Number of texts that are filed."""
        return self.decisions[FILE].n_texts

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON; the figures of `result` stand beside the others."""
        values = dataclasses.asdict(self)
        figures = values.pop("result")
        figures["curve_errors"] = figures.pop("errors")
        return values | {name: value for name, value in figures.items() if name not in values}

    @classmethod
    def from_dict(cls, values: Any) -> BundleEvaluation:
        """Return the inverse of `to_dict`; anything else is an ArtifactError."""
        own = {field.name for field in dataclasses.fields(cls)}
        figures = {field.name for field in dataclasses.fields(EvaluationResult)}
        document = dict(values) if isinstance(values, dict) else {}
        result = {name: value for name, value in document.items() if name in figures}
        result["errors"] = document.get("curve_errors")
        rest = {name: value for name, value in document.items() if name in own}
        return as_dataclass(cls, {**rest, "result": result})  # type: ignore[no-any-return]


def evaluate_bundle(bundle: Bundle, corpus: Corpus, *, held_out: bool = False) -> BundleEvaluation:
    """Measure a bundle on the texts of a corpus that it has not seen.

    Of the file that the model was trained on these are its test texts. Texts without labels are left out and counted;
    texts with labels that the model does not know count as errors.

    Parameters
    ----------
    bundle : Bundle
    corpus : Corpus
    held_out : bool
        The texts are known to be held out: none is left out because it is repeated.
    """
    labelled, left_out = _texts_of(bundle, corpus, held_out=held_out)
    if len(labelled) == 0:
        reasons = ", ".join(f"{count(n)} ({reason})" for reason, n in left_out.items() if n)
        raise InvalidInputError(
            f"No text of {corpus.name!r} can measure this model; left out: {reasons}. Give texts with labels that it "
            "has not seen."
        )
    with step("predicting test texts"):
        part = held_out_texts(bundle, labelled)
    with step("measuring"):
        return _measured(bundle, part, labelled, {reason: n for reason, n in left_out.items() if n})


def new_texts(bundle: Bundle, corpus: Corpus) -> Corpus:
    """Return the texts that `evaluate_bundle` measures on: those with labels that the model has not seen."""
    return _texts_of(bundle, corpus, held_out=False)[0]


def _texts_of(bundle: Bundle, corpus: Corpus, *, held_out: bool) -> tuple[Corpus, dict[str, int]]:
    """Return the texts to measure on, and how many are left out, by reason."""
    labelled = with_names(corpus.rows(corpus.is_labelled), bundle.vocabulary)
    left_out = {"no labels": len(corpus) - len(labelled)}
    if held_out:
        return labelled, left_out
    new, seen = bundle.seen.without_seen(labelled)
    return new, left_out | seen


def _measured(bundle: Bundle, part: HeldOutTexts, corpus: Corpus, left_out: Mapping[str, int]) -> BundleEvaluation:
    """Return the figures of texts."""
    names = bundle.label_names
    decisions = bundle.policy.decide(part.probabilities, part.known_words)
    categories = bundle.categories(part.probabilities, part.known_words, part.groups)
    filed = np.array([decision.decision == FILE for decision in decisions])
    guesses = bundle.best_guesses(part.probabilities)
    result = evaluate(
        bundle.predictor,
        part.probabilities,
        part.label_sets,
        groups=categories,
        best_guesses=None if guesses is None else as_label_sets(guesses, names),
        info=TextInfo(
            corpus.ids,
            bundle.info.label_texts,
            part.groups or ["filed" if one else "seen by people" for one in filed],
            _subgroup_sizes(bundle),
        ),
    )
    p_values = bundle.predictor.predict_p(part.probabilities, part.label_sets, groups=categories)
    levels = dict.fromkeys((*STANDARD_LEVELS, bundle.info.levels["significance"]))

    def errors(rows: BoolArray) -> dict[str, float] | None:
        return {level: float(missed_at(p_values[rows], level).mean()) for level in levels} if rows.any() else None

    return BundleEvaluation(
        corpus=corpus.name,
        n_texts=len(part),
        n_unknown=result.n_unknown,
        left_out=left_out,
        errors=errors(np.ones(len(part), dtype=bool)) or {},
        errors_filed=errors(filed),
        errors_seen=errors(~filed),
        decisions=decision_figures(decisions, part.label_sets, names),
        result=result,
    )


def _subgroup_sizes(bundle: Bundle) -> dict[str, int]:
    """Return the number of calibration texts of each group, or of filed texts and those that people see."""
    if bundle.calibration.groups is not None:
        return dict(Counter(bundle.calibration.groups))
    if not bundle.info.categories:
        return {}
    sizes = {group: len(totals) for (group, _), totals in bundle.predictor.calibration_.totals.items()}
    return {"filed": sizes.get("filed", 0), "seen by people": sizes.get("seen", 0)}


def decision_figures(
    decisions: list[Decision], label_sets: list[frozenset[str]], names: tuple[str, ...]
) -> dict[str, DecisionFigures]:
    """Return the figures of texts that are filed, chosen, read, and seen by people (chosen or read)."""
    kinds = np.array([decision.decision for decision in decisions])
    pairs = list(zip(decisions, label_sets, strict=True))
    wrong = np.array([frozenset(names[k] for k in one.labels) != true for one, true in pairs], dtype=np.float64)
    missed = np.array([len(true - {names[k] for k in one.consider}) / max(1, len(true)) for one, true in pairs])
    n_tags = np.array([len(one.consider) for one in decisions], dtype=np.float64)
    found = {}
    for kind in (FILE, CHOOSE, READ, "seen"):
        rows = kinds != FILE if kind == "seen" else kinds == kind
        lists = slice(0) if kind == FILE else slice(None)  # filed texts have no list to look at
        found[kind] = DecisionFigures(
            int(rows.sum()),
            float(rows.mean()),
            *_mean(wrong[rows]),
            *_mean(missed[rows][lists]),
            _mean(n_tags[rows][lists])[0],
        )
    return found


def _mean(values: FloatArray) -> tuple[float | None, float | None]:
    """Return the mean and its standard error, None without values."""
    if len(values) == 0:
        return None, None
    return float(values.mean()), float(values.std(ddof=1) / np.sqrt(len(values))) if len(values) > 1 else None
