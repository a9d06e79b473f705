"""Methods side by side: size and error of all of them, on the same probabilities and the same re-splits.

Calibration and test texts are shuffled together and divided anew for each split, so that they are exchangeable; every
method is calibrated and measured on the same ones.
"""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Mapping, MutableMapping, Sequence
from typing import Any

import numpy as np

from surelabel._core.levels import STANDARD_LEVELS
from surelabel._core.validation import as_level, as_texts, check_count
from surelabel.evaluation.criteria import p_value_sums
from surelabel.evaluation.metrics import error_rates, size_curve, size_statistics
from surelabel.evaluation.plain import from_plain
from surelabel.exceptions import ArtifactError, InvalidInputError
from surelabel.measures import Measure
from surelabel.probabilities_file import PartProbabilities, Probabilities
from surelabel.rivals import LabelPowerset, Rival, sets_at

_log = logging.getLogger(__name__)

# Cells of the tables that bound sizes past counting; many splits are averaged.
_CELLS = 1024


@dataclasses.dataclass(frozen=True)
class ComparisonRecord:
    """One method at one significance on one split, which is named by its seed.

    `error` is the share of texts whose true label-set is outside the set. Sizes are upper bounds if they are not exact;
    `mean_size_lower` is a certified lower bound, equal to `mean_size` if all were counted. `s_excess`, an upper bound
    of the excess of the S criterion over its floor, is the same at every significance, and None if a method has no
    p-values for all candidates.
    """

    method: str
    significance: str
    split: int
    error: float
    mean_size: float
    median_size: float
    s_excess: float | None
    mean_size_lower: float


@dataclasses.dataclass(frozen=True)
class ComparisonRow:
    """One method at one significance, over splits: (mean, standard deviation) of each.

    `is_exact` tells whether mean sizes were counted, up to a hundredth; else they are upper bounds.
    """

    method: str
    significance: str
    error: tuple[float, float]
    mean_size: tuple[float, float]
    median_size: tuple[float, float]
    s_excess: tuple[float, float] | None
    is_exact: bool


@dataclasses.dataclass(frozen=True)
class Comparison:
    """What was measured of several methods on the same probabilities, named by `source`.

    `guarantees` says what each method guarantees at significance e, in their order; `n_sized` is the number of test
    texts per split whose sets were counted, None for all of them.
    """

    source: str
    n_calibration: int
    n_texts: int
    n_labels: int
    max_labels: int
    guarantees: dict[str, str]
    records: tuple[ComparisonRecord, ...]
    n_sized: int | None = None

    @property
    def levels(self) -> tuple[str, ...]:
        """The significances, as they were given."""
        return tuple(dict.fromkeys(record.significance for record in self.records))

    @property
    def n_splits(self) -> int:
        """Number of splits."""
        return len({record.split for record in self.records})

    def row(self, method: str, significance: str) -> ComparisonRow:
        """Return one method at one significance, over splits."""
        found = [r for r in self.records if r.method == method and r.significance == significance]
        if not found:
            raise KeyError(f"There is no record of {method!r} at significance {significance!r}.")
        excess = [record.s_excess for record in found if record.s_excess is not None]
        is_exact = all(record.mean_size <= 1.01 * record.mean_size_lower for record in found)
        figures = zip(*((record.error, record.mean_size, record.median_size) for record in found), strict=True)
        error, mean, median = map(_spread, figures)
        return ComparisonRow(method, significance, error, mean, median, _spread(excess) if excess else None, is_exact)

    def rows(self) -> list[ComparisonRow]:
        """Return all methods at all significances."""
        return [self.row(method, level) for level in self.levels for method in self.guarantees]

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return dataclasses.asdict(self)

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Comparison:
        """Return the inverse of `to_dict`."""
        try:
            made: Comparison = from_plain(cls, values)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise ArtifactError(f"These are not the values of a comparison: {error!r}.") from error
        return made


def _spread(values: Sequence[float]) -> tuple[float, float]:
    """Return mean and standard deviation; of one value the latter is 0."""
    array = np.array(values)
    return float(array.mean()), float(array.std(ddof=1)) if len(array) > 1 else 0.0


def _measure(
    rival: Rival,
    split: int,
    parts: tuple[PartProbabilities, PartProbabilities],
    levels: Sequence[str],
    n_sized: int | None,
) -> list[ComparisonRecord]:
    """Calibrate and measure one method on one split; sizes on the first texts only, where not all are counted."""
    calibration, test = parts
    rival.calibrate(calibration.probabilities, calibration.labels)
    excess = None
    if isinstance(rival, LabelPowerset):
        predictor = rival.predictor
        errors = error_rates(predictor, test.probabilities, test.labels, levels).tolist()
        sized = test.probabilities[:n_sized]
        sizes = size_curve(predictor, sized, levels, n_cells=_CELLS)
        excess = p_value_sums(predictor, sized, n_cells=_CELLS).excess[1]
    else:
        sets = sets_at(rival, test.probabilities, levels)
        errors = [float(1.0 - found.contains(test.labels).mean()) for found in sets]
        sizes = [size_statistics(found.sizes()[:n_sized]) for found in sets]
    return [
        ComparisonRecord(rival.name, level, split, error, size.mean, size.median, excess, size.mean_lower)
        for level, error, size in zip(levels, errors, sizes, strict=True)
    ]


