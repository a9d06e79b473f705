"""When the guarantee may not hold: a watch over the one assumption, that texts are exchangeable.

A conformal test martingale. Each new text's score is ranked among the calibration scores *and all scores that came
since*, ties broken at random:

    p_t = (#{i < t : a_i > a_t} + u_t (#{i < t : a_i = a_t} + 1)) / t

where t counts calibration texts too. If all texts are exchangeable these p-values are independent and uniform (Vovk,
Gammerman & Shafer, *Algorithmic Learning in a Random World*, theorem 8.2). Ranks among the calibration scores alone are
not: they share one calibration set, so that they are all low, or all high, together.

A gambler with capital 1 bets on each p-value, at fair odds, that it will not be uniform. If it is, the capital is a
nonnegative martingale, and by Ville's inequality the probability that it *ever* reaches 1 / alpha is at most alpha.
That is when the alarm is raised. The bets, in equal parts:

- the composite simple jumper (Vovk et al., *Retrain or not retrain*, 2021): bets 1 + e (p - 1/2) with e in {-1, 0, 1},
  which changes with probability J, mixed over J = 1, 0.1, ..., 0.0001: finds drift and bursts;
- histograms (as in Eliades & Papadopoulos, *A betting function for addressing concept drift*, 2022): the density seen
  so far, of 2, 4, 8 and 16 bins with half a count to begin with: finds any lasting change of the spread.

An alarm says that texts are not exchangeable, not that errors are too many: texts that come in bursts of one topic
raise it too. The absence of an alarm proves nothing.
"""

from __future__ import annotations

import bisect
import dataclasses
import json
import math
import os
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any, Literal

import numpy as np

from surelabel._core.storage import atomic_file
from surelabel._core.validation import FloatArray, as_level, invalid
from surelabel.conformal import ConformalLabelSets
from surelabel.exceptions import ArtifactError, InvalidInputError

_FORMAT = "surelabel-watch"
_VERSION = 1
_JUMPS = (1.0, 1e-1, 1e-2, 1e-3, 1e-4)
_SLOPES = np.array([-1.0, 0.0, 1.0])
_BINS = (2, 4, 8, 16)

Watched = Literal["labels", "predictions"]


class _Gambler:
    """Capital that bets on p-values, kept as logarithms."""

    def __init__(self) -> None:
        self.jumpers = np.full((len(_JUMPS), len(_SLOPES)), 1.0 / len(_SLOPES))
        self.bins = [np.full(n, 0.5) for n in _BINS]
        # One account per jumper, then one per histogram.
        self.accounts = np.zeros(len(_JUMPS) + len(_BINS))

    def bet(self, p_value: float) -> float:
        """Play one round; return the logarithm of the capital."""
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
        kinds = (self.accounts[: len(_JUMPS)], self.accounts[len(_JUMPS) :])
        means = [float(np.logaddexp.reduce(kind)) - math.log(len(kind)) for kind in kinds]
        return float(np.logaddexp.reduce(means)) - math.log(len(means))


