"""Whether another checkout of this project gives the same answers on saved probabilities.

    python benchmarks/same_answers.py --before PATH FOLDER/reuters.npz ... [--out results/same_answers.json]

Files are those of `probabilities.py`. Each version runs in a process of its own. Sizes, members of small sets,
membership of true label-sets, best guesses, confidence and credibility are compared for LpNorm 2, 4, 8, LogLoss and
Mixture. Costs are rounded to whole units here, so scores that are within 2^-40 of each other or of a threshold, *near
ties*, may fall on either side: differences there are counted apart.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path

import numpy as np

from probabilities import load

LEVELS, MAX_LABELS, NEAR, LISTED = ("0.01", "0.05", "0.1", "0.2"), 15, 2.0**-40, 64


def answer(rows, n_texts):
    """Return the answers of the version on the path, by measure: arrays."""
    from surelabel import ConformalLabelSets, LogLoss, LpNorm
    from surelabel.measures.mixture import Mixture

    mixture = Mixture(0.9, 0.5, 1.0).fit(rows["train_labels"])
    measures = {"L2": LpNorm(2), "L4": LpNorm(4), "L8": LpNorm(8), "LogLoss": LogLoss(), "Mixture": mixture}
    test, true, answers = rows["test"][:n_texts], rows["test_labels"][:n_texts], {}
    for name, measure in measures.items():
        predictor = ConformalLabelSets(measure, 1, MAX_LABELS, n_jobs=1)
        predictor.calibrate(rows["calibration"], rows["calibration_labels"])
        guesses = predictor.predict(test)
        answers |= {f"{name} guess": guesses.labels, f"{name} p of truth": predictor.predict_p(test, true)}
        answers |= {f"{name} confidence": guesses.confidence, f"{name} credibility": guesses.credibility}
        for level in LEVELS:
            sets = predictor.predict_set(test, significance=level)
            lower, upper = (np.array([float(size) for size in bound]) for bound in bounds_of(sets))
            answers[f"{name} {level} size"] = np.where(lower == upper, upper, -1.0)
            answers[f"{name} {level} contains"] = sets.contains(true)
            small = np.flatnonzero(upper <= LISTED)[:200].tolist()
            tops = [sorted(sorted(members) for members, _ in sets[row].top(LISTED)) for row in small]
            answers[f"{name} {level} members"] = np.array([json.dumps(top, default=int) for top in tops], dtype=str)
            order = [[sorted(members) for members, _ in sets[row].top(LISTED)] for row in small]
            answers[f"{name} {level} order"] = np.array([json.dumps(top, default=int) for top in order], dtype=str)
    return answers


def bounds_of(sets):
    """Return bounds of sizes as two sequences, of either version."""
    bounds = sets.size_bounds()
    return (bounds.lower, bounds.upper) if hasattr(bounds, "lower") else bounds


def near_ties(rows, name, n_texts):
    """Return which texts have a near tie: of the true or the best label-set with a calibration score."""
    from surelabel import ConformalLabelSets, measures

    known = {
        "L2": measures.LpNorm(2),
        "L4": measures.LpNorm(4),
        "L8": measures.LpNorm(8),
        "LogLoss": measures.LogLoss(),
    }
    measure = known.get(name) or measures.Mixture(0.9, 0.5, 1.0).fit(rows["train_labels"])
    predictor = ConformalLabelSets(measure, 1, MAX_LABELS).calibrate(rows["calibration"], rows["calibration_labels"])
    own = predictor.calibration_.scores
    found = np.zeros(n_texts, dtype=bool)
    test = rows["test"][:n_texts]
    best_two = predictor.texts(test).search.best((1, MAX_LABELS)).whole / predictor.calibration_.units
    for scores in (predictor.scores(test, rows["test_labels"][:n_texts]), *best_two.T):
        places = np.searchsorted(own, scores)
        for shift in (-1, 0):
            found |= np.abs(own[np.clip(places + shift, 0, len(own) - 1)] - scores) <= NEAR * (1 + scores)
    return found | (np.abs(best_two[:, 1] - best_two[:, 0]) <= NEAR * (1 + best_two[:, 0]))


def compare(before, now, ties):
    """Return, by answer, how many were compared, how many differ, and how many of these have near ties."""
    table = {}
    for key, old in before.items():
        new = now[key]
        comparable = np.ones(len(old), dtype=bool) if len(old) == len(new) else np.zeros(len(old), dtype=bool)
        if key.endswith("size"):
            comparable = (old >= 0) & (new >= 0)  # exact in both
        if len(old) != len(new):
            table[key] = {"compared": 0, "differ": abs(len(old) - len(new)), "near ties": 0}
            continue
        same = np.isclose(old, new, rtol=0, atol=1e-12) if old.dtype.kind == "f" else old == new
        same = same.all(axis=1) if same.ndim == 2 else same
        differs = ~same & comparable
        near = differs & ties[key.split()[0]] if len(differs) == len(ties[key.split()[0]]) else np.zeros(1, dtype=bool)
        table[key] = {"compared": int(comparable.sum()), "differ": int(differs.sum()), "near ties": int(near.sum())}
    return table


def run(checkout, path, n_texts, folder, name):
    """Return the answers of a checkout."""
    out = f"{folder}/{name}.npz"
    environment = os.environ | {"PYTHONPATH": f"{checkout}/src", "OMP_NUM_THREADS": "1"}
    command = [sys.executable, __file__, "--worker", path, str(n_texts), out]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{checkout} failed:\n{done.stderr}")
    with np.load(out) as stored:
        return {key: stored[key] for key in stored.files}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("probabilities", nargs="+", help="files of probabilities.py")
    parser.add_argument("--before", required=True, help="another checkout")
    parser.add_argument("--texts", type=int, default=1000, help="test texts that are compared")
    parser.add_argument("--out", help="JSON file")
    options = parser.parse_args()
    here, results = (
        Path(__file__).resolve().parents[1],
        {"settings": {"levels": LEVELS, "max_labels": MAX_LABELS, "texts": options.texts}},
    )
    with tempfile.TemporaryDirectory() as folder:
        for path in options.probabilities:
            rows = load(path)
            n_texts = min(options.texts, len(rows["test"]))
            full = str(Path(path).resolve())
            before, now = (
                run(at, full, n_texts, folder, name) for name, at in (("before", options.before), ("now", here))
            )
            warnings.simplefilter("ignore")
            ties = {name: near_ties(rows, name, n_texts) for name in ("L2", "L4", "L8", "LogLoss", "Mixture")}
            results[Path(path).stem] = table = compare(before, now, ties)
            for key, one in table.items():
                print(f"{Path(path).stem:16} {key:28} {one}")
    if options.out:
        Path(options.out).write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--worker"]:
        warnings.simplefilter("ignore")
        np.savez(sys.argv[4], **answer(load(sys.argv[2]), int(sys.argv[3])))
    else:
        main()
