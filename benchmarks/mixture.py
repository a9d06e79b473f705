"""Mixture beside LogLoss and Penalised: mean N, errors and best guesses on the same re-splits, and time in one run.

Writes results/mixture.json; what it has of other sources is kept. Give files of probabilities (`surelabel reproduce`
makes them) and the names of their corpora, with the classifier behind a colon unless it is linear:

    python benchmarks/mixture.py reuters=runs/reuters-linear-conformal-seed0/probabilities.npz
    python benchmarks/mixture.py reuters:randinit=runs/reuters-randinit-conformal-seed0/probabilities.npz
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from surelabel import ByCardinality, ConformalLabelSets, LogLoss, Mixture, choose_mixture, choose_weights, corpora
from surelabel._core.storage import atomic_file
from surelabel.exceptions import CalibrationWarning
from surelabel.experiments.run import machine
from surelabel.measures import Measure, measure_to_spec
from surelabel.probabilities_file import Probabilities

LEVELS = ("0.01", "0.05", "0.1")
# Texts that Penalised, which takes milliseconds per text, is timed and sized with, and that its weights are chosen on.
_SLOW, _CHOSEN_ON = 50, 300
_TIMED = 2000
_REFINED = ("refined label by label", "refined by all labels")


def _dense(labels: Any) -> Any:
    """Return labels as a bool array."""
    return np.asarray(labels.toarray() if hasattr(labels, "toarray") else labels, dtype=bool)


def _times(measures: dict[str, Measure], parts: Probabilities, n_texts: int, repeats: int = 7) -> dict[str, float]:
    """Return the least processor time per text, in microseconds, of sizes at 0.05: measures take turns in one run."""
    calibration, test = parts.redivided(0)
    texts = {name: test.probabilities[: _SLOW if name == "Penalised" else n_texts] for name in measures}
    predictors = {
        name: ConformalLabelSets(measure, max_labels=parts.max_labels, n_jobs=1).calibrate(
            calibration.probabilities, calibration.labels
        )
        for name, measure in measures.items()
    }
    least = dict.fromkeys(measures, np.inf)
    for turn in range(repeats + 1):
        for name, predictor in predictors.items():
            start = time.process_time()
            predictor.predict_set(texts[name], significance="0.05").size_bounds()
            if turn:  # the first one compiles
                least[name] = min(least[name], 1e6 * (time.process_time() - start) / len(texts[name]))
    return least


def _by_cardinality(measure: Measure, parts: Probabilities, n_splits: int, n_sized: int) -> dict[str, Any]:
    """Return mean N at 0.1 if the promise is kept for one, two, three and more labels each."""
    sizes, errors, exact = [], [], True
    for split in range(n_splits):
        calibration, test = parts.redivided(split)
        predictor = ConformalLabelSets(measure, max_labels=parts.max_labels, taxonomy=ByCardinality((1, 2, 3)))
        predictor = predictor.calibrate(calibration.probabilities, calibration.labels)
        sets = predictor.predict_set(test.probabilities[:n_sized], significance="0.1")
        lower, upper = (np.array(bound, dtype=np.float64) for bound in sets.size_bounds())
        exact = exact and bool(np.array_equal(lower, upper))
        sizes.append(float(upper.mean()))
        held = predictor.predict_set(test.probabilities, significance="0.1").contains(test.labels)
        errors.append(float(1.0 - held.mean()))
    return {
        "sizes_are_exact": exact,
        "n": {"mean": float(np.mean(sizes)), "sd": float(np.std(sizes)), "median": float(np.median(sizes))},
        "error": {"mean": float(np.mean(errors)), "sd": float(np.std(errors))},
    }


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
        n_guessed = len(test) if isinstance(measure, (LogLoss, Mixture)) else n_sized
        guesses = predictor.predict(test.probabilities[:n_guessed]).labels
        accuracy.append(float((guesses == _dense(test.labels[:n_guessed])).all(axis=1).mean()))
    levels = {
        level: {name: {"mean": float(np.mean(values)), "sd": float(np.std(values))} for name, values in row.items()}
        for level, row in rows.items()
    }
    spec = {key: value for key, value in measure_to_spec(measure).items() if key != "n_labels"}
    if isinstance(measure, Mixture):
        spec["log_odds"] = "as they are" if measure.odds is None else _REFINED[measure.odds.table.shape[0] > 2]
    return {
        "measure": spec,
        "sizes_are_exact": exact,
        "levels": levels,
        "exact_match": {"mean": float(np.mean(accuracy)), "sd": float(np.std(accuracy)), "texts": n_guessed},
    }


def measure_corpus(
    name: str, file: Path, n_splits: int, n_sized: int, *, penalise: bool, by_cardinality: list[str]
) -> dict[str, Any]:
    """Choose settings on the validation part, and measure on re-splits of the other two."""
    parts = Probabilities.load(file)
    training = _dense(corpora.load(name.split(":", maxsplit=1)[0], seed=0).part("train").labels)
    validation = parts.parts["validation"]
    given = (validation.probabilities, _dense(validation.labels))
    start = time.process_time()
    mixture = choose_mixture(*given, training, LEVELS, max_labels=parts.max_labels)
    seconds = {"choose_mixture": time.process_time() - start}
    measures: dict[str, Measure] = {"LogLoss": LogLoss(), "Mixture": mixture}
    if penalise:
        start = time.process_time()
        some = tuple(array[:_CHOSEN_ON] for array in given)
        measures["Penalised"] = choose_weights(LogLoss(), training, *some, max_labels=parts.max_labels).measure
        seconds["choose_weights"] = time.process_time() - start
    results = {}
    for key, measure in measures.items():
        fewer = key == "Penalised"
        splits, sized = (min(n_splits, 2), min(n_sized, _SLOW)) if fewer else (n_splits, n_sized)
        results[key] = _measured(measure, parts, splits, sized) | (
            {"n_splits": splits, "n_sized": sized} if fewer else {}
        )
    for key, microseconds in _times(measures, parts, _TIMED).items():
        results[key]["microseconds_per_text"] = microseconds
    if name in by_cardinality:
        for key in ("LogLoss", "Mixture"):
            results[key]["by_cardinality_at_0.1"] = _by_cardinality(measures[key], parts, n_splits, n_sized)
    return {
        "n_labels": len(parts.label_names),
        "n_splits": n_splits,
        "n_sized": n_sized,
        "processor_seconds": seconds,
        "measures": results,
    }


def main() -> None:
    """Read arguments, measure, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sources", nargs="+", metavar="CORPUS[:CLASSIFIER]=FILE")
    parser.add_argument("--out", type=Path, default=Path("results/mixture.json"))
    parser.add_argument("--splits", type=int, default=10)
    parser.add_argument("--sized", type=int, default=150)
    parser.add_argument("--penalised", nargs="*", default=[], help="Corpora to measure Penalised on; it takes long.")
    parser.add_argument("--by-cardinality", nargs="*", default=["reuters"], help="Corpora to keep that promise on.")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore", CalibrationWarning)
    document: dict[str, Any] = {"format": "surelabel-mixture-2", "corpora": {}}
    if arguments.out.is_file():
        document = json.loads(arguments.out.read_text(encoding="utf-8"))
    document["machine"] = machine()
    for source in arguments.sources:
        name, file = source.split("=", 1)
        document["corpora"][name] = measure_corpus(
            name,
            Path(file),
            arguments.splits,
            arguments.sized,
            penalise=name in arguments.penalised,
            by_cardinality=arguments.by_cardinality,
        )
        with atomic_file(arguments.out) as temporary:
            temporary.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
