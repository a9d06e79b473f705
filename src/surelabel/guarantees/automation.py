"""Which texts can be filed without a person: of the texts filed, at most a stated share are wrong.

Every text has a best guess (the forced prediction under a measure) and a score that says how sure it is. A text is
filed if its score is over a threshold. Let R(t) be the share of wrong best guesses among all texts with a score over t.

**One text at a time** (`decide`). Certification texts are sorted by score, best first. For k = m, m + 1, ..., the k-th
best score is tried as the threshold: the k - 1 texts over it have W wrong best guesses, and the hypothesis "R is over
max_wrong" is rejected if the exact binomial tail P(Bin(k - 1, max_wrong) <= W) is at most 1 - assurance. The last
threshold before the first hypothesis that is not rejected is taken. This is fixed-sequence testing: every test has the
whole level. It holds for every classifier and score. Cut the scores at the points where R crosses max_wrong: between
two of them the share of wrong best guesses is max_wrong. Given how many texts lie in each piece, it is fixed
which true hypothesis comes first, and its W is at least as large as a binomial count at max_wrong. So it is
rejected with a probability of at most 1 - assurance, and R of the chosen threshold is over max_wrong no more often.

The first rank m is fixed beforehand: as many texts as a certificate needs, and at least `first_share` of all. If it is
small, a single wrong guess among the very surest ends the sequence before it begins; if it is large, nothing is filed
where only a few texts can be. So, without a `first_share`, two sequences begin at 10 and at 40 % of the texts and each
has half of 1 - assurance: the lower of their thresholds is taken, and by the union bound the promise is the same.
`choose_score` takes half the share that can be filed on validation texts, at least 5 %, and one sequence.

**A batch** (`select`). A text's p-value is (1 + the number of certification texts with a wrong best guess and at
least its score) / (n + 1), and Benjamini-Hochberg selects from the batch (Jin & Candès, *Selection by prediction with
conformal p-values*, 2023): the expected share of wrong texts among those selected is at most max_wrong.

The score must not be chosen on the certification texts: `choose_score` takes validation texts.
"""

from __future__ import annotations

import math
import os
import warnings
from collections.abc import Sequence
from fractions import Fraction
from typing import Any, Literal

import numpy as np

from surelabel._core.npz_file import NpzFormat
from surelabel._core.validation import BoolArray, FloatArray, as_share, check_calibrated, invalid
from surelabel.calibration import Calibration, totals_of
from surelabel.conformal import ConformalLabelSets, ForcedPredictions
from surelabel.engines.one_row import Cut, count
from surelabel.exceptions import CalibrationWarning
from surelabel.guarantees import certifying
from surelabel.guarantees.files import damaged, predictor_from_array, predictor_to_array
from surelabel.labels.constraints import LabelConstraints
from surelabel.measures import LogLoss, Measure

Score = Literal["total", "margin", "probability", "size"]
SCORES: tuple[Score, ...] = ("total", "margin", "probability", "size")
"""What a best guess can be ranked by."""

_FORMAT = NpzFormat("surelabel-automation", 1, "a file", ("scores", "wrong", "predictor"), ("reference",))
_DEFAULT_MEASURE = LogLoss()
_OF_GUESSES = ("measure", "min_labels", "max_labels", "label_names", "constraints", "n_jobs")
# `choose_score` never begins with fewer of the certification texts.
_LEAST_SHARE = Fraction(1, 20)
# Larger sizes count as this one.
_LARGEST = 2**40


