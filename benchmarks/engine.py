"""The engine's speed beside another checkout of this project, as ratios in one run.

    python benchmarks/engine.py --before PATH [--probabilities FILE.npz ...] [--texts 1000] [--out results/engine.json]

Each version runs in a process of its own (PYTHONPATH=PATH/src), one thread, on the same rows: random ones, and those of
saved files with the arrays calibration (n, d), calibration_labels, test, test_labels and, for the mixture,
train_labels. Times are the best of several runs, per text. `--worker` is how the script calls itself.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np

# Label-sets that the paper's ball may score for one text, so that the slower version ends.
LEVELS, MAX_LABELS, MOST_BALL = ("0.05", "0.01"), 15, 500_000


def random_rows(n_texts, n_labels=90, seed=0):
    """Return probabilities as sharp as those of a classifier, and label-sets drawn from them."""
    rng = np.random.default_rng(seed)
    rows = {}
    for part, n in (("calibration", 1000), ("test", n_texts), ("train", 2000)):
        probabilities = np.clip(rng.beta(0.03, 3, (n, n_labels)), 1e-5, 0.999)
        likeliest = rng.zipf(1.4, n) % n_labels
        probabilities[np.arange(n), likeliest] = 1 - 0.9 * rng.beta(0.3, 3, n)
        labels = rng.random(probabilities.shape) < probabilities
        labels[~labels.any(axis=1), 0] = True
        rows |= {part: probabilities, f"{part}_labels": labels}
    return rows


def seconds(work, runs=3):
    """Return the time of the fastest run."""
    times = []
    for _ in range(runs):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return min(times)


def measure_rows(rows):
    """Return microseconds per text by question."""
    import surelabel
    from surelabel import ConformalLabelSets, LogLoss, LpNorm
    from surelabel.measures.mixture import Mixture

    test, n = rows["test"], len(rows["test"])
    mixture = Mixture(0.9, 0.5, 1.0).fit(rows["train_labels"])
    measures = {"L2": LpNorm(2), "L8": LpNorm(8), "LogLoss": LogLoss(), "Mixture": mixture}
    figures = {}
    for name, measure in measures.items():
        predictor = ConformalLabelSets(measure, 1, MAX_LABELS, n_jobs=1)
        predictor.calibrate(rows["calibration"], rows["calibration_labels"])
        figures[f"{name}, best guess"] = seconds(lambda: predictor.predict(test)) / n
        for level in LEVELS:

            def sets():
                return predictor.predict_set(test, significance=level)

            figures[f"{name}, size at {level}"] = seconds(lambda: sets().size_bounds()) / n
            figures[f"{name}, contains at {level}"] = seconds(lambda: sets().contains(rows["test_labels"])) / n
            few = test[:100]

            def top():
                return [one.top(5) for one in predictor.predict_set(few, significance=level)]

            figures[f"{name}, 5 best members at {level}"] = seconds(top) / len(few)
        if name != "Mixture":
            few = test[:50]

            def sums():
                return surelabel.metrics.s_criterion(predictor, few).mean

            figures[f"{name}, S"] = seconds(sums, 1) / len(few)
            true = rows["test_labels"][:50]
            figures[f"{name}, OF"] = seconds(lambda: surelabel.metrics.of_criterion(predictor, few, true), 1) / len(few)
    return {name: 1e6 * value for name, value in figures.items()}


def measure_ball(rows, radii):
    """Return seconds of the paper's Hamming ball and of the exact search on the same texts, by the paper's t."""
    from surelabel import ConformalLabelSets, LpNorm

    table = {}
    for t in sorted(set(radii) - {-1}):
        chosen = np.flatnonzero(np.array(radii) == t)[:10]
        for search in ("hamming-ball", "exact"):
            predictor = ConformalLabelSets(LpNorm(2), 1, MAX_LABELS, search=search, n_jobs=1)
            predictor.calibrate(rows["calibration"], rows["calibration_labels"])

            def sets():
                return predictor.predict_set(rows["test"][chosen], significance=LEVELS[0]).size_bounds()

            sets()  # compiled before it is timed
            table[f"{search}, t = {t}"] = 1e6 * seconds(sets, 1 if search == "hamming-ball" else 3) / len(chosen)
    return table


def find_radii(rows):
    """Return the paper's t of each test text whose ball is within reach, -1 for others."""
    from surelabel import ConformalLabelSets, LpNorm

    predictor = ConformalLabelSets(LpNorm(2), 1, MAX_LABELS).calibrate(rows["calibration"], rows["calibration_labels"])
    demand = predictor.predict_set(rows["test"], significance=LEVELS[0]).demand()
    return [int(t) if ball <= MOST_BALL else -1 for t, ball in zip(demand.radii, demand.ball, strict=True)]


