"""Measures and corrections that are fitted: on the validation part, apart from training and from calibration."""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Mapping, Sequence
from typing import Any

from surelabel._core import progress
from surelabel.choosing import choose_mixture, choose_weights
from surelabel.exceptions import InvalidInputError
from surelabel.labels.constraints import LabelConstraints
from surelabel.labels.sparse import is_sparse
from surelabel.measures import LogLoss, Measure, measure_name, measure_named
from surelabel.measures.mahalanobis import Mahalanobis
from surelabel.measures.mixture import Mixture
from surelabel.measures.penalised import Penalised
from surelabel.probabilities_file import PartProbabilities
from surelabel.recalibration import Recalibration

_log = logging.getLogger(__name__)

NEEDS_ALL = (
    "needs the probabilities of all labels, and of very many labels only the highest are listed. Take LogLoss or an "
    "LpNorm without constraints and recalibration, or keep all (--listed all: memory then grows with texts times "
    "labels)."
)
"""What is said where something does not go with listed probabilities."""

# Validation texts that `Automatic` needs to choose and confirm a mixture, and the levels that it makes sets small at.
_FEWEST_TEXTS, _LEVELS = 200, ("0.01", "0.05", "0.1")
_FITTED: Mapping[str, Measure] = {"mahalanobis": Mahalanobis(), "mixture": Mixture(), "penalised": Penalised(LogLoss())}


@dataclasses.dataclass(frozen=True)
class Automatic:
    """`Mixture` with settings chosen on the validation part, if a hold-out of it confirms them; else `LogLoss`.

    Without a validation part of 200 texts, and if only the highest probabilities are listed, it is `LogLoss`.
    """


def any_measure_named(name: str) -> Measure:
    """Return the measure of a name: one of `measure_named`, or one that is yet to be fitted.

    Examples
    --------
    >>> any_measure_named("L4"), any_measure_named("Mahalanobis")
    (LpNorm(p=4), Mahalanobis())
    """
    if name.lower() in _FITTED:
        return _FITTED[name.lower()]
    try:
        return measure_named(name)
    except InvalidInputError as error:
        raise InvalidInputError(f"{error} Or name one that is fitted: {', '.join(_FITTED)}.") from None


def needs_fitting(measure: Measure | Automatic) -> bool:
    """Tell whether a measure is one that is yet to be fitted, and cannot do without."""
    if isinstance(measure, Mahalanobis):
        return measure.matrix is None
    if isinstance(measure, Mixture):
        return measure.seen is None
    return isinstance(measure, Penalised) and measure.label_sets is None


def fitted_measure(
    measure: Measure | Automatic,
    validation: PartProbabilities | None,
    train_labels: Any,
    limits: tuple[int, int],
    *,
    constraints: LabelConstraints | None = None,
    label_names: Sequence[str] | None = None,
    seed: int = 0,
) -> Measure:
    """Return a measure fitted on the validation part; one that needs no fitting as it is.

    Mahalanobis gets its covariance there. Mixture and Penalised remember the label-sets of training; settings of the
    one and weights of the other are chosen on the validation part for the smallest sets. An automatic one is a mixture
    if a hold-out of the validation part confirms it.
    """
    if isinstance(measure, Automatic):
        if validation is None or is_sparse(validation.probabilities) or len(validation) < _FEWEST_TEXTS:
            return LogLoss()
    elif not needs_fitting(measure):
        return measure
    elif validation is None:
        raise InvalidInputError(
            f"The measure {measure_name(measure)} is fitted on a validation part, and there is none. Take another "
            "measure, or texts with a validation part."
        )
    elif is_sparse(validation.probabilities) and not isinstance(measure, Mixture):
        raise InvalidInputError(f"{measure_name(measure)} {NEEDS_ALL}")
    elif isinstance(measure, Mahalanobis):
        return measure.fit(validation.probabilities, validation.labels)
    n_labels = validation.labels.shape[1]
    rules = None if constraints is None else constraints.resolved(label_names, n_labels)
    allowed: dict[str, Any] = {
        "min_labels": limits[0],
        "max_labels": limits[1],
        "constraints": rules,
        "random_state": seed,
    }
    if isinstance(measure, Penalised):
        return _with_weights(measure, validation, train_labels, allowed)
    with progress.step(f"choosing the measure on {len(validation):,} validation texts") as advance:
        allowed["progress"] = lambda _: advance()
        mixture = choose_mixture(validation.probabilities, validation.labels, train_labels, _LEVELS, **allowed)
    is_plain = mixture.weight == 0.0 and mixture.odds is None and mixture.hubs is None
    return LogLoss() if isinstance(measure, Automatic) and is_plain else mixture


def _with_weights(
    measure: Penalised, validation: PartProbabilities, train_labels: Any, allowed: Mapping[str, Any]
) -> Penalised:
    """Return a penalised measure with weights chosen on the validation part."""
    chosen = choose_weights(measure.measure, train_labels, validation.probabilities, validation.labels, **allowed)
    _log.info("%r makes %s", chosen.measure, chosen.summary)
    return chosen.measure


def corrected(part: PartProbabilities, recalibration: Recalibration | None) -> PartProbabilities:
    """Return a part with corrected probabilities; unchanged if there is no correction."""
    if recalibration is None:
        return part
    if is_sparse(part.probabilities):
        raise InvalidInputError(f"Recalibration {NEEDS_ALL}")
    return dataclasses.replace(part, probabilities=recalibration.transform(part.probabilities))
