"""Texts in queues, what a reviewer is offered for them, and decisions about them, as plain values."""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Mapping
from typing import Any

from surelabel._core.wording import bounds_words
from surelabel.answers import Answer
from surelabel.exceptions import InvalidInputError

CHOOSE, READ, CHECK, FILED = "choose", "read", "check", "filed"
QUEUES = (CHOOSE, READ, CHECK, FILED)
"""The queues, in the order in which a reviewer works through them."""

MOST_OPTIONS = 9
"""Label-sets that are offered: as many as there are digits to pick one with."""

_MOST_CONSIDERED = 20
_VERDICTS = {"file": FILED, "choose": CHOOSE, "read": READ}

ACCEPT, PICK, EDIT, NONE_FITS, SKIP, UNDO = "accept", "pick", "edit", "none", "skip", "undo"
ACTIONS = (ACCEPT, PICK, EDIT, NONE_FITS, SKIP)
"""What a reviewer can do with a text: accept the best guess, pick a label-set, edit tags, say that none fits, skip."""


@dataclasses.dataclass(frozen=True)
class Offer:
    """What a reviewer is offered for a text: the verdict, the best guess, label-sets to pick from, tags to consider.

    It is saved with the text and with each decision about it.

    Attributes
    ----------
    verdict, reason : str
        "file", "choose" or "read", and why, in a sentence.
    labels : tuple of str
        The best guess.
    options : tuple of (labels, p-value)
        The most plausible label-sets, best first, at most nine.
    consider, n_considered : tuple of str, int
        Tags to consider, the most probable first, at most 20, and the best guess; and how many tags there were.
    certain : tuple of str
        Labels of every plausible label-set.
    size, significance : str
        How many label-sets are plausible, for people; and at which level, exactly.
    credibility : float
    unfamiliar : bool
        Whether the text is unlike the calibration texts.

    Examples
    --------
    >>> Offer("choose", "Two label-sets are plausible.", ("oil",), ((("oil",), 0.6), (("gas", "oil"), 0.2))).options[1]
    (('gas', 'oil'), 0.2)
    """

    verdict: str
    reason: str
    labels: tuple[str, ...]
    options: tuple[tuple[tuple[str, ...], float], ...] = ()
    consider: tuple[str, ...] = ()
    certain: tuple[str, ...] = ()
    size: str = ""
    significance: str = ""
    credibility: float = 1.0
    unfamiliar: bool = False
    n_considered: int = 0

    def __post_init__(self) -> None:
        if self.verdict not in _VERDICTS:
            raise InvalidInputError(
                f"The verdict about a text must be file, choose or read. Got {self.verdict!r} instead."
            )

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        values = {name: list(value) if isinstance(value, tuple) else value for name, value in vars(self).items()}
        values["options"] = [{"labels": list(labels), "p_value": p_value} for labels, p_value in self.options]
        return values

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Offer:
        """Return the inverse of `to_dict`."""
        plain: dict[str, Any] = {
            name: tuple(value) if isinstance(value, list) else value for name, value in values.items()
        }
        plain["options"] = tuple((tuple(option["labels"]), option["p_value"]) for option in values["options"])
        return cls(**plain)


def offer_of(answer: Answer) -> Offer:
    """Return what a reviewer is offered, from what the model says about a text.

    Examples
    --------
    >>> from surelabel.answers import PlausibleLabelSet
    >>> top = (PlausibleLabelSet(("oil",), 0.6), PlausibleLabelSet(("gas", "oil"), 0.2))
    >>> answer = Answer(("oil",), 0.8, 0.6, "0.05", 2, (2, 2), 7, ("oil",), ("gas",), top)
    >>> offer = offer_of(answer)
    >>> offer.verdict, offer.reason, offer.consider
    ('choose', '2 label-sets are plausible.', ('oil', 'gas'))
    """
    verdict, reason = _verdict(answer)
    options = tuple((option.labels, option.p_value) for option in answer.top[:MOST_OPTIONS])
    considered = answer.consider or (*answer.certain, *answer.open[:MOST_OPTIONS])
    return Offer(
        verdict=verdict,
        reason=reason,
        labels=answer.labels,
        options=options or ((answer.labels, answer.credibility),),
        consider=tuple(dict.fromkeys((*considered[:_MOST_CONSIDERED], *answer.labels))),
        certain=answer.certain,
        size=bounds_words(*answer.size_bounds),
        significance=answer.significance,
        credibility=answer.credibility,
        unfamiliar=answer.unfamiliar or answer.size_bounds[1] == 0,
        n_considered=len(answer.consider),
    )


def _verdict(answer: Answer) -> tuple[str, str]:
    """Return the verdict of the answer and its reason; without certificates nothing is filed, and the size decides."""
    if answer.decision is not None:
        return answer.decision, answer.reason or ""
    most = answer.size_bounds[1]
    if most == 0:
        return "read", "No label-set is plausible: the text is unlike the calibration texts."
    if most <= MOST_OPTIONS:
        return "choose", "1 label-set is plausible." if most == 1 else f"{most} label-sets are plausible."
    return "read", f"{bounds_words(*answer.size_bounds)} label-sets are plausible: too many to choose from."


def queue_of(offer: Offer, *, is_blind: bool) -> str:
    """Return the queue of a text: Check if it was drawn for the blind check, else the one of its verdict."""
    return CHECK if is_blind else _VERDICTS[offer.verdict]


def is_drawn(salt: bytes, text_id: str, text_hash: str, share: float) -> bool:
    """Say whether a text is drawn for the blind check, with probability `share`, whatever the model says about it.

    The draw is a keyed hash: a text that comes again is drawn again or not, as before.
    """
    digest = hashlib.blake2b(f"{text_id}\0{text_hash}".encode("utf-8", "surrogatepass"), key=salt, digest_size=8)
    return int.from_bytes(digest.digest(), "big") < share * 2**64


def hash_of(text: str) -> str:
    """Return the SHA-256 of a text, in hexadecimal digits."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


@dataclasses.dataclass(frozen=True)
class NewText:
    """A text to review: its id, the text, its row in the file as it was, and the offer; `is_blind` if drawn to check.

    `model` is the fingerprint of the model that made the offer.
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
    """Texts of a queue: how many wait, how many of these are with a reviewer now, and how many are decided."""

    waiting: int = 0
    leased: int = 0
    decided: int = 0
