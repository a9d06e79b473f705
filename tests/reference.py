"""The method once more, slow and obvious: loops, `math.fsum`, `fractions.Fraction`, every candidate scored.

Nothing here is shared with the package. A row of labels is a tuple of 0 and 1; `costs` is a pair of lists, what each
label costs where it is absent and where it is present. Where an answer needs more than one text's costs, it is written
for one text: tests loop.
"""

import itertools
import math
from fractions import Fraction


def lp_costs(probabilities, p):
    """Costs under an L_p norm: |o - 0|^p for an absent label, |o - 1|^p for a present one; p = inf: no power."""
    power = {1: lambda x: x, math.inf: lambda x: x}.get(p, lambda x: math.pow(x, p))
    if p in (2, 4, 8):
        power = _repeated_square(p)
    return [power(o) for o in probabilities], [power(1.0 - o) for o in probabilities]


def _repeated_square(p):
    def power(x):
        for _ in range({2: 1, 4: 2, 8: 3}[p]):
            x = x * x
        return x

    return power


def log_costs(probabilities, clip):
    """Costs under minus the log-likelihood, with probabilities kept away from 0 and 1."""
    clipped = [min(max(o, clip), 1.0 - clip) for o in probabilities]
    return [-math.log1p(-o) for o in clipped], [-math.log(o) for o in clipped]


def total(costs, labels, aggregate="sum"):
    """Total of a label-set: the correctly rounded sum, or the largest, of what its labels cost."""
    absent, present = costs
    chosen = [present[k] if labels[k] else absent[k] for k in range(len(labels))]
    return math.fsum(chosen) if aggregate == "sum" else max(chosen)


def quadratic_total(matrix, probabilities, labels):
    """e' M e with e = |o - y|, in exact arithmetic, rounded once."""
    return float(exact_quadratic_total(matrix, probabilities, labels))


def exact_quadratic_total(matrix, probabilities, labels):
    """The same, not rounded."""
    errors = [Fraction(1.0 - o if y else o) for o, y in zip(probabilities, labels, strict=True)]
    d = len(errors)
    return sum(Fraction(float(matrix[i][j])) * errors[i] * errors[j] for i in range(d) for j in range(d))


def penalty(labels, seen, weights):
    """What a Penalised measure adds to the score of a label-set; `seen` is the list of training label-sets."""
    hamming, cardinality, pairs, prior = weights
    d, labels = len(labels), tuple(int(y) for y in labels)
    seen = [tuple(int(y) for y in row) for row in seen]
    distance = min(sum(a != b for a, b in zip(labels, row, strict=True)) for row in seen)
    as_many = sum(sum(row) == sum(labels) for row in seen)
    apart = sum(
        not any(row[i] and row[j] for row in seen)
        for i, j in itertools.combinations([k for k in range(d) if labels[k]], 2)
    )
    often = seen.count(labels) or 0.5
    return (
        hamming * distance / d
        + cardinality * (1 - as_many / len(seen))
        + pairs * apart
        + prior * math.log((len(seen) + 1) / often)
    )


def is_valid(labels, implications, exclusions, at_most):
    """Whether a label-set obeys constraints, by reading them one after the other."""
    for a, b in implications:
        if labels[a] and not labels[b]:
            return False
    for group in exclusions:
        if sum(bool(labels[k]) for k in set(group)) > 1:
            return False
    return all(sum(bool(labels[k]) for k in set(group)) <= most for most, group in at_most)


def candidates(n_labels, lo, hi):
    """All 0/1 rows with lo..hi labels, in lexicographic order."""
    return [row for row in itertools.product((0, 1), repeat=n_labels) if lo <= sum(row) <= hi]


def p_value(score, calibration):
    """(#{i : a_i >= a} + 1) / (n + 1), by counting."""
    at_least = 0
    for other in calibration:
        if other >= score:
            at_least += 1
    return Fraction(at_least + 1, len(calibration) + 1)


