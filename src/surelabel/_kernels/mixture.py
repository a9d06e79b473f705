"""Totals of a mixture: an independent part, and a softmax over listed label-sets.

With L the correctly rounded sum of a label-set's costs, the total of a label-set that is not listed is L + shift, and
that of a listed one is -log(exp(-(L + shift)) + exp(log_weight + log_q)), log_q = log_prior - temperature L - log_z.

Listed label-sets are nodes of a tree: each is its parent with one label more or fewer, so one addition gives its L and
one product its term of the normaliser. These run in plain arithmetic. Whatever lies within their rounding error of a
threshold is summed again without error, so answers do not depend on them.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from surelabel._kernels.compiling import kernel
from surelabel._kernels.exact_sum import N_PARTIALS, add_to_partials, round_partials

Array = Any

LOG_2 = 0.6931471805599453
# Sums of products beyond these lose digits; logarithms are added up instead.
_SMALLEST_SUM, _LARGEST_SUM = 1e-200, 1e200
MEMBER, WITHIN = 1, 2


class Listing(NamedTuple):
    """Label-sets as nodes; node 0 is the empty set. A node that is not listed has log_prior -inf and factor 0.

    parents, moves (N,) int64: node i is node parents[i] with label moves[i] added, or label moves[i] - d removed.
    log_prior, factors (N,) float64: factors = exp(log_prior). starts (N + 1,), labels int64: labels of each node,
    ascending. ranks (N,) int64: place in the lexicographic order of 0/1 rows. used int64: labels of some node.
    """

    parents: Array
    moves: Array
    log_prior: Array
    factors: Array
    starts: Array
    labels: Array
    ranks: Array
    used: Array


class Settings(NamedTuple):
    """shift = -log(1 - weight), log_weight, temperature; largest log_prior, cost, and number of labels of a node.

    removes: whether some nodes are their parents with a label removed.
    """

    shift: float
    log_weight: float
    temperature: float
    largest_prior: float
    largest_cost: float
    most_labels: int
    n_labels: int
    removes: bool


class Texts(NamedTuple):
    """Costs of texts: listed labels of text i are labels[starts[i]:starts[i + 1]], with absent and present costs.

    ratios = exp(-temperature (present - absent)). All other labels have group (absent, present, ratio); their number
    times either part of split, which add up to group[0], needs no rounding (`measures/compressed.py`). Costs and ratios
    are (1, columns); of dense texts, which have no starts, (n, d).

    others (n,): logarithm of the terms of label-sets that are listed elsewhere and count in the normaliser too, -inf if
    there are none; of sparse texts (0,).
    """

    starts: Array
    labels: Array
    absent: Array
    present: Array
    ratios: Array
    group: Array
    split: Array
    others: Array


class Scratch(NamedTuple):
    """Memory for one text: gains and ratios (2 d,) by move, values and weights (2, N), partial sums.

    exact (2,): number of partials of the base, and log_z, correctly rounded; nan if they were not needed yet.
    """

    gains: Array
    ratios: Array
    values: Array
    base: Array
    partials: Array
    exact: Array


@kernel
def _set_label(label: int, gain: float, ratio: float, settings: Any, scratch: Any) -> None:
    """Fill in the moves of one label."""
    scratch.gains[label] = gain
    scratch.ratios[label] = ratio
    if settings.removes:
        scratch.gains[settings.n_labels + label] = -gain
        scratch.ratios[settings.n_labels + label] = 1.0 / ratio


@kernel
def make_scratch(listing: Any, texts: Any, settings: Any) -> Any:
    """Make memory for texts, with the moves of unlisted labels filled in."""
    scratch = Scratch(
        np.empty(2 * settings.n_labels),
        np.empty(2 * settings.n_labels),
        np.empty((2, listing.parents.shape[0])),
        np.empty(N_PARTIALS),
        np.empty(N_PARTIALS),
        np.full(2, np.nan),
    )
    if texts.starts.shape[0]:
        for label in listing.used:
            _set_label(label, texts.group[1] - texts.group[0], texts.group[2], settings, scratch)
    return scratch


@kernel
def load_text(texts: Any, i: int, listing: Any, settings: Any, scratch: Any) -> float:
    """Load the moves of text i; return the sum of the costs of all labels absent, in plain arithmetic."""
    base = 0.0
    if texts.starts.shape[0] == 0:
        absent, present, ratios = texts.absent[i], texts.present[i], texts.ratios[i]
        for label in listing.used:
            _set_label(label, present[label] - absent[label], ratios[label], settings, scratch)
        for k in range(absent.shape[0]):
            base += absent[k]
        return base
    for place in range(texts.starts[i], texts.starts[i + 1]):
        gain = texts.present[0, place] - texts.absent[0, place]
        _set_label(texts.labels[place], gain, texts.ratios[0, place], settings, scratch)
        base += texts.absent[0, place]
    return base + (settings.n_labels - (texts.starts[i + 1] - texts.starts[i])) * texts.group[0]


@kernel
def add_base(texts: Any, i: int, settings: Any, scratch: Any) -> Any:
    """Add up the costs of all labels of text i absent, without error; return the number of partials."""
    n_partials = np.int64(0)
    if texts.starts.shape[0] == 0:
        for k in range(settings.n_labels):
            n_partials = add_to_partials(scratch.base, n_partials, texts.absent[i, k])
        return n_partials
    for place in range(texts.starts[i], texts.starts[i + 1]):
        n_partials = add_to_partials(scratch.base, n_partials, texts.absent[0, place])
    n_unlisted = settings.n_labels - (texts.starts[i + 1] - texts.starts[i])
    for part in texts.split:
        n_partials = add_to_partials(scratch.base, n_partials, n_unlisted * part)
    return n_partials


@kernel
def unload_text(texts: Any, i: int, settings: Any, scratch: Any) -> None:
    """Set the moves of what text i lists back to those of unlisted labels."""
    if texts.starts.shape[0]:
        gain = texts.group[1] - texts.group[0]
        for place in range(texts.starts[i], texts.starts[i + 1]):
            _set_label(texts.labels[place], gain, texts.group[2], settings, scratch)


@kernel
def costs_of(texts: Any, i: int, label: int) -> Any:
    """Return (absent, present) costs of one label of text i."""
    if texts.starts.shape[0] == 0:
        return texts.absent[i, label], texts.present[i, label]
    start, stop = texts.starts[i], texts.starts[i + 1]
    place = start + np.searchsorted(texts.labels[start:stop], label)
    if place < stop and texts.labels[place] == label:
        return texts.absent[0, place], texts.present[0, place]
    return texts.group[0], texts.group[1]


@kernel
def exact_sum_of(texts: Any, i: int, n_base: int, listing: Any, node: int, scratch: Any) -> float:
    """Return L of a node in text i, correctly rounded: the sum of all labels absent, with those it has changed."""
    partials = scratch.partials
    partials[:n_base] = scratch.base[:n_base]
    n_partials = n_base
    for place in range(listing.starts[node], listing.starts[node + 1]):
        absent, present = costs_of(texts, i, listing.labels[place])
        n_partials = add_to_partials(partials, n_partials, -absent)
        n_partials = add_to_partials(partials, n_partials, present)
    return round_partials(partials, n_partials)


@kernel
def fill_values(base: float, listing: Any, scratch: Any) -> float:
    """Write the running L of all nodes; return the sum of their terms, relative to the empty set's."""
    values, weights = scratch.values[0], scratch.values[1]
    parents, moves, gains, ratios = listing.parents, listing.moves, scratch.gains, scratch.ratios
    values[0], weights[0] = base, 1.0
    n_nodes = values.shape[0]
    for node in range(1, n_nodes):
        parent, move = parents[node], moves[node]
        values[node] = values[parent] + gains[move]
        weights[node] = weights[parent] * ratios[move]
    factors = listing.factors
    a, b, c, d = 0.0, 0.0, 0.0, 0.0
    whole = n_nodes - n_nodes % 4
    for node in range(0, whole, 4):
        a += factors[node] * weights[node]
        b += factors[node + 1] * weights[node + 1]
        c += factors[node + 2] * weights[node + 2]
        d += factors[node + 3] * weights[node + 3]
    for node in range(whole, n_nodes):
        a += factors[node] * weights[node]
    return (a + b) + (c + d)


