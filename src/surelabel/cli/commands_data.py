"""`surelabel data`: which corpora there are, getting one, counting one."""

from __future__ import annotations

import dataclasses
from typing import Annotated

import typer

import surelabel
from surelabel.cli.application import app, say
from surelabel.cli.options import CorpusName, Json, Reading, command
from surelabel.cli.showing import print_json, print_table

_STATISTICS = {
    "docs": "texts",
    "proper_train": "training texts",
    "avg_labels": "labels per text",
    "avg_words": "words per text",
    "max_cardinality": "most labels per text",
}
_PARTS = ("proper_train", "calibration", "test", "validation")

data = typer.Typer(help="Corpora: list them, get one, count one.", no_args_is_help=True)
app.add_typer(data, name="data")


@command("list", data)
def list_corpora(*, as_json: Json = False) -> None:
    """List the corpora that have a name, and whether they are at hand.

    \b
    Example:
      surelabel data list
    """
    corpora = surelabel.corpora
    listed = [(name, corpora.is_at_hand(name), description) for name, description in corpora.available().items()]
    if as_json:
        print_json([dict(zip(("name", "at_hand", "description"), row, strict=True)) for row in listed])
        return
    rows = [(name, "yes" if is_at_hand else "no", description) for name, is_at_hand, description in listed]
    print_table(("corpus", "at hand", "what"), rows)


@command("get", data)
def get_corpus(name: Annotated[str, typer.Argument(help="A known name, see surelabel data list.")]) -> None:
    """Get a corpus: fetch it if possible, check it, and describe it.

    \b
    Example:
      surelabel data get reuters
    """
    known = surelabel.corpora.available()
    if name not in known:
        raise typer.BadParameter(f"expected one of {', '.join(known)}; got {name!r}", param_hint="NAME")
    corpus = surelabel.corpora.load(name)
    say(repr(corpus))
    say(f"Source: {corpus.provenance.source}. Licence: {corpus.provenance.licence}.")


@command("stats", data)
def stats(corpus: CorpusName, *, reading: Reading, as_json: Json = False) -> None:
    """Count texts, labels and words of a corpus, and texts of the parts that it has itself; no part is drawn.

    \b
    Examples:
      surelabel data stats reuters
      surelabel data stats tickets.csv --text body --labels tags
    """
    whole = reading.load_whole(corpus)
    counted = dataclasses.asdict(surelabel.corpora.statistics(whole))
    if as_json:
        print_json({"corpus": whole.name, "fingerprint": whole.fingerprint(), **counted})
        return
    if len(whole.parts) == 1:
        counted = {name: value for name, value in counted.items() if name not in _PARTS}
    rows = [(_STATISTICS.get(name, name.replace("_", " ")), _number(value)) for name, value in counted.items()]
    print_table(("what", "number"), rows, title=whole.name)
    counts = whole.label_matrix.sum(axis=0)
    order = counts.argsort(kind="stable")[::-1]
    top = [(whole.label_names[k], f"{counts[k]:,}") for k in order[:10]]
    print_table(("most frequent labels", "texts"), top)


def _number(value: float) -> str:
    return f"{value:,}" if isinstance(value, int) else f"{value:,.2f}"
