"""Options that several commands share, as annotated types."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

import surelabel
from surelabel.cli.app import usage_error

if TYPE_CHECKING:
    from surelabel.corpora import Corpus
    from surelabel.models import Bundle
    from surelabel.review import ReviewStore

_log = logging.getLogger("surelabel")

Model = Annotated[Path, typer.Argument(metavar="MODEL", help="Folder of a model, made by surelabel train.")]
Labelled = Annotated[
    str,
    typer.Argument(
        metavar="FILE",
        help="Texts with labels: a .csv, .tsv, .jsonl, .parquet or .xlsx file (.gz as well), its URL, or a name from "
        "surelabel data list.",
        autocompletion=lambda: list(surelabel.corpora.available()),
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Seed = Annotated[int, typer.Option(min=0, help="Seed of random draws: parts and training.")]
# How texts are read.
Text = Annotated[
    list[str] | None,
    typer.Option("--text", metavar="COLUMN", help="Text column [default: text]; several are joined."),
]
Labels = Annotated[
    list[str] | None,
    typer.Option(
        "--labels",
        metavar="COLUMN",
        help="Label column [default: labels]; several times, FIRST..LAST or 'topic_*': columns of 0 and 1.",
    ),
]
Separator = Annotated[
    str,
    typer.Option(
        "--separator",
        help="Separator of labels in a cell; auto takes , ; or | and says which; none: a cell is one label.",
    ),
]
Id = Annotated[str | None, typer.Option("--id", metavar="COLUMN", help="Id column [default: id, if there is one].")]
Part = Annotated[
    str | None,
    typer.Option("--split-column", metavar="COLUMN", help="Column with the part: train, filing, calibration or test."),
]
Scores = Annotated[
    str | None,
    typer.Option(
        "--scores", metavar="COLUMN|FILE", help="Scores of another tagger: a column, or a file of id, label and score."
    ),
]
Encoding = Annotated[str, typer.Option("--encoding", help="Encoding of a text file.")]
InputFormat = Annotated[
    Literal["txt", "jsonl", "csv", "tsv", "parquet", "xlsx"] | None,
    typer.Option("--input-format", help="Format of the input, if its name does not show it."),
]
OnError = Annotated[
    Literal["stop", "skip"], typer.Option("--on-error", help="On unreadable rows: stop, or skip and list them.")
]
By = Annotated[
    str | None, typer.Option("--by", metavar="COLUMN", help="Keep the promise in every group: a column of groups.")
]
# Promises: decimals as they are typed.
MaxWrong = Annotated[
    str | None,
    typer.Option(metavar="SHARE", help="How often may it be wrong: share of filed texts [default: 0.05]."),
]
MaxMissed = Annotated[
    str | None, typer.Option(metavar="SHARE", help="Share of true tags that lists may leave out [default: 0.1].")
]
MaxFalse = Annotated[
    str | None, typer.Option(metavar="SHARE", help="Share of assigned tags that may be false [default: 0.05].")
]
Assurance = Annotated[
    str | None, typer.Option(metavar="SHARE", help="Probability that no more filed texts are wrong [default: 0.95].")
]
Significance = Annotated[
    str | None, typer.Option("--significance", "-s", help="Also give prediction sets: share of texts they may miss.")
]
# Addresses.
Host = Annotated[str, typer.Option(help="Address to listen on; one that other machines can reach needs a token.")]
Port = Annotated[int, typer.Option(min=0, max=65_535, help="Port; 0 takes a free one.")]
Token = Annotated[
    str | None, typer.Option(envvar="SURELABEL_TOKEN", help="Token that clients must send.", show_envvar=True)
]


def given(**options: Any) -> dict[str, Any]:
    """Return the options that were given: neither None nor an empty list."""
    return {name: value for name, value in options.items() if value is not None and value != []}


def settings(typed: list[str] | None) -> dict[str, Any]:
    """Return settings from NAME=VALUE: a value is JSON, otherwise a string; levels stay as they are typed."""
    found: dict[str, Any] = {}
    for each in typed or []:
        name, equals, value = each.partition("=")
        if not equals or not name:
            raise usage_error(f"expected NAME=VALUE; got {each!r}", "--setting")
        try:
            found[name] = value if name in {"name", "significance"} else json.loads(value)
        except ValueError:
            found[name] = value
    return found


def is_file(source: str) -> bool:
    """Whether a source is a file or URL, not the name of a known corpus."""
    return Path(source).is_file() or source not in surelabel.corpora.available()


def columns(source: str, text: list[str] | None, labels: list[str] | None) -> dict[str, Any]:
    """Return the text and label columns of a file; a known corpus has none."""
    usual = {"text": text, "labels": labels}
    if not is_file(source):
        _refuse(source, given(**usual))
        return {}
    return {name: name if not typed else typed[0] if len(typed) == 1 else typed for name, typed in usual.items()}


def reading(source: str, **typed: Any) -> dict[str, Any]:
    """Return the options that differ from their defaults; a known corpus has none."""
    if typed.get("separator") == r"\t":  # a shell makes it hard to type a tab
        typed["separator"] = "\t"
    changed = {name: value for name, value in given(**typed).items() if _DEFAULTS.get(name) != value}
    if changed and not is_file(source):
        _refuse(source, changed)
    if changed.get("separator") == "none":
        changed["separator"] = None
    return changed


_DEFAULTS = {"separator": "auto", "encoding": "utf-8", "on_error": "stop"}
_NAMES = {"part": "split-column", "on_error": "on-error"}


def _refuse(source: str, options: dict[str, Any]) -> None:
    for name in options:
        raise usage_error(f"{source} is no file: this option has no effect on it", f"--{_NAMES.get(name, name)}")


def load_labelled(source: str, bundle: Bundle | None = None, **asked: Any) -> Corpus:
    """Load texts with labels, with the column of the model's groups; no parts are drawn."""
    if not is_file(source):
        return surelabel.corpora.load(source, seed=0 if bundle is None else bundle.info.seed)
    group = None if bundle is None else bundle.info.group_column
    corpus = surelabel.corpora.read_table(source, columns=(group,) if group else (), **asked)
    print_notes(corpus)
    return corpus


def print_notes(corpus: Corpus) -> None:
    """Log how a file was read."""
    for note in corpus.notes:
        _log.info("%s", note)


def open_review(store: str, option: str = "STORE") -> ReviewStore:
    """Open a review that exists."""
    if "://" not in store and not Path(store).is_file():
        raise usage_error(f"there is no review {store!r}; surelabel review makes one", option)
    return surelabel.review.ReviewStore(store)
