"""Parts of a corpus: simple random samples; for the paper's experiments, stratified parts and reduced corpora."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from surelabel._core.formatting import count
from surelabel.corpora.corpus import PARTS, Corpus, LabelMatrix
from surelabel.exceptions import CorpusError, InvalidInputError

Size = int | float
"""A number of texts, or a share below 1."""

CAPS = {"filing": 1_000, "calibration": 1_000, "test": 2_000}
"""Largest number of texts of each part that is drawn by default."""

_STRATIFIED_ORDER = ("test", "validation", "calibration")


def draw_parts(
    corpus: Corpus,
    seed: int = 0,
    filing: Size | None = None,
    calibration: Size | None = None,
    test: Size | None = None,
) -> Corpus:
    """Draw the parts that a corpus does not have from its training part, as simple random samples.

    By default each part is a tenth of the tagged texts: at most 1,000 for filing, 1,000 for calibration and 2,000 for
    the test. All other texts stay in training. Parts are never stratified: that would keep rare labels out of
    calibration, and the promise would not hold for them.

    Parameters
    ----------
    corpus : Corpus
        Parts that it has already are kept.
    seed : int, default=0
        The same seed gives the same parts on every machine.
    filing, calibration, test : int or float, optional
        A number of texts, or a share (below 1) of the tagged texts. 0 draws none.
    """
    n_labelled = int(corpus.is_labelled.sum())
    sizes = {}
    for name, size in {"test": test, "calibration": calibration, "filing": filing}.items():
        if name not in corpus.part_sizes:
            usual = min(max(n_labelled // 10, 1), CAPS[name])
            sizes[name] = usual if size is None else _as_number(name, size, n_labelled)
        elif size is not None:
            raise InvalidInputError(f"Corpus {corpus.name!r} has its own part {name!r}; do not draw it.")
    if not any(sizes.values()):
        return corpus
    if "train" not in corpus.part_sizes:
        return corpus.with_notes(f"No part is drawn: the corpus has {', '.join(corpus.part_sizes)} and no train.")
    _check_rest(corpus, sizes, corpus.part_sizes["train"])
    return _draw(corpus, "train", sizes, seed)


def _draw(corpus: Corpus, source: str, sizes: Mapping[str, int], seed: int) -> Corpus:
    """Move simple random samples of one part to others."""
    pool = np.flatnonzero(corpus.part_of == PARTS.index(source))
    order = pool[np.random.RandomState(seed).permutation(len(pool))]  # a stream that never changes
    part_of, start = corpus.part_of.copy(), 0
    for name, size in sizes.items():
        part_of[order[start : start + size]] = PARTS.index(name)
        start += size
    return replace(corpus, part_of=part_of)


def halve_validation(corpus: Corpus, seed: int = 0) -> Corpus:
    """Divide the validation part at random into filing and calibration, if the corpus has neither of them.

    For classifiers that do not stop by validation texts: the texts that the corpus sets aside stay out of training.
    """
    n_texts = corpus.part_sizes.get("validation", 0)
    if n_texts < 2 or {"filing", "calibration"} & set(corpus.part_sizes):
        return corpus
    note = f"The {count(n_texts)} validation texts are divided at random into filing and calibration."
    halves = {"filing": n_texts // 2, "calibration": n_texts - n_texts // 2}
    return _draw(corpus, "validation", halves, seed).with_notes(note)


def _as_number(name: str, size: Size, n_texts: int) -> int:
    """Turn a size into a number of texts."""
    is_count = isinstance(size, int | np.integer) and not isinstance(size, bool) and size >= 0
    is_share = isinstance(size, float | np.floating) and 0 <= size < 1
    if not is_count and not is_share:
        raise InvalidInputError(f"The size of {name!r} must be a number of texts, or a share in [0, 1). Got {size!r}.")
    return int(size) if is_count or size == 0 else max(1, round(float(size) * n_texts))


def _check_rest(corpus: Corpus, sizes: Mapping[str, int], n_texts: int) -> None:
    if sum(sizes.values()) >= n_texts:
        listed = ", ".join(f"{name} {count(size)}" for name, size in sizes.items())
        raise CorpusError(
            f"The parts of corpus {corpus.name!r} must leave texts for training. Got {listed} of {count(n_texts)}."
        )


def stratified_parts(corpus: Corpus, sizes: Mapping[str, Size], seed: int = 0) -> Corpus:
    """Draw test, validation and calibration parts from training, stratified on labels (section 6.1 of the paper).

    Iterative stratification (Sechidis et al., 2011). A share is one of the training part. A text that alone carries a
    label stays in training. For the paper's experiments only: promises about new texts need `draw_parts`.
    """
    unknown = [name for name in sizes if name not in _STRATIFIED_ORDER or name in corpus.part_sizes]
    if unknown:
        raise InvalidInputError(f"Corpus {corpus.name!r} has {unknown[0]!r} already, or it cannot be stratified.")
    pool = np.flatnonzero(corpus.part_of == PARTS.index("train"))
    numbers = {name: _as_number(name, sizes[name], len(pool)) for name in _STRATIFIED_ORDER if sizes.get(name)}
    _check_rest(corpus, numbers, len(pool))
    state, part_of = np.random.RandomState(seed), corpus.part_of.copy()
    for name, size in numbers.items():
        strata, order = corpus.labels[pool], state.permutation(len(pool))
        drawn = np.zeros(len(pool), dtype=np.bool_)
        drawn[order] = _deal(strata[order], size, state)
        _adjust(drawn, strata, size)
        part_of[pool[drawn]] = PARTS.index(name)
        pool = pool[~drawn]
    return replace(corpus, part_of=part_of)


def _deal(strata: LabelMatrix, size: int, state: np.random.RandomState) -> npt.NDArray[np.bool_]:
    """Return a mask of about `size` texts by iterative stratification.

    The label with the fewest texts left is dealt first. Each of its texts goes where most texts of this label are
    missing, then where most texts are missing, then to a random side.
    """
    n_texts = strata.shape[0]
    shares = np.array([n_texts - size, size]) / n_texts
    missing = (shares * n_texts).tolist()  # texts still to stay, and still to be drawn
    n_left = np.bincount(strata.indices, minlength=strata.shape[1])
    missing_labels = np.outer(shares, n_left).tolist()
    labels_of = np.split(strata.indices, strata.indptr[1:-1])
    by_label = strata.tocsc()
    drawn, is_left = np.zeros(n_texts, dtype=np.bool_), np.ones(n_texts, dtype=np.bool_)

    def deal(text: int, stay: float, draw: float) -> None:
        staying, drawing = (stay, missing[0]), (draw, missing[1])
        side = drawing > staying if drawing != staying else bool(state.choice(2))
        drawn[text], is_left[text] = side, False
        missing[side] -= 1
        for label in labels_of[text].tolist():
            missing_labels[side][label] -= 1

    while n_left.any():
        rarest = np.flatnonzero(n_left == n_left[n_left > 0].min())
        label = int(rarest[state.choice(len(rarest)) if len(rarest) > 1 else 0])
        texts = by_label.indices[by_label.indptr[label] : by_label.indptr[label + 1]]
        texts = texts[is_left[texts]]
        for text in texts.tolist():
            deal(text, missing_labels[0][label], missing_labels[1][label])
        n_left -= np.bincount(strata[texts].indices, minlength=len(n_left))
    for text in np.flatnonzero(is_left).tolist():
        deal(text, *missing)
    return drawn


def _adjust(drawn: npt.NDArray[np.bool_], strata: LabelMatrix, size: int) -> None:
    """Move texts in place, one by one, until exactly `size` are drawn and every label keeps a text that is not."""
    # The text that moves brings the drawn labels nearest, in squares, to their share. All sums are of integers and
    # ties go to the first text: the result is the same on every machine.
    counts: Any = strata.astype(np.int64)
    totals, cardinality = counts.sum(axis=0), counts.sum(axis=1)
    by_label = strata.tocsc()
    for label in range(strata.shape[1]):
        texts = by_label.indices[by_label.indptr[label] : by_label.indptr[label + 1]]
        if len(texts) and drawn[texts].all():
            drawn[texts.min()] = False
    while (n_drawn := int(drawn.sum())) != size:
        n_with_label = counts.T @ drawn
        gain = 2 * (counts @ (n_with_label * len(drawn) - totals * size))
        if n_drawn > size:
            gain = gain - cardinality * len(drawn)
            movable = drawn
        else:
            gain = -gain - cardinality * len(drawn)
            movable = ~drawn & (counts @ (totals - n_with_label == 1) == 0)
            movable = movable if movable.any() else ~drawn
        candidates = np.flatnonzero(movable)
        text = candidates[np.argmax(gain[candidates])]
        drawn[text] = not drawn[text]


def reduce_labels(corpus: Corpus, n_labels: int = 20) -> Corpus:
    """Keep the most frequent labels, and the texts that have one of them (section 6.1 of the paper).

    Labels are counted over the whole corpus; of equally frequent ones, the one that occurs first is kept. Parts lose
    the texts that go. The corpus is named after the old one and the number: "reuters20".
    """
    if not 1 <= n_labels <= len(corpus.label_names):
        raise InvalidInputError(f"The n_labels must be from 1 to {len(corpus.label_names)}. Got {n_labels!r}.")
    counts = np.bincount(corpus.labels.indices, minlength=len(corpus.label_names))
    first = np.full(len(counts), len(corpus), dtype=np.int64)
    np.minimum.at(first, corpus.labels.indices, np.repeat(np.arange(len(corpus)), np.diff(corpus.labels.indptr)))
    kept = np.sort(np.lexsort((np.arange(len(counts)), first, -counts))[:n_labels])
    labels = corpus.labels[:, kept]
    smaller = replace(
        corpus,
        name=f"{corpus.name}{n_labels}",
        labels=labels,
        label_names=tuple(corpus.label_names[label] for label in kept),
    )
    note = f"Reduced to the texts of the {n_labels} most frequent of {len(counts)} labels."
    return smaller.rows(np.diff(labels.indptr) > 0).with_notes(note)
