"""Constraints on valid label-sets: what goes with what, and what does not."""

from __future__ import annotations

import dataclasses
import functools
import itertools
import json
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from surelabel._core.packing import Words, n_words, pack
from surelabel._core.validation import BoolArray, IntArray, as_labels, names_of_columns
from surelabel.exceptions import InvalidInputError, SearchLimitError
from surelabel.labels.counting import count_valid_by_size

# A label's name if names are known, its index if not.
Label: TypeAlias = str | int
_MOST_SHOWN = 5


@dataclasses.dataclass(frozen=True)
class Violation:
    """A label-set that does not obey a constraint: the text's row, and the constraint in words."""

    row: int
    constraint: str


@dataclasses.dataclass(frozen=True)
class ConstraintReport:
    """Which of some texts' label-sets do not obey constraints.

    Attributes
    ----------
    n_texts : int
    violations : tuple of Violation
        One per text and constraint.
    """

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
        lines = [f"{len(self.rows)} of {self.n_texts} label-sets do not obey the constraints:"]
        broken = self.by_constraint()
        lines += [f"  {constraint}: {count}" for constraint, count in itertools.islice(broken.items(), _MOST_SHOWN)]
        if len(broken) > _MOST_SHOWN:
            lines.append(f"  and {len(broken) - _MOST_SHOWN} more constraints")
        return "\n".join(lines)


