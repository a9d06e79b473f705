"""The exact search against the leanest Hamming ball: compiled nested loops that only add up flips and count.

    python benchmarks/lean_ball.py --out results/lean_ball.json [--reuters PATH]

`search="hamming-ball"` scores every label-set with the measure, as the paper describes. This one does as little as can
be done per label-set, so it is the hardest rival of its kind. It counts the texts whose t is at most 4 (three flips).
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
from numba import njit

from engine import MEASURES, best_of
from probabilities import measured
from surelabel import ConformalLabelSets

MOST = 4


@njit(nogil=True)
def count_ball(absent: Any, present: Any, threshold: float, limits: Any, radius: Any) -> int:
    found = 0
    n_labels = absent.shape[1]
    flips = np.empty(n_labels)
    step = np.empty(n_labels, dtype=np.int64)
    for row in range(absent.shape[0]):
        left = threshold
        size = 0
        for k in range(n_labels):
            inside = present[row, k] <= absent[row, k]
            left -= present[row, k] if inside else absent[row, k]
            size += inside
            step[k] = -1 if inside else 1
            flips[k] = abs(absent[row, k] - present[row, k])
        if radius[row] >= 1 and limits[0] <= size <= limits[1] and left >= 0:
            found += 1
        for i in range(n_labels if radius[row] >= 2 else 0):
            one = size + step[i]
            found += limits[0] <= one <= limits[1] and flips[i] <= left
            for j in range(i + 1, n_labels if radius[row] >= 3 else 0):
                two = one + step[j]
                found += limits[0] <= two <= limits[1] and flips[i] + flips[j] <= left
                for k in range(j + 1, n_labels if radius[row] >= 4 else 0):
                    three = two + step[k]
                    found += limits[0] <= three <= limits[1] and flips[i] + flips[j] + flips[k] <= left
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("results/lean_ball.json"))
    parser.add_argument("--reuters", help="the official archive, if you have it")
    options = parser.parse_args()
    data = measured(options.reuters)
    limits = (1, data.max_labels)
    rows = []
    for name, measure in MEASURES.items():
        predictor = ConformalLabelSets(measure, *limits, n_jobs=1).calibrate(data.calibration, data.calibration_labels)
        ball = ConformalLabelSets(measure, *limits, search="hamming-ball", n_jobs=1)
        ball.calibrate(data.calibration, data.calibration_labels)
        for level in ("0.05", "0.01"):
            report = ball.predict_set(data.test, significance=level).search_report()
            reached = report.radius <= MOST
            part, radius = data.test[reached], report.radius[reached]
            threshold = predictor.predict_set(part[:1], significance=level).thresholds[0]
            absent, present = measure.costs(part)
            found = count_ball(absent, present, threshold, limits, radius)
            sizes = predictor.predict_set(part, significance=level).sizes()
            assert abs(found - int(sizes.sum())) <= 2, "ties that only the exact total can decide are few"
            lean = best_of(3, lambda: count_ball(absent, present, threshold, limits, radius))
            exact = best_of(5, lambda: predictor.predict_set(part, significance=level).sizes())
            considered = sum(count for count, is_reached in zip(report.considered, reached, strict=True) if is_reached)
            rows.append(
                {
                    "measure": name,
                    "significance": level,
                    "texts": len(part),
                    "texts_out_of_reach": int((~reached).sum()),
                    "ball_label_sets": considered,
                    "ball_ms": 1e3 * lean,
                    "exact_ms": 1e3 * exact,
                    "ratio": lean / exact,
                }
            )
            print(f"{name:8s} e={level} {len(part)} texts: ball {1e3 * lean:.1f} ms, exact {1e3 * exact:.1f} ms")
    settings = {"source": data.source, "most_t": MOST, "command": sys.argv[1:]}
    options.out.write_text(json.dumps({"settings": settings, "rows": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
