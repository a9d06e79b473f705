"""`surelabel predict`: answers for people on a terminal, for programs in a pipe or a file."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import io
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

import surelabel
from surelabel._core.wording import terminal_words
from surelabel.cli.application import console, errors, say, state
from surelabel.cli.blocks import answer_block
from surelabel.cli.options import Encoding, Id, Json, ModelFolder, Separator, Text, as_separator, command
from surelabel.cli.showing import print_json
from surelabel.exceptions import CorpusError, DataWarning
from surelabel.tables.reading import STDIN, format_of
from surelabel.tables.texts import InputColumns

if TYPE_CHECKING:
    import surelabel.models
    import surelabel.predicting
    from surelabel.predicting import AnswerSettings, Summary, TextBatch, TextList, TextSource

_TERMINAL_BATCH = 20
_PIPE_FORMATS = ("blocks", "jsonl", "csv")


@command()
def predict(
    folder: ModelFolder,
    source: Annotated[
        str,
        typer.Argument(
            metavar="INPUT",
            help="A .txt (one text per line), .jsonl, .csv, .tsv, .parquet or .xlsx file; - for standard input; a "
            "folder, pattern or URL of such files; a known corpus (its test part); or one text in quotes.",
        ),
    ],
    *,
    significance: Annotated[
        str | None,
        typer.Option("--significance", "-s", help="Share of texts that may be missed [default: the model's own]."),
    ] = None,
    confidence_level: Annotated[str | None, "The same as 1 - significance, e.g. 0.95."] = None,
    top: Annotated[int, typer.Option(min=0, max=10_000, help="Top label-sets per text.")] = 5,
    max_open: Annotated[
        int, typer.Option(min=0, help="Open labels to name per text, the most probable first; the rest is counted.")
    ] = 20,
    assurance: Annotated[
        str | None, "Hold the level for this calibration with this probability, e.g. 0.95; sets are larger."
    ] = None,
    by: Annotated[str | None, "Column of groups [default: that of calibration].", "COLUMN"] = None,
    group: Annotated[str | None, "Group of all texts, if the model is calibrated by groups; instead of --by."] = None,
    p_value: Annotated[str | None, "Also give the p-value of this label-set, e.g. grain,wheat.", "LABELS"] = None,
    out: Annotated[
        str | None,
        typer.Option("--out", "-o", help="A .jsonl, .csv, .parquet or .xlsx file; a folder for a data set."),
    ] = None,
    resume: Annotated[bool, "Continue an interrupted run with the same --out."] = False,
    output: Annotated[
        Literal["blocks", "jsonl", "csv", "parquet", "xlsx"] | None,
        typer.Option(
            "--format",
            help="[default: by the suffix of --out, parquet in a folder; without --out blocks on a terminal, jsonl in "
            "a pipe].",
        ),
    ] = None,
    input_format: Annotated[
        Literal["txt", "jsonl", "csv", "tsv", "parquet", "xlsx"] | None,
        "Format of the input, if the names of files do not say it; - is txt.",
    ] = None,
    with_text: Annotated[bool, "Repeat the text in the output."] = False,
    describe: Annotated[
        bool | None,
        typer.Option(
            "--describe/--no-describe",
            help="Say in a sentence which label-sets stay plausible [default: in blocks, not in files and pipes].",
        ),
    ] = None,
    on_error: Annotated[
        Literal["stop", "skip", "mark"],
        "What a row that cannot be read leads to: stop; skip and list it; or mark it in the output.",
    ] = "stop",
    raw_cells: Annotated[bool, "Leave cells of csv that begin with = + - @ as they are, without a ' before."] = False,
    batch_size: Annotated[int, typer.Option(min=1, help="Texts at a time.")] = 512,
    workers: Annotated[
        int | None, typer.Option(min=1, help="Number of processes to divide the input among; --out is a folder.")
    ] = None,
    scheduler: Annotated[str | None, "The same on the workers of a Dask scheduler.", "ADDRESS"] = None,
    text: Text = None,
    id_column: Id = None,
    encoding: Encoding = "utf-8",
    separator: Separator = ",",
    as_json: Json = False,
) -> None:
    """Say which label-sets stay plausible for each text.

    Fields: row (in the file) and id, labels (the best guess), confidence, credibility, significance, size (how many
    label-sets stay plausible; size_bounds if only bounds are known) of n_candidates, category (what the best
    guess is compared with, for models calibrated by categories), certain labels, open labels (the most probable first,
    n_more_open of them not named), probabilities of these labels, the top label-sets with their p-values, and the
    description if it is asked for. With --json and --out a summary is printed as JSON. Memory does not grow with the
    input.

    \b
    Examples:
      surelabel predict models/reuters news.txt
      surelabel predict models/reuters "Wheat exports rose." --p-value grain,wheat
      surelabel predict models/tickets tickets.csv --text body --significance 0.1 --out answers.csv
      surelabel predict models/tickets tickets.xlsx --text body --out answers.xlsx --on-error mark
      surelabel predict models/tickets "archive/*.parquet" --out answers --workers 8 --on-error skip
      zcat texts.jsonl.gz | surelabel predict models/reuters - --input-format jsonl --json | jq .certain
    """
    if workers is not None and scheduler is not None:
        raise typer.BadParameter("Only one of --workers and --scheduler may be given", param_hint="--scheduler")
    is_dataset = workers is not None or scheduler is not None or _is_dataset(source)
    kind = _format(output, out, as_json=as_json, is_dataset=is_dataset)
    separator = as_separator(separator)
    columns = InputColumns(tuple(text or ("text",)), id_column, encoding, by)
    if by is not None and group is not None:
        raise typer.BadParameter("Only one of --by and --group may be given", param_hint="--group")
    settings = surelabel.predicting.AnswerSettings(
        significance,
        confidence_level=confidence_level,
        top=top,
        max_open=max_open,
        p_value_of=None if p_value is None else [name.strip() for name in p_value.split(separator) if name.strip()],
        with_text=with_text,
        describe=kind == "blocks" if describe is None else describe,
        columns=surelabel.predicting.with_groups_of(folder, columns) if group is None else columns,
        on_error=on_error,
        separator=separator,
        raw_cells=raw_cells,
        format=None if kind == "blocks" else kind,
        input_format=input_format,
        batch_size=batch_size,
        assurance=assurance,
        group=group,
    )
    if resume:
        _check_resume(out, source)
    if out is None:
        _to_stdout(folder, source, settings, kind or "jsonl")
    elif is_dataset:
        made = _to_folder(folder, source, out, settings, workers=workers or scheduler, resume=resume)
        _say_what_was_made(made, as_json=as_json)
    else:
        _say_what_was_made(_to_file(folder, source, out, settings, resume=resume), as_json=as_json)


def _is_text(source: str) -> bool:
    """Whether an input is neither a file nor the name of one, but words."""
    is_words = len(source.split()) > 1 and not source.startswith(("/", ".", "~"))
    return is_words and (len(source) > 255 or (format_of(source) is None and not Path(source).exists()))


def _is_dataset(source: str) -> bool:
    """Whether an input is not one file, but several."""
    if _is_text(source):
        return False
    place = Path(source)
    return "://" in source or place.is_dir() or (bool(set(source) & set("*?[")) and not place.is_file())


def _format(output: str | None, out: str | None, *, as_json: bool, is_dataset: bool) -> str | None:
    """Return the output's format; None if the name of the output says it."""
    if is_dataset and out is None:
        raise typer.BadParameter("a data set needs a folder for its answers", param_hint="--out")
    if out is not None:
        if output == "blocks":
            raise typer.BadParameter("blocks are for a terminal, and cannot go with --out", param_hint="--format")
        return output
    if output is not None and output not in _PIPE_FORMATS:
        raise typer.BadParameter(f"{output} needs a file: name one with --out", param_hint="--format")
    if as_json and output not in {None, "jsonl"}:
        raise typer.BadParameter(f"--json and --format {output} exclude each other", param_hint="--json")
    return "jsonl" if as_json else output or ("blocks" if console.is_terminal else "jsonl")


