"""A joint measure: labels are independent, or the label-set was seen in training.

    score(Y) = -log[(1 - weight) product(Y) + weight q(Y)]

product is the probability that `LogLoss` uses, and q a softmax over the label-sets seen in training. With a refinement,
product is that of refined probabilities: still one cost per label.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from surelabel._core.validation import FloatArray, Names, as_labels, column_names, invalid
from surelabel._kernels import EVERYTHING
from surelabel.exceptions import InvalidInputError
from surelabel.measures.base import Costs, is_number
from surelabel.measures.seen import SeenLabelSets
from surelabel.measures.separable import LogLoss

if TYPE_CHECKING:
    from surelabel.measures.refinement import Refinement

PARAMETERS = ("weight", "prior", "temperature", "discount", "clip")
# -log(1 - weight) is below this for every weight below 1.
_LARGEST_SHIFT = 37.0


@dataclass(frozen=True)
class Mixture:
    """Minus the log-likelihood of a label-set: labels are independent, or the label-set was seen in training.

    q is a softmax over seen label-sets of prior log(count) + temperature log(product) - discount times the sum, over
    the label-set's labels, of log(f / (1 - f)), where f is the share of training texts with a label.

    Parameters
    ----------
    weight : float
        Of the seen label-sets, in [0, 1); 0 gives `LogLoss`.
    prior, temperature, discount : float
        0 or more.
    clip : float
        As of `LogLoss`.
    seen : SeenLabelSets, optional
        Made by `fit`.
    refinement : Refinement, optional
        What a text's other labels say about each label; `choose_mixture` fits it. None takes probabilities as they are.

    Examples
    --------
    >>> from surelabel import ConformalLabelSets
    >>> measure = Mixture(weight=0.5).fit([[1, 1, 0], [0, 0, 1], [1, 0, 0], [1, 1, 0]])
    >>> predictor = ConformalLabelSets(measure).calibrate([[0.9, 0.2, 0.4]] * 9, [[1, 1, 0]] * 9)
    >>> predictor.predict_p([[0.9, 0.2, 0.4]] * 2, [[1, 1, 0], [1, 0, 1]])
    array([1. , 0.1])
    """

    weight: float = 0.9
    prior: float = 0.5
    temperature: float = 1.0
    discount: float = 0.0
    clip: float = 1e-6
    seen: SeenLabelSets | None = None
    refinement: Refinement | None = None

    def __post_init__(self) -> None:
        LogLoss(self.clip)
        for name, value in self.parameters.items():
            most = 1.0 if name == "weight" else 1e6
            if not is_number(value) or not 0.0 <= value < most:
                raise invalid(name, "Mixture", f"a number in [0, {most:g})", repr(value))
            object.__setattr__(self, name, float(value))
        if self.seen is not None and self.refinement is not None:
            n_refined, n_labels = self.refinement.table.shape[1], self.seen.members.shape[1]
            if n_refined != n_labels:
                raise invalid("refinement", "Mixture", f"one of {n_labels} labels, as label-sets are", str(n_refined))

    @property
    def parameters(self) -> dict[str, float]:
        """Parameters by name."""
        return {name: getattr(self, name) for name in PARAMETERS}

    def __repr__(self) -> str:
        settings = ", ".join(f"{name}={value:g}" for name, value in self.parameters.items())
        settings += "" if self.seen is None else f", {len(self.seen)} seen label-sets"
        return f"Mixture({settings}{'' if self.refinement is None else ', refined'})"

    def fit(self, labels: Any) -> Mixture:
        """Return a copy fitted on label-sets of proper training texts, (n, d), never of calibration texts."""
        names = column_names(labels)
        rows, _ = as_labels(labels, None, np.shape(labels)[-1], names, "Mixture.fit")
        # A refinement is in the order of the labels that the mixture was fitted on before.
        own = self if self.seen is None or self.refinement is None else self.with_names(names, rows.shape[1])
        return replace(own, seen=SeenLabelSets.from_labels(rows, names))

    def with_names(self, names: Names | None, n_labels: int) -> Mixture:
        """Return the mixture with labels in the order of these names; an error if it was fitted on others."""
        own = self.fitted.label_names
        if self.fitted.members.shape[1] != n_labels:
            raise invalid(
                "measure", "calibrate", f"a Mixture of {n_labels} labels", f"one of {self.fitted.members.shape[1]}"
            )
        if own is None or names is None or own == names:
            return self
        if set(own) != set(names):
            some = sorted(set(own).symmetric_difference(names))[:5]
            raise invalid(
                "measure", "calibrate", "a Mixture that was fitted on the same labels", f"other labels: {some}"
            )
        place = {name: k for k, name in enumerate(own)}
        order = [place[name] for name in names]
        refinement = None if self.refinement is None else self.refinement.with_columns(order)
        return replace(self, seen=self.fitted.with_columns(order, names), refinement=refinement)

    @property
    def fitted(self) -> SeenLabelSets:
        """The label-sets of training; an error if the measure is not fitted."""
        if self.seen is None:
            raise InvalidInputError("This Mixture is not fitted. Call fit with training labels, and use its result.")
        return self.seen

    def units(self, n_labels: int) -> float:
        """Return how many units make 1, as for `LogLoss`, with room for -log(1 - weight)."""
        largest = n_labels * LogLoss(self.clip).largest_cost(n_labels) + _LARGEST_SHIFT
        return float(EVERYTHING / 2.0 ** math.frexp(largest)[1])

    def in_units(self, probabilities: FloatArray, units: float, excluded: Any = None) -> Costs:
        """Return the costs of the independent part in whole units."""
        n_labels = self.fitted.members.shape[1]
        if probabilities.shape[1] != n_labels or excluded is not None:
            expected = f"of all the {n_labels} labels that the Mixture was fitted on (no Shortlists)"
            raise invalid("probabilities", "Mixture", expected, f"{probabilities.shape[1]} columns")
        refined = probabilities if self.refinement is None else self.refinement.probabilities(probabilities)
        return LogLoss(self.clip).in_units(refined, units)

    @functools.cached_property
    def log_prior(self) -> FloatArray:
        """Logarithm of what prior and discount give each seen label-set in q, (M,)."""
        seen = self.fitted
        log_prior: FloatArray = self.prior * np.log(seen.counts) - self.discount * (seen.members @ seen.log_odds)
        return log_prior

    def score(self, totals: FloatArray) -> FloatArray:
        """Return the totals."""
        return totals
