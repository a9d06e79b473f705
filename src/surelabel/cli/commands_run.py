"""`surelabel reproduce` and `surelabel serve`."""

from __future__ import annotations

import logging
import sys
from pathlib import Path
from typing import Annotated, Any, Literal

import typer
from rich.markdown import Markdown

from surelabel.cli.application import Debug, Quiet, app, console, say
from surelabel.cli.commands_model import ModelFolder


@app.command()
def reproduce(
    *,
    corpus: Annotated[list[str] | None, typer.Option(help="A corpus; repeat the option for several.")] = None,
    classifier: Annotated[list[str] | None, typer.Option(help="linear, randinit, word2vec or bert.")] = None,
    measure: Annotated[list[str] | None, typer.Option(help="L2, L4, L8 or LogLoss; all of them by default.")] = None,
    seeds: Annotated[int, typer.Option(min=1, help="Number of runs: their seeds are 0, 1, 2, ...")] = 1,
    runs: Annotated[Path, typer.Option(help="Folder of checkpoints, probabilities and reports.")] = Path("runs"),
    results: Annotated[Path, typer.Option(help="Folder of result files and tables.")] = Path("results"),
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Run the paper's experiments: train, calibrate, evaluate, tabulate. Finished runs are skipped, others resumed.

    \b
    Example:
      surelabel reproduce --corpus reuters20 --classifier linear
    """
    from surelabel.experiments import MEASURES, Folders, planned, run  # noqa: PLC0415
    from surelabel.experiments.reports import report_run  # noqa: PLC0415
    from surelabel.experiments.tables import all_tables, load_results, write_tables  # noqa: PLC0415

    unknown = sorted(set(measure or ()) - set(MEASURES))
    if unknown:
        raise typer.BadParameter(
            f"expected some of {', '.join(MEASURES)}; got {', '.join(unknown)}", param_hint="--measure"
        )
    chosen = {name: MEASURES[name] for name in measure or MEASURES}
    folders = Folders(runs, results / "runs")
    plan = planned(corpus or ["reuters20"], classifier or ["linear"], range(seeds))
    for number, settings in enumerate(plan, start=1):
        logging.getLogger(__name__).info("run %d of %d: %s", number, len(plan), settings.name)
        run(settings, folders, chosen)
        if settings.conformal:
            say(f"Report: {report_run(settings, folders)}")
    tables = all_tables(load_results(folders.results))
    write_tables(tables, results / "tables")
    if sys.stdout.isatty():
        for table in tables:
            console.print(Markdown(f"## {table.title}\n\n{table.to_markdown()}"))
    say(f"The tables are in {results / 'tables'}.")


Host = Annotated[str, typer.Option(help="Address to listen on; one that other machines can reach needs a token.")]
Port = Annotated[int, typer.Option(min=0, max=65_535, help="Port; 0 takes a free one.")]
Token = Annotated[
    str | None,
    typer.Option(envvar="SURELABEL_TOKEN", help="Bearer token that clients must send.", show_envvar=True),
]
AllowUnprotected = Annotated[
    bool, typer.Option("--allow-unprotected", help="Let other machines connect without a token.")
]


@app.command()
def serve(
    folder: ModelFolder,
    *,
    host: Host = "127.0.0.1",
    port: Port = 8000,
    token: Token = None,
    allow_unprotected: AllowUnprotected = False,
    workers: Annotated[int, typer.Option(min=1, help="Processes that serve, with one set of metrics.")] = 1,
    watch: Annotated[
        bool,
        typer.Option(
            "--watch", help="Check whether texts are like the calibration texts; /metrics has capital and alarm."
        ),
    ] = False,
    reviews: Annotated[
        str | None,
        typer.Option(metavar="STORE", help="Show a review too, at /review: its file, or postgresql://user@host/name."),
    ] = None,
    adapt: Annotated[
        Literal["aci", "dtaci", "window", "nexcp"] | None,
        typer.Option(help="Let the level follow the errors that POST /v1/outcomes shows."),
    ] = None,
    significance: Annotated[
        str | None, typer.Option("--significance", "-s", help="With --adapt: share of errors to keep [default: 0.05].")
    ] = None,
    state: Annotated[
        Path | None, typer.Option(help="File that answers under an id and their outcomes are kept in.")
    ] = None,
    quiet: Quiet = False,
    debug: Debug = False,
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
    from surelabel.service import ReviewPlan, run  # noqa: PLC0415

    plan = None if reviews is None else ReviewPlan(reviews)
    more |= {"workers": workers, "watch": watch, "review": plan, "adapt": adapt, "state": state}
    run(folder, host, port, token, allow_unprotected=allow_unprotected, **more)
