"""The engine beside another checkout of it, in one run: the same probabilities, the two taking turns at every figure.

    python benchmarks/before_after.py --before ../before [--reuters PATH] [--turns 40] [--out results/before_after.json]

Figures are processor seconds of one thread, the least of all turns; a ratio below 1: this checkout is faster.
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

from probabilities import measured

HERE = Path(__file__).resolve().parents[1]
WORK = """
import json, sys, time, warnings
import numpy as np
import surelabel
from surelabel import ConformalLabelSets, LogLoss, LpNorm
from surelabel._kernels import walk
from surelabel.answers import answer_probabilities

warnings.simplefilter("ignore")
assert surelabel.__file__.startswith(sys.argv[2]), surelabel.__file__
data = np.load(sys.argv[1])
test = data["test"]
work, checks = {}, {}


def add(name, measure):
    predictor = ConformalLabelSets(measure, 1, int(data["max_labels"]), n_jobs=1)
    predictor.calibrate(data["calibration"], data["labels"])

    def cut(n=None):
        return predictor.predict_set(test[:n], significance="0.05")

    work[f"{name}: sizes"] = lambda: cut().size_bounds()
    work[f"{name}: forced"] = lambda: predictor.predict(test)
    work[f"{name}: members of 500"] = lambda: [one.to_array(10_000) for one in cut(500)]
    work[f"{name}: top 5 of 500"] = lambda: cut(500).top(5)
    work[f"{name}: certain"] = lambda: cut().certain_and_possible()
    work[f"{name}: one answer"] = lambda: answer_probabilities(predictor, test[7:8], significance="0.05")
    checks[name] = [str(sum(map(int, cut().size_bounds()[1]))), float(predictor.predict(test).confidence.sum())]


for name, measure in {"L2": LpNorm(2), "L4": LpNorm(4), "L8": LpNorm(8), "LogLoss": LogLoss()}.items():
    add(name, measure)


def add_enumeration(name, measure):
    # A total that no label-set passes: the walk fills the whole array.
    absent, present = (costs[0] for costs in measure.costs(test[:1]))
    threshold = float(np.maximum(absent, present).sum())
    words = np.zeros((10**7, (test.shape[1] + 63) // 64), dtype=np.uint64)
    limits = (1, int(data["max_labels"]))
    work[f"{name}: 10^7 listed"] = lambda: walk.list_row(absent, present, threshold, limits, words, np.empty(0))


def add_unstructured():
    rng = np.random.default_rng(0)
    probabilities = rng.random((219, 90))
    labels = rng.random(probabilities.shape) < probabilities
    predictor = ConformalLabelSets(LogLoss(), n_jobs=1).calibrate(probabilities[:199], labels[:199])
    ask = lambda: predictor.predict_set(probabilities[199:], significance="0.05").size_bounds()
    work["uniform random, d = 90: bounds of 20"] = ask


for name, measure in {"L2": LpNorm(2), "L8": LpNorm(8), "LogLoss": LogLoss()}.items():
    add_enumeration(name, measure)
add_unstructured()
for ask in work.values():
    ask()
print(json.dumps({"names": list(work), "checks": checks}), flush=True)
for line in sys.stdin:
    ask = work[line.strip()]
    start = time.process_time()
    ask()
    print(time.process_time() - start, flush=True)
"""


class Tree:
    """One checkout in a process of its own, asked for one figure at a time."""

    def __init__(self, tree: Path, file: str) -> None:
        environment = {**os.environ, "PYTHONPATH": str(tree / "src"), "SURELABEL_NUM_THREADS": "1"}
        command = [sys.executable, "-c", WORK, file, str(tree)]
        self._process = subprocess.Popen(
            command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.header = json.loads(self._read())

    def _read(self) -> str:
        """Return the next line of the process."""
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise SystemExit("A checkout could not be measured; see above.")
        return line

    def seconds(self, what: str) -> float:
        """Return the processor seconds of one figure."""
        assert self._process.stdin is not None
        self._process.stdin.write(what + "\n")
        self._process.stdin.flush()
        return float(self._read())

    def close(self) -> None:
        """End the process."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--before", type=Path, required=True, help="the other checkout")
    parser.add_argument("--reuters", help="the official archive, if it is at hand")
    parser.add_argument("--turns", type=int, default=40)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    data = measured(options.reuters)
    with tempfile.TemporaryDirectory() as folder:
        file = str(Path(folder) / "data.npz")
        arrays = {"calibration": data.calibration, "labels": data.calibration_labels, "test": data.test}
        np.savez(file, max_labels=data.max_labels, **arrays)
        trees = [Tree(options.before.resolve(), file), Tree(HERE, file)]
        assert trees[0].header == trees[1].header, "the two answer differently"
        least: dict[str, list[float]] = {}
        for what in trees[0].header["names"]:
            turns = np.empty((options.turns, 2))
            for turn in range(options.turns):
                for which in (0, 1) if turn % 2 else (1, 0):
                    trees[which].seconds(what)  # warms the caches up
                    turns[turn, which] = trees[which].seconds(what)
            least[what] = turns.min(axis=0).tolist()
            before, after = least[what]
            print(f"{what:24s} {1e3 * before:9.3f} ms -> {1e3 * after:9.3f} ms  x {after / before:.3f}", flush=True)
        for tree in trees:
            tree.close()
    if options.out:
        ratios = {what: after / before for what, (before, after) in least.items()}
        results = {"source": data.source, "turns": options.turns, "seconds": least, "ratios": ratios}
        options.out.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
