"""Tags to assign and tags to consider: a promise about single tags, for texts whose whole label-set is out of reach.

A text's tags are cut at two probabilities: tags at or above `consider_threshold_` are worth considering, those at or
above `assign_threshold_` are assigned. Both are found by conformal risk control (Angelopoulos et al., *Conformal Risk
Control*, 2024): each text has a loss in [0, 1] that only falls as the threshold becomes more careful; the least careful
threshold with (sum of the n losses + 1) / (n + 1) <= level is taken. The expected loss of a new text is then at most
the level.

- *consider*: the share of the text's true tags that are missing; 0 for a text without tags. A true tag that the
  classifier does not know is always missing; one off its shortlist is missing unless all tags are considered.
- *assign*: the share of the assigned tags that are false; 0 if none is assigned. This share can rise and fall with the
  threshold, so the loss is the largest share over this threshold and all higher ones.

If few texts have an assigned tag, the mean says little. So *assign* has a second condition: of all tags assigned to
calibration texts, counting one extra false tag, at most the level may be false. Both conditions must hold at the same
threshold. The second has no theorem of its own; it makes the first no weaker.
"""

from __future__ import annotations

import itertools
import math
import os
import warnings
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from surelabel._core import files
from surelabel._core.validation import (
    BoolArray,
    FloatArray,
    IntArray,
    aligned_rows,
    as_fraction,
    as_names,
    as_probabilities,
    column_names,
    invalid,
    label_places,
)
from surelabel.exceptions import CalibrationWarning, NotCalibratedError
from surelabel.guarantees.levels import from_file
from surelabel.labels.shortlists import Shortlists
from surelabel.predictor_file import as_artifact_error

_KIND = "tag-bounds"
# The probability of a true tag that is not on a shortlist: below all others.
_UNLISTED = -1.0
# Sums of shares such as 1/3 are rounded.
_TOLERANCE = 1.0 + 1e-12


class TagDecisions(NamedTuple):
    """Which tags to assign and which to consider: (n, d) bool each, or a list of label indices per text of shortlists.

    Tags to assign are to be considered too.
    """

    assign: Any
    consider: Any


