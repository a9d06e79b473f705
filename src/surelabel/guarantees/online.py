"""Texts that drift, and labels that arrive later: the level, or the calibration, follows the errors that were seen.

A fixed calibration keeps its promise for texts that are exchangeable with it. Texts of later months are not. Here every
outcome that becomes known moves what the next texts are compared with:

- `aci` (Gibbs & Candès, *Adaptive conformal inference under distribution shift*, 2021): the level of the next text is
  the last one plus rate * (significance - error). Whatever the texts, the share of errors among T settled ones
  differs from the significance by at most (1 + rate) / (rate * T), as long as the level stays within the limits below.
- `dtaci` (Gibbs & Candès, *Conformal inference for online prediction with arbitrary distribution shifts*, 2024): the
  weighted mean of several such levels with different rates; those that did well recently weigh more.
- `window`: the last `window` scores are the calibration.
- `nexcp` (Barber et al., *Conformal prediction beyond exchangeability*, 2023): all scores count, each with the weight
  decay^age: p(Y) = (sum of the weights of scores at least as large + 1) / (sum of all weights + 1).

With a taxonomy every category is a stream of its own: an outcome moves only the level, window or weights of the
category of its text's group and of its true label-set. So each statement above holds in every category, over the texts
that were settled there. The other kinds of label-sets of the text do not move: nothing was learnt about them.

One rule keeps sets useful: levels stay within 1 / (n + 1) and n / (n + 1). So a set goes no further than the
largest score known and never holds everything, and not all sets are empty. A classifier that is right more often than
asked for still has empty sets, or it could not make as many errors. With `keep_best` the best guess is in every set,
and errors may stay below the significance. A category that has few outcomes stays near its calibration; one without
calibration texts has nothing to compare with, so all its candidates stay plausible until it has outcomes and follows
them by "window" or "nexcp".
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterable
from fractions import Fraction
from typing import Any

import numpy as np

from surelabel._core.npz_file import NpzFormat
from surelabel._core.validation import BoolArray, FloatArray, as_share, check_count, invalid
from surelabel.calibration import totals_of
from surelabel.conformal import ConformalLabelSets
from surelabel.engines.base import Engine
from surelabel.exceptions import InvalidInputError
from surelabel.guarantees.files import damaged, predictor_from_array, predictor_to_array
from surelabel.guarantees.streams import ALL_TEXTS, METHODS, Method, Streams
from surelabel.guarantees.waiting import Waiting, as_ids
from surelabel.labels.sparse import is_sparse
from surelabel.measures import Measure
from surelabel.sets.prediction_sets import PredictionSets
from surelabel.taxonomies.categories import as_groups
from surelabel.taxonomies.engine import KindsEngine

ARRAYS = ("scores", "levels", "weights", "pending", "thresholds")
"""Arrays of a state."""
_FORMAT = NpzFormat("surelabel-online", 2, "a file", ("predictor", *ARRAYS))
_PARAMETERS = ("rate", "window", "decay", "max_pending", "keep_best")


@dataclasses.dataclass(frozen=True, eq=False)
class _Pending:
    """A text that waits for its label-set: its probabilities and group, and what its set was cut at, for each kind."""

    probabilities: FloatArray
    thresholds: list[float]
    group: str | None


class OnlineConformal(Waiting[_Pending]):
    """Prediction sets for a stream of texts whose labels become known later, some never, in any order.

    Predictions and updates must come one after the other: several threads need a lock.

    Parameters
    ----------
    predictor : ConformalLabelSets
        Calibrated; with a taxonomy, levels follow the errors of each category.
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
        The significance that the next text is cut at; with a taxonomy the one that was asked for, see `levels_`.
    levels_, error_rates_ : dict of str to float
        Of each category, in words, that has calibration texts or outcomes.
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
        rate: float = 0.01,
        window: int | None = None,
        decay: float = 0.998,
        max_pending: int = 100_000,
        keep_best: bool = False,
    ) -> None:
        who = type(self).__name__
        if not isinstance(predictor, ConformalLabelSets):
            raise invalid("predictor", who, "a calibrated ConformalLabelSets", repr(predictor))
        calibration = predictor._calibrated(who)
        self._significance = as_share(significance, "significance", who=who)
        if method not in METHODS:
            raise invalid("method", who, f"one of {METHODS}", repr(method))
        for name, value in (("rate", rate), ("decay", decay)):
            if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0.0 < value < 1.0:
                raise invalid(name, who, "in (0, 1)", repr(value))
        width = calibration.n_texts if window is None else window
        for name, count in (("window", width), ("max_pending", max_pending)):
            check_count(name, count, who=who, least=1)
        super().__init__(predictor, int(max_pending))
        self.method: Method = method
        self.rate, self.window, self.decay = float(rate), int(width), float(decay)
        self.keep_best = bool(keep_best)
        self.n_errors_ = 0
        self.last_ids_: tuple[str, ...] = ()
        self._streams = Streams(
            calibration, self._significance, method, rate=self.rate, window=self.window, decay=self.decay
        )
        self._next_id = 0

    @property
    def significance(self) -> float:
        """Share of errors to keep."""
        return float(self._significance)

    @property
    def exact_significance(self) -> Fraction:
        """The same as the decimal number that was typed."""
        return self._significance

    @property
    def error_rate_(self) -> float:
        """Share of settled texts whose true label-set was outside its set."""
        return self.n_errors_ / self.n_settled_ if self.n_settled_ else float("nan")

    @property
    def level_(self) -> float:
        """The significance that the next text is cut at."""
        return self.significance if self.predictor.taxonomy is not None else self._streams.level(ALL_TEXTS)

    @property
    def levels_(self) -> dict[str, float]:
        """The significance that each category is cut at."""
        return {name: self._streams.level(key) for name, key, _ in self._streams.named()}

    @property
    def error_rates_(self) -> dict[str, float]:
        """Share of the settled texts of each category that were missed."""
        return {name: one.n_errors / one.n_settled for name, _, one in self._streams.named() if one.n_settled}

    def __repr__(self) -> str:
        return (
            f"<OnlineConformal {self.method} at {self.significance:g}: {self.n_settled_} texts settled, "
            f"{self.n_errors_} errors, {self.n_pending_} pending>"
        )

    def predict_set(self, probabilities: Any, ids: Iterable[Any] | None = None, groups: Any = None) -> PredictionSets:
        """Return the sets of plausible label-sets of new texts, all cut at the present level.

        Parameters
        ----------
        probabilities : (n, d) array-like, dense
        ids : n identifiers, optional
            By which `update` will name the texts; numbers in the order of the stream by default (`last_ids_`).
        groups : (n,) array-like, optional
            The group of each text, if the taxonomy divides texts by groups.
        """
        if is_sparse(probabilities):
            raise InvalidInputError(
                "predict_set of OnlineConformal takes dense probabilities. Got sparse ones instead."
            )
        engine = self.current().bind(probabilities, groups=groups, who="predict_set")
        known_groups = as_groups(groups, self.predictor.taxonomy, len(engine), who="predict_set")
        if ids is None:
            ids = range(self._next_id, self._next_id + len(engine))
            self._next_id += len(engine)
        self.last_ids_ = self.check_new(ids, len(engine))
        thresholds = self._thresholds(engine)
        rows, cuts = map(np.copy, np.asarray(engine.probabilities)), thresholds.reshape(len(engine), -1).tolist()
        texts = map(_Pending, rows, cuts, known_groups or [None] * len(engine))
        self._wait(dict(zip(self.last_ids_, texts, strict=True)))
        return PredictionSets(engine, thresholds)

    def _thresholds(self, engine: Engine) -> FloatArray:
        """Return what texts are cut at, (n,), or (n, n_kinds) with a taxonomy."""
        every = np.arange(len(engine))
        is_divided = isinstance(engine, KindsEngine)
        if isinstance(engine, KindsEngine):
            thresholds = engine.categories.thresholds([self._significance], np.zeros_like(every), engine.codes)
        else:
            thresholds = np.full(len(engine), self._streams.cut(ALL_TEXTS))
        if self.keep_best:
            labels, totals = engine.forced()
            place = (every, self._streams.kinds_of(labels)) if is_divided else every
            thresholds[place] = np.maximum(thresholds[place], totals[:, 0])
        return thresholds

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
            names = as_ids(ids, n_texts)
        calibration = self.predictor.calibration_
        truth, outcomes = self._outcomes(names, labels, who="update")
        texts = [self._pending.pop(name) for name in names]
        totals = totals_of(calibration.measure, np.array([text.probabilities for text in texts]), truth)
        kinds = self._streams.kinds_of(truth).tolist()
        cuts = np.array([text.thresholds[kind] for text, kind in zip(texts, kinds, strict=True)])
        missed = ~calibration.is_candidate(truth) | (totals > cuts)
        self._streams.update([text.group for text in texts], truth, totals, missed)
        self._settle(outcomes)
        self.n_errors_ += int(missed.sum())
        return missed

    def drop(self, ids: Iterable[Any]) -> None:
        """Forget texts whose labels will never come."""
        for name in map(str, ids):
            if name not in self._pending:
                raise invalid("ids", "drop", "ids of pending texts", repr(name))
            del self._pending[name]

    def pending(self, name: str) -> tuple[FloatArray, str | None]:
        """Return the probabilities of a text that waits, (d,), and its group, None if texts have none."""
        return self._pending[name].probabilities, self._pending[name].group

    def current(self) -> ConformalLabelSets:
        """Return a predictor with what the next texts are compared with; cut it at `level_`."""
        return self.predictor._with(self._streams.calibration())

    def to_state(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return the state without the predictor: plain values, and arrays by name."""
        header = {
            "significance": str(self._significance),
            "method": self.method,
            "parameters": {name: getattr(self, name) for name in _PARAMETERS},
            "counts": [self.n_settled_, self.n_errors_, self._next_id],
            "pending": list(self._pending),
            "settled": self._settled_to_json(),
            "groups": [text.group for text in self._pending.values()],
        }
        header["streams"], arrays = self._streams.to_state()
        n_labels = self.predictor.calibration_.n_labels
        arrays |= {
            "pending": np.array([text.probabilities for text in self._pending.values()]).reshape(-1, n_labels),
            "thresholds": np.array([text.thresholds for text in self._pending.values()], dtype=np.float64),
        }
        return header, arrays

    @classmethod
    def from_state(
        cls, predictor: ConformalLabelSets, header: dict[str, Any], arrays: dict[str, Any]
    ) -> OnlineConformal:
        """Return the inverse of `to_state`; raise ValueError, KeyError or TypeError for anything else."""
        for name in ARRAYS:
            values = arrays[name]
            may_be_infinite = name == "thresholds"
            if values.dtype != np.float64 or not (np.isfinite(values) | may_be_infinite & (values == np.inf)).all():
                raise ValueError(f"its {name} are not numbers")
        made = cls(predictor, Fraction(header["significance"]), header["method"], **header["parameters"])
        made.n_settled_, made.n_errors_, made._next_id = (int(count) for count in header["counts"])
        taxonomy, n_pending = predictor.taxonomy, len(header["pending"])
        cuts = arrays["thresholds"].reshape(n_pending, 1 if taxonomy is None else taxonomy.n_kinds).tolist()
        pending = zip(header["pending"], arrays["pending"], cuts, header["groups"], strict=True)
        made._pending = {
            str(name): _Pending(row, cut, None if group is None else str(group)) for name, row, cut, group in pending
        }
        made._settled_from_json(header["settled"])
        made._streams.restore(header["streams"], arrays)
        if arrays["pending"].shape[1:] != (predictor.calibration_.n_labels,):
            raise ValueError("its texts are not those of its predictor")
        return made

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write state and predictor to one file, whole or not at all."""
        header, arrays = self.to_state()
        _FORMAT.write(path, header, {"predictor": predictor_to_array(self.predictor), **arrays})

    @classmethod
    def load(cls, path: str | os.PathLike[str], *, measure: Measure | None = None) -> OnlineConformal:
        """Read a file made by `save`, and continue where it stopped; no code from the file is run."""
        header, arrays = _FORMAT.read(path)
        predictor = predictor_from_array(arrays["predictor"], path, measure)
        with damaged(path, "Save the stream's state again."):
            return cls.from_state(predictor, header, arrays)
