"""Misses by subgroup: the promise is an average over texts, and some kinds of text can pay for others."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from surelabel._core.validation import BoolArray, FloatArray, IntArray
from surelabel.evaluation.bands import BAND, Verdict, with_verdict

MOST_LISTED = 50
"""Texts with a single, wrong answer that are listed; all are counted."""

_CARDINALITIES = ((0, "no label"), (1, "1 label"), (2, "2 labels"), (3, "3 or more labels"))
_RARITIES = (
    (-1, "no label"),
    (0, "fewer than 10 training texts"),
    (10, "10 to 99 training texts"),
    (100, "100 to 999 training texts"),
    (1_000, "1,000 or more training texts"),
)


@dataclasses.dataclass(frozen=True, eq=False)
class TextInfo:
    """Further facts about texts, each optional.

    Attributes
    ----------
    ids : (n,) sequence of str
        Texts are named by their rows from 1 without them.
    training_counts : mapping of label name to number of training texts
    groups : (n,) sequence of str
    group_sizes : mapping of group to number of calibration texts
        Of groups that are calibrated apart; others are compared with all calibration texts.
    """

    ids: Sequence[str] | None = None
    training_counts: Mapping[str, int] | None = None
    groups: Sequence[str] | None = None
    group_sizes: Mapping[str, int] | None = None


@dataclasses.dataclass(frozen=True)
class Subgroup:
    """Texts of one kind: their number, the share whose label-set was missed, and the verdict on it."""

    name: str
    n_texts: int
    missed: float
    verdict: Verdict


@dataclasses.dataclass(frozen=True)
class SureButWrong:
    """A text with one plausible label-set that is not the true one."""

    id: str
    row: int
    guessed: tuple[str, ...]
    true: tuple[str, ...]
    confidence: float


@dataclasses.dataclass(frozen=True)
class Conditional:
    """Misses by subgroup at one significance.

    Attributes
    ----------
    significance : str
    subgroups : mapping of a division to its subgroups
        "number of true labels", "rarest label" and "group", as far as they are known.
    n_sure, n_sure_wrong : int
        Texts with one plausible label-set, and those of them for which it is not the true one.
    sure_but_wrong : tuple of SureButWrong
        The surest of them, at most 50.
    """

    significance: str
    subgroups: Mapping[str, tuple[Subgroup, ...]]
    n_sure: int
    n_sure_wrong: int
    sure_but_wrong: tuple[SureButWrong, ...]

    @property
    def broken(self) -> tuple[tuple[str, Subgroup], ...]:
        """Divisions and subgroups that are missed more often than chance explains, the worst first."""
        found = [(name, group) for name, groups in self.subgroups.items() for group in groups]
        return tuple(sorted((pair for pair in found if pair[1].verdict == "above"), key=lambda pair: -pair[1].missed))


def rarest_counts(label_sets: Sequence[Any], counts: Mapping[str, int]) -> IntArray:
    """Return the number of training texts of the rarest label of each text, (n,); -1 without labels."""
    return np.array([min((counts.get(name, 0) for name in names), default=-1) for names in label_sets], dtype=np.int64)


def _classes(values: Any, begins: Sequence[tuple[int, str]]) -> list[str]:
    """Return the class of each value: the last one that begins at or below it."""
    places = np.searchsorted([first for first, _ in begins], values, side="right") - 1
    return [begins[place][1] for place in places.tolist()]


def subgroups(
    missed: BoolArray, label_sets: Sequence[Any], level: str, n_calibration: int, info: TextInfo | None = None
) -> dict[str, tuple[Subgroup, ...]]:
    """Return the share of texts (n,) that are missed in each subgroup of each division.

    A subgroup is compared with all `n_calibration` texts, a group that is calibrated apart with its own. The band of
    chance is wider the more subgroups a division has, so that one division is found broken by chance in one of a
    hundred experiments, however many subgroups it has.
    """
    info = info or TextInfo()
    cardinalities, order = [len(names) for names in label_sets], [name for _, name in _CARDINALITIES]
    divisions = {"number of true labels": (_classes(cardinalities, _CARDINALITIES), order)}
    if info.training_counts is not None:
        rarest = rarest_counts(label_sets, info.training_counts)
        divisions["rarest label"] = _classes(rarest, _RARITIES), [name for _, name in _RARITIES]
    if info.groups is not None:
        divisions["group"] = list(map(str, info.groups)), sorted({str(group) for group in info.groups})
    found = {}
    for division, (names, order) in divisions.items():
        of, present = np.array(names, dtype=object), set(names)
        inside = 1.0 - (1.0 - BAND) / max(1, len(present))
        own = (info.group_sizes if division == "group" else None) or {}
        found[division] = tuple(
            _subgroup(name, missed[of == name], level, own.get(name, n_calibration), inside)
            for name in order
            if name in present
        )
    return found


def _subgroup(name: str, missed: BoolArray, level: str, n_calibration: int, inside: float) -> Subgroup:
    """Return the figures of a subgroup that is compared with `n_calibration` texts."""
    error = float(missed.mean())
    is_enough = float(level) * (n_calibration + 1) >= 1.0
    verdict = with_verdict(error, level, len(missed), n_calibration if is_enough else None, inside=inside)[2]
    return Subgroup(name, len(missed), error, verdict)


def sure_but_wrong(
    guessed: Sequence[Any],
    confidence: FloatArray,
    label_sets: Sequence[Any],
    single: BoolArray,
    ids: Sequence[str] | None = None,
) -> tuple[int, tuple[SureButWrong, ...]]:
    """Return how many texts with a `single` plausible label-set are wrong, and the surest of them."""
    wrong = [row for row in np.flatnonzero(single).tolist() if guessed[row] != frozenset(label_sets[row])]
    shown = sorted(wrong, key=lambda row: (-float(confidence[row]), row))[:MOST_LISTED]
    return len(wrong), tuple(
        SureButWrong(
            id=str(row + 1) if ids is None else str(ids[row]),
            row=row + 1,
            guessed=tuple(sorted(guessed[row])),
            true=tuple(sorted(label_sets[row])),
            confidence=float(confidence[row]),
        )
        for row in shown
    )
