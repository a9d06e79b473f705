"""How many label-sets obey constraints, exactly, by splitting them into parts that have nothing to do with each other.

A label is decided both ways, what follows is decided with it, and what is left falls apart into components that are
counted once each and multiplied. Counts are polynomials: coefficient s is the number of label-sets with s labels.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections import Counter
from typing import TypeAlias

import numpy as np

from surelabel.exceptions import SearchLimitError

Polynomial: TypeAlias = tuple[int, ...]
# (a, b, value): label a present together with label b at this value.
Forbidden: TypeAlias = tuple[int, int, int]
Group: TypeAlias = tuple[int, frozenset[int]]
_State: TypeAlias = tuple[frozenset[Forbidden], frozenset[Group]]
# Components that may be counted: some ten seconds.
_MAX_COMPONENTS = 100_000


@functools.lru_cache(maxsize=64)
def binomials(n: int) -> tuple[int, ...]:
    """Return how many subsets of n things have 0, 1, ..., n elements; by a running product, for large n."""
    row = [1]
    for size in range(n):
        row.append(row[-1] * (n - size) // (size + 1))
    return tuple(row)


@functools.lru_cache(maxsize=4096)
def count_by_size(n: int, fewest: int, most: int) -> int:
    """Return how many subsets of n things have fewest..most elements; quick if either limit cuts off few sizes."""
    fewest, most = max(fewest, 0), min(most, n)
    if most < fewest:
        return 0
    if most - fewest > n // 2:
        return (1 << n) - count_by_size(n, 0, fewest - 1) - count_by_size(n, most + 1, n)
    if most > n - fewest:
        fewest, most = n - most, n - fewest
    ways = math.comb(n, fewest)
    total = ways
    for size in range(fewest, most):
        ways = ways * (n - size) // (size + 1)
        total += ways
    return total


def _multiply(one: Polynomial, other: Polynomial) -> Polynomial:
    """Multiply two polynomials, of whole numbers of any size."""
    return tuple(np.convolve(np.array(one, dtype=object), np.array(other, dtype=object)).tolist())


def _labels_of(state: _State) -> set[int]:
    """Return the labels that constraints are about."""
    labels = {label for a, b, _ in state[0] for label in (a, b)}
    return labels.union(*(group for _, group in state[1]))


def _simplify_pairs(
    pairs: frozenset[Forbidden], decided: dict[int, int], forced: dict[int, int]
) -> frozenset[Forbidden] | None:
    """Return the pairs that are still open, and add what others force; None if one is broken."""
    left = set()
    for a, b, value in pairs:
        if decided.get(a) == 0 or decided.get(b) == 1 - value:
            continue
        if a not in decided and b not in decided:
            left.add((a, b, value))
            continue
        if a in decided and b in decided:
            return None
        label, must = (b, 1 - value) if a in decided else (a, 0)
        if forced.setdefault(label, must) != must:
            return None
    return frozenset(left)


def _simplify_groups(
    groups: frozenset[Group], decided: dict[int, int], forced: dict[int, int]
) -> frozenset[Group] | None:
    """Return the groups that still say something, and add what full ones force; None if one is too full."""
    left = set()
    for k, group in groups:
        room = k - sum(decided.get(label, 0) for label in group)
        rest = frozenset(label for label in group if label not in decided)
        if room < 0 or (room == 0 and any(forced.setdefault(label, 0) != 0 for label in rest)):
            return None
        if 0 < room < len(rest):
            left.add((room, rest))
    return frozenset(left)


def _decide(state: _State, decisions: dict[int, int]) -> tuple[_State, dict[int, int]] | None:
    """Decide labels, and all that follows; return what is left and all decisions, None if they contradict."""
    pairs, groups = state
    decided = dict(decisions)
    while True:
        forced: dict[int, int] = {}
        open_pairs = _simplify_pairs(pairs, decided, forced)
        open_groups = _simplify_groups(groups, decided, forced)
        if open_pairs is None or open_groups is None:
            return None
        pairs, groups = open_pairs, open_groups
        if not forced:
            return (pairs, groups), decided
        decided |= forced


def _components(state: _State) -> list[_State]:
    """Split constraints into those that share no label."""
    parent: dict[int, int] = {label: label for label in _labels_of(state)}

    def root(label: int) -> int:
        while parent[label] != label:
            parent[label] = parent[parent[label]]
            label = parent[label]
        return label

    for a, b, _ in state[0]:
        parent[root(a)] = root(b)
    for _, group in state[1]:
        first, *rest = group
        for label in rest:
            parent[root(label)] = root(first)
    parts: dict[int, tuple[set[Forbidden], set[Group]]] = {}
    for pair in state[0]:
        parts.setdefault(root(pair[0]), (set(), set()))[0].add(pair)
    for group_rule in state[1]:
        parts.setdefault(root(next(iter(group_rule[1]))), (set(), set()))[1].add(group_rule)
    return [(frozenset(pairs), frozenset(groups)) for pairs, groups in parts.values()]


class _Counter:
    """Counts components, each once."""

    def __init__(self) -> None:
        self._known: dict[_State, Polynomial] = {}

    def count(self, state: _State, labels: set[int]) -> Polynomial:
        """Count the label-sets over `labels` that obey a state whose constraints are about some of them."""
        constrained: set[int] = set()
        result: Polynomial = (1,)
        for component in _components(state):
            constrained |= _labels_of(component)
            result = _multiply(result, self._count_component(component))
        return _multiply(result, binomials(len(labels) - len(constrained)))

    def _count_component(self, state: _State) -> Polynomial:
        """Count the label-sets over the labels of one component."""
        if state in self._known:
            return self._known[state]
        if len(self._known) >= _MAX_COMPONENTS:
            raise SearchLimitError(
                f"The label-sets that obey these constraints cannot be counted in {_MAX_COMPONENTS:,} steps: too many "
                "labels depend on each other. Use fewer constraints."
            )
        if not state[0] and len(state[1]) == 1:
            ((k, group),) = state[1]
            result: Polynomial = binomials(len(group))[: k + 1]
        else:
            labels = _labels_of(state)
            degree = Counter(label for a, b, _ in state[0] for label in (a, b))
            degree.update(itertools.chain.from_iterable(group for _, group in state[1]))
            label = min(labels, key=lambda one: (-degree[one], one))
            sums = [0] * (len(labels) + 1)
            for value in (0, 1):
                outcome = _decide(state, {label: value})
                if outcome is None:
                    continue
                left, decided = outcome
                present = sum(decided.values())
                for size, count in enumerate(self.count(left, labels - set(decided))):
                    sums[size + present] += count
            result = tuple(sums)
        self._known[state] = result
        return result


@functools.lru_cache(maxsize=32)
def count_valid_by_size(n_labels: int, forbidden: tuple[Forbidden, ...], groups: tuple[Group, ...]) -> tuple[int, ...]:
    """Return how many label-sets that obey constraints have 0, 1, ..., n_labels labels. The last answers are kept.

    Of `forbidden` (a, b, value), label a must not be present together with label b at this value, a != b; of `groups`
    (k, labels), at most k of these labels may be present.
    """
    try:
        started = _decide((frozenset(forbidden), frozenset(groups)), {})
        if started is None:
            return (0,) * (n_labels + 1)
        left, decided = started
        counts = _Counter().count(left, set(range(n_labels)) - set(decided))
    except RecursionError as error:
        raise SearchLimitError(
            "The label-sets that obey these constraints cannot be counted: too many labels depend on each other."
        ) from error
    present = sum(decided.values())
    padded = [0] * present + list(counts)
    return tuple(padded + [0] * (n_labels + 1 - len(padded)))
