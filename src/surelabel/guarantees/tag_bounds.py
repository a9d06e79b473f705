"""Tags to assign and tags to consider: a promise about single tags, if whole label-sets are out of reach.

A text's tags are cut at two probabilities. Those from `consider_threshold_` on are worth considering, those from
`assign_threshold_` on are assigned. Both are found by conformal risk control (Angelopoulos et al., *Conformal Risk
Control*, 2024): a loss in [0, 1] per text that only falls as the threshold becomes more careful, and the least careful
threshold with (sum of the n losses + 1) / (n + 1) <= bound. The expected loss of a new text is then at most the bound.

- *consider*: the share of the text's true tags that are missing; 0 for a text without tags.
- *assign*: the share of the assigned tags that are false; 0 if none is assigned. This one may rise and fall with the
  threshold. The loss that is controlled is the largest share over this threshold and all higher ones, which
  only falls, and is never smaller.

A mean over all texts is small if few texts have an assigned tag. So a second condition holds for *assign*: of
all tags that are assigned to calibration texts, with one more false one added, at most the bound may be false. The
lowest threshold that keeps both is taken. This condition has no theorem of its own; it makes the first no weaker.

With `assurance`, thresholds keep the bound with that probability over calibration texts: the mean loss is bounded from
above by the inequalities of Hoeffding and Bentkus (Bates et al., *Distribution-free, risk-controlling prediction sets*,
2021), in place of the + 1.
"""

from __future__ import annotations

import math
import os
import warnings
from collections.abc import Sequence
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
import scipy.special

from surelabel import exceptions
from surelabel._core.npz_file import NpzFormat
from surelabel._core.validation import (
    FloatArray,
    IntArray,
    as_label_names,
    as_share,
    check_calibrated,
    names_of_columns,
)
from surelabel.exceptions import CalibrationWarning, InvalidInputError
from surelabel.guarantees.files import damaged
from surelabel.guarantees.tag_texts import ROUNDING, TagTexts, false_shares, tag_texts_of
from surelabel.labels.sparse import SparseProbabilities, as_any_probabilities

_ARRAYS = ("true_rows", "true_values", "rows", "values", "is_true")
_FORMAT = NpzFormat("surelabel-tag-bounds", 1, "a file", ("thresholds",), _ARRAYS)


class TagDecisions(NamedTuple):
    """Which tags to assign and which to consider, each (n, d) bool; CSR arrays if probabilities were sparse.

    Tags to assign are to be considered too.
    """

    assign: Any
    consider: Any


class RankedTag(NamedTuple):
    """A tag to consider: its name (or index), its probability, and whether it is assigned."""

    tag: str | int
    probability: float
    assign: bool


