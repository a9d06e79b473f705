"""Parts drawn from the training part: exact sizes, stratified, the same on every machine."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from surelabel._core import progress
from surelabel._core.validation import check_count
from surelabel.corpora.corpus import Corpus
from surelabel.corpora.label_matrices import LabelMatrix, as_canonical
from surelabel.exceptions import CorpusError, DataWarning, InvalidInputError

Size = int | float

_ORDER = ("test", "validation", "calibration")
# Of more labels than the first number nearly all are too rare to be balanced: as many as the second are.
_MAX_STRATA, _STRATA_OF_MANY = 1_000, 100


@dataclass(frozen=True)
class Split:
    """How parts were drawn from the training part: with which sizes, as in `split`, and which seed.

    Examples
    --------
    >>> from surelabel import corpora
    >>> corpus = corpora.split(corpora.generate_synthetic(300, n_labels=5), calibration=99, test=0.2)
    >>> corpus.split
    Split(sizes={'test': 0.2, 'calibration': 99}, seed=0, stratified=True)
    """

    sizes: Mapping[str, Size]
    seed: int = 0
    stratified: bool = True


def split(
    corpus: Corpus,
    *,
    test: Size | None = None,
    validation: Size | None = None,
    calibration: Size | None = None,
    seed: int = 0,
    stratified: bool = True,
) -> Corpus:
    """Draw parts from the training part (section 6.1 of the paper).

    Texts are drawn with respect to label distributions (Sechidis et al., 2011), first the test part, then
    validation, then calibration; each has exactly the size asked for. A text that alone carries a label
    stays in the training part. Of more than 1,000 labels only the 100 most frequent are looked at. The same
    seed gives the same parts on every machine. A DataWarning names labels that the training part does not have.

    Parameters
    ----------
    corpus : Corpus
        Must have a training part, and none yet of the parts asked for.
    test, validation, calibration : int or float, optional
        A number of texts, or a share (below 1) of the training part before anything is drawn. None or 0:
        not drawn. If more is asked for than there is, a CorpusError says so.
    stratified : bool, default=True
        False draws uniformly, so that calibration and training texts are exactly exchangeable.

    Examples
    --------
    >>> from surelabel import corpora
    >>> whole = corpora.load("synthetic", n_texts=400, test=0, validation=0, calibration=0)
    >>> whole
    Corpus 'synthetic': 400 texts, 24 labels (train 400)
    >>> corpora.split(whole, test=0.25, calibration=99, seed=1)
    Corpus 'synthetic': 400 texts, 24 labels (train 201, calibration 99, test 100)
    """
    asked = {"test": test, "validation": validation, "calibration": calibration}
    sizes = {name: size for name, size in asked.items() if size is not None and _check_size(name, size)}
    check_count("seed", seed, who="split", most=2**32 - 1)
    if not sizes:
        _warn_of_unseen_labels(corpus)
        return corpus
    numbers = _as_numbers(corpus, sizes)
    pool = np.array(corpus.parts["train"])
    parts = dict(corpus.parts)
    state = np.random.RandomState(seed)  # its stream is frozen, unlike the newer generators'
    with progress.step("drawing parts"):
        for name in _ORDER:
            if name in numbers:
                drawn = _draw(corpus.label_matrix[pool], numbers[name], state, stratified=stratified)
                parts[name] = pool[drawn]
                pool = pool[~drawn]
    parts["train"] = pool
    earlier = dict(corpus.split.sizes) if corpus.split else {}
    result = corpus.with_parts(parts, split=Split({**earlier, **sizes}, int(seed), stratified))
    _warn_of_unseen_labels(result)
    return result


def _check_size(name: str, size: Size) -> bool:
    """Raise if a size is not one; tell whether anything is to be drawn."""
    whole = isinstance(size, int | np.integer) and not isinstance(size, bool)
    share = isinstance(size, float | np.floating) and 0 <= size < 1
    if not (whole and size >= 0) and not share:
        raise InvalidInputError(
            f"The {name!r} parameter of split must be a number of texts (int) or a share in [0, 1) (float). "
            f"Got {size!r} instead."
        )
    return size > 0


def _as_numbers(corpus: Corpus, sizes: Mapping[str, Size]) -> dict[str, int]:
    """Turn sizes into numbers of texts; raise if the training part cannot give them."""
    if "train" not in corpus.parts:
        raise CorpusError(
            f"Parts are drawn from the 'train' part. Corpus {corpus.name!r} has {list(corpus.parts)} instead."
        )
    there = [name for name in sizes if name in corpus.parts]
    if there:
        raise CorpusError(
            f"The {there[0]!r} part of corpus {corpus.name!r} must not be there before it is drawn. "
            f"Got {len(corpus.parts[there[0]]):,} texts in it already; leave {there[0]!r} out, or start from "
            "the corpus before its split."
        )
    n_texts = len(corpus.parts["train"])
    numbers = {name: max(1, round(float(size) * n_texts)) if size < 1 else int(size) for name, size in sizes.items()}
    needed = sum(numbers.values())
    if needed >= n_texts:
        listed = ", ".join(f"{name} {numbers[name]:,}" for name in _ORDER if name in numbers)
        raise CorpusError(
            f"The parts drawn from corpus {corpus.name!r} must leave at least one text for training. Got {listed}, "
            f"{needed:,} in all, from {n_texts:,} texts instead; ask for less, e.g. {next(iter(numbers))}=0.2."
        )
    return numbers


def _draw(labels: LabelMatrix, size: int, state: np.random.RandomState, *, stratified: bool) -> npt.NDArray[np.bool_]:
    """Return a mask of exactly `size` texts of the pool."""
    n_texts = labels.shape[0]
    order = state.permutation(n_texts)
    drawn = np.zeros(n_texts, dtype=np.bool_)
    if not stratified:
        drawn[order[:size]] = True
        return drawn
    strata = _as_strata(labels)
    drawn[order] = _stratified(strata[order], size, state)
    return _adjusted(drawn, strata, size)


def _as_strata(labels: LabelMatrix) -> LabelMatrix:
    """Return the labels to balance: all, or the most frequent ones of very many."""
    if labels.shape[1] <= _MAX_STRATA:
        return labels
    counts = np.bincount(labels.indices, minlength=labels.shape[1])
    return as_canonical(labels[:, np.sort(np.argsort(-counts, kind="stable")[:_STRATA_OF_MANY])])


def _stratified(strata: LabelMatrix, size: int, state: np.random.RandomState) -> npt.NDArray[np.bool_]:
    """Return a mask of about `size` texts, drawn by iterative stratification.

    Labels are dealt out one after the other, the one with the fewest texts left first. Each of its texts goes where
    most texts with this label are still missing, or else where most texts are missing, or else by lot.
    """
    n_texts = strata.shape[0]
    shares = np.array([n_texts - size, size]) / n_texts
    missing = (shares * n_texts).tolist()  # texts of those that stay, and of those that are drawn
    n_left = np.bincount(strata.indices, minlength=strata.shape[1])
    missing_labels = np.outer(shares, n_left).tolist()
    labels_of = np.split(strata.indices, strata.indptr[1:-1])
    by_label = strata.tocsc()
    drawn, is_left = np.zeros(n_texts, dtype=np.bool_), np.ones(n_texts, dtype=np.bool_)

    def deal(text: int, stay: float, draw: float) -> None:
        staying, drawing = (stay, missing[0]), (draw, missing[1])
        to_draw = drawing > staying if drawing != staying else bool(state.choice(2))
        drawn[text], is_left[text] = to_draw, False
        missing[to_draw] -= 1
        for label in labels_of[text].tolist():
            missing_labels[to_draw][label] -= 1

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


def _adjusted(drawn: npt.NDArray[np.bool_], strata: LabelMatrix, size: int) -> npt.NDArray[np.bool_]:
    """Move texts, one by one, until exactly `size` are drawn and no label has lost its last training text."""
    # The text that moves is the one that brings the drawn labels nearest, in squares, to their share. All sums are of
    # integers, and ties go to the first text: no rounding can change the answer.
    drawn = drawn.copy()
    counts: Any = strata.astype(np.int64)
    totals, cardinality = counts.sum(axis=0), counts.sum(axis=1)
    n_texts = len(drawn)
    _return_lone_texts(drawn, strata)
    while (n_drawn := int(drawn.sum())) != size:
        n_with_label = counts.T @ drawn
        gain = 2 * (counts @ (n_with_label * n_texts - totals * size))
        if n_drawn > size:
            gain = gain - cardinality * n_texts
            movable = drawn
        else:
            gain = -gain - cardinality * n_texts
            is_last = totals - n_with_label == 1
            movable = ~drawn & (counts @ is_last == 0)
            if not movable.any():
                movable = ~drawn
        candidates = np.flatnonzero(movable)
        text = candidates[np.argmax(gain[candidates])]
        drawn[text] = not drawn[text]
    return drawn


def _return_lone_texts(drawn: npt.NDArray[np.bool_], strata: LabelMatrix) -> None:
    """Give back, in place, the first text of every label that has none left in the pool."""
    by_label = strata.tocsc()
    for label in range(strata.shape[1]):
        texts = by_label.indices[by_label.indptr[label] : by_label.indptr[label + 1]]
        if len(texts) and drawn[texts].all():
            drawn[texts.min()] = False


def _warn_of_unseen_labels(corpus: Corpus) -> None:
    """Warn of labels in other parts that the training part does not have."""
    if "train" not in corpus.parts:
        return
    present = {name: np.unique(corpus.label_matrix[rows].indices) for name, rows in corpus.parts.items()}
    for name in [name for name in present if name != "train"]:
        unseen = [corpus.label_names[label] for label in np.setdiff1d(present[name], present["train"])]
        if unseen:
            listed = ", ".join(map(repr, unseen[:5])) + (", ..." if len(unseen) > 5 else "")
            warnings.warn(
                f"{len(unseen):,} labels of the {name!r} part of corpus {corpus.name!r} do not occur in its "
                f"training part: {listed}. No classifier can learn them; their texts count as errors.",
                DataWarning,
                stacklevel=3,
            )
