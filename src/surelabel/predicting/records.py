"""Answers as records, and records as the rows of a table."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import IO, Any

from surelabel.answers import Answer
from surelabel.predicting.settings import PredictSettings
from surelabel.tables.columns import TextRow
from surelabel.tables.write import open_writer

_ANSWER: dict[str, Any] = {
    "decision": str,
    "reason": str,
    "labels": [str],
    "consider": [str],
    "assign": [str],
    "confidence": float,
    "credibility": float,
}
_SET: dict[str, Any] = {
    "significance": str,
    "size": str,
    "size_lower": str,
    "size_upper": str,
    "certain": [str],
    "open": [str],
}
_TOP: dict[str, Any] = {"top": [{"labels": [str], "p_value": float}]}


class AnswerWriter:
    """Writes answers onto a stream, which stays open: as JSONL, or as a table with a row per text.

    `has_uris`: a table has a column of URIs, for a model with a vocabulary.
    """

    def __init__(self, stream: IO[Any], kind: str, settings: PredictSettings, *, has_uris: bool = False) -> None:
        self._kind, self._settings = kind, settings
        self._writer = open_writer(stream, kind, _columns(kind, settings, has_uris=has_uris))

    def write(self, answered: Iterable[tuple[TextRow, Answer]]) -> None:
        """Write texts with their answers."""
        records = [record(row, answer, self._settings) for row, answer in answered]
        is_plain = self._kind == "jsonl"
        self._writer.write(records if is_plain else [_flat(each, self._kind, self._settings) for each in records])

    def close(self) -> None:
        """Complete the file."""
        self._writer.close()


def record(row: TextRow, answer: Answer, settings: PredictSettings) -> dict[str, Any]:
    """Return what is written about one text: its row and id, perhaps the text, and the answer."""
    text = {"text": row.text} if settings.with_text else {}
    return {"row": row.number, "id": row.id, **text, **answer.record()}


def _columns(kind: str, settings: PredictSettings, *, has_uris: bool) -> dict[str, Any]:
    """Return the columns of a table with their types, which follow from the settings and from the model alone."""
    columns: dict[str, Any] = {"row": int, "id": str, **({"text": str} if settings.with_text else {}), **_ANSWER}
    if has_uris:
        columns |= {"uris": [str]}
    if settings.has_sets:
        columns |= _SET
        columns |= _TOP if kind == "parquet" else dict.fromkeys(_top_names(settings.top))
    return columns


def _top_names(top: int) -> list[str]:
    """Return the names of two columns for each of the best label-sets."""
    return [name for k in range(1, top + 1) for name in (f"top_{k}", f"top_{k}_p_value")]


def _flat(record: Mapping[str, Any], kind: str, settings: PredictSettings) -> dict[str, Any]:
    """Return a record as a row: counts as digits, and in CSV, TSV and XLSX lists joined and a column per label-set."""
    row = {name: value for name, value in record.items() if name not in {"size_bounds", "top"}}
    if "size_bounds" in record:
        sizes = zip(("size", "size_lower", "size_upper"), (record["size"], *record["size_bounds"]), strict=True)
        row |= {name: None if size is None else str(size) for name, size in sizes}
    if kind == "parquet":
        return {**row, "top": record["top"]} if "top" in record else row
    best = [cell for each in record.get("top", ()) for cell in (each["labels"], each["p_value"])]
    row |= zip(_top_names(settings.top), best, strict=False)
    return {name: settings.separator.join(cell) if isinstance(cell, list) else cell for name, cell in row.items()}
