"""What chance alone does to error rates: the band that a valid predictor stays in."""

from __future__ import annotations

import functools
import math
from fractions import Fraction
from typing import Any, Literal, TypeAlias

import numpy as np

from surelabel.exceptions import InvalidInputError

BAND = 0.99
"""Share of experiments with exchangeable texts whose error rate stays within the band, at one level."""

Verdict: TypeAlias = Literal["held", "chance", "above"]
"""Of an error rate: at most the significance; above it, but no more than chance explains; above that."""


@functools.lru_cache(maxsize=4096)
def count_band(share: float, n_texts: int, n_calibration: int | None, inside: float = BAND) -> tuple[float, float]:
    """Return the band of the share of `n_texts` texts whose p-value falls in a part `share` of [0, 1]."""
    from scipy import special  # noqa: PLC0415 (scipy.stats takes a second to import)

    if share <= 0.0 or share >= 1.0:
        return (0.0, 0.0) if share <= 0.0 else (1.0, 1.0)
    tails = (1.0 - inside) / 2.0, (1.0 + inside) / 2.0
    k = np.arange(n_texts + 1.0)
    if n_calibration is None:
        cumulative = special.bdtr(k, n_texts, share)
    else:
        a, b = share * (n_calibration + 1), (1.0 - share) * (n_calibration + 1)
        logarithms = special.betaln(k + a, n_texts - k + b) - special.betaln(a, b)
        cumulative = np.cumsum(np.exp(logarithms - special.betaln(n_texts - k + 1, k + 1))) / (n_texts + 1)
    # The smallest count that this share of experiments does not exceed.
    lower, upper = np.minimum(np.searchsorted(cumulative, tails), n_texts).tolist()
    return lower / n_texts, upper / n_texts


def error_band(
    significance: Any, n_texts: int, n_calibration: int | None = None, *, inside: float = BAND
) -> tuple[float, float]:
    """Return (lower, upper) of the error rate that chance explains if texts are exchangeable.

    Given the calibration, errors on new texts are binomial; but the rate itself was drawn with the calibration texts,
    from Beta(k, n + 1 - k) with k = floor(significance (n + 1)). Both together are beta-binomial. Without
    `n_calibration` the calibration is taken as perfect, and the band is too narrow unless there are many more
    calibration texts than new ones. A share `inside` of experiments stays within the band.

    Examples
    --------
    >>> error_band("0.05", 1000)
    (0.033, 0.069)
    >>> error_band("0.05", 1000, 999)
    (0.028, 0.078)
    """
    if n_texts < 1 or (n_calibration is not None and n_calibration < 0):
        raise InvalidInputError(
            f"The numbers of texts of error_band must be 1 or more. Got {n_texts} and {n_calibration} instead."
        )
    level = Fraction(str(significance))
    if n_calibration is None:
        return count_band(float(level), n_texts, None, inside)
    return count_band(math.floor(level * (n_calibration + 1)) / (n_calibration + 1), n_texts, n_calibration, inside)


def with_verdict(
    error: float, significance: Any, n_texts: int, n_calibration: int | None, *, inside: float = BAND
) -> tuple[float, float, Verdict]:
    """Return the band that chance explains at a significance, and the verdict on an error rate.

    Examples
    --------
    >>> with_verdict(0.06, "0.05", n_texts=1000, n_calibration=999)
    (0.028, 0.078, 'chance')
    """
    lower, upper = error_band(significance, n_texts, n_calibration, inside=inside)
    if error <= float(Fraction(str(significance))):
        return lower, upper, "held"
    return lower, upper, "chance" if error <= upper else "above"