def _as_probabilities(parts: Mapping[str, tuple[Any, Any]], max_labels: int | None) -> Probabilities:
    """Return probabilities and labels, as a user has them, as parts."""
    if set(parts) != {"calibration", "test"}:
        raise InvalidInputError(
            f"The 'parts' parameter of compare must have calibration and test. Got {', '.join(parts) or 'nothing'}."
        )
    made = {}
    for name, (probabilities, labels) in parts.items():
        checked, known = as_texts(probabilities, labels, who="compare")
        n_labels = checked.shape[1]
        made[name] = PartProbabilities(checked, known, tuple(f"{name} {row}" for row in range(len(checked))))
    names = tuple(f"label {k}" for k in range(n_labels))
    return Probabilities(made, names, n_labels if max_labels is None else max_labels, {})


def compare(
    parts: Probabilities | Mapping[str, tuple[Any, Any]],
    measures: Mapping[str, Measure],
    rivals: Sequence[Rival] = (),
    levels: Sequence[Any] = STANDARD_LEVELS,
    *,
    n_splits: int = 10,
    seed: int = 0,
    max_labels: int | None = None,
    n_sized: int | None = None,
    done: MutableMapping[tuple[str, int], list[ComparisonRecord]] | None = None,
) -> Comparison:
    """Measure this package's method with several measures, and rivals, on the same re-splits.

    Parameters
    ----------
    parts : mapping of "calibration" and "test" to (probabilities, labels), or Probabilities
        Of one classifier, which must not have been trained on these texts.
    measures : mapping of name to measure
        Fitted, if they must be, on other texts than these.
    rivals : sequence of Rival
    levels : sequence of significances
    n_splits : int
    seed : int
        Of the first split; the others follow.
    max_labels : int, optional
        Most labels of a label-set, that of the proper training texts; no limit by default.
    n_sized : int, optional
        Count the sets of so many test texts of each split only, which are a random sample: for measures whose sets
        take long to count. Error rates are of all of them.
    done : mutable mapping of (method, split) to records, optional
        What is in it is not measured again, what is measured is put into it: one that is kept in a file lets an
        interrupted comparison resume.

    Returns
    -------
    Comparison

    Examples
    --------
    >>> import surelabel
    >>> rng = np.random.default_rng(0)
    >>> probabilities = rng.beta(0.3, 0.7, size=(300, 4))
    >>> labels = rng.random((300, 4)) < probabilities
    >>> labels[:, 0] |= ~labels.any(axis=1)
    >>> parts = {"calibration": (probabilities[:200], labels[:200]), "test": (probabilities[200:], labels[200:])}
    >>> measures = {"L2": surelabel.LpNorm(2), "LogLoss": surelabel.LogLoss()}
    >>> compared = surelabel.compare(parts, measures, levels=["0.1"], n_splits=3)
    >>> [row.method for row in compared.rows()], compared.row("L2", "0.1").error[0] < 0.2
    (['L2', 'LogLoss'], True)
    """
    if not isinstance(parts, Probabilities):
        parts = _as_probabilities(parts, max_labels)
    elif max_labels is not None:
        parts = dataclasses.replace(parts, max_labels=max_labels)
    methods: list[Rival] = [LabelPowerset(m, 1, parts.max_labels, name) for name, m in measures.items()]
    methods += rivals
    names = [method.name for method in methods]
    if not names or len(set(names)) < len(names):
        raise InvalidInputError(f"compare needs methods with different names. Got {names} instead.")
    for parameter, value in (("n_splits", n_splits), ("n_sized", 1 if n_sized is None else n_sized)):
        check_count(parameter, value, who="compare", least=1)
    for level in levels:
        as_level(level, None, who="compare")
    records: list[ComparisonRecord] = []
    done = {} if done is None else done
    for number in range(n_splits):
        divided = parts.redivided(seed + number)
        for method in methods:
            place = (method.name, seed + number)
            if place not in done:
                _log.info("split %d of %d: %s", number + 1, n_splits, method.name)
                done[place] = _measure(method, seed + number, divided, [str(level) for level in levels], n_sized)
            records += done[place]
    return Comparison(
        source=_source(parts),
        n_calibration=len(parts.parts["calibration"]),
        n_texts=len(parts.parts["test"]),
        n_labels=len(parts.label_names),
        max_labels=parts.max_labels,
        guarantees={method.name: method.guarantee for method in methods},
        records=tuple(records),
        n_sized=n_sized,
    )


def _source(parts: Probabilities) -> str:
    """Name the corpus and the classifier, if known."""
    run = parts.settings.get("run", {})
    known = [str(run[key]) for key in ("corpus", "classifier") if key in run]
    return ", ".join(known) or "probabilities of a user's own"
