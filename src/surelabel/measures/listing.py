"""Label-sets seen in training, in compressed rows, and the tree of listed label-sets that kernels go through."""

from __future__ import annotations

import collections
import dataclasses
import functools
import itertools
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from surelabel._core.validation import FloatArray, IntArray, as_labels
from surelabel._kernels.mixture import Listing
from surelabel.exceptions import InvalidInputError
from surelabel.labels.label_sets import label_indices
from surelabel.labels.sparse import as_sparse_labels, is_sparse
from surelabel.measures.base import Frozen

# Label-sets one label away from seen ones that can be listed: some 100 MB.
MOST_NEIGHBOURS = 2**20
_LabelSet = tuple[int, ...]


@dataclasses.dataclass(frozen=True, eq=False)
class SeenLabelSets(Frozen):
    """Label-sets, each once, with the number of training texts that have it, `counts`.

    Label-set i has the labels indices[starts[i]:starts[i + 1]], ascending.
    """

    starts: IntArray
    indices: IntArray
    counts: IntArray
    n_labels: int

    def __post_init__(self) -> None:
        arrays = {name: np.array(getattr(self, name), dtype=np.int64) for name in ("starts", "indices", "counts")}
        starts, indices, counts = arrays.values()
        fits = len(counts) >= 1 and starts.shape == (len(counts) + 1,) and starts[0] == 0 and starts[-1] == len(indices)
        fits = fits and bool(np.all(np.diff(starts) >= 0) and np.all(counts >= 1))
        fits = fits and bool(np.all((indices >= 0) & (indices < self.n_labels)))
        if fits and len(indices) > 1:
            begins = np.zeros(len(indices) + 1, dtype=np.bool_)
            begins[starts[:-1]] = True
            fits = bool(np.all((np.diff(indices) > 0) | begins[1:-1]))
        if fits:
            fits = len(set(self._tuples(starts, indices))) == len(counts)
        if not fits:
            raise InvalidInputError(
                "Seen label-sets must be 'starts', ascending label 'indices' of each label-set, and 'counts' of 1 or "
                "more, each label-set once."
            )
        self._freeze(**arrays)

    @classmethod
    def of(cls, labels: Any, *, who: str) -> SeenLabelSets:
        """Return the label-sets of texts, (n, d) 0/1 rows, dense or sparse; the most frequent first."""
        checked: Any
        if is_sparse(labels):
            checked = as_sparse_labels(labels, who=who, shape=labels.shape)
        else:
            checked = as_labels(labels, who=who)
        counted = collections.Counter(map(tuple, label_indices(checked)))
        if not counted:
            raise InvalidInputError(f"{who} needs the label-sets of at least one training text. Got none.")
        ordered = sorted(counted, key=lambda row: (-counted[row], row))
        starts = list(itertools.accumulate(map(len, ordered), initial=0))
        indices = list(itertools.chain.from_iterable(ordered))
        counts = [counted[row] for row in ordered]
        return cls(np.array(starts), np.array(indices, dtype=np.int64), np.array(counts), int(checked.shape[1]))

    @staticmethod
    def _tuples(starts: IntArray, indices: IntArray) -> Iterator[_LabelSet]:
        """Yield label-sets as ascending labels."""
        values = indices.tolist()
        return (tuple(values[start:stop]) for start, stop in itertools.pairwise(starts.tolist()))

    def label_sets(self) -> dict[_LabelSet, int]:
        """Return counts by label-set."""
        return dict(zip(self._tuples(self.starts, self.indices), self.counts.tolist(), strict=True))

    @functools.cached_property
    def tree(self) -> Callable[[bool], Tree]:
        """Return the label-sets as a tree, with those one label away if asked for; made once."""
        return functools.cache(functools.partial(_make_tree, self))

    @property
    def n_changes(self) -> int:
        """Number of changes of one label to one label-set."""
        return len(self.counts) * self.n_labels

    def __len__(self) -> int:
        return len(self.counts)

    def __getstate__(self) -> dict[str, Any]:
        return self._values()

    def arrays(self) -> dict[str, IntArray]:
        """Return what a file must keep, beside the number of labels."""
        return {"starts": self.starts, "indices": self.indices, "counts": self.counts}


