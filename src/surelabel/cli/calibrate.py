"""`surelabel calibrate`: a model calibrated again, or with more texts, without training."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from surelabel.cli import options
from surelabel.cli.app import app, say, usage_error
from surelabel.cli.show import progress


@app.command()
def calibrate(
    model: options.Model,
    file: Annotated[
        str | None, options.argument("Texts with labels [default: the calibration texts of now].", "FILE")
    ] = None,
    *,
    add: Annotated[bool, options.option("Add to the calibration texts instead of replacing them.", "--add")] = False,
    max_wrong: options.MaxWrong = None,
    max_missed: options.MaxMissed = None,
    max_false: options.MaxFalse = None,
    assurance: options.Assurance = None,
    never_file: options.NeverFile = None,
    measure: Annotated[str | None, options.option("Another measure: log-loss, l1, l2, l4 or l8.")] = None,
    text: options.Text = None,
    labels: options.Labels = None,
    separator: options.Separator = None,
    id_column: options.Id = None,
    encoding: options.Encoding = None,
    on_error: options.OnError = None,
    scores: options.Scores = None,
    out: Annotated[
        Path | None, options.option("Another folder [default: MODEL itself].", "--out", "-o", metavar="DIR")
    ] = None,
) -> None:
    """Calibrate a model with other texts, or for other promises, without training it again.

    Promises stay the model's unless others are asked for.

    \b
    Examples:
      surelabel calibrate models/tickets may.csv --labels tags
      surelabel calibrate models/tickets june.csv --labels tags --add
      surelabel calibrate models/tickets --max-wrong 0.1 --out models/bolder
    """
    from surelabel import models

    changes = options.given(
        max_wrong=max_wrong,
        max_missed=max_missed,
        max_false=max_false,
        assurance=assurance,
        never_file=never_file,
        measure=measure,
    )
    reading = options.reading(
        text=text, labels=labels, separator=separator, id=id_column, encoding=encoding, on_error=on_error, scores=scores
    )
    if file is None and (add or reading):
        raise usage_error("it has no effect without FILE", f"--{'add' if add else next(iter(reading))}")
    if file is None and not changes:
        raise usage_error("name a file, or a promise to change such as --max-wrong", "FILE")
    if add and changes:
        raise usage_error("promises cannot change while texts are added", f"--{next(iter(changes)).replace('_', '-')}")
    with progress():
        bundle = models.load_bundle(model)
        corpus = None if file is None else options.load_labelled(file, bundle, **reading)
        calibrated = models.calibrate_bundle(bundle, corpus, add, **changes)
        calibrated.save(out or model)
    say(f"Calibrated with {len(calibrated.calibration):,} texts.")
    for line in calibrated.info.verdict:
        say(line)
    say(f"Model: {out or model}")
