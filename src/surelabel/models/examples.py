"""Three texts that show what a model says: a sure one, an unsure one, and one that a person should see."""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from surelabel._core.validation import BoolArray, FloatArray
from surelabel._core.wording import bounds_words, count_words
from surelabel.answers import Answer, answer_probabilities
from surelabel.evaluation.predicted import Predicted
from surelabel.exceptions import CalibrationWarning
from surelabel.guarantees.decisions import CHOOSE, FILE, READ
from surelabel.models.bundle import Bundle

# An example should be read in a moment.
_LONGEST = 700
_UNSURE_SIZE = 6
LOW_CREDIBILITY = 0.1
"""Below this a text is called unlike the calibration texts."""


@dataclasses.dataclass(frozen=True)
class WorkedExample:
    """A text, by its row, what the model says of it, and what that means in words."""

    row: int
    title: str
    answer: Answer
    words: str


def worked_examples(bundle: Bundle, probabilities: Any, texts: Sequence[str]) -> list[WorkedExample]:
    """Choose up to three of some texts and say in words what the model says of them.

    Short texts are preferred. The first has one plausible label-set and the highest confidence, and is one to file if
    there is any; the second has about half a dozen plausible label-sets, and is one to choose for; the last one is the
    least like the calibration texts, and is one to read. The level is the bundle's own. `probabilities` may be what the
    bundle's predictor says of them, as `Predicted`.
    """
    level, predictor, decisions = bundle.level, bundle.predictor, bundle.decisions
    predicted = Predicted.of(predictor, probabilities, who="worked_examples")
    engine, forced, bounds = predicted.engine, predicted.forced, predicted.sizes(level)
    sizes = np.array([float(most) for _, most in bounds])
    is_short = np.array([40 <= len(each) <= _LONGEST for each in texts])
    is_single = np.asarray(sizes == 1, dtype=bool)
    distance = np.where(sizes > 1, np.abs(np.log(np.maximum(sizes, 1)) - np.log(_UNSURE_SIZE)), np.inf)
    allowed = {"a sure one": is_single, "an unsure one": np.isfinite(distance)}
    allowed["one that a person should see"] = forced.credibility < LOW_CREDIBILITY
    if decisions is not None:
        made = decisions.decide(engine.probabilities, bounds, bundle.known_words(texts))
        decided = np.array([one.decision for one in made])
        for title, verdict in zip(allowed, (FILE, CHOOSE, READ), strict=True):
            # Texts with this verdict, if there are any; like the others, if there are any of those.
            is_such = decided == verdict
            choices = (allowed[title] & is_such, is_such)
            allowed[title] = next((mask for mask in choices if mask.any()), allowed[title])
    values = (forced.confidence + 1e-3 * forced.credibility, -distance, -forced.credibility)
    examples: list[WorkedExample] = []
    for (title, mask), value in zip(allowed.items(), values, strict=True):
        row = _best(value, mask, is_short)
        if row is not None and row not in {example.row for example in examples}:
            with warnings.catch_warnings():
                # Whoever calibrates says which categories are small, and which texts are empty.
                warnings.simplefilter("ignore", CalibrationWarning)
                answer = answer_probabilities(
                    predictor,
                    engine[row : row + 1],
                    significance=level,
                    top=3,
                    decisions=decisions,
                    known_words=bundle.known_words([texts[row]]),
                )[0]
            examples.append(WorkedExample(row, title, answer, in_words(answer)))
    return examples


def _best(values: FloatArray, allowed: BoolArray, preferred: BoolArray) -> int | None:
    """Return where an allowed value is largest, among the preferred ones if there are any; None if nothing is."""
    for mask in (allowed & preferred, allowed):
        if mask.any():
            return int(np.argmax(np.where(mask, values, -np.inf)))
    return None


def _listed(labels: Sequence[str], n_more: int = 0) -> str:
    """List labels in a sentence, the first ten of many; `n_more` are not among them."""
    n_more += max(0, len(labels) - 10)
    if n_more:
        shown = ", ".join(labels[:10])
        return f"{shown} and {n_more:,} more" if shown else f"any of {n_more:,} labels"
    return ", ".join(labels) or "no label"


def in_words(answer: Answer) -> str:
    """Say what an answer means, in two or three sentences.

    Examples
    --------
    >>> in_words(Answer(("grain",), 0.99, 0.6, "0.05", 1, (1, 1), 7, ("grain",), (), ()))
    'Only one label-set of 7 is plausible at significance 0.05: grain. This is not ...'
    """
    lower, upper = answer.size_bounds
    among = f"of {count_words(answer.n_candidates)}"
    if upper == 0:
        return (
            f"No label-set {among} is plausible at significance {answer.significance}: even the best, "
            f"{_listed(answer.labels)}, has p = {answer.credibility:.3f}. {_trust(answer)}"
        )
    if lower == upper == 1:
        return (
            f"Only one label-set {among} is plausible at significance {answer.significance}: "
            f"{_listed(answer.certain)}. {_trust(answer)}"
        )
    certain = f"certain: {_listed(answer.certain)}" if answer.certain else "nothing is certain"
    return (
        f"{bounds_words(lower, upper)} label-sets {among} are plausible at significance {answer.significance}; "
        f"{certain}; open: {_listed(answer.open, answer.n_more_open)}. The best guess is {_listed(answer.labels)} "
        f"(confidence {answer.confidence:.3f}, credibility {answer.credibility:.3f}). {_trust(answer)}"
    )


def _trust(answer: Answer) -> str:
    """Say what to do, and why."""
    if answer.decision is not None:
        return f"Decision: {answer.decision}. {answer.reason}"
    if answer.size_bounds[1] == 0:
        return "The text is unlike the calibration texts: a person should read it."
    if answer.credibility < LOW_CREDIBILITY:
        return (
            f"But its credibility is low ({answer.credibility:.3f}): few calibration texts were as strange, so "
            "a person should read it."
        )
    if answer.size == 1:
        # A single plausible label-set may be wrong more often than the significance; `Automation` certifies filing.
        return "This is not yet a certificate to file it without a person."
    return "A person only has to choose among the open labels."
