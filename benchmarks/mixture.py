"""`Mixture` as `choose_mixture` sets it beside `LogLoss`, and beside another checkout's choice with more settings.

    python benchmarks/mixture.py [--before PATH] FOLDER/reuters.npz ... [--out results/mixture.json]

Files are those of `probabilities.py`. Settings are chosen on the validation part. Mean N is that of the first test
texts at 0.05 over random re-splits of calibration and test texts, an upper bound where a size is not exact. The other
checkout chooses with its refinement of log-odds and without. `--worker` is how the script calls itself.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
import warnings
from pathlib import Path

import numpy as np

from probabilities import load

LEVEL, SPLITS, SIZED = "0.05", 10, 150


def figures(measure, rows):
    """Return mean and median N, errors, and right best guesses of a measure, means over re-splits."""
    from surelabel import ConformalLabelSets

    pool, labels = (np.concatenate([rows[f"calibration{part}"], rows[f"test{part}"]]) for part in ("", "_labels"))
    n, most = len(rows["calibration"]), int(rows["train_labels"].sum(axis=1).max())
    found = []
    for split in range(SPLITS):
        order = np.random.default_rng(split).permutation(len(pool))
        known, new = order[:n], order[n : n + 2000]
        predictor = ConformalLabelSets(measure, max_labels=most, n_jobs=1).calibrate(pool[known], labels[known])
        sets = predictor.predict_set(pool[new[:SIZED]], significance=LEVEL)
        lower, upper = (np.array([float(size) for size in bound]) for bound in sets.size_bounds())
        missed = ~predictor.predict_set(pool[new], significance=LEVEL).contains(labels[new])
        right = (predictor.predict(pool[new]).labels == labels[new]).all(axis=1)
        found.append((lower.mean(), upper.mean(), np.median(upper), missed.mean(), right.mean()))
    names = ("mean N, at least", "mean N", "median N", "errors", "right best guesses")
    return dict(zip(names, np.mean(found, axis=0).tolist(), strict=True))


def choices(rows, has_refinement):
    """Yield measures by name, and the processor seconds that choosing them took."""
    from surelabel import LogLoss, choose_mixture

    given = rows["validation"], rows["validation_labels"], rows["train_labels"], (LEVEL,)
    limits = {"max_labels": int(rows["train_labels"].sum(axis=1).max())}
    ways = {"Mixture": {}}
    if has_refinement:
        ways = {"with refinement": {"refine": True}, "without refinement": {"refine": False}}
    else:
        yield "LogLoss", LogLoss(), 0.0
    for name, options in ways.items():
        start = time.process_time()
        yield name, choose_mixture(*given, **limits, **options), time.process_time() - start


def work(path, has_refinement):
    """Print the figures of this version, measure by measure."""
    warnings.simplefilter("ignore")
    rows = load(path)
    for name, measure, seconds in choices(rows, has_refinement):
        found = {"settings": repr(measure), "seconds to choose": seconds, **figures(measure, rows)}
        print(json.dumps([name, found]), flush=True)


def run(checkout, path, has_refinement):
    """Return the figures of a checkout by measure."""
    environment = os.environ | {"PYTHONPATH": f"{checkout}/src", "OMP_NUM_THREADS": "1"}
    command = [sys.executable, __file__, "--worker", str(path), str(int(has_refinement))]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{checkout} failed:\n{done.stderr}")
    return dict(map(json.loads, done.stdout.splitlines()))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("probabilities", nargs="+", type=Path, help="files of probabilities.py")
    parser.add_argument("--before", help="another checkout")
    parser.add_argument("--out", type=Path, help="JSON file; figures of other corpora in it stay")
    options = parser.parse_args()
    rows = []
    if options.out and options.out.is_file():
        names = {path.stem for path in options.probabilities}
        rows = [row for row in json.loads(options.out.read_text()).get("rows", []) if row["corpus"] not in names]
    for path in options.probabilities:
        here = run(Path(__file__).resolve().parents[1], path, False)
        before = run(options.before, path, True) if options.before else {}
        every = here | {f"before, {name}": found for name, found in before.items()}
        for name, found in every.items():
            print(f"{path.stem:14} {name:28} mean N {found['mean N']:16,.2f}  {found['settings']}", flush=True)
        means = {name: here[name]["mean N"] for name in ("LogLoss", "Mixture")}
        means |= {f"before, {name}": found["mean N"] for name, found in before.items()}
        rows.append({"corpus": path.stem, **means, "measures": every})
        if options.out:
            settings = {"significance": LEVEL, "re-splits": SPLITS, "texts sized in each": SIZED, "seed": 0}
            options.out.write_text(json.dumps({"settings": settings, "rows": rows}, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    work(sys.argv[2], sys.argv[3] == "1") if sys.argv[1:2] == ["--worker"] else main()
