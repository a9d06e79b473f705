"""The one form that every corpus takes: texts, label-sets, parts, and where they came from."""

from __future__ import annotations

import functools
import hashlib
import itertools
import json
import warnings
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from surelabel.corpora.label_matrices import LabelMatrix, as_canonical, as_label_matrix
from surelabel.corpora.tables import Statistics, statistics
from surelabel.exceptions import CorpusError, DataWarning, InvalidInputError

if TYPE_CHECKING:
    from surelabel.corpora.splits import Split

_Rows = Sequence[int] | npt.NDArray[np.int64]

PARTS = ("train", "validation", "calibration", "test")


@dataclass(frozen=True)
class Provenance:
    """Where a corpus came from and how it was read.

    `source` is the file, folder or generator, by name; `rule` says how texts, labels and parts were taken from it,
    `licence` what its owners say about its use, `notes` what was done to the corpus since. `checksum` is the SHA-256 of
    the source, if that is one file or a list of files.

    Examples
    --------
    >>> from surelabel import corpora
    >>> print(corpora.load("synthetic", n_texts=300, n_labels=5).provenance.source)
    generator, n_texts=300, n_labels=5, seed=0
    """

    source: str
    rule: str
    licence: str = "not stated"
    checksum: str | None = None
    notes: tuple[str, ...] = ()


class _Labelled:
    """Labels in other forms than the sparse one."""

    label_matrix: LabelMatrix
    label_names: tuple[str, ...]

    @property
    def labels(self) -> npt.NDArray[np.bool_]:
        """The labels as a dense bool array of shape (n_texts, n_labels)."""
        return np.asarray(self.label_matrix.toarray(), dtype=np.bool_)

    @property
    def label_sets(self) -> tuple[frozenset[str], ...]:
        """The labels as one frozenset of names per text."""
        matrix, names = self.label_matrix, self.label_names
        pairs = itertools.pairwise(matrix.indptr)
        return tuple(frozenset(names[label] for label in matrix.indices[start:end]) for start, end in pairs)


@dataclass(frozen=True, eq=False)
class Part(_Labelled):
    """Some of a corpus's texts, with their labels.

    `name` is the part's name, or several joined by "+"; `label_matrix` is sparse, (n_texts, n_labels) bool; `columns`
    have what else is known of each text, such as its source or its date.

    Examples
    --------
    >>> from surelabel import corpora
    >>> part = corpora.load("synthetic", n_texts=300, n_labels=5).part("test")
    >>> len(part), part.labels.shape
    (60, (60, 5))
    >>> part.texts[0][:30], sorted(part.label_sets[0])
    ('Penalty from an to tanker two ', ['oil'])
    """

    name: str
    texts: tuple[str, ...]
    ids: tuple[str, ...]
    label_matrix: LabelMatrix
    label_names: tuple[str, ...]
    columns: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.texts)

    def rows(self, rows: npt.NDArray[np.int64]) -> Part:
        """Return some of its texts, by their numbers from 0."""
        return replace(
            self,
            texts=_chosen(self.texts, rows),
            ids=_chosen(self.ids, rows),
            label_matrix=self.label_matrix[rows],
            columns={name: _chosen(values, rows) for name, values in self.columns.items()},
        )

    def column(self, name: str) -> tuple[str, ...]:
        """Return what a column says of each text; raise if texts were read without it."""
        if name not in self.columns:
            had = ", ".join(map(repr, self.columns)) or "none"
            raise CorpusError(f"The texts must have a column {name!r}. Beside text and labels they have {had}.")
        return self.columns[name]


