"""`surelabel compare` and `surelabel watch`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from surelabel._core.levels import STANDARD_LEVELS
from surelabel._core.progress import step
from surelabel._core.storage import atomic_file
from surelabel.cli.application import ALARM, Debug, Json, Quiet, Seed, app, say
from surelabel.cli.commands_model import ModelFolder
from surelabel.cli.corpus_options import GivenCorpus, PartsSeed, takes_corpus
from surelabel.cli.showing import progress_shown
from surelabel.cli.tables import print_json, print_table


@app.command()
def compare(
    corpus: Annotated[str, typer.Argument(metavar="CORPUS", help="A corpus of the experiments, such as reuters20.")],
    *,
    classifier: Annotated[str, typer.Option(help="linear, randinit, word2vec or bert.")] = "linear",
    measure: Annotated[
        list[str] | None,
        typer.Option(help="L2, LogLoss, Mahalanobis, Penalised, ..., several times for several [default: all]."),
    ] = None,
    rival: Annotated[
        list[str] | None,
        typer.Option(
            help="seen, bonferroni, per-label, instance-reproduction, cross-conformal, transductive or recall, several "
            "times for several; none for none [default: all]."
        ),
    ] = None,
    significance: Annotated[
        list[str] | None, typer.Option(help="Levels, several times for several [default: 0.01, 0.05, 0.1, 0.2].")
    ] = None,
    splits: Annotated[int, typer.Option(min=1, help="Random divisions into calibration and test texts.")] = 10,
    sized: Annotated[
        int | None, typer.Option(min=1, help="Test texts of each division whose sets are counted [default: all].")
    ] = None,
    seed: Seed = 0,
    runs: Annotated[Path, typer.Option(help="Checkpoints and probabilities.")] = Path("runs"),
    results: Annotated[Path, typer.Option(help="Result file, table and figure.")] = Path("results"),
    as_json: Json = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Compare measures and rival methods on one corpus: error and size at several levels, same texts for all.

    \b
    Examples:
      surelabel compare reuters20
      surelabel compare reuters --measure LogLoss --rival seen --rival bonferroni --splits 20
    """
    from surelabel.experiments import Folders, Settings  # noqa: PLC0415
    from surelabel.experiments.compare import FITTED_AND_NOT, RIVALS, compare_run, comparison_table  # noqa: PLC0415

    compared = compare_run(
        Settings(corpus, classifier, seed=seed),
        Folders(runs, results / "runs"),
        results,
        measures=measure or FITTED_AND_NOT,
        rivals=[] if rival == ["none"] else rival or list(RIVALS),
        levels=significance or STANDARD_LEVELS,
        n_splits=splits,
        n_sized=sized,
    )
    if as_json:
        print_json(compared.to_dict())
        return
    table = comparison_table(compared)
    print_table(table.header, table.rows, title=table.title)
    say(table.note)
    name = f"{corpus}-{classifier}"
    say(f"Results: {results / 'comparisons' / f'{name}.json'}; figure: {results / 'figures'}/{name}-comparison.svg.")


@app.command()
@takes_corpus
def watch(
    folder: ModelFolder,
    corpus: GivenCorpus,
    *,
    alpha: Annotated[str, typer.Option(help="Bound of the probability of a false alarm, ever.")] = "0.01",
    unlabelled: Annotated[bool, typer.Option("--unlabelled", help="Watch best guesses, which need no labels.")] = False,
    state: Annotated[
        Path | None, typer.Option(help="File that a watch resumes from and is written to; made if there is none.")
    ] = None,
    plot: Annotated[Path | None, typer.Option(help="Draw the capital against texts into this SVG file.")] = None,
    part: Annotated[str | None, typer.Option(help="Part to watch, or all [default: test; all of a new file].")] = None,
    seed: PartsSeed = None,
    as_json: Json = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Watch whether texts, in their order, are like those that a model was calibrated on.

    If they are, an alarm is raised with probability alpha at most, however many texts there are. An alarm ends the
    command with exit code 7.

    \b
    Examples:
      surelabel watch models/reuters reuters --plot watch.svg
      surelabel watch models/tickets tickets-of-june.csv --text body --labels tags --state watch.json
    """
    with progress_shown(), step("starting"):
        from surelabel.models import load_bundle, watch_bundle  # noqa: PLC0415

        bundle = load_bundle(folder)
        texts = corpus.load(seed, bundle)
        seen = watch_bundle(bundle, texts, part=part, alpha=alpha, labelled=not unlabelled, state=state)
    if plot is not None:
        from surelabel import plots  # noqa: PLC0415

        figure = plots.watch_path({bundle.info.measure: seen.path}, alpha=float(alpha))
        with atomic_file(plot) as temporary:
            temporary.write_text(plots.to_svg(figure, title="Exchangeability watch", ink="black"), encoding="utf-8")
    if as_json:
        values = {name: getattr(seen, name) for name in ("n_seen", "log10_martingale", "log10_peak", "alarm")}
        print_json({**values, "alarm_at": seen.alarm_at, "path": seen.path.tolist()})
    elif seen.alarm:
        say(
            f"ALARM at text {seen.alarm_at:,} of {seen.n_seen:,}: the texts are not exchangeable with those of "
            "calibration, or not with each other. The guarantee does not hold for them as it is stated; calibrate "
            "again with recent texts (surelabel calibrate)."
        )
    else:
        say(f"No alarm after {seen.n_seen:,} texts (capital 10^{seen.log10_martingale:.1f}). That is no proof.")
    if seen.alarm:
        raise typer.Exit(ALARM)