class Automation:
    """Decide which texts can be filed without a person, so that at most `max_wrong` of the filed are wrong.

    Parameters
    ----------
    max_wrong : float, str, Decimal or Fraction in (0, 1)
        Largest share of wrong texts among those that are filed. A text is wrong if its best guess is not exactly its
        true label-set.
    assurance : the same
        Probability, over certification texts, that the promise of `decide` holds.
    measure : Measure
        The best guess is the forced prediction under this measure.
    min_labels, max_labels : int
        Limits on the number of labels of a best guess. max_labels must not be taken from the certification texts.
    score : {"total", "margin", "probability", "size"}
        What best guesses are ranked by: the measure's total; its lead over the second label-set; the product of its
        labels' probabilities; the number of plausible label-sets (equal numbers by total, none last), which needs
        `reference`.
    reference : ConformalLabelSets, optional
        Calibrated on other texts: its prediction sets at significance `max_wrong` are what "size" counts.
    first_share : float, str, Decimal or Fraction in (0, 1), optional
        The first threshold that is tried files this share of the certification texts. Default: two sequences of
        thresholds, from 10 and from 40 % on.
    label_names : sequence of str, optional
    constraints : LabelConstraints, optional
        What a best guess must obey beside the limits.
    n_jobs : int, optional
        Threads; all cores by default.

    Attributes
    ----------
    threshold_ : float
        Texts with a score over it are filed; inf if nothing can be filed.
    share_ : float
        Share of the certification texts that would be filed.
    wrong_ : int
        How many of those have a wrong best guess.
    wrong_bound_ : float
        Upper Clopper-Pearson bound of the share of wrong texts among filed ones; nan if nothing can be filed.
    summary_ : str
        The result in plain words.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> probabilities = rng.beta(0.2, 0.2, (2000, 3))
    >>> labels = rng.random((2000, 3)) < probabilities
    >>> automation = Automation(max_wrong=0.1, min_labels=0).calibrate(probabilities[:1000], labels[:1000])
    >>> print(automation.summary_)
    42 % of texts can be filed with at most 10 % of them wrong (assurance 95 %, 1,000 certification texts).
    >>> filed = automation.decide(probabilities[1000:])
    >>> guesses = automation.predict(probabilities[1000:]).labels
    >>> wrong = (guesses != labels[1000:]).any(axis=1)
    >>> bool(wrong[filed].mean() <= 0.1 < wrong.mean())
    True
    """

    predictor_: ConformalLabelSets
    threshold_: float
    share_: float
    wrong_: int
    wrong_bound_: float
    summary_: str

    def __init__(
        self,
        max_wrong: Any = 0.05,
        assurance: Any = 0.95,
        measure: Measure = _DEFAULT_MEASURE,
        min_labels: int = 1,
        max_labels: int | None = None,
        *,
        score: Score = "total",
        reference: ConformalLabelSets | None = None,
        first_share: Any = None,
        label_names: Sequence[str] | None = None,
        constraints: LabelConstraints | None = None,
        n_jobs: int | None = None,
    ) -> None:
        who = type(self).__name__
        self._max_wrong = as_share(max_wrong, "max_wrong", who=who)
        self._assurance = as_share(assurance, "assurance", who=who)
        self._first_share = None if first_share is None else as_share(first_share, "first_share", who=who)
        if score not in SCORES:
            raise invalid("score", who, f"one of {SCORES}", repr(score))
        if score == "size" and not isinstance(reference, ConformalLabelSets):
            expected = "a calibrated ConformalLabelSets for score='size' (choose_score makes one)"
            raise invalid("reference", who, expected, repr(reference))
        self._best = ConformalLabelSets(
            measure, min_labels, max_labels, label_names=label_names, constraints=constraints, n_jobs=n_jobs
        )
        self.score = score
        self.reference = reference

    @property
    def max_wrong(self) -> float:
        """Largest share of wrong texts among those that are filed."""
        return float(self._max_wrong)

    @property
    def assurance(self) -> float:
        """Probability that the promise of `decide` holds."""
        return float(self._assurance)

    @property
    def first_share(self) -> float | None:
        """Share of the certification texts that the first threshold files; None if there are two such thresholds."""
        return None if self._first_share is None else float(self._first_share)

    @property
    def measure(self) -> Measure:
        """The measure of the best guess."""
        return self._best.measure

    def __repr__(self) -> str:
        shown = f"Automation(max_wrong={self.max_wrong:g}, assurance={self.assurance:g}, score={self.score!r})"
        return f"<{shown}: {self.summary_}>" if hasattr(self, "summary_") else shown

    def calibrate(self, probabilities: Any, labels: Any) -> Automation:
        """Certify a threshold on texts with known label-sets, which nothing was trained or chosen on.

        Parameters
        ----------
        probabilities : (n, d) array-like or sparse
        labels : (n, d) 0/1 array-like or sparse matrix, or one collection of label names per text

        Returns
        -------
        self
        """
        with _quiet():
            predictor = ConformalLabelSets(**self._best.get_params()).calibrate(probabilities, labels)
        return self._certify(predictor, *self._outcomes(predictor, probabilities, labels))

    def add(self, probabilities: Any, labels: Any) -> Automation:
        """Return an automation that is certified again with more texts; this one stays as it is.

        The texts must be a fair sample of those that arrive, filed ones included: the texts that people had to read
        say nothing about the filed ones. The assurance is that of one certification, not of all of them together.
        """
        with _quiet():
            predictor = self._calibrated("add").add(probabilities, labels)
        scores, wrong = self._outcomes(predictor, probabilities, labels)
        joined = np.concatenate([self._scores, scores]), np.concatenate([self._wrong, wrong])
        return self.again()._certify(predictor, *joined)

    def choose_score(self, probabilities: Any, labels: Any, *, seed: int = 0) -> Automation:
        """Return an automation with the score that ranks validation texts best; it is not calibrated yet.

        One half of the validation texts calibrates the prediction sets that "size" counts. On the other half the score
        is taken that files most texts (with an assurance of one half, since these texts are fewer), then the one with
        fewest wrong best guesses before right ones, then the first of `SCORES`. The first threshold to try is the one
        that files half of what can be filed there. None of these texts may calibrate the result.
        """
        trial = self.again("total", None).calibrate(probabilities, labels)
        calibration = trial.predictor_.calibration_
        checked = calibration.as_probabilities(probabilities, who="choose_score")
        truth = calibration.as_labels(labels, checked, who="choose_score")
        order = np.random.default_rng(seed).permutation(len(checked))
        half, rest = np.sort(order[: len(order) // 2]), np.sort(order[len(order) // 2 :])
        with _quiet():
            reference = ConformalLabelSets(**trial.predictor_.get_params()).calibrate(checked[half], truth[half])
        outcomes = {
            score: self.again(score, reference)._outcomes(reference, checked[rest], truth[rest]) for score in SCORES
        }
        best = max(SCORES, key=lambda score: certifying.ranking(*outcomes[score], self._max_wrong))
        chosen = self.again(best, reference if best == "size" else None)
        chosen._first_share = max(_LEAST_SHARE, certifying.share_within(*outcomes[best], self._max_wrong) / 2)
        return chosen

    def again(self, score: Score | None = None, reference: ConformalLabelSets | None = None) -> Automation:
        """Return an automation with the same parameters, or another score and its reference; it is not calibrated."""
        if score is None:
            score, reference = self.score, self.reference
        given = self._best.get_params()
        return type(self)(
            self._max_wrong,
            self._assurance,
            score=score,
            reference=reference,
            first_share=self._first_share,
            **{name: given[name] for name in _OF_GUESSES},
        )

    def _certify(self, predictor: ConformalLabelSets, scores: FloatArray, wrong: BoolArray) -> Automation:
        """Find the threshold, and say what it means."""
        threshold = certifying.certified_threshold(scores, wrong, self._max_wrong, self._assurance, self._first_share)
        filed = scores > threshold
        n_filed, n_wrong = int(filed.sum()), int(wrong[filed].sum())
        self.predictor_, self._scores, self._wrong = predictor, scores, wrong
        self._wrong_scores = np.sort(scores[wrong])
        self.threshold_, self.share_, self.wrong_ = threshold, n_filed / len(scores), n_wrong
        self.wrong_bound_ = certifying.wrong_bound(n_wrong, n_filed, self.assurance) if n_filed else math.nan
        self.summary_ = certifying.filing_words(n_filed, wrong, self._max_wrong, self._assurance)
        return self

    def _calibrated(self, who: str) -> ConformalLabelSets:
        """Return the predictor of best guesses, or raise if there is none yet."""
        check_calibrated(self, "predictor_", who)
        return self.predictor_

    def _checked(self, probabilities: Any, who: str) -> tuple[ConformalLabelSets, Any]:
        """Return the predictor of best guesses, and checked probabilities."""
        predictor = self._calibrated(who)
        return predictor, predictor.calibration_.as_probabilities(probabilities, who=who)

    def _outcomes(self, predictor: ConformalLabelSets, probabilities: Any, labels: Any) -> tuple[FloatArray, BoolArray]:
        """Return scores of texts, (n,), and whether their best guesses are wrong, (n,)."""
        calibration = predictor.calibration_
        checked = calibration.as_probabilities(probabilities, who="calibrate")
        truth = calibration.as_labels(labels, checked, who="calibrate")
        wrong = (predictor.predict(checked).labels != truth).sum(axis=1) > 0
        return self._scored(predictor, checked), np.asarray(wrong)

    def scores(self, probabilities: Any) -> FloatArray:
        """Return how sure the best guess of each text is, (n,): larger is surer."""
        return self._scored(*self._checked(probabilities, "scores"))

    def totals(self, probabilities: Any) -> FloatArray:
        """Return the total of each text's best guess and what the second label-set adds to it, (n, 2)."""
        return certifying.totals_and_margins(*self._checked(probabilities, "totals"))

    def _scored(self, predictor: ConformalLabelSets, checked: Any, guessed: FloatArray | None = None) -> FloatArray:
        """Return scores of checked probabilities; what `totals` gives for them is not computed again."""
        if self.score == "probability":
            return -totals_of(_DEFAULT_MEASURE, checked, predictor.predict(checked).labels)
        totals, margins = (certifying.totals_and_margins(predictor, checked) if guessed is None else guessed).T
        if self.score != "size":
            return np.ascontiguousarray(margins if self.score == "margin" else -totals)
        assert self.reference is not None
        with _quiet():
            sets = self.reference.predict_set(checked, significance=self._max_wrong)
        sizes = np.minimum(sets.size_bounds()[0], _LARGEST).astype(np.float64)
        # If not even the best guess is plausible, nothing is less sure.
        sizes[sizes == 0] = _LARGEST
        return np.asarray(-sizes - totals / (1.0 + totals))

    def fits(self, calibration: Calibration) -> bool:
        """Tell whether `decide_one` can decide with what a calibration says of texts."""
        compared = [calibration, self._calibrated("fits").calibration_]
        if self.score == "size" and self.reference is not None:
            compared.append(self.reference.calibration_)
        if self.score == "probability" or (self.score == "size" and not calibration.is_separable):
            return False
        return all(
            other.constraints is None
            and other.categories is None
            and (other.limits, other.n_labels, other.measure)
            == (calibration.limits, calibration.n_labels, calibration.measure)
            for other in compared
        )

    def decide_one(self, cut: Cut) -> tuple[bool | None, float]:
        """Tell whether the best guess of one text can be filed, as `decide` does, and its total, as `totals` does.

        None if its prediction set takes too many steps to count.
        """
        total, margin = cut.guess
        if math.isinf(self.threshold_):
            return self.threshold_ < 0, total
        if self.score != "size":
            return (margin if self.score == "margin" else -total) > self.threshold_, total
        assert self.reference is not None
        calibration = self.reference.calibration_
        at = calibration.threshold(self._max_wrong)
        size = -1 if math.isinf(at) else count(cut.own_costs, calibration.limits, at, self.reference.work_limit)
        if size < 0:
            return None, total
        return -float(min(size, _LARGEST) or _LARGEST) - total / (1.0 + total) > self.threshold_, total

    def predict(self, probabilities: Any) -> ForcedPredictions:
        """Return the best guess of each text, with confidence and credibility among the certification texts."""
        return self._calibrated("predict").predict(probabilities)

    def decide(self, probabilities: Any, totals: FloatArray | None = None) -> BoolArray:
        """Tell for each text, (n,), whether its best guess can be filed without a person.

        With probability `assurance` over the certification texts, at most `max_wrong` of all texts for which this is
        True are wrong. Texts may come one at a time. Pass the result of `totals` if you have it already.
        """
        predictor, checked = self._checked(probabilities, "decide")
        if math.isinf(self.threshold_):
            return np.full(len(checked), self.threshold_ < 0)
        return np.asarray(self._scored(predictor, checked, totals) > self.threshold_)

    def select(self, probabilities: Any) -> BoolArray:
        """Select from a batch, (n,), the texts whose best guesses can be filed.

        The share of wrong texts among those selected is at most `max_wrong` on average over certification texts and
        batches (the false discovery rate). Batches of one text are rarely selected from: use `decide` for those.
        """
        return certifying.benjamini_hochberg(self.p_values(probabilities), float(self._max_wrong))

    def p_values(self, probabilities: Any) -> FloatArray:
        """Return conformal p-values, (n,), of the hypotheses that the best guesses are wrong."""
        scores = self.scores(probabilities)
        at_least = len(self._wrong_scores) - np.searchsorted(self._wrong_scores, scores, side="left")
        return np.asarray((at_least + 1) / (len(self._scores) + 1))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the certified automation to one file, whole or not at all."""
        predictor = self._calibrated("save")
        arrays = {"scores": self._scores, "wrong": self._wrong, "predictor": predictor_to_array(predictor)}
        if self.reference is not None:
            arrays["reference"] = predictor_to_array(self.reference)
        shares = {"max_wrong": self._max_wrong, "assurance": self._assurance, "first_share": self._first_share}
        header = {name: None if share is None else str(share) for name, share in shares.items()}
        _FORMAT.write(path, {**header, "score": self.score}, arrays)

    @classmethod
    def load(cls, path: str | os.PathLike[str], *, measure: Measure | None = None) -> Automation:
        """Read a file made by `save`; no code from the file is run. A measure of your own must be given again."""
        header, arrays = _FORMAT.read(path)
        predictor = predictor_from_array(arrays["predictor"], path, measure)
        reference = predictor_from_array(arrays["reference"], path, measure) if "reference" in arrays else None
        scores, wrong, given = arrays["scores"], arrays["wrong"], predictor.get_params()
        first_share = header.get("first_share", "1/20")
        with damaged(path, "Save the automation again."):
            if scores.dtype != np.float64 or wrong.dtype != np.bool_ or scores.ndim != 1 or scores.shape != wrong.shape:
                raise ValueError("its scores are not those of an automation")
            if len(scores) != predictor.calibration_.n_texts or np.isnan(scores).any():
                raise ValueError("its scores do not belong to its texts")
            made = cls(
                Fraction(header["max_wrong"]),
                Fraction(header["assurance"]),
                score=header["score"],
                reference=reference,
                first_share=None if first_share is None else Fraction(first_share),
                **{name: given[name] for name in _OF_GUESSES},
            )
        return made._certify(predictor, scores, wrong)


def _quiet() -> warnings.catch_warnings[None]:
    """Keep quiet about true label-sets that are not candidates, and few texts: both count as wrong best guesses."""
    return warnings.catch_warnings(action="ignore", category=CalibrationWarning)
