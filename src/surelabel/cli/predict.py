"""`surelabel predict`: a decision for each text."""

from __future__ import annotations

import logging
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from surelabel._core.progress import step
from surelabel.cli import options
from surelabel.cli.app import app, console, say, usage_error
from surelabel.cli.show import card, progress
from surelabel.exceptions import CorpusError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from surelabel.models import Bundle
    from surelabel.predicting import PredictSettings
    from surelabel.tables.columns import TextRow

_log = logging.getLogger("surelabel")


@app.command()
def predict(
    model: options.Model,
    file: Annotated[
        str | None,
        options.argument(
            "A .txt (a text per line), .jsonl, .csv, .tsv, .parquet or .xlsx file or its URL; - for standard "
            "input; a folder or pattern of files (with --out FILE: a folder with a text per .txt file); or one text "
            "in quotes.",
            "FILE",
        ),
    ] = None,
    *,
    out: Annotated[
        str | None, options.option("A .jsonl, .csv, .parquet or .xlsx file; a folder for many files.", "--out", "-o")
    ] = None,
    significance: Annotated[
        str | None, options.option("Also give prediction sets that miss this share of texts.", "--significance", "-s")
    ] = None,
    assurance: Annotated[
        str | None, options.option("With --significance: probability that it holds for this very model, e.g. 0.95.")
    ] = None,
    top: Annotated[int | None, options.option("With --significance: answers to list [default: 5].", min=0)] = None,
    text: Annotated[
        list[str] | None,
        options.option("Text column [default: text]. Without FILE: the text itself.", "--text", metavar="COLUMN"),
    ] = None,
    id_column: options.Id = None,
    by: options.By = None,
    group: Annotated[
        str | None, options.option("Group of all texts, if the model is calibrated by groups.", "--group")
    ] = None,
    scores: options.Scores = None,
    encoding: options.Encoding = None,
    input_format: options.InputFormat = None,
    on_error: options.OnError = None,
    with_text: Annotated[bool, options.option("Repeat the text in the output.", "--with-text")] = False,
    output: Annotated[
        Literal["cards", "jsonl", "csv", "parquet", "xlsx"] | None,
        options.option("[default: by the suffix of --out; otherwise cards on a terminal, else jsonl].", "--format"),
    ] = None,
    resume: Annotated[bool, options.option("Skip files of a folder that are done.", "--resume")] = False,
    workers: Annotated[
        str | None, options.option("Processes for many files, or a Dask scheduler.", metavar="N|ADDRESS")
    ] = None,
) -> None:
    """Decide for each text: file it with its tags, choose from a short list, or read it.

    Fields of an answer: id, decision, reason, labels (the best guess), consider and assign (tags), confidence,
    credibility, and with --significance size, size_bounds, certain, open and top.

    \b
    Examples:
      surelabel predict models/tickets "The printer is on fire."
      surelabel predict models/tickets june.csv --text body --out decided.csv
      surelabel predict models/tickets "archive/*.parquet" --out decided --workers 8
      zcat texts.jsonl.gz | surelabel predict models/tickets - --input-format jsonl
    """
    from surelabel import models, predicting
    from surelabel.predicting.file import read_texts
    from surelabel.tables.annif import has_documents
    from surelabel.tables.columns import Columns, TextRow

    source, is_text = _source(file, text)
    is_one = out is not None and predicting.output_kind(out) is not None and has_documents(source)
    several = not is_text and not is_one and _is_several(source)
    if by is not None and group is not None:
        raise usage_error("only one of --by and --group may be given", "--group")
    if is_text:
        unused = {"--id": id_column, "--input-format": input_format, "--out": out, "--scores": scores, "--by": by}
        _refuse({**unused, "--encoding": encoding, "--text": text if file else None}, "one text has no file")
    if not several:
        _refuse({"--workers": workers, "--resume": resume or None}, "it is for a folder or pattern of files")
    if several and out is None:
        raise usage_error("many files need a folder for their answers", "--out")
    if out is not None and output == "cards":
        raise usage_error("cards are for a terminal", "--format")
    if out is None and output in {"parquet", "xlsx"}:
        raise usage_error(f"{output} needs a file: name one with --out", "--format")
    bundle = models.load_bundle(model)
    group_column = by or (None if group is not None else bundle.info.group_column)
    settings = predicting.PredictSettings(
        **options.given(significance=significance, assurance=assurance, top=top, group=group),
        **options.given(encoding=encoding, on_error=on_error, kind=input_format),
        columns=Columns(("text",) if is_text else tuple(text or ("text",)), id_column, group_column, scores),
        format=None if output == "cards" else output,
        with_text=with_text,
    )
    if out is not None:
        _write(bundle, source, out, settings, workers=workers, resume=resume, several=several)
        return
    rows = (
        [TextRow(1, "1", source)] if is_text else read_texts(source, settings.columns, settings.kind, settings.encoding)
    )
    kind = output or ("cards" if console.is_terminal or is_text else "jsonl")
    if not _print(bundle, rows, settings, kind, with_text=with_text or not is_text):
        raise CorpusError(f"{source} has no text that can be answered.")