@dataclass(frozen=True, eq=False)
class Corpus(_Labelled):
    """Texts with label-sets, divided into parts. Immutable; changes make a new one.

    Parameters
    ----------
    label_matrix : scipy.sparse.csr_array of bool, shape (n_texts, n_labels)
    parts : mapping of part name to text indices
        Names from train, validation, calibration and test. No text is in two parts.
    split : Split or None
        Which parts were drawn from the training part, and how; None if all parts are the corpus's own.
    columns : mapping of name to sequence of str
        What else is known of each text, such as its source or its date.

    Examples
    --------
    >>> corpus = Corpus.from_label_sets("two", ["oil up", "gold and oil"], [{"oil"}, {"gold", "oil"}])
    >>> corpus
    Corpus 'two': 2 texts, 2 labels (train 2)
    >>> corpus.labels
    array([[False,  True],
           [ True,  True]])
    """

    name: str
    texts: tuple[str, ...]
    ids: tuple[str, ...]
    label_matrix: LabelMatrix
    label_names: tuple[str, ...]
    parts: Mapping[str, Any]
    provenance: Provenance = field(default_factory=lambda: Provenance("memory", "as given"))
    split: Split | None = None
    columns: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for attribute in ("texts", "ids", "label_names"):
            object.__setattr__(self, attribute, tuple(getattr(self, attribute)))
        object.__setattr__(self, "columns", {name: tuple(values) for name, values in self.columns.items()})
        _check_lengths(self)
        object.__setattr__(self, "label_matrix", as_canonical(self.label_matrix))
        object.__setattr__(self, "parts", _as_parts(self.parts, self.name, len(self.texts)))

    def __reduce__(self) -> tuple[Any, ...]:
        # A read-only mapping cannot be copied or sent to another process.
        values = {one.name: getattr(self, one.name) for one in fields(self)}
        return functools.partial(Corpus, **{**values, "parts": dict(self.parts)}), ()

    def __len__(self) -> int:
        return len(self.texts)

    def __repr__(self) -> str:
        parts = ", ".join(f"{name} {len(self.parts[name]):,}" for name in self.parts)
        return f"Corpus {self.name!r}: {len(self):,} texts, {len(self.label_names):,} labels ({parts})"

    @classmethod
    def from_label_sets(
        cls,
        name: str,
        texts: Sequence[str],
        label_sets: Sequence[Collection[str]],
        *,
        ids: Sequence[str] | None = None,
        label_names: Sequence[str] | None = None,
        parts: Mapping[str, _Rows] | None = None,
        provenance: Provenance | None = None,
        columns: Mapping[str, Sequence[str]] | None = None,
    ) -> Corpus:
        """Make a corpus from label names, one collection of them per text.

        By default `ids` are the texts' numbers from 0, `label_names` the sorted labels that occur, and everything is in
        the part "train". A DataWarning says so if texts are empty or have no label, or if there is only one label.
        """
        if len(texts) != len(label_sets):
            raise CorpusError(
                f"The 'label_sets' of corpus {name!r} must be as many as its texts, {len(texts):,}. "
                f"Got {len(label_sets):,} instead."
            )
        if label_names is None:
            label_names = sorted({label for label_set in label_sets for label in label_set})
        corpus = cls(
            name=name,
            texts=tuple(texts),
            ids=tuple(map(str, range(len(texts)))) if ids is None else tuple(ids),
            label_matrix=as_label_matrix(label_sets, label_names, name),
            label_names=tuple(label_names),
            parts={"train": np.arange(len(texts))} if parts is None else parts,
            provenance=provenance or Provenance("memory", "as given"),
            columns={name: tuple(values) for name, values in (columns or {}).items()},
        )
        _check_labels(corpus)
        _warn_of_texts(corpus)
        return corpus

    @classmethod
    def from_parts(
        cls,
        name: str,
        parts: Mapping[str, Sequence[tuple[str, str, Collection[str]]]],
        label_names: Sequence[str] | None,
        provenance: Provenance,
    ) -> Corpus:
        """Make a corpus from the records of its parts: id, text and label names of each text."""
        ids, texts, label_sets = zip(*(record for part in parts.values() for record in part), strict=True)
        ends = np.cumsum([len(part) for part in parts.values()])
        rows = {part: np.arange(end - len(parts[part]), end) for part, end in zip(parts, ends, strict=True)}
        return cls.from_label_sets(
            name, texts, label_sets, ids=ids, label_names=label_names, parts=rows, provenance=provenance
        )

    def part(self, *names: str) -> Part:
        """Take one part, or several merged in the corpus's order.

        ``part("train", "calibration")`` is what a classifier without calibration trains on.

        Examples
        --------
        >>> from surelabel import corpora
        >>> corpus = corpora.load("synthetic", n_texts=500, calibration=99)
        >>> len(corpus.part("calibration"))
        99
        >>> len(corpus.part("train", "calibration")) - len(corpus.part("train"))
        99
        """
        if not names:
            raise InvalidInputError(f"part needs at least one name, of {list(self.parts)}. Got none instead.")
        missing = [name for name in names if name not in self.parts]
        if missing:
            raise CorpusError(
                f"The parts asked of corpus {self.name!r} must be among {list(self.parts)}. Got {missing[0]!r} instead."
            )
        rows = np.unique(np.concatenate([self.parts[name] for name in names]))
        name = "+".join(dict.fromkeys(names))
        return Part(name, self.texts, self.ids, self.label_matrix, self.label_names, self.columns).rows(rows)

    def with_parts(self, parts: Mapping[str, _Rows], *, split: Split | None = None) -> Corpus:
        """Return the same corpus with other parts (text indices by name); `split` says how they were drawn."""
        return replace(self, parts=dict(parts), split=split)

    def fingerprint(self, *, texts: bool = True) -> str:
        """Return a SHA-256 over ids, labels, label names, parts and texts, 64 hexadecimal digits.

        The corpus's name, provenance and further columns do not enter. `texts=False` leaves the texts out: two sources
        of one corpus can differ in white space alone.
        """
        return self._fingerprint if texts else self._digest(texts=False)

    @functools.cached_property
    def _fingerprint(self) -> str:
        """What `fingerprint` returns: whoever names the corpus asks for it."""
        return self._digest(texts=True)

    def _digest(self, *, texts: bool) -> str:
        """Do what `fingerprint` says."""
        digest = hashlib.sha256()
        parts = {name: self.parts[name].tolist() for name in self.parts}
        header = {"label_names": self.label_names, "parts": parts}
        digest.update(json.dumps(header, sort_keys=True).encode())
        pointers, indices = self.label_matrix.indptr, self.label_matrix.indices
        for row, (identifier, text) in enumerate(zip(self.ids, self.texts, strict=True)):
            labels = sorted(indices[pointers[row] : pointers[row + 1]].tolist())
            record = [identifier, labels, text] if texts else [identifier, labels]
            digest.update(json.dumps(record).encode())
        return digest.hexdigest()

    def statistics(self) -> Statistics:
        """Return the corpus's row of the corpora table (section 6.1 of the paper)."""
        return statistics(self)


