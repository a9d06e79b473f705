"""How texts and label-sets are divided: by a group that is given, by number of labels, by the rarest label.

A category is a group of texts and a kind of label-set. A candidate's p-value counts only calibration texts of its
category: texts of the same group whose *true* label-set is of the candidate's kind. So the share of errors is bounded
in every category, not only on average (Vovk, Gammerman & Shafer, *Algorithmic Learning in a Random World*, 4.6).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from surelabel._core.validation import BoolArray, IntArray, as_labels, check_count, invalid
from surelabel.exceptions import ArtifactError, InvalidInputError
from surelabel.labels.sparse import is_sparse


class Span(NamedTuple):
    """The label-sets of one kind: those within `limits` and without labels of `barred`, less those without `inner`.

    barred, inner : (d,) bool or None
        Labels that a label-set of the kind must not have; and labels of which it must have at least one.
    """

    limits: tuple[int, int]
    barred: BoolArray | None
    inner: BoolArray | None


class Taxonomy:
    """A division of texts and label-sets; products of `ByGroup`, `ByCardinality` and `ByRarity` are taxonomies too.

    Attributes
    ----------
    by_group : bool
        Whether texts are divided by groups.
    cardinality : tuple of int
        Where kinds begin, in numbers of labels; () if they do not matter.
    rarity : tuple of int
        Where kinds begin, in training texts of the rarest label; () if they do not matter.
    counts : (d,) int64
        Training texts of each label; empty without rarity.
    min_texts : int
        Categories with fewer calibration texts are joined with others.
    """

    def __init__(
        self,
        by_group: bool = False,
        cardinality: Sequence[int] = (),
        rarity: Sequence[int] = (),
        counts: Any = (),
        min_texts: int = 0,
    ) -> None:
        who = type(self).__name__
        self.by_group = bool(by_group)
        self.cardinality = _as_edges(cardinality, who)
        self.rarity = _as_edges(rarity, who)
        self.counts: IntArray = np.asarray(counts, dtype=np.int64).reshape(-1)
        check_count("min_texts", min_texts, who=who)
        self.min_texts = int(min_texts)

    def __mul__(self, other: Any) -> Taxonomy:
        if not isinstance(other, Taxonomy):
            return NotImplemented
        for what in ("by_group", "cardinality", "rarity"):
            if getattr(self, what) and getattr(other, what):
                raise InvalidInputError(
                    f"A product of taxonomies must not divide by {what.removeprefix('by_')} twice. Got {self!r} and "
                    f"{other!r}."
                )
        return Taxonomy(
            self.by_group or other.by_group,
            self.cardinality or other.cardinality,
            self.rarity or other.rarity,
            self.counts if self.rarity else other.counts,
            max(self.min_texts, other.min_texts),
        )

    def __repr__(self) -> str:
        parts = ["ByGroup()"] if self.by_group else []
        parts += [f"ByCardinality({self.cardinality})"] if self.cardinality else []
        parts += [f"ByRarity(..., {self.rarity})"] if self.rarity else []
        return " * ".join(parts)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Taxonomy) and self.to_spec() == other.to_spec()

    def __hash__(self) -> int:
        return hash((self.by_group, self.cardinality, self.rarity, self.min_texts))

    def to_spec(self) -> dict[str, Any]:
        """Return it as plain values for JSON."""
        return {
            "by_group": self.by_group,
            "cardinality": list(self.cardinality),
            "rarity": list(self.rarity),
            "counts": self.counts.tolist(),
            "min_texts": self.min_texts,
        }

    @classmethod
    def from_spec(cls, spec: Any) -> Taxonomy:
        """Return the inverse of `to_spec`."""
        try:
            if set(spec) != {"by_group", "cardinality", "rarity", "counts", "min_texts"}:
                raise ValueError(f"it has {sorted(spec)[:6]}")
            return Taxonomy(**spec)
        except (TypeError, ValueError, OverflowError) as error:
            raise ArtifactError(f"These are not the values of a taxonomy: {error}.") from error

    @property
    def n_kinds(self) -> int:
        """Number of kinds of label-sets, those without candidates too."""
        return (len(self.cardinality) + 1) * (len(self.rarity) + 1)

    def check_labels(self, n_labels: int, *, who: str) -> None:
        """Raise unless rarities are known of as many labels as there are."""
        if self.rarity and len(self.counts) != n_labels:
            raise InvalidInputError(
                f"The 'taxonomy' of {who} must know the training texts of {n_labels} labels. Got {len(self.counts)}."
            )

    def kinds_of(self, labels: Any) -> IntArray:
        """Return the kind of each label-set, (n,), of 0/1 rows or a bool CSR array (n, d)."""
        sizes = np.asarray(labels.sum(axis=1)).reshape(-1)
        kinds = np.searchsorted(np.array(self.cardinality, dtype=np.int64), sizes, side="right")
        if not self.rarity:
            return np.asarray(kinds, dtype=np.int64)
        if is_sparse(labels):
            rarest = np.full(labels.shape[0], np.iinfo(np.int64).max)
            rows = np.repeat(np.arange(labels.shape[0]), np.diff(labels.indptr))
            np.minimum.at(rarest, rows, self.counts[labels.indices])
        else:
            rarest = np.where(labels, self.counts[None, :], np.iinfo(np.int64).max).min(axis=1)
        return np.asarray(kinds * (len(self.rarity) + 1) + np.searchsorted(self.rarity, rarest, side="right"))

    def class_of(self, kinds: IntArray) -> IntArray:
        """Return the class of the rarest label of kinds, (k,): 0 for the rarest."""
        return kinds % (len(self.rarity) + 1)

    def label_classes(self, n_labels: int) -> IntArray:
        """Return the class of each label, (d,), by its number of training texts; 0 if that does not matter."""
        if not self.rarity:
            return np.zeros(n_labels, dtype=np.int64)
        return np.searchsorted(np.array(self.rarity), self.counts, side="right").astype(np.int64)

    def kind_of(self, member: Sequence[int]) -> int:
        """Return the kind of one label-set of label indices."""
        kind = int(np.searchsorted(self.cardinality, len(member), side="right")) if self.cardinality else 0
        if not self.rarity:
            return kind
        rarest = min((int(self.counts[k]) for k in member), default=math.inf)
        return kind * (len(self.rarity) + 1) + sum(edge <= rarest for edge in self.rarity)

    def spans(self, limits: tuple[int, int]) -> list[Span | None]:
        """Return each kind's label-sets within limits on the number of labels, None if it has none."""
        ends = [0, *self.cardinality, limits[1] + 1]
        rare = [None, *(self.counts < edge for edge in self.rarity)]
        spans: list[Span | None] = []
        for first, end in itertools.pairwise(ends):
            within = max(limits[0], first), min(limits[1], end - 1)
            for barred, inner in itertools.zip_longest(rare, rare[1:]):
                spans.append(Span(within, barred, inner) if within[0] <= within[1] else None)
        return spans

    def kind_name(self, kind: int) -> str:
        """Return a kind in words."""
        by_size, by_rarity = divmod(kind, len(self.rarity) + 1)
        words = []
        if self.cardinality:
            words.append(_interval(self.cardinality, by_size, "label"))
        if self.rarity:
            words.append(f"the rarest label in {_interval(self.rarity, by_rarity, 'training text')}")
        return ", ".join(words) or "any label-set"


