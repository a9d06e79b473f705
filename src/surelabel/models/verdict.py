"""What a model is good for, measured on test texts, and what another level would give."""

from __future__ import annotations

from surelabel.evaluation import summary
from surelabel.guarantees.automation import Automation
from surelabel.models.bundle import Bundle

# Levels of wrong texts that are tried if little can be filed, as advice.
_WEAKER = ("0.1", "0.2")
# Advice is given if it adds this share of texts.
_WORTH_IT = 0.1


def verdict(bundle: Bundle) -> list[str]:
    """Return what a model is good for, in sentences; an empty list if it was not measured.

    Nothing of the model depends on it: levels stay as they were asked for.
    """
    if bundle.evaluation is None:
        return []
    lines = summary.decision_lines(bundle.evaluation, bundle.info.levels)
    advice = [line for line in (_weaker_filing(bundle), bundle.policy.advice) if line is not None]
    return [*lines, *advice, *summary.subgroup_lines(bundle.evaluation)]


def _weaker_filing(bundle: Bundle) -> str | None:
    """Return which weaker level would file clearly more texts, None if there is none."""
    predictor = bundle.predictor
    for level in _WEAKER:
        if float(level) <= bundle.policy.automation.max_wrong:
            continue
        weaker = Automation(
            level,
            bundle.info.levels["assurance"],
            predictor.measure,
            predictor.min_labels,
            predictor.max_labels,
            bundle.label_names,
            constraints=predictor.constraints,
        )
        weaker.calibrate(bundle.filing.probabilities, bundle.filing.label_sets)
        share = float(weaker.decide(bundle.calibration.probabilities).mean())
        if share >= bundle.policy.share_ + _WORTH_IT:
            return f"With --max-wrong {level}, about {summary.share(share)} of texts could be filed."
    return None
