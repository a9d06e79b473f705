"""`surelabel watch`: whether texts are like those of calibration."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from surelabel._core.formatting import count
from surelabel.cli import options
from surelabel.cli.app import ALARM, app, say
from surelabel.cli.show import print_json, progress

if TYPE_CHECKING:
    from surelabel._core.validation import FloatArray
    from surelabel.guarantees.watch import ExchangeabilityWatch
    from surelabel.models import Bundle


@app.command()
def watch(
    model: options.Model,
    file: options.Labelled,
    *,
    alpha: Annotated[str, typer.Option(help="Highest probability of a false alarm.")] = "0.01",
    unlabelled: Annotated[bool, typer.Option("--unlabelled", help="Watch best guesses, which need no labels.")] = False,
    state: Annotated[Path | None, typer.Option(help="File of a watch to continue; made if it does not exist.")] = None,
    plot: Annotated[Path | None, typer.Option(metavar="SVG", help="Draw the evidence against texts.")] = None,
    text: options.Text = None,
    labels: options.Labels = None,
    separator: options.Separator = "auto",
    encoding: options.Encoding = "utf-8",
    on_error: options.OnError = "stop",
    scores: options.Scores = None,
    as_json: options.Json = False,
) -> None:
    """Watch whether texts, in their order, are like those that a model was calibrated on.

    If they are, an alarm is raised with probability alpha at most, however many texts there are. An alarm ends the
    command with exit code 7. Texts of training and calibration are left out.

    \b
    Examples:
      surelabel watch models/tickets june.csv --text body --labels tags --state watch.npz
      surelabel watch models/tickets new.csv --text body --unlabelled
    """
    from surelabel import models, plots
    from surelabel._core.files import atomic_file

    reading = options.reading(file, separator=separator, encoding=encoding, on_error=on_error, scores=scores)
    if unlabelled:
        reading["require_labels"] = False
    with progress():
        bundle = models.load_bundle(model)
        corpus = options.load_labelled(file, bundle, **options.columns(file, text, labels), **reading)
        new = corpus.rows(~bundle.seen.used(corpus.texts))
        watching = _resumed(bundle, state, alpha, unlabelled)
        probabilities = bundle.predict_proba(new.texts, scores=new.scores)
        seen = watching.update(_scores(bundle, probabilities, None if unlabelled else new.label_sets))
        if state is not None:
            watching.save(state)
    if plot is not None:
        svg = plots.to_svg(
            plots.watch_path({corpus.name: seen.path}, alpha=float(alpha)),
            title="Exchangeability watch",
            ink="black",
        )
        with atomic_file(plot) as stream:
            stream.write(svg)
    if as_json:
        print_json(_record(seen))
    else:
        say(_sentence(seen))
    if seen.alarm:
        raise typer.Exit(ALARM)


def _resumed(bundle: Bundle, state: Path | None, alpha: str, unlabelled: bool) -> ExchangeabilityWatch:
    """Return the watch in a file, or a new one that begins with the calibration texts."""
    from surelabel.guarantees.watch import ExchangeabilityWatch

    if state is not None and state.is_file():
        return ExchangeabilityWatch.load(state)
    known = bundle.calibration
    scores = _scores(bundle, known.probabilities, None if unlabelled else known.label_sets) if known else ()
    return ExchangeabilityWatch(scores, alpha=alpha)


def _scores(bundle: Bundle, probabilities: Any, label_sets: Any) -> FloatArray:
    """Return the scores of true label-sets, or of best guesses without them."""
    predictor = bundle.policy.automation.predictor_
    if label_sets is None:
        label_sets = predictor.predict(probabilities).label_sets
    scores: FloatArray = predictor.scores(probabilities, label_sets)
    return scores


def _record(seen: Any) -> dict[str, Any]:
    return {
        "n_seen": seen.n_seen,
        "log10_martingale": seen.log10_martingale,
        "alarm": seen.alarm,
        "alarm_at": seen.alarm_at,
        "path": [round(float(value), 6) for value in seen.path],
    }


def _sentence(seen: Any) -> str:
    evidence = f"evidence {count(10.0 ** min(seen.log10_martingale, 300.0))} to 1"
    if seen.alarm:
        return (
            f"Alarm at text {seen.alarm_at:,} of {seen.n_seen:,} ({evidence}): these texts are not like the "
            "calibration texts. Calibrate again with recent ones: surelabel calibrate."
        )
    return f"No alarm after {seen.n_seen:,} texts ({evidence}). This does not prove that there is no drift."
