"""The same p-values as MuLaConf 0.3, for every one of the 2^d label-sets, d = 8 to 14: norm, Mahalanobis, penalties.

    python benchmarks/mulaconf_agreement.py --out results/mulaconf.json [--reuters PATH]

MuLaConf scores in float32, so ranks of scores that are equal up to float32 rounding may differ by a few places. A
p-value is counted as equal up to that noise where it lies between ours for the score moved by 1e-5 down and up; for
Mahalanobis by 1e-4, since MuLaConf inverts the covariance in float32 too.
"""

from __future__ import annotations

import argparse
import itertools
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
from mulaconf.icp_predictor import InductiveConformalPredictor

from probabilities import Measured, measured
from surelabel import ConformalLabelSets, LpNorm, Mahalanobis, Penalised
from surelabel.calibration import totals_of

FLOAT32_NOISE = {"norm": 1e-5, "mahalanobis": 1e-4}
WEIGHTS = {"plain": (0.0, 0.0), "penalised": (0.7, 0.3)}


def ours_for(part: Measured, name: str, weights: tuple[float, float]) -> Any:
    """Return the measure that is MuLaConf's, its weights in units of our scores."""
    if name == "norm":
        measure: Any = LpNorm(2)
        constant = np.sqrt(part.test.shape[1])
    else:
        measure = Mahalanobis().fit(part.validation, part.validation_labels)
        constant = np.sqrt(np.abs(measure.matrix).sum())
    if not any(weights):
        return measure
    hamming, cardinality = (float(weight * constant) for weight in weights)
    return Penalised(measure, hamming=hamming, cardinality=cardinality).fit(part.validation_labels)


def compare(part: Measured, test: Any, name: str, kind: str) -> dict[str, Any]:
    """Compare all p-values of some texts."""
    weights = WEIGHTS[kind]
    rival = InductiveConformalPredictor(
        part.validation,
        part.validation_labels.astype(int),
        measure=name,
        weight_hamming=weights[0],
        weight_cardinality=weights[1],
    )
    rival.calibrate(part.calibration, part.calibration_labels.astype(int))
    theirs = np.asarray(rival.predict(test).p_values)
    predictor = ConformalLabelSets(ours_for(part, name, weights), 0)
    calibration = predictor.calibrate(part.calibration, part.calibration_labels).calibration_
    label_sets = np.array(list(itertools.product([False, True], repeat=test.shape[1])))
    noise, close = FLOAT32_NOISE[name], 1e-6
    equal = within = 0
    for i, probabilities in enumerate(test):
        repeated = np.repeat(probabilities[None, :], len(label_sets), axis=0)
        totals = totals_of(calibration.measure, repeated, label_sets)
        ours = calibration.p_values(totals)
        # Totals are squares of scores where nothing is added to them, scores where something is.
        power = 1 if any(weights) else 2
        scores = totals ** (1 / power)
        low = calibration.p_values((scores * (1 + noise) + noise) ** power)
        high = calibration.p_values(np.maximum(scores * (1 - noise) - noise, 0.0) ** power)
        equal += int(np.sum(np.abs(theirs[i] - ours) < close))
        within += int(np.sum((theirs[i] > low - close) & (theirs[i] < high + close)))
    count = len(test) * len(label_sets)
    shares = f"equal {100 * equal / count:.4f} %, up to float32 ranks {100 * within / count:.4f} %"
    print(f"d={test.shape[1]:2d} {name:>11} {kind:>9}: {count:>9,} p-values, {shares}", flush=True)
    return {
        "n_labels": test.shape[1],
        "measure": name,
        "weights": weights,
        "p_values": count,
        "equal": equal,
        "equal_up_to_float32": within,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("results/mulaconf.json"))
    parser.add_argument("--reuters", help="the official archive, if you have it")
    parser.add_argument("--texts", type=int, default=40)
    options = parser.parse_args()
    data = measured(options.reuters)
    rows = []
    for d in range(8, 15):
        part = data.reduced(d)
        test = part.test[: options.texts if d < 12 else max(1, options.texts // 4)]
        rows += [compare(part, test, name, kind) for name in FLOAT32_NOISE for kind in WEIGHTS]
    options.out.parent.mkdir(parents=True, exist_ok=True)
    settings = {"source": data.source, "texts": options.texts, "noise": FLOAT32_NOISE, "command": sys.argv[1:]}
    options.out.write_text(json.dumps({"settings": settings, "rows": rows}, indent=1) + "\n")
    if any(row["equal_up_to_float32"] != row["p_values"] for row in rows):
        raise SystemExit("The p-values differ by more than float32 ranks.")


if __name__ == "__main__":
    main()
