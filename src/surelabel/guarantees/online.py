"""Texts that drift, and labels that arrive later: the level follows the errors that were made.

A fixed calibration keeps its promise for texts that are exchangeable with it. Texts of later months are not. So every
outcome moves the level of the next text (adaptive conformal inference, Gibbs & Candès, 2021):

    level <- level + rate * (significance - error)

Whatever the texts, the share of errors among T texts with known outcomes differs from the significance by at most
(1 + rate) / (rate * T), as long as the smallest level makes no errors and the largest makes only errors.

Sets are cut at levels within 1 / (n + 1) and n / (n + 1). So a set goes no further than the largest calibration score
and never holds everything, and not all sets are empty.
"""

from __future__ import annotations

import itertools
import math
import os
from collections.abc import Iterable
from fractions import Fraction
from typing import Any

import numpy as np

from surelabel._core import files
from surelabel._core.validation import BoolArray, FloatArray, as_fraction, as_probabilities, check_count, invalid
from surelabel.conformal import ConformalLabelSets
from surelabel.exceptions import InvalidInputError
from surelabel.guarantees.levels import from_file
from surelabel.labels.shortlists import Shortlists
from surelabel.predictor_file import as_artifact_error
from surelabel.sets.prediction_sets import PredictionSets

_KIND = "online-conformal"


