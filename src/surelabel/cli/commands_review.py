"""`surelabel review` and `surelabel reviews`: texts in queues, decisions in a database, and what becomes of them."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from surelabel.cli.application import Debug, Json, Quiet, app, say, state
from surelabel.cli.commands_model import ModelFolder
from surelabel.cli.commands_run import AllowUnprotected, Host, Port, Token
from surelabel.cli.corpus_options import Encoding, Id, Separator, Text
from surelabel.cli.showing import progress_shown
from surelabel.cli.tables import print_json, print_table

if TYPE_CHECKING:
    from surelabel.review import ReviewStore

__all__ = ["review", "reviews"]

Store = Annotated[str, typer.Argument(metavar="STORE", help="File of a review, or postgresql://user@host/database.")]

reviews = typer.Typer(help="Decisions of a review: count them, export them, import them.", no_args_is_help=True)
app.add_typer(reviews, name="reviews")


def _opened(store: str) -> ReviewStore:
    """Open a review that is there."""
    from surelabel.review import ReviewStore  # noqa: PLC0415

    if "://" not in store and not Path(store).is_file():
        raise typer.BadParameter(f"there is no review {store!r}; surelabel review makes one", param_hint="STORE")
    return ReviewStore(store)


@app.command()
def review(
    folder: ModelFolder,
    texts: Annotated[
        Path | None, typer.Argument(help="File of texts to review: CSV, TSV, JSONL, Parquet, XLSX or TXT.")
    ] = None,
    *,
    store: Annotated[
        str | None,
        typer.Option(
            help="Where decisions are kept: a file, or postgresql://user@host/database [default: beside TEXTS, as "
            "TEXTS.reviews.sqlite]."
        ),
    ] = None,
    significance: Annotated[
        str, typer.Option("--significance", "-s", help="Share of texts whose labels the short lists may miss.")
    ] = "0.05",
    check: Annotated[
        float, typer.Option(min=0, max=1, help="Share of all texts that is drawn for the blind check.")
    ] = 0.05,
    lease: Annotated[
        float, typer.Option(min=0.1, help="Minutes that a text stays with a reviewer who does nothing.")
    ] = 5.0,
    text: Text = None,
    id_column: Id = None,
    encoding: Encoding = "utf-8",
    host: Host = "127.0.0.1",
    port: Port = 8000,
    token: Token = None,
    allow_unprotected: AllowUnprotected = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Review texts in a browser: the queues Choose, Read, Check and Filed, at /review.

    Every decision is saved at once. Started again, the review continues where it was; texts that are new in TEXTS are
    added.

    \b
    Examples:
      surelabel review models/tickets tickets-of-june.csv --text subject --text body
      surelabel review models/tickets june.csv --store postgresql://reviews@db/tickets --host 0.0.0.0
    """
    from surelabel.review import IncomingSettings  # noqa: PLC0415
    from surelabel.service import ReviewPlan, run  # noqa: PLC0415
    from surelabel.tables.texts import InputColumns  # noqa: PLC0415

    if store is None:
        if texts is None:
            raise typer.BadParameter("give TEXTS, or the --store of a review", param_hint="TEXTS")
        store = f"{texts}.reviews.sqlite"
    state.to_resume = "run the same command again; every decision is kept."
    columns = InputColumns(tuple(text or ["text"]), id_column, encoding)
    incoming = IncomingSettings(significance=significance, check_share=check, columns=columns)
    plan = ReviewPlan(store, texts, incoming, lease_seconds=60 * lease)
    with progress_shown():
        run(folder, host, port, token, allow_unprotected=allow_unprotected, review=plan)


