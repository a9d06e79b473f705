"""Texts under review and decisions about them, as plain values."""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Mapping
from typing import Any

from surelabel.review.queues import Offer

ACCEPT, PICK, EDIT, NONE_FITS, SKIP, UNDO = "accept", "pick", "edit", "none", "skip", "undo"
ACTIONS = (ACCEPT, PICK, EDIT, NONE_FITS, SKIP)
"""What a reviewer can do with a text: accept the best guess, pick a label-set, edit tags, say that none fits, skip."""


def hash_of(text: str) -> str:
    """Return the SHA-256 of a text, in hexadecimal digits.

    Examples
    --------
    >>> hash_of("wheat")[:16]
    'de6c334339ac3d32'
    """
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


@dataclasses.dataclass(frozen=True)
class NewText:
    """A text to review: its id, the text, its row in the file as it was, and the offer; `is_blind` if drawn to check.

    `model` is the fingerprint of the model that made the offer.

    Examples
    --------
    >>> NewText("7", "Crude rose.", Offer("choose", "", ("oil",)), model="0").is_blind
    False
    """

    id: str
    text: str
    offer: Offer
    model: str
    is_blind: bool = False
    columns: Mapping[str, Any] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True)
class ReviewText:
    """A text in the store: `number` names it there, `decision` is the one that stands."""

    number: int
    id: str
    hash: str
    text: str
    columns: Mapping[str, Any]
    queue: str
    is_blind: bool
    offer: Offer
    model: str
    decision: Decision | None = None

    @property
    def final_labels(self) -> tuple[str, ...] | None:
        """The labels that the text ends with; None if nobody has decided yet."""
        if self.decision is not None:
            return self.decision.chosen
        return self.offer.labels if self.queue == "filed" else None


@dataclasses.dataclass(frozen=True)
class Decision:
    """A decision as it is saved.

    Attributes
    ----------
    id, key : int, str
        Ascending; and made by whoever decides: the same decision sent twice is saved once.
    number, text_id, text_hash
        Of the text.
    action, reviewer, queue : str
        One of `ACTIONS`, or "undo"; by whom; and where the text was.
    offered, model : Offer, str
        What the reviewer was offered, and the fingerprint of the model that made the offer.
    chosen : tuple of str or None
        The labels; None if the text was skipped.
    at, seconds : float
        Seconds since 1970, UTC; and how long the reviewer looked at the text, None if that is not known.
    is_blind : bool
        Whether the offer was hidden.
    """

    id: int
    key: str
    number: int
    text_id: str
    text_hash: str
    action: str
    offered: Offer
    chosen: tuple[str, ...] | None
    queue: str
    reviewer: str
    at: float
    seconds: float | None
    model: str
    is_blind: bool = False

    @property
    def is_changed(self) -> bool:
        """Whether the labels differ from the best guess."""
        return self.chosen is not None and set(self.chosen) != set(self.offered.labels)


@dataclasses.dataclass(frozen=True)
class QueueCounts:
    """Texts of a queue: how many wait, how many of these are with a reviewer now, and how many are decided.

    Examples
    --------
    >>> QueueCounts(waiting=3, leased=1, decided=9)
    QueueCounts(waiting=3, leased=1, decided=9)
    """

    waiting: int = 0
    leased: int = 0
    decided: int = 0
