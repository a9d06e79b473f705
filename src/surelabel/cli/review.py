"""`surelabel review` and `surelabel reviews`: people decide, and their decisions come out."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from surelabel.cli import options
from surelabel.cli.app import app, say, usage_error
from surelabel.cli.show import print_json, print_table, progress

reviews = typer.Typer(help="Decisions of a review: count them, export them.", no_args_is_help=True)
app.add_typer(reviews, name="reviews")


@app.command()
def review(
    model: options.Model,
    file: Annotated[
        str | None, options.argument("Texts to review: .csv, .tsv, .jsonl, .parquet, .xlsx or .txt.", "FILE")
    ] = None,
    *,
    store: Annotated[
        str | None,
        options.option("Where decisions are kept: a file, or postgresql://... [default: FILE.reviews.sqlite]."),
    ] = None,
    check: Annotated[
        float | None, options.option("Share of texts for the blind check [default: 0.05].", min=0, max=1)
    ] = None,
    training: Annotated[
        str | None,
        options.option("Texts that MODEL was trained on: the page can then teach the next model.", metavar="FILE"),
    ] = None,
    labels: options.Labels = None,
    separator: options.Separator = None,
    text: options.Text = None,
    id_column: options.Id = None,
    by: options.By = None,
    scores: options.Scores = None,
    encoding: options.Encoding = None,
    input_format: options.InputFormat = None,
    on_error: options.OnError = None,
    host: options.Host = "127.0.0.1",
    port: options.Port = 8000,
    token: options.Token = None,
) -> None:
    """Review texts in a browser, at /review. Every decision is saved at once.

    Run it again to continue; texts that are new in FILE are added. With --training, and its --labels and --separator,
    the page has a button that trains the next model with what was decided.

    \b
    Examples:
      surelabel review models/tickets june.csv --text subject --text body
      surelabel review models/tickets june.csv --text body --check 0.1 --training tickets.csv --labels tags
      surelabel review models/tickets june.csv --store postgresql://reviews@db/tickets --host 0.0.0.0
    """
    columns = options.given(text=text, id=id_column, group=by, scores=scores)
    settings = options.given(kind=input_format, encoding=encoding, on_error=on_error, check_share=check)
    if file is None and store is None:
        raise usage_error("name a file of texts, or the --store of a review", "FILE")
    if training is None and (labels or separator):
        raise usage_error("they have no effect without --training", "--labels and --separator")
    if file is None and training is None and (columns or settings):
        raise usage_error("options about texts have no effect without it", "FILE")
    from surelabel import models, service
    from surelabel import review as reviewing
    from surelabel.tables.columns import Columns

    store = store or f"{file}.reviews.sqlite"
    if file is not None:
        with progress(), reviewing.ReviewStore(store) as opened:
            bundle = models.load_bundle(model)
            asked = Columns(**{"group": bundle.info.group_column, **columns})
            added = reviewing.add_texts(bundle, opened, file, reviewing.ReviewSettings(columns=asked, **settings))
        say(f"{added.n_new:,} new texts of {added.n_rows:,}; decisions are kept in {store}.")
        if not added.files:
            say("Nothing is filed: checked texts are unlike those that the model was calibrated on. Learn again.")
        for row, reason in added.skipped[:3]:
            say(f"Skipped row {row}: {reason}")
    of_training = options.reading(text=text, labels=labels, separator=separator, encoding=encoding)
    asked_to_serve = service.ServiceSettings(host=host, port=port, token=token)
    service.serve(model, asked_to_serve, store=store, training=(training, of_training) if training else None)


@reviews.command("summary")
def summary(store: options.Store, *, as_json: options.Json = False) -> None:
    """Count decisions: texts per queue, time per text, and what the blind check says about the model."""
    from surelabel import review as reviewing

    with options.open_review(store) as opened:
        figures, counts = reviewing.figures(opened).to_dict(), opened.counts()
    if as_json:
        print_json(figures)
        return
    rows = [(name, f"{one.waiting:,}", f"{one.decided:,}") for name, one in counts.items()]
    print_table(("queue", "waiting", "decided"), rows)
    for name, value in figures.items():
        words = name.removeprefix("n_").replace("_", " ").capitalize()
        if isinstance(value, int | float):
            say(f"{words}: {value:,.4g}")
        elif value and value.get("n_cases"):
            bounds = f"{100 * value['lower']:.0f} to {100 * value['upper']:.0f} %"
            say(f"{words}: {value['n_hits']:,} of {value['n_cases']:,} ({bounds} with 95 % assurance)")


@reviews.command("export")
def export(
    store: options.Store,
    out: Annotated[Path, options.argument("File to write: .csv, .jsonl or .xlsx.")],
    *,
    separator: Annotated[str, options.option("Separator of labels in a cell.")] = ",",
    model: Annotated[Path | None, options.option("Model with a vocabulary: adds the URIs of labels.")] = None,
) -> None:
    """Write decisions: the columns of the file with final_labels, decided_by, queue and changed."""
    from surelabel import models
    from surelabel import review as reviewing

    uris = None
    if model is not None:
        bundle = models.load_bundle(model)
        if bundle.uris is None:
            raise usage_error("this model has no vocabulary", "--model")
        uris = dict(zip(bundle.label_names, bundle.uris, strict=True))
    with options.open_review(store) as opened:
        n_texts = reviewing.export_decisions(opened, out, separator=separator, uris=uris)
    say(f"{n_texts:,} texts: {out}")