def smoothed_p_value(score, calibration, tie_break):
    """(#{i : a_i > a} + u (#{i : a_i = a} + 1)) / (n + 1), by counting, u taken exactly."""
    larger = equal = 0
    for other in calibration:
        larger += other > score
        equal += other == score
    return (larger + Fraction(tie_break) * (equal + 1)) / (len(calibration) + 1)


def scored(costs, limits, aggregate="sum"):
    """(total, row) of every candidate, best first, equal totals in lexicographic order."""
    return sorted((total(costs, row, aggregate), row) for row in candidates(len(costs[0]), *limits))


def prediction_set(costs, limits, calibration, level, aggregate="sum"):
    """{Y : p(Y) > e} by definition, as (row, p) best first; `level` is a Fraction."""
    ranked = [(row, p_value(score, calibration)) for score, row in scored(costs, limits, aggregate)]
    return [(row, p) for row, p in ranked if p > level]


def smoothed_prediction_set(costs, limits, calibration, level, tie_break, aggregate="sum"):
    """{Y : smoothed p(Y) > e}, as (row, p) best first."""
    ranked = [(row, smoothed_p_value(score, calibration, tie_break)) for score, row in scored(costs, limits, aggregate)]
    return [(row, p) for row, p in ranked if p > level]


def forced(costs, limits, calibration, aggregate="sum"):
    """(row, confidence, credibility): the highest p-value, ties by lowest total, then the first 0/1 row."""
    ranked = []
    for row in candidates(len(costs[0]), *limits):
        score = total(costs, row, aggregate)
        ranked.append((-p_value(score, calibration), score, row))
    ranked.sort()
    second = -ranked[1][0] if len(ranked) > 1 else Fraction(0)
    return ranked[0][2], 1.0 - float(second), float(-ranked[0][0])


def certain(members, n_labels):
    """Labels that all members have; none where there are no members."""
    return {k for k in range(n_labels) if members and all(row[k] for row in members)}


def possible(members, n_labels):
    """Labels that some member has."""
    return {k for k in range(n_labels) if any(row[k] for row in members)}


def excluded(members, n_labels):
    """Labels that no member has."""
    return {k for k in range(n_labels) if not any(row[k] for row in members)}


def inclusion(members, n_labels):
    """Share of the members that have each label; zeros where there are none."""
    if not members:
        return [0.0] * n_labels
    return [float(Fraction(sum(row[k] for row in members), len(members))) for k in range(n_labels)]


def p_value_sum(costs, limits, calibration, aggregate="sum"):
    """Sum of the p-values of all candidates: one text's part of S."""
    return sum((p_value(score, calibration) for score, _ in scored(costs, limits, aggregate)), Fraction(0))


def p_value_sum_without(costs, limits, calibration, labels, aggregate="sum"):
    """Sum of the p-values of all candidates but one: one text's part of OF."""
    return sum(
        (p_value(score, calibration) for score, row in scored(costs, limits, aggregate) if row != tuple(labels)),
        Fraction(0),
    )


def hamming_ball(probabilities, costs, threshold, limits, aggregate="sum"):
    """Algorithm 2 of the paper: t, and Q(t), the candidates with fewer than t flips away from z.

    Where even all flips stay within the threshold, t is d + 1 (the paper's loop has no label left to flip there).
    """
    n_labels = len(probabilities)
    z = tuple(int(o >= 0.5) for o in probabilities)
    nearest_first = sorted(range(n_labels), key=lambda k: abs(probabilities[k] - 0.5))
    current = list(z)
    t = 0
    while total(costs, current, aggregate) <= threshold:
        t += 1
        if t > n_labels:
            break
        current[nearest_first[t - 1]] = 1 - current[nearest_first[t - 1]]
    ball = [row for row in candidates(n_labels, *limits) if sum(a != b for a, b in zip(row, z, strict=True)) < t]
    return t, ball


def subset_count(costs, limits, threshold, aggregate="sum"):
    """Number of candidates with total <= threshold."""
    return sum(total(costs, row, aggregate) <= threshold for row in candidates(len(costs[0]), *limits))