def _check_resume(out: str | None, source: str) -> None:
    """Raise if there is nothing that could be resumed."""
    if out is None:
        raise typer.BadParameter("--resume requires --out", param_hint="--resume")
    if source == STDIN:
        raise typer.BadParameter(
            "standard input cannot be read from its beginning again: put the texts into a file", param_hint="--resume"
        )


def _to_folder(
    folder: Path, source: str, out: str, settings: AnswerSettings, *, workers: int | str | None, resume: bool
) -> Summary:
    """Answer to a data set."""
    if source == STDIN:
        raise typer.BadParameter("standard input cannot be divided among workers", param_hint="INPUT")
    with _bar(source, total=None) as update:

        def advance(done: int, total: int) -> None:
            update(completed=done, total=total, rate=f"{done:,} of {total:,} texts")

        return surelabel.predict_dataset(folder, source, out, settings, workers=workers, resume=resume, advance=advance)


def _to_file(folder: Path, source: str, out: str, settings: AnswerSettings, *, resume: bool) -> Summary:
    """Answer to one file in another."""
    if "://" in out:
        raise typer.BadParameter("answers to one file go into a file on this machine", param_hint="--out")
    if not resume and surelabel.predicting.interrupted(out):
        errors.print(f"An interrupted run of {out} is dropped; --resume would have continued it.", markup=False)
    texts = _source(source, settings, lambda: surelabel.load_bundle(folder).info.seed)
    with _progress(texts) as advance:
        return surelabel.predicting.predict_file(folder, texts, out, settings, resume=resume, advance=advance)


