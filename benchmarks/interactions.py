"""Measures whose labels interact: nodes and time per text, sizes beside other measures, and against MuLaConf at d = 20.

    python benchmarks/interactions.py --out results/interactions.json [--reuters PATH] [--texts N]

Times are processor time of one core (n_jobs=1), which other work on the machine does not distort. A size is exact where
the search did not give up; where it did, it lies between two certified bounds, which are both given. At e = 0.01 the
first 300 texts stand for all.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from mulaconf.icp_predictor import InductiveConformalPredictor

from probabilities import Measured, measured
from surelabel import ConformalLabelSets, LogLoss, LpNorm, Mahalanobis, Penalised, choose_weights, corpora
from surelabel.engines.walker import Walker
from surelabel.exceptions import CalibrationWarning, CorpusError

LEVELS = ("0.2", "0.1", "0.05", "0.01")
WORK_LIMIT = 1_000_000
# Texts at the lowest level, where a measure with interactions has sets of tens of thousands.
N_LOWEST = 300


def n_texts_at(level: str, n_texts: int) -> int:
    """Texts that are measured at a level."""
    return min(n_texts, N_LOWEST) if level == LEVELS[-1] else n_texts


def calibrated(data: Measured, measure: Any, min_labels: int = 1, work_limit: int = WORK_LIMIT) -> ConformalLabelSets:
    predictor = ConformalLabelSets(measure, min_labels, data.max_labels, n_jobs=1, work_limit=work_limit)
    return predictor.calibrate(data.calibration, data.calibration_labels)


def nodes(data: Measured, measure: Any, n_texts: int, work_limit: int) -> list[dict[str, Any]]:
    """Nodes of the tree and time per text, at several levels."""
    predictor = calibrated(data, measure, work_limit=work_limit)
    predictor.predict_set(data.test[:1], significance="0.2").size_bounds()
    rows = []
    for level in LEVELS:
        texts = data.test[: n_texts_at(level, n_texts)]
        sets = predictor.predict_set(texts, significance=level)
        walker = Walker(predictor.bind(texts))
        start = time.process_time()
        walked = [walker.count(i, float(sets.thresholds[i]), work_limit) for i in range(len(sets))]
        seconds = time.process_time() - start
        work = np.array([one.work for one in walked])
        found = np.array([one.n_members for one in walked])
        complete = np.array([one.complete for one in walked])
        rows.append(
            {
                "source": data.source,
                "n_labels": data.test.shape[1],
                "measure": repr(measure),
                "significance": level,
                "texts": len(sets),
                "nodes_mean": float(work.mean()),
                "nodes_median": float(np.median(work)),
                "size_bounds_of_first_10": [bounds.tolist() for bounds in sets[:10].size_bounds()],
                "members_mean": float(found[complete].mean()) if complete.any() else None,
                "nodes_a_member": float(work[complete].sum() / max(1, found[complete].sum())),
                "given_up": int((~complete).sum()),
                "work_limit": work_limit,
                "milliseconds_a_text": 1e3 * seconds / len(sets),
            }
        )
        print({key: value for key, value in rows[-1].items() if key != "source"}, flush=True)
    start = time.process_time()
    predictor.predict(data.test[:n_texts])
    forced = 1e3 * (time.process_time() - start) / min(n_texts, len(data.test))
    print(f"forced prediction: {forced:.3f} ms per text", flush=True)
    rows.append({"source": data.source, "measure": repr(measure), "forced_milliseconds_a_text": forced})
    return rows


def sizes(data: Measured, measures: dict[str, Any], n_texts: int) -> list[dict[str, Any]]:
    """Sizes and errors of several measures on the same probabilities."""
    rows = []
    for name, measure in measures.items():
        predictor = calibrated(data, measure)
        for level in LEVELS:
            used = n_texts_at(level, n_texts)
            sets = predictor.predict_set(data.test[:used], significance=level)
            lower, upper = (np.array(bounds, dtype=float) for bounds in sets.size_bounds())
            rows.append(
                {
                    "source": data.source,
                    "measure": name,
                    "significance": level,
                    "texts": len(sets),
                    "mean_size": [float(lower.mean()), float(upper.mean())],
                    "median_size": [float(np.median(lower)), float(np.median(upper))],
                    "inexact": int((lower != upper).sum()),
                    "error": float(1.0 - sets.contains(data.test_labels[:used]).mean()),
                }
            )
            print({key: value for key, value in rows[-1].items() if key != "source"}, flush=True)
    return rows


def against_mulaconf(data: Measured, n_labels: int = 20, n_rival: int = 10) -> dict[str, Any]:
    """Prediction sets of a few texts by MuLaConf, which lists 2^d label-sets per text, and of all by us."""
    part = data.reduced(n_labels)
    rival = InductiveConformalPredictor(part.validation, part.validation_labels.astype(int), measure="mahalanobis")
    rival.calibrate(part.calibration, part.calibration_labels.astype(int))
    start = time.process_time()
    result = rival.predict(part.test[:n_rival])
    theirs = (np.asarray(result.p_values) > 0.05).sum(axis=1)
    rival_seconds = (time.process_time() - start) / n_rival
    predictor = calibrated(part, Mahalanobis().fit(part.validation, part.validation_labels), min_labels=0)
    predictor = predictor.set_params(max_labels=None).calibrate(part.calibration, part.calibration_labels)
    predictor.predict_set(part.test[:2], significance="0.05").sizes()
    start = time.process_time()
    ours = predictor.predict_set(part.test, significance="0.05").sizes()
    seconds = (time.process_time() - start) / len(part.test)
    row = {
        "n_labels": n_labels,
        "rival_seconds_a_text": rival_seconds,
        "seconds_a_text": seconds,
        "ratio": rival_seconds / seconds,
        "sizes": [ours[:n_rival].tolist(), theirs.tolist()],
    }
    print(row, flush=True)
    return row


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("results/interactions.json"))
    parser.add_argument("--reuters", help="the official archive, if you have it")
    parser.add_argument("--texts", type=int, default=10**6, help="test texts of each corpus, all by default")
    options = parser.parse_args()
    warnings.simplefilter("ignore", CalibrationWarning)
    data = measured(options.reuters)
    mahalanobis = Mahalanobis().fit(data.validation, data.validation_labels)
    start = time.process_time()
    chosen = choose_weights(
        LogLoss(), data.train_labels, data.validation, data.validation_labels, max_labels=data.max_labels
    )
    chosen_seconds = time.process_time() - start
    print(
        f"weights {chosen.measure.weights} in {chosen_seconds:.0f} s: {chosen.mean_size_without} -> {chosen.mean_size}"
    )
    result: dict[str, Any] = {
        "settings": {"source": data.source, "command": sys.argv[1:], "work_limit": WORK_LIMIT},
        "against_mulaconf": against_mulaconf(data),
        "chosen": {
            "weights": chosen.measure.weights,
            "mean_size": chosen.mean_size,
            "mean_size_without": chosen.mean_size_without,
            "tried": len(chosen.tried),
            "seconds": chosen_seconds,
        },
        "sizes": sizes(
            data,
            {"L2": LpNorm(2), "LogLoss": LogLoss(), "Mahalanobis": mahalanobis, "Penalised(LogLoss)": chosen.measure},
            options.texts,
        ),
        "nodes": nodes(data, mahalanobis, options.texts, WORK_LIMIT)
        + nodes(data, chosen.measure, options.texts, WORK_LIMIT),
    }
    try:
        czech = measured(None, corpora.load("debian-czech"))
        fitted = Mahalanobis().fit(czech.validation, czech.validation_labels)
        result["nodes"] += nodes(czech, fitted, min(options.texts, N_LOWEST), WORK_LIMIT // 10)
        result["nodes"] += nodes(
            czech, Penalised(LogLoss(), prior=0.3).fit(czech.train_labels), options.texts, WORK_LIMIT // 10
        )
    except CorpusError as error:
        print(f"The Czech corpus is not available: {str(error).splitlines()[0]}")
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