@dataclasses.dataclass(frozen=True)
class LabelConstraints:
    """What a valid label-set must obey; labels by name, or by index if there are no names.

    Parameters
    ----------
    implications : sequence of (label, label)
        A label-set with the first label has the second too: ("wheat", "grain").
    exclusions : sequence of collections of labels
        No two labels of one collection are together in a label-set.
    at_most : sequence of (k, labels)
        A label-set has at most k of these labels.
    forest : mapping of label to label
        Labels and their parents: a label-set with a label has its parent too.

    Examples
    --------
    >>> constraints = LabelConstraints(forest={"wheat": "grain", "corn": "grain"}, exclusions=[("grain", "oil")])
    >>> print(constraints.check([["wheat"], ["grain", "corn"]], label_names=["corn", "grain", "oil", "wheat"]))
    1 of 2 label-sets do not obey the constraints:
      wheat implies grain: 1
    >>> constraints.resolved(["corn", "grain", "oil", "wheat"], 4).count_by_size(4)
    (1, 2, 2, 1, 0)
    """

    implications: Sequence[tuple[Label, Label]] = ()
    exclusions: Sequence[Sequence[Label]] = ()
    at_most: Sequence[tuple[int, Sequence[Label]]] = ()
    forest: Mapping[Label, Label] = dataclasses.field(default_factory=dict)

    def __post_init__(self) -> None:
        try:
            implications = tuple((_as_label(a), _as_label(b)) for a, b in self.implications)
            exclusions = tuple(tuple(_as_label(label) for label in labels) for labels in map(_as_list, self.exclusions))
            at_most = tuple((k, tuple(_as_label(label) for label in _as_list(labels))) for k, labels in self.at_most)
            forest = {_as_label(child): _as_label(parent) for child, parent in dict(self.forest).items()}
        except (TypeError, ValueError) as error:
            raise InvalidInputError(
                "The parameters of LabelConstraints must be implications=[(label, label), ...], exclusions=[[label, "
                f"...], ...], at_most=[(k, [label, ...]), ...] and forest={{label: parent, ...}}. Got {error} instead."
            ) from error
        for k, labels in at_most:
            if isinstance(k, bool) or not isinstance(k, (int, np.integer)) or k < 0:
                raise InvalidInputError(
                    f"The 'at_most' parameter of LabelConstraints must have whole numbers, 0 or more. Got {k!r} for "
                    f"{list(labels)} instead."
                )
        _check_forest(forest)
        for name, value in (("implications", implications), ("exclusions", exclusions), ("forest", forest)):
            object.__setattr__(self, name, value)
        object.__setattr__(self, "at_most", tuple((int(k), labels) for k, labels in at_most))

    def __hash__(self) -> int:
        return hash((self.implications, self.exclusions, self.at_most, tuple(self.forest.items())))

    @classmethod
    def from_dict(cls, values: Any) -> LabelConstraints:
        """Make constraints from plain values, as `to_dict` gives them."""
        allowed = {field.name for field in dataclasses.fields(cls)}
        if not isinstance(values, dict) or not set(values) <= allowed:
            raise InvalidInputError(
                f"Constraints must be a JSON object with keys of {sorted(allowed)}. Got {values!r:.200}."
            )
        fields = dict(values)
        groups = fields.get("at_most", [])
        if not isinstance(groups, list) or not all(
            isinstance(group, dict) and set(group) == {"k", "labels"} for group in groups
        ):
            raise InvalidInputError('"at_most" of constraints must be a list of objects {"k": 2, "labels": [...]}.')
        fields["at_most"] = [(group["k"], group["labels"]) for group in groups]
        return cls(**fields)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON. Indices as labels of a forest are given as a list of pairs of implications."""
        named = all(isinstance(label, str) for label in self.forest)
        return {
            "implications": [list(pair) for pair in self.implications]
            + ([] if named else [list(pair) for pair in self.forest.items()]),
            "exclusions": [list(labels) for labels in self.exclusions],
            "at_most": [{"k": k, "labels": list(labels)} for k, labels in self.at_most],
            "forest": dict(self.forest) if named else {},
        }

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> LabelConstraints:
        """Read constraints from a JSON file; see `to_dict` for what is in it."""
        try:
            values = json.loads(Path(path).read_text(encoding="utf-8"))
        except (UnicodeDecodeError, json.JSONDecodeError, RecursionError) as error:
            raise InvalidInputError(f"{os.fspath(path)} is not a JSON file of constraints: {error}.") from error
        return cls.from_dict(values)

    @property
    def _pairs(self) -> tuple[tuple[Label, Label], ...]:
        """Implications, those of the forest among them."""
        return (*self.implications, *self.forest.items())

    @property
    def is_named(self) -> bool:
        """Whether labels are given by name, so that they mean nothing before names are known."""
        labels = (*self._pairs, *self.exclusions, *(labels for _, labels in self.at_most))
        return any(isinstance(label, str) for group in labels for label in group)

    def resolved(self, label_names: Sequence[str] | None, n_labels: int) -> LabelConstraints:
        """Return the same constraints with indices for labels, checked against the labels there are."""
        index_of: dict[Any, int] = {} if label_names is None else {name: k for k, name in enumerate(label_names)}

        def index(label: Label) -> int:
            if isinstance(label, str):
                if label not in index_of:
                    raise InvalidInputError(
                        f"The constraints name the label {label!r}, but "
                        + ("label names are not known." if label_names is None else "there is no label of that name.")
                    )
                return index_of[label]
            if not 0 <= label < n_labels:
                raise InvalidInputError(
                    f"The constraints have the label {label}, but there are labels 0 to {n_labels - 1}."
                )
            return label

        return LabelConstraints(
            implications=[(index(a), index(b)) for a, b in self._pairs],
            exclusions=[[index(label) for label in labels] for labels in self.exclusions],
            at_most=[(k, [index(label) for label in labels]) for k, labels in self.at_most],
        )

    @functools.cached_property
    def forbidden(self) -> tuple[tuple[int, int, int], ...]:
        """What resolved constraints forbid: (a, b, value) is label a present together with label b at this value."""
        pairs = [(int(a), int(b), 0) for a, b in self._pairs if a != b]
        for labels in self.exclusions:
            pairs += [(int(a), int(b), 1) for a, b in itertools.combinations(sorted(set(labels)), 2)]
        return tuple(dict.fromkeys(pairs))

    @functools.cached_property
    def groups(self) -> tuple[tuple[int, frozenset[int]], ...]:
        """Groups of resolved constraints that say anything: (k, labels)."""
        return tuple((k, frozenset(int(x) for x in labels)) for k, labels in self.at_most if k < len(set(labels)))

    def arrays(self, n_labels: int) -> tuple[IntArray, Words, IntArray]:
        """Return resolved constraints as kernels take them: forbidden (m, 3), groups (g, W), at_most (g,)."""
        forbidden = np.array(self.forbidden, dtype=np.int64).reshape(len(self.forbidden), 3)
        rows = np.zeros((len(self.groups), n_labels), dtype=np.bool_)
        for i, (_, labels) in enumerate(self.groups):
            rows[i, list(labels)] = True
        groups = pack(rows) if len(rows) else np.empty((0, n_words(n_labels)), dtype=np.uint64)
        return forbidden, groups, np.array([k for k, _ in self.groups], dtype=np.int64)

    def obeyed_by(self, labels: BoolArray) -> BoolArray:
        """Tell for label-sets (n, d), of resolved constraints, whether they obey all of them, (n,)."""
        obeyed = np.ones(len(labels), dtype=np.bool_)
        for _, broken in self._broken_by(labels):
            obeyed &= ~broken
        return obeyed

    def _broken_by(self, labels: BoolArray) -> Iterator[tuple[tuple[Any, ...], BoolArray]]:
        """Yield what is in `forbidden`, then in `groups`, each with which label-sets (n, d) break it, (n,)."""
        for a, b, value in self.forbidden:
            yield (a, b, value), labels[:, a] & (labels[:, b] == bool(value))
        for k, group in self.groups:
            yield (k, group), labels[:, sorted(group)].sum(axis=1) > k

    def count_by_size(self, n_labels: int) -> tuple[int, ...]:
        """Return how many valid label-sets, of resolved constraints, have 0, 1, ..., n_labels labels."""
        return count_valid_by_size(n_labels, self.forbidden, self.groups)

    def check_candidates(
        self, label_names: Sequence[str] | None, n_labels: int, min_labels: int, max_labels: int | None, *, who: str
    ) -> None:
        """Raise if no label-set within limits on the number of labels obeys the constraints; name those at fault."""
        limits = int(min_labels), n_labels if max_labels is None else min(int(max_labels), n_labels)
        if self._n_within(label_names, n_labels, limits):
            return

        def contradict(rules: Sequence[LabelConstraints]) -> bool:
            return not _together(rules)._n_within(label_names, n_labels, limits)

        try:
            fault = _smallest(contradict, list(self._rules()))
        except SearchLimitError:
            fault = list(self._rules())
        named = "; ".join(map(str, fault[:_MOST_SHOWN]))
        more = f"; and {len(fault) - _MOST_SHOWN} more" if len(fault) > _MOST_SHOWN else ""
        raise InvalidInputError(
            f"The 'constraints' parameter of {who} leaves no candidate with {limits[0]} to {limits[1]} of {n_labels} "
            f"labels. What contradicts these limits: {named}{more}. Change one of these, or the limits."
        )

    def _n_within(self, label_names: Sequence[str] | None, n_labels: int, limits: tuple[int, int]) -> int:
        """Return how many label-sets obey the constraints and limits on the number of labels."""
        return sum(self.resolved(label_names, n_labels).count_by_size(n_labels)[limits[0] : limits[1] + 1])

    def _rules(self) -> Iterable[LabelConstraints]:
        """Yield every constraint on its own, as it was given."""
        yield from (LabelConstraints(implications=[pair]) for pair in self._pairs)
        yield from (LabelConstraints(exclusions=[labels]) for labels in self.exclusions)
        yield from (LabelConstraints(at_most=[group]) for group in self.at_most)

    def __str__(self) -> str:
        rules = [f"{a} implies {b}" for a, b in self._pairs]
        rules += [f"{_listed(labels)} exclude each other" for labels in self.exclusions]
        rules += [f"at most {k} of {_listed(labels)}" for k, labels in self.at_most]
        return "; ".join(rules)

    def check(self, labels: Any, label_names: Sequence[str] | None = None) -> ConstraintReport:
        """Report which label-sets do not obey the constraints; those of training texts should.

        Parameters
        ----------
        labels : (n, d) 0/1 array-like, sparse matrix or data frame, or collections of label names
        label_names : sequence of str, optional
            Names of the labels; a data frame brings its own.
        """
        names = tuple(label_names) if label_names is not None else names_of_columns(labels)
        truth = as_labels(labels, who="check", n_labels=None if names is None else len(names), label_names=names)
        resolved = self.resolved(names, truth.shape[1])

        words = [str(label) for label in range(truth.shape[1])] if names is None else names
        violations = []
        for rule, broken in resolved._broken_by(truth):
            if len(rule) == 2:
                text = f"at most {rule[0]} of {', '.join(words[label] for label in sorted(rule[1]))}"
            else:
                text = f"{words[rule[0]]} {'excludes' if rule[2] else 'implies'} {words[rule[1]]}"
            violations += [Violation(int(row), text) for row in np.flatnonzero(broken)]
        return ConstraintReport(len(truth), tuple(sorted(violations, key=lambda violation: violation.row)))


def _together(rules: Sequence[LabelConstraints]) -> LabelConstraints:
    """Return constraints that hold all at once."""
    return LabelConstraints(
        implications=[pair for rule in rules for pair in rule._pairs],
        exclusions=[labels for rule in rules for labels in rule.exclusions],
        at_most=[group for rule in rules for group in rule.at_most],
    )


def _smallest(
    contradict: Callable[[Sequence[LabelConstraints]], bool], rules: list[LabelConstraints]
) -> list[LabelConstraints]:
    """Return rules that contradict, none of which can be left out (Junker 2004, QuickXplain)."""

    def needed(others: list[LabelConstraints], some: list[LabelConstraints], *, is_new: bool) -> list[LabelConstraints]:
        """Return those of some rules that are needed to contradict together with others."""
        if is_new and contradict(others):
            return []
        if len(some) == 1:
            return some
        left, right = some[: len(some) // 2], some[len(some) // 2 :]
        of_right = needed([*others, *left], right, is_new=True)
        of_left = needed([*others, *of_right], left, is_new=bool(of_right))
        return [*of_left, *of_right]

    return needed([], rules, is_new=False)


def _listed(labels: Sequence[Label]) -> str:
    """List labels, the first few of many."""
    more = f" and {len(labels) - _MOST_SHOWN} more" if len(labels) > _MOST_SHOWN else ""
    return ", ".join(map(str, labels[:_MOST_SHOWN])) + more


def _as_label(label: Any) -> Label:
    """Return a label as a name or an index; anything else is refused."""
    if isinstance(label, str):
        return str(label)
    if isinstance(label, (int, np.integer)) and not isinstance(label, bool):
        return int(label)
    raise TypeError(f"{label!r}, which is neither a label's name nor its index,")


def _as_list(labels: Any) -> list[Any]:
    """Return a collection of labels as a list; one name is not a collection."""
    if isinstance(labels, (str, bytes)) or not isinstance(labels, Iterable):
        raise TypeError(f"{labels!r}, which is not a collection of labels,")
    return sorted(labels, key=str) if isinstance(labels, (set, frozenset)) else list(labels)


def _check_forest(forest: Mapping[Label, Label]) -> None:
    """Raise if a label is its own ancestor."""
    for start in forest:
        label: Label | None = start
        for _ in range(len(forest)):
            label = forest.get(label) if label is not None else None
        if label is not None and label in forest:
            raise InvalidInputError(
                f"The 'forest' parameter of LabelConstraints must have no cycle. Got one at or above {start!r}."
            )
