"""`surelabel predict`: answers for people on a terminal, for programs in a pipe or a file."""

from __future__ import annotations

import contextlib
import dataclasses
import sys
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

from surelabel._core.wording import terminal_words
from surelabel.cli.application import Debug, Json, Quiet, app, console, errors, say, state
from surelabel.cli.blocks import answer_block
from surelabel.cli.commands_model import ModelFolder
from surelabel.cli.corpus_options import Encoding, Id, Separator, Text
from surelabel.cli.tables import print_json
from surelabel.exceptions import CorpusError, DataWarning

if TYPE_CHECKING:
    from surelabel.predicting import AnswerSettings, Summary, TextBatch, TextList, TextSource

__all__ = ["predict"]

_TERMINAL_BATCH = 20
_PIPE_FORMATS = ("blocks", "jsonl", "csv")


@app.command()
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
    confidence_level: Annotated[str | None, typer.Option(help="The same as 1 - significance, e.g. 0.95.")] = None,
    top: Annotated[int, typer.Option(min=0, max=10_000, help="Top label-sets per text.")] = 5,
    max_open: Annotated[
        int, typer.Option(min=0, help="Open labels to name per text, the most probable first; the rest is counted.")
    ] = 20,
    assurance: Annotated[
        str | None,
        typer.Option(help="Hold the level for this calibration with this probability, e.g. 0.95; sets are larger."),
    ] = None,
    by: Annotated[
        str | None, typer.Option("--by", metavar="COLUMN", help="Column of groups [default: that of calibration].")
    ] = None,
    group: Annotated[
        str | None, typer.Option(help="Group of all texts, if the model is calibrated by groups; instead of --by.")
    ] = None,
    p_value: Annotated[
        str | None, typer.Option(metavar="LABELS", help="Also give the p-value of this label-set, e.g. grain,wheat.")
    ] = None,
    out: Annotated[
        str | None,
        typer.Option("--out", "-o", help="A .jsonl, .csv, .parquet or .xlsx file; a folder for a data set."),
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Continue an interrupted run with the same --out.")] = False,
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
        typer.Option(help="If the names of files do not say it; - is txt."),
    ] = None,
    with_text: Annotated[bool, typer.Option("--with-text", help="Repeat the text in the output.")] = False,
    describe: Annotated[
        bool | None,
        typer.Option(
            "--describe/--no-describe",
            help="Say in a sentence which label-sets stay plausible [default: in blocks, not in files and pipes].",
        ),
    ] = None,
    on_error: Annotated[
        Literal["stop", "skip", "mark"],
        typer.Option(help="What a row that cannot be read leads to: stop; skip and list it; or mark it in the output."),
    ] = "stop",
    raw_cells: Annotated[
        bool,
        typer.Option("--raw-cells", help="Leave cells of csv that begin with = + - @ as they are, without a ' before."),
    ] = False,
    batch_size: Annotated[int, typer.Option(min=1, help="Texts at a time.")] = 512,
    workers: Annotated[
        int | None, typer.Option(min=1, help="Divide the input among so many processes; --out is a folder.")
    ] = None,
    scheduler: Annotated[
        str | None, typer.Option(metavar="ADDRESS", help="The same on the workers of a Dask scheduler.")
    ] = None,
    text: Text = None,
    id_column: Id = None,
    encoding: Encoding = "utf-8",
    separator: Separator = ",",
    as_json: Json = False,
    quiet: Quiet = False,
    debug: Debug = False,
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
    from surelabel.predicting import AnswerSettings, InputColumns, with_groups_of  # noqa: PLC0415

    if workers is not None and scheduler is not None:
        raise typer.BadParameter("Only one of --workers and --scheduler may be given", param_hint="--scheduler")
    is_dataset = workers is not None or scheduler is not None or _is_dataset(source)
    kind = _format(output, out, as_json=as_json, is_dataset=is_dataset)
    separator = "\t" if separator == r"\t" else separator
    columns = InputColumns(tuple(text or ("text",)), id_column, encoding, by)
    if by is not None and group is not None:
        raise typer.BadParameter("Only one of --by and --group may be given", param_hint="--group")
    settings = AnswerSettings(
        significance,
        confidence_level=confidence_level,
        top=top,
        max_open=max_open,
        p_value_of=None if p_value is None else [name.strip() for name in p_value.split(separator) if name.strip()],
        with_text=with_text,
        describe=kind == "blocks" if describe is None else describe,
        columns=with_groups_of(folder, columns) if group is None else columns,
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
    if is_dataset:
        made = _to_folder(folder, source, out, settings, workers=workers or scheduler, resume=resume)
    elif out is not None:
        made = _to_file(folder, source, out, settings, resume=resume)
    else:
        _to_stdout(folder, source, settings, kind or "jsonl")
        return
    _say_what_was_made(made, as_json=as_json)


def _is_text(source: str) -> bool:
    """Whether an input is neither a file nor the name of one, but words."""
    from surelabel.tables.reading import format_of  # noqa: PLC0415

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
    if source == "-":
        raise typer.BadParameter(
            "standard input cannot be read from its beginning again: put the texts into a file", param_hint="--resume"
        )


def _to_folder(
    folder: Path, source: str, out: str | None, settings: AnswerSettings, *, workers: int | str | None, resume: bool
) -> Summary:
    """Answer to a data set."""
    from surelabel.predicting import predict_dataset  # noqa: PLC0415

    assert out is not None
    if source == "-":
        raise typer.BadParameter("standard input cannot be divided among workers", param_hint="INPUT")
    with _bar(source, total=None) as (bar, task):

        def advance(done: int, total: int) -> None:
            if bar is not None:
                bar.update(task, completed=done, total=total, rate=f"{done:,} of {total:,} texts")

        return predict_dataset(folder, source, out, settings, workers=workers, resume=resume, advance=advance)


def _to_file(folder: Path, source: str, out: str, settings: AnswerSettings, *, resume: bool) -> Summary:
    """Answer to one file in another."""
    from surelabel.models import load_bundle  # noqa: PLC0415
    from surelabel.predicting import interrupted, predict_file  # noqa: PLC0415

    if "://" in out:
        raise typer.BadParameter("answers to one file go into a file on this machine", param_hint="--out")
    if not resume and interrupted(out):
        errors.print(f"An interrupted run of {out} is dropped; --resume would have continued it.", markup=False)
    texts = _source(source, settings, lambda: load_bundle(folder).info.seed)
    with _progress(texts) as advance:
        return predict_file(folder, texts, out, settings, resume=resume, advance=advance)


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
        files += f" ({made.n_found} of them were there)" if made.n_found else ""
    say(f"{made.n_rows:,} answers are in {made.out}{files}.")
    if made.n_skipped:
        say(f"{made.n_skipped:,} rows have none; {made.skipped} says why.")
    if made.n_marked:
        say(f"{made.n_marked:,} rows have none; their column 'error' says why.")


def _source(source: str, settings: AnswerSettings, seed: Callable[[], int | None]) -> TextSource | TextList:
    """Return the texts of a file, of standard input, of a known corpus's test part, or one text."""
    from surelabel.predicting import STDIN, TextList, TextSource  # noqa: PLC0415

    if source != STDIN and _is_text(source):
        return TextList("the text", [source])
    if source != STDIN and not Path(source).exists():
        from surelabel import corpora  # noqa: PLC0415

        if source in corpora.available():
            corpus = corpora.load(source, seed=seed() or 0)
            return TextList.of_part(corpus, corpus.part("test"), settings.columns.group)
    return TextSource(source, settings.columns, settings.input_format)


def _to_stdout(folder: Path, source: str, settings: AnswerSettings, kind: str) -> None:
    """Print answers as they come."""
    from surelabel.models import load_bundle  # noqa: PLC0415
    from surelabel.predicting import Answerer, reporting_empty_texts  # noqa: PLC0415

    bundle = load_bundle(folder)
    texts = _source(source, settings, lambda: bundle.info.seed)
    settings.check_model(bundle.predictor, kind)
    answerer = Answerer(bundle, settings)
    printer = _Printer(kind, settings)
    size = min(settings.batch_size, _TERMINAL_BATCH) if kind == "blocks" else settings.batch_size
    shown = contextlib.nullcontext(_ignore) if console.is_terminal or kind == "blocks" else _progress(texts)
    n_read = 0
    with shown as advance, reporting_empty_texts():
        for batch in texts.batches(size, on_error=settings.on_error):
            printer.print(batch, answerer.records(batch, answerer.probabilities(batch)))
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
        from surelabel.predicting import answer_writer  # noqa: PLC0415

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
            self._writer = answer_writer(stream, self._kind, self._settings, fields)
        if records:
            self._writer.write(records)


class _Terminal:
    """Standard output without characters that control a terminal."""

    def write(self, text: str) -> None:
        """Print a text."""
        sys.stdout.write(terminal_words(text))

    def writelines(self, lines: Iterable[str]) -> None:
        """Print some lines."""
        for line in lines:
            self.write(line)

    def flush(self) -> None:
        """Let it be seen."""
        sys.stdout.flush()


def _ignore(batch: TextBatch) -> None:
    """Show no progress."""


@contextlib.contextmanager
def _progress(texts: TextSource | TextList) -> Iterator[Callable[[TextBatch], None]]:
    """Show how far reading has come, texts per second and the time left, on a terminal and unless --quiet."""
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
    """Show a bar on a terminal, unless --quiet; None elsewhere."""
    if state.quiet or not errors.is_terminal:
        yield None, None
        return
    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TextColumn("{task.fields[rate]}"))
    with Progress(*columns, TimeRemainingColumn(), console=errors, transient=True) as bar:
        yield bar, bar.add_task(terminal_words(name), total=total, rate="")