class TagBounds:
    """For each text, the tags to assign (few of them false) and the tags to consider (few true ones missing).

    Parameters
    ----------
    max_missed : float, str, Decimal or Fraction in (0, 1)
        Mean share of a text's true tags that may be missing from those to consider.
    max_false : the same
        Mean share of a text's assigned tags that may be false.
    label_names : sequence of str, optional
        Names of the tags; a data frame brings its own.

    Attributes
    ----------
    consider_threshold_, assign_threshold_ : float
        Tags with a probability of this or more are considered, or assigned. -inf if all tags are, inf if none is.
    problem_ : str or None
        Why `max_missed` cannot be promised, in a sentence. All tags are then considered.
    n_texts_ : int
        Number of calibration texts.
    summary_ : str
        The result in plain words.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> probabilities = rng.beta(0.1, 0.4, (3000, 20))
    >>> labels = rng.random((3000, 20)) < probabilities
    >>> bounds = TagBounds(max_missed=0.1, max_false=0.1).calibrate(probabilities[:1000], labels[:1000])
    >>> assign, consider = bounds.predict(probabilities[1000:])
    >>> missed = (labels[1000:] & ~consider).sum(axis=1) / np.maximum(labels[1000:].sum(axis=1), 1)
    >>> bool(0.08 < missed.mean() < 0.12)
    True
    """

    consider_threshold_: float
    assign_threshold_: float
    problem_: str | None
    n_texts_: int
    summary_: str

    def __init__(
        self, max_missed: Any = "0.1", max_false: Any = "0.05", label_names: Sequence[str] | None = None
    ) -> None:
        self._max_missed = as_fraction(max_missed, "max_missed", "TagBounds")
        self._max_false = as_fraction(max_false, "max_false", "TagBounds")
        self.label_names = label_names

    @property
    def max_missed(self) -> float:
        """Mean share of a text's true tags that may be missing."""
        return float(self._max_missed)

    @property
    def max_false(self) -> float:
        """Mean share of a text's assigned tags that may be false."""
        return float(self._max_false)

    @property
    def n_needed(self) -> int:
        """Fewest calibration texts with which `max_missed` can be promised."""
        needed: int = math.ceil(1 / self._max_missed) - 1
        return needed

    @property
    def n_labels(self) -> int:
        """Number of tags."""
        return self._n_labels

    def __repr__(self) -> str:
        shown = f"TagBounds(max_missed={self.max_missed:g}, max_false={self.max_false:g})"
        return f"<{shown}: {self.summary_}>" if hasattr(self, "summary_") else shown

    def calibrate(self, probabilities: Any, labels: Any) -> TagBounds:
        """Find the two thresholds on texts with known tags that were not used to train or choose anything.

        Parameters
        ----------
        probabilities : (n, d) array-like, data frame or Shortlists
        labels : (n, d) 0/1 array-like, data frame or sparse matrix, or one collection of tag names per text
            A tag that is not among the names counts as missed.

        Returns
        -------
        self
        """
        labels = aligned_rows(labels, probabilities, "labels", "calibrate")
        given = self.label_names, column_names(probabilities), column_names(labels)
        names = next((names for names in given if names is not None), None)
        values = _as_values(probabilities, None if names is None else tuple(map(str, names)), None, "calibrate")
        self._names = as_names(names, values.shape[1], "calibrate")
        rows, columns, outside = label_places(labels, len(values), values.shape[1], self._names, "calibrate")
        known = frozenset(range(values.shape[1]) if self._names is None else self._names)
        return self._fit(values, rows, columns, _count_unknown(labels, outside, known))

    def calibrate_on_none(self, n_labels: int) -> TagBounds:
        """Keep the promise without calibration texts: all tags are considered and none is assigned. Return self."""
        self._names = as_names(self.label_names, n_labels, "calibrate_on_none")
        none = np.zeros(0, dtype=np.int64)
        return self._fit(np.zeros((0, n_labels)), none, none, none)

    def _fit(self, values: Any, rows: IntArray, columns: IntArray, n_unknown: IntArray) -> TagBounds:
        """Find the thresholds for texts with true tags at rows (m,) and columns (m,), and n_unknown (n,) others."""
        self._n_labels: int = values.shape[1]
        self.n_texts_, self.problem_ = len(values), None
        n_true = np.maximum(np.bincount(rows, minlength=len(values)) + n_unknown, 1)
        true_values, texts, listed, is_true = _tags_of(values, rows, columns)
        always = float((n_unknown / n_true).sum())
        threshold = self._highest_to_consider(true_values, 1.0 / n_true[rows], always)
        if threshold is None:
            self.problem_ = self._describe_problem(always)
            threshold = -math.inf
        is_all = threshold <= (_UNLISTED if isinstance(values, Shortlists) else 0.0)
        self.consider_threshold_ = -math.inf if is_all else threshold
        self.assign_threshold_ = self._lowest_to_assign(texts, listed, is_true)
        self.summary_ = self._describe(values)
        if self.problem_ is not None:
            warnings.warn(self.problem_, CalibrationWarning, stacklevel=3)
        return self

    def _highest_to_consider(self, values: FloatArray, costs: FloatArray, always: float) -> float | None:
        """Return the highest threshold that keeps missed tags within the level, None if there is none.

        values (m,): probabilities of true tags; costs (m,): what missing each adds to its text's loss; always: the sum
        of what is missed at any threshold.
        """
        order = np.argsort(values, kind="stable")
        missed = always + np.append(0.0, np.cumsum(costs[order]))
        ranked = np.append(values[order], np.inf)
        is_new = np.append(True, ranked[1:] > ranked[:-1])
        fits = is_new & (missed + 1.0 <= float(self._max_missed * (self.n_texts_ + 1)) * _TOLERANCE)
        return float(ranked[fits][-1]) if fits.any() else None

    def _lowest_to_assign(self, rows: IntArray, values: FloatArray, is_true: BoolArray) -> float:
        """Return the lowest threshold at which both conditions hold, inf if there is none.

        rows, values, is_true (m,): text, probability and truth of all tags that can be assigned.
        """
        order = np.lexsort((-values, rows))
        points, growth = _false_shares(rows[order], values[order], ~is_true[order])
        by_value = np.argsort(-values, kind="stable")
        ranked = values[by_value]
        last = np.append(ranked[1:] < ranked[:-1], True) if len(ranked) else np.zeros(0, dtype=np.bool_)
        candidates = ranked[last]
        # Condition 1: the sum of the texts' losses, at each candidate; jumps at one probability come together.
        falling = np.argsort(-points, kind="stable")
        sums = np.append(0.0, np.cumsum(growth[falling]))
        losses = sums[np.searchsorted(-points[falling], -candidates, side="right")]
        fits = losses + 1.0 <= float(self._max_false * (self.n_texts_ + 1)) * _TOLERANCE
        # Condition 2: the share of false tags among all assigned ones.
        n_false, n_assigned = np.cumsum(~is_true[by_value])[last], np.arange(1, len(ranked) + 1)[last]
        fits &= n_false + 1.0 <= float(self._max_false) * (n_assigned + 1.0) * _TOLERANCE
        return float(candidates[fits][-1]) if fits.any() else math.inf

    def _describe_problem(self, always: float) -> str:
        """Return why the promise about missed tags cannot be kept."""
        level = f"{100 * self.max_missed:g} %"
        if self.n_texts_ < self.n_needed:
            return (
                f"To miss at most {level} of the true tags, at least {self.n_needed:,} calibration texts that people "
                f"see are needed; there are {self.n_texts_:,}."
            )
        unknown = f"{100 * always / self.n_texts_:.1f} %"
        return (
            f"Missing at most {level} of the true tags cannot be promised: {unknown} of the calibration texts' true "
            "tags are unknown to the classifier."
        )

    def _describe(self, values: Any) -> str:
        """Return the result in plain words, with mean numbers of tags on the calibration texts."""
        if self.problem_ is not None or not len(values):
            return f"All {self._n_labels:,} tags must be considered. {self.problem_ or ''}".strip()
        counts = [sum(map(len, tags)) / len(values) for tags in zip(*self._ranked(values), strict=True)]
        false = f"{100 * self.max_false:g} %"
        assign = f"assign {counts[0]:.1f} with at most {false} of them false"
        if math.isinf(self.assign_threshold_):
            assign = f"no tag can be assigned with at most {false} false"
        consider = f"Consider {counts[1]:.1f} of {self._n_labels:,} tags per text to miss at most"
        return f"{consider} {100 * self.max_missed:g} % of the true ones; {assign}."

    def _checked(self, probabilities: Any, who: str) -> Any:
        """Return new texts' probabilities, checked; raise before calibration."""
        if not hasattr(self, "summary_"):
            raise NotCalibratedError(f"This TagBounds is not calibrated. Call 'calibrate' before '{who}'.")
        return _as_values(probabilities, self._names, self._n_labels, who)

    def predict(self, probabilities: Any) -> TagDecisions:
        """Return the tags to assign and those to consider: (n, d) bool arrays, lists of indices for shortlists."""
        values = self._checked(probabilities, "predict")
        if isinstance(values, Shortlists):
            ranked = self._ranked(values)
            return TagDecisions([sorted(assign) for assign, _ in ranked], [sorted(consider) for _, consider in ranked])
        return TagDecisions(values >= self.assign_threshold_, values >= self._careful)

    def ranked(self, probabilities: Any) -> list[tuple[tuple[int, ...], tuple[int, ...]]]:
        """Return each text's tags to assign and tags to consider by index, the most probable first."""
        return self._ranked(self._checked(probabilities, "ranked"))

    @property
    def _careful(self) -> float:
        """The threshold of tags to consider: assigned tags are among them."""
        return min(self.consider_threshold_, self.assign_threshold_)

    def _ranked(self, values: Any) -> list[tuple[tuple[int, ...], tuple[int, ...]]]:
        """Return what `ranked` does, for checked probabilities."""
        is_short, n_texts = isinstance(values, Shortlists), len(values)
        probabilities = values.probabilities if is_short else values
        inside = probabilities >= self._careful
        if is_short:
            inside &= values.labels < self._n_labels
        rows, places = np.nonzero(inside)
        found = probabilities[rows, places]
        columns = values.labels[rows, places] if is_short else places
        order = np.lexsort((columns, -found, rows))
        ends = np.cumsum(np.bincount(rows, minlength=n_texts)).tolist()
        n_assigned = np.bincount(rows[found >= self.assign_threshold_], minlength=n_texts).tolist()
        tags = columns[order].tolist()
        consider = [tuple(tags[start:end]) for start, end in itertools.pairwise([0, *ends])]
        assign = [listed[:n] for listed, n in zip(consider, n_assigned, strict=True)]
        if is_short and self.consider_threshold_ == -math.inf:
            consider = [(*listed, *_others(listed, self._n_labels)) for listed in consider]
        return list(zip(assign, consider, strict=True))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the calibrated bounds to one .npz file."""
        if not hasattr(self, "summary_"):
            raise NotCalibratedError("This TagBounds is not calibrated. Call 'calibrate' before 'save'.")
        header = {
            "kind": _KIND,
            "max_missed": str(self._max_missed),
            "max_false": str(self._max_false),
            "label_names": self._names,
            "n_labels": self._n_labels,
            "n_texts": self.n_texts_,
            "problem": self.problem_,
            "summary": self.summary_,
        }
        files.write_arrays(path, header, {"thresholds": [self.consider_threshold_, self.assign_threshold_]})

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> TagBounds:
        """Read a file made by `save`; no code from the file is run."""
        header, arrays = files.read_arrays(path, _KIND)
        with as_artifact_error(path):
            bounds = cls(from_file(header["max_missed"]), from_file(header["max_false"]))
            thresholds = arrays["thresholds"]
            if thresholds.dtype != np.float64 or thresholds.shape != (2,) or np.isnan(thresholds).any():
                raise ValueError("its thresholds are not two numbers")
            n_labels, n_texts, problem = header["n_labels"], header["n_texts"], header["problem"]
            if type(n_labels) is not int or type(n_texts) is not int or n_labels < 1 or n_texts < 0:
                raise ValueError("its counts are not whole numbers")
            if not (problem is None or isinstance(problem, str)) or not isinstance(header["summary"], str):
                raise ValueError("its sentences are not text")
            if problem is None and n_texts < bounds.n_needed:
                raise ValueError("it has too few texts for its promise")
            bounds._names = bounds.label_names = as_names(header["label_names"], n_labels, "load")
        bounds.consider_threshold_, bounds.assign_threshold_ = thresholds.tolist()
        bounds._n_labels, bounds.n_texts_, bounds.problem_, bounds.summary_ = (
            n_labels,
            n_texts,
            problem,
            header["summary"],
        )
        return bounds


def _as_values(probabilities: Any, names: Any, n_labels: int | None, who: str) -> Any:
    """Return probabilities as a checked array (n, d) or as Shortlists."""
    if not isinstance(probabilities, Shortlists):
        return as_probabilities(probabilities, names, who, n_labels)
    if n_labels is not None and probabilities.n_labels != n_labels:
        raise invalid("probabilities", who, f"shortlists of {n_labels} labels", f"{probabilities.n_labels} labels")
    return probabilities


def _count_unknown(labels: Any, outside: BoolArray, known: frozenset[Any]) -> IntArray:
    """Return how many of each text's true tags are unknown, (n,)."""
    counts, labels = (
        np.zeros(len(outside), dtype=np.int64),
        labels.to_numpy() if hasattr(labels, "to_numpy") else labels,
    )
    for row in np.flatnonzero(outside).tolist():
        counts[row] = len(set(labels[row]) - known)
    return counts


