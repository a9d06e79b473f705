"""Scores of a tagger: in a cell of a row, or in a table beside the texts.

The plain form of a text's scores is a list of (label, score) in the order of the file. A score of None means that the
label is listed without a score. A text without scores has None, which differs from an empty list.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from surelabel.exceptions import CorpusError
from surelabel.tables.read import Row, cell_text, parse_json, read_rows

Pairs: TypeAlias = list[tuple[str, float | None]]

_LABEL_KEYS = ("uri", "label", "tag", "name")
_LIST_KEYS = ("results", "suggestions", "scores", "tags")


def as_pairs(cell: Any) -> Pairs | None:
    """Return the scores in a cell; None if it is empty. Raise ValueError (a phrase after the row's place) otherwise.

    A cell is an object of label and score, a list of objects with "label" (or Annif's "uri") and "score", an object
    with such a list under "results", a list of labels, or one of these as JSON text.
    """
    if isinstance(cell, str):
        if not cell.strip():
            return None
        try:
            cell = parse_json(cell)
        except (ValueError, RecursionError) as error:
            raise ValueError(f'must have scores in JSON, such as {{"oil": 0.9}}. Got an error: {error}.') from None
    if cell is None:
        return None
    if isinstance(cell, Mapping):
        key = next((key for key in _LIST_KEYS if isinstance(cell.get(key), list | Mapping)), None)
        if key is not None:
            return as_pairs(cell[key])
        # A column of structs in Parquet has every label in every row; null is a label that is not listed.
        pairs: Pairs = [(str(label), _number(score)) for label, score in cell.items() if score is not None]
    elif isinstance(cell, Sequence):
        pairs = [_pair(item) for item in cell]
    else:
        raise ValueError(f"must have scores as an object or a list. Got {type(cell).__name__}.")  # noqa: TRY004
    return _unique(pairs)


def _pair(item: Any) -> tuple[str, float | None]:
    """Return one label with its score."""
    if isinstance(item, str):
        return item, None
    if isinstance(item, Mapping):
        label = next((item[key] for key in _LABEL_KEYS if item.get(key)), None)
        if isinstance(label, str):
            return label, None if item.get("score") is None else _number(item["score"])
    if isinstance(item, list | tuple) and len(item) == 2 and isinstance(item[0], str):
        return item[0], _number(item[1])
    raise ValueError(f'must list scores as {{"label": ..., "score": ...}}. Got {json.dumps(item, default=str)[:60]}.')


def _number(score: Any) -> float:
    """Return a finite score."""
    try:
        value = float(score) if not isinstance(score, bool) else math.nan
    except (TypeError, ValueError, OverflowError):
        value = math.nan
    if not math.isfinite(value):
        raise ValueError(f"must have finite numbers as scores. Got {score!r:.40}.")
    return value


def _unique(pairs: Pairs) -> Pairs:
    """Raise if a label has two scores."""
    seen: set[str] = set()
    for label, _ in pairs:
        if label in seen:
            raise ValueError(f"must score each label once. Got {label!r:.60} twice.")
        seen.add(label)
    return pairs


def read_scores(
    path: str | os.PathLike[str],
    *,
    id: str = "id",  # noqa: A002
    encoding: str = "utf-8",
) -> dict[str, Pairs]:
    """Read scores by id of the text: JSONL, a long table (id, label, score) or a wide one (id, a column per label).

    In a wide table an empty cell is a label that is not listed.
    """
    scores: dict[str, Pairs] = {}
    n_rows = 0
    for row in read_rows(path, encoding=encoding):
        n_rows += 1
        if row.problem is not None:
            raise CorpusError(f"{row.place} {row.problem}")
        key = next((key for key in (id, "document_id", "id") if row.cells.get(key) not in {None, ""}), None)
        if key is None:
            raise CorpusError(f"{row.place} must have an id in the column {id!r}. It has {list(row.cells)[:8]}.")
        try:
            _add(scores, cell_text(row.cells[key]), row, key)
        except ValueError as error:
            raise CorpusError(f"{row.place} {error}") from error
    if n_rows == 0:
        raise CorpusError(f"{os.fspath(path)!r} must have scores. Got an empty file.")
    return scores


def _add(scores: dict[str, Pairs], identity: str, row: Row, key: str) -> None:
    """Add the scores of one row."""
    cells = {name: cell for name, cell in row.cells.items() if name not in {key, "text"}}
    label = next((name for name in _LABEL_KEYS if name in cells), None)
    if label is not None and "score" in cells:
        if not isinstance(cells[label], str) or not cells[label].strip():
            raise ValueError(f"must have a label in the column {label!r}. Got {cells[label]!r:.40}.")
        one = scores.setdefault(identity, [])
        one.append((cells[label].strip(), None if cells["score"] in {None, ""} else _number(cells["score"])))
        _unique(one)
        return
    if identity in scores:
        raise ValueError(f"must be the only row of its text. Got the id {identity!r:.60} twice.")
    nested = next((name for name in _LIST_KEYS if name in cells), None)
    if nested is not None:
        scores[identity] = as_pairs(cells[nested]) or []
    else:
        scores[identity] = as_pairs({name: cell for name, cell in cells.items() if cell not in {None, ""}}) or []
