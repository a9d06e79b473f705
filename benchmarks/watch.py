"""The exchangeability watch on Reuters: in the order of time, and in random orders, where alarms are false.

    python benchmarks/watch.py --out results/watch.json [--probabilities FILE | --reuters PATH] [--orders 1000]

Bets were fixed beforehand; nothing was chosen on these texts. Three orders of the same scores:

- time: the calibration texts, then the test texts as they came;
- calibration first: the test texts shuffled among themselves, so that only the step from training time to test time is
  left to be seen;
- random: calibration and test texts shuffled together, exchangeable by construction. The share of alarms must not pass
  alpha by more than chance explains.
"""

from __future__ import annotations

import argparse
import json
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import binom

from probabilities import Measured, measured
from surelabel import ConformalLabelSets, LogLoss, LpNorm
from surelabel._core.storage import atomic_file
from surelabel.exceptions import CalibrationWarning
from surelabel.guarantees.watch import ExchangeabilityWatch, WatchState
from surelabel.probabilities_file import Probabilities

ALPHAS = (0.01, 0.05, 0.1)


def from_file(path: Path) -> Measured:
    """Read the probabilities of a run."""
    made = Probabilities.load(path)
    calibration, test = made.parts["calibration"], made.parts["test"]
    source = f"{made.settings['corpus']['name']}, {made.settings['run']['classifier']} classifier, seed 0"
    return Measured(
        source, calibration.probabilities, calibration.labels, test.probabilities, test.labels, made.max_labels
    )


def watched(calibration: Any, stream: Any, seed: int = 0) -> WatchState:
    return ExchangeabilityWatch(calibration, alpha=ALPHAS[0], seed=seed).update_scores(stream)


def described(state: WatchState) -> dict[str, Any]:
    thinned = state.path[:: max(1, len(state.path) // 300)]
    return {
        "alarm_at": state.alarm_at,
        "log10_final": round(state.log10_martingale, 3),
        "log10_peak": round(state.log10_peak, 3),
        "path": np.round(thinned, 3).tolist(),
    }


def alarms(peaks: Any) -> dict[str, Any]:
    shares = {}
    for alpha in ALPHAS:
        count = int((np.array(peaks) >= -np.log10(alpha)).sum())
        shares[str(alpha)] = {
            "alarms": count,
            "share": count / len(peaks),
            "most_by_chance": int(binom.ppf(0.999, len(peaks), alpha)),
        }
    return shares


def measure_orders(calibration: Any, test: Any, n_orders: int) -> dict[str, Any]:
    rng = np.random.default_rng(0)
    together = np.concatenate([calibration, test])
    shifted, mixed = [], []
    for seed in range(n_orders):
        order = rng.permutation(together)
        mixed.append(watched(order[: len(calibration)], order[len(calibration) :], seed).log10_peak)
        if seed < n_orders // 10:
            shifted.append(watched(calibration, rng.permutation(test), seed).log10_peak)
    return {
        "time": described(watched(calibration, test)),
        "calibration first, test shuffled": {"orders": len(shifted), **alarms(shifted)},
        "random": {"orders": len(mixed), **alarms(mixed)},
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("results/watch.json"))
    parser.add_argument("--probabilities", type=Path)
    parser.add_argument("--reuters")
    parser.add_argument("--orders", type=int, default=1000)
    given = parser.parse_args()
    data = from_file(given.probabilities) if given.probabilities else measured(given.reuters)
    results: dict[str, Any] = {"source": data.source, "n_calibration": len(data.calibration), "n_test": len(data.test)}
    warnings.simplefilter("ignore", CalibrationWarning)
    for name, measure in {"L2": LpNorm(2), "LogLoss": LogLoss()}.items():
        predictor = ConformalLabelSets(measure, 1, data.max_labels).calibrate(data.calibration, data.calibration_labels)
        scores = {
            "true label-sets": (
                predictor.totals(data.calibration, data.calibration_labels),
                predictor.totals(data.test, data.test_labels),
            ),
            "forced predictions": (predictor.totals(data.calibration), predictor.totals(data.test)),
        }
        for watched_what, (calibration, test) in scores.items():
            measured_here = measure_orders(calibration, test, given.orders)
            results[f"{name}, {watched_what}"] = measured_here
            shares = measured_here["random"]["0.01"]
            print(
                f"{name}, {watched_what}: in time order alarm at text {measured_here['time']['alarm_at']}; in "
                f"{given.orders} random orders {shares['alarms']} alarms at alpha 0.01"
            )
    with atomic_file(given.out) as temporary:
        temporary.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    worst = [
        shares["alarms"] > shares["most_by_chance"]
        for value in results.values()
        if isinstance(value, dict)
        for shares in value["random"].values()
        if isinstance(shares, dict)
    ]
    sys.exit(any(worst))


if __name__ == "__main__":
    main()
