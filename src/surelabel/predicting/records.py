"""From probabilities to records: what a file, a pipe or a data set holds about one text."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import IO, Any

from surelabel._core.validation import FloatArray
from surelabel.answers import Answer
from surelabel.exceptions import InvalidInputError
from surelabel.labels.sparse import SparseProbabilities
from surelabel.models import Bundle
from surelabel.predicting.settings import AnswerSettings
from surelabel.predicting.sources import TextBatch
from surelabel.tables.writing import TableWriter, open_writer

Record = Mapping[str, Any]
"""What is said about one text, as plain values: row, id, perhaps text, the answer; or row and error."""

_PARQUET_SCHEMA: dict[str, Any] = {
    "row": int,
    "file": str,
    "id": str,
    "text": str,
    "decision": str,
    "reason": str,
    "labels": [str],
    "assign": [str],
    "consider": [str],
    "unfamiliar": bool,
    "confidence": float,
    "credibility": float,
    "significance": str,
    "category": str,
    "size": str,
    "size_lower": float,
    "size_upper": float,
    "n_candidates": str,
    "certain": [str],
    "open": [str],
    "n_more_open": int,
    "probabilities": [{"label": str, "probability": float}],
    "top": [{"labels": [str], "p_value": float}],
    "p_value_of": [str],
    "p_value": float,
    "description": str,
    "error": str,
}


# The fields of an answer, in their order.
_ANSWERED = (
    *("decision", "reason", "labels", "assign", "consider", "unfamiliar", "confidence", "credibility", "significance"),
    *("category", "size", "size_bounds", "n_candidates", "certain", "open", "n_more_open", "probabilities", "top"),
)


class Answerer:
    """Answers to batches of texts; records name the `file` if there are several."""

    def __init__(self, bundle: Bundle, settings: AnswerSettings, file: str | None = None) -> None:
        self._bundle = bundle
        self._settings = settings
        self._of_file = {} if file is None else {"file": file}
        self._index = {name: k for k, name in enumerate(bundle.label_names)}

    def probabilities(self, batch: TextBatch) -> FloatArray | SparseProbabilities | None:
        """Return the probabilities of a batch; None if it has no texts."""
        return self._bundle.predict_proba(batch.texts) if batch.texts else None

    def answer(self, batch: TextBatch) -> list[Record]:
        """Classify a batch; return what there is to say about it."""
        return self.records(batch, self.probabilities(batch))

    def records(self, batch: TextBatch, probabilities: FloatArray | SparseProbabilities | None) -> list[Record]:
        """Return what there is to say about a batch, in the order of the rows."""
        settings = self._settings
        records: list[Record] = [{"row": row, **self._of_file, "error": reason} for row, reason in batch.problems]
        if probabilities is None:
            return records
        groups = self._groups(batch)
        answers = self._bundle.answers(
            batch.texts,
            significance=settings.significance,
            top=settings.top,
            describe=settings.describe,
            probabilities=probabilities,
            groups=groups,
            assurance=settings.assurance,
        )
        if settings.p_value_of is not None:
            asked = [list(settings.p_value_of)] * len(batch)
            p_values = self._bundle.predictor.predict_p(probabilities, asked, groups=groups).tolist()
        for k, answer in enumerate(answers):
            record: dict[str, Any] = {"row": batch.rows[k], **self._of_file}
            if batch.ids is not None and batch.ids[k] is not None:
                record["id"] = batch.ids[k]
            if settings.with_text:
                record["text"] = batch.texts[k]
            record |= self._fields(answer, _of_text(probabilities, k))
            if settings.p_value_of is not None:
                record |= {"p_value_of": list(settings.p_value_of), "p_value": p_values[k]}
            if settings.describe:
                record["description"] = answer.description
            records.append(record)
        return sorted(records, key=lambda record: record["row"])

    def _groups(self, batch: TextBatch) -> Sequence[str] | None:
        """Return the group of each text, None if the model is not calibrated by groups."""
        if self._bundle.groups is None:
            return None
        if self._settings.group is not None:
            return [self._settings.group] * len(batch)
        if batch.groups is None:
            raise InvalidInputError(
                "The model is calibrated by groups, so each text needs its group: name the column that says it with "
                "--by, or one group for all texts with --group."
            )
        return batch.groups

    def _fields(self, answer: Answer, probability_of: Callable[[int], float]) -> dict[str, Any]:
        """Return the fields of an answer: open labels by falling probability, no more than were asked for."""
        by_probability = sorted(answer.open, key=lambda name: (-probability_of(self._index[name]), self._index[name]))
        named = by_probability[: self._settings.max_open]
        shown = (*answer.labels, *answer.certain, *answer.consider, *named)
        values = answer.to_dict() | {
            "open": named,
            "n_more_open": answer.n_more_open + len(answer.open) - len(named),
            "probabilities": {name: float(f"{probability_of(self._index[name]):.4g}") for name in shown},
        }
        return {name: values[name] for name in _ANSWERED if name != "category" or answer.category is not None}


def _of_text(probabilities: FloatArray | SparseProbabilities, row: int) -> Callable[[int], float]:
    """Return a function from a label's index to its probability for one text."""
    if not isinstance(probabilities, SparseProbabilities):
        return lambda label: float(probabilities[row, label])
    own = slice(*probabilities.starts[row : row + 2].tolist())
    listed = dict(zip(probabilities.labels[own].tolist(), probabilities.values[own].tolist(), strict=True))
    return lambda label: listed.get(label, probabilities.unlisted)


