"""Hub labels: what the presence or absence of a few labels says about all others, in addition to the text."""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
from scipy.special import expit

from surelabel._core.validation import FloatArray, IntArray
from surelabel.exceptions import InvalidInputError
from surelabel.measures.base import Aggregate, Frozen, trusted
from surelabel.measures.listing import SeenLabelSets
from surelabel.measures.odds import RefinedLogLoss, costs_of_odds
from surelabel.measures.separable import LogLoss

# Counting takes as many counts as hubs have states, 2^h.
MOST_HUBS = 4
# Penalties of squared offsets, and of what an effect differs from the common multiple of the log-odds ratio by.
_RIDGES = (1.0, 3.0)
# Texts that are added to each cell of two labels' table of training texts.
_ADDED = 1.0
_STEPS = 60


@dataclasses.dataclass(frozen=True, eq=False)
class Hubs(Frozen):
    """How log-odds of labels change with hub labels: by effect times (1 if the hub is present, else 0, - its share).

    The share is the probability that the text gives the hub. A hub that the text is sure of therefore says nothing new;
    one that comes as a surprise says most. A hub changes the hubs after it, not those before, so probabilities of hubs
    and, given hubs, of all other labels multiply to those of label-sets.

    `labels`, (h,), are the hubs in their order; row 0 of `table`, (1 + h, d), has offsets, row 1 + i the effects of
    hub i.
    """

    labels: IntArray
    table: FloatArray

    def __post_init__(self) -> None:
        labels, table = np.array(self.labels, dtype=np.int64), np.array(self.table, dtype=np.float64, order="C")
        fits = labels.ndim == 1 and 1 <= len(labels) <= MOST_HUBS and table.ndim == 2
        fits = fits and table.shape[0] == 1 + len(labels) and len(set(labels.tolist())) == len(labels)
        fits = fits and bool(np.all((labels >= 0) & (labels < table.shape[1]))) and bool(np.all(np.isfinite(table)))
        if not fits or _backward(labels, table):
            raise InvalidInputError(
                f"Hubs must be 1 to {MOST_HUBS} different labels with a table of finite numbers, one row more than "
                "hubs and a column per label, in which no hub changes itself or a hub before it. Got labels of shape "
                f"{labels.shape} and a table of shape {table.shape} instead."
            )
        self._freeze(labels=labels, table=table)

    @property
    def n_labels(self) -> int:
        """Number of labels."""
        return int(self.table.shape[1])

    @property
    def states(self) -> list[tuple[int, ...]]:
        """What hubs can be, absent (0) or present (1) each; the last hub changes fastest."""
        return list(itertools.product((0, 1), repeat=len(self.labels)))

    def state_of(self, labels: Any) -> IntArray:
        """Return the place in `states` of each 0/1 row (n, d)."""
        powers = 2 ** np.arange(len(self.labels))[::-1]
        return np.asarray(np.asarray(labels)[:, self.labels].astype(np.int64) @ powers)

    def changed(self, odds: FloatArray, present: FloatArray) -> FloatArray:
        """Return log-odds (n, d) given hubs (n, h) or (1, h), 1 if present; label by label, so texts do not matter."""
        out = odds + self.table[0]
        shares = expit(odds[:, self.labels])
        for i in range(len(self.labels)):
            out += (present[:, i] - shares[:, i])[:, None] * self.table[1 + i]
        return np.asarray(out)

    @classmethod
    def of(cls, odds: FloatArray, labels: FloatArray, hubs: Sequence[int], ratios: FloatArray) -> Hubs:
        """Fit by penalised likelihood to log-odds of validation texts and their labels, 0 or 1, (n, d) both.

        Effects are drawn towards a multiple, the same for all labels, of the log-odds ratios, (h, d), of training
        labels: those are known from many texts, and one number says how much of them the text has already shown.
        """
        from scipy.optimize import minimize  # noqa: PLC0415 (slow to import, and only those who fit need it)

        chosen = np.array(hubs, dtype=np.int64)
        allowed = np.ones(ratios.shape)
        for i in range(len(chosen)):
            allowed[i:, chosen[i]] = 0.0
        surprise = labels[:, chosen] - expit(odds[:, chosen])
        n_labels, target = odds.shape[1], ratios * allowed

        def loss(place: FloatArray) -> tuple[float, FloatArray]:
            offsets, rest = place[1 : 1 + n_labels], place[1 + n_labels :].reshape(target.shape)
            z = odds + offsets + surprise @ (place[0] * target + allowed * rest)
            residuals = expit(z) - labels
            pulled = (surprise.T @ residuals) * allowed
            ridged = _RIDGES[0] * (offsets**2).sum() + _RIDGES[1] * (rest**2).sum()
            slopes = (
                [(pulled * target).sum()],
                residuals.sum(axis=0) + 2.0 * _RIDGES[0] * offsets,
                (pulled + 2.0 * _RIDGES[1] * rest).ravel(),
            )
            return float((np.logaddexp(0.0, z) - labels * z).sum() + ridged), np.concatenate(slopes)

        start = np.zeros(1 + n_labels + target.size)
        solved = minimize(loss, start, jac=True, method="L-BFGS-B", options={"maxiter": _STEPS}).x
        effects = solved[0] * target + allowed * solved[1 + n_labels :].reshape(target.shape)
        return cls(chosen, np.vstack([solved[1 : 1 + n_labels], effects]))


