"""What kernels of a mixture take and write: the list, texts, settings, and where answers go."""

from __future__ import annotations

from typing import Any, NamedTuple

Array = Any

LOG_2 = 0.6931471805599453
# What is known of a node.
MEMBER, WITHIN, OPEN = 1, 2, 4


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
    there are none.
    """

    starts: Array
    labels: Array
    absent: Array
    present: Array
    ratios: Array
    group: Array
    split: Array
    others: Array


class Found(NamedTuple):
    """Where answers to m questions go.

    counts (m, 2) int64: numbers of members and of candidates with L <= shifted threshold. nodes (m,) int64: the best
    candidate, -1 if there is none; or the node that totals are asked of. totals (m, 3): of the two best candidates, or
    L and total of the node; then log_z. flags (N,) uint8: MEMBER and WITHIN of each node of the last text. with_label
    (m, d) int32, or (0, 0): members that have each label.
    """

    counts: Array
    nodes: Array
    totals: Array
    flags: Array
    with_label: Array


class Scratch(NamedTuple):
    """Memory for one text: gains and ratios (2 d,) by move, values and weights (N,), partial sums."""

    gains: Array
    ratios: Array
    values: Array
    weights: Array
    base: Array
    partials: Array