def _interval(edges: tuple[int, ...], place: int, what: str) -> str:
    """Write an interval of whole numbers in words."""
    first = 0 if place == 0 else edges[place - 1]
    if place == len(edges):
        return f"{first} or more {what}s"
    last = edges[place] - 1
    return f"{first} {what}{'' if first == 1 else 's'}" if first == last else f"{first} to {last} {what}s"


def _as_edges(edges: Any, who: str) -> tuple[int, ...]:
    """Return rising whole numbers from 1 on."""
    try:
        checked = tuple(edges)
    except TypeError:
        checked = (edges,)
    whole = all(isinstance(edge, (int, np.integer)) and not isinstance(edge, bool) for edge in checked)
    if not whole or any(first >= second for first, second in itertools.pairwise((0, *checked))):
        raise invalid("edges", who, "rising whole numbers from 1 on, such as (1, 2, 3)", repr(edges))
    return tuple(int(edge) for edge in checked)


class ByGroup(Taxonomy):
    """Divide texts by a group that is given with them: source, language, customer.

    Parameters
    ----------
    min_texts : int
        Groups with fewer calibration texts are joined to one, "other groups", which groups that were never seen belong
        to as well. 0 joins none, and a group that was never seen is an error.

    Examples
    --------
    >>> from surelabel import ConformalLabelSets
    >>> probabilities, labels = [[0.9, 0.2], [0.6, 0.3]] * 9, [[1, 0], [0, 1]] * 9
    >>> predictor = ConformalLabelSets(taxonomy=ByGroup())
    >>> predictor = predictor.calibrate(probabilities, labels, groups=["wire", "mail"] * 9)
    >>> predictor.predict_set([[0.9, 0.2]] * 2, significance=0.1, groups=["wire", "mail"]).sizes()
    array([1, 2])
    """

    def __init__(self, min_texts: int = 0) -> None:
        super().__init__(by_group=True, min_texts=min_texts)


