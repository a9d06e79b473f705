"""Texts that wait for their label-sets, by id: some never get them, and they come in any order."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Generic, Literal, NoReturn, TypeAlias, TypeVar

import numpy as np

from surelabel._core.validation import BoolArray
from surelabel.conformal import ConformalLabelSets
from surelabel.exceptions import InvalidInputError
from surelabel.labels.label_sets import label_indices

Reason: TypeAlias = Literal["unknown", "settled", "contradicts"]
_Text = TypeVar("_Text")
# Settled ids that are remembered, so that a second outcome is noticed.
_REMEMBERED = 100_000


class OutcomeError(InvalidInputError):
    """An outcome cannot be taken: its text is unknown, or settled with the same or with another label-set."""

    def __init__(self, message: str, identity: str, reason: Reason) -> None:
        super().__init__(message)
        self.identity = identity
        self.reason: Reason = reason

    def __reduce__(self) -> tuple[type[OutcomeError], tuple[str, str, Reason]]:
        """Pickle with all attributes, so that it can cross between processes."""
        return OutcomeError, (str(self), self.identity, self.reason)


class Waiting(Generic[_Text]):
    """Texts that wait for their label-sets, and the label-sets of those that are settled; the oldest are forgotten."""

    def __init__(self, predictor: ConformalLabelSets, max_pending: int) -> None:
        self.predictor = predictor
        self.max_pending = max_pending
        self.n_settled_ = 0
        self._pending: dict[str, _Text] = {}
        self._settled: dict[str, tuple[int, ...]] = {}

    @property
    def n_pending_(self) -> int:
        """Texts that wait for their labels."""
        return len(self._pending)

    def is_pending(self, name: str) -> bool:
        """Whether a text of this id waits for its label-set."""
        return name in self._pending

    def check_new(self, ids: Iterable[Any], n_texts: int | None = None) -> tuple[str, ...]:
        """Return ids as strings; raise unless they are new and differ from each other."""
        names = tuple(str(name) for name in ids)
        for name in names:
            waits = self.is_pending(name)
            if waits or name in self._settled:
                state = "waits for its labels" if waits else "is settled"
                raise OutcomeError(
                    f"The id of a new text must be new. Got {name!r:.80}, which {state}.", name, "settled"
                )
        return as_ids(names, n_texts)

    def _wait(self, texts: Mapping[str, _Text]) -> None:
        """Remember texts until their label-sets become known."""
        self._pending.update(texts)
        _forget(self._pending, self.max_pending)

    def _outcomes(self, names: Sequence[str], labels: Any, *, who: str) -> tuple[BoolArray, dict[str, tuple[int, ...]]]:
        """Return label-sets that became known as 0/1 rows, and by id; raise unless all of their texts wait."""
        calibration = self.predictor.calibration_
        truth = calibration.as_labels(labels, np.empty((len(names), calibration.n_labels)), who=who)
        outcomes = dict(zip(names, map(tuple, label_indices(truth)), strict=True))
        for name, outcome in outcomes.items():
            if not self.is_pending(name):
                self._refuse(name, outcome)
        return truth, outcomes

    def _refuse(self, name: str, outcome: tuple[int, ...]) -> NoReturn:
        """Say why the outcome of a text that does not wait cannot be taken."""
        if name not in self._settled:
            raise OutcomeError(
                f"There is no text {name!r:.80} that waits for its labels: it was never answered under this "
                "id, or was forgotten.",
                name,
                "unknown",
            )
        is_same = self._settled[name] == outcome
        how = "with the same label-set" if is_same else "with another label-set, which this one contradicts"
        message = f"The text {name!r:.80} is settled already, {how}. Nothing was changed."
        raise OutcomeError(message, name, "settled" if is_same else "contradicts")

    def _settle(self, outcomes: Mapping[str, tuple[int, ...]]) -> None:
        """Remember label-sets that became known."""
        self._settled.update(outcomes)
        _forget(self._settled, _REMEMBERED)
        self.n_settled_ += len(outcomes)

    def _settled_to_json(self) -> list[Any]:
        """Return the settled texts as plain values."""
        return [[name, list(outcome)] for name, outcome in self._settled.items()]

    def _settled_from_json(self, values: Iterable[Any]) -> None:
        """Restore the settled texts of an earlier run."""
        self._settled = {str(name): tuple(map(int, outcome)) for name, outcome in values}


def _forget(entries: dict[str, Any], most: int) -> None:
    """Drop the oldest entries of which there are too many."""
    for name in list(itertools.islice(entries, max(0, len(entries) - most))):
        del entries[name]


def as_ids(ids: Iterable[Any], n_texts: int | None = None) -> tuple[str, ...]:
    """Return identifiers as different strings, one per text."""
    names = tuple(str(name) for name in ids)
    n_texts = len(names) if n_texts is None else n_texts
    if len(names) != n_texts or len(set(names)) != n_texts:
        raise InvalidInputError(
            f"The 'ids' parameter must hold {n_texts} different identifiers, one per text. Got {len(names)}, of which "
            f"{len(set(names))} differ."
        )
    return names
