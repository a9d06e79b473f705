"""Parts drawn from the training part: exact sizes, stratified, the same on every machine."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from surelabel._core.extras import import_extra
from surelabel._core.validation import check_count
from surelabel.corpora.corpus import Corpus
from surelabel.corpora.label_matrices import LabelMatrix
from surelabel.exceptions import CorpusError, DataWarning, InvalidInputError

Size = int | float

_ORDER = ("test", "validation", "calibration")
# Stratification works on a dense array, in time that grows with texts times labels squared. Of more labels than the
# first number nearly all are too rare to be balanced: as many as the second are.
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
    stratify = import_extra("iterstrat.ml_stratifiers", "corpora", "A stratified split").IterativeStratification
    strata = _as_strata(labels)
    shares = np.array([n_texts - size, size]) / n_texts
    drawn[order] = stratify(labels=strata[order], r=shares, random_state=state) == 1
    return _adjusted(drawn, strata, size)


def _as_strata(labels: LabelMatrix) -> npt.NDArray[np.bool_]:
    """Return the labels to balance, dense: all, or the most frequent ones of very many."""
    if labels.shape[1] <= _MAX_STRATA:
        return np.asarray(labels.toarray(), dtype=np.bool_)
    counts = np.bincount(labels.indices, minlength=labels.shape[1])
    frequent = np.sort(np.argsort(-counts, kind="stable")[:_STRATA_OF_MANY])
    return np.asarray(labels[:, frequent].toarray(), dtype=np.bool_)


def _adjusted(drawn: npt.NDArray[np.bool_], strata: npt.NDArray[np.bool_], size: int) -> npt.NDArray[np.bool_]:
    """Move texts, one by one, until exactly `size` are drawn and no label has lost its last training text."""
    # The text that moves is the one that brings the drawn labels nearest, in squares, to their share. All sums are of
    # integers, and ties go to the first text: no rounding can change the answer.
    drawn = drawn.copy()
    counts = strata.astype(np.int64)
    totals = counts.sum(axis=0)
    n_texts, cardinality = len(drawn), counts.sum(axis=1)
    _return_lone_texts(drawn, strata)
    while (n_drawn := int(drawn.sum())) != size:
        excess = counts[drawn].sum(axis=0) * n_texts - totals * size
        gain = 2 * (counts @ excess)
        if n_drawn > size:
            gain = gain - cardinality * n_texts
            movable = drawn
        else:
            gain = -gain - cardinality * n_texts
            last = counts[~drawn].sum(axis=0) == 1
            movable = ~drawn & ~(strata & last).any(axis=1)
            if not movable.any():
                movable = ~drawn
        candidates = np.flatnonzero(movable)
        text = candidates[np.argmax(gain[candidates])]
        drawn[text] = not drawn[text]
    return drawn


def _return_lone_texts(drawn: npt.NDArray[np.bool_], strata: npt.NDArray[np.bool_]) -> None:
    """Give back, in place, the first text of every label that has none left in the pool."""
    for label in np.flatnonzero(strata.any(axis=0) & ~strata[~drawn].any(axis=0)):
        if not strata[~drawn, label].any():
            drawn[np.flatnonzero(strata[:, label])[0]] = False


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
