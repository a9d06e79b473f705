"""`surelabel predict`: answers for people on a terminal, for programs in a pipe or a file."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

from surelabel._core.wording import bounds_words, count_words
from surelabel.cli.application import Debug, Json, Quiet, app, console, errors, say, state
from surelabel.cli.commands_model import ModelFolder
from surelabel.cli.corpus_options import Encoding, Id, Separator, Text
from surelabel.cli.tables import print_table

if TYPE_CHECKING:
    from surelabel.models import Bundle
    from surelabel.predicting import AnswerSettings, InputColumns, PartSource, TextBatch, TextSource

__all__ = ["predict"]

_TERMINAL_BATCH = 20
_EXCERPT = 60
# Possible labels in a cell of the table.
_MOST_SHOWN = 100


@app.command()
def predict(
    folder: ModelFolder,
    source: Annotated[
        str,
        typer.Argument(
            metavar="INPUT",
            help="A .txt (a text a line), .jsonl, .csv, .tsv or .parquet file, a known corpus (its test part), or -; "
            "a folder, pattern or URL of .jsonl and .parquet files.",
        ),
    ],
    *,
    significance: Annotated[
        str | None, typer.Option("--significance", "-s", help="Share of texts that may be missed [default: 0.05].")
    ] = None,
    confidence_level: Annotated[str | None, typer.Option(help="The same as 1 - significance, e.g. 0.95.")] = None,
    top: Annotated[int, typer.Option(min=0, max=10_000, help="Plausible label-sets to name, best first.")] = 5,
    out: Annotated[
        str | None,
        typer.Option("--out", "-o", help="A .jsonl, .csv or .parquet file; whole or not there. A folder for many."),
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with an interrupted run of the same --out.")] = False,
    output: Annotated[
        Literal["table", "jsonl", "csv"] | None,
        typer.Option("--format", help="Without --out [default: table on a terminal, jsonl in a pipe]."),
    ] = None,
    input_format: Annotated[
        Literal["txt", "jsonl", "csv", "tsv", "parquet"] | None,
        typer.Option(help="Where the file's name does not say; - is txt."),
    ] = None,
    with_text: Annotated[bool, typer.Option("--with-text", help="Repeat the text in the output.")] = False,
    describe: Annotated[
        bool | None,
        typer.Option(
            "--describe/--no-describe",
            help="Say in a sentence which label-sets stay plausible [default: in the table, not in files and pipes].",
        ),
    ] = None,
    batch_size: Annotated[int, typer.Option(min=1, help="Texts at a time.")] = 256,
    workers: Annotated[
        int | None, typer.Option(min=1, help="Divide the input into parts for so many processes; --out is a folder.")
    ] = None,
    scheduler: Annotated[
        str | None, typer.Option(metavar="ADDRESS", help="The same on the workers of a Dask scheduler.")
    ] = None,
    on_error: Annotated[
        Literal["stop", "skip"], typer.Option(help="Of many files: what a row that cannot be read leads to.")
    ] = "stop",
    text: Text = None,
    id_column: Id = None,
    encoding: Encoding = "utf-8",
    separator: Separator = ",",
    as_json: Json = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Say which label-sets stay plausible for each text.

    Fields: row, id, labels (the best guess), confidence, credibility, significance, size (how many label-sets stay
    plausible; size_bounds where only bounds can be had) of n_candidates, certain and possible labels (of very many
    labels n_more_possible go unnamed), the top label-sets with their p-values, and their description where it is asked
    for. Memory does not grow with the input.

    \b
    Examples:
      surelabel predict models/reuters news.txt
      surelabel predict models/tickets tickets.csv --text body --significance 0.1 --out answers.csv
      surelabel predict models/tickets tickets.csv --text body --out answers.csv --resume
      surelabel predict models/tickets "archive/*.parquet" --out answers --workers 8 --on-error skip
      zcat texts.jsonl.gz | surelabel predict models/reuters - --input-format jsonl --json | jq .certain
    """
    from surelabel.models import load_bundle  # noqa: PLC0415
    from surelabel.predicting import InputColumns, predict_file  # noqa: PLC0415

    kind = "jsonl" if as_json else output or ("table" if console.is_terminal else "jsonl")
    settings = _settings(
        significance,
        confidence_level,
        top=top,
        with_text=with_text,
        describe=out is None and kind == "table" if describe is None else describe,
    )
    columns = InputColumns(tuple(text or ("text",)), id_column, encoding)
    if workers or scheduler or _is_dataset(source):
        given = {"workers": workers, "scheduler": scheduler, "resume": resume, "on_error": on_error}
        _predict_dataset(folder, source, out, settings, columns=columns, **given)
        return
    target = None if out is None else Path(out)
    _check_resume(resume=resume, out=target, source=source)
    bundle = load_bundle(folder)
    texts = _source(source, columns, input_format, seed=bundle.info.seed or 0)
    if target is None:
        _to_stdout(bundle, texts, settings, kind, batch_size=batch_size, separator=separator)
        return
    with _progress(texts) as advance:
        n_rows = predict_file(
            bundle,
            texts,
            target,
            settings,
            resume=resume,
            batch_size=batch_size,
            separator=separator,
            advance=advance,
        )
    if not state.quiet:
        say(f"{n_rows:,} answers are in {target}.")


