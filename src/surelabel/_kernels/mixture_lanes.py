"""Count listed label-sets of a mixture for several texts side by side.

Texts go through the list together, so that it is read once for all of them and their products run side by side. The
weights leave few nodes of each text to look at; no other node is a member or within the shifted threshold.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from surelabel._kernels.compiling import inlined, kernel, part
from surelabel._kernels.mixture import costs_of, is_usable, judge, load_text, make_scratch, margin_of, unload_text

Array = Any

# Texts side by side; `_fill` is written out for so many.
LANES = 8
UNDECIDED = -1
# With lower temperatures, the weight of a label-set does not say whether its L is small.
_LEAST_TEMPERATURE = 1e-3
# What a node's bound must reach to be looked at: 1, less its rounding.
_NEARLY_ONE = 0.999


class Lanes(NamedTuple):
    """Memory for LANES texts: ratios by move (2 d, LANES), weights of nodes (N, LANES).

    base, sums of terms, margins of error: (LANES,). limits (4, LANES): by how much to multiply a weight so that it
    reaches 1 if the node may be within the shifted threshold, or surely is; a term, so that it reaches 1 if the node
    may be a member by its term alone, or surely is. hits (LANES, N): nodes that this leaves open, n_hits (LANES,) of
    them. counts (2, LANES): others that are members, and those of them that are within. passed (N + 1,): nodes that may
    be members in some lane.
    """

    ratios: Array
    weights: Array
    base: Array
    sums: Array
    margins: Array
    limits: Array
    hits: Array
    n_hits: Array
    counts: Array
    passed: Array


@inlined
def _make_lanes(listing: Any, settings: Any) -> Any:
    """Make memory for LANES texts."""
    n_nodes, n_moves = listing.parents.shape[0], (2 if settings.removes else 1) * settings.n_labels
    return Lanes(
        np.ones((n_moves, LANES)),
        np.ones((n_nodes, LANES)),
        np.zeros(LANES),
        np.empty(LANES),
        np.empty(LANES),
        np.empty((4, LANES)),
        np.empty((LANES, n_nodes + 1), dtype=np.int64),
        np.empty(LANES, dtype=np.int64),
        np.empty((2, LANES), dtype=np.int64),
        np.empty(n_nodes + 1, dtype=np.int64),
    )


@part
def _load(texts: Any, first: int, n_texts: int, listing: Any, settings: Any, scratch: Any, lanes: Any) -> None:
    """Load the moves of texts from `first` on, the last one again if there are too few.

    Lanes are gone through in here: handing over so many arrays takes longer than the work on one text.
    """
    ratios, bases, used = lanes.ratios, lanes.base, listing.used
    is_plain = texts.starts.shape[0] == 0 and not settings.removes
    absent, own = texts.absent, texts.ratios
    whole = settings.n_labels - settings.n_labels % 4
    for lane in range(LANES):
        i = min(first + lane, n_texts - 1)
        if is_plain:
            a, b, c, d = 0.0, 0.0, 0.0, 0.0
            for k in range(0, whole, 4):
                a, b, c, d = a + absent[i, k], b + absent[i, k + 1], c + absent[i, k + 2], d + absent[i, k + 3]
            for k in range(whole, settings.n_labels):
                a += absent[i, k]
            bases[lane] = (a + b) + (c + d)
            for j in range(used.shape[0]):
                ratios[used[j], lane] = own[i, used[j]]
            continue
        bases[lane] = load_text(texts, i, listing, settings, scratch)
        for j in range(used.shape[0]):
            label = used[j]
            ratios[label, lane] = scratch.ratios[label]
            if settings.removes:
                ratios[settings.n_labels + label, lane] = scratch.ratios[settings.n_labels + label]
        unload_text(texts, i, settings, scratch)


@part
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


@inlined
def _limit(texts: Any, first: int, thresholds: Array, settings: Any, lanes: Any) -> None:
    """Complete the sums and write the limits of all lanes; logarithms of weights and terms are within the margin."""
    bases, sums, limits, margins = lanes.base, lanes.sums, lanes.limits, lanes.margins
    temperature = settings.temperature
    for lane in range(LANES):
        i = min(first + lane, thresholds.shape[0] - 1)
        base, threshold = bases[lane], thresholds[i]
        sums[lane] += np.exp(texts.others[i] + temperature * base)
        total = sums[lane]
        margin = margin_of(base, threshold, settings)
        margins[lane] = margin
        if not is_usable(total):
            limits[:, lane] = 0.0
            lanes.weights[1:, lane] = 0.0
            continue
        wide = 2.0 * (1.0 + temperature) * margin
        room = temperature * (threshold - settings.shift - base)
        limits[0, lane] = min(np.exp(room + wide), 1e300)
        limits[1, lane] = min(np.exp(room - wide), 1e300)
        limits[2, lane] = min(np.exp(threshold + settings.log_weight + wide) / total, 1e300)
        limits[3, lane] = min(np.exp(threshold + settings.log_weight - wide) / total, 1e300)


@part
def _sort_nodes(listing: Any, candidates: Array, settings: Any, lanes: Any) -> None:
    """Count the candidates of each lane that are surely members, and list those that may be.

    A node is a member if A + B >= 1, A = exp(threshold - shift - L) and B = exp(threshold) weight q. B is its term
    times a limit. A is u^p with u its weight times a limit and p = 1 / temperature; for u <= 1 and p >= 1 it lies
    between 1 + p (u - 1) and u, and for p <= 2 between u^2 and (p - 1) u^2 + (2 - p) u; for p < 1 between u and
    1 - p + p u. Most nodes reach 1 in no lane and are left out at once.
    """
    weights, factors, limits = lanes.weights, listing.factors, lanes.limits
    hits, n_hits, counts = lanes.hits, lanes.n_hits, lanes.counts
    n_hits[:] = 0
    counts[:] = 0
    power = 1.0 / settings.temperature if settings.temperature > 0.0 else np.inf
    upper_1, upper_2 = max(2.0 - power, 0.0), min(power - 1.0, 1.0)
    lower_0, lower_1, lower_2 = 1.0 - power, power, 1.0 if power <= 2.0 else 0.0
    upper_0, least = 0.0, 1.0
    if power < 1.0:
        upper_0, upper_1, upper_2, least = 1.0 - power, power, 0.0, power
        lower_0, lower_1, lower_2 = 0.0, 1.0, 0.0
    if power == np.inf:  # weights tell nothing of L: whatever B leaves open is judged exactly
        lower_0, lower_1 = 0.0, 0.0
    # The number of lanes as a variable: a loop over a fixed few is written out, one number at a time.
    n_lanes, n_passed, passed = weights.shape[1], 0, lanes.passed
    for node in range(factors.shape[0]):
        f, passes = factors[node] / least, False
        for lane in range(n_lanes):
            passes |= weights[node, lane] * (limits[0, lane] + f * limits[2, lane]) >= _NEARLY_ONE
        passed[n_passed] = node
        n_passed += passes & candidates[node]
    for j in range(n_passed):
        node = passed[j]
        f = factors[node]
        # Written whether it counts or not: a branch that goes either way takes longer.
        for lane in range(LANES):
            weight, place = weights[node, lane], n_hits[lane]
            u, low, term = weight * limits[0, lane], weight * limits[1, lane], f * weight
            may_be = upper_0 + u * (upper_1 + upper_2 * u) + term * limits[2, lane] >= 1.0
            is_within = low >= 1.0
            is_member = max(lower_0 + lower_1 * low, lower_2 * low * low) + term * limits[3, lane] >= 1.0
            is_sure = is_member & (is_within == (u >= 1.0))
            counts[0, lane] += is_sure
            counts[1, lane] += is_sure & is_within
            hits[lane, place] = node
            n_hits[lane] = place + (may_be & (not is_sure))


@inlined
def _judge_hits(texts: Any, i: int, lane: int, thresholds: Any, listing: Any, settings: Any, lanes: Any) -> Any:
    """Count the members among the hits of a lane, which is text i, and those within the shifted threshold.

    The first is UNDECIDED if some are too near to be decided so.
    """
    base, margin = lanes.base[lane], lanes.margins[lane]
    log_z = np.log(lanes.sums[lane]) - settings.temperature * base
    hits, starts, labels, log_priors = lanes.hits, listing.starts, listing.labels, listing.log_prior
    n_members, n_within = 0, 0
    for hit in range(lanes.n_hits[lane]):
        node = hits[lane, hit]
        value = base
        for place in range(starts[node], starts[node + 1]):
            absent, present = costs_of(texts, i, labels[place])
            value += present - absent
        is_member, is_within, is_open = judge(value, log_priors[node], log_z, thresholds, margin, settings)
        if is_open:
            return UNDECIDED, n_within
        n_members += is_member
        n_within += is_within
    return n_members, n_within


@kernel
def count_listed(
    texts: Any, thresholds: Array, shifted: Array, listing: Any, candidates: Array, settings: Any, out: Array
) -> None:
    """Write for each text the number of listed members, and of listed candidates with L <= shifted: out (n, 2).

    The first is UNDECIDED if plain arithmetic cannot tell; `mixture.listed_members` can.
    """
    scratch, lanes = make_scratch(listing, texts, settings), _make_lanes(listing, settings)
    n_texts = out.shape[0]
    sums, n_hits, counts = lanes.sums, lanes.n_hits, lanes.counts
    for first in range(0, n_texts, LANES):
        _load(texts, first, n_texts, listing, settings, scratch, lanes)
        _fill(listing, lanes)
        _limit(texts, first, thresholds, settings, lanes)
        _sort_nodes(listing, candidates, settings, lanes)
        for lane in range(min(LANES, n_texts - first)):
            i = first + lane
            out[i, 0], out[i, 1] = counts[0, lane], counts[1, lane]
            if not is_usable(sums[lane]) or settings.temperature <= _LEAST_TEMPERATURE:
                out[i, 0] = UNDECIDED
            elif n_hits[lane]:
                both = (thresholds[i], shifted[i])
                more = _judge_hits(texts, i, lane, both, listing, settings, lanes)
                out[i, 0] = UNDECIDED if more[0] == UNDECIDED else out[i, 0] + more[0]
                out[i, 1] += more[1]
