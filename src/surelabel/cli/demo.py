"""`surelabel demo`: the journey on one screen."""

from __future__ import annotations

import logging
import shutil
import sys
from pathlib import Path
from typing import Annotated, Any

from surelabel.cli import options
from surelabel.cli.app import app, console, say
from surelabel.cli.show import card, excerpt, progress
from surelabel.exceptions import SurelabelError

_log = logging.getLogger("surelabel")


@app.command()
def demo(
    *,
    out: Annotated[Path, options.option("Folder of the model.", "--out", "-o", metavar="DIR")] = Path("demo"),
    download: Annotated[
        bool, options.option("Fetch Reuters news (6 MB); otherwise made-up texts.", "--download/--no-download")
    ] = True,
) -> None:
    """Train a model on news, let it decide on texts that it has not seen, and print what that saves.

    \b
    Example:
      surelabel demo
    """
    from surelabel import corpora, models

    first, texts, others = None, "Reuters news stories", "from a later time"
    with progress():
        try:
            corpus = corpora.load("reuters", download=download)
        except (SurelabelError, OSError) as error:
            _log.debug("%s", error)
            corpus = corpora.load("synthetic")
            first, texts, others = "Reuters is not on this machine; these texts are made up.", "texts", "others"
        bundle = models.train(corpus, out)
    if first is not None:
        say(first)
    evaluation = bundle.evaluation
    assert evaluation is not None  # both corpora have test texts
    trained = f"Trained on {bundle.info.n_train:,} {texts} with {len(bundle.label_names)} tags"
    say(f"{trained}, and tried on {evaluation.n_texts:,} {others}:")
    say()
    for line in _saved(evaluation.decisions, bundle.info.levels):
        say(line)
    for text, record in _one_of_each(bundle, corpus):
        say()
        say(f"{'':<9} \N{LEFT DOUBLE QUOTATION MARK}{excerpt(text, 76)}\N{RIGHT DOUBLE QUOTATION MARK}")
        say(card(record, width=min(console.width, 100)))
    say()
    say(f"See it in your browser:  {_program()} serve {out}")


def _saved(decisions: Any, levels: Any) -> list[str]:
    """Return what a person saves: texts filed, wrong ones among them, length of lists."""
    from surelabel.evaluation.summary import asked, share

    filed, chosen, read = (decisions[kind] for kind in ("file", "choose", "read"))
    n_seen = chosen.n_texts + read.n_texts
    wrong = (
        f" {share(filed.wrong)} of the filed texts are wrong ({asked(levels['max_wrong'])})." if filed.n_texts else ""
    )
    lists = (
        f" of {chosen.n_tags:.1f} tags, which miss {share(chosen.missed)} of the true ones" if chosen.n_texts else ""
    )
    return [
        f"File      {share(filed.share)}: nobody has to read them.{wrong}",
        f"Choose    {share(chosen.share)}: a person picks from lists{lists}.",
        f"Read      {share(read.share)}: a person reads the text, without a list.",
        f"          People look at {n_seen:,} texts instead of {filed.n_texts + n_seen:,}.",
    ]


def _one_of_each(bundle: Any, corpus: Any) -> list[tuple[str, dict[str, Any]]]:
    """Return a test text for each decision, with its record."""
    shown: dict[str, tuple[str, dict[str, Any]]] = {}
    texts = [text for text in corpus.part("test").texts[:300] if text.strip()]
    for text, answer in zip(texts, bundle.answers(texts), strict=True):
        shown.setdefault(answer.decision, (text, answer.record()))
    return [shown[decision] for decision in ("file", "choose", "read") if decision in shown]


def _program() -> str:
    """Return what to type for this program: its name if the shell finds it, else its path."""
    own, in_path = Path(sys.argv[0]), shutil.which("surelabel")
    is_script = own.name == "surelabel" and own.is_file()
    return str(own) if is_script and (in_path is None or not own.samefile(in_path)) else "surelabel"
