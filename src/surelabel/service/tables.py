"""Tables over HTTP: a file is sent, and comes back as `surelabel predict` writes it."""

from __future__ import annotations

import asyncio
import contextlib
import io
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from fastapi import Query, Request
from fastapi.responses import StreamingResponse

from surelabel.exceptions import CorpusError
from surelabel.predicting import AnswerWriter, PredictSettings, answer_rows
from surelabel.predicting.file import read_texts
from surelabel.service.answering import Question, Worker, check_groups
from surelabel.service.metrics import scratch_folder
from surelabel.service.schemas import Dial, Group, Level, invalid, posted
from surelabel.service.security import TABLE_PATH
from surelabel.tables.columns import Columns

if TYPE_CHECKING:
    from fastapi import FastAPI
    from starlette.types import Receive, Scope, Send

    from surelabel.answers import Answer
    from surelabel.models import Bundle

ColumnName = Annotated[str, Query(max_length=200)]
_TYPES = {
    "csv": "text/csv; charset=utf-8",
    "jsonl": "application/x-ndjson",
    "parquet": "application/vnd.apache.parquet",
    "xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
}


class _TurnTaking:
    """A bundle whose texts take turns with those of other requests; for use in another thread than the event loop's."""

    def __init__(self, worker: Worker, dial: str | None) -> None:
        self.info, self.uris = worker.bundle.info, worker.bundle.uris
        self._worker, self._dial = worker, dial
        self._loop = asyncio.get_running_loop()

    def answers(self, texts: Sequence[str], *, scores: None = None, **asked: Any) -> list[Answer]:
        """Return answers as `Bundle.answers` does."""
        question = Question(texts, dial=self._dial, **asked)
        return asyncio.run_coroutine_threadsafe(self._worker.ask(question), self._loop).result()


class _Download(StreamingResponse):
    """A response that removes its files at its end, whatever that is."""

    def __init__(self, content: Iterator[bytes], files: contextlib.ExitStack, **options: Any) -> None:
        super().__init__(content, **options)
        self._files = files

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        with self._files:
            await super().__call__(scope, receive, send)


def add_tables(app: FastAPI, worker: Worker) -> None:
    """Add the address that takes tables."""
    body = {"requestBody": {"required": True, "content": {"application/octet-stream": {}}}}
    files = {"content": {name: {} for name in _TYPES.values()}, "description": "The answers."}

    @app.post(TABLE_PATH, openapi_extra=body, **posted(files))
    async def table(
        request: Request,
        name: Annotated[str, Query(min_length=1, max_length=200, description="Name of the file; its suffix counts.")],
        text: Annotated[list[ColumnName], Query(max_length=20, description="Columns with the text.")] = ["text"],  # noqa: B006
        id: ColumnName | None = None,  # noqa: A002
        by: Annotated[ColumnName | None, Query(description="Column with the group.")] = None,
        group: Annotated[Group | None, Query(description="Group of all texts; or give `by`.")] = None,
        significance: Level | None = None,
        level: Dial | None = None,
        format: Literal["csv", "jsonl", "xlsx", "parquet"] = "csv",  # noqa: A002
    ) -> _Download:
        """Answer the texts of a table: CSV, TSV, XLSX, JSONL, Parquet or TXT."""
        settings = PredictSettings(
            significance=significance, columns=Columns(tuple(text), id, by), group=group, format=format, batch_size=32
        )
        settings.check_labels(worker.bundle, format)
        with contextlib.ExitStack() as opened:
            path = Path(opened.enter_context(scratch_folder()), Path(name).name or "table")
            with path.open("wb") as file:
                async for chunk in request.stream():
                    file.write(chunk)
            n_texts = await asyncio.to_thread(_check_rows, path, settings, worker.bundle)
            return _Download(
                _written(_TurnTaking(worker, level), path, settings),
                opened.pop_all(),
                headers={"Surelabel-Texts": str(n_texts)},
                media_type=_TYPES[format],
            )


def _check_rows(path: Path, settings: PredictSettings, bundle: Bundle) -> int:
    """Return the number of texts; what cannot be answered is refused before the first answer is sent."""
    n_texts = 0
    groups = {settings.group}
    for row in read_texts(path, settings.columns, None, settings.encoding):
        if row.problem is not None:
            raise invalid(None, row.problem, "Mend the row, or remove it.")
        n_texts += 1
        groups.add(row.group)
    if n_texts == 0:
        raise CorpusError(f"{path.name} has no texts.")
    check_groups(bundle, sorted(group for group in groups if group is not None) or None)
    return n_texts


def _written(bundle: Any, path: Path, settings: PredictSettings) -> Iterator[bytes]:
    """Yield the answers as a file, a batch at a time where its kind allows that."""
    kind = settings.format or "csv"
    buffer = io.BytesIO()
    writer = AnswerWriter(buffer, kind, settings, has_uris=bundle.uris is not None)
    for answered in answer_rows(bundle, read_texts(path, settings.columns, None, settings.encoding), settings, []):
        writer.write(answered)
        if kind in {"csv", "jsonl"}:
            yield buffer.getvalue()
            buffer.seek(0)
            buffer.truncate()
    writer.close()
    yield buffer.getvalue()
