"""The prediction set of one text."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from surelabel._core.validation import BoolArray, FloatArray, IntArray, check_count
from surelabel.exceptions import SearchLimitError, TruncationWarning
from surelabel.labels.label_sets import LabelSet

if TYPE_CHECKING:
    from surelabel.sets.prediction_sets import PredictionSets

# Members that are listed to find the shares of labels; larger sets are counted once for each open label.
_LISTED = 4096
# Members that iteration lists first; each further list is four times as long.
_FIRST = 256
# Open labels that a description names, and sizes up to which shares are given as "in 3 of 6".
_MOST_NAMED, _MOST_COUNTED = 8, 100


class PredictionSet:
    """The plausible label-sets of one text, {Y : p(Y) > significance}: counted, asked and listed on demand.

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
    >>> print(plausible.describe())
    2 label-sets; certain: grain; open: wheat (in 1 of 2)
    """

    def __init__(self, one: PredictionSets, row: int) -> None:
        self._one = one
        self._row = row

    def __repr__(self) -> str:
        return f"<PredictionSet of text {self._row}>"

    @property
    def size(self) -> int:
        """The exact number of label-sets; SearchLimitError, with bounds, if counting takes over work_limit steps."""
        return int(self._one.sizes()[0])

    @property
    def size_bounds(self) -> tuple[int, int]:
        """Certified (lower, upper) bounds of the size, equal if it is exact."""
        lower, upper = self._one.size_bounds()
        return int(lower[0]), int(upper[0])

    def __bool__(self) -> bool:
        return len(self._one.first(1)[0].rows) > 0

    def __contains__(self, label_set: Any) -> bool:
        return bool(self._one.contains(label_set[None] if isinstance(label_set, np.ndarray) else [set(label_set)])[0])

    def __iter__(self) -> Iterator[LabelSet]:
        n_before, number, is_all = 0, _FIRST, False
        while not is_all:
            found, _ = self._one.first(number)
            yield from self._one.texts.label_sets(found.rows[n_before:], found.members[n_before:])
            n_before, number, is_all = len(found.rows), 4 * number, bool(found.complete[0])
            if not is_all and n_before < number // 4:
                raise SearchLimitError(
                    f"The search for members of the prediction set of text {self._row} ended at the work limit, after "
                    f"{n_before:,} label-sets. Use a larger work_limit."
                )

    def top(self, k: int) -> list[tuple[LabelSet, float]]:
        """Return the k best members with their p-values, highest first."""
        return self._one.top(k)[0]

    def to_array(self, limit: int = 1_000_000) -> BoolArray:
        """Return members as 0/1 rows (m, k), best first; the first `limit`, with a warning, if there are more.

        Columns are those of the labels; of shortlists, those of the text's shortlist.
        """
        check_count("limit", limit, "to_array")
        found, _ = self._one.first(int(limit))
        if not found.complete[0] and self.size_bounds[1] > len(found.rows):
            words = f"The prediction set of text {self._row} has more than {len(found.rows):,} label-sets; the best of "
            warnings.warn(words + "them are returned. Give a larger 'limit' for more.", TruncationWarning, stacklevel=2)
        return found.members

    @property
    def certain(self) -> LabelSet:
        """Labels that all members have; none if the set is empty."""
        return self._one.label_sets(self._one.status()[0])[0]

    @property
    def possible(self) -> LabelSet:
        """Labels that some member has."""
        return self._one.label_sets(self._one.status()[1])[0]

    @property
    def open(self) -> LabelSet:
        """Labels that some members have, but not all."""
        certain, possible = self._one.status()
        return self._one.label_sets(possible & ~certain)[0]

    @property
    def excluded(self) -> LabelSet:
        """Labels that no member has; of shortlists, those that are listed."""
        impossible, columns = ~self._one.status()[1], self._one.texts.columns
        listed = True if columns is None else columns < self._one.texts.calibration.n_labels
        return self._one.label_sets(np.asarray(impossible & listed))[0]

    def inclusion_bounds(self, columns: IntArray | None = None) -> tuple[FloatArray, FloatArray]:
        """Return certified bounds of the share of members that have each column's label, (k,) each; 0 if empty.

        If `columns` are given, only theirs are worked out for sets that are too large to list; other open labels have
        bounds 0 and 1.
        """
        found, _ = self._one.first(_LISTED)
        if found.complete[0]:
            shares = found.members.sum(axis=0) / max(len(found.members), 1)
            return shares, shares
        certain, possible = (status[0] for status in self._one.status())
        (lower, upper), shares = self.size_bounds, np.stack([certain, possible]).astype(np.float64)
        open_columns = np.flatnonzero(possible & ~certain)
        for column in (open_columns if columns is None else np.intersect1d(columns, open_columns)).tolist():
            fewest, most = (int(sizes[0]) for sizes in self._one.without(column).size_bounds())
            shares[:, column] = max(0, lower - most) / max(lower, 1), min(1.0, (upper - fewest) / max(upper, 1))
        return shares[0], shares[1]

    def inclusion(self) -> FloatArray:
        """Return the share of members that have each column's label, (k,); SearchLimitError if it is not exact."""
        lower, upper = self.inclusion_bounds()
        if not np.array_equal(lower, upper):
            raise SearchLimitError(
                f"The prediction set of text {self._row} is too large for exact shares. Use inclusion_bounds."
            )
        return lower

    def describe(self) -> str:
        """Return the set in a sentence: its size, the certain labels, and the open ones with their shares."""
        columns = _likeliest_open(self._one)
        return _describe(self._one, self.size_bounds, columns, self.inclusion_bounds(columns))


def _likeliest_open(one: PredictionSets) -> IntArray:
    """Return the columns of the open labels to name, those whose presence costs least."""
    certain, possible = one.status()
    order = one.texts.search.costs.order[0]
    columns: IntArray = order[(possible & ~certain)[0, order]][:_MOST_NAMED]
    return columns


def _describe(
    one: PredictionSets, size: tuple[int, int], columns: IntArray, shares: tuple[FloatArray, FloatArray]
) -> str:
    """Return the prediction set of one text in a sentence; `shares` bounds the shares (k,) of labels."""
    (lower, upper), (low, high) = size, shares
    if upper == 0:
        return "no label-set is plausible"
    parts = [f"{lower:,}{f' to {upper:,}' if upper > lower else ''} label-set{'' if upper == 1 else 's'}"]
    is_certain, is_possible = one.status()
    certain = one.label_sets(is_certain)[0]
    if certain:
        parts.append(f"certain: {', '.join(sorted(map(str, certain)))}")
    words = []
    for column in columns[np.lexsort((columns, -low[columns]))].tolist():
        (name,) = one.label_sets(np.arange(len(low))[None] == column)[0]
        words.append(f"{name} ({_share(low[column], high[column], size)})")
    n_more = int((is_possible & ~is_certain).sum()) - len(words)
    words += [f"{n_more} more"] if n_more else []
    return "; ".join([*parts, f"open: {', '.join(words)}"] if words else parts)


def _share(low: float, high: float, size: tuple[int, int]) -> str:
    """Return a label's share of the members in words, or bounds of it."""
    if size[0] == size[1] <= _MOST_COUNTED and low == high:
        return f"in {round(low * size[0])} of {size[0]}"
    least, most = f"{low:.0%}", f"{high:.0%}"
    return f"in {least} of them" if least == most else f"in {least} to {most} of them"
