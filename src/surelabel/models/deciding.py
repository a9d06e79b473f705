"""What a bundle may file and what it offers to choose from: certificates from calibration texts."""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from surelabel._core import progress
from surelabel._core.validation import FloatArray, IntArray, as_share
from surelabel.conformal import ConformalLabelSets
from surelabel.exceptions import CalibrationWarning
from surelabel.guarantees.automation import Automation
from surelabel.guarantees.decisions import Decisions, short_list
from surelabel.guarantees.familiarity import Familiarity
from surelabel.guarantees.tag_bounds import TagBounds
from surelabel.labels.sparse import is_sparse
from surelabel.probabilities_file import PartProbabilities

# Fewer validation texts do not tell which score ranks best guesses best.
_FEWEST_TO_CHOOSE = 200
# Shares of true tags that may be missed, if none is given: the first at which this share of texts has a short list.
_SHARES_MISSED, _MOST_SHORT = ("0.05", "0.1", "0.2"), 0.5


@dataclasses.dataclass(frozen=True)
class DecisionSettings:
    """What is promised about decisions, and how long a short list may be.

    Parameters
    ----------
    max_wrong : float, str, Decimal or Fraction in (0, 1)
        Largest share of wrong texts among those that are filed.
    assurance : the same
        Probability, over calibration texts, that this holds.
    max_missed : the same, or None
        Share of the true tags that may be missing from the tags to consider, on average. None: the smallest of 0.05,
        0.1 and 0.2 at which half of the validation texts have a short list of tags to consider; 0.05 if there is none.
    max_false : the same
        Share of the tags to assign that may be false, on average.
    max_choices : int
        Longest list of plausible label-sets that a person is asked to choose from.
    max_tags : int or None
        Longest list of tags. None: a quarter of the labels, at least 3 and at most 20.

    Examples
    --------
    >>> DecisionSettings(max_wrong="0.02").max_wrong
    '0.02'
    """

    max_wrong: Any = "0.05"
    assurance: Any = "0.95"
    max_missed: Any = None
    max_false: Any = "0.05"
    max_choices: int = 9
    max_tags: int | None = None

    def __post_init__(self) -> None:
        for name in ("max_wrong", "assurance", "max_missed", "max_false"):
            if name != "max_missed" or self.max_missed is not None:
                as_share(getattr(self, name), name, who=type(self).__name__)

    def settled(self, validation: PartProbabilities | None) -> DecisionSettings:
        """Return settings with `max_missed` as given, or chosen on validation texts."""
        if self.max_missed is not None:
            return self
        usual = dataclasses.replace(self, max_missed=_SHARES_MISSED[0])
        if validation is None:
            return usual
        longest = short_list(validation.labels.shape[1]) if self.max_tags is None else self.max_tags
        for share in _SHARES_MISSED:
            with warnings.catch_warnings(action="ignore", category=CalibrationWarning):
                tags = TagBounds(share, self.max_false).calibrate(validation.probabilities, validation.labels)
            least = min(tags.consider_threshold_, tags.assign_threshold_)
            if is_sparse(validation.probabilities) and validation.probabilities.unlisted >= least:
                continue  # every tag is to be considered
            n_considered = np.asarray(tags.predict(validation.probabilities).consider.sum(axis=1))
            if np.mean(n_considered <= longest) >= _MOST_SHORT:
                return dataclasses.replace(self, max_missed=share)
        return usual

    @property
    def short_lists(self) -> dict[str, int]:
        """How long short lists may be, without what follows from the number of labels."""
        return {"max_choices": self.max_choices} | ({} if self.max_tags is None else {"max_tags": self.max_tags})


def settings_of(decisions: Decisions | None) -> DecisionSettings:
    """Return what decisions promise, the usual if there are none."""
    if decisions is None:
        return DecisionSettings()
    automation, tags = decisions.automation, decisions.tag_bounds
    return DecisionSettings(
        automation.max_wrong,
        automation.assurance,
        tags.max_missed,
        tags.max_false,
        decisions.max_choices,
        decisions.max_tags,
    )


def uncertified(settings: DecisionSettings, predictor: ConformalLabelSets, label_names: Sequence[str]) -> Decisions:
    """Return decisions that are yet to be certified, about the best guesses of a predictor."""
    settings = settings.settled(None)
    automation = Automation(
        settings.max_wrong,
        settings.assurance,
        predictor.measure,
        predictor.min_labels,
        predictor.max_labels,
        label_names=label_names,
        constraints=predictor.constraints,
    )
    tags = TagBounds(settings.max_missed, settings.max_false, label_names=label_names)
    return Decisions(automation, tags, Familiarity(), **settings.short_lists)


def label_counts(label_texts: Mapping[str, int], names: Sequence[str]) -> IntArray | None:
    """Return the number of training texts of each label, None if it is not known."""
    return np.array([label_texts.get(name, 0) for name in names], dtype=np.int64) if label_texts else None


def certified_decisions(
    plan: Decisions,
    calibration: PartProbabilities,
    known_words: FloatArray,
    validation: PartProbabilities | None = None,
    *,
    seed: int = 0,
) -> Decisions:
    """Certify decisions with calibration texts; what best guesses are ranked by is chosen on validation texts."""
    with progress.step("certifying what can be filed"):
        if validation is not None and len(validation) >= _FEWEST_TO_CHOOSE:
            chosen = plan.automation.choose_score(validation.probabilities, validation.labels, seed=seed)
            plan = Decisions(chosen, plan.tag_bounds, plan.familiarity, plan.max_choices, plan.max_tags)
        return plan.calibrate(calibration.probabilities, calibration.labels, known_words)
