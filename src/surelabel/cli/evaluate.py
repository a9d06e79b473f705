"""`surelabel evaluate`: a model measured on texts with labels."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from surelabel.cli import options
from surelabel.cli.app import BROKEN_PROMISE, app, say
from surelabel.cli.show import print_json, progress


@app.command()
def evaluate(
    model: options.Model,
    file: options.Labelled,
    *,
    text: options.Text = None,
    labels: options.Labels = None,
    separator: options.Separator = None,
    id_column: options.Id = None,
    encoding: options.Encoding = None,
    on_error: options.OnError = None,
    scores: options.Scores = None,
    report: Annotated[Path | None, options.option("Write a report to this file.", metavar="HTML")] = None,
    fail_on_broken_promise: Annotated[
        bool, options.option("End with code 6 if there are more errors than allowed.", "--fail-on-broken-promise")
    ] = False,
    as_json: options.Json = False,
) -> None:
    """Measure a model on texts that it has not seen: what it files, what people see, and with which errors.

    Texts that the model was trained or calibrated on are left out. Of the training file, its test texts remain.

    \b
    Examples:
      surelabel evaluate models/tickets tickets.csv --labels tags
      surelabel evaluate models/tickets june.csv --labels tags --json
      surelabel evaluate models/tickets june.csv --labels tags --report june.html
    """
    from surelabel import models
    from surelabel.evaluation import summary
    from surelabel.models.evaluate import new_texts
    from surelabel.predicting.file import check_output

    reading = options.reading(
        text=text, labels=labels, separator=separator, id=id_column, encoding=encoding, on_error=on_error, scores=scores
    )
    if report is not None:
        check_output(file, report)
    with progress():
        bundle = models.load_bundle(model)
        corpus = options.load_labelled(file, bundle, **reading)
        evaluation = models.evaluate_bundle(bundle, corpus)
        if report is not None:
            from surelabel.report import write_report

            write_report(report, bundle, new_texts(bundle, corpus), evaluation)
    if as_json:
        print_json(evaluation.to_dict())
    else:
        for line in summary.evaluation_lines(evaluation, bundle.info.levels):
            say(line)
        ranks = evaluation.result.ranks
        shown = ", ".join(f"{name} {ranks[name]:.3f}" for name in ("Precision@5", "NDCG@10", "F1@5"))
        say(f"As Annif's eval names them: {shown}.")
        if report is not None:
            say(f"Report: {report}")
    if fail_on_broken_promise and evaluation.result.broken:
        raise typer.Exit(BROKEN_PROMISE)
