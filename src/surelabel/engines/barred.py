"""Engines for label-sets without some labels: having one of them costs more than any threshold.

Labels that are barred stay in the rows with the cost of their absence, so totals are those of the whole label-set.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence

import numpy as np

from surelabel._core.validation import BoolArray, FloatArray, IntArray
from surelabel.engines import engine_for
from surelabel.engines.base import Engine, Scored, Threshold
from surelabel.engines.dense import DenseEngine
from surelabel.engines.hubs import HubsEngine
from surelabel.engines.mixture import MixtureEngine
from surelabel.engines.sizes import Bounds, SizeBounds
from surelabel.engines.sparse import SparseEngine
from surelabel.labels.constraints import LabelConstraints
from surelabel.labels.counting import count_by_size
from surelabel.measures.compressed import CompressedRows, compress

__all__ = ["without"]


class _BarredDenseEngine(DenseEngine):
    """The dense engine for label-sets without barred labels; thresholds are made finite."""

    barred: BoolArray

    @property
    def n_candidates(self) -> int:
        """Number of candidates without barred labels."""
        return count_by_size(self.n_labels - int(self.barred.sum()), *self.limits)

    def costs(self, rows: slice) -> tuple[FloatArray, FloatArray]:
        """Return costs with the presence of barred labels made unaffordable."""
        absent, present = super().costs(rows)
        return absent, np.where(self.barred[None, :], np.inf, present)

    def membership(self, thresholds: FloatArray, rows: slice) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Take finite thresholds."""
        return super().membership(self._finite(thresholds, rows), rows)

    def bounds(self, thresholds: FloatArray, rows: slice | None = None) -> SizeBounds:
        """Count with finite thresholds."""
        part = slice(0, len(self)) if rows is None else rows
        return super().bounds(self._finite(thresholds, part), part)

    def iterate(self, row: int, threshold: Threshold) -> Iterator[Scored]:
        """Yield members within a finite threshold."""
        return super().iterate(row, self._finite(np.array([threshold]), slice(row, row + 1))[0])

    def with_label(self, row: int, threshold: Threshold, labels: Sequence[int]) -> list[Bounds]:
        """Count with a finite threshold; barred labels are in no member."""
        counts = super().with_label(row, self._finite(np.array([threshold]), slice(row, row + 1))[0], labels)
        return [(0, 0) if self.barred[k] else bounds for k, bounds in zip(labels, counts, strict=True)]

    def _finite(self, thresholds: FloatArray, rows: slice) -> FloatArray:
        """Return thresholds with infinite ones made finite, so large that nothing but barred labels passes them."""
        if not np.isposinf(thresholds).any():
            return thresholds
        absent, present = super().costs(rows)
        largest = np.maximum(absent, present)
        no_limit = largest.max(axis=1) if self.is_maximum else 2.0 * largest.sum(axis=1) + 1.0
        return np.where(np.isposinf(thresholds), no_limit, thresholds)


class _BarredSparseEngine(SparseEngine):
    """The sparse engine for label-sets without barred labels."""

    barred: BoolArray

    @property
    def n_free(self) -> int:
        """Number of labels that are not barred."""
        return self.n_labels - int(self.barred.sum())

    def _rows(self, rows: slice, n_representatives: int = 0) -> CompressedRows:
        """Return short rows in which barred labels are never present."""
        return compress(self.calibration.separable, self.probabilities[rows], n_representatives, self.barred)

    def taken(self, row: int) -> IntArray:
        """Count barred labels among those that are told apart from the unlisted ones."""
        return np.union1d(self.listed(row), np.flatnonzero(self.barred))

    def with_label(self, row: int, threshold: Threshold, labels: Sequence[int]) -> list[Bounds]:
        """Count; barred labels are in no member."""
        free = [label for label in labels if not self.barred[label]]
        counts = dict(zip(free, super().with_label(row, threshold, free), strict=True))
        return [counts.get(label, (0, 0)) for label in labels]

    def reachable(self, thresholds: FloatArray, rows: slice) -> BoolArray:
        """Barred labels are absent from all members, if there are any."""
        reachable = super().reachable(thresholds, rows)
        some = self.bounds(thresholds, rows).upper > 0
        reachable[:, self.barred, 0], reachable[:, self.barred, 1] = some[:, None], False
        return reachable


def without(engine: Engine, barred: BoolArray) -> Engine:
    """Return the engine of the same texts for label-sets without some labels, (d,) bool."""
    if isinstance(engine, HubsEngine):
        return engine.without(lambda part: without(part, barred))
    if isinstance(engine, MixtureEngine) and isinstance(engine.inner, (DenseEngine, SparseEngine)):
        return engine.barring(barred, without(engine.inner, barred))
    for kind, own in ((DenseEngine, _BarredDenseEngine), (SparseEngine, _BarredSparseEngine)):
        if type(engine) is kind:
            made: Engine = object.__new__(own)
            made.__dict__.update(engine.__dict__, barred=barred)
            return made
    # The others take it as a constraint.
    rules = engine.calibration.constraints or LabelConstraints()
    labels = tuple(np.flatnonzero(barred).tolist())
    ruled = dataclasses.replace(rules, at_most=(*rules.at_most, (0, labels)))
    calibration = dataclasses.replace(engine.calibration, constraints=ruled)
    return engine_for(calibration, engine.probabilities, "exact", engine.work_limit, engine.n_jobs)
