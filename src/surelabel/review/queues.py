"""Queues of a review, and their texts and decisions as plain values."""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Iterable, Mapping
from typing import Any

from surelabel.exceptions import InvalidInputError

CHOOSE, READ, CHECK, FILED = "choose", "read", "check", "filed"
QUEUES = (CHOOSE, READ, CHECK, FILED)
"""The queues: choose from a short list, read, the blind check, and what the model filed."""

_QUEUE_OF = {"file": FILED, "choose": CHOOSE, "read": READ}


def hash_of(text: str) -> str:
    """Return the SHA-256 of a text in hexadecimal digits."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def keyed_hash(salt: bytes, purpose: str, text_id: str, text_hash: str) -> int:
    """Return 64 bits that look random to whoever does not know the salt, always the same for the same text."""
    content = f"{purpose}\0{text_id}\0{text_hash}".encode("utf-8", "surrogatepass")
    return int.from_bytes(hashlib.blake2b(content, key=salt, digest_size=8).digest(), "big")


def is_drawn(salt: bytes, text_id: str, text_hash: str, share: float) -> bool:
    """Return whether the blind check draws a text: with probability `share`, whatever the model answers."""
    return keyed_hash(salt, "check", text_id, text_hash) < share * 2**64


@dataclasses.dataclass(frozen=True)
class NewText:
    """A text to review.

    Parameters
    ----------
    id, text : str
    answer : mapping
        The answer of the model, `Answer.record()`.
    model : str
        Names the model that gave the answer.
    is_check : bool
        Whether the text was drawn for the blind check, before the model was asked.
    columns : mapping
        Cells of the row that the text came in.
    """

    id: str
    text: str
    answer: Mapping[str, Any]
    model: str = ""
    is_check: bool = False
    columns: Mapping[str, Any] = dataclasses.field(default_factory=dict)

    @property
    def queue(self) -> str:
        """The queue that the text belongs to."""
        decision = self.answer.get("decision")
        if decision not in _QUEUE_OF:
            raise InvalidInputError(
                f"The decision about a text must be file, choose or read. Got {decision!r} instead."
            )
        return CHECK if self.is_check else _QUEUE_OF[decision]


@dataclasses.dataclass(frozen=True)
class Decision:
    """A saved decision about the text with this number.

    Attributes
    ----------
    id : int
        Ascends in the order of decisions.
    key : str
        Made by the sender: a decision that is sent twice is saved once.
    labels : tuple of str or None
        None if the text was skipped, empty if no label fits.
    at, seconds, undone_at : float
        Seconds since 1970 (UTC); how long the reviewer looked at the text, None if unknown; None if it stands.
    queue, is_check, answer
        Those of the text. The answer is None for the blind check, except in `ReviewStore.decisions()`.
    """

    id: int
    key: str
    number: int
    labels: tuple[str, ...] | None
    reviewer: str
    at: float
    seconds: float | None
    undone_at: float | None
    queue: str
    is_check: bool
    answer: Mapping[str, Any] | None

    @property
    def action(self) -> str:
        """What the labels amount to: "skip", "none", "accept" or "change"; "blind" where the answer is not known."""
        if self.labels is None:
            return "skip"
        if self.answer is None:
            return "blind"
        if set(self.labels) == set(self.answer["labels"]):
            return "accept"
        return "change" if self.labels else "none"

    def unknown_labels(self, label_names: Iterable[str]) -> tuple[str, ...]:
        """Return the labels that the model does not know."""
        return tuple(sorted(set(self.labels or ()).difference(label_names)))


@dataclasses.dataclass(frozen=True)
class ReviewText:
    """A text in a store, where its number names it; `decision` is the one that stands.

    The answer of the model is None for a text of the blind check, so that no page can show it.
    """

    number: int
    id: str
    hash: str
    text: str
    columns: Mapping[str, Any]
    queue: str
    is_check: bool
    answer: Mapping[str, Any] | None
    model: str
    n_skips: int = 0
    decision: Decision | None = None

    @property
    def final_labels(self) -> tuple[str, ...] | None:
        """The labels that the text ends with; None while it is pending."""
        if self.decision is not None:
            return self.decision.labels
        if self.queue == FILED and self.answer is not None:
            return tuple(self.answer["labels"])
        return None


@dataclasses.dataclass(frozen=True)
class Counts:
    """Texts of a queue: pending ones, those of them that a reviewer has leased, and decided ones."""

    waiting: int = 0
    leased: int = 0
    decided: int = 0