def _chosen(values: tuple[str, ...], rows: npt.NDArray[np.int64]) -> tuple[str, ...]:
    """Return some of the values."""
    return tuple(values[row] for row in rows)


def _as_parts(parts: Mapping[str, _Rows], corpus: str, n_texts: int) -> Mapping[str, npt.NDArray[np.int64]]:
    """Check the parts and return them sorted, read-only, in the order of PARTS."""
    unknown = sorted(set(parts) - set(PARTS))
    if unknown:
        raise CorpusError(f"The parts of corpus {corpus!r} must be among {list(PARTS)}. Got {unknown[0]!r} instead.")
    taken = np.zeros(n_texts, dtype=np.int64)
    result: dict[str, npt.NDArray[np.int64]] = {}
    for name in PARTS:
        if name not in parts:
            continue
        rows = np.sort(np.asarray(parts[name], dtype=np.int64))
        if rows.size and (rows[0] < 0 or rows[-1] >= n_texts):
            raise CorpusError(
                f"The {name!r} part of corpus {corpus!r} must hold text indices from 0 to {n_texts - 1:,}. "
                f"Got {rows[0] if rows[0] < 0 else rows[-1]} instead."
            )
        np.add.at(taken, rows, 1)
        rows.flags.writeable = False
        result[name] = rows
    if np.any(taken > 1):
        raise CorpusError(
            f"The parts of corpus {corpus!r} must not share texts. Got text {int(np.argmax(taken > 1))} twice."
        )
    return MappingProxyType(result)


