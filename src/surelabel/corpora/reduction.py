"""Reduced corpora: the texts of the most frequent labels."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from surelabel._core.validation import check_count
from surelabel.corpora.corpus import Corpus, Part
from surelabel.corpora.label_matrices import LabelMatrix
from surelabel.corpora.splits import split


def reduced(corpus: Corpus, n_labels: int = 20) -> Corpus:
    """Keep the most frequent labels, and the texts that have one of them (section 6.1 of the paper).

    Labels are counted over the whole corpus, so that the choice depends on no split; of labels that occur equally
    often, the one that occurs first is kept. The corpus's own parts and the test part lose texts; a validation or
    calibration part that was drawn from the training part is drawn again, to the same size and with the same seed (a
    share is one of the texts that are left, the test part aside). On Reuters this gives the paper's Reuters20 (2,738
    test texts) with the one training text more that the full corpus has as well.

    The corpus is named after the old one and the number: "reuters20".

    Examples
    --------
    >>> from surelabel import corpora
    >>> corpora.reduced(corpora.load("synthetic", n_texts=500, calibration=99), 5)
    Corpus 'synthetic5': 317 texts, 5 labels (train 130, validation 26, calibration 99, test 62)
    """
    check_count("n_labels", n_labels, who="reduced", least=1, most=len(corpus.label_names))
    labels = _most_frequent(corpus.label_matrix, int(n_labels))
    matrix = corpus.label_matrix[:, labels]
    kept = np.flatnonzero(np.diff(matrix.indptr) > 0)
    drawn = corpus.split.sizes if corpus.split else {}
    again = {name: drawn[name] for name in ("validation", "calibration") if name in drawn}
    places = np.full(len(corpus), -1, dtype=np.int64)
    places[kept] = np.arange(kept.size)
    parts: dict[str, npt.NDArray[np.int64]] = {}
    for name, rows in corpus.parts.items():
        target = "train" if name in again else name
        moved = places[rows]
        parts[target] = np.concatenate([parts.get(target, moved[:0]), moved[moved >= 0]])
    note = f"reduced to the {n_labels} most frequent of {len(corpus.label_names)} labels"
    chosen = Part("", corpus.texts, corpus.ids, matrix, (), corpus.columns).rows(kept)
    smaller = Corpus(
        name=f"{corpus.name}{n_labels}",
        texts=chosen.texts,
        ids=chosen.ids,
        label_matrix=chosen.label_matrix,
        label_names=tuple(corpus.label_names[label] for label in labels),
        parts=parts,
        provenance=replace(corpus.provenance, notes=(*corpus.provenance.notes, note)),
        columns=chosen.columns,
    )
    if corpus.split is None:
        return split(smaller)
    return split(smaller, **again, seed=corpus.split.seed, stratified=corpus.split.stratified)


def _most_frequent(matrix: LabelMatrix, n_labels: int) -> npt.NDArray[np.int64]:
    """Return the columns of the most frequent labels, in their old order."""
    n_texts, n_columns = matrix.shape
    counts = np.bincount(matrix.indices, minlength=n_columns)
    rows = np.repeat(np.arange(n_texts), np.diff(matrix.indptr))
    first = np.full(n_columns, n_texts, dtype=np.int64)
    np.minimum.at(first, matrix.indices, rows)
    return np.sort(np.lexsort((np.arange(n_columns), first, -counts))[:n_labels])
