"""`surelabel train`, `calibrate` and `evaluate`."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from surelabel._core.levels import STANDARD_LEVELS
from surelabel._core.wording import at_most_words, count_words
from surelabel.cli.application import Debug, Json, Quiet, Seed, app, say
from surelabel.cli.corpus_options import GivenCorpus, PartSize, PartsSeed, as_size, takes_corpus
from surelabel.cli.tables import print_json, print_table

if TYPE_CHECKING:
    from surelabel.evaluation.evaluate import Evaluation
    from surelabel.models import Bundle

__all__ = ["ModelFolder", "print_evaluations"]

ModelFolder = Annotated[Path, typer.Argument(metavar="DIR", help="Folder of a model, made by surelabel train.")]
_MeasureHelp = (
    "LogLoss, L and a number (L2, L4, L8, Linf), or one that is fitted on the validation part: mahalanobis, penalised."
)
_LEVELS = tuple(float(level) for level in STANDARD_LEVELS)
_MAIN_LEVEL = 0.05


@app.command()
@takes_corpus
def train(
    corpus: GivenCorpus,
    *,
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder for the model; an older model there is replaced.")],
    classifier: Annotated[
        Literal["linear", "randinit", "word2vec", "bert"],
        typer.Option(help="linear takes seconds and no torch; the others are the paper's."),
    ] = "linear",
    setting: Annotated[
        list[str] | None,
        typer.Option(help="A setting of the classifier, e.g. epochs=3 or model=minilm; several times for several."),
    ] = None,
    measure: Annotated[
        str,
        typer.Option(
            help="Nonconformity measure: auto (LogLoss, penalised where that pays on the validation part), "
            f"{_MeasureHelp}"
        ),
    ] = "auto",
    min_labels: Annotated[
        int | None, typer.Option(min=0, help="Fewest labels of a text [default: as in training].")
    ] = None,
    max_labels: Annotated[
        int | None, typer.Option(min=1, help="Most labels of a text [default: as in training].")
    ] = None,
    constraints: Annotated[
        Path | None,
        typer.Option(
            exists=True, dir_okay=False, help="JSON file of what label-sets obey: implications, exclusions, ..."
        ),
    ] = None,
    recalibrate: Annotated[
        bool, typer.Option("--recalibrate", help="Correct each label's probabilities on the validation part.")
    ] = False,
    listed: Annotated[
        str | None,
        typer.Option(
            metavar="N|all",
            help="Labels whose probabilities are kept for each text [default: all; the highest of over 1,000].",
        ),
    ] = None,
    name: Annotated[str | None, typer.Option(help="Name of the model [default: corpus and classifier].")] = None,
    test: PartSize = None,
    validation: PartSize = None,
    calibration: PartSize = None,
    compare: Annotated[
        bool, typer.Option("--compare/--no-compare", help="Evaluate the other measures beside the model's.")
    ] = True,
    fresh: Annotated[bool, typer.Option("--fresh", help="Do not go on with an interrupted training.")] = False,
    seed: Seed = 0,
    as_json: Json = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Train a classifier, calibrate it, evaluate it, and put all of it into a folder.

    Calibration texts are never trained on, test texts only measured on. An interrupted training goes on when the
    same command is run again.

    \b
    Examples:
      surelabel train reuters --out models/reuters
      surelabel train tickets.csv --text subject --text body --labels tags --separator ';' --out models/tickets
      surelabel train reuters --classifier bert --setting model=minilm --out models/reuters-bert
      surelabel train tickets.csv --labels tags --calibration 999 --test 0.1 --out models/tickets
      surelabel train tickets.csv --measure penalised --constraints rules.json --out models/tickets
    """
    from surelabel.labels.constraints import LabelConstraints  # noqa: PLC0415
    from surelabel.measures import MEASURES  # noqa: PLC0415
    from surelabel.models import Automatic, TrainingSettings, any_measure_named, train_to_folder  # noqa: PLC0415

    settings = TrainingSettings(
        kind=classifier,
        options=_as_settings(setting or []),
        measure=Automatic() if measure.lower() == "auto" else any_measure_named(measure),
        compared=MEASURES if compare else {},
        seed=seed,
        min_labels=min_labels,
        max_labels=max_labels,
        name=name,
        constraints=None if constraints is None else LabelConstraints.load(constraints),
        recalibrate=recalibrate,
        listed=_as_listed(listed),
    )
    asked = {"test": test, "validation": validation, "calibration": calibration}
    sizes = {part: as_size(size, f"--{part}") for part, size in asked.items()}
    found = corpus.load(seed, sizes={part: size for part, size in sizes.items() if size is not None})
    bundle = train_to_folder(found, out, settings, resume=not fresh)
    if as_json:
        print_json({"folder": str(out), "info": bundle.info.to_dict(), "figures": figures_of(bundle.evaluation)})
        return
    print_own_evaluation(bundle)
    say(f"The model is in {out}.")
    if bundle.report is not None:
        say(f"The report, which compares measures too, is {bundle.report}.")
    say(f"Next: surelabel predict {out} FILE, or surelabel serve {out}")


