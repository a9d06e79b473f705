"""The corpora that have names, and one function that loads any corpus, also from a user's file."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from surelabel.corpora.aapd import read_aapd
from surelabel.corpora.corpus import Corpus
from surelabel.corpora.ctdc import read_ctdc
from surelabel.corpora.download import DATA_VARIABLE, as_path, cache_folder, locate
from surelabel.corpora.goemotions import read_goemotions
from surelabel.corpora.reuters import NAMES as REUTERS_NAMES
from surelabel.corpora.reuters import find_reuters, read_reuters
from surelabel.corpora.split import Size, draw_parts, reduce_labels, stratified_parts
from surelabel.corpora.synthetic import generate_synthetic
from surelabel.corpora.table import FORMATS, read_table
from surelabel.exceptions import CorpusError, InvalidInputError


@dataclass(frozen=True)
class _Named:
    """A named corpus: its reader, the names of its files, the reader's settings, and the parts of the paper."""

    description: str
    read: Callable[..., Corpus]
    files: tuple[str, ...] = ()
    settings: Mapping[str, Any] = field(default_factory=dict)
    paper: Mapping[str, Size] = field(default_factory=dict)
    licence: str | None = None


_USUAL = {"test": 0.2, "validation": 0.1, "calibration": 0.15}
_NAMED = {
    "reuters": _Named(
        "Reuters-21578 news, ModApte: 90 labels, 7,770 + 3,019 texts; fetched if it is not there",
        read_reuters,
        REUTERS_NAMES,
        paper={"validation": 1_000, "calibration": 999},
    ),
    "aapd": _Named(
        "AAPD, arXiv abstracts: 54 labels, 55,840 texts, own parts; from a folder",
        read_aapd,
        ("aapd", "AAPD", "aapd-dev-test"),
        paper={"calibration": 4_999},
    ),
    "ctdc": _Named(
        "CTDC 2.0, Czech news: 60 labels, 11,955 texts, five folds; from its archive or folder",
        read_ctdc,
        ("ctdc-main.tar.xz", "ctdc", "CTDC", "czech_text_document_corpus_v20"),
        paper={"validation": 0.1, "calibration": 999},
    ),
    "goemotions": _Named(
        "GoEmotions, short comments: 28 labels, 54,263 texts, own parts; from a folder",
        read_goemotions,
        ("goemotions",),
        paper={"calibration": 999},
    ),
    "arxiv": _Named(
        "arXiv abstracts of 2025-26: 57 labels, 79,647 texts; from arxiv2025.jsonl.gz",
        read_table,
        ("arxiv2025.jsonl.gz", "arxiv2025.jsonl"),
        {"text": ("title", "text")},
        {"test": 10_000, "validation": 5_000, "calibration": 4_999},
        "abstracts belong to their authors; metadata CC0",
    ),
    "eurlex57k": _Named(
        "EURLEX57K, EU laws: 4,271 EuroVoc labels, 57,000 texts, own parts; from eurlex57k.jsonl.xz",
        read_table,
        ("eurlex57k.jsonl.xz", "eurlex57k.jsonl.gz", "eurlex57k.jsonl"),
        {"text": ("title", "text"), "part": "part"},
        {"calibration": 4_999},
        "European Union, reuse permitted with the source named",
    ),
    "debian-czech": _Named(
        "Czech package descriptions of Debian: 147 labels, 1,948 texts; from debian-czech.jsonl.gz",
        read_table,
        ("debian-czech.jsonl.gz", "debian-czech.jsonl"),
        paper={"test": 0.2, "validation": 0.15, "calibration": 299},
        licence="free software, under the licences of the Debian descriptions",
    ),
    "synthetic": _Named(
        "made up from a seed: 24 labels, 2,000 texts or as many as asked for; needs no files",
        generate_synthetic,
        paper=_USUAL,
    ),
}
_REDUCED = {f"{name}20": name for name in ("reuters", "aapd", "ctdc", "arxiv", "debian-czech")}


def available() -> dict[str, str]:
    """Return the names of corpora with a description of one line each."""
    names = {name: named.description for name, named in _NAMED.items()}
    return names | {name: f"the texts of the 20 most frequent labels of {whole}" for name, whole in _REDUCED.items()}


def is_available_locally(name: str) -> bool:
    """Whether a named corpus can be loaded without fetching anything."""
    whole = _REDUCED.get(name, name)
    if whole not in _NAMED:
        raise InvalidInputError(f"A corpus must be one of {', '.join(available())}. Got {name!r}.")
    return not _NAMED[whole].files or locate(_NAMED[whole].files)[0] is not None


