"""The prediction set of one text: it knows its size and members without listing them, and can be put in words."""

from __future__ import annotations

import collections
import dataclasses
import functools
import itertools
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence, Set
from typing import Any

import numpy as np

from surelabel._core.validation import BoolArray, FloatArray, IntArray, as_label_names, check_count
from surelabel._core.wording import count_words, label_sets_words
from surelabel.engines.base import Engine, Threshold
from surelabel.engines.bounds import MAX_TABLE, TABLE_CELLS
from surelabel.engines.sizes import Bounds, SizeBounds
from surelabel.exceptions import SearchLimitError, TruncationWarning
from surelabel.labels.label_sets import LabelSet, LabelView, as_label_set, as_row
from surelabel.sets.descriptions import Budget, Description, Facts, Members, build_description

# Members that are listed to describe a set; facts of more come from their costs.
_MAX_DESCRIBED_BY_LIST = 4096
# Labels that a description may name beside the certain ones, of a set that was counted and of one known by bounds.
_MOST_NAMED, _MOST_NAMED_INEXACT = 24, 6


class PredictionSet:
    """The plausible label-sets of one text: {Y : p(Y) > significance}.

    Supports `label_set in s` and iteration, best first, both without listing the rest. A label-set is a frozenset of
    label names, of indices if names are not known.

    Examples
    --------
    >>> from surelabel import ConformalLabelSets
    >>> predictor = ConformalLabelSets(label_names=["corn", "grain", "wheat"])
    >>> predictor = predictor.calibrate([[0.1, 0.9, 0.4]] * 9, [["grain"]] * 7 + [["grain", "wheat"]] * 2)
    >>> plausible = predictor.predict_set([[0.1, 0.9, 0.5]], significance=0.2)[0]
    >>> plausible.size, sorted(plausible.certain), sorted(plausible.open), sorted(plausible.excluded)
    (2, ['grain'], ['wheat'], ['corn'])
    >>> {"grain", "wheat"} in plausible
    True
    >>> [(sorted(label_set), round(p_value, 2)) for label_set, p_value in plausible.top(2)]
    [(['grain'], 0.3), (['grain', 'wheat'], 0.3)]
    """

    def __init__(
        self,
        engine: Engine,
        row: int,
        threshold: Threshold,
        tie_break: FloatArray | None,
        bounds: SizeBounds,
    ) -> None:
        self._engine = engine
        self._row = row
        self._threshold = threshold
        self._tie_break = tie_break
        # Sizes that are known already, of all texts of the engine.
        self._bounds = bounds

    def __repr__(self) -> str:
        if not self._bounds.known[self._row]:
            return f"<PredictionSet of text {self._row}>"
        return f"<PredictionSet of text {self._row}: {label_sets_words(*self.size_bounds)}>"

    @property
    def size(self) -> int:
        """Exact number of label-sets; SearchLimitError with the bounds if it cannot be had within the work limit."""
        lower, upper = self.size_bounds
        if lower != upper:
            raise SearchLimitError(
                f"The size of the prediction set of text {self._row} lies between {count_words(lower)} and "
                f"{count_words(upper)}; counting it exactly takes more than {self._engine.work_limit:,} steps. "
                "Use size_bounds, refine(), or a larger work_limit.",
                (lower, upper),
            )
        return lower

    def __len__(self) -> int:
        if self.size > sys.maxsize:
            raise OverflowError(
                f"len() of the prediction set of text {self._row} does not fit Python's limit: it has "
                f"{count_words(self.size)} label-sets. Use its 'size'."
            )
        return self.size

    def __bool__(self) -> bool:
        return self.size_bounds[1] > 0

    @property
    def size_bounds(self) -> Bounds:
        """Certified (lower, upper) bounds of the size, equal if it is exact."""
        if not self._bounds.known[self._row]:
            self._bounds[self._row] = self._count(self._engine)
        return self._bounds[self._row]

    def _count(self, engine: Engine) -> Bounds:
        """Count or bound the members."""
        return engine.bounds(np.array([self._threshold]), slice(self._row, self._row + 1))[0]

    def refine(self, relative_gap: float = 0.01, work_limit: int | None = None) -> Bounds:
        """Tighten the size's bounds until upper <= (1 + relative_gap) lower, or memory or work run out.

        A gap of 0 asks for the exact size. With a `work_limit`, exact counting is tried with so many steps, before
        finer tables are made. `size_bounds` has the new bounds from now on too.
        """
        lower, upper = self.size_bounds
        if lower < upper and work_limit is not None:
            lower, upper = self._count(self._engine.with_work_limit(work_limit))
        cells = TABLE_CELLS
        while upper > (1.0 + relative_gap) * lower and cells < MAX_TABLE // 2:
            cells *= 4
            finer = self._engine.finer_bounds(self._row, self._threshold, cells)
            lower, upper = max(lower, finer[0]), min(upper, finer[1])
            if cells * (self._engine.limits[1] + 1) > MAX_TABLE:
                break
        self._bounds[self._row] = (lower, upper)
        return lower, upper

    def __contains__(self, label_set: Any) -> bool:
        one = self._engine[self._row : self._row + 1]
        labels = one.as_labels(as_row(label_set), who="contains")
        return bool(one.contains(np.array([self._threshold]), labels)[0])

    def __iter__(self) -> Iterator[LabelSet]:
        names = self._engine.calibration.label_names
        return (as_label_set(member, names) for _, member in self._engine.iterate(self._row, self._threshold))

    @property
    def label_sets(self) -> Iterator[LabelSet]:
        """The members, best first, one at a time."""
        return iter(self)

    def top(self, k: int) -> list[tuple[LabelSet, float]]:
        """Return the k best members with their p-values, highest first; fewer if there are fewer."""
        check_count("k", k, who="top")
        scored = list(itertools.islice(self._engine.iterate(self._row, self._threshold), int(k)))
        p_values = self._engine.p_values(np.full(len(scored), self._row), scored, self._tie_break)
        names = self._engine.calibration.label_names
        return [(as_label_set(member, names), p) for (_, member), p in zip(scored, p_values, strict=True)]

    def to_array(self, limit: int = 1_000_000) -> Any:
        """Return the members as 0/1 rows (m, d), best first; as a bool CSR array if probabilities were sparse.

        If there are more than `limit`, the best of them are returned, with a TruncationWarning.
        """
        check_count("limit", limit, who="to_array")
        members = self._engine.members(self._row, self._threshold, int(limit))
        if members.shape[0] == limit and self.size_bounds[1] > limit:
            warnings.warn(
                f"The prediction set of text {self._row} has {count_words(self.size_bounds[0])} label-sets or more; "
                f"the best {limit:,} are returned. Give a larger 'limit' for more.",
                TruncationWarning,
                stacklevel=2,
            )
        return members

    def _labels(self, *, absent: bool | None, present: bool) -> Set[Any]:
        """Return the labels that some member has (or none has) present, and absent unless that does not matter."""
        labels, reachable, others = self._engine.reach(self._row, self._threshold)
        chosen, unlisted = reachable[:, 1] == present, others[1] == present
        if absent is not None:
            chosen, unlisted = chosen & (reachable[:, 0] == absent), unlisted and others[0] == absent
        calibration = self._engine.calibration
        if unlisted and len(labels) < calibration.n_labels:
            listed = labels.tolist()
            return LabelView(labels[chosen].tolist(), listed, calibration.n_labels, calibration.label_index)
        return as_label_set(labels[chosen].tolist(), calibration.label_names)

    @property
    def certain(self) -> Set[Any]:
        """Labels that all members have (none if the set is empty)."""
        return self._labels(absent=False, present=True)

    @property
    def open(self) -> Set[Any]:
        """Labels that some members have, but not all."""
        return self._labels(absent=True, present=True)

    @property
    def possible(self) -> Set[Any]:
        """Labels that some member has: the certain and the open ones."""
        return self._labels(absent=None, present=True)

    @property
    def excluded(self) -> Set[Any]:
        """Labels that no member has."""
        return self._labels(absent=None, present=False)

    def listed_inclusion_bounds(self) -> tuple[IntArray, FloatArray, tuple[float, float]]:
        """Return the labels that the text lists, (m,), all if probabilities were dense, and bounds of their shares.

        These are certified (lower, upper) bounds of the share of members that have each of the labels, (m, 2), and of
        those that have any one label that is not listed.
        """
        labels = self._engine.listed(self._row)
        others = [-1] if len(labels) < self._engine.n_labels else []
        shares = self._shares([*labels.tolist(), *others])
        listed = np.array(shares[: len(labels)], dtype=np.float64).reshape(len(labels), 2)
        return labels, listed, shares[-1] if others else (0.0, 0.0)

    def inclusion_bounds(self) -> tuple[FloatArray, FloatArray]:
        """Return certified bounds of the share of members that have each label, (d,) each; 0 for an empty set.

        `listed_inclusion_bounds` is the same without arrays of all labels.
        """
        labels, listed, unlisted = self.listed_inclusion_bounds()
        shares = np.empty((2, self._engine.n_labels))
        shares[:] = np.array(unlisted)[:, None]
        shares[:, labels] = listed.T
        return shares[0], shares[1]

    def _shares(self, labels: Sequence[int]) -> list[tuple[float, float]]:
        """Return bounds of the share of members that have each of some labels."""
        lower, upper = self.size_bounds
        if upper == 0:
            return [(0.0, 0.0)] * len(labels)
        counts = self._engine.with_label(self._row, self._threshold, labels)
        return [
            (0.0 if fewest == 0 else fewest / upper, 0.0 if most == 0 else min(1.0, most / max(lower, 1)))
            for fewest, most in counts
        ]

    def inclusion(self) -> FloatArray:
        """Return the share of members that have each label, (d,); zeros for an empty set.

        SearchLimitError if it is known by bounds only; `inclusion_bounds` gives them.
        """
        lower, upper = self.inclusion_bounds()
        if not np.array_equal(lower, upper):
            k = int(np.argmax(upper - lower))
            raise SearchLimitError(
                f"The share of the members of text {self._row}'s prediction set that have label {k} lies between "
                f"{lower[k]:.3g} and {upper[k]:.3g}. Use inclusion_bounds, or a larger work_limit."
            )
        return lower

    def describe(self, label_names: Sequence[str] | None = None) -> Description:
        """Return the set in a few statements, each true of every member; `str` of it is a sentence.

        Its `complete` tells whether it describes the members and no other label-set; `to_dict()` is for JSON,
        `to_svg()` for a picture. Names are those of the predictor by default.

        Examples
        --------
        >>> from surelabel import ConformalLabelSets
        >>> predictor = ConformalLabelSets(label_names=["corn", "grain", "oil", "wheat"])
        >>> predictor = predictor.calibrate([[0.1, 0.9, 0.2, 0.4]] * 9, [["grain"]] * 7 + [["grain", "wheat"]] * 2)
        >>> print(predictor.predict_set([[0.1, 0.9, 0.1, 0.5]], significance=0.2)[0].describe())
        certain: grain; open: wheat (50 %); 2 label-sets
        """
        engine, row = self._engine.for_description(self._row)
        calibration = engine.calibration
        size_bounds = self.size_bounds
        names = as_label_names(label_names, calibration.n_labels, who="describe")
        facts, best = self._facts(engine, row) if self else (None, None)
        if best is None:
            # Bounds of a set's size may leave open whether it is empty.
            size_bounds, best = (0, 0), np.zeros(calibration.n_labels, dtype=np.bool_)
        return build_description(
            facts,
            engine.reach(row, self._threshold).reachable,
            best,
            size_bounds,
            shares=self._shares,
            names=names or calibration.label_names,
            n_named=_MOST_NAMED if size_bounds[0] == size_bounds[1] else _MOST_NAMED_INEXACT,
        )

    def _facts(self, engine: Engine, row: int) -> tuple[Facts | None, BoolArray | None]:
        """Return the members if they are few, else their costs, and the best member; None twice if there is none."""
        if self.size_bounds[1] <= _MAX_DESCRIBED_BY_LIST:
            members = engine.members(row, self._threshold, _MAX_DESCRIBED_BY_LIST)
            return (Members(members), members[0]) if len(members) else (None, None)
        first = next(engine.iterate(row, self._threshold), None)
        if first is None:
            return None, None
        return Budget(*engine.relaxation(row, self._threshold), engine.limits), engine.as_rows([first[1]])[0]


