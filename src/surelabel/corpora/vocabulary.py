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
from surelabel.corpora.download import as_path
from surelabel.exceptions import CorpusError
from surelabel.tables.columns import clean_name, matching_key
from surelabel.tables.read import format_of, open_binary, parse_json, read_rows

_SKOS = "http://www.w3.org/2004/02/skos/core#"
_OTHER_NAMES = ("alternatives", "alternative names", "alt_labels")


class Concept(NamedTuple):
    """A label of a vocabulary; `broader` are the URIs of broader concepts."""

    uri: str
    name: str
    alternatives: tuple[str, ...] = ()
    notation: str = ""
    broader: tuple[str, ...] = ()
    is_deprecated: bool = False
    never_file: bool = False


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
        if not self.concepts or len(self._by_uri) < len(self.concepts):
            raise CorpusError("A vocabulary must have concepts with a URI each. Got none, or one URI twice.")
        names = (
            concept.name
            if keys[matching_key(concept.name)] == 1
            else f"{concept.name} ({concept.notation or re.split(r'[/#:]', concept.uri)[-1]})"
            for concept in self.concepts
        )
        object.__setattr__(self, "names", tuple(names))

    def __len__(self) -> int:
        return len(self.concepts)

    @property
    def uris(self) -> tuple[str, ...]:
        """The URI of each concept."""
        return tuple(self._by_uri)

    @functools.cached_property
    def deprecated(self) -> frozenset[str]:
        """The URIs of deprecated concepts, which are not offered."""
        return frozenset(concept.uri for concept in self.concepts if concept.is_deprecated)

    @functools.cached_property
    def never_filed(self) -> frozenset[str]:
        """The names of concepts that are never filed alone."""
        pairs = zip(self.concepts, self.names, strict=True)
        return frozenset(name for concept, name in pairs if concept.never_file)

    @functools.cached_property
    def _by_uri(self) -> dict[str, int]:
        return {concept.uri: place for place, concept in enumerate(self.concepts)}

    @functools.cached_property
    def _by_key(self) -> list[dict[str, list[str]]]:
        """URIs by notation, by preferred and by alternative name; a deprecated one only where no other is."""
        levels: list[dict[str, list[str]]] = [defaultdict(list) for _ in range(3)]
        for is_deprecated in (False, True):
            taken = [set(level) if is_deprecated else set() for level in levels]
            for concept, name in zip(self.concepts, self.names, strict=True):
                if concept.is_deprecated is is_deprecated:
                    kinds = ([concept.notation], [concept.name, name], concept.alternatives)
                    for level, old, own in zip(levels, taken, kinds, strict=True):
                        for key in {matching_key(one) for one in own} - old - {""}:
                            level[key].append(concept.uri)
        return levels

    def candidates(self, cell: str) -> list[str]:
        """Return the URIs that a URI, notation, preferred or alternative name can mean; the first kind that matches.

        Names match after NFC and casefold.
        """
        text = clean_name(cell).removeprefix("<").removesuffix(">")
        if text in self._by_uri:
            return [text]
        return next((level[key] for level in self._by_key if (key := matching_key(text)) in level), [])

    def resolve(self, cell: str) -> str | None:
        """Return the one URI that a cell means; None if there is none, or if several are meant."""
        found = self.candidates(cell)
        return found[0] if len(found) == 1 else None

    def name(self, uri: str) -> str:
        """Return the name of a URI; a URI that is not in the vocabulary is its own name."""
        return self.names[self._by_uri[uri]] if uri in self._by_uri else uri

    def alternatives(self, uri: str) -> tuple[str, ...]:
        """Return the alternative names of a URI."""
        return self.concepts[self._by_uri[uri]].alternatives if uri in self._by_uri else ()

    def other_names(self) -> dict[str, str]:
        """Return the name of a concept by its URI, and by all names that mean it alone."""
        cells = (cell for concept in self.concepts for cell in (concept.uri, concept.name, *concept.alternatives))
        return {cell: self.name(uri) for cell in cells if (uri := self.resolve(cell)) is not None}

    def broader(self, uri: str) -> list[str]:
        """Return the URIs above a concept, nearest first, each once, cycles cut."""
        found = [uri]
        for one in found:
            above = self.concepts[self._by_uri[one]].broader if one in self._by_uri else ()
            found += [own for own in above if own in self._by_uri and own not in found]
        return found[1:]

    def implications(self, names: Iterable[str]) -> list[tuple[str, str]]:
        """Return pairs (narrower, broader) among some names, for constraints on label-sets."""
        known = dict.fromkeys(names)
        uri_of = dict(zip(self.names, self.uris, strict=True))
        pairs = ((name, self.name(above)) for name in known if name in uri_of for above in self.broader(uri_of[name]))
        return [(name, above) for name, above in pairs if above in known]

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
        return {"language": self.language, "concepts": [concept._asdict() for concept in self.concepts]}

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> Vocabulary:
        """Return the vocabulary of `to_record`; raise ValueError if a value is not of its type."""
        try:
            language = str(record["language"])
            return cls(tuple(_concept(cells, "A concept", language) for cells in record["concepts"]), language)
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise ValueError(f"a vocabulary must have concepts and a language: {error}") from error