def _is_dataset(source: str) -> bool:
    """Whether an input is not one file, but several."""
    return "://" in source or Path(source).is_dir() or (any(mark in source for mark in "*?[") and source != "-")


def _predict_dataset(
    folder: Path, source: str, out: str | None, settings: AnswerSettings, *, columns: InputColumns, **options: Any
) -> None:
    """Answer to a data set, and say what was made."""
    from surelabel.predicting import predict_dataset  # noqa: PLC0415

    if out is None:
        raise typer.BadParameter("a data set needs a folder for its answers", param_hint="--out")
    with _bar(source, total=None) as (bar, task):

        def advance(done: int, total: int) -> None:
            if bar is not None:
                bar.update(task, completed=done, total=total, rate=f"{done:,} of {total:,} texts")

        made = predict_dataset(
            folder,
            source,
            out,
            significance=settings.significance,
            top=settings.top,
            with_text=settings.with_text,
            describe=settings.describe,
            columns=columns,
            advance=advance,
            **options,
        )
    if not state.quiet:
        found = f" ({made.n_found} of them were there)" if made.n_found else ""
        say(f"{made.n_rows:,} answers are in {made.out}, in {made.n_partitions} files{found}.")
        if made.n_skipped:
            say(f"{made.n_skipped:,} rows have none; {made.skipped} says why.")


def _check_resume(*, resume: bool, out: Path | None, source: str) -> None:
    """Raise where there is nothing that a run could go on with."""
    if resume and out is None:
        raise typer.BadParameter("it goes with --out: only a file can be gone on with", param_hint="--resume")
    if resume and source == "-":
        raise typer.BadParameter(
            "standard input cannot be read from its beginning again: put the texts into a file", param_hint="--resume"
        )
    if not resume and out is not None and out.with_name(f"{out.name}.part.json").is_file():
        errors.print(f"An interrupted run of {out} is dropped; --resume would have gone on with it.", markup=False)


def _settings(
    significance: str | None, confidence_level: str | None, *, top: int, with_text: bool, describe: bool
) -> AnswerSettings:
    """Return what is asked about each text; the level is checked before anything is loaded."""
    from surelabel.answers import exact_level  # noqa: PLC0415
    from surelabel.predicting import AnswerSettings  # noqa: PLC0415

    if significance is None and confidence_level is None:
        significance = "0.05"
    return AnswerSettings(exact_level(significance, confidence_level), top, with_text, describe)


def _source(source: str, columns: InputColumns, input_format: str | None, *, seed: int) -> TextSource | PartSource:
    """Return the texts of a file, of standard input, or of a known corpus's test part."""
    from surelabel.predicting import STDIN, PartSource, TextSource  # noqa: PLC0415

    if source != STDIN and not Path(source).exists():
        from surelabel import corpora  # noqa: PLC0415

        if source in corpora.available():
            corpus = corpora.load(source, seed=seed)
            return PartSource(corpus, corpus.part("test"))
    return TextSource(source, columns, input_format)