class _FlatWriter:
    """Turns records into rows of a table, for CSV and XLSX, or for Parquet."""

    def __init__(self, writer: TableWriter, flatten: Callable[[Record], Record]) -> None:
        self._writer, self._flatten = writer, flatten
        self.close = writer.close

    def write(self, records: Iterable[Record]) -> None:
        self._writer.write([self._flatten(record) for record in records])


def answer_writer(stream: IO[Any], kind: str, settings: AnswerSettings, fields: Sequence[str]) -> TableWriter:
    """Return a writer of records with some fields, onto a stream as `open_writer` takes it."""
    if kind == "parquet":
        return _FlatWriter(open_writer(stream, kind, schema=_PARQUET_SCHEMA), _as_parquet)
    if kind == "jsonl":
        return open_writer(stream, kind)
    headings = [name for name in _PARQUET_SCHEMA if name in {*fields, "size_lower", "size_upper"} and name != "top"]
    headings += [f"top_{k + 1}{end}" for k in range(settings.top) for end in ("", "_p_value")]
    writer = open_writer(stream, kind, headings=headings, raw_cells=settings.raw_cells)
    return _FlatWriter(writer, lambda record: _as_cells(record, settings.separator))


def _as_cells(record: Record, separator: str) -> dict[str, Any]:
    """Join lists; each top label-set has two columns."""
    cells = {
        name: separator.join(value) if isinstance(value, list) else value
        for name, value in record.items()
        if name not in {"top", "size_bounds", "probabilities"}
    }
    if "error" in record:
        return cells
    cells["size_lower"], cells["size_upper"] = record["size_bounds"]
    cells["probabilities"] = separator.join(f"{name}={value}" for name, value in record["probabilities"].items())
    for k, best in enumerate(record["top"], 1):
        cells[f"top_{k}"], cells[f"top_{k}_p_value"] = separator.join(best["labels"]), best["p_value"]
    return cells


def _as_parquet(record: Record) -> dict[str, Any]:
    """Write sizes, which may be past any integer type, as digits beside rounded bounds."""
    row = {name: value for name, value in record.items() if name != "size_bounds"}
    if "error" in record:
        return row
    row["size_lower"], row["size_upper"] = (_as_float(bound) for bound in record["size_bounds"])
    row["size"] = None if record["size"] is None else str(record["size"])
    row["n_candidates"] = str(record["n_candidates"])
    row["probabilities"] = [{"label": name, "probability": value} for name, value in record["probabilities"].items()]
    return row


def _as_float(count: int) -> float:
    """Round a whole number of any size."""
    try:
        return float(count)
    except OverflowError:
        return float("inf")
