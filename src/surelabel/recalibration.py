"""Better probabilities for smaller sets: each label's probabilities corrected on texts kept apart for it.

The guarantee does not need reliable probabilities; small prediction sets do. For each label three answers are compared
by cross-validated log-loss on the given texts, and the best is fitted on all of them: leave it unchanged, Platt's
(a logistic curve of the log-odds), isotonic (a rising step curve). A label with too few texts, of either kind, is left
unchanged.

The texts must be neither those that the classifier was trained on nor the calibration texts: a validation part.
"""

from __future__ import annotations

import dataclasses
import os
from typing import Any

import numpy as np
import numpy.typing as npt

from surelabel._core.npz_file import NpzFormat
from surelabel._core.validation import BoolArray, FloatArray, as_probabilities, as_texts, check_count
from surelabel.exceptions import ArtifactError

METHODS = ("none", "platt", "isotonic")
_NONE, _PLATT, _ISOTONIC = range(3)
_FORMAT = NpzFormat("surelabel-recalibration", 1, "a recalibration", ("lengths", "methods", "values"))
# Probabilities are kept this far from 0 and 1 where log-odds or log-loss are taken.
_CLIP = 1e-6


@dataclasses.dataclass(frozen=True)
class _Curve:
    """How one label's probabilities are corrected: a method, and Platt's (slope, intercept) or knots of a curve."""

    method: int
    x: FloatArray
    y: FloatArray

    def __call__(self, probabilities: FloatArray) -> FloatArray:
        """Correct probabilities (n,)."""
        if self.method == _PLATT:
            odds = self.x[0] * _log_odds(probabilities) + self.x[1]
            corrected: FloatArray = 1.0 / (1.0 + np.exp(-np.clip(odds, -500.0, 500.0)))
            return corrected
        if self.method == _ISOTONIC:
            return np.interp(probabilities, self.x, self.y)
        return probabilities


_AS_IT_IS = _Curve(_NONE, np.empty(0), np.empty(0))


def _log_odds(probabilities: FloatArray) -> FloatArray:
    """Return log(o / (1 - o)), o clipped."""
    clipped = np.clip(probabilities, _CLIP, 1.0 - _CLIP)
    odds: FloatArray = np.log(clipped) - np.log1p(-clipped)
    return odds


def _log_loss(probabilities: FloatArray, labels: BoolArray) -> float:
    """Return the summed log-loss."""
    clipped = np.clip(probabilities, _CLIP, 1.0 - _CLIP)
    return float(-np.where(labels, np.log(clipped), np.log1p(-clipped)).sum())


def _fit_platt(probabilities: FloatArray, labels: BoolArray) -> _Curve:
    """Fit Platt's curve; leave the label unchanged if the curve would fall."""
    from sklearn.linear_model import LogisticRegression  # noqa: PLC0415 (predictions do without scikit-learn)

    model = LogisticRegression(C=1e3).fit(_log_odds(probabilities)[:, None], labels)
    slope, intercept = float(model.coef_[0, 0]), float(model.intercept_[0])
    return _Curve(_PLATT, np.array([slope, intercept]), np.empty(0)) if slope > 0.0 else _AS_IT_IS


def _fit_isotonic(probabilities: FloatArray, labels: BoolArray) -> _Curve:
    """Fit a rising curve that stays half a text away from 0 and 1."""
    from sklearn.isotonic import IsotonicRegression  # noqa: PLC0415

    least = 0.5 / (len(labels) + 1)
    model = IsotonicRegression(y_min=least, y_max=1.0 - least).fit(probabilities, labels)
    return _Curve(_ISOTONIC, model.X_thresholds_, model.y_thresholds_)


_FITS = {_NONE: lambda probabilities, labels: _AS_IT_IS, _PLATT: _fit_platt, _ISOTONIC: _fit_isotonic}


def _choose(probabilities: FloatArray, labels: BoolArray, n_folds: int, seed: int) -> _Curve:
    """Return the curve of the method with the lowest cross-validated log-loss; of equal ones the simplest."""
    from sklearn.model_selection import StratifiedKFold  # noqa: PLC0415

    losses = np.zeros(len(METHODS))
    for train, held in StratifiedKFold(n_folds, shuffle=True, random_state=seed).split(probabilities, labels):
        for method, fit in _FITS.items():
            losses[method] += _log_loss(fit(probabilities[train], labels[train])(probabilities[held]), labels[held])
    return _FITS[int(np.argmin(losses))](probabilities, labels)


