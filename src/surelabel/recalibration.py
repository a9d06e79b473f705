"""Better probabilities for smaller sets: a curve per label, fitted on texts kept apart for it.

The guarantee does not need reliable probabilities; small prediction sets do. For each label three curves are compared
by cross-validated log-loss, and the best is fitted on all texts: none, Platt's (a logistic curve of the log-odds),
isotonic (a rising step curve). A label with too few texts, of either kind, is left unchanged.

The texts must be neither those that the classifier was trained on nor the calibration texts.
"""

from __future__ import annotations

import math
import os
from dataclasses import dataclass
from typing import Any

import numpy as np

from surelabel._core import files
from surelabel._core.validation import (
    BoolArray,
    FloatArray,
    Names,
    aligned_rows,
    as_labels,
    as_names,
    as_probabilities,
    check_count,
    column_names,
)
from surelabel.predictor_file import as_artifact_error

METHODS = ("none", "platt", "isotonic")
"""The curves of labels."""

_NONE, _PLATT, _ISOTONIC = range(3)
_KIND = "recalibration"
# Probabilities are kept this far from 0 and 1 where log-odds or log-loss are taken.
_CLIP = 1e-6
_NOTHING = np.empty(0)


@dataclass(frozen=True)
class _Curve:
    """One label's curve: a method, and Platt's (slope, intercept) as x, or knots (x, y)."""

    method: int
    x: FloatArray
    y: FloatArray

    def __call__(self, probabilities: FloatArray) -> FloatArray:
        """Return corrected probabilities (n,)."""
        if self.method == _PLATT:
            odds = np.clip(self.x[0] * _log_odds(probabilities) + self.x[1], -500.0, 500.0)
            return np.asarray(1.0 / (1.0 + np.exp(-odds)))
        return np.interp(probabilities, self.x, self.y) if self.method == _ISOTONIC else probabilities


_UNCHANGED = _Curve(_NONE, _NOTHING, _NOTHING)


def _log_odds(probabilities: FloatArray) -> FloatArray:
    clipped = np.clip(probabilities, _CLIP, 1.0 - _CLIP)
    return np.asarray(np.log(clipped) - np.log1p(-clipped))


def _log_loss(probabilities: FloatArray, labels: BoolArray) -> float:
    """Return the summed log-loss."""
    clipped = np.clip(probabilities, _CLIP, 1.0 - _CLIP)
    return float(-np.where(labels, np.log(clipped), np.log1p(-clipped)).sum())


def _fit(method: int, probabilities: FloatArray, labels: BoolArray) -> _Curve:
    """Fit a curve of one kind; an isotonic one stays half a text away from 0 and 1."""
    if method == _PLATT:
        from sklearn.linear_model import LogisticRegression  # noqa: PLC0415 (predictions do without scikit-learn)

        model = LogisticRegression(C=1e3).fit(_log_odds(probabilities)[:, None], labels)
        slope, intercept = float(model.coef_[0, 0]), float(model.intercept_[0])
        return _Curve(_PLATT, np.array([slope, intercept]), _NOTHING) if slope > 0.0 else _UNCHANGED
    if method == _ISOTONIC:
        from sklearn.isotonic import IsotonicRegression  # noqa: PLC0415

        least = 0.5 / (len(labels) + 1)
        model = IsotonicRegression(y_min=least, y_max=1.0 - least).fit(probabilities, labels)
        return _Curve(_ISOTONIC, np.asarray(model.X_thresholds_), np.asarray(model.y_thresholds_))
    return _UNCHANGED


def _choose(probabilities: FloatArray, labels: BoolArray, n_folds: int, seed: int) -> _Curve:
    """Return the curve with the lowest cross-validated log-loss; of equal ones the simplest."""
    from sklearn.model_selection import StratifiedKFold  # noqa: PLC0415

    losses = np.zeros(len(METHODS))
    for train, held_out in StratifiedKFold(n_folds, shuffle=True, random_state=seed).split(probabilities, labels):
        for method in range(len(METHODS)):
            curve = _fit(method, probabilities[train], labels[train])
            losses[method] += _log_loss(curve(probabilities[held_out]), labels[held_out])
    return _fit(int(np.argmin(losses)), probabilities, labels)