def answer_cold():
    """Print the processor time of the first answer, and of compiling all searches, with an empty kernel cache."""
    from surelabel import ConformalLabelSets, LogLoss
    from surelabel.measures.mixture import Mixture

    rng = np.random.default_rng(0)
    probabilities = rng.random((60, 12))
    labels = rng.random(probabilities.shape) < probabilities
    labels[~labels.any(axis=1), 0] = True
    start = time.process_time()
    predictor = ConformalLabelSets(LogLoss(), n_jobs=1).calibrate(probabilities, labels)
    predictor.predict(probabilities[:1])
    one = predictor.predict_set(probabilities[:1], significance="0.1")[0]
    one.top(5), one.size_bounds, one.certain
    first = time.process_time() - start
    for options in ({"measure": Mixture(0.5).fit(labels)}, {"search": "hamming-ball"}):
        ConformalLabelSets(**options).calibrate(probabilities, labels).predict_set(
            probabilities, significance="0.1"
        ).sizes()
    print(json.dumps({"first answer": first, "all searches": time.process_time() - start}))


def run(checkout, arguments, cache=None):
    """Return what this script prints as a worker with another checkout."""
    environment = os.environ | {"PYTHONPATH": f"{checkout}/src", "OMP_NUM_THREADS": "1"}
    if cache is not None:
        environment["NUMBA_CACHE_DIR"] = cache
    command = [sys.executable, __file__, "--worker", *arguments]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{checkout} failed:\n{done.stderr}")
    return json.loads(done.stdout.splitlines()[-1])


def work(arguments):
    """Run as a worker, and print figures."""
    warnings.simplefilter("ignore")
    what, *files = arguments
    if what == "cold":
        answer_cold()
        return
    with np.load(files[0]) as stored:
        rows = {name: stored[name] for name in stored.files}
    if what == "radii":
        print(json.dumps(find_radii(rows)))
    elif what == "ball":
        print(json.dumps(measure_ball(rows, json.loads(Path(files[1]).read_text()))))
    else:
        print(json.dumps(measure_rows(rows)))


def compare(here, before, path, folder):
    """Return figures of both versions on one file of rows."""
    radii, ball_file = run(here, ["radii", path]), f"{folder}/radii.json"
    Path(ball_file).write_text(json.dumps(radii))
    figures = {}
    for version, checkout in (("before", before), ("now", here)):
        figures[version] = run(checkout, ["rows", path]) | run(checkout, ["ball", path, ball_file])
    table = {
        name: {"before": old, "now": figures["now"][name], "speed": old / figures["now"][name]}
        for name, old in figures["before"].items()
    }
    for name, one in table.items():
        print(f"  {name:34} {one['before']:12.1f} {one['now']:12.1f} us   {one['speed']:8.2f} times as fast")
    return table


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--before", required=True, help="another checkout")
    parser.add_argument("--probabilities", nargs="*", default=[], help="saved probabilities, .npz")
    parser.add_argument("--texts", type=int, default=1000, help="random test texts")
    parser.add_argument("--out", help="JSON file")
    options = parser.parse_args()
    here = Path(__file__).resolve().parents[1]
    results = {
        "settings": {
            "levels": LEVELS,
            "max_labels": MAX_LABELS,
            "texts": options.texts,
            "unit": "microseconds per text",
        },
        "machine": {"processor": platform.processor(), "python": platform.python_version(), "numpy": np.__version__},
    }
    with tempfile.TemporaryDirectory() as folder:
        np.savez(f"{folder}/random.npz", **random_rows(options.texts))
        for path in (f"{folder}/random.npz", *options.probabilities):
            print(Path(path).stem)
            results[Path(path).stem] = compare(here, options.before, str(Path(path).resolve()), folder)
        cold = {
            version: run(checkout, ["cold"], f"{folder}/{version}")
            for version, checkout in (("before", options.before), ("now", here))
        }
    results["compiling"] = cold
    print("compiling, processor seconds:", cold)
    if options.out:
        Path(options.out).write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    work(sys.argv[2:]) if sys.argv[1:2] == ["--worker"] else main()
