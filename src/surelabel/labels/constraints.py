"""Constraints on label-sets: labels that imply others, exclude each other, or are limited in number."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from surelabel._core.validation import BoolArray, IntArray, Names, as_labels, column_names
from surelabel.exceptions import InvalidInputError

# A label's name if labels have names, its index if not.
Label: TypeAlias = Any
# 0/1 values that are checked at once, and steps of the search for contradictions.
_VALUES_AT_ONCE, _MOST_STEPS = 2**24, 2**20
_MOST_SHOWN = 5


@dataclass(frozen=True)
class LabelConstraints:
    """Rules that every plausible label-set obeys; labels by name, or by index if they have no names.

    Parameters
    ----------
    implications : sequence of (label, label)
        A label-set with the first label has the second too: ("wheat", "grain").
    exclusions : sequence of collections of labels
        No two labels of a collection are together in a label-set.
    at_most, at_least : sequence of (k, labels)
        A label-set has at most, or at least, k of these labels.
    forest : mapping of label to label
        Labels and their parents: a label-set with a label has its parent too.

    Examples
    --------
    >>> constraints = LabelConstraints(forest={"wheat": "grain", "corn": "grain"}, exclusions=[("grain", "oil")])
    >>> print(constraints.check([["wheat"], ["grain", "corn"]], label_names=["corn", "grain", "oil", "wheat"]))
    1 of 2 label-sets do not obey the constraints:
      wheat implies grain: 1
    """

    implications: Sequence[tuple[Label, Label]] = ()
    exclusions: Sequence[Sequence[Label]] = ()
    at_most: Sequence[tuple[int, Sequence[Label]]] = ()
    at_least: Sequence[tuple[int, Sequence[Label]]] = ()
    forest: Mapping[Label, Label] = field(default_factory=dict)

    def __post_init__(self) -> None:
        try:
            parents = dict(self.forest)
            pairs = [(_as_label(a), _as_label(b)) for a, b in (*self.implications, *parents.items())]
            exclusions = tuple(_as_group(labels) for labels in self.exclusions)
            at_most, at_least = (
                tuple((_as_count(k), _as_group(labels)) for k, labels in rules)
                for rules in (self.at_most, self.at_least)
            )
        except (TypeError, ValueError) as error:
            raise InvalidInputError(
                "LabelConstraints takes implications=[(label, label), ...], exclusions=[[label, ...], ...], at_most "
                f"and at_least=[(k, [label, ...]), ...], and forest={{label: parent, ...}}. Got {error}."
            ) from error
        cycle = _find_cycle(parents)
        if cycle:
            raise InvalidInputError(f"The forest of LabelConstraints has a cycle: {' - '.join(map(str, cycle))}.")
        values = {"implications": tuple(dict.fromkeys(pairs)), "exclusions": exclusions, "forest": {}}
        for name, value in (values | {"at_most": at_most, "at_least": at_least}).items():
            object.__setattr__(self, name, value)

    def __hash__(self) -> int:
        return hash((self.implications, self.exclusions, self.at_most, self.at_least))

    @classmethod
    def from_dict(cls, values: Any) -> LabelConstraints:
        """Make constraints from plain values, as `to_dict` gives them; groups are {"k": 2, "labels": [...]}."""
        if not isinstance(values, dict) or not set(values) <= {one.name for one in fields(cls)}:
            expected = sorted(one.name for one in fields(cls))
            raise InvalidInputError(f"Constraints must be a JSON object with keys of {expected}. Got {values!r:.200}.")
        plain = dict(values)
        for name in ("at_most", "at_least"):
            groups = plain.get(name, [])
            if not isinstance(groups, list) or not all(
                isinstance(g, dict) and set(g) == {"k", "labels"} for g in groups
            ):
                raise InvalidInputError(f'"{name}" of constraints must be a list of {{"k": 2, "labels": [...]}}.')
            plain[name] = [(group["k"], group["labels"]) for group in groups]
        return cls(**plain)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        groups = {"at_most": self.at_most, "at_least": self.at_least}
        return {
            "implications": [list(pair) for pair in self.implications],
            "exclusions": [list(labels) for labels in self.exclusions],
            **{name: [{"k": k, "labels": list(labels)} for k, labels in rules] for name, rules in groups.items()},
        }

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> LabelConstraints:
        """Read constraints from a JSON file; see `to_dict` for its contents."""
        try:
            values = json.loads(Path(path).read_text(encoding="utf-8"))
        except OSError as error:
            raise InvalidInputError(f"The constraints file {os.fspath(path)} cannot be read: {error}.") from error
        except (ValueError, RecursionError) as error:
            raise InvalidInputError(f"{os.fspath(path)} is not a JSON file of constraints: {error}.") from error
        return cls.from_dict(values)

    def rules(self, names: Names | None, n_labels: int) -> Rules:
        """Return the rules with indices for labels; an error for labels that are not there."""
        places = {name: k for k, name in enumerate(range(n_labels) if names is None else names)}
        try:
            return Rules(
                n_labels,
                np.array([(places[a], places[b]) for a, b in self.implications], dtype=np.int64).reshape(-1, 2),
                [Group(tuple(places[label] for label in group.labels), *group[1:]) for group in self._groups()],
                tuple(map(str, range(n_labels))) if names is None else names,
            )
        except KeyError as error:
            known = "labels have no names here" if names is None else "there is no label of that name"
            raise InvalidInputError(f"The constraints have the label {error}, but {known}.") from None

    def _groups(self) -> Iterator[Group]:
        """Yield rules on numbers of labels, with labels as they were given."""
        yield from (Group(tuple(labels), 0, 1) for labels in self.exclusions)
        yield from (Group(tuple(labels), 0, k) for k, labels in self.at_most)
        yield from (Group(tuple(labels), k, len(labels)) for k, labels in self.at_least)

    def __str__(self) -> str:
        rules = [f"{a} implies {b}" for a, b in self.implications]
        return "; ".join([*rules, *(group.words(list(map(str, group.labels))) for group in self._groups())])

    def check(self, labels: Any, label_names: Sequence[str] | None = None) -> ConstraintReport:
        """Report which label-sets do not obey the constraints; those of training texts should.

        Parameters
        ----------
        labels : (n, d) 0/1 array-like, sparse matrix or data frame, or collections of label names
        label_names : sequence of str, optional
            Names of the labels; a data frame brings its own.
        """
        names = tuple(label_names) if label_names is not None else column_names(labels)
        n_labels = np.shape(labels)[-1] if names is None else len(names)
        members, _ = as_labels(labels, None, n_labels, names, "check")
        broken = self.rules(names, n_labels).broken_by(members)
        violations = [Violation(row, words) for words, rows in broken for row in np.flatnonzero(rows).tolist()]
        return ConstraintReport(len(members), tuple(sorted(violations, key=lambda violation: violation.row)))


class Group(NamedTuple):
    """A rule on numbers of labels: a label-set has least..most of these."""

    labels: tuple[Any, ...]
    least: int
    most: int

    def words(self, names: Sequence[str]) -> str:
        """Return the rule in words; names are those of its labels."""
        listed = ", ".join(names)
        if self.least:
            return f"at least {self.least} of {listed}"
        return f"{listed} exclude each other" if self.most == 1 else f"at most {self.most} of {listed}"


class Violation(NamedTuple):
    """A label-set that breaks a constraint: the text's row, and the constraint in words."""

    row: int
    constraint: str


