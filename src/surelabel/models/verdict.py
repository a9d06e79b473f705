"""What a model is good for, in plain words: how many texts it can file, how long lists are, and whom it misses."""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from surelabel._core import progress
from surelabel._core.validation import BoolArray, FloatArray, IntArray
from surelabel._core.wording import count_words
from surelabel.conformal import ConformalLabelSets
from surelabel.evaluation.conditional import REMEDIES, Conditional, TextDetails, conditional
from surelabel.evaluation.metrics import same_label_sets
from surelabel.evaluation.predicted import Predicted, from_main_level
from surelabel.exceptions import CalibrationWarning
from surelabel.guarantees.automation import Automation
from surelabel.guarantees.certifying import certified_threshold
from surelabel.guarantees.decisions import CHOOSE, FILE, READ, Decisions
from surelabel.models.bundle import Bundle
from surelabel.models.deciding import label_counts
from surelabel.probabilities_file import PartProbabilities

# A level is recommended if at least so many texts have a short list of plausible label-sets.
_MOST = 0.5
# Shares of wrong texts to try if nothing can be filed.
_WEAKER = (Fraction(1, 10), Fraction(1, 5))
# Kinds of fewer texts are not named.
_FEWEST = 20
# Texts that are judged: more do not change the words.
_MOST_TEXTS = 2_000


@dataclasses.dataclass(frozen=True)
class Missed:
    """Texts of one kind, the share of them whose true label-set is missed, and what helps."""

    kind: str
    n_texts: int
    missed: float
    remedy: str