def _backward(labels: IntArray, table: FloatArray) -> bool:
    """Tell whether some hub changes itself or one before it."""
    return any(table[1 + i, labels[j]] != 0.0 for i in range(len(labels)) for j in range(i + 1))


def log_odds_ratios(seen: SeenLabelSets, hubs: Sequence[int]) -> FloatArray:
    """Return (h, d): the logarithm of how many times the odds of a label are larger in training texts with a hub."""
    rows = np.repeat(np.arange(len(seen)), np.diff(seen.starts))
    counts = seen.counts[rows].astype(np.float64)
    having = np.bincount(seen.indices, weights=counts, minlength=seen.n_labels)
    both = np.empty((len(hubs), seen.n_labels))
    for i, hub in enumerate(hubs):
        with_hub = np.zeros(len(seen), dtype=np.bool_)
        with_hub[rows[seen.indices == hub]] = True
        both[i] = np.bincount(seen.indices, weights=counts * with_hub[rows], minlength=seen.n_labels)
    of_hub = having[np.asarray(hubs)][:, None]
    neither = seen.counts.sum() - of_hub - having + both
    ratios = np.log((both + _ADDED) * (neither + _ADDED) / ((of_hub - both + _ADDED) * (having - both + _ADDED)))
    ratios[np.arange(len(hubs)), np.asarray(hubs)] = 0.0
    return np.asarray(ratios)


@trusted
@dataclasses.dataclass(frozen=True)
class HeldLogLoss:
    """Minus the log-likelihood of labels given a state of hubs; label-sets in other states cost `forbidden` or more."""

    base: LogLoss | RefinedLogLoss
    hubs: Hubs
    state: tuple[int, ...]
    forbidden: float
    aggregate: ClassVar[Aggregate] = "sum"

    def costs(self, probabilities: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return costs (n, d) for probabilities (n, d)."""
        absent, present = self.base.costs(probabilities)
        limit = math.log((1.0 - self.base.clip) / self.base.clip)
        odds = np.clip(self.hubs.changed(absent - present, np.array([self.state], dtype=np.float64)), -limit, limit)
        absent, present = costs_of_odds(odds)
        return self._with_other_states(absent, present, self.forbidden)

    def open(self, absent: FloatArray, present: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return costs with those of the other states of hubs as 0, for sums over label-sets in this state."""
        return self._with_other_states(absent.copy(), present.copy(), 0.0)

    def _with_other_states(self, absent: FloatArray, present: FloatArray, cost: float) -> tuple[FloatArray, FloatArray]:
        """Set what hubs cost in other states, in place."""
        for label, is_present in zip(self.hubs.labels.tolist(), self.state, strict=True):
            (absent if is_present else present)[:, label] = cost
        return absent, present

    def score(self, totals: FloatArray) -> FloatArray:
        """Return the totals: minus the log-likelihood."""
        return totals
