"""Conformal prediction of label-sets from probabilities: calibrate once, cut at any level."""

from __future__ import annotations

import dataclasses
import math
import os
import warnings
from collections.abc import Iterable, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from surelabel._core.storage import atomic_file
from surelabel._core.threads import over_rows
from surelabel._core.validation import (
    FloatArray,
    as_label_names,
    as_levels,
    as_share,
    check_calibrated,
    check_count,
    check_limits,
    invalid,
    names_of_columns,
)
from surelabel.calibration import Calibration, fewest_assured, totals_of
from surelabel.engines import SEARCHES, engine_for
from surelabel.engines.base import WORK_LIMIT, Engine
from surelabel.exceptions import ArtifactError, CalibrationWarning, InvalidInputError, SearchLimitError
from surelabel.labels.constraints import LabelConstraints
from surelabel.labels.sparse import as_any_probabilities
from surelabel.measures import LpNorm, Measure, SeparableMeasure, check_measure
from surelabel.predictor_file import predictor_from_bytes, predictor_to_bytes
from surelabel.sets.forced import ForcedPredictions
from surelabel.sets.prediction_sets import PredictionSets
from surelabel.taxonomies.categories import Categories, as_groups
from surelabel.taxonomies.engine import KindsEngine
from surelabel.taxonomies.kinds import Taxonomy

__all__ = ["ConformalLabelSets", "ForcedPredictions"]

_DEFAULT_MEASURE = LpNorm(2)
_LIMITS = ("min_labels", "max_labels", "work_limit", "n_jobs")
_PARAMETERS = ("measure", "search", "label_names", "constraints", "taxonomy", *_LIMITS)


