"""Options that several commands share, and groups of options that a command takes as one parameter."""

from __future__ import annotations

import dataclasses
import functools
import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_args

import typer

import surelabel
from surelabel.cli.application import Debug, Quiet, app

if TYPE_CHECKING:
    import surelabel.corpora.tabular
    import surelabel.models.settings
    from surelabel.corpora import Corpus
    from surelabel.corpora.tabular import Event
    from surelabel.models import Bundle, DecisionSettings, Division
    from surelabel.review import ReviewStore

ModelFolder = Annotated[Path, typer.Argument(metavar="DIR", help="Folder of a model, made by surelabel train.")]
CorpusName = Annotated[
    str,
    typer.Argument(
        metavar="CORPUS",
        help="A known name (surelabel data list), or a .jsonl, .csv, .tsv, .parquet or .xlsx file (.gz as well).",
        autocompletion=lambda: list(surelabel.corpora.available()),
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON, also on a terminal.")]
Seed = Annotated[int, typer.Option(min=0, help="Seed of all random draws: parts, training.")]
PartsSeed = Annotated[int | None, typer.Option(min=0, help="Seed of the parts [default: that of training].")]
Text = Annotated[
    list[str] | None, typer.Option("--text", help="Text column of a file [default: text]; several are joined.")
]
Separator = Annotated[str, typer.Option("--separator", help="Separator of label names in a cell.")]
Id = Annotated[str | None, typer.Option("--id", help="Column that tells texts apart [default: id, if there is one].")]
Encoding = Annotated[str, typer.Option("--encoding", help="Encoding of a text file.")]
AdaptSignificance = Annotated[
    str | None, typer.Option("--significance", "-s", help="With --adapt: share of errors to keep [default: 0.05].")
]


def _as_option(parameter: inspect.Parameter) -> inspect.Parameter:
    """Return a parameter that is annotated with its type, help and perhaps metavar as an option; a flag has no --no."""
    kind, *more = get_args(parameter.annotation) or (None,)
    if not more or not isinstance(more[0], str):
        return parameter
    names = [f"--{parameter.name.replace('_', '-')}"] if kind is bool else []
    option = typer.Option(*names, help=more[0], metavar=more[1] if len(more) > 1 else None)
    return parameter.replace(annotation=Annotated[kind, option])


def command(name: str | None = None, group: typer.Typer = app) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Make a function a command, with --quiet and --debug.

    A parameter that is annotated with a string is an option with that help, and with a second string as its metavar.
    One whose type is a dataclass becomes one option per field.
    """

    def made(function: Callable[..., None]) -> Callable[..., None]:
        own = inspect.signature(function, eval_str=True)
        groups: dict[str, tuple[type, list[str]]] = {}
        parameters: list[inspect.Parameter] = []
        for parameter in own.parameters.values():
            if dataclasses.is_dataclass(parameter.annotation) and isinstance(parameter.annotation, type):
                fields = inspect.signature(parameter.annotation, eval_str=True).parameters
                groups[parameter.name] = parameter.annotation, list(fields)
                parameters += [field.replace(kind=inspect.Parameter.KEYWORD_ONLY) for field in fields.values()]
            else:
                parameters.append(parameter)
        for shared, annotation in (("quiet", Quiet), ("debug", Debug)):
            option = inspect.Parameter(shared, inspect.Parameter.KEYWORD_ONLY, default=False, annotation=annotation)
            parameters.append(option)

        @functools.wraps(function)
        def with_options(*, quiet: bool, debug: bool, **values: Any) -> None:
            for given, (kind, fields) in groups.items():
                values[given] = kind(**{field: values.pop(field) for field in fields})
            function(**values)

        parameters = [_as_option(parameter) for parameter in parameters]
        vars(with_options)["__signature__"] = own.replace(parameters=parameters)
        with_options.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
        return group.command(name)(with_options)

    return made


def opened_review(store: str, option: str = "STORE") -> ReviewStore:
    """Open a review that is there."""
    if "://" not in store and not Path(store).is_file():
        raise typer.BadParameter(f"there is no review {store!r}; surelabel review makes one", param_hint=option)
    return surelabel.review.ReviewStore(store)


def as_separator(given: str) -> str:
    """Return a separator as it was meant: a shell makes it hard to type a tab."""
    return "\t" if given == r"\t" else given


@dataclasses.dataclass(frozen=True)
class Reading:
    """How a file of texts with labels is read; the names of known corpora need none of it."""

    text: Text = None
    labels: Annotated[
        list[str] | None,
        "Label column of a file [default: labels]; several times, FIRST..LAST or 'topic_*': columns of 0 and 1, named "
        "as the labels.",
    ] = None
    separator: Annotated[str, "Separator of label names in a cell; auto: whichever of , ; | most cells have."] = "auto"
    numeric_labels: Annotated[bool, "Numbers in the label column are names."] = False
    id_column: Id = None
    encoding: Encoding = "utf-8"
    split_column: Annotated[str | None, "Column of a file that says train, validation, calibration or test."] = None
    on_error: Annotated[
        Literal["stop", "skip"], "What a row that cannot be read leads to: stop, or skip it and name it."
    ] = "stop"

    def load(
        self,
        corpus: str,
        seed: int | None,
        bundle: Bundle | None = None,
        sizes: Mapping[str, Any] | None = None,
        columns: Sequence[str | None] = (),
    ) -> Corpus:
        """Load a corpus, with further columns that are kept with its texts.

        Parts are drawn from a file to train a model, in `sizes` if they are given, and in the same sizes again
        if it is the file that `bundle` was trained on; of any other file all texts are new to that bundle. They are
        drawn with `seed`, or else with that of training.
        """
        if seed is None:
            seed = (bundle.info.seed if bundle is not None else None) or 0
        more = tuple(column for column in columns if column is not None)
        if not is_file(corpus):
            if more:
                raise typer.BadParameter(f"{corpus} is not a file and has no column {more[0]!r}", param_hint="CORPUS")
            if sizes:
                what = f"this option is for files; the parts of {corpus} have fixed sizes"
                raise typer.BadParameter(what, param_hint=f"--{next(iter(sizes))}")
            return surelabel.corpora.load(corpus, seed=seed)
        if bundle is not None:
            whole = self.load_whole(corpus, seed=seed, columns=more)
            if not surelabel.models.is_same_source(bundle, whole):
                return whole
            sizes = bundle.info.drawn
        reading = {**self._options(), **(sizes or {})}
        return surelabel.corpora.load(corpus, seed=seed, columns=more, part=self.split_column, **reading)

    def load_whole(self, corpus: str, **options: Any) -> Corpus:
        """Load a corpus with its own parts alone: none is drawn."""
        reading = {**self._options(), "part": self.split_column} if is_file(corpus) else {}
        return surelabel.corpora.load(corpus, test=0, validation=0, calibration=0, **options, **reading)

    def events(self, corpus: str, group: str | None = None) -> Iterator[Event]:
        """Return the rows of a file as a stream of texts and of labels that become known; `group` is a column."""
        if self.split_column is not None:
            raise typer.BadParameter("a stream has no parts", param_hint="--split-column")
        return surelabel.corpora.tabular.read_events(corpus, **self._options(), group=group)

    def _options(self) -> dict[str, Any]:
        """Return the options of `corpora.load` for a file."""
        text, labels = self.text or ["text"], self.labels or ["labels"]
        return {
            "text": text[0] if len(text) == 1 else text,
            "labels": labels[0] if len(labels) == 1 else labels,
            "separator": as_separator(self.separator),
            "encoding": self.encoding,
            "id": self.id_column or None,
            "numeric_labels": self.numeric_labels,
            "on_error": self.on_error,
        }


def is_file(corpus: str) -> bool:
    """Whether a corpus is a file, not the name of a known corpus."""
    return Path(corpus).is_file() or corpus not in surelabel.corpora.available()


@dataclasses.dataclass(frozen=True)
class Categories:
    """How a model is calibrated by categories."""

    by: Annotated[str | None, "Keep the promise in every group: a column such as source or customer.", "COLUMN"] = None
    by_cardinality: Annotated[bool, "Keep the promise for label-sets of one, two, and three or more labels."] = False
    cardinality_edges: Annotated[str | None, "The same, with kinds that begin at other numbers of labels.", "N,N"] = (
        None
    )
    by_rarity: Annotated[bool, "Keep the promise for label-sets of rare labels too (10, 100 training texts)."] = False
    rarity_edges: Annotated[
        str | None, "The same, with kinds that begin at other numbers of training texts.", "N,N"
    ] = None
    min_texts: Annotated[
        int,
        typer.Option(
            min=0,
            help="Join categories with fewer calibration texts: groups into 'other groups', kinds with the next one "
            "[default: join none].",
        ),
    ] = 0

    def division(self) -> Division | None:
        """Return the division that is asked for, None if there is none."""
        usual = surelabel.models.settings
        cardinality = _edges(self.cardinality_edges, "--cardinality-edges", self.by_cardinality, usual.CARDINALITIES)
        rarity = _edges(self.rarity_edges, "--rarity-edges", self.by_rarity, usual.RARITIES)
        if not (self.by or cardinality or rarity or self.min_texts):
            return None
        return surelabel.models.Division(self.by, cardinality, rarity, self.min_texts)


def _edges(given: str | None, option: str, is_asked: bool, usual: tuple[int, ...]) -> tuple[int, ...]:
    """Return whole numbers from a list such as 1,2,3; the usual ones if none are given but asked for."""
    if given is None:
        return usual if is_asked else ()
    try:
        return tuple(int(number) for number in given.split(","))
    except ValueError:
        raise typer.BadParameter(f"expected whole numbers such as 1,2,3; got {given!r}", param_hint=option) from None


@dataclasses.dataclass(frozen=True)
class Promises:
    """What is promised about decisions."""

    max_wrong: Annotated[str | None, "Share of wrong texts among those that are filed [default: 0.05].", "SHARE"] = None
    assurance: Annotated[str | None, "Probability that no more are wrong [default: 0.95].", "SHARE"] = None
    max_missed: Annotated[
        str | None,
        "Share of true tags that tags to consider may miss [default: 0.05; up to 0.2 if that makes lists short].",
        "SHARE",
    ] = None
    max_false: Annotated[str | None, "Share of tags to assign that may be false [default: 0.05].", "SHARE"] = None
    max_choices: Annotated[
        int | None, typer.Option(min=1, help="Longest list of label-sets that a person chooses from [default: 9].")
    ] = None

    def given(self) -> dict[str, Any]:
        """Return the promises that were asked for, by their names in `DecisionSettings`."""
        values = {name: value for name, value in vars(self).items() if value is not None}
        return values if self.max_choices is None else {**values, "max_tags": self.max_choices}

    def instead_of(self, usual: DecisionSettings) -> DecisionSettings:
        """Return what is promised: as given, else as usual."""
        return dataclasses.replace(usual, **self.given())
