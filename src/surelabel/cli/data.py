"""`surelabel data`: known corpora."""

from __future__ import annotations

from typing import Annotated

import typer

from surelabel.cli import options
from surelabel.cli.app import app, say, usage_error
from surelabel.cli.show import print_json, print_table

data = typer.Typer(help="Corpora: list them, get one, count one.", no_args_is_help=True)
app.add_typer(data, name="data")


@data.command("list")
def list_corpora(*, as_json: options.Json = False) -> None:
    """List the corpora that have a name, and whether they are on this machine."""
    from surelabel import corpora

    rows = [(name, corpora.is_available_locally(name), words) for name, words in corpora.available().items()]
    if as_json:
        print_json([{"name": name, "is_local": is_local, "description": words} for name, is_local, words in rows])
    else:
        shown = [(name, "yes" if is_local else "no", words) for name, is_local, words in rows]
        print_table(("corpus", "on this machine", "description"), shown)


@data.command("get")
def get_corpus(name: Annotated[str, typer.Argument(help="A name from surelabel data list.")]) -> None:
    """Fetch a corpus if possible, check it, and describe it."""
    from surelabel import corpora

    if name not in corpora.available():
        raise usage_error(f"expected one of {', '.join(corpora.available())}; got {name!r}", "NAME")
    corpus = corpora.load(name)
    say(f"{name}: {len(corpus):,} texts, {len(corpus.label_names):,} labels.")
    say(f"Source: {corpus.provenance.source}. Licence: {corpus.provenance.licence}.")
    for note in corpus.notes:
        say(note)


@data.command("stats")
def stats(
    file: options.Labelled,
    *,
    text: options.Text = None,
    labels: options.Labels = None,
    separator: options.Separator = None,
    encoding: options.Encoding = None,
    as_json: options.Json = False,
) -> None:
    """Count the texts and labels of a file or corpus, and of its own parts."""
    reading = options.reading(text=text, labels=labels, separator=separator, encoding=encoding)
    corpus = options.load_labelled(file, **reading)
    n_labels, n_texts = (corpus.labels.sum(axis=axis) for axis in (1, 0))
    counted = {
        "texts": len(corpus),
        **{f"texts in {name}": n for name, n in corpus.part_sizes.items()},
        "labels": len(corpus.label_names),
        "labels per text": round(float(n_labels.mean()), 2),
        "most labels of a text": int(n_labels.max()),
        "words per text": round(sum(len(text.split()) for text in corpus.texts) / len(corpus), 1),
    }
    frequent = {corpus.label_names[k]: int(n_texts[k]) for k in (-n_texts).argsort(kind="stable")[:10]}
    if as_json:
        print_json({"corpus": corpus.name, **counted, "most_frequent": frequent})
    else:
        for title, rows in ((corpus.name, counted), ("most frequent labels", frequent)):
            print_table((title, "number"), [(name, f"{value:,}") for name, value in rows.items()])
