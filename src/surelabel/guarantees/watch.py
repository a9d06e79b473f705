"""A watch over the one assumption of the guarantee: that texts are exchangeable.

A conformal test martingale. Each new text's score is ranked among the calibration scores *and all scores that came
since*, ties broken at random:

    p_t = (#{i < t : a_i > a_t} + u_t (#{i < t : a_i = a_t} + 1)) / t

where t counts calibration texts too. If all texts are exchangeable these p-values are independent and uniform (Vovk,
Gammerman & Shafer, *Algorithmic Learning in a Random World*, theorem 8.2). Ranks among the calibration scores alone are
not: they share one calibration set, so they are all low, or all high, together.

A gambler with capital 1 bets on each p-value, at fair odds, that it will not be uniform. If it is, the capital is a
nonnegative martingale, and by Ville's inequality the probability that it *ever* reaches 1 / alpha is at most alpha.
That is when the alarm is raised. The bets, in equal parts:

- the composite simple jumper (Vovk et al., *Retrain or not retrain*, 2021): bets 1 + e (p - 1/2) with e in {-1, 0, 1},
  which changes with probability J, mixed over J = 1, 0.1, ..., 0.0001. It finds drift and bursts.
- histograms (as in Eliades & Papadopoulos, *A betting function for addressing concept drift*, 2022): the density seen
  so far, of 2, 4, 8 and 16 bins with half a count to begin with. It finds any lasting change of the spread.

An alarm means that texts are not exchangeable, not that errors are too many: texts that come in bursts of one topic
raise it too. The absence of an alarm proves nothing.
"""

from __future__ import annotations

import bisect
import json
import math
import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from surelabel._core.files import atomic_file
from surelabel._core.validation import FloatArray, as_fraction, check_count, invalid
from surelabel.exceptions import ArtifactError
from surelabel.guarantees.levels import from_file

_KIND = "exchangeability-watch"
_JUMPS = (1.0, 1e-1, 1e-2, 1e-3, 1e-4)
_SLOPES = np.array([-1.0, 0.0, 1.0])
_BINS = (2, 4, 8, 16)


class _Gambler:
    """Capital that bets on p-values, kept as logarithms."""

    def __init__(self) -> None:
        self.jumpers = np.full((len(_JUMPS), len(_SLOPES)), 1.0 / len(_SLOPES))
        self.bins = [np.full(n, 0.5) for n in _BINS]
        # One account per jumper, then one per histogram.
        self.accounts = np.zeros(len(_JUMPS) + len(_BINS))

    def bet(self, p_value: float) -> float:
        """Play one round and return the logarithm of the capital."""
        rates = np.array(_JUMPS)[:, None]
        shares = (1.0 - rates) * self.jumpers + rates / len(_SLOPES)
        shares *= 1.0 + _SLOPES * (p_value - 0.5)
        gains = shares.sum(axis=1)
        self.jumpers = shares / gains[:, None]
        self.accounts[: len(_JUMPS)] += np.log(gains)
        for account, counts in enumerate(self.bins, start=len(_JUMPS)):
            chosen = min(int(p_value * len(counts)), len(counts) - 1)
            self.accounts[account] += math.log(len(counts) * counts[chosen] / counts.sum())
            counts[chosen] += 1.0
        return self.log_capital

    @property
    def log_capital(self) -> float:
        """Logarithm of the mean of the two kinds of bets, each the mean of its accounts."""
        kinds = self.accounts[: len(_JUMPS)], self.accounts[len(_JUMPS) :]
        means = [float(np.logaddexp.reduce(kind)) - math.log(len(kind)) for kind in kinds]
        return float(np.logaddexp.reduce(means)) - math.log(len(means))


@dataclass(frozen=True, eq=False)
class WatchState:
    """The state of a watch after some texts.

    Attributes
    ----------
    n_seen : int
        Texts seen, without those of calibration.
    log10_martingale : float
        Capital now, as a power of ten: 2 means a hundred times the first capital.
    log10_peak : float
        The largest it has been.
    alarm : bool
        Whether it ever reached 1 / alpha; an alarm stays.
    alarm_at : int or None
        The text that raised it, counted from 1.
    path : (n,) float64
        log10_martingale after each text of this update.
    """

    n_seen: int
    log10_martingale: float
    log10_peak: float
    alarm: bool
    alarm_at: int | None
    path: FloatArray = field(repr=False)


