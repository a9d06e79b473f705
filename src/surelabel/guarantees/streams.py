"""What the outcomes of a stream move: a level, a window of scores or weighted scores, one per category."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any, Literal

import numpy as np

from surelabel._core.validation import BoolArray, FloatArray, IntArray
from surelabel.calibration import Calibration, threshold_of
from surelabel.exceptions import InvalidInputError
from surelabel.taxonomies.categories import Categories

Method = Literal["aci", "dtaci", "window", "nexcp"]
METHODS: tuple[Method, ...] = ("aci", "dtaci", "window", "nexcp")
"""How a level or a calibration follows what was seen."""

Key = tuple[int, int]
ALL_TEXTS: Key = (0, 0)
"""The one stream without a taxonomy."""

RATES = (0.001, 0.002, 0.004, 0.008, 0.016, 0.032, 0.064, 0.128)
"""Rates that "dtaci" weighs, those of its paper."""

# The number of texts over which weights are to follow what is best (section 3 of the paper).
_HORIZON = 500


class WeightedTotals:
    """Totals with weights; p(Y) = (weight of totals at least as large + 1) / (all weight + 1)."""

    def __init__(self, totals: FloatArray, weights: FloatArray) -> None:
        order = np.argsort(totals, kind="stable")
        self.totals = totals[order]
        # Weight of the totals from each one on, and 0.
        self._tails = np.append(np.cumsum(weights[order][::-1])[::-1], 0.0)

    def threshold(self, level: float) -> float:
        """Return the largest total whose p-value is over the level; inf if every total's is."""
        if 1.0 / (self._tails[0] + 1.0) > level:
            return float("inf")
        above = np.flatnonzero(self.p_values(self.totals) > level)
        return float(self.totals[above[-1]]) if len(above) else float("-inf")

    def p_values(self, totals: Any) -> FloatArray:
        """Return weighted p-values of totals of any shape."""
        places = np.searchsorted(self.totals, totals, side="left")
        return np.asarray((self._tails[places] + 1.0) / (self._tails[0] + 1.0))


@dataclasses.dataclass(frozen=True, eq=False)
class WeightedCalibration(Calibration):
    """A calibration whose totals have weights."""

    weighted: WeightedTotals = dataclasses.field(kw_only=True)

    def threshold(self, level: Fraction, assurance: Fraction | None = None) -> float:
        """Return the largest total whose p-value is over the level; inf if every total's is."""
        return self.weighted.threshold(float(level))

    def p_values(self, totals: Any, tie_breaks: Any = None) -> FloatArray:
        """Return weighted p-values of totals of any shape."""
        if tie_breaks is not None:
            raise InvalidInputError("Weighted p-values cannot be smoothed; leave 'smoothing' out.")
        return self.weighted.p_values(totals)


@dataclasses.dataclass(frozen=True, eq=False)
class AdaptedCategories(Categories):
    """Categories with thresholds of their own, whatever the level that is asked for.

    `adapted` has the threshold and what p-values are counted in, by (category row, joined kind). Categories without
    calibration texts are not in it: all their candidates are members.
    """

    adapted: Mapping[tuple[int, int], tuple[float, WeightedTotals]] = dataclasses.field(default_factory=dict)

    def thresholds(
        self,
        levels: Sequence[Fraction],
        which: IntArray,
        codes: IntArray,
        assurance: Fraction | None = None,
        tie_breaks: FloatArray | None = None,
    ) -> FloatArray:
        """Return the thresholds of each text's categories, (n, n_kinds)."""
        if assurance is not None or tie_breaks is not None:
            raise InvalidInputError("Levels that follow errors take no 'assurance' and no 'smoothing'; leave them out.")
        cuts = {key: cut for key, (cut, _) in self.adapted.items()}
        rows = [[cuts.get((code, kind), np.inf) for kind in self.kind_codes] for code in codes.tolist()]
        return np.array(rows).reshape(len(codes), self.taxonomy.n_kinds)

    def among(self, code: int, kind: int, totals: FloatArray, tie_breaks: FloatArray | None = None) -> FloatArray:
        """Return weighted p-values."""
        key = (code, self.kind_codes[kind])
        return self.adapted[key][1].p_values(totals) if key in self.adapted else np.ones(np.shape(totals))

    def warn_of_small(self, *_: Any) -> None:
        """Say nothing: categories follow their errors, however few their texts are."""