def _as_listed(given: str | None) -> int | Literal["all"] | None:
    """Return how many labels to list: a number, "all", or None where it is not said."""
    if given is None or given == "all":
        return given  # type: ignore[return-value]
    if not given.isdecimal() or int(given) < 1:
        raise typer.BadParameter(f"expected a number of 1 or more, or all; got {given!r}", param_hint="--listed")
    return int(given)


def _as_settings(given: list[str]) -> dict[str, Any]:
    """Return settings from name=value, where a value is JSON or else a string."""
    settings: dict[str, Any] = {}
    for each in given:
        name, equals, value = each.partition("=")
        if not equals or not name:
            raise typer.BadParameter(f"expected NAME=VALUE; got {each!r}", param_hint="--setting")
        try:
            settings[name] = json.loads(value)
        except ValueError:
            settings[name] = value
    return settings


@app.command()
@takes_corpus
def calibrate(
    folder: ModelFolder,
    corpus: GivenCorpus,
    *,
    measure: Annotated[str | None, typer.Option(help=f"{_MeasureHelp} [default: the model's]")] = None,
    part: Annotated[
        str | None, typer.Option(help="Part to calibrate with, or all [default: calibration; all of a new file].")
    ] = None,
    add: Annotated[
        bool, typer.Option("--add", help="Beside the texts that it is calibrated with, which are not needed.")
    ] = False,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="Another folder [default: DIR itself].")] = None,
    seed: PartsSeed = None,
    as_json: Json = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Calibrate a model anew, or with another measure, without training it again.

    CORPUS is what it was trained on, whose calibration part is taken, or new texts with labels, all of which are.
    Measure, constraints and recalibration stay the model's; to fit another measure takes what it was trained on.

    \b
    Examples:
      surelabel calibrate models/reuters reuters --measure L4 --out models/reuters-l4
      surelabel calibrate models/tickets tickets-of-may.csv --text body --labels tags
      surelabel calibrate models/tickets tickets-of-june.csv --text body --labels tags --add
    """
    from surelabel.models import add_to_calibration, any_measure_named, calibrate_bundle, check_target, load_bundle  # noqa: PLC0415  # noqa: PLC0415

    if add and measure is not None:
        raise typer.BadParameter("texts that are gone cannot be measured anew: leave out --measure", param_hint="--add")
    target = out or folder
    chosen = None if measure is None else any_measure_named(measure)
    check_target(target)
    bundle = load_bundle(folder)
    found = corpus.load(seed, bundle)
    with tempfile.TemporaryDirectory(prefix="surelabel-") as work:
        if add:
            new = add_to_calibration(bundle, found, part=part)
        else:
            new = calibrate_bundle(bundle, found, measure=chosen, part=part, work_folder=Path(work))
        new.save(target)
    if as_json:
        print_json({"folder": str(target), "info": new.info.to_dict(), "figures": figures_of(new.evaluation)})
        return
    print_own_evaluation(new)
    n_texts = new.predictor.calibration_.n_texts
    say(f"Calibrated with {n_texts:,} texts ({new.info.measure}). The model is in {target}.")


@app.command()
@takes_corpus
def evaluate(
    folder: ModelFolder,
    corpus: GivenCorpus,
    *,
    part: Annotated[
        str | None, typer.Option(help="Part to measure on, or all [default: test; all of a new file].")
    ] = None,
    report: Annotated[Path | None, typer.Option(help="Write an HTML report to this file.")] = None,
    seed: PartsSeed = None,
    as_json: Json = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Measure a model on texts with known labels: whether the guarantee is kept, and how large are the sets.

    \b
    Examples:
      surelabel evaluate models/reuters reuters
      surelabel evaluate models/tickets tickets-of-june.csv --text body --labels tags --report june.html
    """
    from surelabel.models import (  # noqa: PLC0415
        evaluate_bundle,
        load_bundle,
    )

    bundle = load_bundle(folder)
    found = corpus.load(seed, bundle)
    evaluation = evaluate_bundle(bundle, found, part=part, report=report)
    if as_json:
        print_json(evaluation.to_dict())
    else:
        print_evaluations({bundle.info.measure: evaluation})
        say(summary_of(evaluation))
    if report is not None and not as_json:
        say(f"The report is {report}.")