class Recalibration:
    """Corrected probabilities, label by label; made by `fit` and never changed.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> truth = rng.random((2000, 1))
    >>> labels = rng.random((2000, 1)) < truth
    >>> too_sure = truth**3 / (truth**3 + (1 - truth) ** 3)
    >>> recalibration = Recalibration.fit(too_sure, labels)
    >>> bool(abs(recalibration.transform(too_sure) - truth).mean() < 0.02)
    True
    """

    def __init__(self, curves: tuple[_Curve, ...], label_names: Names | None = None) -> None:
        self._curves = curves
        self.label_names = label_names

    @classmethod
    def fit(
        cls, probabilities: Any, labels: Any, *, min_texts: int = 20, n_folds: int = 5, seed: int = 0
    ) -> Recalibration:
        """Choose and fit a curve for each label.

        Parameters
        ----------
        probabilities : (n, d) array-like
        labels : (n, d) 0/1 array-like or sparse matrix
            Of texts that the classifier was not trained on and that are not used to calibrate.
        min_texts : int
            A label is left unchanged unless at least this many texts have it, and as many do not.
        n_folds : int
            Parts of the cross-validation, at most min_texts.
        seed : int
            For dividing the texts.
        """
        who = "Recalibration.fit"
        check_count("n_folds", n_folds, who, 2)
        check_count("min_texts", min_texts, who, n_folds)
        labels, names = aligned_rows(labels, probabilities, "labels", who), column_names(probabilities)
        names = column_names(labels) if names is None else names
        values = as_probabilities(probabilities, names, who)
        truth, _ = as_labels(labels, len(values), values.shape[1], names, who)
        counts = truth.sum(axis=0)
        enough = (counts >= min_texts) & (len(truth) - counts >= min_texts)
        return cls(
            tuple(
                _choose(np.ascontiguousarray(values[:, k]), truth[:, k], n_folds, seed) if enough[k] else _UNCHANGED
                for k in range(values.shape[1])
            ),
            as_names(names, values.shape[1], who),
        )

    def __repr__(self) -> str:
        counts = ", ".join(f"{self.methods.count(method)} {method}" for method in METHODS)
        return f"<Recalibration of {self.n_labels} labels: {counts}>"

    @property
    def n_labels(self) -> int:
        """Number of labels."""
        return len(self._curves)

    @property
    def methods(self) -> tuple[str, ...]:
        """The curve of each label: one of METHODS."""
        return tuple(METHODS[curve.method] for curve in self._curves)

    def transform(self, probabilities: Any) -> FloatArray:
        """Return corrected probabilities (n, d)."""
        values = as_probabilities(probabilities, self.label_names, "Recalibration.transform", self.n_labels)
        return np.column_stack([curve(values[:, k]) for k, curve in enumerate(self._curves)])

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write it to one .npz file."""
        arrays = {
            "methods": np.array([curve.method for curve in self._curves], dtype=np.int64),
            "lengths": np.array([(len(curve.x), len(curve.y)) for curve in self._curves], dtype=np.int64),
            "values": np.concatenate([part for curve in self._curves for part in (curve.x, curve.y)]),
        }
        files.write_arrays(path, {"kind": _KIND, "label_names": self.label_names}, arrays)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Recalibration:
        """Read a file made by `save`; no code from the file is run."""
        header, arrays = files.read_arrays(path, _KIND)
        with as_artifact_error(path):
            methods, lengths, values = (arrays[name] for name in ("methods", "lengths", "values"))
            for array, kind, dimensions in ((methods, "i", 1), (lengths, "i", 2), (values, "f", 1)):
                if array.dtype.kind != kind or array.ndim != dimensions:
                    raise ValueError(f"{array.dtype} values in {array.ndim} dimensions where others are expected")
            # Each length first: a sum of huge ones would wrap round.
            fits = lengths.shape == (len(methods), 2) and len(methods) > 0
            if not fits or not 0 <= lengths.min() <= lengths.max() <= len(values) or lengths.sum() != len(values):
                raise ValueError("its lengths do not belong to its values")
            parts = np.split(values.astype(np.float64), np.cumsum(lengths.ravel())[:-1])
            curves = [_Curve(int(method), parts[2 * k], parts[2 * k + 1]) for k, method in enumerate(methods)]
            return cls(tuple(map(_checked, curves)), as_names(header["label_names"], len(curves), "load"))


def _checked(curve: _Curve) -> _Curve:
    """Return a curve that was read; ValueError unless `fit` can make it."""
    lengths = len(curve.x), len(curve.y)
    is_finite = all(math.isfinite(number) for number in (*curve.x.tolist(), *curve.y.tolist()))
    if curve.method == _NONE and lengths == (0, 0):
        return curve
    if is_finite and curve.method == _PLATT and lengths == (2, 0) and curve.x[0] > 0.0:
        return curve
    if is_finite and curve.method == _ISOTONIC and lengths[0] == lengths[1] >= 1:
        rises = bool((np.diff(curve.x) > 0).all() and (np.diff(curve.y) >= 0).all())
        if rises and curve.y[0] >= 0.0 and curve.y[-1] <= 1.0:
            return curve
    raise ValueError("a label's curve is not one that fit makes")
