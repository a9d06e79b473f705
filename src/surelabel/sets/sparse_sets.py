"""Prediction sets of texts with sparse probabilities: the same answers as from dense ones, without a row of all labels.

Labels that a text does not list behave alike, so what is said of labels is said of the listed ones and, once, of all
others.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterable, Iterator, Sequence, Set
from typing import Any, cast

import numpy as np

from surelabel._core.validation import BoolArray, FloatArray, check_count
from surelabel.calibration import Calibration, totals_of
from surelabel.engines import Bounds, Cut, SearchReport, SizeBounds
from surelabel.engines.cut import over_rows
from surelabel.engines.sparse import Reach, SparseCut, SparseSearch
from surelabel.exceptions import InvalidInputError
from surelabel.labels.label_sets import LabelSet
from surelabel.labels.sparse import SparseLabels, SparseProbabilities
from surelabel.measures.compressed import compress
from surelabel.sets.descriptions import Description
from surelabel.sets.prediction_set import PredictionSet
from surelabel.sets.prediction_sets import PredictionSets

__all__ = [
    "MOST_DESCRIBED",
    "LabelView",
    "SparsePredictionSet",
    "SparsePredictionSets",
    "names_of_members",
    "sparse_forced",
]

_SEARCH = SparseSearch()
MOST_DESCRIBED = 10_000
"""Labels up to which sets from sparse probabilities are described: a description names every label."""


def _as_label(index: int, names: Sequence[str] | None) -> Any:
    """Return a label's name, its index where names are not known."""
    return index if names is None else names[index]


def names_of_members(labels: SparseLabels, names: tuple[str, ...] | None) -> list[LabelSet]:
    """Turn a CSR array of labels into frozensets of label names, of indices where names are None."""
    rows = np.split(labels.indices, labels.indptr[1:-1])
    return [frozenset(_as_label(k, names) for k in row.tolist()) for row in rows]


def _as_rows(members: Sequence[Iterable[int]], n_labels: int) -> SparseLabels:
    """Return label-sets, each as ascending labels, as a bool CSR array (m, d)."""
    from scipy.sparse import csr_array  # noqa: PLC0415

    sizes = [len(tuple(member)) for member in members]
    indices = np.fromiter(itertools.chain.from_iterable(members), dtype=np.int64)
    starts = np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)])
    return csr_array((np.ones(len(indices), dtype=np.bool_), indices, starts), shape=(len(members), n_labels))


class LabelView(Set[Any]):
    """A set of labels, the unlisted ones of a text among them: compares as any set, names are made when asked for.

    Parameters
    ----------
    chosen : frozenset of int
        Listed labels that are in the set.
    listed : frozenset of int
        Listed labels; every other label is in the set.
    calibration : Calibration
        Knows how many labels there are, and their names.
    """

    def __init__(self, chosen: frozenset[int], listed: frozenset[int], calibration: Calibration) -> None:
        self._chosen = chosen
        self._listed = listed
        self._calibration = calibration

    @classmethod
    def _from_iterable(cls, it: Iterable[Any]) -> Any:
        return frozenset(it)

    def __contains__(self, label: object) -> bool:
        if self._calibration.label_index is not None:
            index = self._calibration.label_index.get(cast(str, label), -1)
        else:
            index = int(label) if isinstance(label, (int, np.integer)) else -1
        if not 0 <= index < self._calibration.n_labels:
            return False
        return index in self._chosen or index not in self._listed

    def __len__(self) -> int:
        return self._calibration.n_labels - len(self._listed) + len(self._chosen)

    def __iter__(self) -> Iterator[Any]:
        for index in range(self._calibration.n_labels):
            if index in self._chosen or index not in self._listed:
                yield _as_label(index, self._calibration.label_names)

    def __hash__(self) -> int:
        return self._hash()

    def __repr__(self) -> str:
        some = ", ".join(repr(label) for label in itertools.islice(self, 5))
        return f"<{len(self):,} labels: {some}{', ...' if len(self) > 5 else ''}>"