@kernel
def others_of(texts: Any, i: int) -> float:
    """Return the logarithm of the terms of text i that are listed elsewhere."""
    return texts.others[i] if texts.others.shape[0] else -np.inf


@kernel
def is_usable(total: float) -> bool:
    """Tell whether a sum of products has kept its digits."""
    return _SMALLEST_SUM < total < _LARGEST_SUM


@kernel
def log_normaliser(total: float, base: float, others: float, listing: Any, settings: Any, scratch: Any) -> float:
    """Return log_z from the sum of terms, or from logarithms if it is not usable; base is correctly rounded then."""
    temperature, values = settings.temperature, scratch.values[0]
    total += np.exp(others + temperature * base)
    if is_usable(total):
        return np.log(total) - temperature * base
    largest = others
    for node in range(values.shape[0]):
        largest = max(largest, listing.log_prior[node] - temperature * values[node])
    summed = np.exp(others - largest)
    for node in range(values.shape[0]):
        summed += np.exp(listing.log_prior[node] - temperature * values[node] - largest)
    return largest + np.log(summed)


@kernel
def exact_text(texts: Any, i: int, listing: Any, settings: Any, scratch: Any) -> Any:
    """Load text i; return the number of partials of its base, the base, and log_z, all correctly rounded."""
    load_text(texts, i, listing, settings, scratch)
    n_base = add_base(texts, i, settings, scratch)
    base = round_partials(scratch.base, n_base)
    total = fill_values(base, listing, scratch)
    return n_base, base, log_normaliser(total, base, others_of(texts, i), listing, settings, scratch)