def _check_lengths(corpus: Corpus) -> None:
    """Raise if a corpus is empty or its pieces do not fit together."""
    n_texts = len(corpus.texts)
    if n_texts == 0:
        raise CorpusError(f"Corpus {corpus.name!r} must have at least one text. Got an empty one instead.")
    counted = {"ids": corpus.ids} | {f"column {name!r}": values for name, values in corpus.columns.items()}
    for what, values in counted.items():
        if len(values) != n_texts:
            raise CorpusError(
                f"The {what} of corpus {corpus.name!r} must be as many as its texts, {n_texts:,}. Got {len(values):,}."
            )
    if len(set(corpus.ids)) != n_texts:
        twice = Counter(corpus.ids).most_common(1)[0][0]
        raise CorpusError(f"The ids of corpus {corpus.name!r} must be unique. Got {twice!r} twice.")
    if len(set(corpus.label_names)) != len(corpus.label_names):
        raise CorpusError(f"The label names of corpus {corpus.name!r} must be unique. Got some twice.")
    expected = (n_texts, len(corpus.label_names))
    if tuple(corpus.label_matrix.shape) != expected:
        raise CorpusError(
            f"The label matrix of corpus {corpus.name!r} must have shape {expected}. "
            f"Got {tuple(corpus.label_matrix.shape)} instead."
        )


def _check_labels(corpus: Corpus) -> None:
    """Raise if there is nothing to learn: no label, or one that every text has."""
    if corpus.label_matrix.nnz == 0:
        raise CorpusError(
            f"Corpus {corpus.name!r} must have at least one label. Got {len(corpus):,} texts without any: "
            "is the label column the right one?"
        )
    if len(corpus.label_names) == 1 and corpus.label_matrix.nnz == len(corpus):
        raise CorpusError(
            f"Corpus {corpus.name!r} must have at least two labels, or texts without its one. "
            f"Got {corpus.label_names[0]!r} on every text: is the label separator the right one?"
        )


def _warn_of_texts(corpus: Corpus) -> None:
    """Say what is unusual about the texts and labels, though they can be used."""
    empty = [row for row, text in enumerate(corpus.texts) if not text.strip()]
    if empty:
        _warn(
            f"{len(empty):,} of the {len(corpus):,} texts of corpus {corpus.name!r} are empty "
            f"({_some_ids(corpus, empty)}). They are kept; a classifier can only guess at them."
        )
    unlabelled = np.flatnonzero(np.diff(corpus.label_matrix.indptr) == 0)
    if unlabelled.size:
        _warn(
            f"{unlabelled.size:,} of the {len(corpus):,} texts of corpus {corpus.name!r} have no label "
            f"({_some_ids(corpus, unlabelled.tolist())}). Predict with min_labels=0 to admit the empty label-set."
        )
    if len(corpus.label_names) == 1:
        _warn(f"Corpus {corpus.name!r} has one label only, {corpus.label_names[0]!r}.")


def _some_ids(corpus: Corpus, rows: Sequence[int], most: int = 5) -> str:
    """Name some texts by their ids; without ids of their own these are the rows of the file."""
    named = ", ".join(repr(corpus.ids[row]) for row in rows[:most])
    return f"id{'s' if len(rows) > 1 else ''} {named}{f' and {len(rows) - most:,} more' if len(rows) > most else ''}"


def _warn(message: str) -> None:
    warnings.warn(message, DataWarning, stacklevel=4)
