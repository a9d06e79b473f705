"""Texts on their way into the queues: read, drawn for the blind check, answered, offered."""

from __future__ import annotations

import dataclasses
import itertools
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

from surelabel._core import progress
from surelabel.answers import exact_level
from surelabel.exceptions import CorpusError, InvalidInputError
from surelabel.models import Bundle
from surelabel.predicting import InputColumns, TextSource
from surelabel.review.queues import MOST_OPTIONS, NewText, Offer, ReviewText, offer_of
from surelabel.review.store import ReviewStore
from surelabel.tables.reading import TableReader
from surelabel.tables.texts import group_of, read_texts

_BATCH = 128
_Row = TypeVar("_Row")


@dataclasses.dataclass(frozen=True)
class IncomingSettings:
    """How texts come into their queues.

    Parameters
    ----------
    significance
        Share of texts whose true label-set may be missed by the label-sets to choose from.
    check_share : float
        Share of all texts that is drawn for the blind check.
    columns : InputColumns
        Which columns hold text and id.
    input_format : str, optional
        Of the file, if its suffix does not say.
    """

    significance: Any = "0.05"
    check_share: float = 0.05
    columns: InputColumns = dataclasses.field(default_factory=InputColumns)
    input_format: str | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "significance", exact_level(self.significance))
        if not 0 <= self.check_share <= 1:
            raise InvalidInputError(f"The 'check_share' must be from 0 to 1. Got {self.check_share!r} instead.")


class Incoming(NamedTuple):
    """A text with its id and its row in the file."""

    id: str
    text: str
    columns: Mapping[str, Any]


def take_in(
    store: ReviewStore,
    bundle: Bundle,
    source: str | os.PathLike[str] | Iterable[Incoming],
    model: str,
    settings: IncomingSettings | None = None,
) -> int:
    """Bring the texts of a file into their queues; return how many were new. Others are not answered again.

    Parameters
    ----------
    store : ReviewStore
    bundle : Bundle
    source : path, or iterable of (id, text, columns)
        CSV, TSV, JSONL, Parquet, XLSX or plain text.
    model : str
        Fingerprint of the bundle, see `predicting.models.model_checksum`.
    settings : IncomingSettings, optional
    """
    settings = settings or IncomingSettings()
    rows = _read(source, settings) if isinstance(source, (str, os.PathLike)) else iter(source)
    n_new = 0
    with progress.step("answering texts") as advance:
        for batch in _batches(rows):
            new = [batch[place] for place in store.unknown((row.id, row.text) for row in batch)]
            # Drawn before anything is asked of the model: the draw cannot depend on the answer.
            drawn = [store.is_drawn(row.id, row.text, settings.check_share) for row in new]
            offers = _offers_for(bundle, new, settings.significance)
            n_new += store.add(
                NewText(row.id, row.text, offer, model, is_blind, row.columns)
                for row, offer, is_blind in zip(new, offers, drawn, strict=True)
            )
            advance(len(batch))
    return n_new


def _offers_for(bundle: Bundle, rows: Sequence[Incoming | ReviewText], significance: Any) -> list[Offer]:
    """Return what reviewers are offered for texts."""
    if not rows:
        return []
    texts, groups = [row.text for row in rows], groups_of(bundle, rows)
    answers = bundle.answers(texts, significance=significance, top=MOST_OPTIONS, groups=groups)
    return [offer_of(answer) for answer in answers]


def groups_of(bundle: Bundle, rows: Iterable[Incoming | ReviewText]) -> list[str] | None:
    """Return the group of each text, from its column; None if the bundle is not calibrated by groups."""
    if bundle.groups is None:
        return None
    column = bundle.info.group_column or "group"
    groups = []
    for row in rows:
        group, problem = group_of(row.columns.get(column), column)
        if problem is not None:
            raise CorpusError(f"The model is calibrated by groups. Text {row.id!r:.60} {problem}")
        groups.append(group)
    return groups


def reroute(store: ReviewStore, bundle: Bundle, model: str, significance: Any) -> int:
    """Offer what another model says for the texts that nobody has decided; return how many there were."""
    n_changed = 0
    waiting = (text for text in store.texts() if text.decision is None and text.model != model)
    for batch in _batches(waiting):
        offers = _offers_for(bundle, batch, significance)
        changes = ((text.number, offer, model) for text, offer in zip(batch, offers, strict=True))
        n_changed += store.reroute(changes)
    return n_changed


def _batches(rows: Iterator[_Row]) -> Iterator[list[_Row]]:
    """Yield rows in batches."""
    while batch := list(itertools.islice(rows, _BATCH)):
        yield batch


def _read(source: str | os.PathLike[str], settings: IncomingSettings) -> Iterator[Incoming]:
    """Yield the rows of a file with all their cells; the row's number is the id if there is none."""
    partition = TextSource(source, settings.columns, settings.input_format).partition
    reader = TableReader(partition, settings.columns.encoding)
    for row in read_texts(reader, settings.columns, all_columns=True):
        if row.problem is not None:
            raise CorpusError(row.problem)
        yield Incoming(str(row.number) if row.id is None else row.id, row.text, row.cells or {})
