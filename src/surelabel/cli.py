"""The command line: parse, call one function, print."""

from __future__ import annotations

import logging
import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.logging import RichHandler
from rich.markdown import Markdown

import surelabel
from surelabel.exceptions import SurelabelError

__all__ = ["app", "main"]

app = typer.Typer(
    help="Multi-label text classification that knows when it is sure.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
_console = Console()
_errors = Console(stderr=True)


def _print_version(asked: bool) -> None:
    """Print the version and stop, where it was asked for."""
    if asked:
        _console.print(f"surelabel {surelabel.__version__}")
        raise typer.Exit


@app.callback()
def common(
    *,
    version: Annotated[
        bool, typer.Option("--version", help="Show the version and stop.", callback=_print_version, is_eager=True)
    ] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Say nothing but results and errors.")] = False,
) -> None:
    """Multi-label text classification that knows when it is sure."""
    logging.basicConfig(
        level=logging.WARNING if quiet else logging.INFO,
        format="%(message)s",
        handlers=[RichHandler(console=_errors, show_path=False, rich_tracebacks=False)],
        force=True,
    )
    logging.getLogger("numba").setLevel(logging.WARNING)


@app.command()
def reproduce(
    *,
    corpus: Annotated[list[str] | None, typer.Option(help="Corpora; several times for several.")] = None,
    classifier: Annotated[list[str] | None, typer.Option(help="linear, randinit, word2vec or bert.")] = None,
    measure: Annotated[list[str] | None, typer.Option(help="L2, L4, L8 or LogLoss; all of them by default.")] = None,
    seeds: Annotated[int, typer.Option(min=1, help="Runs with seeds 0 to this less one.")] = 1,
    runs: Annotated[Path, typer.Option(help="Checkpoints and probabilities.")] = Path("runs"),
    results: Annotated[Path, typer.Option(help="Result files, tables and figures.")] = Path("results"),
    readme: Annotated[Path | None, typer.Option(help="A README to put the main table and figures into.")] = None,
    publish: Annotated[bool, typer.Option("--publish", help="Only build tables and figures from results.")] = False,
) -> None:
    """Run the paper's experiments: train, calibrate, evaluate, tabulate. Finished runs are skipped, others go on.

    Example: surelabel reproduce --corpus reuters20 --classifier linear
    """
    from surelabel.experiments import MEASURES, Folders, planned, run  # noqa: PLC0415
    from surelabel.experiments.publish import publish as publish_results  # noqa: PLC0415
    from surelabel.experiments.reports import report_run  # noqa: PLC0415
    from surelabel.experiments.statistics import record_statistics  # noqa: PLC0415

    chosen = {name: MEASURES[name] for name in measure or MEASURES if name in MEASURES}
    unknown = sorted(set(measure or ()) - set(MEASURES))
    if unknown:
        raise typer.BadParameter(
            f"expected some of {', '.join(MEASURES)}; got {', '.join(unknown)}", param_hint="--measure"
        )
    if not publish:
        folders = Folders(runs, results / "runs")
        names = corpus or ["reuters20"]
        plan = planned(names, classifier or ["linear"], range(seeds))
        record_statistics(names, results / "corpora.json")
        for number, settings in enumerate(plan, start=1):
            logging.getLogger(__name__).info("run %d of %d: %s", number, len(plan), settings.name)
            run(settings, folders, chosen)
            if settings.conformal:
                _console.print(f"Report: {report_run(settings, folders)}")
    tables = publish_results(results / "runs", results, readme)
    if sys.stdout.isatty():
        for table in tables:
            _console.print(Markdown(f"## {table.title}\n\n{table.to_markdown()}"))
    _console.print(f"Tables and figures are in {results / 'tables'} and {results / 'figures'}.")


def main() -> None:
    """Run the command line; an error on purpose is one sentence, not a traceback."""
    try:
        app()
    except SurelabelError as error:
        _errors.print(f"surelabel: {error}", style="red", markup=False, highlight=False)
        raise SystemExit(1) from None
    except KeyboardInterrupt:
        _errors.print("surelabel: stopped; run the same command again to go on.", markup=False)
        raise SystemExit(130) from None
