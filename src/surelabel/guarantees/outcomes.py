"""What became of texts that were answered: labels arrive later, some never, in any order.

`Outcomes` remembers the texts that were answered under an id. When the true label-set of one becomes known, it tells
whether the answer missed it, lets an `ExchangeabilityWatch` see it and, if the level adapts, an `OnlineConformal`.
"""

from __future__ import annotations

import dataclasses
import itertools
import os
import warnings
from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from surelabel._core.npz_file import NpzFormat
from surelabel._core.validation import BoolArray, FloatArray, as_level
from surelabel.conformal import ConformalLabelSets
from surelabel.exceptions import CalibrationWarning, InvalidInputError
from surelabel.guarantees.files import damaged, predictor_from_array, predictor_to_array
from surelabel.guarantees.online import ARRAYS, OnlineConformal
from surelabel.guarantees.waiting import OutcomeError, Waiting, as_ids
from surelabel.guarantees.watch import ExchangeabilityWatch
from surelabel.labels.sparse import is_sparse
from surelabel.measures import Measure

__all__ = ["OutcomeError", "Outcomes"]

_OF_ONLINE = tuple(f"online.{name}" for name in ARRAYS)
_FORMAT = NpzFormat("surelabel-outcomes", 2, "a file", ("predictor", "pending"), _OF_ONLINE)


@dataclasses.dataclass(frozen=True, eq=False)
class _Given:
    """A text that waits for its label-set: its probabilities, and what its answer was asked for with."""

    probabilities: FloatArray
    significance: Fraction
    assurance: str | None
    group: str | None


