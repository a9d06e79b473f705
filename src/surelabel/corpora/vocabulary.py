"""Vocabularies: labels with URIs, names and broader concepts, from SKOS, Annif's forms, CSV or JSON."""

from __future__ import annotations

import functools
import gzip
import re
import warnings
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

from surelabel._core.extras import require
from surelabel._core.formatting import count
from surelabel.corpora.corpus import Corpus, label_matrix
from surelabel.corpora.download import as_path, read_text
from surelabel.corpora.labels import clean_name, matching_key
from surelabel.exceptions import CorpusError
from surelabel.tables.read import open_binary, parse_json, read_rows

_SKOS = "http://www.w3.org/2004/02/skos/core#"


class Concept(NamedTuple):
    """A label of a vocabulary; `broader` are the URIs of broader concepts."""

    uri: str
    name: str
    alternatives: tuple[str, ...] = ()
    notation: str = ""
    broader: tuple[str, ...] = ()
    is_deprecated: bool = False


@dataclass(frozen=True, eq=False)
class Vocabulary:
    """Labels with a URI each, names in one language, alternative names and broader concepts.

    `names` has the preferred name of each concept; where two concepts share one, notation or URI tell them apart.
    """

    concepts: tuple[Concept, ...]
    language: str = "en"
    names: tuple[str, ...] = field(init=False)

    def __post_init__(self) -> None:
        keys = Counter(matching_key(concept.name) for concept in self.concepts)
        twice = Counter(concept.uri for concept in self.concepts).most_common(1)
        if not twice or twice[0][1] > 1:
            raise CorpusError(f"A vocabulary must have concepts with one URI each. Got {twice or 'none'}.")
        names = (
            concept.name if keys[matching_key(concept.name)] == 1 else f"{concept.name} ({_mark(concept)})"
            for concept in self.concepts
        )
        object.__setattr__(self, "names", tuple(names))

    def __len__(self) -> int:
        return len(self.concepts)

    @functools.cached_property
    def uris(self) -> tuple[str, ...]:
        """The URI of each concept."""
        return tuple(concept.uri for concept in self.concepts)

    @functools.cached_property
    def deprecated(self) -> frozenset[str]:
        """The URIs of deprecated concepts, which are not offered."""
        return frozenset(concept.uri for concept in self.concepts if concept.is_deprecated)

    @functools.cached_property
    def _by_uri(self) -> dict[str, int]:
        return {uri: place for place, uri in enumerate(self.uris)}

    @functools.cached_property
    def _by_key(self) -> tuple[dict[str, set[int]], ...]:
        """Concepts by notation, by preferred and by alternative name; a deprecated one only where no other is."""
        levels: tuple[dict[str, set[int]], ...] = (defaultdict(set), defaultdict(set), defaultdict(set))
        for place, concept in enumerate(self.concepts):
            for level, keys in zip(
                levels,
                ([concept.notation], [concept.name, self.names[place]], concept.alternatives),
                strict=True,
            ):
                for key in filter(None, map(matching_key, keys)):
                    level[key].add(place)
        for level in levels:
            for key, places in level.items():
                level[key] = {place for place in places if not self.concepts[place].is_deprecated} or places
        return levels

    def candidates(self, cell: str) -> list[str]:
        """Return the URIs that a URI, notation, preferred or alternative name can mean; the first kind that matches.

        Names match after NFC and casefold.
        """
        text = clean_name(cell).removeprefix("<").removesuffix(">")
        if text in self._by_uri:
            return [text]
        found = next((level[key] for level in self._by_key if (key := matching_key(text)) in level), set())
        return [self.uris[place] for place in sorted(found)]

    def resolve(self, cell: str) -> str | None:
        """Return the one URI that a cell means; None if there is none, or if several are meant."""
        found = self.candidates(cell)
        return found[0] if len(found) == 1 else None

    def name(self, uri: str) -> str:
        """Return the name of a URI; a URI that is not in the vocabulary is its own name."""
        place = self._by_uri.get(uri)
        return uri if place is None else self.names[place]

    def alternatives(self, uri: str) -> tuple[str, ...]:
        """Return the alternative names of a URI."""
        place = self._by_uri.get(uri)
        return () if place is None else self.concepts[place].alternatives

    def broader(self, uri: str) -> list[str]:
        """Return the URIs above a concept, nearest first, each once, cycles cut."""
        found: dict[str, None] = {}
        pending = [uri]
        while pending:
            place = self._by_uri.get(pending.pop(0))
            above = [] if place is None else [one for one in self.concepts[place].broader if one in self._by_uri]
            pending.extend(one for one in above if one not in found and one != uri)
            found.update(dict.fromkeys(one for one in above if one != uri))
        return list(found)

    def implications(self, uris: Iterable[str]) -> list[tuple[str, str]]:
        """Return pairs (narrower, broader) among some URIs, for constraints on label-sets."""
        known = list(uris)
        among = set(known)
        return [(uri, above) for uri in known for above in self.broader(uri) if above in among]

    def apply(self, corpus: Corpus) -> Corpus:
        """Return a corpus with URIs as labels; a label that is not in the vocabulary stays, and is noted."""
        found = {label: self.resolve(label) for label in corpus.label_names}
        unknown = [label for label, uri in found.items() if uri is None]
        label_sets = [frozenset(found[label] or label for label in label_set) for label_set in corpus.label_sets]
        notes = list(corpus.notes)
        if unknown:
            several = [label for label in unknown if self.candidates(label)]
            what = f"; {count(len(several))} of them mean several concepts, such as {several[0]!r}" if several else ""
            notes.append(
                f"{count(len(unknown))} of {count(len(found))} labels are not in the vocabulary, such as {unknown[0]!r}"
                f"{what}. They stay as they are."
            )
        names = tuple(sorted({label for label_set in label_sets for label in label_set}))
        provenance = replace(corpus.provenance, notes=tuple(notes))
        return replace(corpus, labels=label_matrix(label_sets, names), label_names=names, provenance=provenance)

    def to_record(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return {"language": self.language, "concepts": [list(concept) for concept in self.concepts]}

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> Vocabulary:
        """Return the vocabulary of `to_record`; raise ValueError if a value is not of its type."""
        try:
            concepts = [
                Concept(str(uri), str(name), tuple(map(str, more)), str(mark), tuple(map(str, above)), bool(old))
                for uri, name, more, mark, above, old in record["concepts"]
            ]
            return cls(tuple(concepts), str(record["language"]))
        except (KeyError, TypeError, ValueError) as error:
            raise ValueError(f"a vocabulary must have concepts and a language: {error}") from error


def _mark(concept: Concept) -> str:
    """Return a short mark that tells concepts of one name apart."""
    return concept.notation or re.split(r"[/#:]", concept.uri)[-1]


def read_vocabulary(path: str | Path, language: str = "en") -> Vocabulary:
    """Read a vocabulary: SKOS in any form that rdflib reads, Annif's CSV or TSV, a CSV, or JSON.

    A CSV has the columns uri, name (or ``label_en``, as Annif names them), and, if there are, notation, alternatives
    and broader (both separated by ``|`` or ``;``), and deprecated. A line of Annif's TSV is ``<uri>``, a tab, a name.
    JSON is an object of URI to an object with label, alt_labels and parents, as EURLEX57K's concepts come.
    """
    source = as_path(path)
    suffixes = [suffix.lower() for suffix in source.suffixes if suffix.lower() not in {".gz", ".xz"}]
    if suffixes[-1:] == [".tsv"]:
        concepts = list(_tsv_concepts(source)) or list(_table_concepts(source, language))
    elif suffixes[-1:] in ([".csv"], [".jsonl"], [".parquet"], [".xlsx"]):
        concepts = list(_table_concepts(source, language))
    elif suffixes[-1:] == [".json"]:
        concepts = list(_json_concepts(source))
    else:
        concepts = list(_skos_concepts(source, language))
    if not concepts:
        raise CorpusError(f"{source.name!r} must have concepts with a URI and a name. Got none.")
    return Vocabulary(tuple(concepts), language)


def _tsv_concepts(path: Path) -> Iterator[Concept]:
    """Read Annif's TSV; yield nothing if the first line has another form."""
    for number, line in enumerate(read_text(path).splitlines(), 1):
        if not line.strip():
            continue
        uri, *cells = line.split("\t")
        if not (cells and uri.startswith("<") and uri.endswith(">")):
            if number == 1:
                return
            raise CorpusError(f"Line {number} of {path.name!r} must be <uri>, a tab and a name. Got {line[:60]!r}.")
        yield Concept(uri[1:-1], clean_name(cells[0]), notation=cells[1].strip() if len(cells) > 1 else "")


def _json_concepts(path: Path) -> Iterator[Concept]:
    """Read concepts from an object by URI."""
    try:
        with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as stream:
            records = parse_json(stream.read().decode("utf-8"))
        for uri, record in records.items():
            more, above = record.get("alt_labels") or (), record.get("parents") or ()
            yield Concept(uri, clean_name(record["label"]), tuple(map(clean_name, more)), broader=tuple(above))
    except (OSError, EOFError, ValueError, AttributeError, KeyError, TypeError) as error:
        raise CorpusError(f"{path.name!r} must be an object of URI to concept. Got an error: {error!r}.") from error


def _table_concepts(path: Path, language: str) -> Iterator[Concept]:
    """Read concepts from the columns of a table."""
    for row in read_rows(path, needed=("uri",)):
        if row.problem is not None:
            raise CorpusError(f"{row.place} {row.problem}")
        cells = {key: "" if cell is None else cell for key, cell in row.cells.items()}
        keys = (f"label_{language}", "name", "label", *(key for key in cells if str(key).startswith("label_")))
        name = next((str(cells[key]) for key in keys if cells.get(key)), "")
        uri = str(cells.get("uri", "")).strip().removeprefix("<").removesuffix(">")
        if not uri or not name.strip():
            raise CorpusError(f"{row.place} must have a uri and a name. Got {uri!r:.60} and {name!r:.60}.")
        yield Concept(
            uri,
            clean_name(name),
            tuple(map(clean_name, _several(cells.get("alternatives", cells.get("alternative names", ""))))),
            str(cells.get("notation", "")).strip(),
            tuple(one.strip("<>") for one in _several(cells.get("broader", ""))),
            str(cells.get("deprecated", "")).strip().lower() in {"1", "true", "yes"},
        )


def _several(cell: Any) -> list[str]:
    """Split a cell at | or ;, or return the items of a list."""
    items = cell if isinstance(cell, list | tuple) else str(cell).split("|" if "|" in str(cell) else ";")
    return [str(item).strip() for item in items if str(item).strip()]


def _skos_concepts(path: Path, language: str) -> Iterator[Concept]:
    """Read SKOS with rdflib."""
    rdflib = require("rdflib", "vocabulary", "A SKOS vocabulary")
    graph = rdflib.Graph()
    suffix = next((one for one in path.suffixes[::-1] if one.lower() not in {".gz", ".xz"}), "")
    try:
        with open_binary(path) as stream, warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # of rdflib's own parsers
            content = gzip.GzipFile(fileobj=stream) if path.suffix == ".gz" else stream
            graph.parse(content, format=rdflib.util.guess_format(f"x{suffix}") or "turtle")
    except Exception as error:  # parsers of many formats raise anything
        raise CorpusError(f"{path.name!r} must be a SKOS vocabulary. Got an error: {error!s:.200}.") from error
    skos, owl = rdflib.Namespace(_SKOS), rdflib.OWL
    above: dict[Any, set[Any]] = defaultdict(set)
    for narrower, broader in graph.subject_objects(skos.broader):
        above[narrower].add(broader)
    for broader, narrower in graph.subject_objects(skos.narrower):
        above[narrower].add(broader)
    for concept in sorted(set(graph.subjects(skos.prefLabel, None)), key=str):
        if (concept, rdflib.RDF.type, skos.ConceptScheme) in graph:
            continue
        names = _in_language(graph.objects(concept, skos.prefLabel), language)
        deprecated = graph.value(concept, owl.deprecated)
        yield Concept(
            str(concept),
            names[0],
            tuple(dict.fromkeys(_in_language(graph.objects(concept, skos.altLabel), language, strict=True))),
            str(graph.value(concept, skos.notation) or ""),
            tuple(sorted(map(str, above[concept]))),
            str(deprecated).lower() in {"true", "1"},
        )


def _in_language(literals: Iterable[Any], language: str, *, strict: bool = False) -> list[str]:
    """Return names in a language, or without one; otherwise, unless strict, in any."""
    found: list[tuple[int, str]] = []
    for literal in literals:
        own = (literal.language or "").lower()
        rank = 0 if own == language.lower() else 1 if own.startswith(f"{language.lower()}-") else 2 if not own else 3
        if rank < 3 or not strict:
            found.append((rank, clean_name(str(literal))))
    return [name for _, name in sorted(found)]
