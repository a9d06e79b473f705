"""A corpus: texts with label-sets, ids, further columns and parts. One class for the whole and for any part of it."""

from __future__ import annotations

import functools
import hashlib
import itertools
import json
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
from scipy import sparse

from surelabel._core.formatting import count
from surelabel.exceptions import CorpusError, InvalidInputError

PARTS = ("train", "validation", "filing", "calibration", "test")
"""Names of parts; `Corpus.part_of` has their places in this tuple, and -1 for a text that is in no part."""

LabelMatrix: TypeAlias = "sparse.csr_array[np.bool_, tuple[int, int]]"
Scores: TypeAlias = Sequence[tuple[Any, ...]]
"""Scores of a tagger for one text: pairs of label and score, in the order of the source."""


@dataclass(frozen=True)
class Provenance:
    """Where a corpus came from: the source, the rule it was read by, its licence, its SHA-256, and notes."""

    source: str = "memory"
    rule: str = "as given"
    licence: str = "not stated"
    checksum: str | None = None
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class Corpus:
    """Texts with label-sets, as a whole or a part. Immutable.

    Parameters
    ----------
    labels : csr_array of bool, shape (n_texts, n_labels)
    label_names : tuple of str
        All labels of the source, whichever part they occur in.
    columns : mapping of name to tuple of str
        Further columns, such as a source or a date.
    part_of : array of int8, shape (n_texts,)
        The place of each text's part in `PARTS`; -1 for texts in no part.
    is_labelled : array of bool, shape (n_texts,)
        False for a text that nobody has tagged, whose row of `labels` is empty.
    scores : tuple or None
        Scores of a tagger per text (None for a text without), or None if the corpus has none.
    """

    name: str
    texts: tuple[str, ...]
    ids: tuple[str, ...]
    labels: LabelMatrix
    label_names: tuple[str, ...]
    columns: Mapping[str, tuple[str, ...]]
    part_of: npt.NDArray[np.int8]
    is_labelled: npt.NDArray[np.bool_]
    provenance: Provenance = field(default_factory=Provenance)
    scores: tuple[Scores | None, ...] | None = None

    def __post_init__(self) -> None:
        given = (self.texts, self.ids, self.part_of, self.is_labelled, *self.columns.values(), self.scores)
        lengths = {len(values) for values in given if values is not None}
        if lengths != {len(self.texts)} or tuple(self.labels.shape) != (len(self.texts), len(self.label_names)):
            got = f"{sorted(lengths)}, and labels of shape {self.labels.shape}"
            raise CorpusError(f"All columns of corpus {self.name!r} must have one length. Got lengths {got}.")
        for what, names in (("ids", self.ids), ("label names", self.label_names)):
            if len(set(names)) != len(names):
                twice = Counter(names).most_common(1)[0][0]
                raise CorpusError(f"The {what} of corpus {self.name!r} must be unique. Got {twice!r:.60} twice.")

    @classmethod
    def from_label_sets(
        cls,
        name: str,
        texts: Sequence[str],
        label_sets: Sequence[Collection[str] | None],
        ids: Sequence[str] | None = None,
        columns: Mapping[str, Sequence[str]] | None = None,
        *,
        label_names: Sequence[str] | None = None,
        provenance: Provenance | None = None,
        scores: Sequence[Scores | None] | None = None,
    ) -> Corpus:
        """Make a corpus from label names; a label-set of None means that nobody has tagged the text.

        By default ids are the texts' numbers from 0, label names are sorted, and labelled texts are in "train".
        """
        if not len(texts) == len(label_sets) > 0:
            raise CorpusError(f"Corpus {name!r} must have texts with a label-set each. Got {len(texts)} texts.")
        used = {label for label_set in label_sets for label in label_set or ()}
        names = tuple(sorted(used) if label_names is None else label_names)
        if unknown := sorted(used - set(names)):
            raise CorpusError(f"The labels of corpus {name!r} must be among its label names. Got {unknown[0]!r}.")
        is_labelled = np.array([label_set is not None for label_set in label_sets])
        corpus = cls(
            name,
            tuple(texts),
            tuple(map(str, range(len(texts)) if ids is None else ids)),
            label_matrix([label_set or () for label_set in label_sets], names),
            names,
            {column: tuple(values) for column, values in (columns or {}).items()},
            np.where(is_labelled, 0, -1).astype(np.int8),
            is_labelled,
            provenance or Provenance(),
            None if scores is None else tuple(scores),
        )
        return corpus.with_notes(*_unusual(corpus))

    @classmethod
    def from_parts(
        cls,
        name: str,
        parts: Mapping[str, Sequence[tuple[str, str, Collection[str]]]],
        label_names: Sequence[str] | None,
        provenance: Provenance,
    ) -> Corpus:
        """Make a corpus from the texts of its parts: id, text and labels of each."""
        records = [record for of_part in parts.values() for record in of_part]
        corpus = cls.from_label_sets(
            name,
            [text for _, text, _ in records],
            [labels for _, _, labels in records],
            [identity for identity, _, _ in records],
            label_names=label_names,
            provenance=provenance,
        )
        places = np.repeat([PARTS.index(part) for part in parts], [len(of_part) for of_part in parts.values()])
        return replace(corpus, part_of=places.astype(np.int8))

    def __len__(self) -> int:
        return len(self.texts)

    def __repr__(self) -> str:
        parts = ", ".join(f"{name} {n:,}" for name, n in self.part_sizes.items()) or "no parts"
        return f"Corpus {self.name!r}: {len(self):,} texts, {len(self.label_names):,} labels ({parts})"

    @property
    def part_sizes(self) -> dict[str, int]:
        """The number of texts of each part that is not empty."""
        counts = np.bincount(self.part_of + 1, minlength=len(PARTS) + 1)[1:]
        return {name: int(n) for name, n in zip(PARTS, counts, strict=True) if n}

    @property
    def notes(self) -> tuple[str, ...]:
        """Remarks for the user on how the corpus was read and what is unusual about it."""
        return self.provenance.notes

    @functools.cached_property
    def label_sets(self) -> list[frozenset[str]]:
        """The labels of each text by name."""
        names, indices = self.label_names, self.labels.indices.tolist()
        pairs = itertools.pairwise(self.labels.indptr.tolist())
        return [frozenset(names[label] for label in indices[start:end]) for start, end in pairs]

    def part(self, *names: str) -> Corpus:
        """Return the texts of one part, or of several in the corpus's order; label names stay."""
        unknown = [name for name in names if name not in PARTS]
        if unknown or not names:
            raise InvalidInputError(f"A part must be one of {', '.join(PARTS)}. Got {(*unknown, None)[0]!r}.")
        missing = [name for name in names if name not in self.part_sizes]
        if missing:
            has = ", ".join(self.part_sizes) or "no parts"
            raise CorpusError(f"Corpus {self.name!r} has no texts in the part {missing[0]!r}. It has {has}.")
        return self.rows(np.flatnonzero(np.isin(self.part_of, [PARTS.index(name) for name in names])))

    def rows(self, rows: Iterable[int] | npt.NDArray[Any]) -> Corpus:
        """Return some texts, by their numbers from 0 or a mask."""
        chosen = np.asarray(rows if isinstance(rows, np.ndarray) else list(rows))
        chosen = np.flatnonzero(chosen) if chosen.dtype == np.bool_ else chosen.astype(np.int64)
        return replace(
            self,
            texts=_take(self.texts, chosen),
            ids=_take(self.ids, chosen),
            labels=self.labels[chosen],
            columns={name: _take(values, chosen) for name, values in self.columns.items()},
            part_of=self.part_of[chosen],
            is_labelled=self.is_labelled[chosen],
            scores=None if self.scores is None else _take(self.scores, chosen),
        )

    def column(self, name: str) -> tuple[str, ...]:
        """Return a further column; raise if the corpus was read without it."""
        if name not in self.columns:
            has = ", ".join(map(repr, self.columns)) or "none"
            raise CorpusError(f"Corpus {self.name!r} must have a column {name!r}. It has {has}.")
        return self.columns[name]

    def with_parts(self, parts: Mapping[str, Iterable[int] | npt.NDArray[Any]]) -> Corpus:
        """Return the same texts with other parts: numbers of texts by name of part. All others are in no part."""
        part_of = np.full(len(self), -1, dtype=np.int8)
        for name, given in parts.items():
            if name not in PARTS:
                raise CorpusError(f"A part must be one of {', '.join(PARTS)}. Got {name!r}.")
            rows = np.asarray(given if isinstance(given, np.ndarray) else list(given), dtype=np.int64)
            if rows.size and not 0 <= rows.min() <= rows.max() < len(self):
                raise CorpusError(f"The part {name!r} must have numbers from 0 to {len(self) - 1:,}. Got others.")
            if np.any(part_of[rows] >= 0) or len(np.unique(rows)) < len(rows):
                raise CorpusError(f"The part {name!r} of corpus {self.name!r} has a text twice, or shares one.")
            part_of[rows] = PARTS.index(name)
        return replace(self, part_of=part_of)

    def with_notes(self, *notes: str) -> Corpus:
        """Return the same corpus with further notes."""
        return replace(self, provenance=replace(self.provenance, notes=(*self.notes, *notes))) if notes else self

    def fingerprint(self) -> str:
        """Return a SHA-256 of ids, texts, label names, labels and parts."""
        digest = hashlib.sha256(json.dumps([self.label_names, self.part_of.tolist()]).encode())
        for identity, text, label_set in zip(self.ids, self.texts, self.label_sets, strict=True):
            digest.update(json.dumps([identity, text, sorted(label_set)]).encode())
        return digest.hexdigest()