class ExchangeabilityWatch:
    """Watch the scores of a stream of texts, and raise an alarm if they are not exchangeable with those of calibration.

    If they are, the probability of an alarm, ever, is at most alpha: however long the stream and however often one
    looks. Scores may be those of true label-sets or of best guesses, which need no labels, but not both in one watch:
    for both, make two and share alpha between them. Updates must come one after the other.

    Parameters
    ----------
    scores : sequence of float
        Scores of the calibration texts, such as `predictor.predict(probabilities).scores`. Without any, the stream is
        only compared with itself.
    alpha : float, str, Decimal or Fraction in (0, 1)
        Bound of the probability of a false alarm.
    seed : int
        For breaking ties.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> watch = ExchangeabilityWatch(rng.random(200), alpha=0.01)
    >>> watch.update(rng.random(300)).alarm, watch.update(rng.random(300) + 0.3).alarm
    (False, True)
    """

    def __init__(self, scores: Sequence[float] | FloatArray = (), *, alpha: Any = "0.01", seed: int = 0) -> None:
        check_count("seed", seed, "ExchangeabilityWatch")
        self._alpha = as_fraction(alpha, "alpha", "ExchangeabilityWatch")
        self._seed = int(seed)
        # All scores so far, ascending.
        self._scores: list[float] = np.sort(_as_scores(scores)).tolist()
        self._gambler, self._n_seen, self._peak = _Gambler(), 0, 0.0
        self._alarm_at: int | None = None
        self._rng = np.random.Generator(np.random.PCG64(self._seed))

    @property
    def alpha(self) -> float:
        """Bound of the probability of a false alarm."""
        return float(self._alpha)

    @property
    def state(self) -> WatchState:
        """The state now."""
        return self.update([])

    def __repr__(self) -> str:
        alarm = "no alarm" if self._alarm_at is None else f"alarm at text {self._alarm_at}"
        return f"<ExchangeabilityWatch: {self._n_seen} texts, {alarm}>"

    def update(self, scores: Sequence[float] | FloatArray) -> WatchState:
        """Take scores of new texts, (n,), in the order in which they came; larger is less conforming."""
        path = []
        for score in _as_scores(scores).tolist():
            start, end = bisect.bisect_left(self._scores, score), bisect.bisect_right(self._scores, score)
            n_larger, n_equal = len(self._scores) - end, end - start
            p_value = (n_larger + float(self._rng.random()) * (n_equal + 1)) / (len(self._scores) + 1)
            self._scores.insert(end, score)
            path.append(self._gambler.bet(p_value))
            self._n_seen += 1
            self._peak = max(self._peak, path[-1])
            if self._alarm_at is None and path[-1] >= -math.log(self._alpha):
                self._alarm_at = self._n_seen
        ten = math.log(10.0)
        now, peak = self._gambler.log_capital / ten, self._peak / ten
        return WatchState(self._n_seen, now, peak, self._alarm_at is not None, self._alarm_at, np.array(path) / ten)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the watch to one JSON file."""
        values = {
            "kind": _KIND,
            "alpha": str(self._alpha),
            "seed": self._seed,
            "n_seen": self._n_seen,
            "peak": self._peak,
            "alarm_at": self._alarm_at,
            "scores": self._scores,
            "jumpers": self._gambler.jumpers.tolist(),
            "bins": [counts.tolist() for counts in self._gambler.bins],
            "accounts": self._gambler.accounts.tolist(),
        }
        with atomic_file(path) as file:
            json.dump(values, file)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> ExchangeabilityWatch:
        """Read a file made by `save`: a watch that continues as if it had never stopped."""
        try:
            values = json.loads(Path(path).read_text(encoding="utf-8"))
            if not isinstance(values, dict) or values.get("kind") != _KIND:
                raise ValueError("it is not the file of a watch")
            watch = cls(values["scores"], alpha=from_file(values["alpha"]), seed=values["seed"])
            check_count("n_seen", values["n_seen"], "load", 0, len(watch._scores))
            if values["alarm_at"] is not None:
                check_count("alarm_at", values["alarm_at"], "load", 1, values["n_seen"])
            watch._n_seen, watch._alarm_at = values["n_seen"], values["alarm_at"]
            watch._peak = float(_as_shape(values["peak"], ()))
            gambler = watch._gambler
            gambler.jumpers = _as_shape(values["jumpers"], gambler.jumpers.shape)
            gambler.accounts = _as_shape(values["accounts"], gambler.accounts.shape)
            gambler.bins = [_as_shape(v, b.shape) for v, b in zip(values["bins"], gambler.bins, strict=True)]
            if min(gambler.jumpers.min(), *(counts.min() for counts in gambler.bins)) <= 0.0:
                raise ValueError("its bets are not positive")
        except (OSError, KeyError, TypeError, ValueError, ArithmeticError, RecursionError) as error:
            raise ArtifactError(f"{os.fspath(path)} is not a watch, or it is damaged: {error}.") from error
        # Each tie took one number of the generator.
        watch._rng = np.random.Generator(np.random.PCG64(watch._seed).advance(watch._n_seen))
        return watch


def _as_scores(values: Any) -> FloatArray:
    """Return scores as a float64 array (n,) of numbers; infinite ones rank as such."""
    scores = np.asarray(values, dtype=np.float64)
    if scores.ndim != 1 or np.isnan(scores).any():
        got = f"shape {scores.shape}{' with NaN' if np.isnan(scores).any() else ''}"
        raise invalid("scores", "ExchangeabilityWatch", "a (n,) array of numbers", got)
    return scores


def _as_shape(values: Any, shape: tuple[int, ...]) -> FloatArray:
    """Return stored numbers as an array of a known shape."""
    array = np.array(values, dtype=np.float64)
    if array.shape != shape or not np.isfinite(array).all():
        raise ValueError(f"expected finite numbers of shape {shape}, got shape {array.shape}")
    return array
