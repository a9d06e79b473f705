"""What decisions say about the model (by the blind check), and about the work."""

from __future__ import annotations

import dataclasses
import statistics
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from surelabel.guarantees.certifying import wrong_bound
from surelabel.review.queues import Decision

_MOST_CORRECTED = 10


@dataclasses.dataclass(frozen=True)
class BlindFigures:
    """What the blind check says about the model: texts drawn from all, labelled by people who did not see its answer.

    Attributes
    ----------
    n_texts, n_guess_wrong : int
        Texts checked, and those of them whose best guess is wrong.
    n_filed, n_filed_wrong : int
        Those that the model would have filed, and those of these whose best guess is wrong.
    filed_wrong_bound : float or None
        The share of wrong texts among filed ones is at most this, with 95 % assurance; None before the first.
    n_missed, significance : int, str or None
        Texts whose labels are not among the plausible label-sets at this level; None if texts were answered at several.
    """

    n_texts: int
    n_filed: int
    n_filed_wrong: int
    filed_wrong_bound: float | None
    significance: str | None
    n_missed: int
    n_guess_wrong: int

    @property
    def error(self) -> float | None:
        """Share of texts whose labels were missed at the level; None before the first text."""
        return self.n_missed / self.n_texts if self.n_texts else None


def blind_figures(decisions: Iterable[Decision], p_values: Sequence[float]) -> BlindFigures:
    """Return the figures of the blind check.

    Parameters
    ----------
    decisions : iterable of Decision
        Those that stand; only blind ones count.
    p_values : sequence of float
        Of the labels that were chosen, one per blind decision; 0 for labels that no plausible label-set could have.
    """
    blind = [decision for decision in decisions if decision.is_blind]
    filed = [decision for decision in blind if decision.offered.verdict == "file"]
    n_wrong = sum(decision.is_changed for decision in filed)
    levels = {decision.offered.significance for decision in blind}
    missed = sum(
        p_value <= float(decision.offered.significance or 0) for decision, p_value in zip(blind, p_values, strict=True)
    )
    return BlindFigures(
        n_texts=len(blind),
        n_filed=len(filed),
        n_filed_wrong=n_wrong,
        filed_wrong_bound=wrong_bound(n_wrong, len(filed)) if filed else None,
        significance=levels.pop() if len(levels) == 1 else None,
        n_missed=missed,
        n_guess_wrong=sum(decision.is_changed for decision in blind),
    )


@dataclasses.dataclass(frozen=True)
class ClosingFigures:
    """Figures of the work, for the screen at its end.

    Attributes
    ----------
    n_decided, n_none : int
        Texts decided by people, and those of them for which no label fits.
    by_queue, by_reviewer : mapping of name to number of texts
    median_seconds : float or None
        Per text; None if nobody's time is known.
    n_offered, n_agreed : int
        Texts whose best guess was shown, and those of them that ended with it.
    corrected : list of (label, added, removed)
        Labels that people added to best guesses or removed from them, the most corrected first.
    """

    n_decided: int
    by_queue: dict[str, int]
    by_reviewer: dict[str, int]
    median_seconds: float | None
    n_offered: int
    n_agreed: int
    n_none: int
    corrected: list[tuple[str, int, int]]

    @property
    def agreement(self) -> float | None:
        """Share of texts that ended with the best guess that was shown."""
        return self.n_agreed / self.n_offered if self.n_offered else None

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return {**dataclasses.asdict(self), "agreement": self.agreement}


def closing_figures(decisions: Iterable[Decision]) -> ClosingFigures:
    """Return the figures of decisions that stand."""
    made = list(decisions)
    shown = [decision for decision in made if not decision.is_blind]
    added: Counter[str] = Counter()
    removed: Counter[str] = Counter()
    for decision in shown:
        chosen, guessed = set(decision.chosen or ()), set(decision.offered.labels)
        added.update(chosen - guessed)
        removed.update(guessed - chosen)
    seconds = [decision.seconds for decision in made if decision.seconds is not None]
    corrected = sorted((added + removed).items(), key=lambda item: (-item[1], item[0]))[:_MOST_CORRECTED]
    return ClosingFigures(
        n_decided=len(made),
        by_queue=dict(Counter(decision.queue for decision in made)),
        by_reviewer=dict(Counter(decision.reviewer for decision in made)),
        median_seconds=statistics.median(seconds) if seconds else None,
        n_offered=len(shown),
        n_agreed=sum(not decision.is_changed for decision in shown),
        n_none=sum(not decision.chosen for decision in made),
        corrected=[(label, added[label], removed[label]) for label, _ in corrected],
    )