def _say_what_was_made(made: Summary, *, as_json: bool) -> None:
    """Say where the answers are, and which rows have none."""
    if as_json:
        print_json({**dataclasses.asdict(made), "notes": list(made.notes)})
        return
    if state.quiet:
        return
    files = ""
    if made.n_partitions > 1 or Path(made.out).is_dir():
        files = f", in {made.n_partitions} file{'s' if made.n_partitions > 1 else ''}"
        files += f" ({made.n_found} of them were there before)" if made.n_found else ""
    say(f"{made.n_rows:,} answers are in {made.out}{files}.")
    if made.n_skipped:
        say(f"{made.n_skipped:,} rows have none; {made.skipped} says why.")
    if made.n_marked:
        say(f"{made.n_marked:,} rows have none; their column 'error' says why.")


def _source(source: str, settings: AnswerSettings, seed: Callable[[], int | None]) -> TextSource | TextList:
    """Return the texts of a file, of standard input, of a known corpus's test part, or one text."""
    predicting = surelabel.predicting
    if _is_text(source):
        return predicting.TextList("the text", [source])
    if not Path(source).exists() and source in surelabel.corpora.available():
        corpus = surelabel.corpora.load(source, seed=seed() or 0)
        return predicting.TextList.of_part(corpus, corpus.part("test"), settings.columns.group)
    return predicting.TextSource(source, settings.columns, settings.input_format)


def _to_stdout(folder: Path, source: str, settings: AnswerSettings, kind: str) -> None:
    """Print answers as they come."""
    bundle = surelabel.load_bundle(folder)
    texts = _source(source, settings, lambda: bundle.info.seed)
    settings.check_model(bundle.predictor, kind)
    answerer = surelabel.predicting.Answerer(bundle, settings)
    printer = _Printer(kind, settings)
    size = min(settings.batch_size, _TERMINAL_BATCH) if kind == "blocks" else settings.batch_size
    shown = _progress(texts, is_shown=not console.is_terminal and kind != "blocks")
    n_read = 0
    with shown as advance, surelabel.predicting.reporting_empty_texts():
        for batch in texts.batches(size, on_error=settings.on_error):
            printer.print(batch, answerer.answer(batch))
            n_read = batch.n_read
            advance(batch)
    if n_read == 0:
        raise CorpusError(f"{texts.name!r} must have at least one text. Got none instead.")
    for note in (*printer.skipped, *texts.findings.messages(texts.name)):
        warnings.warn(note, DataWarning, stacklevel=1)


class _Printer:
    """Print records on standard output; nothing in them controls a terminal."""

    def __init__(self, kind: str, settings: AnswerSettings) -> None:
        self._kind = kind
        self._settings = settings
        self._writer: Any = None
        self.skipped: list[str] = []

    def print(self, batch: TextBatch, records: list[Any]) -> None:
        """Print the records of a batch; keep what is wrong with rows that are skipped."""
        if self._settings.on_error == "skip":
            self.skipped += [record["error"] for record in records if "error" in record]
            records = [record for record in records if "error" not in record]
        if self._kind == "blocks":
            texts = dict(zip(batch.rows, batch.texts, strict=True))
            for record in records:
                say(answer_block(record, texts.get(record["row"], ""), console.width) + "\n")
            return
        if self._writer is None and records:
            fields = [name for record in records for name in record]
            fields += ["error"] if self._settings.on_error == "mark" else []
            stream: Any = _Terminal() if console.is_terminal else sys.stdout
            self._writer = surelabel.predicting.answer_writer(stream, self._kind, self._settings, fields)
        if records:
            self._writer.write(records)


class _Terminal(io.TextIOBase):
    """Standard output without characters that control a terminal."""

    def write(self, text: str) -> int:
        """Print a text."""
        return sys.stdout.write(terminal_words(text))


@contextlib.contextmanager
def _progress(texts: TextSource | TextList, *, is_shown: bool = True) -> Iterator[Callable[[TextBatch], None]]:
    """Show how far reading has come, texts per second and the time left, on a terminal and unless --quiet."""
    with _bar(texts.name, texts.total, is_shown=is_shown) as update:
        start, done = time.monotonic(), 0

        def advance(batch: TextBatch) -> None:
            nonlocal done
            done += len(batch)
            rate = done / max(time.monotonic() - start, 1e-9)
            update(completed=batch.position, rate=f"{done:,} texts, {rate:,.0f}/s")

        yield advance


@contextlib.contextmanager
def _bar(name: str, total: int | None, *, is_shown: bool = True) -> Iterator[Callable[..., None]]:
    """Show a bar on a terminal, unless --quiet; yield what updates it."""
    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TextColumn("{task.fields[rate]}"))
    is_off = state.quiet or not errors.is_terminal or not is_shown
    with Progress(*columns, TimeRemainingColumn(), console=errors, transient=True, disable=is_off) as bar:
        yield functools.partial(bar.update, bar.add_task(terminal_words(name), total=total, rate=""))