@dataclasses.dataclass(frozen=True)
class ModelVerdict:
    """What a model is good for, measured on some texts.

    Attributes
    ----------
    part : str
        Which texts: "validation", "calibration" or "test".
    level : str
        The recommended significance: the smallest of 0.05, 0.1 and 0.2 at which half of the texts have a short list
        of plausible label-sets, among those that the calibration texts can give; if there is none, the smallest.
    file, choose, read : float
        Shares of the texts, at that level.
    wrong_filed, wrong_choose, wrong_read : float or None
        Shares of wrong best guesses among them; None if there is no such text.
    filing : str
        What can be filed, and how sure that is, or why nothing can and how much could with a weaker promise.
    typical_choices, typical_tags : int or None
        Plausible label-sets of the middle text that is to be chosen for; its tags to consider if they are too many.
    considered, n_labels, max_missed
        Tags to consider per text, of how many; the share of the true tags that may be missing from them.
    missed : float
        Share of the texts whose true label-set is missed at the level.
    not_kept : tuple of Missed
        Kinds of texts that are missed more often than was asked for and than chance explains.
    """

    part: str
    n_texts: int
    level: str
    file: float
    choose: float
    read: float
    wrong_filed: float | None
    wrong_choose: float | None
    wrong_read: float | None
    filing: str
    typical_choices: int | None
    typical_tags: int | None
    considered: float
    n_labels: int
    max_missed: float
    missed: float
    not_kept: tuple[Missed, ...]

    @property
    def words(self) -> tuple[str, ...]:
        """The verdict, one sentence or two per entry."""
        filed, chosen, read = map(_percent, (self.file, self.choose, self.read))
        first = f"Of {self.n_texts:,} {self.part} texts {filed} are filed, for {chosen} a person chooses from a short"
        lines = [f"{first} list, and {read} are to be read.", self.filing]
        if self.typical_choices is not None:
            tags = self.typical_tags
            instead = "" if tags is None else f": choose among its {tags:,} tags to consider"
            lists = "label-set" if self.typical_choices == 1 else "label-sets"
            lines.append(
                f"A typical text to choose for has {count_words(self.typical_choices)} plausible {lists} at "
                f"significance {self.level}{instead}."
            )
        lines.append(
            f"To miss at most {_percent(self.max_missed)} of the true tags, consider {self.considered:.1f} of "
            f"{self.n_labels:,} tags per text."
        )
        if self.not_kept:
            kinds = "; ".join(f"{one.kind} ({_percent(one.missed)} of {one.n_texts:,} missed)" for one in self.not_kept)
            lines.append(
                f"The promise of {_percent(float(self.level))} errors is about all texts together. It is not kept for "
                f"{kinds}. {' '.join(dict.fromkeys(one.remedy for one in self.not_kept))}"
            )
        lines.append(f"Recommended: significance {self.level}.")
        return tuple(lines)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON, the words included."""
        values = dataclasses.asdict(self)
        values["not_kept"] = [dataclasses.asdict(one) for one in self.not_kept]
        return {**values, "words": list(self.words)}


def judge(
    predictor: ConformalLabelSets,
    decisions: Decisions,
    part: PartProbabilities,
    known_words: FloatArray,
    *,
    name: str,
    training_counts: IntArray | None = None,
    level: str | None = None,
    predicted: Predicted | None = None,
) -> ModelVerdict:
    """Measure what a model is good for, on texts with known labels; of more than 2,000 on a regular sample.

    `name` says which texts these are; `training_counts`, (d,), tell which labels are rare; without a `level` one is
    recommended. `predicted` is what the predictor says of the texts, if it is at hand.
    """
    predicted = predicted or Predicted(predictor, part.probabilities, part.groups, "judge")
    rows, predicted = predicted.spread(_MOST_TEXTS)
    probabilities, labels = part.probabilities[rows], part.labels[rows]
    with progress.step(f"judging decisions on {len(rows):,} {name} texts"):
        level, bounds = _sizes_at(predicted, level, decisions.max_choices)
        answers = decisions.decide(probabilities, bounds, known_words[rows])
        wrong = ~same_label_sets(predicted.forced.labels, labels)
        sizes = np.array([float(min(upper, 2**60)) for _, upper in bounds])
        with warnings.catch_warnings(action="ignore", category=CalibrationWarning):
            missed = predicted.missed(level, labels)
            details = TextDetails(training_counts=training_counts)
            figures = conditional(predicted, labels, level, (np.arange(len(rows)), sizes), details)
    verdicts = np.array([answer.decision for answer in answers])
    choices = sorted(
        (upper, len(answer.consider))
        for (_, upper), answer in zip(bounds, answers, strict=True)
        if answer.decision == CHOOSE
    )
    typical, tags = choices[len(choices) // 2] if choices else (None, None)
    is_filed, is_chosen, is_read = (verdicts == verdict for verdict in (FILE, CHOOSE, READ))
    return ModelVerdict(
        part=name,
        n_texts=len(rows),
        level=level,
        file=float(is_filed.mean()),
        choose=float(is_chosen.mean()),
        read=float(is_read.mean()),
        wrong_filed=_mean(wrong[is_filed]),
        wrong_choose=_mean(wrong[is_chosen]),
        wrong_read=_mean(wrong[is_read]),
        filing=decisions.automation.summary_ + _more_filed(decisions.automation, probabilities, wrong, name),
        typical_choices=typical,
        typical_tags=None if typical is None or typical <= decisions.max_choices else tags,
        considered=float(np.mean([len(answer.consider) for answer in answers])),
        n_labels=predictor.calibration_.n_labels,
        max_missed=decisions.tag_bounds.max_missed,
        missed=float(missed.mean()),
        not_kept=tuple(_not_kept(figures)),
    )


def _more_filed(automation: Automation, probabilities: Any, wrong: BoolArray, name: str) -> str:
    """Say with which weaker promise something could be filed, if nothing can.

    Calibration texts, which certify the promise, must not be used to choose it.
    """
    if automation.share_ or name == "calibration":
        return ""
    scores = automation.scores(probabilities)
    for weaker in _WEAKER:
        threshold = certified_threshold(scores, wrong, weaker, Fraction(automation.assurance))
        share = float(np.mean(scores > threshold))
        if weaker > automation.max_wrong and share:
            promise = f"at most {_percent(float(weaker))} wrong (--max-wrong {float(weaker)})"
            return f" With {promise} about {_percent(share)} of texts could be filed."
    return ""


def verdict_on(
    bundle: Bundle, part: PartProbabilities, texts: Sequence[str], name: str, predicted: Predicted | None = None
) -> ModelVerdict:
    """Measure what a bundle that makes decisions is good for, on texts with known labels."""
    assert bundle.decisions is not None
    counts = label_counts(bundle.info.label_texts, bundle.label_names)
    known_words = bundle.classifier.known_words(texts)
    how: dict[str, Any] = {"name": name, "training_counts": counts, "predicted": predicted}
    return judge(bundle.predictor, bundle.decisions, part, known_words, **how)


def judged(bundle: Bundle, part: PartProbabilities, texts: Sequence[str], name: str) -> Bundle:
    """Return the bundle with a verdict on it, and the level that it recommends."""
    verdict = verdict_on(bundle, part, texts, name)
    info = dataclasses.replace(bundle.info, level=verdict.level, verdict=verdict.to_dict())
    return dataclasses.replace(bundle, info=info)


def _percent(share: float) -> str:
    """Write a share for people, with a decimal if it is small.

    Examples
    --------
    >>> _percent(0.81), _percent(0.004), _percent(0.0)
    ('81 %', '0.4 %', '0 %')
    """
    return f"{100 * share:.1f} %" if 0 < share < 0.01 else f"{100 * share:.0f} %"


def _sizes_at(predicted: Predicted, level: str | None, max_choices: int) -> tuple[str, list[tuple[int, int]]]:
    """Return a level and bounds of the sizes of prediction sets there; the recommended level if none is given."""
    levels = from_main_level(predicted.predictor.calibration_.n_texts) if level is None else [level]
    with warnings.catch_warnings(action="ignore", category=CalibrationWarning):
        predicted.count(levels)
    for one in levels:
        if np.mean([1 <= most <= max_choices for _, most in predicted.sizes(one)]) >= _MOST:
            return one, predicted.sizes(one)
    return levels[0], predicted.sizes(levels[0])


def _mean(values: BoolArray) -> float | None:
    return float(values.mean()) if len(values) else None


def _not_kept(figures: Conditional) -> list[Missed]:
    """Return the kinds of texts that are missed more often than asked for, and than chance explains."""
    words = {
        "number of true labels": "texts with {}",
        "rarest label": "texts whose rarest label has {}",
        "group": "texts of group {}",
    }
    named = []
    for division, kind in figures.broken:
        if division in words and kind.n_texts >= _FEWEST:
            name = words[division].format(kind.name)
            is_bare = division == "rarest label" and "training" not in kind.name
            whole = f"{name} training texts" if is_bare else name
            named.append(Missed(whole, kind.n_texts, kind.missed, REMEDIES[division]))
    return named
