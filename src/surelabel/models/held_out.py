"""Texts that may calibrate or evaluate a model: never those that it was trained with."""

from __future__ import annotations

import dataclasses
import logging
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from surelabel.corpora import Corpus, Part
from surelabel.exceptions import InvalidInputError
from surelabel.labels.sparse import is_sparse
from surelabel.models.bundle import Bundle
from surelabel.models.steps import part_probabilities
from surelabel.probabilities_file import PartProbabilities

_log = logging.getLogger(__name__)


def is_same_source(bundle: Bundle, corpus: Corpus) -> bool:
    """Tell whether a corpus comes from the file that the bundle's classifier was trained on."""
    own, other = bundle.info.provenance, corpus.provenance
    if other.checksum is not None:
        return bool(own.get("checksum") == other.checksum)
    return bool(own.get("source") == other.source)


def is_own_corpus(bundle: Bundle, corpus: Corpus) -> bool:
    """Tell whether a corpus is the one that the bundle's classifier was trained on, with the same parts."""
    return corpus.fingerprint() == bundle.info.fingerprint


def held_out_part(bundle: Bundle, corpus: Corpus, default: str, part: str | None = None) -> Part:
    """Return the texts of a corpus that may calibrate or evaluate a bundle.

    Of the corpus that the classifier was trained on, its calibration or test part; of another corpus, its own part of
    that name if it has one, else all of it.
    """
    names = tuple(corpus.parts) if part == "all" else (part or default,)
    if is_own_corpus(bundle, corpus):
        if not set(names) <= {"calibration", "test"}:
            raise InvalidInputError(
                f"The model was trained on the {names[0]} part of {corpus.name!r}: take its calibration or test part."
            )
        return corpus.part(*names)
    if is_same_source(bundle, corpus):
        raise InvalidInputError(
            f"Corpus {corpus.name!r} is what the model was trained on, but its parts were drawn in another way, so "
            f"that training texts would count as new. Use seed {bundle.info.seed} and the columns of training."
        )
    drawn = corpus.split is not None and default in corpus.split.sizes
    if part is None and (drawn or default not in corpus.parts):
        names = tuple(corpus.parts)
    return corpus.part(*names)


def without_training_texts(bundle: Bundle, corpus: Corpus, part: Part) -> tuple[Part, int]:
    """Return a part without the texts that the model was trained with, and how many those were.

    Parts of the corpus of training are known to be held out, and stay as they are.
    """
    if bundle.seen is None or is_own_corpus(bundle, corpus):
        return part, 0
    is_seen = bundle.seen.in_training(part.texts)
    if is_seen.all():
        raise InvalidInputError(
            f"All {len(part):,} texts were used to train the model, so they tell nothing about new texts. Take others."
        )
    return (part.rows(np.flatnonzero(~is_seen)), int(is_seen.sum())) if is_seen.any() else (part, 0)


def _columns(bundle: Bundle, part: Part) -> Any:
    """Return which of the bundle's labels each of a part's is, -1 if none."""
    columns = {name: k for k, name in enumerate(bundle.label_names)}
    return np.array([columns.get(name, -1) for name in part.label_names], dtype=np.int64)


def without_unknown_labels(bundle: Bundle, part: Part) -> tuple[Part, int]:
    """Return a part without texts whose labels the model does not know, if others are left, and how many they were."""
    columns, matrix = _columns(bundle, part), part.label_matrix
    is_unknown = np.asarray(matrix[:, columns < 0].sum(axis=1)).reshape(-1) > 0
    if is_unknown.all() or not is_unknown.any():
        return part, 0
    rest, n_unknown = part.rows(np.flatnonzero(~is_unknown)), int(is_unknown.sum())
    _log.warning(
        "%d of the %d texts have labels that the model does not know (%s): no prediction set can hold their "
        "label-sets, so they count as errors. All other figures are of the %d other texts.",
        *(n_unknown, len(part), _named(part, np.unique(matrix.indices[columns[matrix.indices] < 0])), len(rest)),
    )
    return rest, n_unknown


def _named(part: Part, labels: Any) -> str:
    """Name the first three of some labels."""
    return ", ".join(repr(part.label_names[k]) for k in labels[:3]) + (", ..." if len(labels) > 3 else "")


def labels_of(bundle: Bundle, part: Part) -> Any:
    """Return a part's labels in the order of the bundle's label names, a bool CSR array."""
    columns, matrix = _columns(bundle, part), part.label_matrix
    unknown = np.unique(matrix.indices[columns[matrix.indices] < 0])
    if len(unknown):
        raise InvalidInputError(
            f"The labels of the texts must be among the model's {len(bundle.label_names)}. Got {_named(part, unknown)} "
            f"({len(unknown)} unknown): rename or remove what is unknown, or train a model with it."
        )
    shape = (len(part), len(bundle.label_names))
    return csr_array((matrix.data, columns[matrix.indices], matrix.indptr), shape=shape)


def bundle_probabilities(bundle: Bundle, part: Part) -> PartProbabilities:
    """Return the bundle's probabilities for a part, with labels in its own order, and groups if it has them."""
    made = part_probabilities(bundle, part)
    labels = labels_of(bundle, part)
    return dataclasses.replace(made, labels=labels if is_sparse(made.probabilities) else labels.toarray())