class Stream:
    """The texts of one category, or all texts: their scores, levels with different rates, and errors.

    Levels begin at the share of errors to keep; their weighted mean is used. The last score came last.
    """

    def __init__(self, target: float, rates: tuple[float, ...], totals: Sequence[float] | FloatArray = ()) -> None:
        # Scores of calibration are kept sorted and have no order of their own: a window or weights must not prefer the
        # large ones.
        self.scores: list[float] = np.random.default_rng(0).permutation(totals).tolist()
        self.n_settled = self.n_errors = 0
        self.target = target
        self.rates = np.array(rates)
        self.levels: FloatArray = np.full(len(rates), target)
        self.weights: FloatArray = np.full(len(rates), 1.0 / len(rates))
        spread = (1 - target) ** 2 * target**3 + target**2 * (1 - target) ** 3
        self._eagerness = math.sqrt(3 / _HORIZON * (math.log(len(rates) * _HORIZON) + 2) / spread)
        self._share = 1.0 / (2 * _HORIZON)

    @property
    def level(self) -> float:
        """The weighted mean of the levels."""
        return float(self.weights @ self.levels)

    def update(self, p_value: float, missed: bool) -> None:
        """Take the p-value of a true label-set, and whether its set missed it."""
        # A single level follows the error that was made. Of several, each follows the error that it would have made,
        # and weights fall with the pinball loss of their levels.
        if len(self.levels) == 1:
            errors: FloatArray = np.array([float(missed)])
        else:
            errors = (p_value <= self.levels).astype(np.float64)
            losses = self.target * (p_value - self.levels) - np.minimum(0.0, p_value - self.levels)
            weights = self.weights * np.exp(-self._eagerness * (losses - losses.min()))
            self.weights = (1 - self._share) * weights / weights.sum() + self._share / len(weights)
        moved = self.levels + self.rates * (self.target - errors)
        # One step past 0 and 1, and no further: the way back must not be long.
        self.levels = np.clip(moved, -self.rates, 1.0 + self.rates)
        self.n_settled += 1
        self.n_errors += missed

    def restore(self, levels: FloatArray, weights: FloatArray) -> None:
        """Continue from levels and weights of an earlier run."""
        if levels.shape != self.levels.shape or weights.shape != levels.shape or not weights.sum() > 0:
            raise ValueError("levels do not belong to rates")
        self.levels, self.weights = levels.copy(), weights.copy()


