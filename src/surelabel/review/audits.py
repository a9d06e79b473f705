"""Audits: texts of the blind check as calibration texts, and the watch over them.

An audit was drawn by a coin before the model was asked, and labelled by people who did not see its answer. So audits
are a random sample of the texts that arrive.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable

import numpy as np

from surelabel.corpora import Corpus
from surelabel.exceptions import ArtifactError
from surelabel.guarantees.watch import ExchangeabilityWatch
from surelabel.models import Bundle
from surelabel.models.calibrate import held_out_texts
from surelabel.models.evidence import HeldOutTexts
from surelabel.review.queues import CHECK, ReviewText
from surelabel.review.store import ReviewStore

AUDITS_UP_TO = "audits_up_to"
"""In the provenance of a bundle: the number of the last audit that it is calibrated on."""

_SKIPPED = "(skipped audit)"
_WATCH_ALPHA = "0.01"


def audits_of(store: ReviewStore, after: int = 0) -> list[ReviewText]:
    """Return the audits that were added after a text, in order of arrival, up to the first that is pending.

    Which audits count must not depend on how fast they were decided; so a pending one holds back those behind it. A
    skipped one does not, and counts as an error.
    """
    audits = []
    for text in store.texts(CHECK):
        if text.number > after:
            if text.decision is None and text.n_skips == 0:
                break
            audits.append(text)
    return audits


def n_skipped_of(audits: Iterable[ReviewText]) -> int:
    """Return how many audits were skipped."""
    return sum(text.decision is None for text in audits)


def audited(bundle: Bundle, audits: list[ReviewText]) -> HeldOutTexts:
    """Return what a bundle makes of audits; a skipped one has a label that no model knows."""
    labels = [(_SKIPPED,) if text.decision is None else text.decision.labels or () for text in audits]
    names = sorted({name for text in audits for name in text.columns})
    corpus = Corpus.from_label_sets(
        "audits",
        [text.text for text in audits],
        labels,
        ids=[str(text.number) for text in audits],
        columns={name: [str(text.columns.get(name, "")) for text in audits] for name in names},
    )
    return held_out_texts(bundle, corpus)


@dataclasses.dataclass(frozen=True)
class AuditWatch:
    """What the watch says about the audits that a model has not seen.

    Attributes
    ----------
    n_audits : int
    alarm : bool
        Audits are unlike the texts that the model was calibrated on: nothing may be filed until it is calibrated
        again, by `learn(..., retrain=False)` or with a new generation.
    alarm_at : int or None
        Number of the text that raised the alarm.
    """

    n_audits: int
    alarm: bool
    alarm_at: int | None = None


def watch_audits(bundle: Bundle, store: ReviewStore) -> AuditWatch:
    """Compare the audits that a model has not seen with its calibration texts; a false alarm has probability 1 %."""
    up_to = bundle.info.provenance.get(AUDITS_UP_TO, 0)
    if not isinstance(up_to, int):
        raise ArtifactError(f"The model {bundle.info.name!r} is damaged: its last audit is {up_to!r:.40}.")
    audits = audits_of(store, after=up_to)
    if audits:
        used = bundle.seen.used([text.text for text in audits]).tolist()
        audits = [text for text, is_used in zip(audits, used, strict=True) if not is_used]
    if not audits:
        return AuditWatch(0, alarm=False)
    parts = bundle.filing, bundle.calibration, audited(bundle, audits)
    predictor = bundle.policy.automation.predictor_  # of all texts, whatever their category
    scores = [predictor.scores(part.probabilities, part.label_sets) for part in parts]
    seen = ExchangeabilityWatch(np.concatenate(scores[:2]), alpha=_WATCH_ALPHA).update(scores[2])
    at = None if seen.alarm_at is None else audits[seen.alarm_at - 1].number
    return AuditWatch(len(audits), alarm=seen.alarm, alarm_at=at)


def may_file(bundle: Bundle, store: ReviewStore) -> bool:
    """Return whether texts may be filed: not after an alarm of the watch."""
    return not watch_audits(bundle, store).alarm
