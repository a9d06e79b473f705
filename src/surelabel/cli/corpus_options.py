"""The options of commands that read a corpus or texts: which columns, which separator, which encoding."""

from __future__ import annotations

import dataclasses
import functools
import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

if TYPE_CHECKING:
    from surelabel.corpora import Corpus
    from surelabel.corpora.tabular import Event
    from surelabel.models import Bundle

__all__ = ["Encoding", "GivenCorpus", "Id", "PartSize", "PartsSeed", "Separator", "Text", "as_size", "takes_corpus"]


def _corpus_names() -> list[str]:
    """Return the names for the shell's completion."""
    from surelabel import corpora  # noqa: PLC0415

    return list(corpora.available())


CorpusName = Annotated[
    str,
    typer.Argument(
        metavar="CORPUS",
        help="A known name (surelabel data list), or a .jsonl, .csv, .tsv, .parquet or .xlsx file (.gz as well).",
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
NumericLabels = Annotated[bool, typer.Option("--numeric-labels", help="Numbers in the label column are names.")]
Id = Annotated[str | None, typer.Option("--id", help="Column that tells texts apart [default: id, if there is one].")]
Encoding = Annotated[str, typer.Option("--encoding", help="Encoding of a text file.")]
OnError = Annotated[
    Literal["stop", "skip"],
    typer.Option("--on-error", help="What a row that cannot be read leads to: stop, or skip it and name it."),
]
SplitColumn = Annotated[
    str | None,
    typer.Option("--split-column", help="Column of a file that says train, validation, calibration or test."),
]
PartSize = Annotated[
    str | None,
    typer.Option(
        metavar="N|SHARE",
        help="Texts of a file to draw for this part: a number, or a share below 1 "
        "[default: test 0.2, validation 0.1, calibration 0.15].",
    ),
]
PartsSeed = Annotated[int | None, typer.Option(min=0, help="Of the parts [default: that of training].")]


@dataclasses.dataclass(frozen=True)
class GivenCorpus:
    """A corpus as the user named it: a known name or a file, and how the file is to be read.

    Its fields are what `takes_corpus` adds to a command, in this order and with these defaults.
    """

    corpus: CorpusName
    text: Text = None
    labels: Labels = None
    separator: Separator = ","
    numeric_labels: NumericLabels = False
    id_column: Id = None
    encoding: Encoding = "utf-8"
    split_column: SplitColumn = None
    on_error: OnError = "stop"

    def load(
        self,
        seed: int | None,
        bundle: Bundle | None = None,
        sizes: Mapping[str, Any] | None = None,
        columns: Sequence[str | None] = (),
    ) -> Corpus:
        """Load the corpus, with further columns that are kept with its texts.

        Parts are drawn from a file to train a model, in `sizes` if they are given, and in the same sizes again
        if it is the file that `bundle` was trained on; of any other file all texts are new to that bundle. They are
        drawn with `seed`, or else with that of training.
        """
        from surelabel import corpora  # noqa: PLC0415

        if seed is None:
            seed = (bundle.info.seed if bundle is not None else None) or 0
        more = tuple(column for column in columns if column is not None)
        if not self.is_file:
            if more:
                raise typer.BadParameter(
                    f"it is for files; {self.corpus} has no column {more[0]!r}", param_hint="CORPUS"
                )
            if sizes:
                raise typer.BadParameter(
                    f"it is for files; the parts of {self.corpus} have fixed sizes", param_hint=f"--{next(iter(sizes))}"
                )
            return corpora.load(self.corpus, seed=seed)
        if bundle is not None:
            from surelabel.models import is_same_source  # noqa: PLC0415

            none_drawn: dict[str, Any] = {"test": 0, "validation": 0, "calibration": 0}
            whole = corpora.load(self.corpus, seed=seed, columns=more, **none_drawn, **self._reading())
            if not is_same_source(bundle, whole):
                return whole
            sizes = bundle.info.drawn
        return corpora.load(self.corpus, seed=seed, columns=more, **(sizes or {}), **self._reading())

    @property
    def is_file(self) -> bool:
        """Whether it is a file, not the name of a known corpus."""
        from surelabel import corpora  # noqa: PLC0415

        return Path(self.corpus).is_file() or self.corpus not in corpora.available()

    def events(self, group: str | None = None) -> Iterator[Event]:
        """Return the rows of the file as a stream of texts and of labels that become known; `group` is a column."""
        from surelabel.corpora.tabular import read_events  # noqa: PLC0415

        if self.split_column is not None:
            raise typer.BadParameter("a stream has no parts", param_hint="--split-column")
        return read_events(self.corpus, **self._reading(), group=group)

    def load_whole(self) -> Corpus:
        """Load the corpus with its own parts alone: none is drawn."""
        from surelabel import corpora  # noqa: PLC0415

        reading = self._reading() if self.is_file else {}
        return corpora.load(self.corpus, test=0, validation=0, calibration=0, **reading)

    def _reading(self) -> dict[str, Any]:
        """Return how a file is read, as `corpora.load` is told it."""
        reading: dict[str, Any] = {
            "text": _one_or_all(self.text, "text"),
            "labels": _one_or_all(self.labels, "labels"),
            "separator": "\t" if self.separator == r"\t" else self.separator,
            "encoding": self.encoding,
        }
        reading |= {"id": self.id_column} if self.id_column else {}
        reading |= {"numeric_labels": True} if self.numeric_labels else {}
        reading |= {"on_error": self.on_error} if self.on_error != "stop" else {}
        return reading | ({"part": self.split_column} if self.split_column else {})


def as_size(given: str | None, option: str) -> int | float | None:
    """Return a part's size as it was typed: a number of texts, a share below 1, or None if not given."""
    if given is None:
        return None
    try:
        size = int(given) if given.isdecimal() else float(given)
    except ValueError:
        size = -1.0
    if not (isinstance(size, int) or 0.0 <= size < 1.0):
        raise typer.BadParameter(
            f"expected a number of texts, or a share of them below 1; got {given!r}", param_hint=option
        )
    return size


def _one_or_all(columns: list[str] | None, default: str) -> str | list[str]:
    """Return the one column that is named, all of several, or the default."""
    columns = columns or [default]
    return columns[0] if len(columns) == 1 else columns


def takes_corpus(command: Callable[..., None]) -> Callable[..., None]:
    """Let a command's argument `corpus`, a `GivenCorpus`, be an argument and options on the command line.

    The options stand before `--seed` or, in a command that draws nothing, before `--json`.
    """
    own = inspect.signature(command, eval_str=True)
    given = dict(inspect.signature(GivenCorpus, eval_str=True).parameters)
    argument, *options = given.values()
    parameters: list[inspect.Parameter] = []
    for parameter in own.parameters.values():
        if parameter.name == ("seed" if "seed" in own.parameters else "as_json"):
            parameters += [option.replace(kind=inspect.Parameter.KEYWORD_ONLY) for option in options]
        parameters.append(argument if parameter.name == argument.name else parameter)

    @functools.wraps(command)
    def with_options(**values: Any) -> None:
        command(corpus=GivenCorpus(**{name: values.pop(name) for name in given}), **values)

    vars(with_options)["__signature__"] = own.replace(parameters=parameters)
    with_options.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return with_options
