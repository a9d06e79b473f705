"""The options of commands that read a corpus or texts: which columns, which separator, which encoding."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from surelabel.bundles import Bundle
    from surelabel.corpora import Corpus

__all__ = ["CorpusName", "Encoding", "Id", "Labels", "Separator", "SplitColumn", "Text", "load_corpus"]


def _corpus_names() -> list[str]:
    """Return the names for the shell's completion."""
    from surelabel import corpora  # noqa: PLC0415

    return list(corpora.available())


CorpusName = Annotated[
    str,
    typer.Argument(
        metavar="CORPUS",
        help="A known name (surelabel data list), or a .jsonl, .csv, .tsv or .parquet file (.gz as well).",
        autocompletion=_corpus_names,
    ),
]
Text = Annotated[
    list[str] | None, typer.Option("--text", help="Text column of a file [default: text]; several are joined.")
]
Labels = Annotated[
    list[str] | None,
    typer.Option(
        "--labels",
        help="Label column of a file [default: labels]; several times: columns of 0 and 1, named as the labels.",
    ),
]
Separator = Annotated[str, typer.Option("--separator", help="Between the label names in a cell.")]
Id = Annotated[str | None, typer.Option("--id", help="Column that tells texts apart [default: id, if there is one].")]
Encoding = Annotated[str, typer.Option("--encoding", help="Encoding of a text file.")]
SplitColumn = Annotated[
    str | None,
    typer.Option("--split-column", help="Column of a file that says train, validation, calibration or test."),
]


def load_corpus(
    name: str,
    *,
    seed: int,
    text: list[str] | None,
    labels: list[str] | None,
    separator: str,
    id: str | None,  # noqa: A002  # the column's name in most data
    encoding: str,
    split_column: str | None,
    bundle: Bundle | None = None,
) -> Corpus:
    """Load a corpus by name or from a user's file.

    Parts are drawn from a file to train a model, and again where it is the file that `bundle` was trained on; of
    any other file all texts are new to that bundle.
    """
    from surelabel import corpora  # noqa: PLC0415

    if name in corpora.available() and not Path(name).is_file():
        return corpora.load(name, seed=seed)
    options: dict[str, Any] = {
        "text": (text[0] if len(text) == 1 else text) if text else "text",
        "labels": (labels[0] if len(labels) == 1 else labels) if labels else "labels",
        "separator": separator.encode().decode("unicode_escape") if separator == r"\t" else separator,
        "encoding": encoding,
    }
    options |= {"id": id} if id else {}
    options |= {"part": split_column} if split_column else {}
    if bundle is not None:
        from surelabel.pipeline import is_same_source  # noqa: PLC0415

        whole = corpora.load(name, seed=seed, test=0, validation=0, calibration=0, **options)
        if not is_same_source(bundle, whole):
            return whole
    return corpora.load(name, seed=seed, **options)
