"""`surelabel data`: which corpora there are, getting one, counting one."""

from __future__ import annotations

import dataclasses
from typing import Annotated

import typer

from surelabel.cli.application import Debug, Json, Quiet, app, say
from surelabel.cli.corpus_options import GivenCorpus, takes_corpus
from surelabel.cli.tables import print_json, print_table

__all__ = ["data"]

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


@data.command("list")
def list_corpora(*, as_json: Json = False, quiet: Quiet = False, debug: Debug = False) -> None:
    """List the corpora that have a name, and whether they are at hand.

    \b
    Example:
      surelabel data list
    """
    from surelabel import corpora  # noqa: PLC0415

    at_hand = {name: corpora.is_at_hand(name) for name in corpora.available()}
    if as_json:
        print_json([{"name": n, "at_hand": at_hand[n], "description": d} for n, d in corpora.available().items()])
        return
    rows = [(name, "yes" if at_hand[name] else "no", text) for name, text in corpora.available().items()]
    print_table(("corpus", "at hand", "what"), rows)


@data.command("get")
def get_corpus(
    name: Annotated[str, typer.Argument(help="A known name, see surelabel data list.")],
    *,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Get a corpus: fetch it if possible, check it, and describe it.

    \b
    Example:
      surelabel data get reuters
    """
    from surelabel import corpora  # noqa: PLC0415

    if name not in corpora.available():
        raise typer.BadParameter(f"expected one of {', '.join(corpora.available())}; got {name!r}", param_hint="NAME")
    corpus = corpora.load(name)
    say(repr(corpus))
    say(f"Source: {corpus.provenance.source}. Licence: {corpus.provenance.licence}.")


@data.command("stats")
@takes_corpus
def stats(
    corpus: GivenCorpus,
    *,
    as_json: Json = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Count texts, labels and words of a corpus, and texts of the parts that it has itself; no part is drawn.

    \b
    Examples:
      surelabel data stats reuters
      surelabel data stats tickets.csv --text body --labels tags --separator ';'
    """
    from surelabel import corpora  # noqa: PLC0415

    whole = corpus.load_whole()
    counted = dataclasses.asdict(corpora.statistics(whole))
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
