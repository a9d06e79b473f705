"""A prediction set in one sentence."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from surelabel._core.validation import FloatArray, IntArray

if TYPE_CHECKING:
    from surelabel.sets.prediction_sets import PredictionSets

# Open labels that are named, and sizes up to which shares are given as "in 3 of 6".
_MOST_NAMED, _MOST_COUNTED = 8, 100


def likeliest_open(one: PredictionSets) -> IntArray:
    """Return the columns of the open labels to name, those whose presence costs least."""
    certain, possible = one.status()
    order = one.texts.search.costs.order[0]
    columns: IntArray = order[(possible & ~certain)[0, order]][:_MOST_NAMED]
    return columns


def describe(
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
