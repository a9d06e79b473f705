"""`surelabel serve`, `surelabel review` and `surelabel reviews`: a model in a browser, and decisions about texts."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

import surelabel
from surelabel._core.storage import atomic_file
from surelabel.cli.application import app, say, state
from surelabel.cli.options import (
    AdaptSignificance,
    Encoding,
    Id,
    Json,
    ModelFolder,
    Separator,
    Text,
    command,
    opened_review,
)
from surelabel.cli.showing import print_json, print_table, progress_shown
from surelabel.exceptions import CorpusError
from surelabel.tables.texts import InputColumns

if TYPE_CHECKING:
    import surelabel.experiments
    import surelabel.models

Host = Annotated[str, "Address to listen on; one that other machines can reach needs a token."]
Port = Annotated[int, typer.Option(min=0, max=65_535, help="Port; 0 takes a free one.")]
Token = Annotated[
    str | None,
    typer.Option(envvar="SURELABEL_TOKEN", help="Bearer token that clients must send.", show_envvar=True),
]
AllowUnprotected = Annotated[bool, "Let other machines connect without a token."]
Store = Annotated[str, typer.Argument(metavar="STORE", help="File of a review, or postgresql://user@host/database.")]

reviews = typer.Typer(help="Decisions of a review: count them, export them, import them.", no_args_is_help=True)
app.add_typer(reviews, name="reviews")


@command()
def serve(
    folder: ModelFolder,
    *,
    host: Host = "127.0.0.1",
    port: Port = 8000,
    token: Token = None,
    allow_unprotected: AllowUnprotected = False,
    workers: Annotated[int, typer.Option(min=1, help="Processes that serve, with one set of metrics.")] = 1,
    watch: Annotated[
        bool, "Check whether texts are like the calibration texts; /metrics has capital and alarm."
    ] = False,
    reviews: Annotated[
        str | None, "Show a review too, at /review: its file, or postgresql://user@host/name.", "STORE"
    ] = None,
    adapt: Annotated[
        Literal["aci", "dtaci", "window", "nexcp"] | None,
        "Let the level follow the errors that POST /v1/outcomes shows.",
    ] = None,
    significance: AdaptSignificance = None,
    state: Annotated[Path | None, "File to keep answers under an id and their outcomes in."] = None,
) -> None:
    """Serve a model: a page for people at /, and the same for programs under /v1.

    \b
    Examples:
      surelabel serve models/reuters
      surelabel serve models/tickets --reviews june.csv.reviews.sqlite
      SURELABEL_TOKEN=... surelabel serve models/reuters --host 0.0.0.0 --port 8080 --workers 4
      surelabel serve models/tickets --adapt aci --state outcomes.npz
    """
    if significance is not None and adapt is None:
        raise typer.BadParameter("it needs --adapt; requests name their own level", param_hint="--significance")
    more: dict[str, Any] = {} if significance is None else {"adapt_significance": significance}
    plan = None if reviews is None else surelabel.service.ReviewPlan(reviews)
    more |= {"workers": workers, "watch": watch, "review": plan, "adapt": adapt, "state": state}
    surelabel.service.run(folder, host, port, token, allow_unprotected=allow_unprotected, **more)


@command()
def review(
    folder: ModelFolder,
    texts: Annotated[
        Path | None, typer.Argument(help="File of texts to review: CSV, TSV, JSONL, Parquet, XLSX or TXT.")
    ] = None,
    *,
    store: Annotated[
        str | None,
        "Where decisions are kept: a file, or postgresql://user@host/database [default: beside TEXTS, as "
        "TEXTS.reviews.sqlite].",
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
) -> None:
    """Review texts in a browser: the queues Choose, Read, Check and Filed, at /review.

    Every decision is saved at once. Started again, the review continues where it was; texts that are new in TEXTS are
    added.

    \b
    Examples:
      surelabel review models/tickets tickets-of-june.csv --text subject --text body
      surelabel review models/tickets june.csv --store postgresql://reviews@db/tickets --host 0.0.0.0
    """
    if store is None:
        if texts is None:
            raise typer.BadParameter("give TEXTS, or the --store of a review", param_hint="TEXTS")
        store = f"{texts}.reviews.sqlite"
    state.to_resume = "run the same command again; every decision is kept."
    columns = InputColumns(tuple(text or ["text"]), id_column, encoding)
    incoming = surelabel.review.IncomingSettings(significance=significance, check_share=check, columns=columns)
    plan = surelabel.service.ReviewPlan(store, texts, incoming, lease_seconds=60 * lease)
    with progress_shown():
        surelabel.service.run(folder, host, port, token, allow_unprotected=allow_unprotected, review=plan)


@command("summary", reviews)
def summary(store: Store, *, as_json: Json = False) -> None:
    """Say what was decided: texts per queue, time per text, agreement, most corrected labels.

    \b
    Example:
      surelabel reviews summary june.csv.reviews.sqlite
    """
    with opened_review(store) as opened:
        counts, figures = opened.counts(), surelabel.review.closing_figures(opened.decisions())
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


@command("export", reviews)
def export_reviews(
    store: Store,
    out: Annotated[Path, typer.Argument(help="File to write: .csv, .jsonl or .xlsx; .json or .jsonl for other tools.")],
    *,
    tool: Annotated[
        Literal["label-studio", "argilla"] | None,
        typer.Option("--for", help="Write what waits as tasks of Label Studio, or as records of Argilla."),
    ] = None,
    model: Annotated[Path | None, "Folder of the model, for Argilla's scores per label."] = None,
    separator: Separator = ",",
) -> None:
    """Write what was decided: the columns of the file with final_labels, decided_by, queue and changed.

    \b
    Examples:
      surelabel reviews export june.csv.reviews.sqlite decided.xlsx
      surelabel reviews export june.csv.reviews.sqlite tasks.json --for label-studio
    """
    with opened_review(store) as opened:
        if tool is None:
            say(f"{surelabel.review.export(opened, out, separator=separator):,} texts are in {out}.")
            return
        if tool == "label-studio":
            records = surelabel.review.label_studio_tasks(opened)
        elif model is None:
            raise typer.BadParameter("records of Argilla have scores of the model: name it", param_hint="--model")
        else:
            records = list(surelabel.review.argilla_records(opened, surelabel.load_bundle(model)))
    with atomic_file(out) as temporary:
        if out.suffix == ".jsonl":
            content = "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records)
        else:
            content = json.dumps(records, ensure_ascii=False, indent=1) + "\n"
        temporary.write_text(content, encoding="utf-8")
    say(f"{len(records):,} texts that wait are in {out}.")


@command("import", reviews)
def import_reviews(
    store: Store,
    file: Annotated[Path, typer.Argument(exists=True, dir_okay=False, help="JSON export of Label Studio.")],
    *,
    as_json: Json = False,
) -> None:
    """Save the annotations of a JSON export of Label Studio as decisions; importing it again changes nothing.

    \b
    Example:
      surelabel reviews import june.csv.reviews.sqlite project-1.json
    """
    try:
        tasks = json.loads(file.read_text(encoding="utf-8"))
    except ValueError as error:
        raise CorpusError(f"{file.name!r} must be a JSON export of Label Studio. Got an error: {error}.") from error
    if not isinstance(tasks, list):
        raise CorpusError(f"{file.name!r} must hold a list of tasks: choose JSON when you export.")
    with opened_review(store) as opened:
        imported = surelabel.review.from_label_studio(opened, tasks)
    if as_json:
        print_json(dataclasses.asdict(imported))
        return
    say(f"{imported.n_saved:,} decisions are saved; {imported.n_known:,} were there before.")
    for problem in imported.problems:
        say(problem)