class ByCardinality(Taxonomy):
    """Divide label-sets by their number of labels.

    Parameters
    ----------
    edges : sequence of int
        The number of labels at which each kind begins: (1, 2, 3) makes kinds of one, two, and three or more labels (and
        of none, if the empty label-set is a candidate).
    min_texts : int
        Kinds with fewer calibration texts are joined with the kind of fewer labels; 0 joins none.

    Examples
    --------
    >>> from surelabel import ConformalLabelSets
    >>> probabilities, labels = [[0.9, 0.2], [0.9, 0.4]] * 9, [[1, 0], [1, 1]] * 9
    >>> predictor = ConformalLabelSets(taxonomy=ByCardinality((1, 2))).calibrate(probabilities, labels)
    >>> predictor.predict_p([[0.9, 0.4]] * 2, [[1, 0], [1, 1]])
    array([0.1, 1. ])
    """

    def __init__(self, edges: Sequence[int] = (1, 2, 3), min_texts: int = 0) -> None:
        super().__init__(cardinality=_some(edges, "ByCardinality"), min_texts=min_texts)


class ByRarity(Taxonomy):
    """Divide label-sets by the number of training texts of their rarest label.

    Parameters
    ----------
    training_labels : (n, d) 0/1 array-like or sparse matrix, or (d,) numbers of training texts
        Never those of calibration texts.
    edges : sequence of int
        The number of training texts at which each kind begins: (10, 100) makes kinds of label-sets whose rarest label
        has 0 to 9, 10 to 99, and 100 or more. The empty label-set belongs to the last.
    min_texts : int
        Kinds with fewer calibration texts are joined with the kind of more common labels; 0 joins none.

    Examples
    --------
    >>> from surelabel import ConformalLabelSets
    >>> taxonomy = ByRarity([500, 4], edges=(10,))
    >>> probabilities, labels = [[0.9, 0.2], [0.9, 0.4]] * 9, [[1, 0], [1, 1]] * 9
    >>> predictor = ConformalLabelSets(taxonomy=taxonomy).calibrate(probabilities, labels)
    >>> predictor.predict_p([[0.9, 0.4]] * 2, [[1, 0], [1, 1]])
    array([0.1, 1. ])
    """

    def __init__(self, training_labels: Any, edges: Sequence[int] = (10, 100), min_texts: int = 0) -> None:
        super().__init__(rarity=_some(edges, "ByRarity"), counts=_label_counts(training_labels), min_texts=min_texts)


def _some(edges: Any, who: str) -> Any:
    """Return edges, of which there must be some."""
    if not _as_edges(edges, who):
        raise InvalidInputError(f"The 'edges' parameter of {who} must be at least one whole number. Got none.")
    return edges


def _label_counts(training_labels: Any) -> npt.NDArray[np.int64]:
    """Return the number of training texts of each label."""
    if is_sparse(training_labels):
        return np.asarray(training_labels.sum(axis=0), dtype=np.int64).reshape(-1)
    values = training_labels.to_numpy() if hasattr(training_labels, "to_numpy") else np.asarray(training_labels)
    if values.ndim == 1 and values.dtype.kind in "iu" and (values >= 0).all():
        return values.astype(np.int64)
    return np.asarray(as_labels(values, who="ByRarity", parameter="training_labels").sum(axis=0), dtype=np.int64)