def _to_stdout(
    bundle: Bundle,
    texts: TextSource | PartSource,
    settings: AnswerSettings,
    kind: str,
    *,
    batch_size: int,
    separator: str,
) -> None:
    """Print answers as they come."""
    from surelabel.exceptions import CorpusError  # noqa: PLC0415
    from surelabel.predicting import check_separator, open_writer, predict_batches  # noqa: PLC0415

    if kind == "csv":
        check_separator(bundle.label_names, separator)
    n_rows = 0
    writer = None if kind == "table" else open_writer(sys.stdout, kind, top=settings.top, separator=separator)
    size = min(batch_size, _TERMINAL_BATCH) if writer is None else batch_size
    shown = _progress(texts) if writer is not None and not console.is_terminal else contextlib.nullcontext(_ignore)
    with shown as advance:
        for batch in texts.batches(size):
            records = next(predict_batches(bundle, [batch], settings))
            if writer is None:
                _print_answers(batch, records)
            else:
                writer.write(records)
            n_rows += len(batch)
            advance(batch)
    if n_rows == 0:
        raise CorpusError(f"{texts.name!r} must have one text at least. Got none instead.")


def _ignore(batch: TextBatch) -> None:
    """Show no progress."""


def _print_answers(batch: TextBatch, records: list[Any]) -> None:
    """Print a table of some answers."""
    rows = []
    described = "description" in records[0]
    for text, record in zip(batch.texts, records, strict=True):
        members = "\n".join(f"{each['p_value']:.3f} {', '.join(each['labels']) or '(none)'}" for each in record["top"])
        rows.append(
            (
                record.get("id", record["row"]),
                _excerpt(text),
                ", ".join(record["labels"]) or "(none)",
                f"{record['confidence']:.3f}",
                f"{record['credibility']:.3f}",
                bounds_words(*record["size_bounds"]),
                ", ".join(record["certain"]) or "-",
                _labels(record["possible"], record["n_more_possible"]),
                members,
                *([record["description"] or "-"] if described else []),
            )
        )
    headings = ["id", "text", "best guess", "conf.", "cred.", "plausible", "certain", "possible", "p-value, label-set"]
    headings += ["in words"] if described else []
    significance, n_candidates = records[0]["significance"], count_words(records[0]["n_candidates"])
    print_table(headings, rows, title=f"Significance {significance}; plausible of {n_candidates} label-sets")


def _labels(names: list[str], n_more: int) -> str:
    """Return labels as a cell of the table has them: of very many the first, and how many more there are."""
    n_more += max(0, len(names) - _MOST_SHOWN)
    shown = ", ".join(names[:_MOST_SHOWN])
    return f"{shown or '-'}{f' and {n_more:,} more' if n_more else ''}"


def _excerpt(text: str) -> str:
    """Return the beginning of a text on one line, without control characters."""
    line = " ".join("".join(mark if mark.isprintable() else " " for mark in text[: 4 * _EXCERPT]).split())
    return line if len(line) <= _EXCERPT else f"{line[: _EXCERPT - 1]}…"


@contextlib.contextmanager
def _progress(texts: TextSource | PartSource) -> Iterator[Callable[[TextBatch], None]]:
    """Show how far reading has come, texts a second and the time left, on a terminal and unless told to be quiet."""
    with _bar(texts.name, total=texts.total) as (bar, task):
        if bar is None:
            yield _ignore
            return
        start, done = time.monotonic(), 0

        def advance(batch: TextBatch) -> None:
            nonlocal done
            done += len(batch)
            rate = done / max(time.monotonic() - start, 1e-9)
            bar.update(task, completed=batch.position, rate=f"{done:,} texts, {rate:,.0f}/s")

        yield advance


@contextlib.contextmanager
def _bar(name: str, total: int | None) -> Iterator[tuple[Progress | None, Any]]:
    """Show a bar on a terminal, unless told to be quiet; None elsewhere."""
    if state.quiet or not errors.is_terminal:
        yield None, None
        return
    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TextColumn("{task.fields[rate]}"))
    with Progress(*columns, TimeRemainingColumn(), console=errors, transient=True) as bar:
        yield bar, bar.add_task(name, total=total, rate="")