def describe_few(members: Sequence[Sequence[int]], name: Callable[[int], str]) -> str:
    """Return what `PredictionSet.describe` says of a set with these members, ascending labels each, best first."""
    # Small sets have few patterns: all but the names is worked out once for each. After the best, any order will do.
    # Labels are in the order of a description, so that sets that differ in names alone have the same pattern.
    counts = collections.Counter(itertools.chain.from_iterable(members))
    best = members[0] if members else ()
    labels = sorted(counts, key=lambda label: (-counts[label], label not in best, label))
    places = {label: place for place, label in enumerate(labels)}
    pattern = [tuple(sorted([places[label] for label in member])) for member in members]
    return _words_of_pattern((*pattern[:1], *sorted(pattern[1:]))).format(*map(name, [*labels, *best]))


@functools.lru_cache(maxsize=1024)
def _words_of_pattern(pattern: tuple[tuple[int, ...], ...]) -> str:
    """Describe members, with {0}, {1}, ... for the names of the labels that they have, then of the best member's."""
    n_labels = 1 + max((label for member in pattern for label in member), default=-1)
    rows = np.zeros((len(pattern), n_labels), dtype=np.bool_)
    for row, member in zip(rows, pattern, strict=True):
        row[list(member)] = True
    counts = (rows.sum(axis=0) / max(len(rows), 1)).tolist()
    description = build_description(
        Members(rows) if pattern else None,
        np.column_stack([(~rows).any(axis=0), rows.any(axis=0)]),
        rows[0] if pattern else rows,
        (len(rows), len(rows)),
        shares=lambda labels: [(counts[k], counts[k]) for k in labels],
        names=tuple(f"{{{k}}}" for k in range(n_labels)),
        n_named=_MOST_NAMED,
    )
    n_best = len(pattern[0]) if pattern else 0
    best_guess = tuple(f"{{{k}}}" for k in range(n_labels, n_labels + n_best))
    return str(dataclasses.replace(description, best_guess=best_guess))
