"""`surelabel compare` and `surelabel reproduce`."""

from __future__ import annotations

import logging
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import surelabel
from surelabel._core.levels import STANDARD_LEVELS
from surelabel.cli.application import console, say
from surelabel.cli.options import CorpusName, Json, Reading, Seed, command, is_file
from surelabel.cli.showing import print_json, print_table

if TYPE_CHECKING:
    import surelabel.experiments
    import surelabel.models


@command()
def compare(
    corpus: CorpusName,
    *,
    model: Annotated[Path | None, "Take the classifier of this model; CORPUS is what it was trained on.", "DIR"] = None,
    classifier: Annotated[str, "linear, randinit, word2vec or bert."] = "linear",
    measure: Annotated[
        list[str] | None, "L2, LogLoss, Mahalanobis, Penalised, ..., several times for several [default: all]."
    ] = None,
    rival: Annotated[
        list[str] | None,
        "seen, bonferroni, per-label, instance-reproduction, cross-conformal, transductive or recall, several "
        "times for several; none for none [default: all].",
    ] = None,
    significance: Annotated[
        list[str] | None, "Levels, several times for several [default: 0.01, 0.05, 0.1, 0.2]."
    ] = None,
    splits: Annotated[int, typer.Option(min=1, help="Random divisions into calibration and test texts.")] = 10,
    sized: Annotated[
        int | None, typer.Option(min=1, help="Test texts of each division whose sets are counted [default: all].")
    ] = None,
    reading: Reading,
    seed: Seed = 0,
    runs: Annotated[Path, "Folder of checkpoints and probabilities."] = Path("runs"),
    results: Annotated[Path, "Folder of result file, table and figure."] = Path("results"),
    as_json: Json = False,
) -> None:
    """Compare measures and rival methods on one corpus: error and size at several levels, same texts for all.

    CORPUS is one of the experiments, such as reuters20, or a file of your own.

    \b
    Examples:
      surelabel compare reuters20
      surelabel compare tickets.csv --text body --labels tags --rival none
      surelabel compare tickets.csv --text body --labels tags --model models/tickets
      surelabel compare reuters --measure LogLoss --rival seen --rival bonferroni --splits 20
    """
    experiments = surelabel.experiments
    asked: dict[str, Any] = {
        "measures": measure or experiments.FITTED_AND_NOT,
        "rivals": [] if rival == ["none"] else rival or list(experiments.RIVALS),
        "levels": significance or STANDARD_LEVELS,
        "n_splits": splits,
        "n_sized": sized,
    }
    if model is not None:
        bundle = surelabel.load_bundle(model)
        texts = reading.load(corpus, None, bundle, columns=[bundle.info.group_column])
        compared = experiments.compare_corpus(texts, runs, results, bundle=bundle, training_seed=seed, **asked)
        name = f"{texts.name}-{bundle.info.kind}"
    elif is_file(corpus) and Path(corpus).exists():
        texts = reading.load(corpus, seed)
        compared = experiments.compare_corpus(texts, runs, results, classifier=classifier, training_seed=seed, **asked)
        name = f"{texts.name}-{classifier}"
    else:
        settings = experiments.Settings(corpus, classifier, seed=seed)
        compared = experiments.compare_run(settings, experiments.Folders(runs, results / "runs"), results, **asked)
        name = f"{corpus}-{classifier}"
    if as_json:
        print_json(compared.to_dict())
        return
    table = experiments.comparison_table(compared)
    print_table(table.header, table.rows, title=table.title)
    say(table.note)
    say(f"Results: {results / 'comparisons' / f'{name}.json'}; figure: {results / 'figures'}/{name}-comparison.svg.")


@command()
def reproduce(
    *,
    corpus: Annotated[list[str] | None, "A corpus; repeat the option for several."] = None,
    classifier: Annotated[list[str] | None, "linear, randinit, word2vec or bert."] = None,
    measure: Annotated[list[str] | None, "L2, L4, L8 or LogLoss; all of them by default."] = None,
    seeds: Annotated[int, typer.Option(min=1, help="Number of runs: their seeds are 0, 1, 2, ...")] = 1,
    runs: Annotated[Path, "Folder of checkpoints, probabilities and reports."] = Path("runs"),
    results: Annotated[Path, "Folder of result files and tables."] = Path("results"),
) -> None:
    """Run the paper's experiments: train, calibrate, evaluate, tabulate. Finished runs are skipped, others resumed.

    \b
    Example:
      surelabel reproduce --corpus reuters20 --classifier linear
    """
    experiments = surelabel.experiments
    unknown = sorted(set(measure or ()) - set(experiments.MEASURES))
    if unknown:
        expected = f"expected some of {', '.join(experiments.MEASURES)}; got {', '.join(unknown)}"
        raise typer.BadParameter(expected, param_hint="--measure")
    chosen = {name: experiments.MEASURES[name] for name in measure or experiments.MEASURES}
    folders = experiments.Folders(runs, results / "runs")
    plan = experiments.planned(corpus or ["reuters20"], classifier or ["linear"], range(seeds))
    for number, settings in enumerate(plan, start=1):
        logging.getLogger(__name__).info("run %d of %d: %s", number, len(plan), settings.name)
        experiments.run(settings, folders, chosen)
        if settings.conformal:
            say(f"Report: {experiments.report_run(settings, folders)}")
    tables = experiments.all_tables(experiments.load_results(folders.results))
    experiments.write_tables(tables, results / "tables")
    if sys.stdout.isatty():
        from rich.markdown import Markdown  # noqa: PLC0415 (takes a tenth of a second)

        for table in tables:
            console.print(Markdown(f"## {table.title}\n\n{table.to_markdown()}"))
    say(f"The tables are in {results / 'tables'}.")
