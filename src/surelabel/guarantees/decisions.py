"""What to do with a text: file it, choose from a short list, or read it. The one place that decides.

- **file**: the text is familiar and `Automation` has certified its best guess: of all texts that are filed, at most
  `max_wrong` are wrong. It is certified on the familiar calibration texts, since only familiar texts are filed.
- **choose**: a person picks from a short list that keeps its promise: up to `max_choices` plausible label-sets at the
  level; or, if there are more, up to `max_tags` tags to consider, of which `TagBounds` says how many true ones miss.
  A list of tags is short if a person takes it in at a glance and it leaves out most labels: see `short_list`.
- **read**: the text is unfamiliar, no label-set is plausible, or the list is too long to help.
"""

from __future__ import annotations

import itertools
import math
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np

from surelabel._core.validation import BoolArray, check_count, rows_of
from surelabel._core.wording import bounds_words
from surelabel.engines.one_row import Cut
from surelabel.exceptions import CalibrationWarning
from surelabel.guarantees.automation import Automation
from surelabel.guarantees.familiarity import FAMILIAR, FEW_WORDS, NO_WORDS, Familiarity
from surelabel.guarantees.tag_bounds import TagBounds
from surelabel.labels.label_sets import label_indices

Verdict: TypeAlias = Literal["file", "choose", "read"]
"""What can happen to a text."""

FILE: Verdict = "file"
CHOOSE: Verdict = "choose"
READ: Verdict = "read"

AUTOMATION, TAGS, FAMILIARITY = "automation.npz", "tags.npz", "familiarity.npz"
"""The files of decisions in a folder."""