class TagBounds:
    """For each text, the tags to assign (few of them false) and the tags to consider (few true ones missing).

    Parameters
    ----------
    max_missed : float, str, Decimal or Fraction in (0, 1)
        Mean share of a text's true tags that may be missing from those to consider.
    max_false : the same
        Mean share of a text's assigned tags that may be false.
    assurance : the same, optional
        Probability over calibration texts that the means stay within the bounds. Without it they do on average over
        calibrations.
    label_names : sequence of str, optional
        Names of the tags; a data frame brings its own.

    Attributes
    ----------
    consider_threshold_, assign_threshold_ : float
        Tags with a probability of this or more are considered, or assigned; inf if none is.
    summary_ : str
        The result in plain words.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> probabilities = rng.beta(0.1, 0.4, (3000, 20))
    >>> labels = rng.random((3000, 20)) < probabilities
    >>> bounds = TagBounds(max_missed=0.1, max_false=0.1).calibrate(probabilities[:1000], labels[:1000])
    >>> print(bounds.summary_)
    Consider 5.0 of 20 tags per text to miss at most 10 % of the true ones; assign 2.8 with at most 10 % of them false.
    >>> assign, consider = bounds.predict(probabilities[1000:])
    >>> missed = (labels[1000:] & ~consider).sum(axis=1) / np.maximum(labels[1000:].sum(axis=1), 1)
    >>> bool(0.08 < missed.mean() < 0.12)
    True
    >>> [(tag.tag, round(tag.probability, 2), tag.assign) for tag in bounds.ranked([[0.5, 0.99] + [0.0] * 18])[0]]
    [(1, 0.99, True), (0, 0.5, False)]
    """

    _texts: TagTexts | None

    def __init__(
        self,
        max_missed: Any = 0.05,
        max_false: Any = 0.05,
        *,
        assurance: Any = None,
        label_names: Sequence[str] | None = None,
    ) -> None:
        who = "TagBounds"
        self._max_missed = as_share(max_missed, "max_missed", who=who)
        self._max_false = as_share(max_false, "max_false", who=who)
        self._assurance = None if assurance is None else as_share(assurance, "assurance", who=who)
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
    def assurance(self) -> float | None:
        """Probability over calibration texts that the bounds hold, None for the mean over calibrations."""
        return None if self._assurance is None else float(self._assurance)

    def __repr__(self) -> str:
        shown = f"TagBounds(max_missed={self.max_missed:g}, max_false={self.max_false:g})"
        return f"<{shown}: {self.summary_}>" if hasattr(self, "summary_") else shown

    def calibrate(self, probabilities: Any, labels: Any) -> TagBounds:
        """Find the two thresholds on texts with known tags, which nothing was trained or chosen on.

        Parameters
        ----------
        probabilities : (n, d) array-like or sparse
        labels : (n, d) 0/1 array-like or sparse matrix, or one collection of tag names per text

        Returns
        -------
        self
        """
        given = (self.label_names, names_of_columns(probabilities), names_of_columns(labels))
        names = next((names for names in given if names is not None), None)
        checked, tags, texts = tag_texts_of(probabilities, labels, names, who="calibrate")
        self._tags, self._n_labels = tags, int(checked.shape[1])
        return self._fit(texts, checked)

    def add(self, probabilities: Any, labels: Any) -> TagBounds:
        """Return bounds that are calibrated with more texts; these stay as they are.

        They are what calibrating with all texts at once gives, but that no tag with a probability under 0.01 is
        assigned: those of the texts before are not kept. What `summary_` says about numbers of tags is counted on the
        added texts.
        """
        check_calibrated(self, "summary_", "add")
        if self._texts is None:
            raise exceptions.NotCalibratedError(
                "These tag bounds come from a file of an older version, without what is needed to add texts. Call "
                "'calibrate' with all texts instead."
            )
        checked, _, texts = tag_texts_of(self._checked(probabilities, "add"), labels, self._tags, who="add")
        made = self.again()
        made._tags, made._n_labels = self._tags, self._n_labels
        return made._fit(self._texts.joined(texts), checked)

    def again(self) -> TagBounds:
        """Return bounds with the same parameters that are not calibrated."""
        return type(self)(self._max_missed, self._max_false, assurance=self._assurance, label_names=self.label_names)

    def _fit(self, texts: TagTexts, checked: Any) -> TagBounds:
        """Find the thresholds, and say in plain words what they give on the checked texts."""
        self._n_texts, self._texts = texts.n_texts, texts.trimmed()
        self.consider_threshold_ = self._considered(texts)
        self.assign_threshold_ = max(self._assigned(texts), math.nextafter(texts.floor, 2.0))
        thresholds = self.assign_threshold_, self.consider_threshold_
        n_assigned, n_considered = (_counts(checked, threshold) / len(checked) for threshold in thresholds)
        missed, false = f"{100 * self.max_missed:g} %", f"{100 * self.max_false:g} %"
        consider = f"Consider {n_considered:.1f} of {self._n_labels} tags per text to miss at most"
        assign = f"assign {n_assigned:.1f} with at most {false} of them false"
        if math.isinf(self.assign_threshold_):
            assign = f"no tag can be assigned with at most {false} false"
        self.summary_ = f"{consider} {missed} of the true ones; {assign}."
        if self.consider_threshold_ == 0.0:
            warnings.warn(
                f"All {self._n_labels} tags of every text must be considered to miss at most {missed} of the true "
                f"ones, as far as {self._n_texts} calibration texts can tell. Calibrate with more texts, or allow more "
                "misses.",
                CalibrationWarning,
                stacklevel=3,
            )
        return self

    def _within(self, sums: FloatArray, bound: Fraction, n_texts: int) -> Any:
        """Tell for sums of losses, ascending, whether the mean loss of new texts is within the bound."""
        if self._assurance is None:
            return sums + 1.0 <= float(bound * (n_texts + 1)) * (1.0 + 1e-12)
        return _tail_bounds(sums / n_texts, float(bound), n_texts) <= float(1 - self._assurance)

    def _considered(self, texts: TagTexts) -> float:
        """Return the highest threshold that keeps missing tags within the bound; 0 if all tags must be considered."""
        rows, values = texts.true_rows, texts.true_values
        # Each true tag that is missed costs its text 1 / (number of its true tags).
        costs = 1.0 / np.bincount(rows, minlength=texts.n_texts)[rows]
        order = np.argsort(values, kind="stable")
        ranked = values[order]
        starts = np.flatnonzero(np.append(True, ranked[1:] > ranked[:-1])) if len(ranked) else np.empty(0, np.int64)
        missed = np.concatenate([[0.0], np.cumsum(costs[order])])[np.append(starts, len(ranked))]
        allowed = np.flatnonzero(self._within(missed, self._max_missed, texts.n_texts))
        thresholds = np.append(ranked[starts], math.inf)
        return float(thresholds[allowed[-1]]) if len(allowed) else 0.0

    def _assigned(self, texts: TagTexts) -> float:
        """Return the lowest threshold that keeps false tags within the bound, inf if there is none."""
        if not self._within(np.zeros(1), self._max_false, texts.n_texts)[0]:
            return math.inf
        order = np.lexsort((-texts.values, texts.rows))
        points, growth = false_shares(texts.rows[order], texts.values[order], ~texts.is_true[order])
        ranked = np.argsort(-points, kind="stable")
        # Jumps at one probability come together: the sum after the last of them counts.
        broken = np.flatnonzero(~self._within(np.cumsum(growth[ranked]), self._max_false, texts.n_texts))
        by_text = math.nextafter(float(points[ranked[broken[0]]]), 2.0) if len(broken) else 0.0
        return self._by_tags(texts.values, texts.is_true, by_text)

    def _by_tags(self, values: FloatArray, is_true: Any, least: float) -> float:
        """Return the lowest threshold from `least` on that keeps false tags, with one more, within the bound of all."""
        order = np.argsort(-values, kind="stable")
        ranked = values[order]
        n_false = np.cumsum(~is_true[order]) + 1.0
        last = np.append(ranked[1:] < ranked[:-1], True)
        allowed = ranked[last & (n_false <= self.max_false * (np.arange(len(ranked)) + 2.0) * (1 + 1e-12))]
        from_least = allowed[allowed >= least]
        if len(from_least) == 0:
            return math.inf
        # If `least` assigns the same tags and a lower threshold would do too, it is `least`.
        is_same = len(from_least) < len(allowed) and not ((ranked >= least) & (ranked < from_least[-1])).any()
        return least if is_same else float(from_least[-1])

    def _checked(self, probabilities: Any, who: str) -> Any:
        """Return new texts' probabilities."""
        check_calibrated(self, "summary_", who)
        return as_any_probabilities(probabilities, who=who, n_labels=self._n_labels)

    def predict(self, probabilities: Any) -> TagDecisions:
        """Return the tags to assign and those to consider for each text: (n, d) bool, sparse if probabilities are."""
        checked = self._checked(probabilities, "predict")
        careful = min(self.consider_threshold_, self.assign_threshold_)
        if isinstance(checked, SparseProbabilities):
            return TagDecisions(checked.at_least(self.assign_threshold_), checked.at_least(careful))
        return TagDecisions(checked >= self.assign_threshold_, checked >= careful)

    def ranked(self, probabilities: Any) -> list[list[RankedTag]]:
        """Return the tags to consider for each text, the most probable first; equal ones in the order of the labels."""
        checked = self._checked(probabilities, "ranked")
        rows, columns, values, n_more = self.sorted_tags(checked)
        if n_more.any():
            raise InvalidInputError(
                f"Unlisted labels must have a probability below the threshold of tags to consider. Got "
                f"{checked.unlisted:g}; list such labels instead."
            )
        answers: list[list[RankedTag]] = [[] for _ in range(len(checked))]
        for row, column, value in zip(rows.tolist(), columns.tolist(), values.tolist(), strict=True):
            tag = column if self._tags is None else self._tags[column]
            answers[row].append(RankedTag(tag, value, value >= self.assign_threshold_))
        return answers

    def sorted_tags(self, checked: Any) -> tuple[IntArray, IntArray, FloatArray, IntArray]:
        """Return texts, tags and probabilities of all that is to be considered, by text, the most probable first.

        Last, (n,): how many tags to consider each sparse text does not list.
        """
        least, n_texts = min(self.consider_threshold_, self.assign_threshold_), len(checked)
        n_more = np.zeros(n_texts, dtype=np.int64)
        if isinstance(checked, SparseProbabilities):
            kept = np.flatnonzero(checked.values >= least)
            rows = np.repeat(np.arange(n_texts), checked.n_listed)[kept]
            columns, values = checked.labels[kept], checked.values[kept]
            if checked.unlisted >= least:
                n_more = checked.shape[1] - checked.n_listed
        else:
            rows, columns = np.nonzero(checked >= least)
            values = checked[rows, columns]
        order = np.lexsort((columns, -values, rows))
        return rows[order], columns[order], values[order], n_more

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the calibrated bounds to one file, whole or not at all."""
        check_calibrated(self, "summary_", "save")
        header: dict[str, Any] = {
            "max_missed": str(self._max_missed),
            "max_false": str(self._max_false),
            "assurance": None if self._assurance is None else str(self._assurance),
            "label_names": self._tags,
            "n_labels": self._n_labels,
            "n_texts": self._n_texts,
            "summary": self.summary_,
        }
        arrays = {"thresholds": np.array([self.consider_threshold_, self.assign_threshold_])}
        if self._texts is not None:
            arrays |= {name: value for name, value in self._texts._asdict().items() if name in _ARRAYS}
            header["floor"] = self._texts.floor
        _FORMAT.write(path, header, arrays)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> TagBounds:
        """Read a file made by `save`; no code from the file is run."""
        header, arrays = _FORMAT.read(path)
        thresholds = arrays.pop("thresholds")
        with damaged(path, "Save the tag bounds again."):
            n_labels, assurance = header["n_labels"], header["assurance"]
            if type(n_labels) is not int or thresholds.dtype != np.float64 or thresholds.shape != (2,):
                raise ValueError("its values are not those of tag bounds")
            if np.isnan(thresholds).any() or thresholds.min() < 0.0:
                raise ValueError("its thresholds are not those of tag bounds")
            levels = Fraction(header["max_missed"]), Fraction(header["max_false"])
            names = as_label_names(header["label_names"], n_labels, who="load")
            made = cls(*levels, assurance=None if assurance is None else Fraction(assurance), label_names=names)
            made._tags, made._n_labels, made._n_texts = names, n_labels, int(header["n_texts"])
            made._texts = TagTexts.of(arrays, made._n_texts, header["floor"]) if arrays else None
            made.summary_ = str(header["summary"])
        made.consider_threshold_, made.assign_threshold_ = thresholds.tolist()
        return made


def _counts(probabilities: Any, threshold: float) -> float:
    """Return how many tags of all texts have a probability of a threshold or more."""
    if not isinstance(probabilities, SparseProbabilities):
        return float(np.count_nonzero(probabilities >= threshold))
    n_unlisted = probabilities.shape[0] * probabilities.shape[1] - len(probabilities.values)
    unlisted = n_unlisted if probabilities.unlisted >= threshold else 0
    return float(np.count_nonzero(probabilities.values >= threshold) + unlisted)


def _tail_bounds(means: FloatArray, bound: float, n_texts: int) -> FloatArray:
    """Return p-values of the hypothesis that the mean loss is over a bound: the smaller of Hoeffding's and Bentkus'."""
    low = np.minimum(means, bound)
    with np.errstate(divide="ignore", invalid="ignore"):
        first = np.where(low > 0.0, low * np.log(low / bound), 0.0)
        second = np.where(low < 1.0, (1.0 - low) * np.log((1.0 - low) / (1.0 - bound)), 0.0)
    hoeffding = np.exp(-n_texts * (first + second))
    counts = np.minimum(np.ceil(n_texts * means - ROUNDING), n_texts)
    bentkus = math.e * scipy.special.bdtr(counts, n_texts, bound)
    return np.asarray(np.minimum(np.minimum(hoeffding, bentkus), 1.0))
