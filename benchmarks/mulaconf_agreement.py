"""The same p-values as MuLaConf 0.3, for every one of the 2^d label-sets, d = 8 to 14.

    python benchmarks/mulaconf_agreement.py --out results/mulaconf.json [--reuters PATH]

MuLaConf scores in float32, so ranks of scores that are equal up to float32 rounding may differ by a few places. A
p-value is counted as equal up to that noise where it lies between ours for the score moved by 1e-5 down and up.
"""

from __future__ import annotations

import argparse
import itertools
import json
import sys
from pathlib import Path

import numpy as np
from mulaconf.icp_predictor import InductiveConformalPredictor

from probabilities import measured
from surelabel import ConformalLabelSets, LpNorm
from surelabel.calibration import totals_of

FLOAT32_NOISE = 1e-5


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("results/mulaconf.json"))
    parser.add_argument("--reuters", help="the official archive, where it is at hand")
    parser.add_argument("--texts", type=int, default=40)
    options = parser.parse_args()
    data = measured(options.reuters)
    rows = []
    for d in range(8, 15):
        part = data.reduced(d)
        test = part.test[: options.texts]
        rival = InductiveConformalPredictor(part.calibration, part.calibration_labels.astype(int), measure="norm")
        rival.calibrate(part.calibration, part.calibration_labels.astype(int))
        theirs = np.asarray(rival.predict(test).p_values)
        predictor = ConformalLabelSets(LpNorm(2), 0).calibrate(part.calibration, part.calibration_labels)
        calibration = predictor.calibration_
        label_sets = np.array(list(itertools.product([False, True], repeat=d)))
        equal = within = 0
        for i, probabilities in enumerate(test):
            repeated = np.repeat(probabilities[None, :], len(label_sets), axis=0)
            ours = predictor.predict_p(repeated, label_sets)
            scores = np.sqrt(totals_of(calibration.measure, repeated, label_sets))
            low = calibration.p_values((scores * (1 + FLOAT32_NOISE) + FLOAT32_NOISE) ** 2)
            high = calibration.p_values(np.maximum(scores * (1 - FLOAT32_NOISE) - FLOAT32_NOISE, 0.0) ** 2)
            close = 1e-6
            equal += int(np.sum(np.abs(theirs[i] - ours) < close))
            within += int(np.sum((theirs[i] > low - close) & (theirs[i] < high + close)))
        count = len(test) * len(label_sets)
        shares = f"equal {100 * equal / count:.4f} %, up to float32 ranks {100 * within / count:.4f} %"
        print(f"d={d:2d}: {count:>9,} p-values, {shares}")
        rows.append({"n_labels": d, "p_values": count, "equal": equal, "equal_up_to_float32": within})
    options.out.parent.mkdir(parents=True, exist_ok=True)
    settings = {"source": data.source, "texts": options.texts, "noise": FLOAT32_NOISE, "command": sys.argv[1:]}
    options.out.write_text(json.dumps({"settings": settings, "rows": rows}, indent=1) + "\n")
    if any(row["equal_up_to_float32"] != row["p_values"] for row in rows):
        raise SystemExit("The p-values differ by more than float32 ranks.")


if __name__ == "__main__":
    main()