def read_vocabulary(path: str | Path, language: str = "en") -> Vocabulary:
    """Read a vocabulary: SKOS in any form that rdflib reads, Annif's CSV or TSV, a CSV, or JSON.

    A CSV has the columns uri, name (or ``label_en``, as Annif names them), and, if there are, notation, alternatives
    and broader (both separated by ``|`` or ``;``), deprecated, and never_file (texts with it always go to people). A
    line of Annif's TSV is ``<uri>``, a tab, a name.
    JSON is an object of URI to an object with label, alt_labels and parents, as EURLEX57K's concepts come.
    """
    source = as_path(path)
    if format_of(source) in {None, "txt"} and ".json" not in source.suffixes:
        concepts = tuple(_skos_concepts(source, language))
    else:
        concepts = tuple(_concept(cells, place, language) for place, cells in _table_cells(source))
    if not concepts:
        raise CorpusError(f"{source.name!r} must have concepts with a URI and a name. Got none.")
    return Vocabulary(concepts, language)


def _table_cells(path: Path) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield place and cells of each concept of a table, of Annif's TSV without headings, or of a JSON object."""
    if ".json" in path.suffixes:
        try:
            with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as stream:
                records = parse_json(stream.read().decode("utf-8"))
            yield from ((f"Concept {uri!r} of {path.name!r}", {"uri": uri, **cells}) for uri, cells in records.items())
        except (OSError, EOFError, ValueError, AttributeError, TypeError) as error:
            raise CorpusError(f"{path.name!r} must be an object of URI to concept. Got an error: {error!r}.") from error
        return
    lines = read_rows(path, kind="txt") if format_of(path) == "tsv" else iter(())
    is_annif = next((line.cells["text"] for line in lines), "").startswith("<")
    for row in read_rows(path, kind="txt") if is_annif else read_rows(path, needed=("uri",)):
        if row.problem is not None:
            raise CorpusError(f"{row.place} {row.problem}")
        names = ("uri", "name", "notation")
        cells = dict(zip(names, row.cells["text"].split("\t"), strict=False)) if is_annif else row.cells
        if any(cells.values()):
            yield row.place, cells


def _concept(cells: Mapping[str, Any], place: str, language: str) -> Concept:
    """Return the concept of a row."""

    def first(*keys: str) -> Any:
        return next((cells[key] for key in keys if cells.get(key)), "")

    def several(*keys: str) -> Iterator[str]:
        cell = first(*keys)
        items = cell if isinstance(cell, list | tuple) else re.split(r"\|" if "|" in str(cell) else ";", str(cell))
        return (name for item in items if (name := clean_name(str(item))))

    name = clean_name(str(first(f"label_{language}", "name", "label", *(key for key in cells if key[:6] == "label_"))))
    uri = str(first("uri")).strip().removeprefix("<").removesuffix(">")
    if not uri or not name:
        raise CorpusError(f"{place} must have a uri and a name. Got {uri!r:.60} and {name!r:.60}.")
    is_deprecated, never_file = (
        str(first(heading, f"is_{heading}")).strip().lower() in {"1", "true", "yes"}
        for heading in ("deprecated", "never_file")
    )
    broader = tuple(one.strip("<>") for one in several("broader", "parents"))
    others, notation = tuple(several(*_OTHER_NAMES)), str(first("notation")).strip()
    return Concept(uri, name, others, notation, broader, is_deprecated, never_file)


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
    skos = rdflib.Namespace(_SKOS)
    above: dict[Any, set[str]] = defaultdict(set)
    for narrower, broader in graph.subject_objects(skos.broader):
        above[narrower].add(str(broader))
    for broader, narrower in graph.subject_objects(skos.narrower):
        above[narrower].add(str(broader))
    for concept in sorted(set(graph.subjects(skos.prefLabel, None)), key=str):
        if (concept, rdflib.RDF.type, skos.ConceptScheme) in graph:
            continue
        yield Concept(
            str(concept),
            _in_language(graph.objects(concept, skos.prefLabel), language, strict=False)[0],
            tuple(dict.fromkeys(_in_language(graph.objects(concept, skos.altLabel), language))),
            str(graph.value(concept, skos.notation) or ""),
            tuple(sorted(above[concept])),
            str(graph.value(concept, rdflib.OWL.deprecated)).lower() in {"true", "1"},
        )


def _in_language(literals: Iterable[Any], language: str, *, strict: bool = True) -> list[str]:
    """Return names in a language, or without one; otherwise, unless strict, in any."""
    found: list[tuple[int, str]] = []
    for literal in literals:
        own = (literal.language or "").lower()
        rank = 0 if own == language.lower() else 1 if own.startswith(f"{language.lower()}-") else 2 if not own else 3
        if rank < 3 or not strict:
            found.append((rank, clean_name(str(literal))))
    return [name for _, name in sorted(found)]
