"""Parts of the kernel of listed label-sets as arrays: what stands for them as long as the kernel is not compiled.

Loops over thousands of nodes take milliseconds as Python, and compiling them takes seconds. What is written is the same
bit for bit: sums and products are of the same numbers in the same order. Only in `flag_nodes` logarithms may differ
in the last bit, which is far within its margin.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from surelabel._kernels.mixture_arrays import LOG_2, MEMBER, OPEN, WITHIN

Array = Any


def load_text(texts: Any, i: int, listing: Any, settings: Any, scratch: Any) -> float:
    """Load the moves of text i; return the sum of the costs of all labels absent, in plain arithmetic."""
    row, places, labels, summed = i, listing.used, listing.used, slice(None)
    n_others = 0
    if len(texts.starts):
        row, places = 0, slice(texts.starts[i], texts.starts[i + 1])
        labels, summed = texts.labels[places], places
        n_others = settings.n_labels - len(labels)
    gains, ratios = texts.present[row, places] - texts.absent[row, places], texts.ratios[row, places]
    scratch.gains[labels], scratch.ratios[labels] = gains, ratios
    if settings.removes:
        scratch.gains[settings.n_labels + labels], scratch.ratios[settings.n_labels + labels] = -gains, 1.0 / ratios
    return _sum(texts.absent[row, summed]) + n_others * float(texts.group[0])


def sum_absent(costs: Array, row: int, places: Any, n_partials: int, partials: Array) -> int:
    """Add costs to a sum that is kept as partials: its rounded value, what that leaves, and so on until nothing is."""
    terms = [*partials[:n_partials].tolist(), *costs[row, slice(*places)].tolist()]
    rounded: list[float] = []
    while rest := math.fsum(terms):
        rounded.append(rest)
        terms.append(-rest)
    partials[: len(rounded)] = rounded[::-1]
    return len(rounded)


def fill_values(base: float, listing: Any, scratch: Any) -> float:
    """Write the running L of all nodes; return the sum of their terms, relative to the empty set's."""
    values, weights, parents = scratch.values, scratch.weights, listing.parents
    gains, ratios = scratch.gains[listing.moves], scratch.ratios[listing.moves]
    values[0], weights[0] = base, 1.0
    for nodes in _levels(listing, len(scratch.gains) // 2):
        values[nodes] = values[parents[nodes]] + gains[nodes]
        weights[nodes] = weights[parents[nodes]] * ratios[nodes]
    terms = listing.factors * weights
    whole = len(terms) - len(terms) % 4
    a, b, c, d = (_sum(terms[first:whole:4]) for first in range(4))
    return (_sum(np.append(a, terms[whole:])) + b) + (c + d)


def _levels(listing: Any, n_labels: int) -> list[Array]:
    """Return nodes in groups, each after the one that has the parents of its nodes; without node 0."""
    depths = np.diff(listing.starts)
    if (listing.moves >= n_labels).any():  # some nodes have a label fewer than their parents
        depths, above = np.zeros(len(depths), dtype=np.int64), np.arange(len(depths))
        while above.any():
            depths += above > 0
            above = listing.parents[above]
    order = np.argsort(depths, kind="stable")
    return np.split(order, np.cumsum(np.bincount(depths)))[1:-1]


def exact_sum_of(texts: Any, i: int, n_base: int, listing: Any, node: int, scratch: Any) -> float:
    """Return L of a node in text i, correctly rounded: the sum of all labels absent, with those it has changed."""
    labels = listing.labels[listing.starts[node] : listing.starts[node + 1]]
    terms = scratch.base[:n_base].tolist()
    if len(texts.starts):
        listed = slice(texts.starts[i], texts.starts[i + 1])
        places = listed.start + np.searchsorted(texts.labels[listed], labels)
        is_listed = np.isin(labels, texts.labels[listed])
        terms += np.repeat(texts.group[:2] * (-1.0, 1.0), np.count_nonzero(~is_listed)).tolist()
        i, labels = 0, places[is_listed]
    return math.fsum([*terms, *(-texts.absent[i, labels]).tolist(), *texts.present[i, labels].tolist()])


def _sum(terms: Array) -> float:
    """Add numbers up from the first to the last, as a loop does: `np.sum` has another order."""
    return float(np.cumsum(terms)[-1]) if len(terms) else 0.0


def flag_nodes(
    limits: Any,
    log_z: float,
    thresholds: Any,
    listing: Any,
    candidates: Array,
    settings: Any,
    values: Array,
    flags: Any,
) -> int:
    """Flag members, and candidates within the shifted threshold; return how many nodes are left open."""
    farthest, margin = limits
    threshold, shifted = thresholds
    nodes = np.flatnonzero((values <= farthest) & candidates)
    value, log_prior = values[nodes], listing.log_prior[nodes]
    far = value + settings.shift
    near = settings.temperature * value + log_z - log_prior - settings.log_weight
    bound, gap = np.minimum(far, near), np.abs(far - near)
    is_member = bound <= threshold - margin
    is_open = ~is_member & (bound - np.minimum(LOG_2, 1.0 / (1.0 + gap + 0.5 * gap * gap)) <= threshold + margin)
    # -log(exp(-far) + exp(-near))
    total = np.maximum(bound[is_open] - np.log1p(np.exp(-gap[is_open])), 0.0)
    is_member[is_open] = total <= threshold
    is_open[is_open] = np.abs(total - threshold) <= margin
    is_open |= np.abs(value - shifted) <= margin
    flags[:] = 0
    flags[nodes] = np.where(is_open, OPEN, is_member * MEMBER + (value <= shifted) * WITHIN)
    return int(np.count_nonzero(is_open))


def count_flags(j: int, listing: Any, found: Any) -> None:
    """Count what is flagged as answer j."""
    is_member = (found.flags & MEMBER) > 0
    found.counts[j] += np.count_nonzero(is_member), np.count_nonzero(found.flags & WITHIN)
    if len(found.with_label):
        labels = listing.labels[np.repeat(is_member, np.diff(listing.starts))]
        found.with_label[j] += np.bincount(labels, minlength=found.with_label.shape[1]).astype(np.int32)


def second_bound(log_z: float, listing: Any, candidates: Array, settings: Any, scratch: Any) -> float:
    """Return what the totals of two candidates are within; of one if there is one; inf if there is none."""
    values, log_prior = scratch.values[candidates], listing.log_prior[candidates]
    near = settings.temperature * values + log_z - log_prior - settings.log_weight
    bounds = np.sort(np.append(np.minimum(values + settings.shift, near), (math.inf, math.inf)))
    return float(bounds[1] if bounds[1] < math.inf else bounds[0])