@dataclasses.dataclass(frozen=True, eq=False)
class WatchState:
    """What a watch knows after some texts.

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
    path: FloatArray = dataclasses.field(repr=False)


class ExchangeabilityWatch:
    """Watch a stream of texts, and raise an alarm if they are not exchangeable with the calibration texts.

    If they are, the probability of an alarm, ever, is at most alpha: however long the stream and however often one
    looks. Updates must come one after the other: a watch in several threads needs a lock.

    Parameters
    ----------
    scores : sequence of float
        Scores of the calibration texts. Without any, the stream is only compared with itself.
    alpha : float, str, Decimal or Fraction in (0, 1)
        Bound of the probability of a false alarm.
    seed : int
        For breaking ties.
    predictor : ConformalLabelSets, optional
        What scores new texts; without one, `update_scores` takes scores.
    watched : {"labels", "predictions"}
        Whether scores are of true label-sets, which come later if at all, or of forced predictions, which need none.
        For both, make two watches and share alpha between them.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> watch = ExchangeabilityWatch(rng.random(200), alpha=0.01)
    >>> watch.update_scores(rng.random(300)).alarm
    False
    >>> state = watch.update_scores(rng.random(300) + 0.3)
    >>> state.alarm, state.alarm_at
    (True, 357)
    """

    def __init__(
        self,
        scores: Sequence[float] | FloatArray = (),
        *,
        alpha: Any = 0.01,
        seed: int = 0,
        predictor: ConformalLabelSets | None = None,
        watched: Watched = "labels",
    ) -> None:
        if watched not in ("labels", "predictions"):
            raise invalid("watched", "ExchangeabilityWatch", "'labels' or 'predictions'", repr(watched))
        self._alpha = as_level(alpha, None, who="ExchangeabilityWatch")
        # All scores so far, ascending.
        self._scores: list[float] = np.sort(_as_scores(scores)).tolist()
        self._rng = np.random.default_rng(seed)
        self._predictor = predictor
        self._watched: Watched = watched
        self._gambler = _Gambler()
        self._n_seen = 0
        self._peak = 0.0
        self._alarm_at: int | None = None

    @classmethod
    def from_predictor(
        cls, predictor: ConformalLabelSets, *, alpha: Any = 0.01, seed: int = 0, probabilities: Any = None
    ) -> ExchangeabilityWatch:
        """Make a watch over a calibrated predictor's texts.

        With the calibration texts' `probabilities`, (n, d), forced predictions are watched, for which no labels are
        needed; without, true label-sets.
        """
        calibration = predictor._calibrated("ExchangeabilityWatch")
        if probabilities is None:
            return cls(calibration.totals, alpha=alpha, seed=seed, predictor=predictor)
        return cls(predictor.totals(probabilities), alpha=alpha, seed=seed, predictor=predictor, watched="predictions")

    @property
    def alpha(self) -> float:
        """Bound of the probability of a false alarm."""
        return float(self._alpha)

    @property
    def watched(self) -> Watched:
        """Whether scores of true "labels" or of forced "predictions" are watched."""
        return self._watched

    @property
    def state(self) -> WatchState:
        """What is known now."""
        return self._state([])

    def __repr__(self) -> str:
        state = self.state
        said = f"alarm at text {state.alarm_at}" if state.alarm else "no alarm"
        return f"<ExchangeabilityWatch of {self._watched}: {state.n_seen} texts, {said}>"

    def update(self, probabilities: Any, labels: Any) -> WatchState:
        """Take texts whose true label-sets have become known, in the order in which they came.

        `labels` are (n, d) 0/1 array-like or sparse, or one collection of label names per text.
        """
        return self.update_scores(self._scorer("labels", "update").totals(probabilities, labels))

    def update_unlabelled(self, probabilities: Any) -> WatchState:
        """Take texts without labels, in the order in which they came: their forced predictions are watched."""
        return self.update_scores(self._scorer("predictions", "update_unlabelled").totals(probabilities))

    def _scorer(self, watched: Watched, who: str) -> ConformalLabelSets:
        """Return the predictor, if there is one and this is what is watched."""
        if self._watched != watched:
            raise InvalidInputError(
                f"This watch is over {self._watched}; {who} is for one over {watched}. Ranks of one kind among the "
                "other mean nothing: make a second watch, and share alpha between the two."
            )
        if self._predictor is None:
            raise InvalidInputError(
                f"This watch has no predictor to score texts with. Use update_scores instead of {who}, or make it with "
                "ExchangeabilityWatch.from_predictor, or load it with predictor=."
            )
        return self._predictor

    def update_scores(self, scores: Sequence[float] | FloatArray) -> WatchState:
        """Take scores of new texts, (n,), in the order in which they came; larger is stranger."""
        path = []
        for score in _as_scores(scores).tolist():
            ties = bisect.bisect_left(self._scores, score), bisect.bisect_right(self._scores, score)
            n_larger, n_equal = len(self._scores) - ties[1], ties[1] - ties[0]
            p_value = (n_larger + float(self._rng.random()) * (n_equal + 1)) / (len(self._scores) + 1)
            self._scores.insert(ties[1], score)
            log_capital = self._gambler.bet(p_value)
            path.append(log_capital)
            self._n_seen += 1
            self._peak = max(self._peak, log_capital)
            if self._alarm_at is None and log_capital >= -math.log(self._alpha):
                self._alarm_at = self._n_seen
        return self._state(path)

    def _state(self, path: list[float]) -> WatchState:
        """Return what is known, with the path of one update."""
        ten = math.log(10.0)
        return WatchState(
            n_seen=self._n_seen,
            log10_martingale=self._gambler.log_capital / ten,
            log10_peak=self._peak / ten,
            alarm=self._alarm_at is not None,
            alarm_at=self._alarm_at,
            path=np.array(path) / ten,
        )

    def to_dict(self) -> dict[str, Any]:
        """Return everything but the predictor as plain values for JSON."""
        return {
            "format": _FORMAT,
            "version": _VERSION,
            "alpha": str(self._alpha),
            "watched": self._watched,
            "n_seen": self._n_seen,
            "peak": self._peak,
            "alarm_at": self._alarm_at,
            "scores": list(self._scores),
            "jumpers": self._gambler.jumpers.tolist(),
            "bins": [counts.tolist() for counts in self._gambler.bins],
            "accounts": self._gambler.accounts.tolist(),
            "random": self._rng.bit_generator.state,
        }

    @classmethod
    def from_dict(cls, values: dict[str, Any], *, predictor: ConformalLabelSets | None = None) -> ExchangeabilityWatch:
        """Return the inverse of `to_dict`: a watch that continues as if it had never stopped."""
        if not isinstance(values, dict) or (values.get("format"), values.get("version")) != (_FORMAT, _VERSION):
            raise ArtifactError(f"These are not the values of a watch of format {_FORMAT!r}, version {_VERSION}.")
        try:
            watch = cls(values["scores"], alpha=Fraction(values["alpha"]), watched=values["watched"])
            watch._n_seen, watch._peak = int(values["n_seen"]), float(values["peak"])
            watch._alarm_at = None if values["alarm_at"] is None else int(values["alarm_at"])
            gambler = watch._gambler
            gambler.jumpers = _as_shape(values["jumpers"], gambler.jumpers.shape)
            gambler.accounts = _as_shape(values["accounts"], gambler.accounts.shape)
            gambler.bins = [_as_shape(v, b.shape) for v, b in zip(values["bins"], gambler.bins, strict=True)]
            watch._rng.bit_generator.state = values["random"]
        except (KeyError, TypeError, ValueError, ArithmeticError) as error:
            raise ArtifactError(f"The values of a watch are damaged: {error!r}.") from error
        watch._predictor = predictor
        return watch

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the watch to one JSON file, whole or not at all; the predictor is not in it."""
        with atomic_file(path) as temporary:
            temporary.write_text(json.dumps(self.to_dict()) + "\n", encoding="utf-8")

    @classmethod
    def load(cls, path: str | os.PathLike[str], *, predictor: ConformalLabelSets | None = None) -> ExchangeabilityWatch:
        """Read a file made by `save`, and continue with this predictor: the one that the watch was made with."""
        file = Path(path)
        try:
            values = json.loads(file.read_text(encoding="utf-8"))
        except ValueError as error:
            raise ArtifactError(f"{file} is not a watch, or it is damaged: {error}.") from error
        try:
            return cls.from_dict(values, predictor=predictor)
        except ArtifactError as error:
            raise ArtifactError(f"{file}: {error}") from error


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