class Outcomes(Waiting[_Given]):
    """Texts that were answered under an id, and what became of them. For one thread at a time.

    Parameters
    ----------
    predictor : ConformalLabelSets
        Calibrated.
    online : OnlineConformal, optional
        What moves the level. Texts that are remembered without a significance are cut at its level.
    alpha : float
        Bound of the probability of a false alarm of the watch.
    max_pending : int
        Texts that may wait for their labels; if there are more, the oldest are forgotten.

    Attributes
    ----------
    n_settled_, n_missed_ : int
        Texts whose true label-set became known, and those whose answer did not hold it.
    n_fixed_missed_ : int
        How many of the settled texts the calibration would have missed at the significance, without adapting.
    watch : ExchangeabilityWatch
        Over true label-sets.

    Examples
    --------
    >>> predictor = ConformalLabelSets().calibrate([[0.9, 0.2], [0.1, 0.8]] * 20, [[1, 0], [0, 1]] * 20)
    >>> outcomes = Outcomes(predictor)
    >>> outcomes.remember([[0.8, 0.1], [0.7, 0.4]], ["first", "second"], significance="0.1")
    >>> outcomes.settle(["second"], [[0, 1]]).tolist(), outcomes.n_pending_
    ([True], 1)
    """

    def __init__(
        self,
        predictor: ConformalLabelSets,
        online: OnlineConformal | None = None,
        *,
        alpha: Any = 0.01,
        max_pending: int = 20_000,
    ) -> None:
        super().__init__(predictor, max_pending)
        self.online = online
        self.watch = ExchangeabilityWatch.from_predictor(predictor, alpha=alpha)
        self.n_missed_ = self.n_fixed_missed_ = 0

    @property
    def n_pending_(self) -> int:
        """Texts that wait for their labels."""
        return len(self._pending) + (0 if self.online is None else self.online.n_pending_)

    @property
    def error_rate_(self) -> float:
        """Share of settled texts whose answer did not hold the true label-set; nan before the first."""
        return self.n_missed_ / self.n_settled_ if self.n_settled_ else float("nan")

    def __repr__(self) -> str:
        return f"<Outcomes: {self.n_settled_} texts settled, {self.n_missed_} missed, {self.n_pending_} pending>"

    def is_pending(self, name: str) -> bool:
        """Whether a text of this id waits for its label-set."""
        return name in self._pending or (self.online is not None and self.online.is_pending(name))

    def outcome_of(self, name: str) -> tuple[int, ...] | None:
        """Return the labels, by number, that a text was settled with; None if it was not, or was forgotten."""
        return self._settled.get(name)

    def remember(
        self,
        probabilities: Any,
        ids: Iterable[Any],
        *,
        significance: Any = None,
        assurance: Any = None,
        groups: Sequence[str] | None = None,
    ) -> None:
        """Remember texts that were answered, with dense probabilities (n, d) and n ids.

        Significance, assurance and groups are what the answers were asked for with. There is no significance if the
        level adapts: they were cut at the level of `online`, which takes no assurance.
        """
        if is_sparse(probabilities):
            raise InvalidInputError("Outcomes are for dense probabilities. Got sparse ones instead.")
        names = self.check_new(ids)
        rows = self.predictor.calibration_.as_probabilities(probabilities, who="remember")
        if significance is None:
            if self.online is None:
                raise InvalidInputError("The 'significance' of remember must be given, unless the level adapts.")
            self.online.predict_set(rows, names, groups)
            return
        level = as_level(significance, None, who="remember")
        held = None if assurance is None else str(assurance)
        texts = zip(names, rows, itertools.repeat(None) if groups is None else groups, strict=False)
        self._wait({name: _Given(row.copy(), level, held, group) for name, row, group in texts})

    def settle(self, ids: Iterable[Any], labels: Any) -> BoolArray:
        """Take true label-sets that have become known; return which of them the answers missed, (n,).

        Nothing changes if one of them cannot be taken: `OutcomeError` says whether it is not known or settled already.
        """
        names = as_ids(ids)
        truth, outcomes = self._outcomes(names, labels, who="settle")
        rows, missed = np.empty(truth.shape), np.empty(len(names), dtype=np.bool_)
        for place, name in enumerate(names):
            labels_of_one = truth[place : place + 1]
            if name in self._pending:
                given = self._pending.pop(name)
                missed[place] = is_missed = self._is_missed(given, labels_of_one)
            else:
                assert self.online is not None
                probabilities, group = self.online.pending(name)
                given = _Given(probabilities, self.online.exact_significance, None, group)
                missed[place] = self.online.update(labels_of_one, [name])[0]
                is_missed = self._is_missed(given, labels_of_one)
            rows[place] = given.probabilities
            self.n_fixed_missed_ += is_missed
        self._settle(outcomes)
        self.watch.update_scores(self.predictor.totals(rows, truth))
        self.n_missed_ += int(missed.sum())
        return missed

    def _is_missed(self, given: _Given, labels: BoolArray) -> bool:
        """Tell whether the answer to a text did not hold its true label-set."""
        with warnings.catch_warnings(action="ignore", category=CalibrationWarning):  # said when it was answered
            sets = self.predictor.predict_set(
                given.probabilities[None, :],
                significance=given.significance,
                assurance=given.assurance,
                groups=None if given.group is None else [given.group],
            )
        return not bool(sets.contains(labels)[0])

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write all of it to one file, whole or not at all."""
        header: dict[str, Any] = {
            "pending": [[n, str(g.significance), g.assurance, g.group] for n, g in self._pending.items()],
            "settled": self._settled_to_json(),
            "counts": [self.n_settled_, self.n_missed_, self.n_fixed_missed_],
            "max_pending": self.max_pending,
            "watch": self.watch.to_dict(),
        }
        rows = [given.probabilities for given in self._pending.values()]
        arrays: dict[str, Any] = {
            "predictor": predictor_to_array(self.predictor),
            "pending": np.array(rows).reshape(-1, self.predictor.calibration_.n_labels),
        }
        if self.online is not None:
            header["online"], more = self.online.to_state()
            arrays |= {f"online.{name}": array for name, array in more.items()}
        _FORMAT.write(path, header, arrays)

    @classmethod
    def load(cls, path: str | os.PathLike[str], *, measure: Measure | None = None) -> Outcomes:
        """Read a file made by `save`, and continue where it stopped; no code from the file is run."""
        header, arrays = _FORMAT.read(path)
        predictor = predictor_from_array(arrays["predictor"], path, measure)
        with damaged(path, "Start with a new state file."):
            online = None
            if "online" in header:
                own = {name: arrays[f"online.{name}"] for name in ARRAYS}
                online = OnlineConformal.from_state(predictor, header["online"], own)
            made = cls(predictor, online, max_pending=int(header["max_pending"]))
            made.watch = ExchangeabilityWatch.from_dict(header["watch"], predictor=predictor)
            made.n_settled_, made.n_missed_, made.n_fixed_missed_ = (int(count) for count in header["counts"])
            rows = arrays["pending"]
            if rows.dtype != np.float64 or rows.shape[1:] != (predictor.calibration_.n_labels,):
                raise ValueError("its texts are not those of its predictor")
            for (name, level, assurance, group), row in zip(header["pending"], rows, strict=True):
                kept = [None if value is None else str(value) for value in (assurance, group)]
                made._pending[str(name)] = _Given(row, as_level(Fraction(level), None, who="load"), *kept)
            made._settled_from_json(header["settled"])
        return made

    def check_predictor(self, predictor: ConformalLabelSets, path: str | os.PathLike[str]) -> None:
        """Raise unless a state that was loaded belongs to this calibration."""
        mine, other = self.predictor.calibration_, predictor.calibration_
        if mine.label_names != other.label_names or not np.array_equal(mine.totals, other.totals):
            raise InvalidInputError(
                f"The state in {os.fspath(path)} belongs to another model or calibration. Start with a new state file."
            )
