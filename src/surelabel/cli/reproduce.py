"""`surelabel reproduce`: the paper's experiments."""

from __future__ import annotations

import logging
import os
from pathlib import Path
from typing import Annotated

from surelabel.cli import options
from surelabel.cli.app import app, console, say, usage_error
from surelabel.cli.show import print_table, progress

_log = logging.getLogger("surelabel")


@app.command()
def reproduce(
    *,
    corpus: Annotated[list[str] | None, options.option("A corpus, several times for several.")] = None,
    classifier: Annotated[list[str] | None, options.option("linear, blend, randinit, word2vec or bert.")] = None,
    measure: Annotated[list[str] | None, options.option("L2, L4, L8 or LogLoss [default: all].")] = None,
    seeds: Annotated[int, options.option("Number of runs: their seeds are 0, 1, 2, ...", min=1)] = 1,
    setting: options.Settings = None,
    data: Annotated[Path | None, options.option("Folder of corpora [default: SURELABEL_DATA].", metavar="DIR")] = None,
    runs: Annotated[Path, options.option("Folder of checkpoints and probabilities.")] = Path("runs"),
    results: Annotated[Path, options.option("Folder of result files and tables.")] = Path("results"),
) -> None:
    """Run the paper's experiments and tabulate them. Finished runs are skipped, interrupted ones resumed.

    \b
    Examples:
      surelabel reproduce --corpus reuters20 --classifier linear
      surelabel reproduce --corpus ctdc --classifier linear --seeds 5     the five folds
    """
    from surelabel import experiments

    unknown = sorted(set(measure or ()) - set(experiments.MEASURES))
    if unknown:
        raise usage_error(f"expected some of {', '.join(experiments.MEASURES)}; got {', '.join(unknown)}", "--measure")
    if data is not None:
        os.environ["SURELABEL_DATA"] = str(data)
    folders = experiments.Folders(runs, results / "runs")
    settings = options.settings(setting)
    plan = experiments.planned(corpus or ["reuters20"], classifier or ["linear"], range(seeds), settings)
    for number, one in enumerate(plan, start=1):
        _log.info("run %d of %d: %s", number, len(plan), one.name)
        with progress():
            experiments.run(one, folders, measure or tuple(experiments.MEASURES))
    finished = experiments.load_results(folders.results)
    tables = experiments.all_tables(finished)
    experiments.write_tables(tables, results / "tables")
    experiments.write_figures(finished, results / "figures")
    if console.is_terminal:
        for table in tables:
            print_table(table.header, table.rows, title=table.title)
    say(f"Tables: {results / 'tables'}   Figures: {results / 'figures'}")
