"""Inputs that tests share: measures with independently coded costs, and hypothesis strategies for hard problems."""

import contextlib
import dataclasses
import itertools
import math
import os
import warnings
from fractions import Fraction
from typing import Any

import numpy as np
from hypothesis import strategies as st

import reference
from surelabel import ConformalLabelSets, LogLoss, LpNorm
from surelabel.engines import SEARCHES
from surelabel.exceptions import CalibrationWarning

SEARCH_NAMES = tuple(SEARCHES)
# Powers of products only: the reference gives these costs to the last bit. The others go through libm or a
# vectorised pow and log, which may differ in the last place; test_measures.py holds them to two units.
BITWISE = (1, 2, 4, 8, math.inf)
MEASURES = [LpNorm(1), LpNorm(1.5), LpNorm(2), LpNorm(4), LpNorm(8), LpNorm(math.inf), LogLoss(), LogLoss(0.01)]

QUARTERS = (0.0, 0.25, 0.5, 0.75, 1.0)
DECIMALS = (0.1, 0.2, 0.3, 0.4, 0.6, 0.7, 0.8, 0.9, 1 / 3, 2 / 3)
AROUND_HALF = (0.5, math.nextafter(0.5, 0.0), math.nextafter(0.5, 1.0), 0.25, 0.75)
NEAR_EDGES = (0.0, 1.0, 5e-324, 1e-300, 1e-17, 1e-6, math.nextafter(1.0, 0.0), 0.5)


@dataclasses.dataclass(frozen=True)
class Weighted:
    """A user's own measure: every label has its own weight for being missed and for being superfluous."""

    aggregate: str = "sum"
    missed: tuple[float, ...] = dataclasses.field(default=(3.0, 0.1, 1.0, 0.7, 0.0, 2.0, 0.3), repr=False)
    superfluous: tuple[float, ...] = dataclasses.field(default=(0.3, 1.0, 1.0, 0.0, 0.2, 5.0, 0.3), repr=False)

    def costs(self, probabilities: Any) -> Any:
        missed, superfluous = (
            np.resize(weights, probabilities.shape[1]) for weights in (self.missed, self.superfluous)
        )
        return missed * probabilities, superfluous * (1.0 - probabilities)

    def score(self, totals: Any) -> Any:
        return totals


WEIGHTED = [Weighted("sum"), Weighted("max")]


def costs_of(measure: Any, row: Any) -> tuple[list[float], list[float]]:
    """Costs of one text, coded again wherever that can be done to the last bit."""
    row = [float(o) for o in row]
    if isinstance(measure, LpNorm) and measure.p in BITWISE:
        return reference.lp_costs(row, measure.p)
    if isinstance(measure, Weighted):
        return (
            [w * o for w, o in zip(itertools.cycle(measure.missed), row, strict=False)],
            [w * (1.0 - o) for w, o in zip(itertools.cycle(measure.superfluous), row, strict=False)],
        )
    absent, present = measure.costs(np.array([row]))
    return absent[0].tolist(), present[0].tolist()


def examples(count: int) -> int:
    """Number of hypothesis examples: as given, many more where new examples are looked for."""
    return 20 * count if os.environ.get("HYPOTHESIS_PROFILE") == "search" else count


@contextlib.contextmanager
def calibration_warnings_ignored() -> Any:
    """Tiny calibration sets warn, as they should; other tests see to that."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CalibrationWarning)
        yield


@dataclasses.dataclass(frozen=True)
class Problem:
    """Calibration texts, test texts, limits and a level; and what the reference says of them."""

    calibration: Any
    calibration_labels: Any
    test: Any
    test_labels: Any
    min_labels: int
    max_labels: int | None
    level: Fraction

    @property
    def n_labels(self) -> int:
        return self.test.shape[1]

    @property
    def limits(self) -> tuple[int, int]:
        return self.min_labels, self.n_labels if self.max_labels is None else min(self.max_labels, self.n_labels)

    def totals(self, measure: Any) -> list[float]:
        return [
            reference.total(costs_of(measure, row), labels, measure.aggregate)
            for row, labels in zip(self.calibration, self.calibration_labels, strict=True)
        ]

    def predictor(self, measure: Any, search: str = "exact", **parameters: Any) -> ConformalLabelSets:
        with calibration_warnings_ignored():
            return ConformalLabelSets(measure, self.min_labels, self.max_labels, search, **parameters).calibrate(
                self.calibration, self.calibration_labels
            )

    def predict_set(self, predictor: ConformalLabelSets, **parameters: Any) -> Any:
        with calibration_warnings_ignored():
            return predictor.predict_set(self.test, significance=self.level, **parameters)


def as_set(row: Any) -> frozenset[int]:
    """A 0/1 row as a frozenset of indices."""
    return frozenset(k for k, value in enumerate(row) if value)


@st.composite
def probabilities_of(draw: Any, n_rows: int, n_labels: int) -> Any:
    """Rows of probabilities that are hard on ties and rounding, or quite ordinary."""
    values = draw(
        st.sampled_from(
            [
                st.sampled_from(QUARTERS),
                st.sampled_from(DECIMALS),
                st.sampled_from(AROUND_HALF),
                st.sampled_from(NEAR_EDGES),
                st.sampled_from(QUARTERS + DECIMALS + AROUND_HALF),
                st.just(0.0),
                st.just(1.0),
                st.just(0.5),
                st.floats(0.0, 1.0),
            ]
        )
    )
    if draw(st.booleans()):
        rows = [draw(st.lists(values, min_size=n_labels, max_size=n_labels)) for _ in range(n_rows)]
    else:
        rows = [draw(st.lists(values, min_size=n_labels, max_size=n_labels))] * n_rows
    return np.array(rows)


@st.composite
def problems(draw: Any, max_labels: int = 7, max_texts: int = 12, n_test: int = 2) -> Problem:
    """Small problems of every shape: limits, levels on and between multiples of 1 / (n + 1)."""
    d = draw(st.integers(1, max_labels))
    n = draw(st.integers(1, max_texts))
    lo = draw(st.integers(0, d))
    hi = draw(st.one_of(st.none(), st.integers(max(lo, 0), d + 1)))
    numerator = draw(st.integers(1, 2 * n + 1))
    together = draw(probabilities_of(n + n_test, d))
    labels = np.array(
        draw(st.lists(st.lists(st.booleans(), min_size=d, max_size=d), min_size=n + n_test, max_size=n + n_test))
    )
    return Problem(together[:n], labels[:n], together[n:], labels[n:], lo, hi, level=Fraction(numerator, 2 * (n + 1)))