@dataclass(frozen=True)
class ConstraintReport:
    """Which of n_texts label-sets break constraints; `violations` has one entry per text and constraint."""

    n_texts: int
    violations: tuple[Violation, ...]

    @property
    def rows(self) -> tuple[int, ...]:
        """Rows of the texts that break a constraint."""
        return tuple(sorted({violation.row for violation in self.violations}))

    def by_constraint(self) -> dict[str, int]:
        """Return how many texts break each constraint, most first."""
        return dict(Counter(violation.constraint for violation in self.violations).most_common())

    def __str__(self) -> str:
        if not self.violations:
            return f"All {self.n_texts} label-sets obey the constraints."
        broken = list(self.by_constraint().items())
        lines = [f"{len(self.rows)} of {self.n_texts} label-sets do not obey the constraints:"]
        lines += [f"  {constraint}: {count}" for constraint, count in broken[:_MOST_SHOWN]]
        lines += [f"  and {len(broken) - _MOST_SHOWN} more constraints"] if len(broken) > _MOST_SHOWN else []
        return "\n".join(lines)


class Rules:
    """Constraints with indices for labels: implications (m, 2), and groups; `names` are for messages."""

    def __init__(self, n_labels: int, implications: IntArray, groups: list[Group], names: Names) -> None:
        self.n_labels = n_labels
        self.implications = implications
        self.groups = groups
        self.names = names

    def __len__(self) -> int:
        return len(self.implications) + len(self.groups)

    def obeyed(self, members: BoolArray, columns: IntArray | None = None) -> BoolArray:
        """Return which 0/1 rows (m, k) obey all rules, (m,); `columns` (m, k) has the labels of shortlists."""
        obeyed = np.empty(len(members), dtype=np.bool_)
        step = max(1, _VALUES_AT_ONCE // (self.n_labels + len(self.implications) + 1))
        for start in range(0, len(members), step):
            rows, dense = slice(start, start + step), members[start : start + step]
            if columns is not None:
                dense = np.zeros((len(dense), self.n_labels + 1), dtype=np.bool_)
                np.put_along_axis(dense, columns[rows], members[rows], axis=1)
            broken = (dense[:, self.implications[:, 0]] & ~dense[:, self.implications[:, 1]]).any(axis=1)
            for group in self.groups:
                count = dense[:, list(group.labels)].sum(axis=1)
                broken |= (count < group.least) | (count > group.most)
            obeyed[rows] = ~broken
        return obeyed

    def broken_by(self, members: BoolArray) -> Iterator[tuple[str, BoolArray]]:
        """Yield each rule in words, and which 0/1 rows (m, d) break it, (m,)."""
        for a, b in self.implications.tolist():
            yield f"{self.names[a]} implies {self.names[b]}", members[:, a] & ~members[:, b]
        for group in self.groups:
            count = members[:, list(group.labels)].sum(axis=1)
            words = group.words([self.names[label] for label in group.labels])
            yield words, (count < group.least) | (count > group.most)

    def contradiction(self, least: int, most: int) -> str | None:
        """Return why no label-set of least..most labels obeys the rules; None if there may be one.

        A label is impossible if the labels that it implies break a rule. This finds rules that exclude labels, or force
        labels that do not go together; harder contradictions show at the first search.
        """
        implied = _Implied(self, most)
        possible = [label for label in range(self.n_labels) if implied.fault_of([label]) is None]
        if len(possible) < least:
            fault = next((implied.fault_of([label]) for label in range(self.n_labels) if label not in possible), "")
            return f"{len(possible)} labels are possible, {least} are needed: {fault}"
        forced: list[int] = []
        for group in self.groups:
            left = sorted(set(group.labels) & set(possible))
            words = group.words([self.names[label] for label in group.labels])
            if len(left) < group.least:
                return f"{words}, of which {len(left)} are possible"
            if group.least and len(left) == group.least:
                forced += left
        fault = implied.fault_of(forced)
        return None if fault is None else f"labels that must be there contradict each other: {fault}"


class _Implied:
    """Labels that follow from labels."""

    def __init__(self, rules: Rules, most: int) -> None:
        self.rules, self.most, self.steps = rules, most, _MOST_STEPS
        self.next: dict[int, list[int]] = {}
        self.groups_of: dict[int, list[int]] = {}
        for a, b in rules.implications.tolist():
            self.next.setdefault(a, []).append(b)
        for place, group in enumerate(rules.groups):
            for label in group.labels:
                self.groups_of.setdefault(label, []).append(place)

    def fault_of(self, labels: Iterable[int]) -> str | None:
        """Return why these labels, with all that they imply, cannot be in one label-set; None if nothing is found."""
        closure = set(labels)
        left, counts = sorted(closure), Counter[int]()
        names = self.rules.names
        while left and self.steps > 0:
            self.steps -= 1
            label = left.pop()
            for place in self.groups_of.get(label, ()):
                counts[place] += 1
                if counts[place] > self.rules.groups[place].most:
                    group = self.rules.groups[place]
                    return group.words([names[one] for one in group.labels])
            new = set(self.next.get(label, ())) - closure
            closure |= new
            left += sorted(new)
            if len(closure) > self.most:
                return f"{names[label]} implies more than {self.most} labels"
        return None


def _as_label(value: Any) -> Label:
    """Return a name, or an index as Python's integer."""
    if isinstance(value, str):
        return value
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, np.integer)):
        raise TypeError(f"{value!r} in place of a label")
    return int(value)


def _as_group(labels: Any) -> tuple[Label, ...]:
    """Return a collection of different labels."""
    if isinstance(labels, str):
        raise TypeError(f"{labels!r} in place of a collection of labels")
    return tuple(dict.fromkeys(_as_label(label) for label in labels))


def _as_count(k: Any) -> int:
    """Return a number of labels."""
    if isinstance(k, (bool, np.bool_)) or not isinstance(k, (int, np.integer)) or k < 0:
        raise ValueError(f"{k!r} in place of a number of labels, 0 or more")
    return int(k)


def _find_cycle(parents: Mapping[Label, Label]) -> list[Label]:
    """Return labels that are each other's ancestors; none if there are none."""
    finished: set[Label] = set()
    for start in parents:
        path: dict[Label, None] = {}
        label = start
        while label in parents and label not in finished:
            if label in path:
                return [*list(path)[list(path).index(label) :], label]
            path[label] = None
            label = parents[label]
        finished.update(path)
    return []