@kernel
def listed_total(value: float, log_prior: float, log_z: float, settings: Any) -> float:
    """Return the total of a listed label-set with L = value; never more than value + shift, nor less than 0."""
    far = value + settings.shift
    near = settings.log_weight + ((log_prior - settings.temperature * value) - log_z)
    difference = near + far
    total = -near - np.log1p(np.exp(-difference)) if difference > 0.0 else far - np.log1p(np.exp(difference))
    return max(total, 0.0)


@kernel
def margin_of(base: float, threshold: float, settings: Any) -> float:
    """Return a bound of the rounding error of running sums and of totals made from them."""
    steps = settings.most_labels + 64.0
    size = base + abs(threshold) + settings.shift + abs(settings.largest_prior) + steps * settings.largest_cost
    return 1e-14 * steps * (2.0 + settings.temperature) * size


@kernel
def judge(value: float, log_prior: float, log_z: float, thresholds: Any, margin: float, settings: Any) -> Any:
    """Tell whether a node with running L = value is a member, and whether it is within the shifted threshold.

    Third: whether either is too near to be decided so. Numbers only: this runs for every node.
    """
    threshold, shifted = thresholds
    far = value + settings.shift
    near = settings.temperature * value + log_z - log_prior - settings.log_weight
    bound, gap = min(far, near), abs(far - near)
    is_member = bound <= threshold - margin
    # log(1 + exp(-gap)) is at most 1 / (1 + gap + gap^2 / 2), and at most log(2).
    is_open = not is_member and bound - min(LOG_2, 1.0 / (1.0 + gap + 0.5 * gap * gap)) <= threshold + margin
    if is_open:
        total = listed_total(value, log_prior, log_z, settings)
        is_member = total <= threshold
        is_open = abs(total - threshold) <= margin
    return is_member, value <= shifted, is_open or abs(value - shifted) <= margin


@kernel
def judge_exactly(texts: Any, i: int, thresholds: Any, node: int, listing: Any, settings: Any, scratch: Any) -> Any:
    """Tell the same of a node of text i by correctly rounded sums, which are kept until `exact` is set to nan."""
    if np.isnan(scratch.exact[0]):
        n_base, _, log_z = exact_text(texts, i, listing, settings, scratch)
        scratch.exact[0], scratch.exact[1] = n_base, log_z
    exact = exact_sum_of(texts, i, int(scratch.exact[0]), listing, node, scratch)
    total = listed_total(exact, listing.log_prior[node], scratch.exact[1], settings)
    return total <= thresholds[0], exact <= thresholds[1]


@kernel
def scan_text(
    texts: Any, i: int, thresholds: Any, listing: Any, candidates: Array, settings: Any, scratch: Any, flags: Array
) -> Any:
    """Count the listed candidates of text i with total <= threshold, and those with L <= shifted threshold.

    thresholds (threshold, shifted); flags (N,) uint8, or empty: MEMBER and WITHIN of each node are written.
    """
    threshold = thresholds[0]
    scratch.exact[0] = np.nan
    base = load_text(texts, i, listing, settings, scratch)
    total_of_terms = fill_values(base, listing, scratch)
    total_of_terms += np.exp(others_of(texts, i) + settings.temperature * base)
    if is_usable(total_of_terms):
        log_z = np.log(total_of_terms) - settings.temperature * base
    else:
        _, base, log_z = exact_text(texts, i, listing, settings, scratch)
    margin = margin_of(base, threshold, settings)
    farthest = threshold + LOG_2 - settings.shift
    room = threshold + LOG_2 + settings.log_weight + settings.largest_prior - log_z
    if settings.temperature > 0.0:
        farthest = max(farthest, room / settings.temperature)
    elif room >= -margin:
        farthest = np.inf
    farthest += margin
    values, log_priors = scratch.values[0], listing.log_prior
    n_members, n_within = 0, 0
    for node in range(values.shape[0]):
        value = values[node]
        if value > farthest or not candidates[node]:
            continue
        is_member, is_within, is_open = judge(value, log_priors[node], log_z, thresholds, margin, settings)
        if is_open:
            is_member, is_within = judge_exactly(texts, i, thresholds, node, listing, settings, scratch)
        n_members += is_member
        n_within += is_within
        if flags.shape[0]:
            flags[node] = (MEMBER if is_member else 0) | (WITHIN if is_within else 0)
    unload_text(texts, i, settings, scratch)
    return n_members, n_within


