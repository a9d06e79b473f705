"""The method once more, slow and obvious: every label-set scored, in exact fractions, nothing shared with the package.

A label-set is a tuple of 0 and 1. Costs are floats; they are rounded to whole units, and all that follows is exact.
"""

import itertools
import math
from fractions import Fraction


class Total(float):
    """A total as p-values compare it, rounded once to a float; `exact` puts label-sets in order."""

    def __new__(cls, rounded, exact):
        self = super().__new__(cls, rounded)
        self.exact = exact
        return self


def lp_costs(row, p):
    """Costs (absent, present) under an L_p norm, as float64 arithmetic gives them."""

    def power(x):
        if p in (2, 4, 8):
            for _ in range(int(math.log2(p))):
                x = x * x
            return x
        return x if p == 1 else math.pow(x, p)

    return [power(o) for o in row], [power(1.0 - o) for o in row]


def totals(absent, present, units, label_sets):
    """The total of every label-set in units: the cheapest assignment to 2^-50, flips in whole units."""
    exact = [[Fraction(x) * Fraction(units) for x in costs] for costs in (absent, present)]
    whole = [[round(x) for x in costs] for costs in exact]
    cheapest = [min(pair) for pair in zip(*exact, strict=True)]
    base = sum(math.floor(x) * 2**50 + round((x - math.floor(x)) * 2**50) for x in cheapest)
    least = [min(pair) for pair in zip(*whole, strict=True)]
    flips = [[x - low for x, low in zip(costs, least, strict=True)] for costs in whole]
    result = {}
    for label_set in label_sets:
        total = base + sum(flips[y][k] for k, y in enumerate(label_set)) * 2**50
        # Whole parts past 2^53 are rounded once; fractions beside them are less than half a step.
        rounded = float(Fraction(total, 2**50)) if total < 2**103 else float(total >> 50)
        result[label_set] = Total(rounded, total)
    return result


def obeys(y, rules):
    """Whether a label-set obeys constraints given as keyword arguments of LabelConstraints."""
    return (
        all(not y[a] or y[b] for a, b in rules.get("implications", ()))
        and all(sum(y[k] for k in set(g)) <= 1 for g in rules.get("exclusions", ()))
        and all(sum(y[k] for k in set(g)) <= n for n, g in rules.get("at_most", ()))
        and all(sum(y[k] for k in set(g)) >= n for n, g in rules.get("at_least", ()))
    )


def candidates(d, least, most, rules=None):
    """All label-sets within limits that obey the rules, in lexicographic order."""
    return [y for y in itertools.product((0, 1), repeat=d) if least <= sum(y) <= most and obeys(y, rules or {})]


def p_value(scores, total):
    """p(Y) = (#{i : a_i >= a(Y)} + 1) / (n + 1)."""
    return Fraction(sum(a >= total for a in scores) + 1, len(scores) + 1)


def members(scores_of, totals_of, level):
    """Members with p-values over the level, best first. scores_of(y): calibration scores of its class."""
    p = {y: p_value(scores_of(y), total) for y, total in totals_of.items()}
    inside = sorted((-p[y], total.exact, y) for y, total in totals_of.items() if p[y] > level)
    return [(y, -minus_p) for minus_p, _, y in inside]


def forced(scores_of, totals_of):
    """Best label-set, confidence, credibility."""
    ranked = members(scores_of, totals_of, Fraction(-1))
    second = ranked[1][1] if len(ranked) > 1 else Fraction(0)
    return ranked[0][0], 1 - second, ranked[0][1]