@reviews.command("summary")
def summary(store: Store, *, as_json: Json = False, quiet: Quiet = False, debug: Debug = False) -> None:
    """Say what was decided: texts per queue, time per text, agreement, most corrected labels.

    \b
    Example:
      surelabel reviews summary june.csv.reviews.sqlite
    """
    from surelabel.review import closing_figures  # noqa: PLC0415

    with _opened(store) as opened:
        counts, figures = opened.counts(), closing_figures(opened.decisions())
    if as_json:
        print_json({"queues": {name: dataclasses.asdict(one) for name, one in counts.items()}, **figures.to_dict()})
        return
    rows = [(name, f"{one.waiting:,}", f"{one.decided:,}") for name, one in counts.items()]
    print_table(("queue", "waiting", "decided"), rows)
    if figures.median_seconds is not None:
        say(f"Time per text: {figures.median_seconds:.1f} s (median).")
    if figures.agreement is not None:
        say(f"Agreement with the first suggestion: {figures.agreement:.1%} of {figures.n_offered:,} texts.")
    if figures.corrected:
        rows = [(label, str(added), str(removed)) for label, added, removed in figures.corrected]
        print_table(("label", "added", "removed"), rows, title="Most corrected labels")


@reviews.command("export")
def export_reviews(
    store: Store,
    out: Annotated[Path, typer.Argument(help="File to write: .csv, .jsonl or .xlsx; .json or .jsonl for other tools.")],
    *,
    tool: Annotated[
        Literal["label-studio", "argilla"] | None,
        typer.Option("--for", help="Write what waits as tasks of Label Studio, or as records of Argilla."),
    ] = None,
    model: Annotated[Path | None, typer.Option(help="Folder of the model, for Argilla's scores per label.")] = None,
    separator: Separator = ",",
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Write what was decided: the columns of the file with final_labels, decided_by, queue and changed.

    \b
    Examples:
      surelabel reviews export june.csv.reviews.sqlite decided.xlsx
      surelabel reviews export june.csv.reviews.sqlite tasks.json --for label-studio
    """
    from surelabel._core.storage import atomic_file  # noqa: PLC0415
    from surelabel.review import argilla_records, export, label_studio_tasks  # noqa: PLC0415

    with _opened(store) as opened:
        if tool is None:
            say(f"{export(opened, out, separator=separator):,} texts are in {out}.")
            return
        records: list[Any]
        if tool == "label-studio":
            records = label_studio_tasks(opened)
        else:
            if model is None:
                raise typer.BadParameter("records of Argilla have scores of the model: name it", param_hint="--model")
            from surelabel.models import load_bundle  # noqa: PLC0415

            records = list(argilla_records(opened, load_bundle(model)))
    with atomic_file(out) as temporary:
        if out.suffix == ".jsonl":
            content = "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records)
        else:
            content = json.dumps(records, ensure_ascii=False, indent=1) + "\n"
        temporary.write_text(content, encoding="utf-8")
    say(f"{len(records):,} texts that wait are in {out}.")


@reviews.command("import")
def import_reviews(
    store: Store,
    file: Annotated[Path, typer.Argument(exists=True, dir_okay=False, help="JSON export of Label Studio.")],
    *,
    as_json: Json = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Save the annotations of a JSON export of Label Studio as decisions; read again, it changes nothing.

    \b
    Example:
      surelabel reviews import june.csv.reviews.sqlite project-1.json
    """
    from surelabel.exceptions import CorpusError  # noqa: PLC0415
    from surelabel.review import from_label_studio  # noqa: PLC0415

    try:
        tasks = json.loads(file.read_text(encoding="utf-8"))
    except ValueError as error:
        raise CorpusError(f"{file.name!r} must be a JSON export of Label Studio. Got an error: {error}.") from error
    if not isinstance(tasks, list):
        raise CorpusError(f"{file.name!r} must hold a list of tasks: choose JSON when you export.")
    with _opened(store) as opened:
        imported = from_label_studio(opened, tasks)
    if as_json:
        print_json(dataclasses.asdict(imported))
        return
    say(f"{imported.n_saved:,} decisions are saved; {imported.n_known:,} were there before.")
    for problem in imported.problems:
        say(problem)