@kernel
def flag_listed(texts: Any, thresholds: Any, listing: Any, candidates: Array, settings: Any, flags: Array) -> None:
    """Write which nodes are members of the first text, and which are within the shifted threshold: flags (N,) uint8."""
    scratch = make_scratch(listing, texts, settings)
    flags[:] = 0
    scan_text(texts, 0, thresholds, listing, candidates, settings, scratch, flags)


@kernel
def totals_of_nodes(
    texts: Any, rows: Array, nodes: Array, listing: Any, settings: Any, sums: Array, out: Array
) -> None:
    """Write L and the totals of listed nodes (m,), each of the text that rows (m,) says; equal rows side by side."""
    scratch = make_scratch(listing, texts, settings)
    loaded, n_base, log_z = np.int64(-1), np.int64(0), 0.0
    for j in range(rows.shape[0]):
        i = rows[j]
        if i != loaded:
            if loaded >= 0:
                unload_text(texts, loaded, settings, scratch)
            n_base, _, log_z = exact_text(texts, i, listing, settings, scratch)
            loaded = i
        sums[j] = exact_sum_of(texts, i, n_base, listing, nodes[j], scratch)
        out[j] = listed_total(sums[j], listing.log_prior[nodes[j]], log_z, settings)


@kernel
def log_terms(texts: Any, listing: Any, settings: Any, out: Array) -> None:
    """Write the logarithm of the sum of terms of listed label-sets, of which there are some, of each text: out (n,)."""
    scratch = make_scratch(listing, texts, settings)
    for i in range(out.shape[0]):
        _, _, out[i] = exact_text(texts, i, listing, settings, scratch)
        unload_text(texts, i, settings, scratch)


@kernel
def best_of_text(
    texts: Any, i: int, listing: Any, candidates: Array, settings: Any, scratch: Any, totals: Array
) -> Any:
    """Return the best listed candidate of text i, -1 if there is none; totals (2,) of the two best are written."""
    n_base, base, log_z = exact_text(texts, i, listing, settings, scratch)
    values = scratch.values[0]
    bounds = scratch.values[1]
    first, second = np.inf, np.inf
    for node in range(values.shape[0]):
        value = values[node]
        near = settings.temperature * value + log_z - listing.log_prior[node] - settings.log_weight
        bound = min(value + settings.shift, near) if candidates[node] else np.inf
        bounds[node] = bound
        if bound < second:
            first, second = min(first, bound), max(first, bound)
    limit = np.inf if second == np.inf else second + LOG_2 + margin_of(base, second, settings)
    best = np.int64(-1)
    totals[0] = totals[1] = np.inf
    for node in range(values.shape[0]):
        if bounds[node] > limit or not candidates[node]:
            continue
        exact = exact_sum_of(texts, i, n_base, listing, node, scratch)
        total = listed_total(exact, listing.log_prior[node], log_z, settings)
        if best < 0 or total < totals[0] or (total == totals[0] and listing.ranks[node] < listing.ranks[best]):
            totals[1] = totals[0]
            totals[0] = total
            best = np.int64(node)
        elif total < totals[1]:
            totals[1] = total
    unload_text(texts, i, settings, scratch)
    return best


@kernel
def best_listed(texts: Any, listing: Any, candidates: Array, settings: Any, nodes: Array, totals: Array) -> None:
    """Write each text's best listed candidate (n,), -1 if there is none, and the totals of the two best (n, 2)."""
    scratch = make_scratch(listing, texts, settings)
    for i in range(nodes.shape[0]):
        nodes[i] = best_of_text(texts, i, listing, candidates, settings, scratch, totals[i])


@kernel
def count_labels(
    texts: Any, bounds: Array, listing: Any, candidates: Array, settings: Any, members: Array, with_label: Array
) -> None:
    """Write the number of listed members (n,) of dense texts, and of those that have each label (n, d) int32.

    bounds (n, 2): threshold and shifted threshold of each text.
    """
    scratch = make_scratch(listing, texts, settings)
    flags = np.empty(listing.parents.shape[0], dtype=np.uint8)
    with_label[:] = 0
    for i in range(members.shape[0]):
        flags[:] = 0
        both = (bounds[i, 0], bounds[i, 1])
        members[i], _ = scan_text(texts, i, both, listing, candidates, settings, scratch, flags)
        for node in range(flags.shape[0] if members[i] else 0):
            if flags[node] & MEMBER:
                for place in range(listing.starts[node], listing.starts[node + 1]):
                    with_label[i, listing.labels[place]] += 1
