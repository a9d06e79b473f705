"""Answers to a stream of texts."""

from __future__ import annotations

import contextlib
import dataclasses
import logging
import os
from collections.abc import Callable, Generator, Iterable, Iterator
from pathlib import Path
from typing import Any

from surelabel._core.validation import FloatArray
from surelabel.answers import answer_probabilities
from surelabel.exceptions import CorpusError
from surelabel.labels.sparse import SparseProbabilities
from surelabel.models import Bundle
from surelabel.predicting.overlapping import ahead
from surelabel.predicting.reading import PartSource, TextBatch, TextSource
from surelabel.predicting.resuming import ResumableOutput
from surelabel.predicting.writing import Record, check_separator, output_format

__all__ = ["AnswerSettings", "predict_batches", "predict_file"]

_log = logging.getLogger(__name__)


@dataclasses.dataclass(frozen=True)
class AnswerSettings:
    """What is asked about each text.

    Parameters
    ----------
    significance : str
        Share of texts whose true label-set may be missed, as typed.
    top : int
        Most plausible label-sets to name.
    with_text : bool
        Whether a record repeats the text.
    describe : bool
        Whether a record has the prediction set in a sentence, as `description`.
    """

    significance: str = "0.05"
    top: int = 5
    with_text: bool = False
    describe: bool = False


def predict_batches(
    bundle: Bundle, batches: Iterable[TextBatch], settings: AnswerSettings | None = None
) -> Iterator[list[Record]]:
    """Yield the answers to each batch, as plain values.

    A record has the text's `row` (from 1), its `id` where it has one, and the fields of `Answer.to_dict`, the
    description where it is asked for. The answers do not depend on how texts are divided into batches (for bert, but
    for rounding in the classifier).
    """
    settings = settings or AnswerSettings()
    for batch in batches:
        yield _answer(bundle, batch, bundle.predict_proba(batch.texts), settings)


def _answer(
    bundle: Bundle, batch: TextBatch, probabilities: FloatArray | SparseProbabilities, settings: AnswerSettings
) -> list[Record]:
    """Return the answers to a batch whose probabilities are known."""
    answers = answer_probabilities(
        bundle.predictor,
        probabilities,
        significance=settings.significance,
        top=settings.top,
        describe=settings.describe,
    )
    records: list[Record] = []
    for k, answer in enumerate(answers):
        record: dict[str, Any] = {"row": batch.first_row + k + 1}
        identity = None if batch.ids is None else batch.ids[k]
        if identity is not None:
            record["id"] = identity
        if settings.with_text:
            record["text"] = batch.texts[k]
        record |= answer.to_dict()
        if not settings.describe:
            del record["description"]
        records.append(record)
    return records


def _answer_overlapping(
    bundle: Bundle, batches: Iterable[TextBatch], settings: AnswerSettings
) -> Generator[tuple[TextBatch, list[Record]]]:
    """Yield batches and their answers in order; the classifier is a few batches ahead of the conformal step."""
    classified = ahead((batch, bundle.predict_proba(batch.texts)) for batch in batches)
    return ahead((batch, _answer(bundle, batch, probabilities, settings)) for batch, probabilities in classified)


def predict_file(
    bundle: Bundle,
    source: TextSource | PartSource,
    target: str | os.PathLike[str],
    settings: AnswerSettings | None = None,
    *,
    resume: bool = False,
    batch_size: int = 256,
    separator: str = ",",
    advance: Callable[[TextBatch], None] | None = None,
) -> int:
    """Answer to all texts of a file in another file, which is whole or not there; return how many rows it has.

    Reading and classifying, the conformal step, and writing overlap: each is at most a few batches ahead of the next.

    Parameters
    ----------
    bundle : Bundle
    source : TextSource or PartSource
        A file, not standard input, where the run is to go on after an interruption.
    target : path
        Its suffix says the format: .jsonl, .csv or .parquet.
    settings : AnswerSettings, optional
    resume : bool
        Go on with what an interrupted run of the same texts, model and settings left.
    batch_size : int
    separator : str
        Between labels in a cell of csv; in no label's name.
    advance : callable, optional
        Called with each batch when it is written.
    """
    settings = settings or AnswerSettings()
    if output_format(Path(target)) == "csv":
        check_separator(bundle.label_names, separator)
    identity = {
        "model": _identity(bundle),
        "input": None if source.is_stdin else source.identity(),
        "settings": dataclasses.asdict(settings),
    }
    output = ResumableOutput(target, identity, resume=resume, top=settings.top, separator=separator)
    with output:
        if output.n_rows:
            _log.info("going on after %d texts", output.n_rows)
        batches: Iterable[TextBatch] = source.batches(batch_size, skip=output.n_rows)
        with contextlib.closing(_answer_overlapping(bundle, batches, settings)) as answered:
            for batch, records in answered:
                output.write(records)
                if advance is not None:
                    advance(batch)
        if output.n_rows == 0:
            raise CorpusError(f"{source.name!r} must have one text at least. Got none instead.")
    return output.n_rows


def _identity(bundle: Bundle) -> dict[str, Any]:
    """Return what a bundle's answers depend on."""
    info = bundle.info
    totals = bundle.predictor.calibration_.totals
    return {
        "name": info.name,
        "fingerprint": info.fingerprint,
        "settings": info.to_dict()["settings"],
        "measure": info.measure,
        "calibration": [len(totals), float(totals[0]), float(totals.sum())],
    }
