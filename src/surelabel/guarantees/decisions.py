"""Decide first, then promise: file a text, let a person choose from its tags to consider, or have it read.

A promise about all texts says little about the texts that people see, because filing takes the easy ones away. So two
parts of the held-out texts are used one after the other:

1. The *filing* part fixes which texts are filed: `Novelty` flags texts unlike it, and `Automation` certifies best
   guesses on the rest. Texts that set a limit of `Novelty` themselves certify nothing.
2. Of the *calibration* part, only the texts that this rule does not file calibrate `TagBounds`. The rule does not
   depend on them, so they are exchangeable with the new texts that it does not file. The expected share of true tags
   that a list leaves out is therefore at most max_missed among the texts that people see.

- **file**: the best guess is certified. Of all filed texts at most max_wrong are wrong.
- **choose**: one to max_tags tags are worth considering.
- **read**: the text is novel, its list is empty or too long to help, or there are too few calibration texts.

The promise about lists covers chosen and read texts together, and the complete list: `Decision.consider` of a text to
read has all its tags to consider, however many they are.
"""

from __future__ import annotations

import math
import operator
import os
import warnings
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np

from surelabel._core import files
from surelabel._core.validation import BoolArray, FloatArray, aligned_rows, as_groups, check_count
from surelabel.exceptions import CalibrationWarning, InvalidInputError, NotCalibratedError
from surelabel.guarantees.automation import Automation
from surelabel.guarantees.novelty import FAMILIAR, FEW_WORDS, NO_WORDS, Novelty
from surelabel.guarantees.tag_bounds import TagBounds
from surelabel.labels.constraints import LabelConstraints
from surelabel.measures import LogLoss
from surelabel.predictor_file import as_artifact_error
from surelabel.sets.prediction_sets import ForcedPredictions, Texts

Verdict: TypeAlias = Literal["file", "choose", "read"]
"""What can happen to a text."""

FILE: Verdict = "file"
CHOOSE: Verdict = "choose"
READ: Verdict = "read"

_KIND, _POLICY, _AUTOMATION, _TAGS = "filing-policy", "policy.npz", "automation.npz", "tags.npz"
_DEFAULT_MEASURE = LogLoss()
# What best guesses depend on.
_GUESS_BY = operator.attrgetter("n_labels", "min_labels", "max_labels", "constraints", "measure")


class Evidence(NamedTuple):
    """Held-out texts that fix a policy.

    probabilities : (n, d) array-like, data frame or Shortlists
    labels : list of frozenset of names, or (n, d) 0/1 array
    known_words : (n,) shares of words that the classifier knows, nan without words; None if all words count as known
    """

    probabilities: Any
    labels: Any
    known_words: Any = None


class Decision(NamedTuple):
    """What to do with one text, and why in a sentence; labels by index, tags the most probable first.

    `labels` is the best guess. `consider` is the complete list, also for texts to read, where it may be longer than
    max_tags; screens may cut it, but the promise is about all of it.
    """

    decision: Verdict
    reason: str
    labels: tuple[int, ...]
    assign: tuple[int, ...]
    consider: tuple[int, ...]


