"""`surelabel watch`: whether texts are like those of calibration."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from surelabel._core.formatting import count
from surelabel.cli import options
from surelabel.cli.app import ALARM, app, say
from surelabel.cli.show import print_json, progress

if TYPE_CHECKING:
    from surelabel._core.validation import FloatArray
    from surelabel.models import Bundle


@app.command()
def watch(
    model: options.Model,
    file: options.Labelled,
    *,
    alpha: Annotated[str, options.option("Highest probability of a false alarm.")] = "0.01",
    unlabelled: Annotated[bool, options.option("Watch best guesses, which need no labels.", "--unlabelled")] = False,
    state: Annotated[Path | None, options.option("File of a watch to continue; made if it does not exist.")] = None,
    plot: Annotated[Path | None, options.option("Draw the evidence against texts.", metavar="SVG")] = None,
    text: options.Text = None,
    labels: options.Labels = None,
    separator: options.Separator = None,
    encoding: options.Encoding = None,
    on_error: options.OnError = None,
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
    from surelabel.guarantees.watch import ExchangeabilityWatch
    from surelabel.predicting.file import check_output

    for out in filter(None, (state, plot)):
        check_output(file, out)
    reading = options.reading(
        text=text, labels=labels, separator=separator, encoding=encoding, on_error=on_error, scores=scores
    )
    with progress():
        bundle = models.load_bundle(model)
        corpus = options.load_labelled(file, bundle, **reading, **({"require_labels": False} if unlabelled else {}))
        new = corpus.rows(~bundle.seen.used(corpus.texts))
        if state is not None and state.is_file():
            watching = ExchangeabilityWatch.load(state)
        else:
            known = bundle.calibration
            calibration = _scores(bundle, known.probabilities, None if unlabelled else known.label_sets)
            watching = ExchangeabilityWatch(calibration, alpha=alpha)
        probabilities = bundle.predict_proba(new.texts, scores=new.scores)
        seen = watching.update(_scores(bundle, probabilities, None if unlabelled else new.label_sets))
        if state is not None:
            watching.save(state)
    if plot is not None:
        figure = plots.watch_path({corpus.name: seen.path}, alpha=float(alpha))
        with atomic_file(plot) as stream:
            stream.write(plots.to_svg(figure, title="Exchangeability watch", ink="black"))
    if as_json:
        print_json({**dataclasses.asdict(seen), "path": [round(float(value), 6) for value in seen.path]})
    else:
        evidence = f"evidence {count(10.0 ** min(seen.log10_martingale, 300.0))} to 1"
        if seen.alarm:
            say(f"Alarm at text {seen.alarm_at:,} of {seen.n_seen:,} ({evidence}): these texts are not like the")
            say("calibration texts. Calibrate again with recent ones: surelabel calibrate.")
        else:
            say(f"No alarm after {seen.n_seen:,} texts ({evidence}). This does not prove that there is no drift.")
    if seen.alarm:
        raise typer.Exit(ALARM)


def _scores(bundle: Bundle, probabilities: Any, label_sets: Any) -> FloatArray:
    """Return the scores of true label-sets, or of best guesses without them."""
    predictor = bundle.policy.automation.predictor_
    if label_sets is None:
        label_sets = predictor.predict(probabilities).label_sets
    scores: FloatArray = predictor.scores(probabilities, label_sets)
    return scores