class ConformalLabelSets:
    """Label-Powerset Inductive Conformal Prediction, exact at any number of labels (paper section 5).

    Parameters
    ----------
    measure : Measure
        Nonconformity measure, `LpNorm(2)` by default.
    min_labels, max_labels : int
        Candidates are the label-sets with so many labels. The paper takes max_labels = the largest number of labels
        of a proper training text, which only you know here: the default is no limit. It must not be
        taken from the calibration labels.
    search : {"exact", "hamming-ball", "powerset"}
        How prediction sets are found; all give the same ones. The last two are the paper's.
    label_names : sequence of str, optional
        Names of the labels; a data frame of probabilities brings its own.
    work_limit : int
        Steps per text that counting may take before it answers with certified bounds.
    n_jobs : int, optional
        Threads; all cores by default. Results do not depend on it.
    constraints : LabelConstraints, optional
        What candidates must obey beside the limits; label-sets that do not are in no prediction set.
    taxonomy : Taxonomy, optional
        `ByGroup()`, `ByCardinality(edges)`, `ByRarity(training_labels, edges)` or a product of them: errors are bounded
        in every category, not only on average.

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

    calibration_: Calibration

    def __init__(
        self,
        measure: Measure = _DEFAULT_MEASURE,
        min_labels: int = 1,
        max_labels: int | None = None,
        search: str = "exact",
        label_names: Sequence[str] | None = None,
        work_limit: int = WORK_LIMIT,
        n_jobs: int | None = None,
        constraints: LabelConstraints | None = None,
        taxonomy: Taxonomy | None = None,
    ) -> None:
        self.measure = measure
        self.min_labels = min_labels
        self.max_labels = max_labels
        self.search = search
        self.label_names = label_names
        self.work_limit = work_limit
        self.n_jobs = n_jobs
        self.constraints = constraints
        self.taxonomy = taxonomy
        self._check_parameters()

    def __setattr__(self, name: str, value: Any) -> None:
        if name in _PARAMETERS and hasattr(self, "calibration_"):
            raise AttributeError(
                f"A calibrated {type(self).__name__} does not change: make a new one, or use set_params, which drops "
                f"the calibration, to set {name!r}."
            )
        super().__setattr__(name, value)

    def __repr__(self) -> str:
        shown = [repr(self.measure)]
        defaults = {"min_labels": 1, "max_labels": None, "search": "exact", "taxonomy": None}
        shown += [f"{key}={getattr(self, key)!r}" for key, value in defaults.items() if getattr(self, key) != value]
        return f"{type(self).__name__}({', '.join(shown)})"

    def _check_parameters(self) -> None:
        """Check what can be checked before there is data."""
        who = type(self).__name__
        check_measure(self.measure, who=who)
        check_limits(self.min_labels, self.max_labels, who=who)

        def check(name: str, holds: bool, expected: str) -> None:
            if not holds:
                raise invalid(name, who, expected, repr(getattr(self, name)))

        taxonomy, constraints = self.taxonomy, self.constraints
        is_plain = constraints is None and isinstance(self.measure, SeparableMeasure)
        check("search", self.search in SEARCHES, f"one of {sorted(SEARCHES)}")
        check(
            "constraints", constraints is None or isinstance(constraints, LabelConstraints), "LabelConstraints or None"
        )
        check(
            "taxonomy",
            taxonomy is None or isinstance(taxonomy, Taxonomy),
            "ByGroup(), ByCardinality(...), ByRarity(...), a product of them, or None",
        )
        check(
            "search",
            self.search == "exact" or taxonomy is None or not taxonomy.rarity,
            "'exact' with a taxonomy by rarity",
        )
        check(
            "search",
            self.search != "hamming-ball" or is_plain,
            f"'exact' or 'powerset' for {self.measure!r}{'' if constraints is None else ' with constraints'}: the "
            "paper's Hamming ball is for measures that add up label by label, without constraints",
        )
        check_count("work_limit", self.work_limit, who=who, least=1)
        if self.n_jobs is not None:
            check_count("n_jobs", self.n_jobs, who=who, least=1)
        fitted = getattr(self.measure, "n_labels", None)
        n_labels = fitted if self.label_names is None else len(self.label_names)
        names_are_missing = self.label_names is None and constraints is not None and constraints.is_named
        if n_labels is not None and not names_are_missing:
            self._check_candidates(self.label_names, n_labels)

    def _check_candidates(self, names: Sequence[str] | None, n_labels: int, who: str | None = None) -> None:
        """Check limits and constraints with the labels there are: raise if they leave no candidate."""
        own = type(self).__name__
        check_limits(self.min_labels, self.max_labels, who=who or own, n_labels=n_labels)
        if self.constraints is not None:
            self.constraints.check_candidates(names, n_labels, self.min_labels, self.max_labels, who=own)

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters by name, as scikit-learn's estimators do."""
        return {name: getattr(self, name) for name in _PARAMETERS}

    def set_params(self, **parameters: Any) -> ConformalLabelSets:
        """Set parameters by name; a calibration made with other ones is dropped."""
        unknown = set(parameters) - set(_PARAMETERS)
        if unknown:
            raise InvalidInputError(
                f"Parameters of {type(self).__name__} are {sorted(_PARAMETERS)}. Got {sorted(unknown)} instead."
            )
        changed = type(self)(**{**self.get_params(), **parameters})
        self.__dict__.pop("calibration_", None)
        self.__dict__.update(changed.__dict__)
        return self

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "calibration_")

    def calibrate(self, probabilities: Any, labels: Any, groups: Any = None) -> ConformalLabelSets:
        """Score held-out texts with known label-sets; they must not have been used to train the classifier.

        Parameters
        ----------
        probabilities : (n, d) array-like, or what scikit-learn's multi-output classifiers return
            A scipy sparse matrix lists the probabilities that are not 0, `SparseProbabilities` those that differ from
            one small one; here and in all that follows.
        labels : (n, d) 0/1 array-like or sparse matrix, or one collection of label names per text
        groups : (n,) array-like, optional
            The group of each text, if the taxonomy divides texts by groups.

        Returns
        -------
        self
        """
        self._check_parameters()
        names = self.label_names
        if names is None:
            names = names_of_columns(probabilities) or names_of_columns(labels)
        self.calibration_ = self._score(probabilities, labels, groups, names, who="calibrate")
        return self

    conformalize = calibrate

    def _score(
        self, probabilities: Any, labels: Any, groups: Any, names: Sequence[str] | None, *, who: str
    ) -> Calibration:
        """Return the calibration by texts with known label-sets; warn of those that are not candidates."""
        checked = as_any_probabilities(probabilities, who=who)
        n_texts, n_labels = checked.shape
        most = n_labels if self.max_labels is None else min(int(self.max_labels), n_labels)
        fitted = getattr(self.measure, "n_labels", n_labels)
        if fitted != n_labels:
            raise InvalidInputError(
                f"The 'probabilities' parameter of {who} must have {fitted} labels, as {self.measure!r} was fitted "
                f"on. Got {n_labels} instead."
            )
        known_names = as_label_names(names, n_labels, who=who)
        self._check_candidates(known_names, n_labels, who)
        rules = None if self.constraints is None else self.constraints.resolved(known_names, n_labels)
        empty = Calibration(self.measure, np.empty(0), n_labels, int(self.min_labels), most, known_names, rules)
        empty.check_sparse(checked, who=who)
        known = empty.as_labels(labels, checked, who=who)
        blocks = over_rows(lambda rows: totals_of(self.measure, checked[rows], known[rows]), n_texts, self.n_jobs)
        outside = int(np.count_nonzero(~empty.is_candidate(known)))
        if outside:
            warnings.warn(
                f"{outside} of {n_texts} calibration texts have a label-set that is not a candidate (candidates have "
                f"{self.min_labels} to {most} labels{'' if rules is None else ' and obey the constraints'}). They "
                "still count in calibration; such texts can only be errors at prediction.",
                CalibrationWarning,
                stacklevel=3,
            )
        totals, categories = np.concatenate(blocks), None
        divided = as_groups(groups, self.taxonomy, n_texts, who=who)
        if self.taxonomy is not None:
            self.taxonomy.check_labels(n_labels, who=who)
            categories = Categories.of(self.taxonomy, totals, known, divided)
        return dataclasses.replace(empty, totals=totals, categories=categories)

    def add(self, probabilities: Any, labels: Any, groups: Any = None) -> ConformalLabelSets:
        """Return a predictor that is calibrated on more texts, without the old ones; this one stays as it is.

        It is the same, to the last bit, as one that was calibrated on all texts at once. Parameters are those of
        `calibrate`.

        Examples
        --------
        >>> predictor = ConformalLabelSets().calibrate([[0.9, 0.2], [0.1, 0.8]], [[1, 0], [0, 1]])
        >>> predictor.add([[0.6, 0.7]], [[1, 1]]).calibration_.n_texts
        3
        """
        old = self._calibrated("add")
        checked = old.as_probabilities(probabilities, who="add")
        return self._with(Calibration.merged([old, self._score(checked, labels, groups, old.label_names, who="add")]))

    @classmethod
    def merge(cls, predictors: Iterable[ConformalLabelSets]) -> ConformalLabelSets:
        """Return one predictor from several that were calibrated on different texts: shards, or days.

        It is the same, to the last bit, as one that was calibrated on all their texts at once. No text may have been
        given to two of them. They must have the same measure, limits, number and names of labels. Parameters that
        change no answer (search, work_limit, n_jobs) are those of the first.

        Examples
        --------
        >>> monday = ConformalLabelSets().calibrate([[0.9, 0.2], [0.1, 0.8]], [[1, 0], [0, 1]])
        >>> tuesday = ConformalLabelSets().calibrate([[0.6, 0.7]], [[1, 1]])
        >>> ConformalLabelSets.merge([monday, tuesday]).calibration_.n_texts
        3
        """
        parts = list(predictors)
        for part in parts:
            if not isinstance(part, ConformalLabelSets):
                raise InvalidInputError(
                    f"The 'predictors' parameter of merge must hold calibrated predictors. Got {part!r} instead."
                )
        merged = Calibration.merged([part._calibrated("merge") for part in parts])
        return parts[0]._with(merged)

    def _with(self, calibration: Calibration) -> ConformalLabelSets:
        """Return a predictor with the same parameters and another calibration."""
        made = type(self)(**self.get_params())
        made.calibration_ = calibration
        return made

    def _calibrated(self, who: str) -> Calibration:
        """Return the calibration, or raise if there is none yet."""
        check_calibrated(self, "calibration_", who)
        return self.calibration_

    @staticmethod
    def _tie_breaks(smoothing: np.random.Generator | None, n_texts: int, who: str) -> FloatArray | None:
        """Draw one tie-break per text, if smoothed p-values are asked for."""
        if smoothing is None:
            return None
        if not isinstance(smoothing, np.random.Generator):
            raise invalid("smoothing", who, "a numpy random Generator, or None", repr(smoothing))
        return smoothing.random(n_texts)

    def bind(self, probabilities: Any, *, groups: Any = None, who: str = "bind") -> Engine:
        """Check texts and price their labels once, for several questions.

        What is returned can be given to `predict`, `predict_p`, `predict_set` and `totals` in place of probabilities.
        Groups, as of `calibrate`, are those of these texts.

        Examples
        --------
        >>> predictor = ConformalLabelSets().calibrate([[0.9, 0.2], [0.1, 0.8], [0.6, 0.7]], [[1, 0], [0, 1], [1, 1]])
        >>> texts = predictor.bind([[0.7, 0.4], [0.5, 0.2]])
        >>> predictor.predict(texts).label_sets, predictor.predict_set(texts, significance=0.3).sizes().tolist()
        ([frozenset({0}), frozenset({0})], [1, 0])
        """
        return self._engine(probabilities, groups, self.search, who)

    def _engine(self, probabilities: Any, groups: Any, search: str, who: str) -> Engine:
        """Return the engine of some texts, of their categories if there is a taxonomy."""
        calibration = self._calibrated(who)
        engine = engine_for(calibration, probabilities, search, self.work_limit, self.n_jobs, who=who)
        if isinstance(probabilities, Engine) and groups is None:
            return engine
        names = as_groups(groups, self.taxonomy, len(engine), who=who)
        if calibration.categories is None:
            return engine
        return KindsEngine(engine, calibration.categories, calibration.categories.codes_of(names, len(engine), who=who))

    def totals(self, probabilities: Any, labels: Any = None) -> FloatArray:
        """Return how strange each text is, (n,): the total of its given label-set, or of its most plausible one.

        Totals rank texts as nonconformity scores do. Labels come as in `calibrate`.
        """
        search = (self.work_limit, self.n_jobs)
        engine = engine_for(self._calibrated("totals"), probabilities, "exact", *search, who="totals")
        if labels is None:
            return np.ascontiguousarray(engine.forced()[1][:, 0])
        return engine.totals(engine.as_labels(labels, who="totals"))

    def predict(
        self, probabilities: Any, *, smoothing: np.random.Generator | None = None, groups: Any = None
    ) -> ForcedPredictions:
        """Return the label-set with the highest p-value for each text, with confidence and credibility.

        Of label-sets with equal p-values the one with the lowest score is taken, of equal scores the
        lexicographically first 0/1 row.

        Parameters
        ----------
        probabilities : (n, d) array-like
        smoothing : numpy.random.Generator, optional
            Use smoothed p-values, with one tie-break per text drawn from it; here and below.
        groups : (n,) array-like, optional
            The group of each text, if the taxonomy divides texts by groups; here and below.
        """
        engine = self._engine(probabilities, groups, "exact", "predict")
        return ForcedPredictions.of(engine, self._tie_breaks(smoothing, len(engine), "predict"))

    def predict_p(
        self, probabilities: Any, labels: Any, *, smoothing: np.random.Generator | None = None, groups: Any = None
    ) -> FloatArray:
        """Return the p-value of one given label-set per text, (n,); labels come as in `calibrate`.

        Smoothed p-values are exactly uniform for true label-sets.
        """
        engine = self._engine(probabilities, groups, "exact", "predict_p")
        ties = self._tie_breaks(smoothing, len(engine), "predict_p")
        return engine.p_values_of(engine.as_labels(labels, who="predict_p"), ties)

    def predict_set(
        self,
        probabilities: Any,
        *,
        significance: Any = None,
        confidence_level: Any = None,
        smoothing: np.random.Generator | None = None,
        groups: Any = None,
        assurance: Any = None,
    ) -> PredictionSets:
        """Return, for each text, the set of label-sets whose p-value is over the significance.

        Parameters
        ----------
        probabilities : (n, d) array-like
        significance : float, str, Decimal or Fraction in (0, 1), or one per text
            Share of texts whose true label-set may be missed. Taken as the decimal number that was typed.
        confidence_level : the same
            1 - significance; exactly one of the two must be given.
        assurance : float, str, Decimal or Fraction in (0, 1), optional
            Probability, over calibrations, that the share of missed label-sets is at most the significance. Without it,
            that share is at most the significance on average over calibrations. Sets are larger with it: 999 texts at
            0.05 are cut as at 0.039.
        """
        self._calibrated("predict_set")
        engine = self.bind(probabilities, groups=groups, who="predict_set")
        levels, which = as_levels(significance, confidence_level, len(engine), who="predict_set")
        assured = None if assurance is None else as_share(assurance, "assurance", who="predict_set")
        if assured is not None and smoothing is not None:
            raise InvalidInputError("predict_set takes 'assurance' or 'smoothing', not both: give one of them.")
        ties = self._tie_breaks(smoothing, len(engine), "predict_set")
        _warn_of_few(engine, levels[0], assured)
        if isinstance(engine, KindsEngine):
            thresholds = engine.categories.thresholds(levels, which, engine.codes, assured, ties)
        else:
            thresholds = engine.calibration.thresholds(levels, which, assured, ties)
        return PredictionSets(engine, thresholds, ties)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the calibrated predictor to one file; see `surelabel.predictor_file` for what is in it."""
        data = self._to_bytes()
        with atomic_file(path) as temporary:
            temporary.write_bytes(data)

    def _to_bytes(self) -> bytes:
        """Return what `save` writes."""
        return predictor_to_bytes(self.get_params(), self._calibrated("save"))

    @classmethod
    def load(cls, path: str | os.PathLike[str], *, measure: Measure | None = None) -> ConformalLabelSets:
        """Read a calibrated predictor from a file made by `save`; no code from the file is run.

        Give the `measure` if the file was made with one of your own, which no file can bring.
        """
        return cls._from_bytes(Path(path).read_bytes(), path, measure)

    @classmethod
    def _from_bytes(cls, data: bytes, path: str | os.PathLike[str], measure: Measure | None) -> ConformalLabelSets:
        """Return the predictor that `_to_bytes` wrote; `path` is where it was, for messages."""
        parameters, calibration = predictor_from_bytes(data, Path(path), measure)
        try:
            predictor = cls(**parameters)
        except (InvalidInputError, SearchLimitError) as error:
            raise ArtifactError(f"{os.fspath(path)} is damaged: {error}. Save the predictor again.") from error
        predictor.calibration_ = calibration
        return predictor


def _warn_of_few(engine: Engine, level: Fraction, assurance: Fraction | None) -> None:
    """Warn if calibration texts, or those of a category, are too few to rule anything out at a level."""
    fewest = math.ceil(1 / level) - 1 if assurance is None else fewest_assured(level, assurance)
    if isinstance(engine, KindsEngine):
        engine.warn_of_small(level, fewest)
        return
    n_texts, words = engine.calibration.n_texts, None
    if assurance is not None and n_texts < fewest:
        words = (
            f"{n_texts} calibration texts cannot give an assurance of {float(assurance):g} at significance "
            f"{float(level):g}: {fewest} are needed. Prediction sets hold all candidates."
        )
    elif level * (n_texts + 1) <= 1:
        words = (
            f"{n_texts} calibration texts are too few for significance {float(level):g}: the smallest p-value there "
            f"can be is {1 / (n_texts + 1):g}. Prediction sets hold all or nearly all candidates."
        )
    if words is not None:
        warnings.warn(words, CalibrationWarning, stacklevel=3)
