"""What a report is made from, checked."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from surelabel._core.validation import FloatArray, IntArray, as_label_names, as_level
from surelabel.conformal import ConformalLabelSets
from surelabel.evaluation.evaluate import Evaluation
from surelabel.evaluation.predicted import Predicted
from surelabel.exceptions import InvalidInputError
from surelabel.labels.sparse import SparseProbabilities, as_any_labels


@dataclasses.dataclass(frozen=True, eq=False)
class ReportInput:
    """What a report is made from.

    Parameters
    ----------
    title : str
    predictors : mapping of name to ConformalLabelSets
        Calibrated, usually one per measure. The sets and texts of the first are shown; the others are compared.
    probabilities, labels : (n, d) array-like or sparse
        Texts with known labels that neither the classifier nor the calibration has seen.
    texts, ids, groups : sequence of str, optional
        Texts, of which excerpts are shown; by which they are named, their rows from 1 by default; and the group of
        each, if predictors are calibrated by groups.
    label_names : sequence of str, optional
        Those of the predictors by default.
    settings, provenance : mapping of str to plain values
        How the model was made; where the texts come from (source, checksum, fingerprint).
    evaluations : mapping of name to Evaluation
        Results that are at hand; those of other predictors are computed.
    other_texts : mapping of name to sequence of str
        Texts of training and calibration by the name of their part, to look for overlap with `texts`.
    resplits : mapping of name to mapping of significance to sequence of float
        Error rates of random re-splits of calibration and evaluated texts, if they were measured: what the same
        classifier and measure give on texts that are exchangeable by construction.
    in_order : bool
        Whether texts are in the order in which they came: their exchangeability is then watched.
    warnings, verdict : sequence of str
        Shown first, and what the model is good for, in sentences; shown at the top.
    date : str, optional
        When the report was made.
    significance : str
        Level that sizes, texts and labels are shown at.
    n_examples : int
        Texts in each list of texts.
    predicted : Predicted, optional
        What the first predictor says of the texts, if it is at hand.
    """

    title: str
    predictors: Mapping[str, ConformalLabelSets]
    probabilities: Any
    labels: Any
    texts: Sequence[str] | None = None
    ids: Sequence[str] | None = None
    groups: Sequence[str] | None = None
    label_names: Sequence[str] | None = None
    settings: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    provenance: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    evaluations: Mapping[str, Evaluation] = dataclasses.field(default_factory=dict)
    other_texts: Mapping[str, Sequence[str]] = dataclasses.field(default_factory=dict)
    resplits: Mapping[str, Mapping[str, Sequence[float]]] = dataclasses.field(default_factory=dict)
    in_order: bool = False
    warnings: Sequence[str] = ()
    verdict: Sequence[str] = ()
    date: str | None = None
    significance: str = "0.05"
    n_examples: int = 5
    predicted: Predicted | None = None


@dataclasses.dataclass(frozen=True, eq=False)
class CheckedInput:
    """The arrays of a report, cast, and its label names; of very many labels both arrays are sparse.

    `predicted` is what the first predictor says of the texts.
    """

    probabilities: FloatArray | SparseProbabilities
    labels: Any
    label_names: tuple[str, ...]
    predicted: Predicted

    def most_probable_first(self, row: int, labels: IntArray) -> list[int]:
        """Return some labels, ascending ones, in the order of a text's probabilities."""
        own = self.probabilities[row : row + 1]
        dense = own.toarray() if isinstance(own, SparseProbabilities) else own
        chosen: list[int] = labels[np.argsort(-dense[0, labels], kind="stable")].tolist()
        return chosen


def _check_evaluations(given: ReportInput, shape: tuple[int, int]) -> None:
    """Raise if an evaluation belongs to no predictor, or to other texts."""
    for name, evaluation in given.evaluations.items():
        if name not in given.predictors:
            raise InvalidInputError(
                f"The 'evaluations' of a report must be of its predictors, {sorted(given.predictors)}. "
                f"Got one of {name!r}."
            )
        calibration = given.predictors[name].calibration_
        expected = (*shape, calibration.n_texts)
        got = (evaluation.n_texts - evaluation.n_unknown, evaluation.n_labels, evaluation.n_calibration)
        if got != expected:
            raise InvalidInputError(
                f"The evaluation {name!r} of a report must be of the same texts and calibration: {expected[0]} texts, "
                f"{expected[1]} labels and {expected[2]} calibration texts. Got {got[0]}, {got[1]} and {got[2]}."
            )


def check_input(given: ReportInput) -> CheckedInput:
    """Check what a report is made from, and cast it."""
    who = "a report"
    if not given.predictors:
        raise InvalidInputError("The 'predictors' parameter of a report must have at least one predictor. Got none.")
    calibrations = [predictor._calibrated("write_report") for predictor in given.predictors.values()]
    as_level(given.significance, None, who=who)
    probabilities = calibrations[0].as_probabilities(given.probabilities, who=who)
    n_texts, n_labels = probabilities.shape
    names = as_label_names(given.label_names, n_labels, who=who)
    for name, calibration in zip(given.predictors, calibrations, strict=True):
        if calibration.n_labels != n_labels:
            raise InvalidInputError(
                f"The predictors of a report must have the same labels. {name!r} has {calibration.n_labels}, "
                f"the first {n_labels}."
            )
        names = names or calibration.label_names
        if calibration.label_names is not None and calibration.label_names != names:
            raise InvalidInputError(f"The labels of predictor {name!r} are not named as those of the report are.")
    labels = as_any_labels(given.labels, probabilities, who=who, names=names)
    for what, values in (("texts", given.texts), ("ids", given.ids)):
        if values is not None and len(values) != n_texts:
            raise InvalidInputError(
                f"The {what!r} of a report must be as many as its rows of probabilities, {n_texts}. Got {len(values)}."
            )
    _check_evaluations(given, (n_texts, n_labels))
    predicted = given.predicted or Predicted(next(iter(given.predictors.values())), probabilities, given.groups, who)
    return CheckedInput(probabilities, labels, names or tuple(f"label {k}" for k in range(n_labels)), predicted)
