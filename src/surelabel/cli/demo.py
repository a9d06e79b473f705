"""`surelabel demo`: the journey on one screen."""

from __future__ import annotations

import logging
import shutil
import sys
import threading
from pathlib import Path
from typing import Annotated, Any

import typer

from surelabel.cli.app import app, console, say
from surelabel.cli.show import card, excerpt, progress
from surelabel.exceptions import SurelabelError

_log = logging.getLogger("surelabel")


@app.command()
def demo(
    *,
    out: Annotated[Path, typer.Option("--out", "-o", metavar="DIR", help="Folder of the model.")] = Path("demo"),
    download: Annotated[
        bool, typer.Option("--download/--no-download", help="Fetch Reuters news (6 MB); otherwise made-up texts.")
    ] = True,
    seconds: Annotated[float, typer.Option(min=0, help="Longest time to wait for the download.")] = 60.0,
) -> None:
    """Train a model on news, let it decide on texts that it has not seen, and print what that saves.

    \b
    Example:
      surelabel demo
    """
    from surelabel import models

    with progress():
        corpus, reason = _corpus(seconds if download else 0.0)
        bundle = models.train(corpus, out)
    evaluation = bundle.evaluation
    assert evaluation is not None  # both corpora have test texts
    if reason is not None:
        say(f"{reason}: these texts are made up.")
    what, others = ("Reuters news", "later ones") if reason is None else ("made-up texts", "others")
    n_train, n_tags, n_test = bundle.info.n_train, len(bundle.label_names), evaluation.n_texts
    say(f"Trained on {n_train:,} {what} with {n_tags} tags; measured on {n_test:,} {others}:")
    say()
    for line in _saved(evaluation.decisions):
        say(line)
    say()
    for text, record in _one_of_each(bundle, corpus):
        say(f"{'':<9} \N{LEFT DOUBLE QUOTATION MARK}{excerpt(text)[:76]}\N{RIGHT DOUBLE QUOTATION MARK}")
        say(card(record, width=min(console.width, 100)))
    say()
    say(f"See it in your browser:  {_program()} serve {out}")


def _saved(decisions: Any) -> list[str]:
    """Return what a person saves: texts filed, wrong ones among them, length of lists."""
    from surelabel.evaluation.summary import share

    filed, chosen, read = (decisions[kind] for kind in ("file", "choose", "read"))
    n_seen = chosen.n_texts + read.n_texts
    wrong = f"; {share(filed.wrong)} of them are wrong" if filed.n_texts else ""
    lists = f" of {chosen.n_tags:.1f} tags that miss {share(chosen.missed)} of the true ones" if chosen.n_texts else ""
    return [
        f"File      {share(filed.share)} of the texts: nobody has to read them{wrong}.",
        f"Choose    {share(chosen.share)}: one look at lists{lists}.",
        f"Read      {share(read.share)}: a person decides without a list.",
        f"          People look at {n_seen:,} texts instead of {filed.n_texts + n_seen:,}.",
    ]


def _corpus(seconds: float) -> tuple[Any, str | None]:
    """Return Reuters, or made-up texts and the reason."""
    from surelabel import corpora

    found: list[Any] = []
    if seconds > 0 or corpora.is_available_locally("reuters"):
        # A name server that does not answer has no time limit; a thread can be left behind.
        thread = threading.Thread(target=_fetch, args=(found,), daemon=True)
        thread.start()
        thread.join(max(seconds, 20.0))
    if found:
        return found[0], None
    return corpora.load("synthetic"), "Reuters is not on this machine and could not be fetched"


def _fetch(found: list[Any]) -> None:
    from surelabel import corpora

    try:
        found.append(corpora.load("reuters"))
    except (SurelabelError, OSError) as error:
        _log.debug("%s", error)


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