class SparsePredictionSets(PredictionSets):
    """One prediction set a text, at one significance, from sparse probabilities."""

    _cut: SparseCut  # type: ignore[assignment]

    def __init__(self, cut: SparseCut, search: str, tie_breaks: FloatArray | None = None) -> None:
        if search != "exact":
            raise InvalidInputError(
                f"The 'search' parameter must be 'exact' for sparse probabilities. Got {search!r} instead; give dense "
                "probabilities for the paper's searches."
            )
        super().__init__(cast(Cut, cut), search, tie_breaks)

    @property
    def _set_class(self) -> type[PredictionSet]:
        return SparsePredictionSet

    def _count(self, rows: range) -> SizeBounds:
        return _SEARCH.bounds(self._cut, rows)

    def contains(self, labels: Any) -> BoolArray:
        """Tell for each text, (n,), whether its prediction set contains the given label-set."""
        calibration = self._cut.calibration
        checked = calibration.as_labels(labels, len(self), who="contains", sparse=True)
        totals = totals_of(calibration.measure, self._cut.probabilities, checked)
        return np.asarray(calibration.is_candidate(checked) & (totals <= self._cut.thresholds))

    def certain_and_possible(self) -> tuple[Any, Any]:
        """Return which labels all members have, and which some have, for each text: two (n, d) bool CSR arrays.

        Where unlisted labels are possible, a row has all of them.
        """
        n_labels = self._cut.calibration.n_labels
        reaches = [reach for block in self._reaches() for reach in block]
        certain = [_chosen(reach, n_labels, certain=True) for reach in reaches]
        possible = [_chosen(reach, n_labels, certain=False) for reach in reaches]
        return _as_rows(certain, n_labels), _as_rows(possible, n_labels)

    def certain_and_open(self, most: int) -> tuple[Any, Any, Any]:
        """Return which labels all members have, and which some have but not all, without rows of very many labels.

        Parameters
        ----------
        most : int
            Where more labels than this are open, only those that the text lists are in its row.

        Returns
        -------
        certain, still_open : (n, d) bool CSR arrays
        n_more : (n,) int64
            Open labels of each text that are not in its row.
        """
        n_labels = self._cut.calibration.n_labels
        certain, still_open, n_more = [], [], []
        for reach in itertools.chain.from_iterable(self._reaches()):
            certain.append(_chosen(reach, n_labels, certain=True))
            listed = reach.listed[reach.reachable.all(axis=1)].tolist()
            n_unlisted = n_labels - len(reach.listed) if all(reach.unlisted) else 0
            if 0 < n_unlisted <= most - len(listed):
                listed = sorted(listed + np.setdiff1d(np.arange(n_labels), reach.listed).tolist())
                n_unlisted = 0
            still_open.append(listed)
            n_more.append(n_unlisted)
        return _as_rows(certain, n_labels), _as_rows(still_open, n_labels), np.array(n_more, dtype=np.int64)

    def _reaches(self) -> list[list[Reach]]:
        """Return what labels can be reached, in blocks of texts."""
        return over_rows(lambda rows: _SEARCH.reachable(self._cut, rows), len(self), self._cut.n_jobs)

    def top_indices(self, k: int, rows: Iterable[int] | None = None) -> list[list[tuple[list[int], float]]]:
        """Return what `top` returns with ascending label indices in place of label-sets.

        Where `rows` are given, the lists of the other texts are left empty.
        """
        check_count("k", k, who="top_indices")
        tops: list[list[tuple[list[int], float]]] = [[] for _ in range(len(self))]
        for row in range(len(self)) if rows is None else rows:
            tops[row] = self[row]._top_indices(int(k))
        return tops

    def search_report(self) -> SearchReport:
        """Return the numbers of members (upper bounds): the exact search considers no other label-set."""
        considered = self._count(range(len(self))).upper.tolist()
        return SearchReport(None, considered, np.zeros(len(considered), dtype=np.bool_))


def _chosen(reach: Reach, n_labels: int, *, certain: bool) -> Sequence[int]:
    """Return the labels that all members have, or that some have, ascending."""
    masks = (reach.reachable, np.array([reach.unlisted]))
    listed, unlisted = (mask[:, 1] & ~mask[:, 0] if certain else mask[:, 1] for mask in masks)
    if not unlisted[0]:
        return tuple(reach.listed[listed].tolist())
    kept = np.ones(n_labels, dtype=np.bool_)
    kept[reach.listed] = listed
    return tuple(np.flatnonzero(kept).tolist())


