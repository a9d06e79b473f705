"""Answers as JSONL, CSV or Parquet."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import IO, Any, Protocol

from surelabel._core.extras import of_extra
from surelabel.exceptions import InvalidInputError

__all__ = ["OUTPUT_FORMATS", "AnswerWriter", "Record", "check_separator", "open_writer", "output_format", "to_json"]

OUTPUT_FORMATS = ("jsonl", "csv", "parquet")
_SUFFIXES = {".jsonl": "jsonl", ".ndjson": "jsonl", ".csv": "csv", ".parquet": "parquet"}
_PARQUET_COLUMNS = (
    "row",
    "id",
    "text",
    "labels",
    "confidence",
    "credibility",
    "significance",
    "size",
    "size_lower",
    "size_upper",
    "n_candidates",
    "certain",
    "possible",
    "top",
    "n_more_possible",
    "description",
)

Record = Mapping[str, Any]
"""One text's answer as plain values: row, id, perhaps text, and the fields of `Answer.to_dict`."""


class AnswerWriter(Protocol):
    """Takes records until it is closed."""

    def write(self, records: Iterable[Record]) -> None:
        """Write some records."""

    def close(self) -> None:
        """Write what is left."""


def output_format(path: Path) -> str:
    """Return the format of an output file by its suffix."""
    kind = _SUFFIXES.get(path.suffix.lower())
    if kind is None:
        raise InvalidInputError(f"An output file must end in one of {', '.join(_SUFFIXES)}. Got {path.name!r} instead.")
    return kind


def check_separator(label_names: Sequence[str], separator: str) -> None:
    """Raise unless labels that are joined in a cell of csv can be told apart again, as `surelabel train` reads them.

    Examples
    --------
    >>> check_separator(["oil, crude", "trade"], ";")
    >>> check_separator(["oil, crude", "trade"], ",")
    Traceback (most recent call last):
    surelabel.exceptions.InvalidInputError: The label 'oil, crude' has the separator ',' in it, ...
    """
    if not separator:
        raise InvalidInputError("The --separator between labels in a cell of csv must not be empty.")
    for name in label_names:
        if separator in name:
            raise InvalidInputError(
                f"The label {name!r} has the separator {separator!r} in it, so that labels in a cell of csv could not "
                "be told apart. Choose another with --separator, or write .jsonl or .parquet."
            )


def to_json(record: Record) -> str:
    """Return a record as one line of JSON."""
    return json.dumps(record, ensure_ascii=False, separators=(",", ":"))


class _JsonlWriter:
    """A JSON object a line."""

    def __init__(self, stream: IO[str]) -> None:
        self._stream = stream

    def write(self, records: Iterable[Record]) -> None:
        self._stream.writelines(to_json(record) + "\n" for record in records)
        self._stream.flush()

    def close(self) -> None:
        self._stream.flush()


class _CsvWriter:
    """A row a text; labels are joined, each top label-set has two columns."""

    def __init__(self, stream: IO[str], top: int, separator: str) -> None:
        self._stream = stream
        self._writer = csv.writer(stream, lineterminator="\n")
        self._top = top
        self._separator = separator
        self._headings: list[str] | None = None

    def write(self, records: Iterable[Record]) -> None:
        for record in records:
            cells = self._cells(record)
            if self._headings is None:
                self._headings = list(cells)
                self._writer.writerow(self._headings)
            self._writer.writerow([cells.get(heading) for heading in self._headings])
        self._stream.flush()

    def _cells(self, record: Record) -> dict[str, Any]:
        cells: dict[str, Any] = {}
        for name, value in record.items():
            if name == "top":
                continue
            if name == "size_bounds":
                cells["size_lower"], cells["size_upper"] = value
            else:
                cells[name] = self._separator.join(value) if isinstance(value, list) else value
        for k in range(self._top):
            best = record["top"][k] if k < len(record["top"]) else None
            cells[f"top_{k + 1}"] = None if best is None else self._separator.join(best["labels"])
            cells[f"top_{k + 1}_p_value"] = None if best is None else best["p_value"]
        return cells

    def close(self) -> None:
        self._stream.flush()


class _ParquetWriter:
    """Lists as lists; sizes, which may be past any integer type, as digits beside rounded bounds."""

    def __init__(self, stream: IO[bytes]) -> None:
        with of_extra("corpora", "Parquet"):
            import pyarrow  # noqa: PLC0415
            from pyarrow import parquet  # noqa: PLC0415
        self._pyarrow = pyarrow
        labels = pyarrow.list_(pyarrow.string())
        top = pyarrow.list_(pyarrow.struct([("labels", labels), ("p_value", pyarrow.float64())]))
        kinds: dict[str, Any] = {
            "row": pyarrow.int64(),
            "n_more_possible": pyarrow.int64(),
            "confidence": pyarrow.float64(),
            "credibility": pyarrow.float64(),
            "top": top,
        }
        kinds |= {"size_lower": pyarrow.float64(), "size_upper": pyarrow.float64()}
        kinds |= dict.fromkeys(("labels", "certain", "possible"), labels)
        self._schema = pyarrow.schema([(name, kinds.get(name, pyarrow.string())) for name in _PARQUET_COLUMNS])
        self._writer = parquet.ParquetWriter(stream, self._schema, compression="zstd")

    def write(self, records: Iterable[Record]) -> None:
        rows = [self._as_row(record) for record in records]
        if rows:
            self._writer.write_table(self._pyarrow.Table.from_pylist(rows, schema=self._schema))

    @staticmethod
    def _as_row(record: Record) -> dict[str, Any]:
        row = {name: value for name, value in record.items() if name != "size_bounds"}
        row["size_lower"], row["size_upper"] = (float(bound) for bound in record["size_bounds"])
        row["size"] = None if record["size"] is None else str(record["size"])
        row["n_candidates"] = str(record["n_candidates"])
        return row

    def close(self) -> None:
        self._writer.close()


def open_writer(stream: IO[Any], kind: str, *, top: int, separator: str = ",") -> AnswerWriter:
    """Return a writer onto a stream: of text for jsonl and csv, of bytes for parquet.

    Parameters
    ----------
    stream : file object
        Stays open when the writer is closed.
    kind : {"jsonl", "csv", "parquet"}
    top : int
        Label-sets that a record names; the columns of csv.
    separator : str
        Between labels in a cell of csv.
    """
    if kind == "jsonl":
        return _JsonlWriter(stream)
    if kind == "csv":
        return _CsvWriter(stream, top, separator)
    if kind == "parquet":
        return _ParquetWriter(stream)
    raise InvalidInputError(
        f"The format of an output must be one of {', '.join(OUTPUT_FORMATS)}. Got {kind!r} instead."
    )