def load(
    name_or_path: str | os.PathLike[str] | Mapping[str, str | Path],
    *,
    path: str | Path | None = None,
    seed: int = 0,
    parts: str = "random",
    filing: Size | None = None,
    calibration: Size | None = None,
    test: Size | None = None,
    download: bool = True,
    **options: Any,
) -> Corpus:
    """Load a corpus by name, or from a user's file, with its parts.

    Parameters
    ----------
    name_or_path : str, path, or mapping of part name to path
        A name of `available`, a file of `read_table`, or one such file per part. A file in the current folder wins
        over a corpus of the same name.
    path : path, optional
        Where a named corpus lies. Default: the folder that SURELABEL_DATA names, then the cache folder; Reuters is
        then fetched, if `download` allows.
    seed : int, default=0
        The seed of parts that are drawn, and of the synthetic corpus.
    parts : {"random", "paper", "own"}, default="random"
        "random" draws filing, calibration and test parts that the corpus does not have, as `draw_parts` does;
        "paper" draws the paper's stratified parts, for its experiments; "own" draws none.
    filing, calibration, test : int or float, optional
        Sizes for "random", as in `draw_parts`.
    **options
        Of the reader: those of `read_table` for a file; `fold` of ctdc; `n_texts` and `n_labels` of synthetic.

    Examples
    --------
    >>> from surelabel import corpora
    >>> corpora.load("synthetic", n_texts=1_000)
    Corpus 'synthetic': 1,000 texts, 24 labels (train 700, filing 100, calibration 100, test 100)
    """
    sizes = {"filing": filing, "calibration": calibration, "test": test}
    if parts not in {"random", "paper", "own"} or (parts != "random" and set(sizes.values()) != {None}):
        raise InvalidInputError(f"The parts must be 'random', 'paper' or 'own', sizes for 'random'. Got {parts!r}.")
    asked = name_or_path if isinstance(name_or_path, str) and not Path(name_or_path).is_file() else ""
    is_reduced, name = asked in _REDUCED, _REDUCED.get(asked, asked)
    is_named = name in _NAMED
    corpus = _named(name, path, seed, options, download=download) if is_named else _own(name_or_path, path, options)
    wanted = _NAMED[name].paper if is_named else _USUAL
    if is_reduced and parts == "paper" and "test" in wanted:
        corpus = _paper_parts(corpus, {"test": wanted["test"]}, seed)
    corpus = reduce_labels(corpus) if is_reduced else corpus
    if parts == "paper":
        return _paper_parts(corpus, wanted, seed)
    return draw_parts(corpus, seed, **sizes) if parts == "random" else corpus


def _paper_parts(corpus: Corpus, sizes: Mapping[str, Size], seed: int) -> Corpus:
    """Draw the parts of the paper that a corpus does not have, if it has texts to draw from."""
    missing = {part: size for part, size in sizes.items() if part not in corpus.part_sizes}
    return stratified_parts(corpus, missing, seed) if "train" in corpus.part_sizes else corpus


def _named(name: str, path: str | Path | None, seed: int, options: Mapping[str, Any], *, download: bool) -> Corpus:
    """Find and read a corpus that has a name."""
    named = _NAMED[name]
    settings = {**named.settings, **options}
    if name == "synthetic":
        return _read(name, named.read, seed=seed, **settings)
    if name == "reuters":
        return _read(name, named.read, find_reuters(path, download=download), **settings)
    found, tried = (as_path(path), []) if path is not None else locate(named.files)
    if found is None:
        listed = "\n".join(f"  - {place}" for place in tried)
        raise CorpusError(
            f"Corpus {name!r} could not be found. Tried:\n{listed}\nGive its path, or put {named.files[0]!r} into the "
            f"folder that {DATA_VARIABLE} names, or into {cache_folder()}."
        )
    corpus = replace(_read(name, named.read, found, **settings), name=name)
    licence = named.licence or corpus.provenance.licence
    return replace(corpus, provenance=replace(corpus.provenance, licence=licence))


def _own(source: Any, path: str | Path | None, options: Mapping[str, Any]) -> Corpus:
    """Read a user's own file or files."""
    if path is not None or not isinstance(source, str | os.PathLike | Mapping):
        raise InvalidInputError(f"A corpus must be a file, files by part, or a name, with a path. Got {source!r}.")
    if not isinstance(source, Mapping) and "://" not in os.fspath(source) and not Path(source).expanduser().exists():
        raise CorpusError(
            f"There is no file {os.fspath(source)}, and no corpus of that name. Files end in {', '.join(FORMATS)}; "
            f"corpora are {', '.join(available())}."
        )
    return _read("a file", read_table, source if isinstance(source, Mapping) else os.fspath(source), **options)


def _read(corpus: str, read: Callable[..., Corpus], /, *source: Any, **options: Any) -> Corpus:
    """Call the reader of a corpus if it has these options."""
    try:
        inspect.signature(read).bind(*source, **options)
    except TypeError as error:
        raise InvalidInputError(f"The options of load for {corpus} must be those of its reader: {error}.") from None
    return read(*source, **options)