class Streams:
    """One stream per category of a calibration, or one of all texts; parameters are those of `OnlineConformal`."""

    def __init__(
        self,
        calibration: Calibration,
        significance: Fraction,
        method: Method,
        *,
        rate: float,
        window: int,
        decay: float,
    ) -> None:
        self._base = calibration
        self._significance, self._method, self._rates = significance, method, (rate,) if method == "aci" else RATES
        self._window, self._decay = window, decay
        divided = calibration.categories
        table = {ALL_TEXTS: calibration.totals} if divided is None else divided.table
        self._streams = {key: Stream(float(significance), self._rates, totals) for key, totals in table.items()}
        self._current: Calibration | None = None

    @property
    def _follows_level(self) -> bool:
        """Whether the level moves; otherwise what it is compared with does."""
        return self._method in ("aci", "dtaci")

    def _stream(self, key: Key) -> Stream:
        """Return a stream; one of a category that has no calibration texts is new at first."""
        return self._streams.setdefault(key, Stream(float(self._significance), self._rates))

    def named(self) -> Iterator[tuple[str, Key, Stream]]:
        """Yield the streams, with their categories in words."""
        for key, stream in sorted(self._streams.items()):
            divided = self._base.categories
            yield "all texts" if divided is None else divided.name_of(*key), key, stream

    def kinds_of(self, labels: Any) -> IntArray:
        """Return the kind of each label-set, (n,); 0 without a taxonomy."""
        divided = self._base.categories
        return np.zeros(labels.shape[0], dtype=np.int64) if divided is None else divided.taxonomy.kinds_of(labels)

    def _calibrated(self, key: Key) -> FloatArray:
        """Return the calibration totals of a stream."""
        return self._base.totals if self._base.categories is None else self._base.categories.category(*key)

    def level(self, key: Key) -> float:
        """Return the level of a stream, within limits."""
        if not self._follows_level:
            return float(self._significance)
        least = 1.0 / (len(self._calibrated(key)) + 1)
        return min(max(self._streams[key].level, least), 1.0 - least)

    def _weighted(self, key: Key) -> tuple[FloatArray, FloatArray]:
        """Return what a stream's next texts are compared with: totals and their weights."""
        scores = self._streams[key].scores
        totals = self._calibrated(key) if self._follows_level else np.array(scores, dtype=np.float64)
        if self._method == "window":
            totals = totals[-self._window :]
        is_nexcp = self._method == "nexcp"
        return totals, self._decay ** np.arange(len(totals), 0, -1.0) if is_nexcp else np.ones(len(totals))

    def cut(self, key: Key) -> float:
        """Return the largest total of a member: never over the largest that is known, inf if none is."""
        totals, weights = self._weighted(key)
        if not len(totals):
            return float("inf")
        if self._method == "nexcp":
            cut = WeightedTotals(totals, weights).threshold(float(self._significance))
        else:
            exact = Fraction(self.level(key)) if self._follows_level else self._significance
            cut = threshold_of(np.sort(totals), exact)
        return min(cut, float(totals.max()))

    def calibration(self) -> Calibration:
        """Return what the next texts are compared with; made once until the next outcome."""
        if self._current is None:
            base = self._base
            if base.categories is not None:
                adapted = {key: (self.cut(key), WeightedTotals(*self._weighted(key))) for key in self._streams}
                fixed = base.categories
                categories = AdaptedCategories(fixed.taxonomy, fixed.totals, adapted)
                base = dataclasses.replace(base, categories=categories)
            elif not self._follows_level:
                fields = {field.name: getattr(base, field.name) for field in dataclasses.fields(base)}
                fields["totals"], weights = self._weighted(ALL_TEXTS)
                if self._method == "window":
                    base = Calibration(**fields)
                else:
                    base = WeightedCalibration(**fields, weighted=WeightedTotals(fields["totals"], weights))
            self._current = base
        return self._current

    def update(self, groups: Sequence[str | None], labels: BoolArray, totals: FloatArray, missed: BoolArray) -> None:
        """Take outcomes: true label-sets with their totals, and whether sets missed them. Each moves its own stream."""
        base, n_texts = self._base, len(totals)
        candidates, divided = base.is_candidate(labels), base.categories
        if divided is None:
            keys, p_values = [ALL_TEXTS] * n_texts, base.p_values(totals)
        else:
            names = [group or "" for group in groups] if divided.taxonomy.by_group else None
            codes, kinds = divided.codes_of(names, n_texts, who="update"), self.kinds_of(labels)
            keys = [(code, divided.kind_codes[kind]) for code, kind in zip(codes.tolist(), kinds.tolist(), strict=True)]
            p_values = divided.p_values(totals, codes, kinds)
        p_values = np.where(candidates, p_values, 0.0)
        for key, total, p_value, is_missed in zip(
            keys, totals.tolist(), p_values.tolist(), missed.tolist(), strict=True
        ):
            stream = self._stream(key)
            stream.update(p_value, is_missed)
            stream.scores.append(total)
        # Scores without weight are forgotten.
        kept = self._window if self._method == "window" else int(np.ceil(np.log(1e-12) / np.log(self._decay)))
        for key in set(keys):
            self._streams[key].scores = self._streams[key].scores[-max(kept, 1) :]
        self._current = None

    def to_state(self) -> tuple[list[list[int]], dict[str, Any]]:
        """Return what is known of each stream: [category, number of scores, settled, errors], and arrays by name."""
        streams = self._streams.values()
        described = [[*key, len(one.scores), one.n_settled, one.n_errors] for key, one in self._streams.items()]
        arrays = {
            "scores": np.array([score for one in streams for score in one.scores], dtype=np.float64),
            "levels": np.array([one.levels for one in streams]),
            "weights": np.array([one.weights for one in streams]),
        }
        return described, arrays

    def restore(self, known: Sequence[Sequence[int]], arrays: dict[str, Any]) -> None:
        """Take over the streams of an earlier run; raise ValueError unless they are those of the calibration."""
        rows = [tuple(map(int, row)) for row in known]
        if not {(code, kind) for code, kind, *_ in rows} >= set(self._streams):
            raise ValueError("its streams are not those of its predictor")
        levels, weights = (arrays[name].reshape(len(rows), -1) for name in ("levels", "weights"))
        left = arrays["scores"].tolist()
        for place, (code, kind, n_scores, n_settled, n_errors) in enumerate(rows):
            stream = self._stream((code, kind))
            stream.scores, left = left[:n_scores], left[n_scores:]
            stream.n_settled, stream.n_errors = n_settled, n_errors
            stream.restore(levels[place], weights[place])
            if not 0 < n_scores == len(stream.scores):
                raise ValueError("its scores are not those of its predictor")
        if left:
            raise ValueError("it has more scores than streams")
        self._current = None
