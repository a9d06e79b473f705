"""Totals of a mixture: an independent part, and a softmax over listed label-sets.

With L the correctly rounded sum of a label-set's costs, the total of a label-set that is not listed is L + shift, and
that of a listed one is -log(exp(-(L + shift)) + exp(log_weight + log_q)), log_q = log_prior - temperature L - log_z.

Listed label-sets are nodes of a tree: each is its parent with one label more or fewer, so one addition gives its L and
one product its term of the normaliser. These run in plain arithmetic. Whatever lies within their rounding error of a
threshold is summed again without error, so answers do not depend on them.

One kernel does all this: each kernel is compiled with all that it calls, so several would take several times as long to
compile.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from surelabel._kernels import mixture_in_numpy
from surelabel._kernels.compiling import in_python, inlined, part, quick
from surelabel._kernels.exact_sum import N_PARTIALS, add_to_partials, round_partials
from surelabel._kernels.mixture_arrays import LOG_2, MEMBER, OPEN, WITHIN, Found, Listing, Scratch, Settings, Texts

__all__ = [
    "MEMBER",
    "WITHIN",
    "Found",
    "Listing",
    "Settings",
    "Texts",
    "best_listed",
    "costs_of",
    "is_usable",
    "judge",
    "listed_members",
    "load_text",
    "log_terms",
    "make_scratch",
    "margin_of",
    "totals_of_nodes",
    "unload_text",
]

Array = Any

# Sums of products beyond these lose digits; logarithms are added up instead.
_SMALLEST_SUM, _LARGEST_SUM = 1e-200, 1e200
# What can be asked of texts: the best listed candidate, the listed members, totals of given nodes.
_BEST, _MEMBERS, _TOTALS = 0, 1, 2


@inlined
def set_label(label: int, gain: float, ratio: float, settings: Any, scratch: Any) -> None:
    """Fill in the moves of one label."""
    scratch.gains[label] = gain
    scratch.ratios[label] = ratio
    if settings.removes:
        scratch.gains[settings.n_labels + label] = -gain
        scratch.ratios[settings.n_labels + label] = 1.0 / ratio


@inlined
def make_scratch(listing: Any, texts: Any, settings: Any) -> Any:
    """Make memory for texts, with the moves of unlisted labels filled in."""
    n_nodes, n_moves = listing.parents.shape[0], 2 * settings.n_labels
    scratch = Scratch(
        np.empty(n_moves),
        np.empty(n_moves),
        np.empty(n_nodes),
        np.empty(n_nodes),
        np.empty(N_PARTIALS),
        np.empty(N_PARTIALS),
    )
    for place in range(listing.used.shape[0] if texts.starts.shape[0] else 0):
        set_label(listing.used[place], texts.group[1] - texts.group[0], texts.group[2], settings, scratch)
    return scratch


@part
def load_text(texts: Any, i: int, listing: Any, settings: Any, scratch: Any) -> float:
    """Load the moves of text i; return the sum of the costs of all labels absent, in plain arithmetic."""
    absent, present, ratios, base = texts.absent, texts.present, texts.ratios, 0.0
    if texts.starts.shape[0] == 0:
        for place in range(listing.used.shape[0]):
            label = listing.used[place]
            set_label(label, present[i, label] - absent[i, label], ratios[i, label], settings, scratch)
        for k in range(absent.shape[1]):
            base += absent[i, k]
        return base
    for place in range(texts.starts[i], texts.starts[i + 1]):
        set_label(texts.labels[place], present[0, place] - absent[0, place], ratios[0, place], settings, scratch)
        base += absent[0, place]
    return base + (settings.n_labels - (texts.starts[i + 1] - texts.starts[i])) * texts.group[0]


@inlined
def unload_text(texts: Any, i: int, settings: Any, scratch: Any) -> None:
    """Set the moves of what text i lists back to those of unlisted labels."""
    if texts.starts.shape[0]:
        for place in range(texts.starts[i], texts.starts[i + 1]):
            set_label(texts.labels[place], texts.group[1] - texts.group[0], texts.group[2], settings, scratch)


@inlined
def costs_of(texts: Any, i: int, label: int) -> Any:
    """Return (absent, present) costs of one label of text i."""
    row, place = i, label
    if texts.starts.shape[0]:
        row, place, stop = 0, texts.starts[i], texts.starts[i + 1]
        while place < stop:
            middle = (place + stop) >> 1
            if texts.labels[middle] < label:
                place = middle + 1
            else:
                stop = middle
        if place >= texts.starts[i + 1] or texts.labels[place] != label:
            return texts.group[0], texts.group[1]
    return texts.absent[row, place], texts.present[row, place]


@part
def _exact_sum_of(texts: Any, i: int, n_base: int, listing: Any, node: int, scratch: Any) -> float:
    """Return L of a node in text i, correctly rounded: the sum of all labels absent, with those it has changed."""
    partials = scratch.partials
    for place in range(n_base):
        partials[place] = scratch.base[place]
    n_partials = n_base
    for place in range(listing.starts[node], listing.starts[node + 1]):
        absent, present = costs_of(texts, i, listing.labels[place])
        n_partials = add_to_partials(partials, n_partials, -absent)
        n_partials = add_to_partials(partials, n_partials, present)
    return round_partials(partials, n_partials)


@part
def _fill_values(base: float, listing: Any, scratch: Any) -> float:
    """Write the running L of all nodes; return the sum of their terms, relative to the empty set's."""
    values, weights = scratch.values, scratch.weights
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