class OnlineConformal:
    """Prediction sets for a stream of texts whose labels become known later, some never, in any order.

    Predictions and updates must come one after the other: several threads need a lock.

    Parameters
    ----------
    predictor : ConformalLabelSets
        Calibrated, without a taxonomy: make one object per group.
    significance : float, str, Decimal or Fraction in (0, 1)
        Share of errors to keep.
    rate : float in (0, 1)
        How far one error moves the level.
    max_pending : int
        Texts that may wait for their labels; if there are more, the oldest are forgotten.

    Attributes
    ----------
    level_ : float
        The significance at which the next text's set is cut.
    error_rate_ : float
        Share of texts with known labels whose set missed them; nan before the first.
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
    >>> bool(plain.mean() > 0.15), bool(online.error_rate_ < 0.12)
    (True, True)
    """

    def __init__(
        self,
        predictor: ConformalLabelSets,
        significance: Any = "0.05",
        *,
        rate: float = 0.01,
        max_pending: int = 100_000,
    ) -> None:
        who = "OnlineConformal"
        is_plain = isinstance(predictor, ConformalLabelSets) and predictor.taxonomy is None
        if not is_plain or not hasattr(predictor, "calibration_"):
            raise invalid("predictor", who, "a calibrated ConformalLabelSets without a taxonomy", repr(predictor))
        self._n_texts: int = predictor.calibration_.n_texts
        self._significance = as_fraction(significance, "significance", who)
        if isinstance(rate, bool) or not isinstance(rate, (int, float)) or not 0.0 < rate < 1.0:
            raise invalid("rate", who, "in (0, 1)", repr(rate))
        check_count("max_pending", max_pending, who, 1)
        self.predictor, self.rate, self.max_pending = predictor, float(rate), int(max_pending)
        self.n_settled_ = self.n_errors_ = 0
        self.last_ids_: tuple[str, ...] = ()
        self._level = self.significance
        self._next_id = 0
        # By id: the probabilities of a text, and the rank that its set was cut at.
        self._pending: dict[str, tuple[FloatArray, int]] = {}

    @property
    def significance(self) -> float:
        """Share of errors to keep."""
        return float(self._significance)

    @property
    def level_(self) -> float:
        """The significance at which the next text's set is cut."""
        return float(np.clip(self._level, 1 / (self._n_texts + 1), self._n_texts / (self._n_texts + 1)))

    @property
    def error_rate_(self) -> float:
        """Share of texts with known labels whose set missed them."""
        return self.n_errors_ / self.n_settled_ if self.n_settled_ else math.nan

    @property
    def n_pending_(self) -> int:
        """Texts whose labels are not known yet."""
        return len(self._pending)

    def __repr__(self) -> str:
        return (
            f"<OnlineConformal at {self.significance:g}: {self.n_settled_} texts, {self.n_errors_} errors, "
            f"{self.n_pending_} pending>"
        )

    @property
    def _rank(self) -> int:
        """The rank of the calibration score that sets are cut at."""
        return min(max(math.floor(self._level * (self._n_texts + 1)), 1), self._n_texts)

    def predict_set(self, probabilities: Any, ids: Iterable[Any] | None = None) -> PredictionSets:
        """Return the prediction sets of new texts, all cut at the present level.

        Parameters
        ----------
        probabilities : (n, d) array-like
        ids : n identifiers, optional
            By which `update` will name the texts; numbers in the order of the stream by default (`last_ids_`).
        """
        if isinstance(probabilities, Shortlists):
            raise invalid("probabilities", "predict_set of OnlineConformal", "a (n, d) array", "Shortlists")
        calibration, rank = self.predictor.calibration_, self._rank
        rows = as_probabilities(probabilities, calibration.label_names, "predict_set", calibration.n_labels)
        names = _as_ids(range(self._next_id, self._next_id + len(rows)) if ids is None else ids, len(rows))
        for name in names:
            if name in self._pending:
                raise InvalidInputError(f"The id of a new text must be new. Got {name!r:.80}, which is pending.")
        sets = self.predictor.predict_set(rows, significance=Fraction(rank, self._n_texts + 1))
        self._next_id += len(rows) if ids is None else 0
        self._pending.update({name: (row.copy(), rank) for name, row in zip(names, rows, strict=True)})
        self.drop(list(itertools.islice(self._pending, max(0, len(self._pending) - self.max_pending))))
        self.last_ids_ = names
        return sets

    def update(self, labels: Any, ids: Iterable[Any] | None = None) -> BoolArray:
        """Take true label-sets that have become known; return which of them were missed, (n,).

        Nothing changes if one of them is refused.

        Parameters
        ----------
        labels : (n, d) 0/1 array-like or sparse matrix, or one collection of label names per text
        ids : n identifiers, optional
            Of the texts; the n that have been pending longest by default.
        """
        n_texts = labels.shape[0] if hasattr(labels, "shape") else len(labels)
        if n_texts > len(self._pending):
            raise InvalidInputError(
                f"update got the labels of {n_texts} texts, but only {len(self._pending)} are pending. Call "
                "predict_set first."
            )
        names = tuple(itertools.islice(self._pending, n_texts)) if ids is None else _as_ids(ids, n_texts)
        self._check_pending(names, "update")
        texts = [self._pending[name] for name in names]
        p_values = self.predictor.predict_p(np.array([row for row, _ in texts]), labels)
        # The p-value is (m + 1) / (n + 1); members have m of at least the rank.
        counts = np.rint(p_values * (self._n_texts + 1)).astype(np.int64)
        missed = counts <= np.array([rank for _, rank in texts])
        self.drop(names)
        for error in missed.tolist():
            moved = self._level + self.rate * (self.significance - error)
            # One step past 0 and 1 and no further: the way back must not be long.
            self._level = min(max(moved, -self.rate), 1.0 + self.rate)
        self.n_settled_ += len(names)
        self.n_errors_ += int(missed.sum())
        return np.asarray(missed)

    def drop(self, ids: Iterable[Any]) -> None:
        """Forget texts whose labels will never come."""
        names = tuple(map(str, ids))
        self._check_pending(names, "drop")
        for name in names:
            del self._pending[name]

    def _check_pending(self, names: Iterable[str], who: str) -> None:
        """Raise unless all these texts are pending."""
        for name in names:
            if name not in self._pending:
                raise invalid("ids", who, "ids of pending texts", f"{name!r:.80}")

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write state and predictor to one .npz file."""
        predictor, arrays = self.predictor.to_arrays()
        header = {
            "kind": _KIND,
            "significance": str(self._significance),
            "rate": self.rate,
            "max_pending": self.max_pending,
            "level": self._level,
            "counts": [self.n_settled_, self.n_errors_, self._next_id],
            "pending": [[name, rank] for name, (_, rank) in self._pending.items()],
            "predictor": predictor,
        }
        rows = np.array([row for row, _ in self._pending.values()])
        files.write_arrays(path, header, {"pending": rows, **arrays})

    @classmethod
    def load(cls, path: str | os.PathLike[str], *, measure: Any = None) -> OnlineConformal:
        """Read a file made by `save`, and continue where it stopped; no code from the file is run."""
        header, arrays = files.read_arrays(path, _KIND)
        with as_artifact_error(path):
            rows = arrays.pop("pending")
            predictor = ConformalLabelSets.from_arrays(header["predictor"], arrays, measure)
            online = cls(
                predictor, from_file(header["significance"]), rate=header["rate"], max_pending=header["max_pending"]
            )
            online._restore(header, rows)
        return online

    def _restore(self, header: dict[str, Any], rows: Any) -> None:
        """Set what a file says; raise ValueError, KeyError or TypeError if it cannot be."""
        level, counts, pending = header["level"], header["counts"], header["pending"]
        for count in counts:
            check_count("counts", count, "load")
        self.n_settled_, self.n_errors_, self._next_id = counts
        if not isinstance(level, float) or not -self.rate <= level <= 1.0 + self.rate:
            raise ValueError("its level is not one")
        if self.n_errors_ > self.n_settled_ or len(pending) > self.max_pending:
            raise ValueError("its counts do not belong together")
        self._level = level
        names = _as_ids([name for name, _ in pending], len(pending))
        for _, rank in pending:
            check_count("rank", rank, "load", 1, self._n_texts)
        if pending:
            rows = as_probabilities(rows, None, "load", self.predictor.calibration_.n_labels)
        self._pending = {name: (row, rank) for name, row, (_, rank) in zip(names, rows, pending, strict=True)}


def _as_ids(ids: Iterable[Any], n_texts: int) -> tuple[str, ...]:
    """Return identifiers as different strings, one per text."""
    names = tuple(str(name) for name in ids)
    if len(names) != n_texts or len(set(names)) != n_texts:
        got = f"{len(names)}, of which {len(set(names))} differ"
        raise invalid("ids", "OnlineConformal", f"{n_texts} different identifiers, one per text", got)
    return names
