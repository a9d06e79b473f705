"""Structural penalties: label-sets unlike those of training are stranger (Katsios & Papadopoulos 2025, and more)."""

from __future__ import annotations

import dataclasses
import functools
import math
from typing import Any

import numpy as np
import numpy.typing as npt

from surelabel._core.packing import Words, pack
from surelabel._core.validation import BoolArray, FloatArray, IntArray, as_labels, invalid
from surelabel._kernels import penalties
from surelabel.exceptions import InvalidInputError
from surelabel.measures import LogLoss, LpNorm, SeparableMeasure, check_measure, measure_to_spec, totals_by_costs
from surelabel.measures.base import Frozen, is_number
from surelabel.measures.mahalanobis import Mahalanobis

WEIGHTS = ("hamming", "cardinality", "pairs", "prior")
# How often an unseen label-set counts as seen, for the prior.
_UNSEEN_COUNT = 0.5
_PROBES = np.array([0.0, 0.1, 1.0, 7.5, 1e6])


@dataclasses.dataclass(frozen=True, eq=False)
class Penalised(Frozen):
    """A measure whose scores grow by how unlike the label-sets of training a label-set is.

    score = score of `measure` + hamming h + cardinality c + pairs q + prior r, with

    - h, the share of labels in which it differs from the nearest label-set seen in training;
    - c, 1 minus the share of training texts with as many labels;
    - q, the number of pairs of its labels that were never seen together;
    - r, minus the logarithm of the share of training texts with just this label-set (half a text for an unseen one).

    h and c are those of MuLaConf, which divides its scores by a constant first: its weights times that constant give
    the same p-values.

    Parameters
    ----------
    measure : LpNorm, LogLoss, a fitted Mahalanobis, or a separable measure of your own whose score is the total itself
    hamming, cardinality, pairs, prior : float
        Weights, 0 or more. `surelabel.choose_weights` finds good ones.
    label_sets : (K, d) bool array, optional
        Label-sets seen in training, each once; `counts` (K,) how often. `fit` makes both.

    Examples
    --------
    >>> measure = Penalised(LogLoss(), pairs=2.0).fit([[1, 1, 0], [0, 0, 1], [1, 0, 0]])
    >>> probabilities = np.array([[0.9, 0.2, 0.4]] * 2)
    >>> measure.score(measure.totals(probabilities, np.array([[1, 1, 0], [1, 0, 1]], dtype=bool))).round(3)
    array([2.226, 3.245])
    """

    measure: Any
    hamming: float = 0.0
    cardinality: float = 0.0
    pairs: float = 0.0
    prior: float = 0.0
    label_sets: BoolArray | None = None
    counts: IntArray | None = None

    def __post_init__(self) -> None:
        if isinstance(self.measure, Penalised):
            raise InvalidInputError("The 'measure' parameter of Penalised must not be a Penalised one itself.")
        check_measure(self.measure, who="Penalised")
        self.power  # noqa: B018 (raises if the measure's score cannot be penalised)
        for name in WEIGHTS:
            value: Any = getattr(self, name)
            if not is_number(value) or not 0.0 <= value < math.inf:
                raise invalid(name, "Penalised", "a number, 0 or more", repr(value))
            object.__setattr__(self, name, float(value))
        if self.label_sets is not None:
            self._take(self.label_sets, self.counts)

    def _take(self, label_sets: Any, counts: Any) -> None:
        """Take label-sets and counts over, checked and in ascending order."""
        rows = np.array(as_labels(label_sets, who="Penalised", parameter="label_sets"))
        often = np.array(counts, dtype=np.int64)
        if often.shape != (len(rows),) or np.any(often < 1):
            raise InvalidInputError(
                f"The 'counts' parameter of Penalised must be {len(rows)} whole numbers from 1 on, one per label-set."
            )
        order = np.lexsort(pack(rows).T[::-1])
        rows, often = rows[order], often[order]
        if len(rows) > 1 and np.any(np.all(rows[1:] == rows[:-1], axis=1)):
            raise InvalidInputError("The 'label_sets' parameter of Penalised must hold each label-set once.")
        if isinstance(self.measure, Mahalanobis) and self.measure.n_labels != rows.shape[1]:
            raise InvalidInputError(
                f"The 'label_sets' parameter of Penalised must have {self.measure.n_labels} labels, as its measure "
                f"has. Got {rows.shape[1]} instead."
            )
        self._freeze(label_sets=rows, counts=often)

    @property
    def weights(self) -> dict[str, float]:
        """Weights by name."""
        return {name: float(getattr(self, name)) for name in WEIGHTS}

    def __repr__(self) -> str:
        given = [f"{name}={value:g}" for name, value in self.weights.items() if value > 0]
        return f"Penalised({', '.join([repr(self.measure), *given])})"

    def fit(self, labels: Any) -> Penalised:
        """Return a fitted copy.

        Parameters
        ----------
        labels : (n, d) 0/1 array-like or sparse matrix
            Label-sets of proper training texts; never those of calibration texts.
        """
        truth = as_labels(labels, who="Penalised.fit")
        label_sets, counts = np.unique(truth, axis=0, return_counts=True)
        return dataclasses.replace(self, label_sets=label_sets, counts=counts)

    def reweighted(self, **weights: Any) -> Penalised:
        """Return a copy with other weights, fitted on the same label-sets."""
        return dataclasses.replace(self, **weights)

    @property
    def fitted_label_sets(self) -> BoolArray:
        """Label-sets seen in training, (K, d), ascending; an error if there are none yet."""
        label_sets: BoolArray = self._learnt("label_sets", "the labels of proper training texts")
        return label_sets

    @property
    def n_labels(self) -> int:
        """Number of labels that the measure was fitted on."""
        return int(self.fitted_label_sets.shape[1])

    def to_spec(self) -> dict[str, Any]:
        """Describe the measure in plain values; `arrays` has the rest."""
        spec = {"kind": "penalised", "measure": measure_to_spec(self.measure), "n_labels": self.n_labels}
        return {**spec, **self.weights}

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Return what a file must keep beside `to_spec`."""
        assert self.counts is not None
        base = self.measure.arrays() if isinstance(self.measure, Mahalanobis) else {}
        return {**base, "label_sets": self.fitted_label_sets.view(np.uint8), "counts": self.counts}

    @property
    def power(self) -> float:
        """The p of the measure's score, total^(1 / p)."""
        if isinstance(self.measure, LpNorm):
            return 1.0 if math.isinf(self.measure.p) else float(self.measure.p)
        if isinstance(self.measure, Mahalanobis):
            return 2.0
        if isinstance(self.measure, LogLoss) or np.array_equal(self.measure.score(_PROBES.copy()), _PROBES):
            return 1.0
        expected = "LpNorm, LogLoss, Mahalanobis, or a measure of your own whose score is the total itself"
        raise invalid("measure", "Penalised", expected, repr(self.measure))

    @functools.cached_property
    def seen_words(self) -> Words:
        """Label-sets seen in training, packed and ascending."""
        return pack(self.fitted_label_sets)

    @functools.cached_property
    def _of_size(self) -> FloatArray:
        """Penalty of each number of labels, (d + 1,)."""
        assert self.counts is not None
        sizes = self.fitted_label_sets.sum(axis=1)
        texts = np.bincount(sizes, weights=self.counts, minlength=self.n_labels + 1)
        return np.asarray(self.cardinality * (1.0 - texts / self.counts.sum()))

    @functools.cached_property
    def _apart(self) -> Words:
        """Labels never seen with each label, packed (d, W); none if pairs cost nothing."""
        if self.pairs == 0.0:
            return np.empty((0, self.seen_words.shape[1]), dtype=np.uint64)
        rows = self.fitted_label_sets.astype(np.float64)
        together = rows.T @ rows > 0
        np.fill_diagonal(together, True)
        return pack(~together)

    def kernel_penalties(self, limits: tuple[int, int], candidates: BoolArray | None = None) -> Any:
        """Return the penalties as `_kernels.penalties` takes them; all seen label-sets are candidates by default."""
        assert self.counts is not None
        n_labels, n_texts = self.n_labels, int(self.counts.sum())
        direct = self.hamming > 0.0 or self.prior > 0.0
        sizes = self.fitted_label_sets.sum(axis=1)
        of_seen = self._of_size[sizes] + self.prior * np.log((n_texts + 1.0) / self.counts)
        if candidates is not None:
            of_seen = np.where(candidates, of_seen, np.inf)
        allowed = np.full(n_labels + 2, np.inf)
        allowed[limits[0] : limits[1] + 1] = self._of_size[limits[0] : limits[1] + 1]
        return penalties.Penalties(
            self.seen_words if direct else self.seen_words[:0],
            np.ascontiguousarray(of_seen if direct else of_seen[:0]),
            self.prior * math.log((n_texts + 1.0) / _UNSEEN_COUNT),
            self.hamming / n_labels,
            self._of_size,
            np.ascontiguousarray(np.minimum.accumulate(allowed[::-1])[::-1]),
            self._apart,
            self.pairs,
        )

    def penalties_of(self, labels: BoolArray) -> FloatArray:
        """Return the penalties of label-sets (m, d), (m,)."""
        out = np.empty(len(labels))
        penalties.penalties_of_words(self.kernel_penalties((0, self.n_labels)), pack(labels), out)
        return out

    def totals(self, probabilities: FloatArray, labels: BoolArray) -> FloatArray:
        """Return score + penalties of one label-set per text, (n,), for probabilities and labels (n, d)."""
        if isinstance(self.measure, SeparableMeasure):
            base = totals_by_costs(self.measure, probabilities, labels)
        else:
            base = self.measure.totals(probabilities, labels)
        return self._with_penalties(base, labels)

    def totals_of_label_sets(self, probabilities: FloatArray, labels: BoolArray) -> FloatArray:
        """Return the totals of many label-sets (m, d) of one text (d,); the same as `totals`."""
        if isinstance(self.measure, SeparableMeasure):
            return self.totals(np.ascontiguousarray(np.broadcast_to(probabilities, labels.shape)), labels)
        return self._with_penalties(self.measure.totals_of_label_sets(probabilities, labels), labels)

    def _with_penalties(self, totals: FloatArray, labels: BoolArray) -> FloatArray:
        """Add penalties to the scores of base totals."""
        out = np.empty(len(totals))
        penalties.scores_of_totals(totals, self.power, self.penalties_of(labels), out)
        return out

    def score(self, totals: FloatArray) -> FloatArray:
        """Return the totals: they are scores already."""
        return totals
