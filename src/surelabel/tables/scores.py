"""Scores of a tagger: in a cell of a row, or in a table beside the texts.

The plain form of a text's scores is a list of (label, score) in the order of the file. A score of None means that the
label is listed without a score. A text without scores has None, which differs from an empty list.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from surelabel.exceptions import CorpusError
from surelabel.tables.read import cell_text, parse_json, read_rows

Pairs: TypeAlias = list[tuple[str, float | None]]

_LABEL_KEYS = ("uri", "label")
_LIST_KEYS = ("results", "scores")


def as_pairs(cell: Any) -> Pairs | None:
    """Return the scores in a cell; None if it is empty. Raise ValueError (a phrase after the row's place) otherwise.

    A cell is an object of label and score, a list of objects with "label" (or Annif's "uri") and "score", an object
    with such a list under "results", a list of labels, or one of these as JSON text.
    """
    if isinstance(cell, str) and cell.strip():
        try:
            cell = parse_json(cell)
        except (ValueError, RecursionError) as error:
            raise ValueError(f'must have scores in JSON, such as {{"oil": 0.9}}. Got an error: {error}.') from None
    if cell is None or cell == "":
        return None
    if isinstance(cell, Mapping):
        nested = [cell[key] for key in _LIST_KEYS if isinstance(cell.get(key), list | Mapping)]
        if nested:
            return as_pairs(nested[0])
        # A column of structs in Parquet has every label in every row; null is a label that is not listed.
        pairs: Pairs = [(str(label), _number(score)) for label, score in cell.items() if score is not None]
    elif isinstance(cell, Sequence) and not isinstance(cell, str):
        pairs = [_pair(item) for item in cell]
    else:
        raise ValueError(f"must have scores as an object or a list. Got {type(cell).__name__}.")  # noqa: TRY004
    return _unique(pairs)


def _pair(item: Any) -> tuple[str, float | None]:
    """Return one label with its score."""
    record = item if isinstance(item, Mapping) else {"label": item}
    label = next((record[key] for key in _LABEL_KEYS if record.get(key)), None)
    if not isinstance(label, str):
        raise ValueError(f'must list scores as {{"label": ..., "score": ...}}. Got {item!r:.60}.')  # noqa: TRY004
    score = record.get("score")
    return label.strip(), None if score is None or score == "" else _number(score)


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


def read_scores(path: str | os.PathLike[str], *, encoding: str = "utf-8") -> dict[str, Pairs]:
    """Read scores by id of the text: JSONL, a long table (id, label, score) or a wide one (id, a column per label).

    In a wide table an empty cell is a label that is not listed. Annif's "document_id" is an id too.
    """
    scores: dict[str, Pairs] = {}
    for row in read_rows(path, encoding=encoding):
        if row.problem is not None:
            raise CorpusError(f"{row.place} {row.problem}")
        cells = {name: cell for name, cell in row.cells.items() if cell not in (None, "") and name != "text"}
        identity = cell_text(cells.pop("document_id", cells.pop("id", None)))
        is_long = "score" in row.cells and any(key in row.cells for key in _LABEL_KEYS)
        try:
            if not identity or (identity in scores and not is_long):
                raise ValueError(f"must have an id of its own in the column 'id'. Got {identity!r:.60}.")
            found = [_pair(cells)] if is_long else as_pairs(cells) or []
            scores[identity] = _unique([*scores.get(identity, []), *found])
        except ValueError as error:
            raise CorpusError(f"{row.place} {error}") from error
    if not scores:
        raise CorpusError(f"{os.fspath(path)!r} must have scores. Got an empty file.")
    return scores
