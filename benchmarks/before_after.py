"""The engine beside another checkout of it, in one run: the same probabilities, the two taking turns.

    python benchmarks/before_after.py --before ../before [--reuters PATH] [--rounds 5] [--out results/before_after.json]

Figures are processor seconds of one thread, the least of all rounds; a ratio below 1: this checkout is faster.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

HERE = Path(__file__).resolve().parents[1]
WORK = """
import json, sys, time, warnings
import numpy as np
import surelabel
from surelabel import ConformalLabelSets, LogLoss, LpNorm
from surelabel.answers import answer_probabilities

warnings.simplefilter("ignore")
assert surelabel.__file__.startswith(sys.argv[2]), surelabel.__file__
data = np.load(sys.argv[1])
test = data["test"]


def least(runs, work):
    work()
    times = []
    for _ in range(runs):
        start = time.process_time()
        work()
        times.append(time.process_time() - start)
    return min(times)


seconds, checks = {}, {}
for name, measure in {"L2": LpNorm(2), "L4": LpNorm(4), "LogLoss": LogLoss(), "Linf": LpNorm(float("inf"))}.items():
    predictor = ConformalLabelSets(measure, 1, int(data["max_labels"]), n_jobs=1)
    predictor.calibrate(data["calibration"], data["labels"])
    sets = predictor.predict_set(test, significance="0.05")
    cut = lambda: predictor.predict_set(test, significance="0.05")
    work = {
        "sizes": (7, lambda: cut().size_bounds()),
        "forced": (7, lambda: predictor.predict(test)),
        "members of 500": (3, lambda: [one.to_array(10_000) for one in cut()[:500]]),
        "top 5": (3, lambda: predictor.predict_set(test[:500], significance="0.05").top(5)),
        "certain": (5, lambda: cut().certain_and_possible()),
        "one answer": (50, lambda: answer_probabilities(predictor, test[7:8], significance="0.05")),
    }
    for what, (runs, ask) in work.items():
        seconds[f"{name}: {what}"] = least(runs, ask)
    checks[name] = [str(sum(map(int, sets.size_bounds()[1]))), float(predictor.predict(test).confidence.sum())]
print(json.dumps({"seconds": seconds, "checks": checks}))
"""


def run(tree: Path, file: str) -> dict[str, dict[str, float]]:
    """Measure one checkout in a process of its own."""
    environment = {**os.environ, "PYTHONPATH": str(tree / "src"), "SURELABEL_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, "-c", WORK, file, str(tree)], env=environment, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise SystemExit(done.stderr)
    result: dict[str, dict[str, float]] = json.loads(done.stdout.splitlines()[-1])
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--before", type=Path, required=True, help="the other checkout")
    parser.add_argument("--reuters", help="the official archive, if it is at hand")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    from probabilities import measured

    data = measured(options.reuters)
    trees = {"before": options.before.resolve(), "after": HERE}
    runs: dict[str, list[dict[str, dict[str, float]]]] = {name: [] for name in trees}
    with tempfile.TemporaryDirectory() as folder:
        file = str(Path(folder) / "data.npz")
        arrays = {"calibration": data.calibration, "labels": data.calibration_labels, "test": data.test}
        np.savez(file, max_labels=data.max_labels, **arrays)
        for _ in range(options.rounds):
            for name, tree in trees.items():
                runs[name].append(run(tree, file))
    assert runs["before"][0]["checks"] == runs["after"][0]["checks"], "the two answer differently"
    seconds = {
        name: {what: min(one["seconds"][what] for one in results) for what in results[0]["seconds"]}
        for name, results in runs.items()
    }
    ratios = {what: seconds["after"][what] / before for what, before in seconds["before"].items()}
    for what, ratio in ratios.items():
        before, after = (1e3 * seconds[name][what] for name in trees)
        print(f"{what:24s} {before:9.3f} ms -> {after:9.3f} ms  x {ratio:.3f}")
    if options.out:
        results = {"source": data.source, "seconds": seconds, "ratios": ratios}
        options.out.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
