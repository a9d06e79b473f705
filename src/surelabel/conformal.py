"""Conformal prediction of label-sets from probabilities: calibrate once, predict at any significance."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from surelabel import exceptions, predictor_file
from surelabel._core import files
from surelabel._core.threads import BLOCK_ROWS, over_rows
from surelabel._core.validation import (
    FloatArray,
    Names,
    aligned_rows,
    as_fraction,
    as_groups,
    as_names,
    as_probabilities,
    as_significance,
    check_count,
    column_names,
    invalid,
)
from surelabel.calibration import Calibration, Taxonomy
from surelabel.exceptions import CalibrationWarning, InvalidInputError
from surelabel.guarantees.groups import ByCardinality, ByGroup
from surelabel.labels.constraints import LabelConstraints
from surelabel.labels.shortlists import Shortlists
from surelabel.measures.base import SeparableMeasure
from surelabel.measures.mixture import Mixture
from surelabel.measures.separable import LpNorm
from surelabel.search.constrained import ConstrainedSearch
from surelabel.search.dense import WORK_LIMIT, DenseSearch, Search, joined
from surelabel.search.mixture import MixtureSearch
from surelabel.search.paper import HammingBallSearch, PowersetSearch
from surelabel.sets.prediction_sets import ForcedPredictions, PredictionSets, Texts

_SEARCHES = {"exact": DenseSearch, "hamming-ball": HammingBallSearch, "powerset": PowersetSearch}


@dataclass(frozen=True, eq=False)
class ConformalLabelSets:
    """Label-Powerset Inductive Conformal Prediction, exact at any number of labels (paper section 5).

    Parameters
    ----------
    measure : SeparableMeasure or Mixture
        Nonconformity measure, `LpNorm(2)` by default.
    min_labels, max_labels : int
        Least and most labels of a candidate. The paper takes max_labels = the largest number of labels of a proper
        training text; the default is no limit. It must not be taken from the calibration labels.
    search : {"exact", "hamming-ball", "powerset"}
        How prediction sets are found; all give the same ones. The last two are the paper's.
    label_names : sequence of str, optional
        A data frame of probabilities brings its own.
    constraints : LabelConstraints, optional
        Rules that candidates must obey.
    taxonomy : ByGroup or ByCardinality, optional
        Errors are bounded in every group, or for each number of labels, not only on average.
    work_limit : int
        Steps per text that counting may take before it returns certified bounds.
    n_jobs : int, optional
        Threads; all cores by default. Results do not depend on it.

    Examples
    --------
    >>> predictor = ConformalLabelSets(label_names=["grain", "trade", "wheat"])
    >>> probabilities = [[0.9, 0.2, 0.3], [0.1, 0.8, 0.3], [0.7, 0.1, 0.4], [0.2, 0.9, 0.1]]
    >>> predictor = predictor.calibrate(probabilities, [["grain", "wheat"], ["trade"], ["grain"], ["trade"]])
    >>> forced = predictor.predict([[0.8, 0.1, 0.55]])
    >>> sorted(forced.label_sets[0]), float(forced.confidence[0]), float(forced.credibility[0])
    (['grain', 'wheat'], 0.6, 0.6)
    >>> plausible = predictor.predict_set([[0.8, 0.1, 0.55]], significance=0.25)[0]
    >>> plausible.size, sorted(plausible.certain)
    (2, ['grain'])
    """

    measure: Any = LpNorm(2)  # noqa: RUF009 (measures are immutable)
    min_labels: int = 1
    max_labels: int | None = None
    search: str = "exact"
    label_names: Sequence[str] | None = None
    constraints: LabelConstraints | None = None
    taxonomy: Taxonomy | None = None
    work_limit: int = WORK_LIMIT
    n_jobs: int | None = None

    if TYPE_CHECKING:

        @property
        def calibration_(self) -> Calibration:
            """The calibration, set by `calibrate`."""

    def __post_init__(self) -> None:
        who = type(self).__name__
        for name, classes, expected in (
            ("measure", (SeparableMeasure, Mixture), "a measure, such as LpNorm(2), LogLoss() or a fitted Mixture"),
            ("constraints", (LabelConstraints, type(None)), "LabelConstraints or None"),
            ("taxonomy", (ByGroup, ByCardinality, type(None)), "ByGroup(), ByCardinality(...) or None"),
        ):
            if not isinstance(getattr(self, name), classes):
                raise invalid(name, who, expected, repr(getattr(self, name)))
        is_plain = isinstance(self.measure, SeparableMeasure) and self.constraints is None
        if self.search not in _SEARCHES or not (is_plain or self.search == "exact"):
            expected = f"one of {sorted(_SEARCHES)}" if is_plain else "'exact' with a Mixture or constraints"
            raise invalid("search", who, expected, repr(self.search))
        for name, least in (("min_labels", 0), ("max_labels", 0), ("work_limit", 1), ("n_jobs", 1)):
            value = getattr(self, name)
            if value is not None or name in ("min_labels", "work_limit"):
                check_count(name, value, who, least)
                object.__setattr__(self, name, int(value))
        if self.max_labels is not None and self.max_labels < self.min_labels:
            raise invalid("max_labels", who, f"at least min_labels, {self.min_labels}", repr(self.max_labels))

    def calibrate(self, probabilities: Any, labels: Any, groups: Any = None) -> ConformalLabelSets:
        """Score held-out texts with known label-sets; they must not have been used to train the classifier.

        Parameters
        ----------
        probabilities : (n, d) array-like, data frame or Shortlists
        labels : (n, d) 0/1 array-like, data frame or sparse matrix, or one collection of label names per text
            A label that is not among the names, or not on a text's shortlist, makes the text's score infinite.
        groups : (n,) array-like, optional
            The group of each text, with `ByGroup()`.

        Returns
        -------
        self
        """
        names = self.label_names if self.label_names is not None else column_names(probabilities)
        names = names if names is not None else column_names(labels)
        return self._keep(self._calibrated_on(probabilities, labels, groups, names, "calibrate"))

    conformalize = calibrate

    def _settle(self, n_labels: int, names: Any, who: str) -> Calibration:
        """Return the calibration by no texts: limits, names and measure checked against the labels there are."""
        most = n_labels if self.max_labels is None else min(self.max_labels, n_labels)
        if self.min_labels > most:
            raise invalid("min_labels", who, f"at most the number of labels, {most}", repr(self.min_labels))
        known, measure = as_names(names, n_labels, who), self.measure
        if isinstance(measure, Mixture):
            measure = measure.with_names(known, n_labels)
        units = measure.units(n_labels)
        limits, rules = (self.min_labels, most), (self.constraints, self.taxonomy)
        calibration = Calibration(measure, units, n_labels, *limits, known, *rules, totals={})
        contradiction = None if calibration.rules is None else calibration.rules.contradiction(*limits)
        if contradiction is not None:
            raise InvalidInputError(
                f"No label-set with {limits[0]} to {limits[1]} labels obeys the constraints: {contradiction}. Change "
                "these rules, or the limits."
            )
        return calibration

    def _calibrated_on(self, probabilities: Any, labels: Any, groups: Any, names: Any, who: str) -> Calibration:
        """Return the calibration by texts with known label-sets; warn of those that are not candidates."""
        known: Names | None = None if names is None else tuple(map(str, names))
        values = _as_values(probabilities, known, who)
        empty = self._settle(values.shape[1], names, who)
        texts = self._prepare(empty, values, groups, who, probabilities)
        totals, sizes, candidates = texts.score(labels, who)
        n_outside = int(np.count_nonzero(~candidates))
        calibration = empty.with_totals(totals, sizes, texts.groups, n_outside)
        if n_outside:
            unlisted = calibration.share_unlisted
            words = f" {unlisted:.1%} have an unknown label, or one that is not listed." if unlisted else ""
            warnings.warn(
                f"{n_outside} of {len(totals)} calibration texts have a label-set outside the candidates "
                f"({empty.min_labels} to {empty.max_labels} labels).{words} Their scores count, but such label-sets "
                "can never be in a prediction set.",
                CalibrationWarning,
                stacklevel=3,
            )
        return calibration

    def _prepare(self, calibration: Calibration, values: Any, groups: Any, who: str, frame: Any) -> Texts:
        """Return texts ready to be searched, from checked probabilities; `frame` may have an index."""
        if isinstance(calibration.taxonomy, ByGroup):
            names = as_groups(aligned_rows(groups, frame, "groups", who), len(values), who)
            calibration.check_groups(names, who)
        elif groups is not None:
            raise invalid("groups", who, "left out, as there is no taxonomy=ByGroup()", f"{len(groups)} groups")
        else:
            names = np.full(len(values), "", dtype=object)
        columns, shortlists, measure = None, None, calibration.measure
        if isinstance(values, Shortlists):
            columns, shortlists, values = values.labels, values.labels == values.n_labels, values.probabilities

        def costed(rows: slice) -> Any:
            excluded = None if shortlists is None else shortlists[rows]
            return measure.in_units(values[rows], calibration.units, excluded)

        is_one = len(values) <= BLOCK_ROWS
        costs = costed(slice(None)) if is_one else joined(over_rows(costed, len(values), self.n_jobs))
        if isinstance(measure, Mixture) and measure.weight > 0:
            search: Search = MixtureSearch(costs, measure, calibration.units, self.work_limit, self.n_jobs)
        else:
            search = _SEARCHES[self.search](costs, self.work_limit, self.n_jobs)
        if calibration.rules is not None:
            search = ConstrainedSearch(search, calibration.rules, columns)
        return Texts(calibration, search, names, columns, frame)

    def _calibration(self, who: str) -> Calibration:
        """Return the calibration; an error if there is none yet."""
        calibration: Calibration | None = getattr(self, "calibration_", None)
        if calibration is None:
            raise exceptions.NotCalibratedError(
                f"This {type(self).__name__} is not calibrated yet. Call 'calibrate' before '{who}'."
            )
        return calibration

    def texts(self, probabilities: Any, groups: Any = None, *, who: str = "texts") -> Texts:
        """Cost and sort texts once, for several questions: `predict` and the others take the result, too."""
        calibration = self._calibration(who)
        if isinstance(probabilities, Texts):
            if probabilities.calibration is not calibration or groups is not None:
                raise invalid("probabilities", who, "texts of this predictor, with their own groups", "other texts")
            return probabilities
        values = _as_values(probabilities, calibration.label_names, who)
        if values.shape[1] != calibration.n_labels:
            raise invalid("probabilities", who, f"of {calibration.n_labels} labels", f"{values.shape[1]}")
        return self._prepare(calibration, values, groups, who, probabilities)

    def predict(self, probabilities: Any, *, groups: Any = None) -> ForcedPredictions:
        """Return the label-set with the highest p-value for each text, with confidence and credibility.

        Of label-sets with equal p-values the one with the lowest score is taken, of equal scores the lexicographically
        first 0/1 row.
        """
        return ForcedPredictions.from_texts(self.texts(probabilities, groups, who="predict"))

    def predict_p(self, probabilities: Any, labels: Any, *, groups: Any = None) -> FloatArray:
        """Return the p-value of one label-set per text, (n,), 0 if it is no candidate; labels as in `calibrate`."""
        texts = self.texts(probabilities, groups, who="predict_p")
        totals, sizes, candidates = texts.score(labels, "predict_p")
        return np.where(candidates, texts.calibration.p_values(totals, sizes, texts.groups), 0.0)

    def scores(self, probabilities: Any, labels: Any, *, groups: Any = None) -> FloatArray:
        """Return each text's nonconformity total (n,) with one given label-set, infinite if a label is unknown."""
        texts = self.texts(probabilities, groups, who="scores")
        return texts.score(labels, "scores")[0] / texts.calibration.units

    def predict_set(
        self,
        probabilities: Any,
        *,
        significance: Any = None,
        confidence_level: Any = None,
        groups: Any = None,
        assurance: Any = None,
    ) -> PredictionSets:
        """Return, for each text, the set of label-sets whose p-value is over the significance.

        Parameters
        ----------
        probabilities : (n, d) array-like, data frame or Shortlists
        significance : float, str, Decimal or Fraction in (0, 1)
            Share of texts whose true label-set may be missed, as the decimal number that was typed.
        confidence_level : the same
            1 - significance; give exactly one of the two.
        groups : (n,) array-like, optional
            The group of each text, with `ByGroup()`.
        assurance : the same, optional
            How sure you want to be of this calibration. With 0.95, 95 of 100 calibrations miss at most the
            significance. Without it, they do so on average.
        """
        level = as_significance(significance, confidence_level, "predict_set")
        assured = None if assurance is None else as_fraction(assurance, "assurance", "predict_set")
        texts = self.texts(probabilities, groups, who="predict_set")
        texts.calibration.warn_of_few(level, assured, texts.groups)
        return PredictionSets(texts, texts.calibration.thresholds(level, assured, texts.groups))

    def add(self, probabilities: Any, labels: Any, groups: Any = None) -> ConformalLabelSets:
        """Return a predictor that is calibrated on more texts; this one stays as it is.

        >>> predictor = ConformalLabelSets().calibrate([[0.9, 0.2], [0.1, 0.8]], [[1, 0], [0, 1]])
        >>> predictor.add([[0.6, 0.7]], [[1, 1]]).calibration_.n_texts
        3
        """
        own = self._calibration("add")
        more = self._calibrated_on(probabilities, labels, groups, own.label_names, "add")
        return self._with(Calibration.merged([own, more]))

    @classmethod
    def merge(cls, predictors: Iterable[ConformalLabelSets]) -> ConformalLabelSets:
        """Return one predictor from several that were calibrated on different texts: shards, or days.

        It is the same, to the last bit, as one that was calibrated on all their texts at once.
        """
        parts = list(predictors)
        if not parts:
            raise invalid("predictors", "merge", "one or more calibrated predictors", "none")
        return parts[0]._with(Calibration.merged([part._calibration("merge") for part in parts]))

    def _with(self, calibration: Calibration) -> ConformalLabelSets:
        """Return a predictor with the same parameters and another calibration."""
        return replace(self)._keep(calibration)

    def _keep(self, calibration: Calibration) -> ConformalLabelSets:
        """Set the calibration; nothing else of a predictor changes."""
        object.__setattr__(self, "calibration_", calibration)
        return self

    def to_arrays(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return the calibrated predictor as a header of plain values, and arrays."""
        parameters = {field.name: getattr(self, field.name) for field in fields(self)}
        return predictor_file.to_arrays(self._calibration("save"), parameters)

    @classmethod
    def from_arrays(cls, header: dict[str, Any], arrays: dict[str, Any], measure: Any = None) -> ConformalLabelSets:
        """Return the inverse of `to_arrays`; whatever is damaged raises some error."""
        stored = predictor_file.from_arrays(header, arrays, measure)
        predictor = cls(**stored.parameters)
        empty = predictor._settle(stored.n_labels, stored.parameters["label_names"], "load")
        return predictor._keep(replace(empty, totals=stored.totals, n_outside=stored.n_outside))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the calibrated predictor to one .npz file, without pickles."""
        files.write_arrays(path, *self.to_arrays())

    @classmethod
    def load(cls, path: str | os.PathLike[str], *, measure: SeparableMeasure | None = None) -> ConformalLabelSets:
        """Read a calibrated predictor from a file made by `save`; no code from the file is run.

        Give the `measure` if the file was made with one of your own, which no file can bring.
        """
        header, arrays = files.read_arrays(path, predictor_file.KIND)
        with predictor_file.as_artifact_error(path):
            return cls.from_arrays(header, arrays, measure)


def _as_values(probabilities: Any, names: Names | None, who: str) -> Any:
    """Return Shortlists as they are, anything else as checked probabilities."""
    return probabilities if isinstance(probabilities, Shortlists) else as_probabilities(probabilities, names, who)
