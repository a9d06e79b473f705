"""Options that several commands share, as annotated types, and how texts with labels are read."""

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


def option(words: str, *names: str, **more: Any) -> Any:
    """Return an option whose help is `words`."""
    return typer.Option(*names, help=words, **more)


def argument(words: str, metavar: str | None = None, **more: Any) -> Any:
    """Return an argument whose help is `words`."""
    return typer.Argument(help=words, metavar=metavar, **more)


Model = Annotated[Path, argument("Folder of a model, made by surelabel train.", "MODEL")]
Labelled = Annotated[
    str,
    argument(
        "Texts with labels: a .csv, .tsv, .jsonl, .parquet or .xlsx file (.gz as well), its URL, or a name from "
        "surelabel data list.",
        "FILE",
        autocompletion=lambda: list(surelabel.corpora.available()),
    ),
]
Store = Annotated[str, argument("File of a review, or postgresql://user@host/database.", "STORE")]
Json = Annotated[bool, option("Print JSON.", "--json")]
Seed = Annotated[int, option("Seed of random draws: parts and training.", min=0)]
Settings = Annotated[list[str] | None, option("A setting of the classifier.", metavar="NAME=VALUE")]
# How texts are read.
Text = Annotated[
    list[str] | None, option("Text column [default: text]; several are joined.", "--text", metavar="COLUMN")
]
Labels = Annotated[
    list[str] | None,
    option(
        "Label column [default: labels]; several times, FIRST..LAST or 'topic_*': columns of 0 and 1.",
        "--labels",
        metavar="COLUMN",
    ),
]
Separator = Annotated[
    str | None,
    option(
        "Separator of labels in a cell; auto takes , ; or | and says which; none: a cell is one label [default: auto].",
        "--separator",
    ),
]
Id = Annotated[str | None, option("Id column [default: id, if there is one].", "--id", metavar="COLUMN")]
By = Annotated[str | None, option("Column of groups [default: that of calibration].", "--by", metavar="COLUMN")]
Scores = Annotated[
    str | None, option("Scores of another tagger: a column, or a file of id, label and score.", metavar="COLUMN|FILE")
]
Encoding = Annotated[str | None, option("Encoding of a text file [default: utf-8].", "--encoding")]
InputFormat = Annotated[
    Literal["txt", "jsonl", "csv", "tsv", "parquet", "xlsx"] | None,
    option("Format of the input, if its name does not show it.", "--input-format"),
]
OnError = Annotated[
    Literal["stop", "skip"] | None, option("On unreadable rows: stop, or skip and list them [default: stop].")
]
# Promises: decimals as they are typed.
MaxWrong = Annotated[str | None, option("Share of filed texts that may be wrong [default: 0.05].", metavar="SHARE")]
MaxMissed = Annotated[
    str | None, option("Share of true tags that lists may leave out [default: 0.1].", metavar="SHARE")
]
MaxFalse = Annotated[str | None, option("Share of assigned tags that may be false [default: 0.05].", metavar="SHARE")]
Assurance = Annotated[
    str | None, option("Probability that --max-wrong holds for this model [default: 0.95].", metavar="SHARE")
]
NeverFile = Annotated[
    list[str] | None, option("A label that is never filed: people see its texts.", "--never-file", metavar="LABEL")
]
# Addresses.
Host = Annotated[str, option("Address to listen on; one that other machines can reach needs a token.")]
Port = Annotated[int, option("Port; 0 takes a free one.", min=0, max=65_535)]
Token = Annotated[str | None, option("Token that clients must send.", envvar="SURELABEL_TOKEN", show_envvar=True)]


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


def reading(**typed: Any) -> dict[str, Any]:
    """Return how a file is read, as the options of `corpora.read_table`; none for what was not typed."""
    asked = given(**typed)
    for name in {"text", "labels"} & set(asked):
        if len(asked[name]) == 1:
            [asked[name]] = asked[name]
    if "separator" in asked:  # a shell makes it hard to type a tab
        asked["separator"] = {"none": None, r"\t": "\t"}.get(asked["separator"], asked["separator"])
    return asked


def load_labelled(source: str, bundle: Bundle | None = None, **asked: Any) -> Corpus:
    """Load texts with labels, with the column of the model's groups; no parts are drawn. Log how they were read."""
    if bundle is not None and bundle.info.group_column is not None:
        asked["columns"] = (bundle.info.group_column,)
    corpus = surelabel.corpora.load(source, parts="own", seed=0 if bundle is None else bundle.info.seed, **asked)
    for note in corpus.notes:
        _log.info("%s", note)
    return corpus


def open_review(store: str) -> ReviewStore:
    """Open a review that exists."""
    if "://" not in store and not Path(store).is_file():
        raise usage_error(f"there is no review {store!r}; surelabel review makes one", "STORE")
    return surelabel.review.ReviewStore(store)
