"""Texts that drift, and labels that arrive later: the level, or the calibration, follows the errors that were seen.

A fixed calibration keeps its promise for texts that are exchangeable with it. Texts of later months are not. Here every
outcome that becomes known moves what the next texts are compared with:

- `aci` (Gibbs & Candès, *Adaptive conformal inference under distribution shift*, 2021): the level of the next text is
  the last one plus rate * (significance - error). Whatever the texts, the share of errors among T settled ones
  differs from the significance by at most (1 + rate) / (rate * T), as long as the level stays within the limits below.
- `dtaci` (Gibbs & Candès, *Conformal inference for online prediction with arbitrary distribution shifts*, 2024): the
  weighted mean of several such levels with different rates; those that did well recently weigh more.
- `window`: the last `window` scores are the calibration.
- `nexcp` (Barber et al., *Conformal prediction beyond exchangeability*, 2023): all scores are, each with the weight
  decay^age: p(Y) = (sum of the weights of scores at least as large + 1) / (sum of all weights + 1).

A stated rule keeps sets of use: levels stay within 1 / (n + 1) and n / (n + 1). So a set goes no further than the
largest score known and never holds everything, and not all sets are empty. A classifier that is right more often than
asked for still has empty sets, or it could not make as many errors. With `keep_best` the best guess is in every set,
and errors may stay below the significance.
"""

from __future__ import annotations

import collections
import dataclasses
import functools
import os
from collections.abc import Iterable, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any, Literal

import numpy as np

from surelabel._core.validation import BoolArray, FloatArray, as_share
from surelabel.calibration import Calibration, totals_of
from surelabel.conformal import ConformalLabelSets
from surelabel.engines import engine_for
from surelabel.exceptions import ArtifactError, InvalidInputError
from surelabel.guarantees.files import predictor_from_array, predictor_to_array, read_state, write_state
from surelabel.guarantees.rates import RATES, Levels
from surelabel.labels.sparse import is_sparse
from surelabel.measures import Measure
from surelabel.sets.prediction_sets import PredictionSets

__all__ = ["METHODS", "OnlineConformal", "OutcomeError", "WeightedCalibration"]

Method = Literal["aci", "dtaci", "window", "nexcp"]
METHODS: tuple[Method, ...] = ("aci", "dtaci", "window", "nexcp")
"""How a level or a calibration follows what was seen."""

_FORMAT = "surelabel-online"
_VERSION = 1
_RATE, _DECAY = 0.01, 0.998
REMEMBERED = 100_000
"""Settled ids that are remembered, so that a second outcome is noticed."""
_PARAMETERS = ("rate", "window", "decay", "max_pending", "keep_best")
ARRAYS = ("scores", "levels", "weights", "pending", "thresholds")
"""Arrays of a state."""

Reason = Literal["unknown", "settled", "contradicts"]


class OutcomeError(InvalidInputError):
    """An outcome cannot be taken: its text is unknown, or settled with the same or with another label-set.

    Attributes
    ----------
    identity : str
        The id of the text.
    reason : {"unknown", "settled", "contradicts"}
    """

    def __init__(self, message: str, identity: str, reason: Reason) -> None:
        super().__init__(message)
        self.identity = identity
        self.reason: Reason = reason