class Tree(NamedTuple):
    """Label-sets as nodes, as `_kernels.mixture.Listing` has them, with what their weights are made of, (N,) each.

    `counts`: training texts with just this label-set. `shares`: training texts with a label-set one label away, by the
    number of labels; 0 for label-sets with fewer or more labels than any of training. `log_odds`: sum over a node's
    labels of the log-odds that a training text has the label. `node_of` has nodes of listed label-sets, by the bytes of
    their labels.
    """

    parents: IntArray
    moves: IntArray
    starts: IntArray
    labels: IntArray
    ranks: IntArray
    used: IntArray
    counts: FloatArray
    shares: FloatArray
    log_odds: FloatArray
    node_of: dict[bytes, int]

    def nodes_of(self, labels: Any) -> IntArray:
        """Return the node of each label-set, (n,), of 0/1 rows (n, d), dense or sparse; -1 if it is not listed."""
        if is_sparse(labels):
            starts, indices = labels.indptr, labels.indices.astype(np.int64)
        else:
            rows, indices = np.nonzero(labels)
            starts = np.searchsorted(rows, np.arange(len(labels) + 1))
        parts = [indices[start:stop].tobytes() for start, stop in itertools.pairwise(starts.tolist())]
        return np.array([self.node_of.get(part, -1) for part in parts], dtype=np.int64)


def _log_odds_of_labels(seen: SeenLabelSets) -> FloatArray:
    """Return the log-odds (d,) that a training text has a label, half a text added on both sides."""
    of_texts = np.repeat(seen.counts, np.diff(seen.starts))
    having = np.bincount(seen.indices, weights=of_texts, minlength=seen.n_labels)
    return np.asarray(np.log((having + 0.5) / (seen.counts.sum() - having + 0.5)))


def _shares_of(seen: SeenLabelSets) -> dict[_LabelSet, float]:
    """Return how many training texts, by the number of labels, are one label away from each label-set."""
    sizes = np.diff(seen.starts)
    fewest, most = int(sizes.min()), int(sizes.max())
    shares: dict[_LabelSet, float] = {}
    for label_set, count in seen.label_sets().items():
        share, members = count / seen.n_labels, set(label_set)
        for label in range(seen.n_labels):
            other = tuple(sorted(members ^ {label}))
            if fewest <= len(other) <= most:
                shares[other] = shares.get(other, 0.0) + share
    return shares


def _make_tree(seen: SeenLabelSets, with_neighbours: bool) -> Tree:
    """Return listed label-sets as a tree: parents come before their children."""
    counts = seen.label_sets()
    shares = _shares_of(seen) if with_neighbours else {}
    place: dict[_LabelSet, int] = {(): 0}
    parents, moves = [0], [0]
    for label_set in sorted(counts, key=len):
        # A seen label-set with one label fewer is its parent if there is one, else all of its beginnings are nodes.
        ends = range(1, len(label_set) + 1)
        fewer = next((end for end in ends if label_set[: end - 1] + label_set[end:] in counts), None)
        if fewer is not None:
            parents.append(place[label_set[: fewer - 1] + label_set[fewer:]])
            moves.append(label_set[fewer - 1])
            place[label_set] = len(place)
            continue
        for end in ends:
            if label_set[:end] not in place:
                parents.append(place[label_set[: end - 1]])
                moves.append(label_set[end - 1])
                place[label_set[:end]] = len(place)
    for label_set in counts if with_neighbours else ():
        members = set(label_set)
        for label in range(seen.n_labels):
            other = tuple(sorted(members ^ {label}))
            if other in shares and other not in place:
                parents.append(place[label_set])
                moves.append(label + seen.n_labels if label in members else label)
                place[other] = len(place)
    order = sorted(range(len(place)), key=[tuple(-label for label in label_set) for label_set in place].__getitem__)
    ranks = np.empty(len(place), dtype=np.int64)
    ranks[order] = np.arange(len(place))
    labels = np.fromiter(itertools.chain.from_iterable(place), dtype=np.int64)
    starts = np.array(list(itertools.accumulate(map(len, place), initial=0)), dtype=np.int64)
    sums = np.concatenate([[0.0], np.cumsum(_log_odds_of_labels(seen)[labels])])
    listed = ((label_set, node) for label_set, node in place.items() if label_set in counts or label_set in shares)
    return Tree(
        np.array(parents, dtype=np.int64),
        np.array(moves, dtype=np.int64),
        starts,
        labels,
        ranks,
        np.unique(labels),
        np.array([float(counts.get(label_set, 0)) for label_set in place]),
        np.array([shares.get(label_set, 0.0) for label_set in place]),
        sums[starts[1:]] - sums[starts[:-1]],
        {np.array(label_set, dtype=np.int64).tobytes(): node for label_set, node in listed},
    )


def make_listing(tree: Tree, prior: float, neighbours: float, discount: float, cardinality: float) -> Listing:
    """Return a tree with the weights of its label-sets, as kernels take it."""
    texts = tree.counts + neighbours * tree.shares
    log_prior = np.full(len(texts), -np.inf)
    listed = texts > 0
    off = discount * tree.log_odds + cardinality * np.diff(tree.starts)
    log_prior[listed] = prior * np.log(texts[listed]) - off[listed]
    return Listing(
        tree.parents, tree.moves, log_prior, np.exp(log_prior), tree.starts, tree.labels, tree.ranks, tree.used
    )