class FilingPolicy:
    """Decide for each text whether it is filed, chosen or read, with promises for filed and for seen texts.

    Parameters
    ----------
    max_wrong, assurance : float, str, Decimal or Fraction in (0, 1)
        Of the texts that are filed at most max_wrong are wrong, with this assurance.
    max_missed, max_false : the same
        As of `TagBounds`, for the texts that are not filed.
    max_tags : int
        Longest list of tags that a person chooses from.
    measure, min_labels, max_labels, constraints
        Of best guesses, as of `Automation`.
    label_names : sequence of str, optional
    never_file : sequence of str
        Labels that are never filed alone: texts whose best guess has one go to people.

    Attributes
    ----------
    n_filing_, n_seen_ : int
        Texts of the filing part, and texts of the calibration part that are not filed.
    share_ : float
        Share of the calibration part that is filed.
    advice : str or None
        What a weaker level would give, in one line. Levels are never weakened by themselves.
    automation, novelty, tag_bounds
        The calibrated parts.
    """

    n_filing_: int
    n_seen_: int
    share_: float
    advice: str | None
    automation: Automation
    novelty: Novelty
    tag_bounds: TagBounds

    def __init__(
        self,
        max_wrong: Any = "0.05",
        assurance: Any = "0.95",
        max_missed: Any = "0.1",
        max_false: Any = "0.05",
        max_tags: int = 9,
        measure: Any = _DEFAULT_MEASURE,
        min_labels: int = 1,
        max_labels: int | None = None,
        *,
        label_names: Sequence[str] | None = None,
        constraints: LabelConstraints | None = None,
        never_file: Sequence[str] = (),
    ) -> None:
        check_count("max_tags", max_tags, "FilingPolicy", 1)
        self.max_tags = int(max_tags)
        self.never_file = tuple(never_file)
        self.automation = Automation(
            max_wrong, assurance, measure, min_labels, max_labels, label_names, constraints=constraints
        )
        self.novelty = Novelty()
        self.tag_bounds = TagBounds(max_missed, max_false, label_names)

    def __repr__(self) -> str:
        bounds = f"max_wrong={self.automation.max_wrong:g}, max_missed={self.tag_bounds.max_missed:g}"
        return f"FilingPolicy({bounds}, max_tags={self.max_tags})"

    def calibrate(self, filing: Evidence, calibration: Evidence) -> FilingPolicy:
        """Fix the rule on the filing part, and the lists on the calibration texts that it does not file. Return self.

        The parts must have no text in common, and neither may have been used to train or choose anything.
        """
        filing, calibration = _aligned(filing), _aligned(calibration)

        def can_certify(guesses: ForcedPredictions) -> BoolArray:
            known = _as_known_words(filing.known_words, len(guesses))
            self.novelty.calibrate(guesses.scores, known)
            return self.novelty.can_certify(guesses.scores, known) & ~self._are_barred(guesses)

        automation = self.automation.calibrate(filing.probabilities, filing.labels, among=can_certify)
        filed = self.file(calibration.probabilities, calibration.known_words)
        seen = np.flatnonzero(~filed)
        self.n_filing_, self.n_seen_ = automation.predictor_.calibration_.n_texts, len(seen)
        self.share_ = float(np.mean(filed))
        with warnings.catch_warnings(action="ignore", category=CalibrationWarning):
            # `tag_bounds.problem_` is in the reason of every decision.
            if len(seen):
                evidence = _rows_of(calibration.probabilities, seen), _rows_of(calibration.labels, seen)
                self.tag_bounds.calibrate(*evidence)
                self.advice = self._weaker(*evidence)
            else:
                self.tag_bounds.calibrate_on_none(automation.predictor_.calibration_.n_labels)
                self.advice = None
        return self

    def _weaker(self, probabilities: Any, labels: Any) -> str | None:
        """Return what twice the missed tags would give the texts that people see, None if that changes little."""
        own, level = self.tag_bounds, 2 * self.tag_bounds.max_missed
        if level >= 1.0:
            return None
        weaker = TagBounds(f"{level:g}", own.max_false, own.label_names).calibrate(probabilities, labels)
        now, then = (self._share_short(bounds, probabilities) for bounds in (own, weaker))
        if then < now + 0.05:
            return None
        return (
            f"With --max-missed {level:g}, {100 * then:.0f} % of the texts that people see would get a list of at most "
            f"{self.max_tags} tags ({100 * now:.0f} % now)."
        )

    def _share_short(self, bounds: TagBounds, probabilities: Any) -> float:
        """Return the share of texts with 1 to max_tags tags to consider."""
        return float(np.mean([1 <= len(consider) <= self.max_tags for _, consider in bounds.ranked(probabilities)]))

    def file(self, probabilities: Any, known_words: Any = None) -> BoolArray:
        """Return which texts are filed, (n,)."""
        if self.never_file:
            return self._flags_and_filed(self.automation.predict(probabilities), known_words)[1]
        scores = self.automation.scores(probabilities)
        return self._sure(scores, known_words)[1]

    def _sure(self, scores: FloatArray, known_words: Any) -> tuple[Any, BoolArray]:
        """Return the flag of each text by `Novelty`, and which best guesses are certified, (n,) each."""
        flags = self.novelty.flags(scores, _as_known_words(known_words, len(scores)))
        return flags, (scores < self.automation.threshold_) & (flags == FAMILIAR)

    def _flags_and_filed(self, guesses: ForcedPredictions, known_words: Any) -> tuple[Any, BoolArray]:
        """Return the flag of each text by `Novelty`, and which texts are filed, (n,) each."""
        flags, filed = self._sure(guesses.scores, known_words)
        return flags, filed & ~self._are_barred(guesses)

    def _are_barred(self, guesses: ForcedPredictions) -> BoolArray:
        """Return which best guesses have a label that is never filed, (n,)."""
        barred = self._barred()
        if not barred:
            return np.zeros(len(guesses), dtype=np.bool_)
        labels = as_indices(guesses.members, guesses.columns)
        return np.array([not barred.isdisjoint(best) for best in labels], dtype=np.bool_)

    def _barred(self) -> frozenset[int]:
        """Return the labels that are never filed alone, by index."""
        names = self.automation.predictor_.calibration_.label_names or ()
        unknown = sorted(set(self.never_file).difference(names))
        if unknown:
            raise InvalidInputError(f"A label that is never filed must be a label of the model. Got {unknown[0]!r}.")
        return frozenset(map(names.index, self.never_file))

    def categories(self, filed: BoolArray, groups: Any = None, known: Collection[str] | None = None) -> list[str]:
        """Return the category of each text for `ByGroup`: "filed" or "seen", with its group if there are groups.

        A predictor calibrated with them on the calibration part keeps its promise for the texts that people see. Where
        only some categories are `known`, because no calibration text of a group is filed, filed texts count as seen.
        """
        categories = ["filed" if is_filed else "seen" for is_filed in filed.tolist()]
        if groups is not None:
            names = as_groups(groups, len(categories), "categories")
            categories = [f"{category}: {name}" for category, name in zip(categories, names, strict=True)]
        if known is None:
            return categories
        return [one if one in known else one.replace("filed", "seen", 1) for one in categories]

    def guesses_as(self, predictor: Any) -> bool:
        """Return whether a predictor has the same best guesses as this policy."""
        own, other = self.automation.predictor_.calibration_, predictor.calibration_
        return not other.edges and bool(_GUESS_BY(own) == _GUESS_BY(other))

    def texts(self, probabilities: Any) -> Texts:
        """Cost and sort texts once, for best guesses and for a predictor that `guesses_as` this policy."""
        self._check_calibrated("texts")
        texts: Texts = self.automation.predictor_.texts(probabilities)
        return texts

    def _check_calibrated(self, who: str) -> None:
        """Raise before calibration."""
        if not hasattr(self, "advice"):
            raise NotCalibratedError(f"This FilingPolicy is not calibrated. Call 'calibrate' before '{who}'.")

    def decide(
        self, probabilities: Any, known_words: Any = None, *, guesses: ForcedPredictions | None = None
    ) -> list[Decision]:
        """Return what to do with each text.

        Parameters
        ----------
        probabilities : (n, d) array-like, data frame or Shortlists
        known_words : (n,) array-like, optional
            Share of each text's words that the classifier knows, nan without words; all count as known by default.
        guesses : ForcedPredictions, optional
            The texts' best guesses under the same measure and limits, if you have them already (see `guesses_as`).
        """
        self._check_calibrated("decide")
        guesses = self.automation.predict(probabilities) if guesses is None else guesses
        known = _as_known_words(known_words, len(guesses))
        flags, filed = self._flags_and_filed(guesses, known)
        labels = as_indices(guesses.members, guesses.columns)
        return [
            Decision(*self._route(is_filed, flag, share, len(consider)), best, assign, consider)
            for is_filed, flag, share, best, (assign, consider) in zip(
                filed.tolist(),
                flags.tolist(),
                known.tolist(),
                labels,
                self.tag_bounds.ranked(probabilities),
                strict=True,
            )
        ]

    def _route(self, is_filed: bool, flag: int, known: float, n_tags: int) -> tuple[Verdict, str]:
        """Return what to do with a text, and why."""
        if is_filed:
            return (
                FILE,
                f"Certified: of the texts that are filed, at most {100 * self.automation.max_wrong:g} % are wrong.",
            )
        if flag != FAMILIAR:
            return READ, _describe_novelty(flag, known)
        if self.tag_bounds.problem_ is not None:
            return READ, f"{self.tag_bounds.problem_} Read it yourself."
        missed = f"{100 * self.tag_bounds.max_missed:g} %"
        if n_tags == 0:
            return READ, "No tag stands out: read it yourself."
        if n_tags > self.max_tags:
            return READ, f"{n_tags:,} tags are worth considering, more than {self.max_tags}: read it yourself."
        tags = (
            "Check this tag: lists like this leave" if n_tags == 1 else f"Choose from these {n_tags} tags: they leave"
        )
        return CHOOSE, f"{tags} out at most {missed} of the true tags on average."

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Write the calibrated policy into a folder: three files."""
        self._check_calibrated("save")
        path = Path(folder)
        path.mkdir(parents=True, exist_ok=True)
        self.automation.save(path / _AUTOMATION)
        self.tag_bounds.save(path / _TAGS)
        header = {
            "kind": _KIND,
            "max_tags": self.max_tags,
            "never_file": list(self.never_file),
            "novelty": self.novelty.to_dict(),
            "counts": [self.n_filing_, self.n_seen_],
            "share": self.share_,
            "advice": self.advice,
        }
        files.write_arrays(path / _POLICY, header, {})

    @classmethod
    def load(cls, folder: str | os.PathLike[str], *, measure: Any = None) -> FilingPolicy:
        """Read a policy written by `save`; no code from the files is run. Your own measure must be given again."""
        path = Path(folder)
        header, _ = files.read_arrays(path / _POLICY, _KIND)
        automation, tags = Automation.load(path / _AUTOMATION, measure=measure), TagBounds.load(path / _TAGS)
        with as_artifact_error(path):
            policy = cls(max_tags=header["max_tags"])
            policy.novelty = Novelty.from_dict(header["novelty"])
            policy.n_filing_, policy.n_seen_ = header["counts"]
            policy.share_, policy.advice = header["share"], header["advice"]
            policy.never_file = tuple(header["never_file"])
            check_count("counts", min(header["counts"]), "load", 0)
            if not (isinstance(policy.share_, float) and 0.0 <= policy.share_ <= 1.0):
                raise ValueError("its share is not one")
            if not (policy.advice is None or isinstance(policy.advice, str)):
                raise ValueError("its advice is not a sentence")
            if policy.n_seen_ != tags.n_texts_:
                raise ValueError("its lists were calibrated on other texts")
            if tags.n_labels != automation.predictor_.calibration_.n_labels:
                raise ValueError("its parts are about different labels")
            policy.automation, policy.tag_bounds = automation, tags
            policy._barred()
        return policy


def _as_known_words(known_words: Any, n_texts: int) -> FloatArray:
    """Return shares of known words, (n,); all words count as known by default."""
    known = np.ones(n_texts) if known_words is None else np.asarray(known_words, dtype=np.float64)
    if known.shape != (n_texts,):
        raise InvalidInputError(f"There must be one share of known words per text, {n_texts}. Got shape {known.shape}.")
    return known


def _aligned(evidence: Evidence) -> Evidence:
    """Return evidence with the rows of labels in the order of the probabilities, where both are data frames."""
    probabilities, labels, *known_words = evidence
    return Evidence(probabilities, aligned_rows(labels, probabilities, "labels", "calibrate"), *known_words)


def _rows_of(values: Any, rows: Any) -> Any:
    """Return some rows of an array, data frame, Shortlists or list."""
    if hasattr(values, "iloc"):
        return values.iloc[rows]
    return [values[row] for row in rows] if isinstance(values, (list, tuple)) else values[rows]


def as_indices(members: BoolArray, columns: Any = None) -> list[tuple[int, ...]]:
    """Return 0/1 rows (n, k) as tuples of label indices; `columns` (n, k) has the labels of shortlists."""
    rows, places = members.nonzero()
    ends = members.sum(axis=1).cumsum().tolist()
    listed = (places if columns is None else columns[rows, places]).tolist()
    return [tuple(listed[start:end]) for start, end in zip([0, *ends], ends, strict=False)]


def _describe_novelty(flag: int, known: float) -> str:
    """Return why a text is novel."""
    if flag == NO_WORDS:
        none = "It has no words" if math.isnan(known) else "The model knows none of its words"
        return f"{none}: read it yourself."
    if flag == FEW_WORDS:
        return f"The model knows only {100 * known:.0f} % of its words: read it yourself."
    return "Unlike the calibration texts: no answer fits it well. Read it yourself."
