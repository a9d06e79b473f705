"""Texts on their way into the queues: read, drawn for the blind check, answered, added."""

from __future__ import annotations

import dataclasses
import itertools
import os
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from surelabel._core import progress
from surelabel._core.validation import as_significance
from surelabel.exceptions import CorpusError, InvalidInputError
from surelabel.models import Bundle
from surelabel.predicting.file import groups_of, read_texts
from surelabel.review.audits import may_file
from surelabel.review.queues import NewText
from surelabel.review.store import ReviewStore
from surelabel.tables.columns import Columns, TextRow

_BATCH = 128


@dataclasses.dataclass(frozen=True)
class ReviewSettings:
    """How texts come into their queues.

    Parameters
    ----------
    significance, optional
        Level of the plausible label-sets that are shown as shortcuts; without it there are none.
    check_share : float
        Share of all texts that people label without seeing the answer: the blind check. Only these texts say how good
        the model is, and only they calibrate the next one: 0.05 to 0.1 is usual.
    columns : Columns
    kind, encoding : str
        Of the file; the kind is by default what its suffix says.
    on_error : {"stop", "skip"}
    model : str, optional
        Names the model; by default its own name and date.
    files : bool, optional
        Whether the model may file texts. If not, texts that it would file wait to be chosen. By default it may, unless
        the watch over audits has raised its alarm.
    """

    significance: Any = None
    check_share: float = 0.05
    columns: Columns = dataclasses.field(default_factory=Columns)
    kind: str | None = None
    encoding: str = "utf-8"
    on_error: str = "stop"
    model: str | None = None
    files: bool | None = None

    def __post_init__(self) -> None:
        if self.significance is not None:
            as_significance(self.significance, None, "ReviewSettings")
        if not 0 <= self.check_share <= 1:
            raise InvalidInputError(f"The 'check_share' must be from 0 to 1. Got {self.check_share!r} instead.")
        if self.on_error not in {"stop", "skip"}:
            raise InvalidInputError(f"On a row that cannot be used, 'stop' or 'skip'. Got {self.on_error!r} instead.")


class AddedTexts(NamedTuple):
    """Texts that are new in the store, rows that were read, rows that were skipped, and whether texts were filed.

    `skipped` has the number of a row and the reason; `files` is False after an alarm of the watch over audits.
    """

    n_new: int
    n_rows: int
    skipped: tuple[tuple[int, str], ...] = ()
    files: bool = True


def add_texts(
    bundle: Bundle,
    store: ReviewStore,
    source: str | os.PathLike[str] | Iterable[TextRow],
    settings: ReviewSettings | None = None,
) -> AddedTexts:
    """Add the texts of a file to their queues. Texts that the store has are not answered again.

    Parameters
    ----------
    bundle : Bundle
    store : ReviewStore
    source : path, URL, or iterable of TextRow
        CSV, TSV, JSONL, Parquet, XLSX or plain text.
    settings : ReviewSettings, optional
    """
    settings = settings or ReviewSettings()
    is_file = isinstance(source, (str, os.PathLike))
    rows: Iterator[TextRow] = (
        read_texts(source, settings.columns, settings.kind, settings.encoding)  # type: ignore[arg-type]
        if is_file
        else iter(source)  # type: ignore[arg-type]
    )
    if settings.files is None:
        settings = dataclasses.replace(settings, files=may_file(bundle, store))
    n_new = n_rows = 0
    skipped: list[tuple[int, str]] = []
    with progress.step("answering texts") as advance:
        while batch := list(itertools.islice(rows, _BATCH)):
            n_rows += len(batch)
            n_new += _add(bundle, store, _usable(batch, settings, skipped), settings)
            advance(len(batch))
    return AddedTexts(n_new, n_rows, tuple(skipped), bool(settings.files))


def _usable(rows: list[TextRow], settings: ReviewSettings, skipped: list[tuple[int, str]]) -> list[TextRow]:
    """Return the rows without a problem; the others are an error or are skipped."""
    for row in rows:
        if row.problem is not None and settings.on_error == "stop":
            raise CorpusError(f"{row.problem} Leave such rows out with --on-error skip.")
    skipped.extend((row.number, row.problem) for row in rows if row.problem is not None)
    return [row for row in rows if row.problem is None]


def _add(bundle: Bundle, store: ReviewStore, rows: list[TextRow], settings: ReviewSettings) -> int:
    """Draw, answer and add the rows that are new."""
    new = [rows[index] for index in store.unknown([(row.id, row.text) for row in rows])]
    if not new:
        return 0
    # Drawn before the model is asked: the draw cannot depend on the answer.
    drawn = [store.is_drawn(row.id, row.text, settings.check_share) for row in new]
    answers = bundle.answers(
        [row.text for row in new],
        significance=settings.significance,
        groups=groups_of(bundle, new),
        scores=None if settings.columns.scores is None else [row.scores for row in new],
    )
    model = settings.model if settings.model is not None else f"{bundle.info.name} {bundle.info.created}"
    texts = []
    for row, is_check, answer in zip(new, drawn, answers, strict=True):
        record = answer.record()
        if not settings.files and record["decision"] == "file":
            record |= {"decision": "choose", "reason": "Filing has stopped. Please check this answer."}
        texts.append(NewText(row.id, row.text, record, model, is_check, row.cells))
    return store.add(texts)