def _source(file: str | None, text: list[str] | None) -> tuple[str, bool]:
    """Return the file to read, or the text itself, and whether it is that text."""
    from surelabel.tables.read import format_of

    if file is None or not file.strip():
        if file is not None or not text or len(text) > 1:
            raise usage_error("name a file, give one text in quotes, or --text TEXT", "FILE")
        return text[0], True
    is_name = len(file) < 256 and (file == "-" or "://" in file.split()[0] or Path(file).exists())
    if is_name or _is_several(file) or format_of(file) is not None:
        return file, False
    if len(file.split()) > 1 and not file.startswith(("/", ".", "~")):
        return file, True
    raise usage_error(
        f"there is no file {file!r}. For a text of one word, use --text {file}, or - and standard input", "FILE"
    )


def _is_several(source: str) -> bool:
    """Whether a source is a folder or pattern instead of one file."""
    return len(source.split()) == 1 and (Path(source).is_dir() or bool(set(source) & set("*?[")))


def _refuse(given: dict[str, Any], why: str) -> None:
    """Refuse options that would have no effect."""
    for option in options.given(**given):
        raise usage_error(why, option)


def _print(bundle: Bundle, rows: Iterable[TextRow], settings: PredictSettings, kind: str, *, with_text: bool) -> int:
    """Print answers batch by batch, as cards or records; return their number."""
    from surelabel import predicting

    skipped: list[dict[str, Any]] = []
    writer, n_texts = None, 0
    for answered in predicting.answer_rows(bundle, rows, settings, skipped):
        n_texts += len(answered)
        if kind == "cards":
            for row, answer in answered:
                shown = {"id": row.id, **answer.record()}
                say(card(shown, text=row.text if with_text else None, width=console.width) + "\n" * with_text)
        else:
            writer = writer or predicting.AnswerWriter(sys.stdout, kind, settings, has_uris=bundle.uris is not None)
            writer.write(answered)
    if skipped:
        _log.warning("%s rows were skipped. The first: %s", f"{len(skipped):,}", skipped[0]["error"])
    return n_texts


def _write(
    bundle: Bundle,
    source: str,
    out: str,
    settings: PredictSettings,
    *,
    workers: str | None,
    resume: bool,
    several: bool,
) -> None:
    """Write answers into a file, or a folder of files."""
    from surelabel import predicting

    with progress(), step("texts decided") as advance:
        made: Any
        if several:
            n_workers = int(workers) if workers is not None and workers.isdecimal() else workers
            made = predicting.predict_dataset(
                bundle, source, out, settings, workers=n_workers, resume=resume, advance=advance
            )
        else:
            made = predicting.answer_file(bundle, source, out, settings, advance=advance)
    say(f"{made.n_rows:,} answers: {out}")
    if made.n_skipped:
        say(f"{made.n_skipped:,} rows were skipped; see {made.skipped}.")
