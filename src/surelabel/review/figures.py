"""What decisions say about the model, by the blind check, and about the work."""

from __future__ import annotations

import dataclasses
import statistics
from collections import Counter
from collections.abc import Iterable
from typing import Any, NamedTuple

from scipy import stats

from surelabel.review.queues import Decision
from surelabel.review.store import ReviewStore

_MOST_CHANGED = 10
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
class CheckFigures:
    """What the blind check says: texts drawn from all, labelled by people who did not see the answer.

    Attributes
    ----------
    agreement : Share
        Checked texts whose best guess has exactly the labels that people gave.
    filed_wrong : Share
        Of checked texts that the model would have filed, those whose best guess is wrong.
    missed : Share
        Of the labels that people gave to texts that are not filed, those that are missing from the tags to consider.
    unknown : int
        Checked texts with a label that the model does not know.
    n_pending : int
        Texts of the check that wait.
    """

    agreement: Share
    filed_wrong: Share
    missed: Share
    unknown: int = 0
    n_pending: int = 0


@dataclasses.dataclass(frozen=True)
class ReviewFigures:
    """What decisions say.

    Attributes
    ----------
    n_decided, n_none : int
        Texts decided by people, and those of them that no label fits.
    by_queue, by_reviewer : mapping of name to number of texts
    median_seconds : float or None
    accepted : Share
        Of texts whose answer was shown, those that ended with its best guess. People follow suggestions: this is no
        measure of the model.
    changed : list of (label, added, removed)
        Labels that people added to best guesses they saw or removed from them, the most changed first.
    check : CheckFigures
    """

    n_decided: int
    n_none: int
    by_queue: dict[str, int]
    by_reviewer: dict[str, int]
    median_seconds: float | None
    accepted: Share
    changed: list[tuple[str, int, int]]
    check: CheckFigures

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        values = dataclasses.asdict(self)
        values["accepted"] = self.accepted._asdict()
        values["check"] |= {
            name: getattr(self.check, name)._asdict() for name in ("agreement", "filed_wrong", "missed")
        }
        return values


def figures(store: ReviewStore, label_names: Iterable[str] | None = None) -> ReviewFigures:
    """Return what the decisions of a store say; `label_names` are the labels that the model knows."""
    decisions = store.decisions()
    shown = [decision for decision in decisions if not decision.is_check]
    checked = [decision for decision in decisions if decision.is_check]
    seconds = [decision.seconds for decision in decisions if decision.seconds is not None]
    return ReviewFigures(
        n_decided=len(decisions),
        n_none=sum(not decision.labels for decision in decisions),
        by_queue=dict(Counter(decision.queue for decision in decisions)),
        by_reviewer=dict(Counter(decision.reviewer for decision in decisions)),
        median_seconds=statistics.median(seconds) if seconds else None,
        accepted=share_of(sum(decision.action == "accept" for decision in shown), len(shown)),
        changed=_changed(shown),
        check=_check(checked, label_names, store.counts()["check"].waiting),
    )


def _changed(decisions: list[Decision]) -> list[tuple[str, int, int]]:
    """Return the labels that people added and removed most."""
    added: Counter[str] = Counter()
    removed: Counter[str] = Counter()
    for decision in decisions:
        chosen, guessed = _labels(decision)
        added.update(chosen - guessed)
        removed.update(guessed - chosen)
    most = sorted((added + removed).items(), key=lambda item: (-item[1], item[0]))[:_MOST_CHANGED]
    return [(label, added[label], removed[label]) for label, _ in most]


def _labels(decision: Decision) -> tuple[set[str], set[str]]:
    """Return the labels that people gave and those of the best guess."""
    return set(decision.labels or ()), set((decision.answer or {}).get("labels", ()))


def _check(checked: list[Decision], label_names: Iterable[str] | None, n_pending: int) -> CheckFigures:
    """Return what the blind check says."""
    known = None if label_names is None else set(label_names)
    filed = [decision for decision in checked if (decision.answer or {}).get("decision") == "file"]
    seen = [decision for decision in checked if (decision.answer or {}).get("decision") != "file"]
    n_true = n_missed = 0
    for decision in seen:
        chosen, _ = _labels(decision)
        n_true += len(chosen)
        n_missed += len(chosen.difference((decision.answer or {}).get("consider", ())))
    agreed = [chosen == guessed for chosen, guessed in map(_labels, checked)]
    return CheckFigures(
        agreement=share_of(sum(agreed), len(checked)),
        filed_wrong=share_of(sum(chosen != guessed for chosen, guessed in map(_labels, filed)), len(filed)),
        missed=share_of(n_missed, n_true),
        unknown=0 if known is None else sum(bool(decision.unknown_labels(known)) for decision in checked),
        n_pending=n_pending,
    )