class Recalibration:
    """Corrected probabilities, label by label; made by `fit` and never changed.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> truth = rng.random((2000, 1))
    >>> labels = rng.random((2000, 1)) < truth
    >>> too_sure = truth**3 / (truth**3 + (1 - truth) ** 3)
    >>> recalibration = Recalibration.fit(too_sure, labels)
    >>> recalibration.methods
    ('platt',)
    >>> bool(abs(recalibration.transform(too_sure) - truth).mean() < 0.02)
    True
    """

    def __init__(self, curves: tuple[_Curve, ...]) -> None:
        self._curves = curves

    @classmethod
    def fit(
        cls, probabilities: Any, labels: Any, *, min_texts: int = 20, n_folds: int = 5, seed: int = 0
    ) -> Recalibration:
        """Choose and fit a correction for each label.

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
            Of its folds.
        """
        for parameter, value, least in (("n_folds", n_folds, 2), ("min_texts", min_texts, n_folds)):
            check_count(parameter, value, who="Recalibration.fit", least=least)
        checked, truth = as_texts(probabilities, labels, who="Recalibration.fit")
        counts = truth.sum(axis=0)
        enough = (counts >= min_texts) & (len(truth) - counts >= min_texts)
        return cls(
            tuple(
                _choose(np.ascontiguousarray(checked[:, k]), truth[:, k], n_folds, seed) if enough[k] else _AS_IT_IS
                for k in range(checked.shape[1])
            )
        )

    def __repr__(self) -> str:
        counts = {method: self.methods.count(method) for method in METHODS}
        return f"<Recalibration of {self.n_labels} labels: {', '.join(f'{n} {name}' for name, n in counts.items())}>"

    @property
    def n_labels(self) -> int:
        """Number of labels."""
        return len(self._curves)

    @property
    def methods(self) -> tuple[str, ...]:
        """What is done to each label: one of METHODS."""
        return tuple(METHODS[curve.method] for curve in self._curves)

    def transform(self, probabilities: Any) -> FloatArray:
        """Return corrected probabilities (n, d)."""
        checked = as_probabilities(probabilities, who="Recalibration.transform", n_labels=self.n_labels)
        return np.column_stack([curve(checked[:, k]) for k, curve in enumerate(self._curves)])

    def to_arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Return plain arrays: methods (d,), and the numbers of all labels in a row with their lengths (d, 2)."""
        return {
            "methods": np.array([curve.method for curve in self._curves], dtype=np.int64),
            "lengths": np.array([(len(curve.x), len(curve.y)) for curve in self._curves], dtype=np.int64),
            "values": np.concatenate([part for curve in self._curves for part in (curve.x, curve.y)]),
        }

    @classmethod
    def from_arrays(cls, arrays: Any) -> Recalibration:
        """Return the inverse of `to_arrays`; `arrays` is a mapping, or an opened .npz."""
        try:
            methods, lengths, values = (np.asarray(arrays[name]) for name in ("methods", "lengths", "values"))
            for array, kind, dimensions in ((methods, "i", 1), (lengths, "i", 2), (values, "f", 1)):
                if array.dtype.kind != kind or array.ndim != dimensions:
                    raise ValueError(f"{array.dtype} values in {array.ndim} dimensions where others are expected")
            # Each length on its own first: a sum of huge ones would wrap round.
            if (
                lengths.shape != (len(methods), 2)
                or len(methods) == 0
                or not 0 <= lengths.min() <= lengths.max() <= len(values)
            ):
                raise ValueError("lengths do not belong to methods")
            if int(lengths.sum()) != len(values) or not np.isfinite(values).all():
                raise ValueError("values do not belong to lengths")
            parts = np.split(values, np.cumsum(lengths.ravel())[:-1])
            curves = tuple(
                _checked(_Curve(int(method), parts[2 * k], parts[2 * k + 1])) for k, method in enumerate(methods)
            )
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            raise ArtifactError(f"These are not the arrays of a recalibration: {error}.") from error
        return cls(curves)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write it to one .npz file, completely or not at all."""
        _FORMAT.write(path, {}, self.to_arrays())

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Recalibration:
        """Read a file made by `save`; no code from the file is run."""
        arrays = _FORMAT.read(path)[1]
        try:
            return cls.from_arrays(arrays)
        except ArtifactError as error:
            raise ArtifactError(f"{path} is damaged: {error}") from error


def _checked(curve: _Curve) -> _Curve:
    """Return a curve that was read, or raise if it is not one that `fit` makes."""
    lengths = (len(curve.x), len(curve.y))
    if curve.method == _NONE and lengths == (0, 0):
        return curve
    if curve.method == _PLATT and lengths == (2, 0) and curve.x[0] > 0.0:
        return curve
    if curve.method == _ISOTONIC and lengths[0] == lengths[1] >= 1:
        rises = bool((np.diff(curve.x) > 0).all() and (np.diff(curve.y) >= 0).all())
        if rises and curve.y[0] >= 0.0 and curve.y[-1] <= 1.0:
            return curve
    raise ValueError("a label's curve is not one that fit makes")