@inlined
def is_usable(total: float) -> bool:
    """Tell whether a sum of products has kept its digits."""
    return _SMALLEST_SUM < total < _LARGEST_SUM


@inlined
def _sum_absent(costs: Array, row: int, places: Any, n_partials: int, partials: Array) -> Any:
    """Add costs of a row, from places[0] to places[1], to a sum that is kept as partials; return how many there are."""
    for place in range(places[0], places[1]):
        n_partials = add_to_partials(partials, n_partials, costs[row, place])
    return n_partials


@part
def _exact_text(texts: Any, i: int, listing: Any, settings: Any, scratch: Any) -> Any:
    """Return the number of partials of the base of text i, the base, and log_z, all correctly rounded."""
    row, first, last, n_base = i, 0, settings.n_labels, np.int64(0)
    if texts.starts.shape[0]:
        row, first, last = 0, texts.starts[i], texts.starts[i + 1]
        # The unlisted labels as two products.
        for half in range(2):
            cost = (settings.n_labels - (last - first)) * texts.split[half]
            n_base = add_to_partials(scratch.base, n_base, cost)
    n_base = _sum_absent(texts.absent, row, (first, last), n_base, scratch.base)
    base, others = round_partials(scratch.base, n_base), texts.others[i]
    temperature, values, log_prior = settings.temperature, scratch.values, listing.log_prior
    total = _fill_values(base, listing, scratch) + np.exp(others + temperature * base)
    if is_usable(total):
        return n_base, base, np.log(total) - temperature * base
    largest = others
    for node in range(values.shape[0]):
        largest = max(largest, log_prior[node] - temperature * values[node])
    summed = np.exp(others - largest)
    for node in range(values.shape[0]):
        summed += np.exp(log_prior[node] - temperature * values[node] - largest)
    return n_base, base, largest + np.log(summed)


@part
def listed_total(value: float, log_prior: float, log_z: float, settings: Any) -> float:
    """Return the total of a listed label-set with L = value; never more than value + shift, nor less than 0."""
    far = value + settings.shift
    near = settings.log_weight + ((log_prior - settings.temperature * value) - log_z)
    difference = near + far
    total = -near - np.log1p(np.exp(-difference)) if difference > 0.0 else far - np.log1p(np.exp(difference))
    return max(total, 0.0)


@inlined
def margin_of(base: float, threshold: float, settings: Any) -> float:
    """Return a bound of the rounding error of running sums and of totals made from them."""
    steps = settings.most_labels + 64.0
    size = base + abs(threshold) + settings.shift + abs(settings.largest_prior) + steps * settings.largest_cost
    return 1e-14 * steps * (2.0 + settings.temperature) * size


@inlined
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