class SparsePredictionSet(PredictionSet):
    """The label-sets that stay plausible for one text with sparse probabilities."""

    _parent: SparsePredictionSets

    @property
    def _cut(self) -> SparseCut:  # type: ignore[override]
        return self._parent._cut

    def refine(self, relative_gap: float = 0.01, work_limit: int | None = None) -> Bounds:
        """Count with another work limit; bounds of sparse texts have no finer table."""
        lower, upper = self.size_bounds
        if lower < upper and work_limit is not None:
            cut = dataclasses.replace(self._cut, work_limit=work_limit)
            lower, upper = _SEARCH.bounds(cut, range(self._row, self._row + 1))[0]
            self._parent._bounds[self._row] = (lower, upper)
        return lower, upper

    def _label_set(self, member: Iterable[int]) -> LabelSet:
        """Return labels as a frozenset of names or indices."""
        names = self._cut.calibration.label_names
        return frozenset(_as_label(k, names) for k in member)

    def __iter__(self) -> Iterator[LabelSet]:
        return (self._label_set(member) for _, member in _SEARCH.iterate(self._cut, self._row))

    def _top_indices(self, k: int) -> list[tuple[list[int], float]]:
        best = list(itertools.islice(_SEARCH.iterate(self._cut, self._row), k))
        ties = self._parent._tie_breaks
        totals = np.array([total for total, _ in best])
        p_values = self._cut.calibration.p_values(totals, None if ties is None else ties[self._one])
        return [(list(member), p_value) for (_, member), p_value in zip(best, p_values.tolist(), strict=True)]

    def to_array(self, limit: int = 1_000_000) -> Any:
        """Return the members as 0/1 rows of a bool CSR array (m, d), best first.

        Where there are more than `limit`, the best of them are returned, with a TruncationWarning.
        """
        check_count("limit", limit, who="to_array")
        found = itertools.islice(_SEARCH.iterate(self._cut, self._row), int(limit))
        members = [member for _, member in found]
        self._warn_if_cut(len(members), limit)
        return _as_rows(members, self._cut.calibration.n_labels)

    def _reach(self) -> Reach:
        """Return which labels some members have absent, and some present."""
        return _SEARCH.reachable(self._cut, self._one)[0]

    def _view(self, reach: Reach, listed: BoolArray, unlisted: bool) -> Any:
        """Return a set of labels: some of the listed ones, and all unlisted ones or none."""
        chosen = reach.listed[listed].tolist()
        if not unlisted:
            return self._label_set(chosen)
        return LabelView(frozenset(chosen), frozenset(reach.listed.tolist()), self._cut.calibration)

    @property
    def certain(self) -> Any:
        """Labels that all members have (none where the set is empty)."""
        reach = self._reach()
        unlisted = reach.unlisted[1] and not reach.unlisted[0]
        return self._view(reach, reach.reachable[:, 1] & ~reach.reachable[:, 0], unlisted)

    @property
    def possible(self) -> Any:
        """Labels that some member has, the certain ones among them; a view where unlisted labels are among them."""
        reach = self._reach()
        return self._view(reach, reach.reachable[:, 1], reach.unlisted[1])

    @property
    def excluded(self) -> Any:
        """Labels that no member has; a view where unlisted labels are among them."""
        reach = self._reach()
        return self._view(reach, ~reach.reachable[:, 1], not reach.unlisted[1])

    def listed_inclusion_bounds(self) -> tuple[Any, FloatArray, tuple[float, float]]:
        """Return bounds of the share of members that have each listed label, and any one unlisted label.

        Returns
        -------
        labels : (m,) int64
            The labels that the text lists.
        shares : (m, 2) float64
            Certified (lower, upper) bounds for each of them.
        unlisted : (float, float)
            The same for every label that it does not list.
        """
        labels = self._cut.probabilities[self._one].labels
        if self.size_bounds[1] == 0:
            return labels, np.zeros((len(labels), 2)), (0.0, 0.0)
        listed, unlisted = _SEARCH.with_label(self._cut, self._row)
        shares = np.array(self._as_shares(listed), dtype=np.float64).reshape(len(labels), 2)
        return labels, shares, self._as_shares([unlisted])[0]

    def inclusion_bounds(self) -> tuple[FloatArray, FloatArray]:
        """Return certified bounds of the share of members that have each label, (d,) each; 0 for an empty set.

        `listed_inclusion_bounds` is the same without arrays of all labels.
        """
        labels, listed, unlisted = self.listed_inclusion_bounds()
        shares = np.empty((2, self._cut.calibration.n_labels))
        shares[:] = np.array(unlisted)[:, None]
        shares[:, labels] = listed.T
        return shares[0], shares[1]

    def describe(self, label_names: Sequence[str] | None = None) -> Description:
        """Return the set in a few statements, each true of every member; of up to 10,000 labels."""
        calibration = self._cut.calibration
        if calibration.n_labels > MOST_DESCRIBED:
            raise InvalidInputError(
                f"A description names every label, of up to {MOST_DESCRIBED:,}. Got {calibration.n_labels:,} labels; "
                "use certain, possible, top and listed_inclusion_bounds instead."
            )
        dense = Cut(
            calibration,
            self._cut.probabilities[self._one].toarray(),
            self._cut.thresholds[self._one],
            self._cut.work_limit,
            self._cut.n_jobs,
        )
        return PredictionSets(dense, "exact")[0].describe(label_names)


def sparse_forced(
    calibration: Calibration, probabilities: SparseProbabilities, n_jobs: int | None
) -> tuple[SparseLabels, FloatArray]:
    """Return the cheapest candidates as a CSR array (n, d), and the totals (n, 2) of the two cheapest.

    The cheapest candidates have at most min_labels unlisted labels, those with the last indices; the next best one adds
    one, so min_labels + 1 of them stand for all.
    """
    blocks = over_rows(lambda rows: _force(calibration, probabilities[rows]), len(probabilities), n_jobs)
    members = [member for chosen, _ in blocks for member in chosen]
    return _as_rows(members, calibration.n_labels), np.concatenate([totals for _, totals in blocks])


def _force(calibration: Calibration, probabilities: SparseProbabilities) -> tuple[list[list[int]], FloatArray]:
    """Return the cheapest candidate of each text of a block, and the totals of the two cheapest."""
    from surelabel._kernels import compressed as kernel  # noqa: PLC0415

    rows = compress(calibration.separable, probabilities, calibration.min_labels + 1)
    member = np.empty(len(rows.labels), dtype=np.uint8)
    totals = np.empty((len(rows), 2))
    kernel.forced_compressed(
        rows.starts, rows.absent, rows.present, calibration.limits, rows.is_maximum, member, totals
    )
    chosen = np.where(member.view(np.bool_), rows.labels, -1)
    return [part[part >= 0].tolist() for part in np.split(chosen, rows.starts[1:-1])], totals