def _tags_of(values: Any, rows: IntArray, columns: IntArray) -> tuple[FloatArray, IntArray, FloatArray, BoolArray]:
    """Return probabilities of true tags (m,), the lowest of all if a shortlist leaves one out; then all listed tags.

    rows, columns (m,): texts and labels of the true tags. Of listed tags: text, probability and truth.
    """
    n, d = values.shape
    if isinstance(values, Shortlists):
        # Shortlists ascend within a row, so that (row, label) ascend as one number.
        listed, is_listed, probabilities = values.labels, values.is_listed.ravel(), values.probabilities
        d += 1
    else:
        listed, is_listed, probabilities = np.arange(d)[None], np.ones(n * d, dtype=np.bool_), values
    keys, wanted = (listed + np.arange(n)[:, None] * d).ravel(), rows * d + columns
    places = np.minimum(np.searchsorted(keys, wanted), max(len(keys) - 1, 0))
    found, is_true = keys[places] == wanted, np.zeros(len(keys), dtype=np.bool_)
    is_true[places[found]] = True
    true_values = np.where(found, probabilities.ravel()[places], _UNLISTED)
    texts = np.repeat(np.arange(n), probabilities.shape[1])
    return true_values, texts[is_listed], probabilities.ravel()[is_listed], is_true[is_listed]