@dataclasses.dataclass(frozen=True, eq=False)
class WeightedCalibration(Calibration):
    """A calibration whose texts have weights; p(Y) = (weight of texts at least as strange + 1) / (all weight + 1)."""

    weights: FloatArray = dataclasses.field(default_factory=lambda: np.empty(0))

    def __post_init__(self) -> None:
        order = np.argsort(self.totals, kind="stable")
        object.__setattr__(self, "weights", self.weights[order])
        super().__post_init__()

    @functools.cached_property
    def _tails(self) -> FloatArray:
        """Weight of the texts from each one on, and 0."""
        return np.append(np.cumsum(self.weights[::-1])[::-1], 0.0)

    def threshold(self, level: Fraction, assurance: Fraction | None = None) -> float:
        """Return the largest total whose p-value is over the level; inf if every total's is."""
        p_values = self.p_values(self.totals)
        above = np.flatnonzero(p_values > float(level))
        if 1.0 / (self._all_weight + 1.0) > float(level):
            return float("inf")
        return float(self.totals[above[-1]]) if len(above) else float("-inf")

    @property
    def _all_weight(self) -> float:
        """Sum of all weights."""
        return float(self._tails[0])

    def p_values(self, totals: Any, tie_breaks: Any = None) -> FloatArray:
        """Return weighted p-values of totals of any shape."""
        if tie_breaks is not None:
            raise InvalidInputError("Weighted p-values cannot be smoothed; leave 'smoothing' out.")
        places = np.searchsorted(self.totals, totals, side="left")
        return np.asarray((self._tails[places] + 1.0) / (self._all_weight + 1.0))


@dataclasses.dataclass(frozen=True, eq=False)
class _Pending:
    """A text that waits for its label-set: its probabilities, and what its set was cut at."""

    probabilities: FloatArray
    threshold: float


