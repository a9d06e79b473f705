"""`surelabel learn`: the next generation of a model, from a review."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from surelabel.cli import options
from surelabel.cli.app import app, say, usage_error
from surelabel.cli.show import print_json, progress


@app.command()
def learn(
    model: options.Model,
    store: options.Store,
    file: Annotated[str | None, options.argument("Texts that MODEL was trained on; needed to begin.", "FILE")] = None,
    *,
    out: Annotated[Path, options.option("Folder of the next generation.", "--out", "-o", metavar="DIR")],
    text: options.Text = None,
    labels: options.Labels = None,
    separator: options.Separator = None,
    id_column: options.Id = None,
    encoding: options.Encoding = None,
    calibrate: Annotated[
        bool, options.option("Keep the classifier: only calibrate it again, as after an alarm.", "--calibrate")
    ] = False,
    switch: Annotated[bool, options.option("Replace MODEL by a generation that is ready.", "--switch")] = False,
    undo: Annotated[bool, options.option("Take the last switch back.", "--undo")] = False,
    as_json: options.Json = False,
) -> None:
    """Train the next generation of a model with decided texts, and calibrate it with audits.

    Audits are the texts of the blind check that come in after the training. Until there are enough, MODEL keeps
    serving; run the same command again to continue.

    \b
    Examples:
      surelabel learn models/tickets june.csv.reviews.sqlite tickets.csv --labels tags --out models/next
      surelabel learn models/tickets june.csv.reviews.sqlite --out models/next --switch
    """
    from surelabel.review import learn as learning

    if switch and undo:
        raise usage_error("only one of --switch and --undo may be given", "--undo")
    if switch or undo:
        bundle = learning.switch(model, out) if switch else learning.undo_switch(model)
        say(f"{model} is now {bundle.info.name} of {bundle.info.created[:10]}.")
        return
    reading = options.reading(text=text, labels=labels, separator=separator, id=id_column, encoding=encoding)
    with options.open_review(store) as opened, progress():
        corpus = None if file is None else options.load_labelled(file, **reading)
        found = learning.learn(model, opened, out, corpus, retrain=not calibrate)
    if as_json:
        print_json(found.to_dict())
        return
    say(f"Trained with {found.n_decided:,} decided texts. The next generation is {found.state}.")
    say(f"Audits for filing: {found.filing:,} of {found.needed.filing:,}.")
    say(f"Audits for lists: {found.lists:,} of {found.needed.lists:,}.")
    if found.state == "ready":
        say(f"Next:  surelabel learn {model} {store} --out {out} --switch")
