"""The corpora table: statistics of the corpora at hand, kept in one file, ours beside the paper's."""

from __future__ import annotations

import dataclasses
import json
import logging
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from publish.writing import write
from surelabel import corpora
from surelabel.experiments.settings import CORPORA
from surelabel.experiments.tables import Table, paper_figures

__all__ = ["corpora_table", "record_statistics"]

_log = logging.getLogger(__name__)
_FORMAT = "surelabel-corpora-1"
_COLUMNS = {
    "docs": "texts", "proper_train": "proper training", "calibration": "calibration", "test": "test",
    "validation": "validation", "labels": "labels", "avg_labels": "labels per text", "avg_words": "words per text",
    "max_cardinality": "most labels",
}  # fmt: skip


def _read(path: Path) -> dict[str, dict[str, Any]]:
    """Return the statistics in a file by corpus; none if there is no such file, or one of another kind."""
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
        if document["format"] != _FORMAT:
            raise ValueError(f"it is not of format {_FORMAT!r}")
        counted: dict[str, dict[str, Any]] = document["corpora"]
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, KeyError, TypeError) as error:
        _log.warning("%s is skipped: %s", path, error)
        return {}
    return counted


def record_statistics(names: Iterable[str], path: Path) -> None:
    """Count the corpora that the file has no statistics of yet, and add them to it."""
    counted = _read(path)
    missing = [name for name in dict.fromkeys(names) if name not in counted]
    for name in missing:
        corpus = corpora.load(name, seed=0)
        values = dataclasses.asdict(corpora.statistics(corpus))
        rounded = {key: round(value, 4) if isinstance(value, float) else value for key, value in values.items()}
        counted[name] = {**rounded, "fingerprint": corpus.fingerprint()}
    if missing:
        document = {"format": _FORMAT, "corpora": {name: counted[name] for name in sorted(counted)}}
        write(path, json.dumps(document, indent=1) + "\n")


def _cells(values: dict[str, Any]) -> tuple[str, ...]:
    """Write the figures of one row, a dash if there is none."""
    written = []
    for key in _COLUMNS:
        value = values.get(key)
        written.append("-" if value is None else f"{value:.2f}" if key == "avg_labels" else f"{value:,.0f}")
    return tuple(written)


def corpora_table(path: Path) -> Table:
    """Tabulate the statistics in a file, each corpus followed by the paper's figures if the paper has it."""
    counted, paper = _read(path), paper_figures()
    rows = []
    for name in CORPORA:
        if name in counted:
            rows.append((name, "ours", *_cells(counted[name])))
        if name in counted and name in paper["corpora"]:
            theirs = {**paper["corpora"][name], "max_cardinality": paper["max_cardinality"][name]}
            rows.append((name, "paper", *_cells(theirs)))
    note = (
        "arxiv and debian-czech stand in for the paper's AAPD and CTDC, which are not at hand; they are other texts. "
        "Words per text counts words and punctuation marks."
    )
    return Table("corpora", "Corpora", ("corpus", "source", *_COLUMNS.values()), tuple(rows), note)
