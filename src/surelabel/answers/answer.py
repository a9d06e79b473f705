"""One answer: what to do with a text, why, and how sure the prediction is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from surelabel.guarantees.decisions import Verdict

# Numbers up to here are exact in every reader of JSON.
_LARGEST_PLAIN = 2**53

LabelNames = tuple[str, ...]


@dataclass(frozen=True)
class Answer:
    """All that conformal prediction says about one text.

    Attributes
    ----------
    decision : {"file", "choose", "read"} or None
        What to do with the text; None without a policy.
    reason : str or None
        Why, in a sentence.
    labels : tuple of str
        The best guess. Of a filed text this is the certified one.
    consider, assign : tuple of str
        Tags to consider and tags to assign, the most probable first.
    confidence : float
        1 minus the p-value of the best other label-set.
    credibility : float
        The p-value of the best guess: low if the text is unlike the calibration texts.
    significance : str or None
        The level of the prediction set, as an exact decimal. It and all that follows are None if no level was given.
    size : int or None
        Number of plausible label-sets; None if it is known by bounds only.
    size_bounds : tuple of int
        Certified bounds of this number.
    n_candidates : int
        Number of label-sets that the prediction set was chosen from.
    certain, open : tuple of str
        Labels in all of the plausible label-sets, and in some.
    top : list of (tuple of str, float)
        The most plausible label-sets with their p-values, best first.
    description : str
        The prediction set in a sentence.
    uris : tuple of str or None
        The URI of each label of the best guess, for a model with a vocabulary; a label without one stands for itself.
    """

    decision: Verdict | None
    reason: str | None
    labels: LabelNames
    consider: LabelNames
    assign: LabelNames
    confidence: float
    credibility: float
    significance: str | None = None
    size: int | None = None
    size_bounds: tuple[int, int] | None = None
    n_candidates: int | None = None
    certain: LabelNames | None = None
    open: LabelNames | None = None
    top: list[tuple[LabelNames, float]] | None = None
    description: str | None = None
    uris: LabelNames | None = None

    def record(self) -> dict[str, Any]:
        """Return plain values for JSON, in a fixed order; counts over 2^53 are strings of digits."""
        record: dict[str, Any] = {
            "decision": self.decision,
            "reason": self.reason,
            "labels": list(self.labels),
            "consider": list(self.consider),
            "assign": list(self.assign),
            "confidence": self.confidence,
            "credibility": self.credibility,
        }
        if self.uris is not None:
            record["uris"] = list(self.uris)
        if self.significance is None:
            return record
        return record | {
            "significance": self.significance,
            "size": None if self.size is None else _plain_count(self.size),
            "size_bounds": [_plain_count(bound) for bound in self.size_bounds or ()],
            "certain": list(self.certain or ()),
            "open": list(self.open or ()),
            "top": [{"labels": list(labels), "p_value": p_value} for labels, p_value in self.top or ()],
        }


def _plain_count(count: int) -> int | str:
    """Return a count that every reader of JSON reads exactly."""
    return count if count <= _LARGEST_PLAIN else str(count)