class OnlineConformal:
    """Prediction sets for a stream of texts whose labels become known later, some never, in any order.

    Predictions and updates must come one after the other: several threads need a lock.

    Parameters
    ----------
    predictor : ConformalLabelSets
        Calibrated, without a taxonomy.
    significance : float, str, Decimal or Fraction in (0, 1)
        Share of errors to keep.
    method : {"aci", "dtaci", "window", "nexcp"}
        How it is kept.
    rate : float
        Of "aci": how far one error moves the level.
    window : int, optional
        Of "window": how many scores are compared with; as many as there are calibration texts by default.
    decay : float
        Of "nexcp": the weight of a score falls by this factor with every score that comes after it.
    max_pending : int
        Texts that may wait for their labels; if there are more, the oldest are forgotten.
    keep_best : bool
        Whether the best guess is in every set, so that none is empty.

    Attributes
    ----------
    error_rate_ : float
        Share of settled texts whose true label-set was outside its set; nan before the first.
    level_ : float
        The significance that the next text is cut at.
    n_settled_, n_errors_, n_pending_ : int
    last_ids_ : tuple of str
        Ids of the texts of the last `predict_set`.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> truth = rng.random((1200, 3))
    >>> labels = rng.random((1200, 3)) < truth
    >>> predictor = ConformalLabelSets(min_labels=0).calibrate(truth[:200], labels[:200])
    >>> online = OnlineConformal(predictor, significance=0.1)
    >>> drifted = np.clip(truth[200:] * 1.4 - 0.2, 0, 1)  # the classifier has become too sure
    >>> for row, known in zip(drifted, labels[200:]):
    ...     sets = online.predict_set(row[None])
    ...     _ = online.update(known[None])
    >>> plain = predictor.predict_p(drifted, labels[200:]) <= 0.1
    >>> round(float(plain.mean()), 2), round(online.error_rate_, 2)
    (0.18, 0.11)
    """

    def __init__(
        self,
        predictor: ConformalLabelSets,
        significance: Any = 0.05,
        method: Method = "aci",
        *,
        rate: float = _RATE,
        window: int | None = None,
        decay: float = _DECAY,
        max_pending: int = 100_000,
        keep_best: bool = False,
    ) -> None:
        who = type(self).__name__
        if not isinstance(predictor, ConformalLabelSets) or predictor.taxonomy is not None:
            raise InvalidInputError(
                f"The 'predictor' parameter of {who} must be a calibrated ConformalLabelSets without a taxonomy. Got "
                f"{predictor!r} instead."
            )
        calibration = predictor._calibrated(who)
        self._significance = as_share(significance, "significance", who=who)
        if method not in METHODS:
            raise InvalidInputError(
                f"The 'method' parameter of {who} must be one of {METHODS}. Got {method!r} instead."
            )
        for name, value in (("rate", rate), ("decay", decay)):
            if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0.0 < value < 1.0:
                raise InvalidInputError(f"The {name!r} parameter of {who} must be in (0, 1). Got {value!r} instead.")
        width = calibration.n_texts if window is None else window
        for name, count in (("window", width), ("max_pending", max_pending)):
            if isinstance(count, bool) or not isinstance(count, (int, np.integer)) or count < 1:
                raise InvalidInputError(
                    f"The {name!r} parameter of {who} must be a whole number, 1 or more. Got {count!r} instead."
                )
        self.predictor = predictor
        self.method: Method = method
        self.rate, self.window, self.decay, self.max_pending = float(rate), int(width), float(decay), int(max_pending)
        self.keep_best = bool(keep_best)
        self.n_settled_ = self.n_errors_ = 0
        self.last_ids_: tuple[str, ...] = ()
        self._levels = Levels(float(self._significance), (self.rate,) if method == "aci" else RATES)
        # Scores in the order in which they came. Those of calibration are kept sorted and have no order of their own:
        # a window or weights must not prefer the large ones.
        self._scores: list[float] = np.random.default_rng(0).permutation(calibration.totals).tolist()
        self._pending: dict[str, _Pending] = {}
        self._settled: collections.OrderedDict[str, tuple[int, ...]] = collections.OrderedDict()
        self._next_id = 0
        self._current: Calibration | None = None

    @property
    def significance(self) -> float:
        """Share of errors to keep."""
        return float(self._significance)

    @property
    def n_pending_(self) -> int:
        """Texts that wait for their labels."""
        return len(self._pending)

    @property
    def error_rate_(self) -> float:
        """Share of settled texts whose true label-set was outside its set."""
        return self.n_errors_ / self.n_settled_ if self.n_settled_ else float("nan")

    @property
    def level_(self) -> float:
        """The significance that the next text is cut at."""
        if self.method in ("window", "nexcp"):
            return self.significance
        least = 1.0 / (self.predictor.calibration_.n_texts + 1)
        return min(max(self._levels.level, least), 1.0 - least)

    def __repr__(self) -> str:
        return (
            f"<OnlineConformal {self.method} at {self.significance:g}: {self.n_settled_} texts settled, "
            f"{self.n_errors_} errors, {self.n_pending_} pending>"
        )

    def _calibration(self) -> Calibration:
        """Return what the next texts are compared with."""
        if self._current is None:
            base = self.predictor.calibration_
            if self.method == "window":
                base = dataclasses.replace(base, totals=np.array(self._scores[-self.window :]))
            elif self.method == "nexcp":
                fields = {field.name: getattr(base, field.name) for field in dataclasses.fields(base)}
                ages = np.arange(len(self._scores), 0, -1.0)
                fields["totals"] = np.array(self._scores)
                base = WeightedCalibration(**fields, weights=self.decay**ages)
            self._current = base
        return self._current

    def predict_set(self, probabilities: Any, ids: Iterable[Any] | None = None) -> PredictionSets:
        """Return the sets of plausible label-sets of new texts, all cut at the present level.

        Parameters
        ----------
        probabilities : (n, d) array-like, dense
        ids : n identifiers, optional
            By which `update` will name the texts; numbers in the order of the stream by default (`last_ids_`).
        """
        if is_sparse(probabilities):
            raise InvalidInputError(
                "predict_set of OnlineConformal takes dense probabilities. Got sparse ones instead."
            )
        calibration = self._calibration()
        predictor = self.predictor
        engine = engine_for(
            calibration, probabilities, predictor.search, predictor.work_limit, predictor.n_jobs, who="predict_set"
        )
        names = self._new_ids(ids, len(engine))
        level = self._significance if self.method in ("window", "nexcp") else Fraction(self.level_)
        largest = float(calibration.totals[-1])
        # Sets go no further than the largest score.
        thresholds = np.full(len(engine), min(calibration.threshold(level), largest))
        if self.keep_best:
            thresholds = np.maximum(thresholds, engine.forced()[1][:, 0])
        rows = np.asarray(engine.probabilities)
        for name, row, threshold in zip(names, rows, thresholds.tolist(), strict=True):
            self._pending[name] = _Pending(row.copy(), threshold)
        for name in list(self._pending)[: max(0, len(self._pending) - self.max_pending)]:
            del self._pending[name]
        self.last_ids_ = names
        return PredictionSets(engine, thresholds)

    def _new_ids(self, ids: Iterable[Any] | None, n_texts: int) -> tuple[str, ...]:
        """Return ids of new texts, which must not be known yet."""
        if ids is None:
            names = tuple(str(self._next_id + i) for i in range(n_texts))
            self._next_id += n_texts
        else:
            names = as_ids(ids, n_texts, "predict_set")
        for name in names:
            if name in self._pending or name in self._settled:
                raise InvalidInputError(
                    f"The 'ids' parameter of predict_set must be new. Got {name!r}, which "
                    f"{'waits for its labels' if name in self._pending else 'is settled'}."
                )
        return names

    def update(self, labels: Any, ids: Iterable[Any] | None = None) -> BoolArray:
        """Take true label-sets that have become known; return which of them were missed, (n,).

        Nothing changes if one of them cannot be taken.

        Parameters
        ----------
        labels : (n, d) 0/1 array-like or sparse matrix, or one collection of label names per text
        ids : n identifiers, optional
            Of the texts; the n that have waited longest by default.
        """
        n_texts = labels.shape[0] if hasattr(labels, "shape") else len(labels)
        if ids is None:
            names = tuple(self._pending)[:n_texts]
            if len(names) < n_texts:
                raise InvalidInputError(
                    f"update got the labels of {n_texts} texts, and {len(names)} texts wait for theirs. Call "
                    "predict_set first, or name the texts by 'ids'."
                )
        else:
            names = as_ids(ids, n_texts, "update")
        calibration = self.predictor.calibration_
        unknown = [name for name in names if name not in self._pending]
        rows = np.array([self._pending[name].probabilities for name in names if name in self._pending])
        template = rows if len(rows) == n_texts else np.empty((n_texts, calibration.n_labels))
        known = calibration.as_labels(labels, template, who="update")
        outcomes = [tuple(np.flatnonzero(row).tolist()) for row in known]
        for name in unknown:
            self._refuse(name, outcomes[names.index(name)])
        totals = totals_of(calibration.measure, rows, known)
        candidates = calibration.is_candidate(known)
        missed = np.empty(n_texts, dtype=np.bool_)
        p_values = np.where(candidates, calibration.p_values(totals), 0.0)
        for i, name in enumerate(names):
            missed[i] = not candidates[i] or totals[i] > self._pending.pop(name).threshold
            self._levels.update(float(p_values[i]), bool(missed[i]))
            self._settled[name] = outcomes[i]
        self._scores += totals.tolist()
        self._forget_old()
        self.n_settled_ += n_texts
        self.n_errors_ += int(missed.sum())
        self._current = None
        return missed

    def _forget_old(self) -> None:
        """Forget scores without weight, and the ids of texts settled long ago."""
        kept = self.window if self.method == "window" else int(np.ceil(np.log(1e-12) / np.log(self.decay)))
        self._scores = self._scores[-max(kept, 1) :]
        while len(self._settled) > REMEMBERED:
            self._settled.popitem(last=False)

    def _refuse(self, name: str, outcome: tuple[int, ...]) -> None:
        """Raise for an outcome of a text that does not wait for one."""
        if name not in self._settled:
            raise OutcomeError(
                f"The 'ids' parameter of update must name texts that wait for their labels. Got {name!r}, which no "
                "prediction was made for, or which was forgotten.",
                name,
                "unknown",
            )
        how = (
            "with the same label-set"
            if self._settled[name] == outcome
            else "and this label-set contradicts its outcome"
        )
        reason: Reason = "settled" if self._settled[name] == outcome else "contradicts"
        raise OutcomeError(f"The text {name!r} is settled already, {how}. Nothing was changed.", name, reason)

    def drop(self, ids: Iterable[Any]) -> None:
        """Forget texts whose labels will never come."""
        for name in map(str, ids):
            if name not in self._pending:
                raise InvalidInputError(f"The 'ids' parameter of drop must name pending texts. Got {name!r} instead.")
            del self._pending[name]

    def is_pending(self, name: str) -> bool:
        """Whether a text of this id waits for its label-set."""
        return name in self._pending

    def probabilities_of(self, name: str) -> FloatArray:
        """Return the probabilities of a text that waits, (d,)."""
        return self._pending[name].probabilities

    def current(self) -> ConformalLabelSets:
        """Return a predictor with what the next texts are compared with; cut it at `level_`."""
        return self.predictor._with(self._calibration())

    def to_state(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return the state without the predictor: plain values, and arrays by name."""
        header = {
            "significance": str(self._significance),
            "method": self.method,
            "parameters": {name: getattr(self, name) for name in _PARAMETERS},
            "counts": [self.n_settled_, self.n_errors_, self._next_id],
            "pending": list(self._pending),
            "settled": [[name, list(outcome)] for name, outcome in self._settled.items()],
        }
        n_labels = self.predictor.calibration_.n_labels
        arrays = {
            "scores": np.array(self._scores),
            "levels": self._levels.levels,
            "weights": self._levels.weights,
            "pending": np.array([text.probabilities for text in self._pending.values()]).reshape(-1, n_labels),
            "thresholds": np.array([text.threshold for text in self._pending.values()], dtype=np.float64),
        }
        return header, arrays

    @classmethod
    def from_state(
        cls, predictor: ConformalLabelSets, header: dict[str, Any], arrays: dict[str, Any]
    ) -> OnlineConformal:
        """Return the inverse of `to_state`; raise ValueError, KeyError or TypeError for anything else."""
        for name in ARRAYS:
            if arrays[name].dtype != np.float64 or not np.isfinite(arrays[name]).all():
                raise ValueError(f"its {name} are not numbers")
        made = cls(predictor, Fraction(header["significance"]), header["method"], **header["parameters"])
        made.n_settled_, made.n_errors_, made._next_id = (int(count) for count in header["counts"])
        made._levels.restore(arrays["levels"], arrays["weights"])
        made._scores = arrays["scores"].tolist()
        pending = zip(header["pending"], arrays["pending"], arrays["thresholds"].tolist(), strict=True)
        made._pending = {str(name): _Pending(row, threshold) for name, row, threshold in pending}
        made._settled.update((str(name), tuple(map(int, outcome))) for name, outcome in header["settled"])
        if not made._scores or arrays["pending"].shape[1:] != (predictor.calibration_.n_labels,):
            raise ValueError("its scores or texts are not those of its predictor")
        return made

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write state and predictor to one file, whole or not at all."""
        header, arrays = self.to_state()
        write_state(path, _FORMAT, _VERSION, header, {"predictor": predictor_to_array(self.predictor), **arrays})

    @classmethod
    def load(cls, path: str | os.PathLike[str], *, measure: Measure | None = None) -> OnlineConformal:
        """Read a file made by `save`, and continue as if nothing had happened; no code from the file is run."""
        file = Path(path)
        header, arrays = read_state(file, _FORMAT, _VERSION, ("predictor", *ARRAYS))
        predictor = predictor_from_array(arrays["predictor"], file, measure)
        try:
            return cls.from_state(predictor, header, arrays)
        except (KeyError, TypeError, ValueError, ArithmeticError) as error:
            raise ArtifactError(f"{file} is damaged: {error}. Save the stream's state again.") from error


def as_ids(ids: Iterable[Any], n_texts: int, who: str) -> tuple[str, ...]:
    """Return identifiers as different strings, one per text."""
    names: Sequence[str] = tuple(str(name) for name in ids)
    if len(names) != n_texts or len(set(names)) != n_texts:
        raise InvalidInputError(
            f"The 'ids' parameter of {who} must hold {n_texts} different identifiers, one per text. Got {len(names)}, "
            f"of which {len(set(names))} differ."
        )
    return tuple(names)
