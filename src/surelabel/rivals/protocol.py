"""What a rival must have, and the two forms that its sets take."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any, Protocol, Self

import numpy as np

from surelabel._core.validation import BoolArray, as_labels, check_limits
from surelabel.engines.sizes import SizeArray, as_sizes
from surelabel.labels.counting import binomials

# How the guarantee of a method ends that promises something else.
NOTHING_OF_LABEL_SETS = "of whole label-sets nothing is said"


class SetsOfTexts(Protocol):
    """One set of label-sets per text.

    Examples
    --------
    >>> candidates = np.array([[True, False], [False, True]])
    >>> sets: SetsOfTexts = ListedSets(np.array([[True, True], [False, True]]), candidates)
    >>> sets.sizes().tolist()
    [2, 1]
    """

    def sizes(self) -> SizeArray:
        """Return the exact number of label-sets of each, (n,)."""
        ...

    def contains(self, labels: Any) -> BoolArray:
        """Tell for each text, (n,), whether its set has the given label-set."""
        ...


class Rival(Protocol):
    """A way to predict sets of label-sets.

    Examples
    --------
    >>> from surelabel.rivals import BonferroniRelevance
    >>> rival: Rival = BonferroniRelevance()
    >>> rival.name
    'Bonferroni'
    """

    @property
    def name(self) -> str:
        """Short name, for tables and figures."""
        ...

    @property
    def guarantee(self) -> str:
        """What is guaranteed at significance e, in words."""
        ...

    def calibrate(self, probabilities: Any, labels: Any) -> Rival:
        """Learn from held-out texts with known labels; return self."""
        ...

    def predict_set(self, probabilities: Any, *, significance: Any) -> SetsOfTexts:
        """Return a set of label-sets for each text."""
        ...


def sets_at(rival: Rival, probabilities: Any, levels: Sequence[Any]) -> list[SetsOfTexts]:
    """Return a rival's sets at several significances; one that can scores candidates once for all of them.

    Examples
    --------
    >>> from surelabel.rivals import LabelPowerset
    >>> rng = np.random.default_rng(0)
    >>> probabilities = rng.random((300, 3))
    >>> labels = rng.random((300, 3)) < probabilities
    >>> rival = LabelPowerset(min_labels=0).calibrate(probabilities[:200], labels[:200])
    >>> [float(sets.sizes().mean()) for sets in sets_at(rival, probabilities[200:], [0.05, 0.2])]
    [4.78, 3.12]
    """
    if hasattr(rival, "predict_sets"):
        sets: list[SetsOfTexts] = rival.predict_sets(probabilities, levels)
        return sets
    return [rival.predict_set(probabilities, significance=level) for level in levels]


@dataclasses.dataclass(frozen=True)
class Limits:
    """Candidates of all rivals: label-sets of min_labels..max_labels labels, None for no limit."""

    min_labels: int = 1
    max_labels: int | None = None

    def of(self, n_labels: int) -> tuple[int, int]:
        """Return both limits as numbers."""
        return self.min_labels, n_labels if self.max_labels is None else min(self.max_labels, n_labels)

    def admit(self, labels: BoolArray) -> BoolArray:
        """Tell which rows of labels are candidates, (n,)."""
        lo, hi = self.of(labels.shape[1])
        sizes = labels.sum(axis=1)
        return np.asarray((sizes >= lo) & (sizes <= hi))


def checked_limits(min_labels: Any, max_labels: Any, who: str) -> Limits:
    """Check limits on the number of labels."""
    check_limits(min_labels, max_labels, who=who)
    return Limits(int(min_labels), None if max_labels is None else int(max_labels))


@dataclasses.dataclass(frozen=True, eq=False)
class ProductSets:
    """Sets that allow each label to be absent, present or both, whatever the others are.

    Attributes
    ----------
    allowed : (n, d, 2) bool
        Whether a label may be absent, and present.
    limits : Limits

    Examples
    --------
    >>> from surelabel.rivals import BonferroniRelevance
    >>> rng = np.random.default_rng(0)
    >>> probabilities = rng.random((300, 3))
    >>> labels = rng.random((300, 3)) < probabilities
    >>> rival = BonferroniRelevance(min_labels=0).calibrate(probabilities[:200], labels[:200])
    >>> sets = rival.predict_set(probabilities[200:], significance=0.2)
    >>> isinstance(sets, ProductSets)
    True
    >>> round(float(sets.contains(labels[200:]).mean()), 2), round(float(sets.sizes().mean()), 2)
    (0.85, 3.61)
    """

    allowed: BoolArray
    limits: Limits

    @classmethod
    def within(cls, plausible: BoolArray, limits: Limits) -> Self:
        """Return the sets of all candidates within plausible labels (n, d): any of these may be absent too."""
        return cls(np.stack([np.ones_like(plausible), plausible], axis=2), limits)

    def sizes(self) -> SizeArray:
        """Count by binomials: labels that may be both are free."""
        n_labels = self.allowed.shape[1]
        lo, hi = self.limits.of(n_labels)
        absent, present = self.allowed[:, :, 0], self.allowed[:, :, 1]
        impossible = (~(absent | present)).sum(axis=1) > 0
        needed = (present & ~absent).sum(axis=1)
        free = (present & absent).sum(axis=1)
        counts = [
            0 if never else sum(binomials(open_)[max(lo - must, 0) : max(hi - must + 1, 0)])
            for never, must, open_ in zip(impossible.tolist(), needed.tolist(), free.tolist(), strict=True)
        ]
        return as_sizes(counts)

    def contains(self, labels: Any) -> BoolArray:
        """Look up every label."""
        truth = as_labels(labels, who="contains", n_labels=self.allowed.shape[1], n_texts=len(self.allowed))
        fits = np.where(truth, self.allowed[:, :, 1], self.allowed[:, :, 0]).all(axis=1)
        return np.asarray(fits & self.limits.admit(truth))


@dataclasses.dataclass(frozen=True, eq=False)
class ListedSets:
    """Sets out of a list of candidates.

    Attributes
    ----------
    members : (n, m) bool
        Which candidates are in the set of a text.
    candidates : (m, d) bool
        Different from each other.

    Examples
    --------
    >>> candidates = np.array([[True, False], [False, True]])
    >>> sets = ListedSets(np.array([[True, True], [False, True]]), candidates)
    >>> sets.sizes().tolist(), sets.contains([[1, 0], [1, 0]]).tolist()
    ([2, 1], [True, False])
    """

    members: BoolArray
    candidates: BoolArray

    def sizes(self) -> SizeArray:
        """Count members."""
        return as_sizes(self.members.sum(axis=1).tolist())

    def contains(self, labels: Any) -> BoolArray:
        """Look for a label-set among the candidates; a label-set that is not a candidate is in no set."""
        n_texts, n_labels = len(self.members), self.candidates.shape[1]
        truth = as_labels(labels, who="contains", n_labels=n_labels, n_texts=n_texts)
        places = {row.tobytes(): place for place, row in enumerate(self.candidates)}
        rows = [places.get(row.tobytes(), -1) for row in truth]
        return np.array([place >= 0 and self.members[i, place] for i, place in enumerate(rows)], dtype=np.bool_)