def _others(listed: tuple[int, ...], n_labels: int) -> list[int]:
    """Return the labels that are not listed."""
    present = set(listed)
    return [label for label in range(n_labels) if label not in present]


def _false_shares(rows: IntArray, values: FloatArray, is_false: BoolArray) -> tuple[FloatArray, FloatArray]:
    """Return at which thresholds, and by how much, a text's largest share of false tags so far grows as they fall.

    Tags (m,) are sorted by text, then by falling probability.
    """
    if len(rows) == 0:
        return np.empty(0), np.empty(0)
    is_first = np.append(True, rows[1:] != rows[:-1])
    starts = np.flatnonzero(is_first)
    first = np.repeat(starts, np.diff(np.append(starts, len(rows))))
    n_false = np.cumsum(is_false)
    shares = (n_false - (n_false - is_false)[first]) / (np.arange(len(rows)) - first + 1.0)
    # Tags of equal probability are assigned together: only the share after the last of them counts.
    shares[np.append((values[1:] == values[:-1]) & ~is_first[1:], False)] = 0.0
    # A running maximum per text in one pass: each text is lifted over all that come before it.
    lift = 2.0 * np.cumsum(is_first)
    largest = np.maximum.accumulate(shares + lift) - lift
    growth = largest - np.where(is_first, 0.0, np.append(0.0, largest[:-1]))
    grows = growth > 1e-9
    return values[grows], growth[grows]
