"""Filing without a person: of the texts that are filed, at most a stated share are wrong.

Every text has a best guess, the candidate with the lowest score under a measure. A text is filed if this score is below
a threshold that `certify` has tested on texts with known label-sets. A best guess is wrong unless it is exactly the
true label-set; a true label-set outside the candidates, or with an unknown label, makes it wrong too.
"""

from __future__ import annotations

import math
import os
import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from surelabel._core import files
from surelabel._core.validation import BoolArray, FloatArray, aligned_rows, as_fraction, as_labels
from surelabel.conformal import ConformalLabelSets
from surelabel.exceptions import CalibrationWarning, NotCalibratedError
from surelabel.guarantees.certify import certified_threshold, filing_summary, wrong_bound
from surelabel.guarantees.levels import from_file
from surelabel.labels.constraints import LabelConstraints
from surelabel.measures import LogLoss
from surelabel.predictor_file import as_artifact_error
from surelabel.sets.prediction_sets import ForcedPredictions, Texts

_KIND = "automation"
_DEFAULT_MEASURE = LogLoss()


class Automation:
    """Decide which texts can be filed without a person, so that at most `max_wrong` of the filed are wrong.

    Parameters
    ----------
    max_wrong : float, str, Decimal or Fraction in (0, 1)
        Largest share of wrong texts among those that are filed.
    assurance : the same
        Probability, over certification texts, that this promise holds.
    measure : SeparableMeasure or Mixture
        Best guesses have the lowest score under this measure.
    min_labels, max_labels : int
        Limits on the number of labels of a best guess. max_labels must not be taken from the certification texts.
    label_names : sequence of str, optional
        A data frame brings its own.
    n_jobs : int, optional
        Threads; all cores by default.
    constraints : LabelConstraints, optional
        Rules that best guesses must obey.

    Attributes
    ----------
    threshold_ : float
        Texts with a score below it are filed; -inf if none can be, inf if all can be.
    share_ : float
        Share of the certification texts that would be filed.
    wrong_bound_ : float
        Upper bound, with `assurance`, of the share of wrong texts among filed ones (Clopper-Pearson); nan if none is.
    summary_ : str
        The result in plain words.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> probabilities = rng.beta(0.2, 0.2, (2000, 3))
    >>> labels = rng.random((2000, 3)) < probabilities
    >>> automation = Automation(max_wrong=0.1, min_labels=0).calibrate(probabilities[:1000], labels[:1000])
    >>> filed = automation.decide(probabilities[1000:])
    >>> wrong = (automation.predict(probabilities[1000:]).labels != labels[1000:]).any(axis=1)
    >>> bool(wrong[filed].mean() <= 0.1 < wrong.mean())
    True
    """

    predictor_: Any
    threshold_: float
    share_: float
    wrong_bound_: float
    summary_: str

    def __init__(
        self,
        max_wrong: Any = "0.05",
        assurance: Any = "0.95",
        measure: Any = _DEFAULT_MEASURE,
        min_labels: int = 1,
        max_labels: int | None = None,
        label_names: Sequence[str] | None = None,
        n_jobs: int | None = None,
        *,
        constraints: LabelConstraints | None = None,
    ) -> None:
        self._max_wrong = as_fraction(max_wrong, "max_wrong", "Automation")
        self._assurance = as_fraction(assurance, "assurance", "Automation")
        self._uncalibrated = ConformalLabelSets(
            measure, min_labels, max_labels, label_names=label_names, constraints=constraints, n_jobs=n_jobs
        )

    @property
    def max_wrong(self) -> float:
        """Largest share of wrong texts among those that are filed."""
        return float(self._max_wrong)

    @property
    def assurance(self) -> float:
        """Probability that the promise holds."""
        return float(self._assurance)

    def __repr__(self) -> str:
        shown = f"Automation(max_wrong={self.max_wrong:g}, assurance={self.assurance:g})"
        return f"<{shown}: {self.summary_}>" if hasattr(self, "summary_") else shown

    def calibrate(
        self, probabilities: Any, labels: Any, *, among: Callable[[ForcedPredictions], BoolArray] | None = None
    ) -> Automation:
        """Certify a threshold on texts with known label-sets that were not used to train or choose anything.

        Parameters
        ----------
        probabilities : (n, d) array-like, data frame or Shortlists
        labels : (n, d) 0/1 array-like, data frame or sparse matrix, or one collection of label names per text
        among : callable, optional
            Returns, from the best guesses, which texts certify, (n,): those that another rule does not keep from being
            filed. New texts must be filed by the same rule.

        Returns
        -------
        self
        """
        labels = aligned_rows(labels, probabilities, "labels", "calibrate")
        with warnings.catch_warnings(action="ignore", category=CalibrationWarning):
            # Label-sets that are no candidates need no warning: here they count as wrong guesses.
            predictor = replace(self._uncalibrated).calibrate(probabilities, labels)
        self.predictor_, guesses = predictor, predictor.predict(probabilities)
        certifying = np.ones(len(guesses), dtype=np.bool_) if among is None else among(guesses)
        scores, wrong = guesses.scores[certifying], _are_wrong(predictor, guesses, labels)[certifying]
        self.threshold_ = certified_threshold(scores, wrong, self._max_wrong, self._assurance)
        filed = self.is_sure(scores)
        n_filed, n_wrong = int(filed.sum()), int(wrong[filed].sum())
        self.share_ = n_filed / max(len(scores), 1)
        self.wrong_bound_ = wrong_bound(n_wrong, n_filed, self.assurance) if n_filed else math.nan
        self.summary_ = filing_summary(n_filed, wrong, self._max_wrong, self._assurance)
        return self

    def is_sure(self, scores: FloatArray) -> BoolArray:
        """Return which best guesses with these scores, (n,), can be filed."""
        return np.asarray(scores < self.threshold_)

    def texts(self, probabilities: Any) -> Texts:
        """Cost and sort texts once, for several questions."""
        if not hasattr(self, "predictor_"):
            raise NotCalibratedError("This Automation is not calibrated. Call 'calibrate' first.")
        texts: Texts = self.predictor_.texts(probabilities)
        return texts

    def predict(self, probabilities: Any) -> ForcedPredictions:
        """Return the best guess of each text; its `scores` are what texts are ranked by."""
        return ForcedPredictions.from_texts(self.texts(probabilities))

    def scores(self, probabilities: Any) -> FloatArray:
        """Return the score of each text's best guess, (n,): low if it is sure."""
        return self.predict(probabilities).scores

    def decide(self, probabilities: Any) -> BoolArray:
        """Return which texts' best guesses can be filed without a person, (n,).

        With probability `assurance` over the certification texts, at most `max_wrong` of all texts for which this is
        True are wrong. Texts may come one at a time.
        """
        return self.is_sure(self.scores(probabilities))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the certified automation to one .npz file."""
        if not hasattr(self, "predictor_"):
            raise NotCalibratedError("This Automation is not calibrated. Call 'calibrate' before 'save'.")
        predictor, arrays = self.predictor_.to_arrays()
        header = {
            "kind": _KIND,
            "max_wrong": str(self._max_wrong),
            "assurance": str(self._assurance),
            "summary": self.summary_,
            "predictor": predictor,
        }
        own = [self.threshold_, self.share_, self.wrong_bound_]
        files.write_arrays(path, header, {"certificate": own, **arrays})

    @classmethod
    def load(cls, path: str | os.PathLike[str], *, measure: Any = None) -> Automation:
        """Read a file made by `save`; no code from the file is run. A measure of your own must be given again."""
        header, arrays = files.read_arrays(path, _KIND)
        with as_artifact_error(path):
            certificate = arrays.pop("certificate")
            predictor = ConformalLabelSets.from_arrays(header["predictor"], arrays, measure)
            automation = cls(from_file(header["max_wrong"]), from_file(header["assurance"]))
            if certificate.dtype != np.float64 or certificate.shape != (3,):
                raise ValueError("its certificate is not three numbers")
            threshold, share, bound = certificate.tolist()
            # If nothing is filed, there is no bound.
            if math.isnan(threshold) or not 0.0 <= share <= 1.0 or not (0.0 <= bound <= 1.0 or share == 0.0):
                raise ValueError("its certificate is not one of an automation")
            automation.summary_ = str(header["summary"])
        automation._uncalibrated = replace(predictor)
        automation.predictor_ = predictor
        automation.threshold_, automation.share_, automation.wrong_bound_ = threshold, share, bound
        return automation


def _are_wrong(predictor: Any, guesses: ForcedPredictions, labels: Any) -> BoolArray:
    """Return which best guesses are not the true label-sets, (n,)."""
    names, n_labels = predictor.calibration_.label_names, predictor.calibration_.n_labels
    truth, has_unknown = as_labels(labels, len(guesses), n_labels, names, "calibrate")
    return np.asarray((guesses.labels != truth).any(axis=1) | has_unknown)