@inlined
def _flag_nodes(
    limits: Any,
    log_z: float,
    thresholds: Any,
    listing: Any,
    candidates: Array,
    settings: Any,
    values: Array,
    flags: Any,
) -> Any:
    """Do what `_flag_members` says; limits: L beyond which no node is a member, and the margin of error."""
    farthest, margin = limits
    log_priors, n_open = listing.log_prior, 0
    for node in range(values.shape[0]):
        value = values[node]
        if value > farthest or not candidates[node]:
            flags[node] = 0
            continue
        is_member, is_within, is_open = judge(value, log_priors[node], log_z, thresholds, margin, settings)
        if is_open:
            flags[node] = OPEN
            n_open += 1
        else:
            flags[node] = (MEMBER if is_member else 0) | (WITHIN if is_within else 0)
    return n_open


@inlined
def _flag_members(
    base: float, log_z: float, thresholds: Any, listing: Any, candidates: Array, settings: Any, scratch: Any, flags: Any
) -> Any:
    """Flag members, and candidates within the shifted threshold; return how many nodes are left open."""
    threshold = thresholds[0]
    margin = margin_of(base, threshold, settings)
    farthest = threshold + LOG_2 - settings.shift
    room = threshold + LOG_2 + settings.log_weight + settings.largest_prior - log_z
    if settings.temperature > 0.0:
        farthest = max(farthest, room / settings.temperature)
    elif room >= -margin:
        farthest = np.inf
    limits = (farthest + margin, margin)
    return _flag_nodes(limits, log_z, thresholds, listing, candidates, settings, scratch.values, flags)


@part
def _count_flags(j: int, listing: Any, found: Any) -> None:
    """Count what is flagged as answer j."""
    counts, flags, with_label = found.counts, found.flags, found.with_label
    for node in range(flags.shape[0]):
        counts[j, 0] += flags[node] & MEMBER
        counts[j, 1] += (flags[node] & WITHIN) >> 1
        if with_label.shape[0] and flags[node] & MEMBER:
            for place in range(listing.starts[node], listing.starts[node + 1]):
                with_label[j, listing.labels[place]] += 1


@part
def _second_bound(log_z: float, listing: Any, candidates: Array, settings: Any, scratch: Any) -> float:
    """Return what the totals of two candidates are within; of one if there is one; inf if there is none."""
    first, second = np.inf, np.inf
    for node in range(candidates.shape[0]):
        value = scratch.values[node]
        near = settings.temperature * value + log_z - listing.log_prior[node] - settings.log_weight
        bound = min(value + settings.shift, near) if candidates[node] else np.inf
        if bound < second:
            first, second = min(first, bound), max(first, bound)
    return second if second < np.inf else first