def short_list(n_labels: int) -> int:
    """Return the longest list of tags that is less work than reading, for a number of labels.

    It is a quarter of the labels, so that the list rules most of them out; at most 20, which a person still scans at a
    glance; and at least 3, which is quick to read whatever the number of labels.
    """
    return max(3, min(20, n_labels // 4))


class Decision(NamedTuple):
    """What to do with one text, and why in a sentence or two; labels and tags by index, the most probable tags first.

    `unfamiliar` tells whether the text is unlike the calibration texts; `labels` is the label-set to file, if it is.
    """

    decision: Verdict
    reason: str
    assign: list[int]
    consider: list[int]
    unfamiliar: bool
    labels: list[int] | None


class Decisions:
    """Say what to do with texts, from certificates that were made with calibration texts.

    Parameters
    ----------
    automation : Automation
        Certifies what is filed.
    tag_bounds : TagBounds
    familiarity : Familiarity
    max_choices : int
        Longest list of plausible label-sets that a person is asked to choose from.
    max_tags : int, optional
        Longest list of tags to consider that is less work than reading; `short_list` of the labels by default.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> probabilities = rng.beta(0.1, 0.4, (1000, 5))
    >>> labels = rng.random((1000, 5)) < probabilities
    >>> decisions = Decisions(Automation(max_wrong=0.2, min_labels=0), TagBounds(), Familiarity())
    >>> decisions = decisions.calibrate(probabilities, labels, known_words=np.ones(1000))
    >>> new = [[0.99, 0.01, 0.01, 0.01, 0.01], [0.5, 0.5, 0.01, 0.01, 0.01], [0.99, 0.01, 0.01, 0.01, 0.01]]
    >>> answers = decisions.decide(new, sizes=[(1, 1), (4, 4), (1, 1)], known_words=[1.0, 1.0, np.nan])
    >>> [answer.decision for answer in answers]
    ['file', 'choose', 'read']
    >>> answers[1].reason
    '4 label-sets are plausible: choose one of them.'
    """

    def __init__(
        self,
        automation: Automation,
        tag_bounds: TagBounds,
        familiarity: Familiarity,
        max_choices: int = 9,
        max_tags: int | None = None,
    ) -> None:
        for name, value in (("max_choices", max_choices), ("max_tags", 1 if max_tags is None else max_tags)):
            check_count(name, value, who="Decisions", least=1)
        self.automation, self.tag_bounds, self.familiarity = automation, tag_bounds, familiarity
        self.max_choices = int(max_choices)
        self.max_tags = None if max_tags is None else int(max_tags)
        share = f"{100 * automation.max_wrong:g} %"
        self._filed_words = f"Certified: of the texts that are filed, at most {share} are wrong."

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.automation!r}, {self.tag_bounds!r}, {self.familiarity!r})"

    @property
    def n_labels(self) -> int:
        """Number of labels that decisions are about."""
        return self.automation.predictor_.calibration_.n_labels

    @property
    def longest_list(self) -> int:
        """Longest list of tags that a person is asked to choose from."""
        return short_list(self.n_labels) if self.max_tags is None else self.max_tags

    def calibrate(self, probabilities: Any, labels: Any, known_words: Any) -> Decisions:
        """Return decisions with certificates from calibration texts; parameters are those of this object.

        `known_words`, (n,), are shares of the texts' words that the classifier knows, see `TextClassifier.known_words`.
        """
        with warnings.catch_warnings(action="ignore", category=CalibrationWarning):  # the verdict repeats them
            automation = self.automation.again().calibrate(probabilities, labels)
            totals = automation.totals(probabilities)[:, 0]
            familiarity = Familiarity(self.familiarity.max_flagged).calibrate(totals, known_words)
            inside = np.flatnonzero(familiarity.within(totals, known_words))
            if 0 < len(inside) < len(totals):
                automation = self.automation.again().calibrate(rows_of(probabilities, inside), rows_of(labels, inside))
            tags = self.tag_bounds.again().calibrate(probabilities, labels)
        return Decisions(automation, tags, familiarity, self.max_choices, self.max_tags)

    def add(self, probabilities: Any, labels: Any, known_words: Any) -> Decisions:
        """Return decisions with certificates from more texts, a fair sample of those that arrive.

        Of the added texts those that are familiar, by the new limits, certify what is filed.
        """
        with warnings.catch_warnings(action="ignore", category=CalibrationWarning):  # the verdict repeats them
            totals = self.automation.totals(probabilities)[:, 0]
            familiarity = self.familiarity.add(totals, known_words)
            inside = np.flatnonzero(familiarity.within(totals, known_words))
            automation = self.automation
            if len(inside):
                automation = automation.add(rows_of(probabilities, inside), rows_of(labels, inside))
            tags = self.tag_bounds.add(probabilities, labels)
        return Decisions(automation, tags, familiarity, self.max_choices, self.max_tags)

    def decide(
        self, probabilities: Any, sizes: Sequence[tuple[int, int]], known_words: Any = None, best: Any = None
    ) -> list[Decision]:
        """Return what to do with each text.

        `sizes` bound the number of plausible label-sets of each text at the level that was asked for. All words count
        as known by default. `best`, (n, d), are the best candidates under the measure and the limits of `automation`,
        if you have them already.
        """
        calibration = self.automation.predictor_.calibration_
        checked = calibration.as_probabilities(probabilities, who="decide")
        known = np.ones(len(checked)) if known_words is None else np.asarray(known_words, dtype=np.float64)
        flags, filed = self._flags_and_filed(checked, known)
        labels = self._filed_labels(checked, filed, best)
        assign, consider, n_considered = self._tags(checked)
        answers = []
        for row, (flag, is_filed, bounds) in enumerate(zip(flags.tolist(), filed.tolist(), sizes, strict=True)):
            routed = self._route(is_filed, flag, known[row], bounds, n_considered[row])
            answers.append(Decision(*routed, assign[row], consider[row], flag != FAMILIAR, labels.get(row)))
        return answers

    def decide_one(self, cut: Cut, known_words: float) -> tuple[Verdict, str, bool] | None:
        """Return what to do with one text, why, and whether it is unfamiliar, as `decide`; None if that takes long.

        `cut` has its best candidate, prediction set and tags to consider, by a calibration that `automation` fits.
        """
        filed, total = self.automation.decide_one(cut)
        if filed is None:
            return None
        flag = self.familiarity.flag(total, known_words)
        is_filed = filed and flag == FAMILIAR
        return *self._route(is_filed, flag, known_words, (cut.size, cut.size), len(cut.considered)), flag != FAMILIAR

    def filed(self, probabilities: Any, known_words: Any) -> BoolArray:
        """Tell for each text, (n,), whether it is filed."""
        return self._flags_and_filed(probabilities, known_words)[1]

    def _flags_and_filed(self, probabilities: Any, known_words: Any) -> tuple[Any, BoolArray]:
        """Return the flag of each text, (n,), and whether it is filed, (n,)."""
        totals = self.automation.totals(probabilities)
        flags = self.familiarity.flags(totals[:, 0], known_words)
        return flags, np.asarray(self.automation.decide(probabilities, totals) & (flags == FAMILIAR))

    def _route(
        self, is_filed: bool, flag: int, known_words: float, bounds: tuple[int, int], n_considered: int
    ) -> tuple[Verdict, str]:
        """Return what to do with a text, and why."""
        if is_filed:
            return FILE, self._filed_words
        return self._choose_or_read(bounds, n_considered) if flag == FAMILIAR else (READ, _unlike(flag, known_words))

    def _choose_or_read(self, bounds: tuple[int, int], n_considered: int) -> tuple[Verdict, str]:
        """Return what to do with a familiar text that is not filed, and why."""
        lower, upper = bounds
        if upper == 0:
            return READ, "No label-set is plausible at this level."
        if upper == 1:
            return CHOOSE, "One label-set is plausible, but filing it is not certified: check it."
        if upper <= self.max_choices:
            return CHOOSE, f"{bounds_words(lower, upper)} label-sets are plausible: choose one of them."
        many = f"{bounds_words(lower, upper)} label-sets are plausible"
        if 0 < n_considered <= self.longest_list:
            tags = "the tag to consider" if n_considered == 1 else f"the {n_considered} tags to consider"
            missed = f"{100 * self.tag_bounds.max_missed:g} %"
            return CHOOSE, f"{many}: choose among {tags}, which miss at most {missed} of the true tags on average."
        if n_considered == 0:
            return READ, f"{many}, and no tag stands out."
        considered = f"{n_considered:,} of {self.n_labels:,} tags are to be considered"
        return READ, f"{many}, and {considered}: a short list has at most {self.longest_list}."

    def _filed_labels(self, checked: Any, filed: BoolArray, best: Any) -> dict[int, list[int]]:
        """Return the label-sets of the filed texts, by row."""
        rows = np.flatnonzero(filed)
        if not len(rows):
            return {}
        filed_best = self.automation.predictor_.bind(checked[rows]).forced()[0] if best is None else best[rows]
        return dict(zip(rows.tolist(), label_indices(filed_best), strict=True))

    def _tags(self, checked: Any) -> tuple[list[list[int]], list[list[int]], list[int]]:
        """Return tags to assign and to consider, the most probable first, and how many to consider, unlisted too."""
        rows, columns, values, n_more = self.tag_bounds.sorted_tags(checked)
        counts = np.bincount(rows, minlength=len(checked))
        n_assigned = np.bincount(rows[values >= self.tag_bounds.assign_threshold_], minlength=len(checked))
        ends, listed = itertools.accumulate(counts.tolist(), initial=0), columns.tolist()
        consider = [listed[start:end] for start, end in itertools.pairwise(ends)]
        assign = [tags[:n] for tags, n in zip(consider, n_assigned.tolist(), strict=True)]
        return assign, consider, (counts + n_more).tolist()

    def save(self, folder: Path) -> None:
        """Write the certificates into a folder, one file each."""
        self.automation.save(folder / AUTOMATION)
        self.tag_bounds.save(folder / TAGS)
        self.familiarity.save(folder / FAMILIARITY)

    @classmethod
    def load(cls, folder: Path, max_choices: int = 9, max_tags: int | None = None) -> Decisions | None:
        """Read the certificates of a folder, None if it has none; no code from the files is run."""
        if not (folder / AUTOMATION).is_file():
            return None
        automation, tags = Automation.load(folder / AUTOMATION), TagBounds.load(folder / TAGS)
        return cls(automation, tags, Familiarity.load(folder / FAMILIARITY), max_choices, max_tags)


def _unlike(flag: int, known: float) -> str:
    """Say why a text is unfamiliar."""
    if flag == NO_WORDS:
        none = "It has no words" if math.isnan(known) else "The model knows none of its words"
        return f"{none}: read it yourself."
    if flag == FEW_WORDS:
        return f"The model knows only {100 * known:.0f} % of its words: read it yourself."
    return "Unlike the calibration texts: no label-set fits it well. Read it yourself."
