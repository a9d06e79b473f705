"""Answers as records, and records as the rows of a table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from surelabel.answers import Answer
from surelabel.predicting.settings import PredictSettings
from surelabel.tables.columns import TextRow

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


def record(row: TextRow, answer: Answer, settings: PredictSettings) -> dict[str, Any]:
    """Return what is written about one text: its row and id, perhaps the text, and the answer."""
    text = {"text": row.text} if settings.with_text else {}
    return {"row": row.number, "id": row.id, **text, **answer.record()}


def columns_of(kind: str, settings: PredictSettings) -> dict[str, Any]:
    """Return the columns of a table of records with their types, which follow from the settings alone."""
    columns: dict[str, Any] = {"row": int, "id": str}
    if settings.with_text:
        columns["text"] = str
    columns |= _ANSWER
    if settings.has_sets:
        columns |= _SET
        columns |= _TOP if kind == "parquet" else _top_columns(settings.top)
    if kind != "parquet":
        columns = {name: str if isinstance(cell, list) else cell for name, cell in columns.items()}
    return columns


def _top_columns(top: int) -> dict[str, Any]:
    """Return two columns for each of the best label-sets."""
    return {name: cell for k in range(1, top + 1) for name, cell in ((f"top_{k}", str), (f"top_{k}_p_value", float))}


def flatten(record: Mapping[str, Any], kind: str, settings: PredictSettings) -> dict[str, Any]:
    """Return a record as a row: counts as digits, and in CSV, TSV and XLSX lists joined and a column per label-set."""
    row = {name: value for name, value in record.items() if name not in {"size_bounds", "top"}}
    if "size_bounds" in record:
        lower, upper = record["size_bounds"]
        row |= {"size_lower": _digits(lower), "size_upper": _digits(upper), "size": _digits(record["size"])}
    if kind == "parquet":
        return {**row, "top": record["top"]} if "top" in record else row
    for k, best in enumerate(record.get("top", ()), 1):
        row |= {f"top_{k}": best["labels"], f"top_{k}_p_value": best["p_value"]}
    return {name: settings.separator.join(cell) if isinstance(cell, list) else cell for name, cell in row.items()}


def _digits(count: int | str | None) -> str | None:
    return None if count is None else str(count)