def figures_of(evaluations: Mapping[str, Evaluation] | None) -> list[dict[str, Any]]:
    """Return the figures that a user looks at first, a measure and level each."""
    from surelabel.plots import error_band  # noqa: PLC0415

    return [
        {
            "measure": name,
            "significance": point.significance,
            "error": point.error,
            "mean_size": point.sizes.mean,
            "mean_size_lower": point.sizes.mean_lower,
            "median_size": point.sizes.median,
            "single": point.sizes.single,
            "empty": point.sizes.empty,
            "n_texts": evaluation.n_texts,
            "by_chance": list(error_band(point.significance, evaluation.n_texts, evaluation.n_calibration)),
        }
        for name, evaluation in (evaluations or {}).items()
        for point in evaluation.curve
        if float(point.significance) in _LEVELS
    ]


def print_own_evaluation(bundle: Bundle) -> None:
    """Print the figures of a bundle's own measure, without those that it is compared with, and say what they mean."""
    if not bundle.evaluation:
        return
    name, evaluation = next(iter(bundle.evaluation.items()))
    print_evaluations({name: evaluation})
    say(summary_of(evaluation))


def summary_of(evaluation: Evaluation) -> str:
    """Say in two sentences what the figures at significance 0.05 mean, or at the next level that there is."""
    levels = [level for level in _LEVELS if level >= _MAIN_LEVEL]
    points = [point for point in evaluation.curve if float(point.significance) in levels]
    if not points:
        return (
            f"{evaluation.n_calibration:,} calibration texts are too few for a significance of {levels[-1]:g}: sets "
            "hold nearly every label-set. More texts, or a larger --calibration, help."
        )
    point = min(points, key=lambda each: float(each.significance))
    level = float(point.significance)
    return (
        f"At significance {level:g} the true label-set was missed in {point.error:.1%} of the test texts, and "
        f"{point.sizes.single:.1%} of them keep one plausible label-set. 'By chance' is what error rates come to with "
        f"{evaluation.n_calibration:,} calibration and {evaluation.n_texts:,} test texts, in 99 of 100 cases."
    )


def print_evaluations(evaluations: Mapping[str, Evaluation] | None) -> None:
    """Print how good forced predictions are, how often the true label-set is missed, and how large sets are."""
    if not evaluations:
        return
    first = next(iter(evaluations.values()))
    rows = [
        (
            each["measure"],
            each["significance"],
            f"{each['error']:.3f}",
            "{:.3f} to {:.3f}".format(*each["by_chance"]),
            at_most_words(each["mean_size_lower"], each["mean_size"]),
            count_words(each["median_size"]),
            f"{each['single']:.1%}",
            f"{each['empty']:.1%}",
        )
        for each in figures_of(evaluations)
    ]
    headings = ("measure", "significance", "error rate", "by chance", "mean N", "median N", "N = 1", "N = 0")
    print_table(headings, rows, title=f"{first.n_texts:,} test texts; N is how many label-sets stay plausible")
    say(
        f"Best guess alone: right as a whole {first.forced.accuracy:.1%}, micro-F1 {first.forced.f1_micro:.3f}, "
        f"macro-F1 {first.forced.f1_macro:.3f}."
    )