def label_matrix(label_sets: Sequence[Collection[str]], label_names: Sequence[str]) -> LabelMatrix:
    """Return label-sets as a bool matrix (n_texts, n_labels); labels without a column are left out."""
    columns = {label: column for column, label in enumerate(label_names)}
    rows = [sorted({columns[label] for label in label_set if label in columns}) for label_set in label_sets]
    pointers = np.cumsum([0, *map(len, rows)])
    indices = np.fromiter(itertools.chain.from_iterable(rows), dtype=np.int64, count=pointers[-1])
    data = np.ones(len(indices), dtype=np.bool_)
    return sparse.csr_array((data, indices, pointers), shape=(len(rows), len(columns)))


def text_hash(text: str) -> int:
    """Return 64 bits of a hash of a text that does not depend on case and white space; 0 for an empty text."""
    words = " ".join(text.lower().split()).encode("utf-8", "surrogatepass")
    return int.from_bytes(hashlib.blake2b(words, digest_size=8).digest(), "little") if words else 0


def _take(values: tuple[Any, ...], rows: npt.NDArray[np.int64]) -> tuple[Any, ...]:
    return tuple(values[row] for row in rows.tolist())


def _unusual(corpus: Corpus) -> list[str]:
    """Return remarks about empty, untagged and unlabelled texts, with the ids of the first three."""
    found = {
        "empty; they are kept, and a classifier can only guess": [not text.strip() for text in corpus.texts],
        "not tagged; they are in no part": ~corpus.is_labelled,
        "tagged with no label; min_labels=0 admits the empty answer": corpus.is_labelled
        & (np.diff(corpus.labels.indptr) == 0),
    }
    notes = []
    for what, mask in found.items():
        rows = np.flatnonzero(mask).tolist()
        some = ", ".join(f"{corpus.ids[row]!r:.40}" for row in rows[:3]) + (", ..." if len(rows) > 3 else "")
        if rows:
            notes.append(f"{count(len(rows))} of {count(len(corpus))} texts are {what} (id {some}).")
    return notes
