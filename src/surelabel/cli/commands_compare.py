"""`surelabel compare`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from surelabel._core.levels import STANDARD_LEVELS
from surelabel.cli.application import Debug, Json, Quiet, Seed, app, say
from surelabel.cli.corpus_options import GivenCorpus, takes_corpus
from surelabel.cli.tables import print_json, print_table


@app.command()
@takes_corpus
def compare(
    corpus: GivenCorpus,
    *,
    model: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Take the classifier of this model; CORPUS is what it was trained on."),
    ] = None,
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

    CORPUS is one of the experiments, such as reuters20, or a file of your own.

    \b
    Examples:
      surelabel compare reuters20
      surelabel compare tickets.csv --text body --labels tags --separator ';' --rival none
      surelabel compare tickets.csv --text body --labels tags --separator ';' --model models/tickets
      surelabel compare reuters --measure LogLoss --rival seen --rival bonferroni --splits 20
    """
    from surelabel.experiments import Folders, Settings  # noqa: PLC0415
    from surelabel.experiments.compare import (  # noqa: PLC0415
        FITTED_AND_NOT,
        RIVALS,
        compare_corpus,
        compare_run,
        comparison_table,
    )

    asked: dict[str, Any] = {
        "measures": measure or FITTED_AND_NOT,
        "rivals": [] if rival == ["none"] else rival or list(RIVALS),
        "levels": significance or STANDARD_LEVELS,
        "n_splits": splits,
        "n_sized": sized,
    }
    if model is not None:
        from surelabel.models import load_bundle  # noqa: PLC0415

        bundle = load_bundle(model)
        texts = corpus.load(None, bundle, columns=[bundle.info.group_column])
        compared = compare_corpus(texts, runs, results, bundle=bundle, training_seed=seed, **asked)
        name = f"{texts.name}-{bundle.info.kind}"
    elif corpus.is_file and Path(corpus.corpus).exists():
        texts = corpus.load(seed)
        compared = compare_corpus(texts, runs, results, classifier=classifier, training_seed=seed, **asked)
        name = f"{texts.name}-{classifier}"
    else:
        settings = Settings(corpus.corpus, classifier, seed=seed)
        compared = compare_run(settings, Folders(runs, results / "runs"), results, **asked)
        name = f"{corpus.corpus}-{classifier}"
    if as_json:
        print_json(compared.to_dict())
        return
    table = comparison_table(compared)
    print_table(table.header, table.rows, title=table.title)
    say(table.note)
    say(f"Results: {results / 'comparisons' / f'{name}.json'}; figure: {results / 'figures'}/{name}-comparison.svg.")
