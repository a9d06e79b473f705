"""What decisions say about the model, by the blind check, and about the work."""

from __future__ import annotations

import dataclasses
import statistics
from collections import Counter
from typing import Any, NamedTuple

from scipy import stats

from surelabel.review.queues import CHECK, Decision
from surelabel.review.store import ReviewStore

_ASSURANCE = 0.95


class Share(NamedTuple):
    """A share of cases with its bounds, each of which holds with 97.5 % assurance (95 % together)."""

    n_cases: int
    n_hits: int
    share: float | None
    lower: float
    upper: float


def share_of(n_hits: int, n_cases: int) -> Share:
    """Return a share with its Clopper-Pearson bounds."""
    tail = (1 - _ASSURANCE) / 2
    lower = float(stats.beta.ppf(tail, n_hits, n_cases - n_hits + 1)) if n_hits else 0.0
    upper = float(stats.beta.ppf(1 - tail, n_hits + 1, n_cases - n_hits)) if n_hits < n_cases else 1.0
    return Share(n_cases, n_hits, n_hits / n_cases if n_cases else None, lower, upper)


@dataclasses.dataclass(frozen=True)
class ReviewFigures:
    """What decisions say.

    Attributes
    ----------
    n_decided : int
        Texts decided by people.
    by_reviewer : mapping of name to number of texts
    median_seconds : float or None
    accepted : Share
        Of texts whose answer was shown, those that ended with its best guess. People follow suggestions: this is no
        measure of the model.
    agreement : Share
        Of the blind check, texts whose best guess has exactly the labels that people gave.
    filed_wrong : Share
        Of the checked texts that the model would have filed, those whose best guess is wrong.
    missed : Share
        Of the labels that people gave to checked texts that are not filed, those missing from the tags to consider.
    n_pending_checks : int
        Texts of the check that wait.
    """

    n_decided: int
    by_reviewer: dict[str, int]
    median_seconds: float | None
    accepted: Share
    agreement: Share
    filed_wrong: Share
    missed: Share
    n_pending_checks: int

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        values = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        return {name: value._asdict() if isinstance(value, Share) else value for name, value in values.items()}


def figures(store: ReviewStore) -> ReviewFigures:
    """Return what the decisions of a store say."""
    decisions = store.decisions()
    shown = [decision for decision in decisions if not decision.is_check]
    checked = [decision for decision in decisions if decision.is_check]
    filed = [decision for decision in checked if _answer(decision, "decision") == "file"]
    labels = [(set(decision.labels or ()), decision) for decision in checked if decision not in filed]
    missed = sum(len(chosen.difference(_answer(decision, "consider"))) for chosen, decision in labels)
    seconds = [decision.seconds for decision in decisions if decision.seconds is not None]
    return ReviewFigures(
        n_decided=len(decisions),
        by_reviewer=dict(Counter(decision.reviewer for decision in decisions)),
        median_seconds=statistics.median(seconds) if seconds else None,
        accepted=share_of(sum(decision.action == "accept" for decision in shown), len(shown)),
        agreement=share_of(sum(map(_is_right, checked)), len(checked)),
        filed_wrong=share_of(sum(not _is_right(decision) for decision in filed), len(filed)),
        missed=share_of(missed, sum(len(chosen) for chosen, _ in labels)),
        n_pending_checks=store.counts()[CHECK].waiting,
    )


def _answer(decision: Decision, name: str) -> Any:
    """Return a field of the model's answer."""
    return (decision.answer or {}).get(name, ())


def _is_right(decision: Decision) -> bool:
    """Return whether the best guess has exactly the labels that people gave."""
    return set(decision.labels or ()) == set(_answer(decision, "labels"))
