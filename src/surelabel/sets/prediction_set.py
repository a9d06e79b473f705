"""The prediction set of one text: it knows its size and members without listing them, and can be put in words."""

from __future__ import annotations

import dataclasses
import itertools
import warnings
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from surelabel._core.validation import BoolArray, FloatArray, as_label_names, check_count
from surelabel._core.wording import count_words, label_sets_words
from surelabel.engines import SEARCHES, Bounds, Cut, engine_of
from surelabel.engines.counting import MAX_TABLE, TABLE_CELLS
from surelabel.engines.cut import Words, n_words, unpack
from surelabel.exceptions import SearchLimitError, TruncationWarning
from surelabel.labels.label_sets import LabelSet, as_label_set, as_row, to_label_sets
from surelabel.sets.descriptions import Budget, Description, Facts, Members, build_description

if TYPE_CHECKING:
    from surelabel.sets.prediction_sets import PredictionSets

__all__ = ["PredictionSet"]

# Members that are listed to describe a set; facts of more come from their costs.
_MAX_DESCRIBED_BY_LIST = 4096
# Labels that a description may name beside the certain ones, of a set that was counted and of one known by bounds.
_MOST_NAMED, _MOST_NAMED_INEXACT = 24, 6


class PredictionSet:
    """The label-sets that stay plausible for one text: {Y : p(Y) > significance}.

    Supports `label_set in s` and iteration, best first, both without listing the rest. A label-set is a frozenset of
    label names where names are known, of indices where not.

    Examples
    --------
    >>> from surelabel import ConformalLabelSets
    >>> predictor = ConformalLabelSets(label_names=["corn", "grain", "wheat"])
    >>> predictor = predictor.calibrate([[0.1, 0.9, 0.4]] * 9, [["grain"]] * 7 + [["grain", "wheat"]] * 2)
    >>> plausible = predictor.predict_set([[0.1, 0.9, 0.5]], significance=0.2)[0]
    >>> plausible.size, sorted(plausible.certain), sorted(plausible.possible)
    (2, ['grain'], ['grain', 'wheat'])
    >>> {"grain", "wheat"} in plausible
    True
    >>> [(sorted(label_set), round(p_value, 2)) for label_set, p_value in plausible.top(2)]
    [(['grain'], 0.3), (['grain', 'wheat'], 0.3)]
    """

    def __init__(self, parent: PredictionSets, row: int) -> None:
        self._parent = parent
        self._row = row

    @property
    def _cut(self) -> Cut:
        return self._parent._cut

    @property
    def _one(self) -> slice:
        return slice(self._row, self._row + 1)

    def __repr__(self) -> str:
        if not self._parent._bounds.known[self._row]:
            return f"<PredictionSet of text {self._row}>"
        lower, upper = self.size_bounds
        return f"<PredictionSet of text {self._row}: {label_sets_words(lower, upper)}>"

    @property
    def size(self) -> int:
        """Exact number of label-sets; SearchLimitError with the bounds where it cannot be had within the work limit."""
        lower, upper = self.size_bounds
        if lower != upper:
            raise SearchLimitError(
                f"The size of the prediction set of text {self._row} lies between {count_words(lower)} and "
                f"{count_words(upper)}; counting it exactly takes more than {self._cut.work_limit:,} steps. "
                "Use size_bounds, refine(), or a larger work_limit.",
                (lower, upper),
            )
        return lower

    def __len__(self) -> int:
        return self.size

    def __bool__(self) -> bool:
        return self.size_bounds[1] > 0

    @property
    def size_bounds(self) -> Bounds:
        """Certified (lower, upper) bounds of the size, equal where it is exact."""
        self._parent._fill_bounds(range(self._row, self._row + 1))
        return self._parent._bounds[self._row]

    def refine(self, relative_gap: float = 0.01, work_limit: int | None = None) -> Bounds:
        """Tighten the size's bounds until upper <= (1 + relative_gap) lower, or memory or work run out.

        Parameters
        ----------
        relative_gap : float
            0 asks for the exact size.
        work_limit : int, optional
            Steps to try exact counting with, before finer tables are made.

        Returns
        -------
        (lower, upper), which `size_bounds` has from now on too.
        """
        lower, upper = self.size_bounds
        if lower == upper:
            return lower, upper
        if work_limit is not None:
            cut = dataclasses.replace(self._cut, work_limit=work_limit)
            lower, upper = SEARCHES[self._parent._search].bounds(cut, range(self._row, self._row + 1))[0]
        engine = engine_of(self._cut.calibration)
        cells = TABLE_CELLS
        while upper > (1.0 + relative_gap) * lower and cells < MAX_TABLE // 2:
            cells *= 4
            finer = engine.bounds_with_cells(self._cut, self._row, cells)
            lower, upper = max(lower, finer[0]), min(upper, finer[1])
            if cells * (self._cut.calibration.max_labels + 1) > MAX_TABLE:
                break
        self._parent._bounds[self._row] = (lower, upper)
        return lower, upper

    def __contains__(self, label_set: Any) -> bool:
        return bool(self._parent[self._row : self._row + 1].contains(as_row(label_set))[0])

    def _named(self, words: Words) -> list[LabelSet]:
        """Return packed label-sets as frozensets."""
        calibration = self._cut.calibration
        return to_label_sets(unpack(words, calibration.n_labels), calibration.label_names)

    def __iter__(self) -> Iterator[LabelSet]:
        for _, words in SEARCHES[self._parent._search].iterate(self._cut, self._row):
            yield self._named(words[None, :])[0]

    @property
    def label_sets(self) -> Iterator[LabelSet]:
        """The members, best first, one at a time."""
        return iter(self)

    def top(self, k: int) -> list[tuple[LabelSet, float]]:
        """Return the k best members with their p-values, highest first; fewer where there are fewer."""
        check_count("k", k, who="top")
        names = self._cut.calibration.label_names
        return [(as_label_set(labels, names), p_value) for labels, p_value in self._top_indices(int(k))]

    def _top_indices(self, k: int) -> list[tuple[list[int], float]]:
        """Return the k best members as ascending label indices, with their p-values."""
        best = list(itertools.islice(SEARCHES[self._parent._search].iterate(self._cut, self._row), k))
        totals = np.array([total for total, _ in best])
        words = np.array([packed for _, packed in best], dtype=np.uint64)
        words = words.reshape(len(best), n_words(self._cut.calibration.n_labels))
        return self._parent._indexed(np.full(len(best), self._row), totals, words)

    def to_array(self, limit: int = 1_000_000) -> BoolArray:
        """Return the members as 0/1 rows (m, d), best first.

        Where there are more than `limit`, the best of them are returned, with a TruncationWarning.
        """
        check_count("limit", limit, who="to_array")
        words = SEARCHES[self._parent._search].members(self._cut, self._row, int(limit))
        self._warn_if_cut(len(words), limit)
        return unpack(words, self._cut.calibration.n_labels)

    def _warn_if_cut(self, found: int, limit: int) -> None:
        """Warn where `limit` members are not all."""
        if found == limit and self.size_bounds[1] > limit:
            warnings.warn(
                f"The prediction set of text {self._row} has {count_words(self.size_bounds[0])} label-sets or more; "
                f"the best {limit:,} are returned. Give a larger 'limit' for more.",
                TruncationWarning,
                stacklevel=3,
            )

    def _reachable(self) -> BoolArray:
        """Return (d, 2): whether some member has the label absent, and whether some has it present."""
        return np.asarray(self._parent._reachable(self._one)[0])

    def _labels(self, mask: BoolArray) -> LabelSet:
        """Return the labels of a mask (d,) as names or indices."""
        return to_label_sets(mask[None, :], self._cut.calibration.label_names)[0]

    @property
    def certain(self) -> LabelSet:
        """Labels that all members have (none where the set is empty)."""
        reachable = self._reachable()
        return self._labels(reachable[:, 1] & ~reachable[:, 0])

    @property
    def possible(self) -> LabelSet:
        """Labels that some member has, the certain ones among them."""
        return self._labels(self._reachable()[:, 1])

    @property
    def excluded(self) -> LabelSet:
        """Labels that no member has."""
        return self._labels(~self._reachable()[:, 1])

    def inclusion_bounds(self) -> tuple[FloatArray, FloatArray]:
        """Return certified bounds of the share of members that have each label, (d,) each; 0 for an empty set."""
        n_labels = self._cut.calibration.n_labels
        shares = np.zeros((2, n_labels))
        if self.size_bounds[1] > 0:
            shares[:] = np.transpose(self._shares(range(n_labels)))
        return shares[0], shares[1]

    def _shares(self, labels: Sequence[int]) -> list[tuple[float, float]]:
        """Return bounds of the share of members that have each of some labels."""
        return self._as_shares(SEARCHES[self._parent._search].with_label(self._cut, self._row, labels))

    def _as_shares(self, counts: Sequence[Bounds]) -> list[tuple[float, float]]:
        """Return bounds of numbers of members as bounds of their share of all."""
        lower, upper = self.size_bounds
        return [
            (0.0 if fewest == 0 else fewest / upper, 0.0 if most == 0 else min(1.0, most / max(lower, 1)))
            for fewest, most in counts
        ]

    def inclusion(self) -> FloatArray:
        """Return the share of members that have each label, (d,); zeros for an empty set.

        Raises
        ------
        SearchLimitError
            Where it is known by bounds only; `inclusion_bounds` gives them.
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

        Parameters
        ----------
        label_names : sequence of str, optional
            Names to use, those of the predictor by default.

        Returns
        -------
        Description
            With `complete`: whether it describes the members and no other label-set; `to_dict()` for JSON and
            `to_svg()` for a picture.

        Examples
        --------
        >>> from surelabel import ConformalLabelSets
        >>> predictor = ConformalLabelSets(label_names=["corn", "grain", "oil", "wheat"])
        >>> predictor = predictor.calibrate([[0.1, 0.9, 0.2, 0.4]] * 9, [["grain"]] * 7 + [["grain", "wheat"]] * 2)
        >>> print(predictor.predict_set([[0.1, 0.9, 0.1, 0.5]], significance=0.2)[0].describe())
        always: grain; often: wheat (50 %); 2 label-sets
        """
        size_bounds = self.size_bounds
        calibration = self._cut.calibration
        names = as_label_names(label_names, calibration.n_labels, who="describe")
        best = np.zeros(calibration.n_labels, dtype=np.bool_)
        facts: Facts | None = None
        first = next(SEARCHES[self._parent._search].iterate(self._cut, self._row), None) if self else None
        if first is None:
            # Bounds of a set's size may leave open whether it is empty.
            size_bounds = (0, 0)
        else:
            best = unpack(first[1][None, :], calibration.n_labels)[0]
            facts = self._facts()
        return build_description(
            facts,
            self._reachable(),
            best,
            size_bounds,
            shares=self._shares,
            names=names or calibration.label_names,
            n_named=_MOST_NAMED if size_bounds[0] == size_bounds[1] else _MOST_NAMED_INEXACT,
        )

    def _facts(self) -> Facts:
        """Return what a description is made from: the members where they are few, else their costs."""
        if self.size_bounds[1] <= _MAX_DESCRIBED_BY_LIST:
            return Members(self.to_array(_MAX_DESCRIBED_BY_LIST))
        relaxation = engine_of(self._cut.calibration).relaxation(self._cut, self._row)
        return Budget(*relaxation, self._cut.calibration.limits)
