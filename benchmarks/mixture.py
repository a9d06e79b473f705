"""Mixture beside LogLoss and Penalised: mean N, errors and best guesses on the same re-splits, and time in one run.

Writes results/mixture.json. Give files of probabilities (`surelabel reproduce` makes them) and the names of their
corpora:

    python benchmarks/mixture.py reuters=runs/reuters-linear-conformal-seed0/probabilities.npz
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from surelabel import ConformalLabelSets, LogLoss, choose_mixture, choose_weights, corpora
from surelabel._core.storage import atomic_file
from surelabel.exceptions import CalibrationWarning
from surelabel.experiments.run import machine
from surelabel.measures import Measure, measure_to_spec
from surelabel.probabilities_file import Probabilities

LEVELS = ("0.01", "0.05", "0.1")


def _dense(labels: Any) -> Any:
    """Return labels as a bool array."""
    return np.asarray(labels.toarray() if hasattr(labels, "toarray") else labels, dtype=bool)


def _seconds(predictor: ConformalLabelSets, probabilities: Any, repeats: int) -> float:
    """Return the least processor time of sizes at 0.05, after one call that compiles."""
    predictor.predict_set(probabilities[:10], significance="0.05").size_bounds()
    times = []
    for _ in range(repeats):
        start = time.process_time()
        predictor.predict_set(probabilities, significance="0.05").size_bounds()
        times.append(time.process_time() - start)
    return min(times)


def _measured(measure: Measure, parts: Probabilities, n_splits: int, n_sized: int) -> dict[str, Any]:
    """Return what a measure gives on re-splits of calibration and test texts."""
    rows: dict[str, dict[str, list[float]]] = {level: {"n": [], "median_n": [], "error": []} for level in LEVELS}
    accuracy, exact = [], True
    for split in range(n_splits):
        calibration, test = parts.redivided(split)
        predictor = ConformalLabelSets(measure, max_labels=parts.max_labels, n_jobs=1)
        predictor = predictor.calibrate(calibration.probabilities, calibration.labels)
        for level in LEVELS:
            sets = predictor.predict_set(test.probabilities[:n_sized], significance=level)
            lower, upper = (np.array(bound, dtype=np.float64) for bound in sets.size_bounds())
            exact = exact and bool(np.array_equal(lower, upper))
            held = predictor.predict_set(test.probabilities, significance=level).contains(test.labels)
            for name, value in (("n", upper.mean()), ("median_n", np.median(upper)), ("error", 1.0 - held.mean())):
                rows[level][name].append(float(value))
        n_guessed = len(test) if isinstance(measure, LogLoss) or hasattr(measure, "seen") else n_sized
        guesses = predictor.predict(test.probabilities[:n_guessed]).labels
        accuracy.append(float((guesses == _dense(test.labels[:n_guessed])).all(axis=1).mean()))
    levels = {
        level: {name: {"mean": float(np.mean(values)), "sd": float(np.std(values))} for name, values in row.items()}
        for level, row in rows.items()
    }
    seconds = _seconds(predictor, test.probabilities[:n_sized], 3)
    return {
        "measure": {key: value for key, value in measure_to_spec(measure).items() if key != "n_labels"},
        "sizes_are_exact": exact,
        "levels": levels,
        "exact_match": {"mean": float(np.mean(accuracy)), "sd": float(np.std(accuracy)), "texts": n_guessed},
        "microseconds_per_text": 1e6 * seconds / n_sized,
    }


def measure_corpus(name: str, file: Path, n_splits: int, n_sized: int, penalise: bool) -> dict[str, Any]:
    """Choose settings on the validation part, and measure on re-splits of the other two."""
    parts = Probabilities.load(file)
    training = _dense(corpora.load(name, seed=0).part("train").labels)
    validation = parts.parts["validation"]
    given = (validation.probabilities, _dense(validation.labels))
    start = time.process_time()
    mixture = choose_mixture(*given, training, LEVELS, max_labels=parts.max_labels)
    seconds = {"choose_mixture": time.process_time() - start}
    measures: dict[str, Measure] = {"LogLoss": LogLoss(), "Mixture": mixture}
    if penalise:
        start = time.process_time()
        measures["Penalised"] = choose_weights(LogLoss(), training, *given, max_labels=parts.max_labels).measure
        seconds["choose_weights"] = time.process_time() - start
    return {
        "n_labels": len(parts.label_names),
        "n_splits": n_splits,
        "n_sized": n_sized,
        "processor_seconds": seconds,
        "measures": {key: _measured(value, parts, n_splits, n_sized) for key, value in measures.items()},
    }


def main() -> None:
    """Read arguments, measure, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sources", nargs="+", metavar="CORPUS=FILE")
    parser.add_argument("--out", type=Path, default=Path("results/mixture.json"))
    parser.add_argument("--splits", type=int, default=10)
    parser.add_argument("--sized", type=int, default=150)
    parser.add_argument("--without-penalised", action="store_true", help="Penalised takes most of the time.")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore", CalibrationWarning)
    document: dict[str, Any] = {"format": "surelabel-mixture-1", "machine": machine(), "corpora": {}}
    for source in arguments.sources:
        name, file = source.split("=", 1)
        penalise = not arguments.without_penalised
        document["corpora"][name] = measure_corpus(name, Path(file), arguments.splits, arguments.sized, penalise)
        with atomic_file(arguments.out) as temporary:
            temporary.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