def _n_steps(question: int, texts: Any, rows: Array, *arguments: Any) -> int:
    """Return how many steps `_ask_listed` takes: what stands for its parts in Python works on all nodes at once."""
    return (10 + len(arguments[-1].flags) // 128) * (1 + int(np.count_nonzero(np.diff(rows)))) + len(rows)


@quick(_n_steps)
def _ask_listed(
    question: int, texts: Any, rows: Array, bounds: Array, listing: Any, candidates: Array, settings: Any, found: Any
) -> None:
    """Answer _BEST, _MEMBERS or _TOTALS of texts rows (m,); equal rows side by side.

    bounds (m, 2): of _MEMBERS, threshold and shifted threshold of each text; of _BEST they are written.
    """
    scratch = make_scratch(listing, texts, settings)
    nodes, totals, flags = found.nodes, found.totals, found.flags
    loaded, n_base, base, log_z = np.int64(-1), np.int64(0), 0.0, 0.0
    for j in range(rows.shape[0]):
        i = rows[j]
        if i != loaded:
            if loaded >= 0:
                unload_text(texts, loaded, settings, scratch)
            load_text(texts, i, listing, settings, scratch)
            n_base, base, log_z = _exact_text(texts, i, listing, settings, scratch)
            loaded = i
        totals[j, 2] = log_z
        first, last = nodes[j], nodes[j] + 1
        if question == _TOTALS:
            flags[first] = OPEN
        else:
            if question == _BEST:
                nodes[j], totals[j, 0], totals[j, 1] = -1, np.inf, np.inf
                bounds[j, 0], bounds[j, 1] = _second_bound(log_z, listing, candidates, settings, scratch), -1.0
            both = (bounds[j, 0], bounds[j, 1])
            n_open = _flag_members(base, log_z, both, listing, candidates, settings, scratch, flags)
            first, last = 0, flags.shape[0] if n_open or question == _BEST else 0
        for node in range(first, last):
            if flags[node] == 0 or (question == _MEMBERS and flags[node] != OPEN):
                continue
            value = _exact_sum_of(texts, i, n_base, listing, node, scratch)
            total = listed_total(value, listing.log_prior[node], log_z, settings)
            if question == _MEMBERS:
                flags[node] = (MEMBER if total <= bounds[j, 0] else 0) | (WITHIN if value <= bounds[j, 1] else 0)
            elif question == _TOTALS:
                totals[j, 0], totals[j, 1] = value, total
            else:
                is_first = total == totals[j, 0] and listing.ranks[node] < listing.ranks[nodes[j]]
                if total < totals[j, 0] or is_first:
                    totals[j, 1], totals[j, 0], nodes[j] = totals[j, 0], total, node
                elif total < totals[j, 1]:
                    totals[j, 1] = total
        if question == _MEMBERS:
            _count_flags(j, listing, found)


in_python.update(
    {
        load_text: mixture_in_numpy.load_text,
        _sum_absent: mixture_in_numpy.sum_absent,
        _exact_sum_of: mixture_in_numpy.exact_sum_of,
        _fill_values: mixture_in_numpy.fill_values,
        _flag_nodes: mixture_in_numpy.flag_nodes,
        _count_flags: mixture_in_numpy.count_flags,
        _second_bound: mixture_in_numpy.second_bound,
    }
)


def best_listed(texts: Any, n_texts: int, listing: Any, candidates: Array, settings: Any) -> tuple[Array, Array]:
    """Return each text's best listed candidate (n,), -1 if there is none, and the totals of the two best (n, 2)."""
    found = _ask(_BEST, texts, np.arange(n_texts), np.empty((n_texts, 2)), listing, candidates, settings)
    return found.nodes, found.totals[:, :2]


def listed_members(
    texts: Any, rows: Array, bounds: Array, listing: Any, candidates: Array, settings: Any, *, n_labels: int = 0
) -> Found:
    """Count the listed members of texts; with `n_labels`, those that have each label too."""
    return _ask(_MEMBERS, texts, rows, bounds, listing, candidates, settings, n_labels=n_labels)


def totals_of_nodes(texts: Any, rows: Array, nodes: Array, listing: Any, settings: Any) -> tuple[Array, Array]:
    """Return L and the totals of listed nodes (m,), each of the text that rows (m,) says; equal rows side by side."""
    found = _ask(_TOTALS, texts, rows, np.empty((0, 2)), listing, _NOTHING, settings, nodes=nodes)
    return found.totals[:, 0], found.totals[:, 1]


def log_terms(texts: Any, n_texts: int, listing: Any, settings: Any) -> Array:
    """Return the logarithm of the sum of terms of listed label-sets, of which there are some, of each text, (n,)."""
    rows = np.arange(n_texts)
    return _ask(_TOTALS, texts, rows, np.empty((0, 2)), listing, _NOTHING, settings, nodes=np.zeros_like(rows)).totals[
        :, 2
    ]


_NOTHING = np.empty(0, dtype=np.bool_)


def _ask(
    question: int, texts: Any, rows: Array, *arguments: Any, nodes: Array | None = None, n_labels: int = 0
) -> Found:
    """Make memory for answers, and ask."""
    found = Found(
        np.zeros((len(rows), 2), dtype=np.int64),
        np.zeros(len(rows), dtype=np.int64) if nodes is None else nodes,
        np.empty((len(rows), 3)),
        np.empty(len(arguments[1].parents), dtype=np.uint8),
        np.zeros((len(rows) if n_labels else 0, n_labels), dtype=np.int32),
    )
    _ask_listed(question, texts, rows, *arguments, found)
    return found
