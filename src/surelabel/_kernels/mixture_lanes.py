"""Count listed label-sets of a mixture for several texts side by side.

Texts go through the list together, so that it is read once for all of them and their products run side by side. The
weights leave few nodes of each text to look at; no other node is a member or within the shifted threshold.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from surelabel._kernels.compiling import kernel
from surelabel._kernels.mixture import (
    LOG_2,
    is_usable,
    judge,
    judge_exactly,
    load_text,
    make_scratch,
    margin_of,
    scan_text,
    unload_text,
)

Array = Any

# Texts side by side; `_fill` and `_sort_nodes` are written out for so many.
LANES = 8
# With lower temperatures, the weight of a label-set does not say whether its L is small.
_LEAST_TEMPERATURE = 1e-3


class Lanes(NamedTuple):
    """Memory for LANES texts: gains (d, LANES), ratios by move (2 d, LANES), weights of nodes (N, LANES).

    base, sums of terms, margins of error: (LANES,). limits (5, LANES): by how much to multiply a weight or a term so
    that it reaches 1 if the node may be a member, by its weight or by its term; is a member by its term; may be within;
    is within. hits (LANES, N): nodes that this leaves open, n_hits (LANES,) of them. counts (2, LANES): others that are
    members, and those of them that are within.
    """

    gains: Array
    ratios: Array
    weights: Array
    base: Array
    sums: Array
    margins: Array
    limits: Array
    hits: Array
    n_hits: Array
    counts: Array


@kernel
def _make_lanes(listing: Any, settings: Any) -> Any:
    """Make memory for LANES texts."""
    n_nodes, n_moves = listing.parents.shape[0], (2 if settings.removes else 1) * settings.n_labels
    return Lanes(
        np.empty((settings.n_labels, LANES)),
        np.ones((n_moves, LANES)),
        np.ones((n_nodes, LANES)),
        np.zeros(LANES),
        np.empty(LANES),
        np.empty(LANES),
        np.empty((5, LANES)),
        np.empty((LANES, n_nodes + 1), dtype=np.int64),
        np.empty(LANES, dtype=np.int64),
        np.empty((2, LANES), dtype=np.int64),
    )


@kernel
def _load(texts: Any, first: int, n_texts: int, listing: Any, settings: Any, scratch: Any, lanes: Any) -> None:
    """Load the moves of texts from `first` on, the last one again if there are too few.

    Lanes are gone through in here: handing over so many arrays takes longer than the work on one text.
    """
    gains, ratios, bases, used = lanes.gains, lanes.ratios, lanes.base, listing.used
    is_plain = texts.starts.shape[0] == 0 and not settings.removes
    absent, present, own = texts.absent, texts.present, texts.ratios
    for lane in range(LANES):
        i = min(first + lane, n_texts - 1)
        if is_plain:
            base = 0.0
            for k in range(settings.n_labels):
                base += absent[i, k]
            for j in range(used.shape[0]):
                label = used[j]
                gains[label, lane] = present[i, label] - absent[i, label]
                ratios[label, lane] = own[i, label]
            bases[lane] = base
            continue
        bases[lane] = load_text(texts, i, listing, settings, scratch)
        for label in used:
            gains[label, lane] = scratch.gains[label]
            ratios[label, lane] = scratch.ratios[label]
            if settings.removes:
                ratios[settings.n_labels + label, lane] = scratch.ratios[settings.n_labels + label]
        unload_text(texts, i, settings, scratch)


@kernel
def _fill(listing: Any, lanes: Any) -> None:
    """Write the weights of all nodes, relative to the empty set's, and sum their terms.

    Written out, and indexed by two numbers: eight products become two instructions, and no view of a row is made.
    """
    parents, moves, factors = listing.parents, listing.moves, listing.factors
    weights, ratios, sums = lanes.weights, lanes.ratios, lanes.sums
    first = factors[0]
    s0, s1, s2, s3, s4, s5, s6, s7 = first, first, first, first, first, first, first, first
    for node in range(1, parents.shape[0]):
        parent, move, factor = parents[node], moves[node], factors[node]
        w0 = weights[parent, 0] * ratios[move, 0]
        w1 = weights[parent, 1] * ratios[move, 1]
        w2 = weights[parent, 2] * ratios[move, 2]
        w3 = weights[parent, 3] * ratios[move, 3]
        w4 = weights[parent, 4] * ratios[move, 4]
        w5 = weights[parent, 5] * ratios[move, 5]
        w6 = weights[parent, 6] * ratios[move, 6]
        w7 = weights[parent, 7] * ratios[move, 7]
        weights[node, 0] = w0
        weights[node, 1] = w1
        weights[node, 2] = w2
        weights[node, 3] = w3
        weights[node, 4] = w4
        weights[node, 5] = w5
        weights[node, 6] = w6
        weights[node, 7] = w7
        s0, s1, s2, s3 = s0 + factor * w0, s1 + factor * w1, s2 + factor * w2, s3 + factor * w3
        s4, s5, s6, s7 = s4 + factor * w4, s5 + factor * w5, s6 + factor * w6, s7 + factor * w7
    sums[0], sums[1], sums[2], sums[3], sums[4], sums[5], sums[6], sums[7] = s0, s1, s2, s3, s4, s5, s6, s7


@kernel
def _limit(first: int, thresholds: Array, shifted: Array, settings: Any, lanes: Any) -> None:
    """Write the limits of all lanes; logarithms of weights and terms are off by less than the margin."""
    bases, sums, limits, margins = lanes.base, lanes.sums, lanes.limits, lanes.margins
    temperature = settings.temperature
    for lane in range(LANES):
        i = min(first + lane, thresholds.shape[0] - 1)
        base, total, threshold = bases[lane], sums[lane], thresholds[i]
        margin = margin_of(base, threshold, settings)
        margins[lane] = margin
        if not is_usable(total):
            limits[:, lane] = 0.0
            lanes.weights[1:, lane] = 0.0
            continue
        wide = 2.0 * (1.0 + temperature) * margin
        farthest = threshold + LOG_2 - settings.shift
        limits[0, lane] = min(np.exp(temperature * (farthest - base) + wide), 1e300)
        limits[1, lane] = min(np.exp(threshold + LOG_2 + settings.log_weight + wide) / total, 1e300)
        limits[2, lane] = min(np.exp(threshold + settings.log_weight - wide) / total, 1e300)
        limits[3, lane] = min(np.exp(temperature * (shifted[i] - base) + wide), 1e300)
        limits[4, lane] = min(np.exp(temperature * (shifted[i] - base) - wide), 1e300)


@kernel
def _sort_nodes(listing: Any, candidates: Array, lanes: Any) -> None:
    """Count the candidates of each lane that are surely members, and list those that may be.

    What must reach 1 in some lane reaches it in the sum over lanes, which leaves out most nodes at once.
    """
    weights, factors, limits = lanes.weights, listing.factors, lanes.limits
    hits, n_hits, counts = lanes.hits, lanes.n_hits, lanes.counts
    n_hits[:] = 0
    counts[:] = 0
    a0, a1, a2, a3 = limits[0, 0], limits[0, 1], limits[0, 2], limits[0, 3]
    a4, a5, a6, a7 = limits[0, 4], limits[0, 5], limits[0, 6], limits[0, 7]
    b0, b1, b2, b3 = limits[1, 0], limits[1, 1], limits[1, 2], limits[1, 3]
    b4, b5, b6, b7 = limits[1, 4], limits[1, 5], limits[1, 6], limits[1, 7]
    for node in range(factors.shape[0]):
        f = factors[node]
        m0, m1 = weights[node, 0] * (a0 + f * b0), weights[node, 1] * (a1 + f * b1)
        m2, m3 = weights[node, 2] * (a2 + f * b2), weights[node, 3] * (a3 + f * b3)
        m4, m5 = weights[node, 4] * (a4 + f * b4), weights[node, 5] * (a5 + f * b5)
        m6, m7 = weights[node, 6] * (a6 + f * b6), weights[node, 7] * (a7 + f * b7)
        if ((m0 + m4) + (m1 + m5)) + ((m2 + m6) + (m3 + m7)) < 0.999 or not candidates[node]:
            continue
        # Written whether it counts or not: a branch that goes either way takes longer.
        for lane in range(LANES):
            weight, place = weights[node, lane], n_hits[lane]
            term = f * weight
            is_within = weight * limits[4, lane] >= 1.0
            is_sure = (term * limits[2, lane] >= 1.0) & (is_within == (weight * limits[3, lane] >= 1.0))
            is_open = ((weight * limits[0, lane] >= 1.0) | (term * limits[1, lane] >= 1.0)) & (not is_sure)
            counts[0, lane] += is_sure
            counts[1, lane] += is_sure & is_within
            hits[lane, place] = node
            n_hits[lane] = place + is_open


@kernel
def _judge_hits(
    texts: Any, i: int, lane: int, thresholds: Any, listing: Any, settings: Any, scratch: Any, lanes: Any
) -> Any:
    """Count the members among the hits of a lane, which is text i, and those within the shifted threshold."""
    base, margin = lanes.base[lane], lanes.margins[lane]
    log_z = np.log(lanes.sums[lane]) - settings.temperature * base
    hits, gains, starts, labels, log_priors = lanes.hits, lanes.gains, listing.starts, listing.labels, listing.log_prior
    scratch.exact[0] = np.nan
    n_members, n_within = 0, 0
    for hit in range(lanes.n_hits[lane]):
        node = hits[lane, hit]
        value = base
        for place in range(starts[node], starts[node + 1]):
            value += gains[labels[place], lane]
        is_member, is_within, is_open = judge(value, log_priors[node], log_z, thresholds, margin, settings)
        if is_open:
            is_member, is_within = judge_exactly(texts, i, thresholds, node, listing, settings, scratch)
        n_members += is_member
        n_within += is_within
    return n_members, n_within


@kernel
def count_listed(
    texts: Any, thresholds: Array, shifted: Array, listing: Any, candidates: Array, settings: Any, out: Array
) -> None:
    """Write for each text the number of listed members, and of listed candidates with L <= shifted: out (n, 2)."""
    scratch, lanes = make_scratch(listing, texts, settings), _make_lanes(listing, settings)
    nothing = np.empty(0, dtype=np.uint8)
    n_texts = out.shape[0]
    sums, n_hits, counts = lanes.sums, lanes.n_hits, lanes.counts
    for first in range(0, n_texts, LANES):
        _load(texts, first, n_texts, listing, settings, scratch, lanes)
        _fill(listing, lanes)
        _limit(first, thresholds, shifted, settings, lanes)
        _sort_nodes(listing, candidates, lanes)
        for lane in range(min(LANES, n_texts - first)):
            i = first + lane
            both = (thresholds[i], shifted[i])
            if not is_usable(sums[lane]) or settings.temperature <= _LEAST_TEMPERATURE:
                out[i, 0], out[i, 1] = scan_text(texts, i, both, listing, candidates, settings, scratch, nothing)
                continue
            out[i, 0], out[i, 1] = counts[0, lane], counts[1, lane]
            if n_hits[lane]:
                more = _judge_hits(texts, i, lane, both, listing, settings, scratch, lanes)
                out[i, 0] += more[0]
                out[i, 1] += more[1]
