"""What more cores are worth: the conformal step alone, and the linear model end to end on Dask workers.

    python benchmarks/scaling.py --out results/scaling.json [--reuters PATH] [--rows 1000000] [--texts 200000]

- conformal: forced predictions, confidence, credibility and sizes of prediction sets (significance 0.05), rows of 90
  probabilities, on one thread and on two, block by block in turns;
- end to end: JSONL in, Parquet out, texts of Reuters' test part over and over: the plain `predict` of a file, the data
  set in this process, one Dask worker, two. Two clocks: the whole, with starting processes and loading; and working,
  from the first job to the last.

It runs on a machine with nothing else to do; ratios of two cores mean little elsewhere.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from probabilities import corpus_to_measure
from service_load import served_bundle
from streaming import write_texts
from surelabel import load_bundle, predict_dataset
from surelabel._storage import atomic_file
from surelabel.experiments.run import machine, versions
from surelabel.streams import TextSource, predict_file

BLOCK = 50_000
GOALS = {"conformal": 1.8, "workers": 1.6}


def measure_conformal(bundle: Any, texts: tuple[str, ...], n_rows: int) -> dict[str, Any]:
    predictor, known = bundle.predictor, bundle.predict_proba(texts)
    predictor.predict(known)
    predictor.predict_set(known, significance="0.05").size_bounds()
    rng = np.random.default_rng(0)
    seconds = {1: 0.0, 2: 0.0}
    processor = {1: 0.0, 2: 0.0}
    for start in range(0, n_rows, BLOCK):
        rows = known[rng.integers(0, len(known), min(BLOCK, n_rows - start))]
        rows = np.clip(rows * rng.uniform(0.98, 1.02, rows.shape), 0, 1)
        order = (1, 2) if start // BLOCK % 2 else (2, 1)
        for n_threads in order:
            os.environ["SURELABEL_NUM_THREADS"] = str(n_threads)
            begun, used = time.perf_counter(), time.process_time()
            predictor.predict(rows)
            predictor.predict_set(rows, significance="0.05").size_bounds()
            seconds[n_threads] += time.perf_counter() - begun
            processor[n_threads] += time.process_time() - used
    return {
        "n_rows": n_rows,
        "n_labels": known.shape[1],
        "rows_a_second": {str(n): n_rows / seconds[n] for n in seconds},
        "rows_a_processor_second": {str(n): n_rows / processor[n] for n in processor},
        "two_against_one": seconds[1] / seconds[2],
    }


def timed_dataset(model: Path, source: Path, out: Path, n_texts: int, workers: int | None) -> dict[str, float]:
    marks: list[float] = []
    start = time.perf_counter()
    predict_dataset(
        model,
        source,
        out,
        workers=workers,
        partition_bytes=4 * 2**20,
        advance=lambda *_: marks.append(time.perf_counter()),
    )
    seconds = time.perf_counter() - start
    working = marks[-1] - marks[0]
    return {
        "seconds": seconds,
        "seconds_working": working,
        "texts_a_second": n_texts / seconds,
        "texts_a_second_working": n_texts / working,
    }


def measure_end_to_end(model: Path, texts: tuple[str, ...], n_texts: int) -> dict[str, Any]:
    found: dict[str, Any] = {"n_texts": n_texts}
    os.environ["SURELABEL_NUM_THREADS"] = "1"
    with tempfile.TemporaryDirectory() as name:
        source = write_texts(Path(name) / "texts.jsonl", texts, n_texts)
        found["input_bytes"] = source.stat().st_size
        start = time.perf_counter()
        predict_file(load_bundle(model), TextSource(source), Path(name) / "plain.parquet")
        seconds = time.perf_counter() - start
        found["plain file"] = {"seconds": seconds, "texts_a_second": n_texts / seconds}
        print("plain file", json.dumps(found["plain file"]), flush=True)
        for label, workers in (("this process", None), ("1 worker", 1), ("2 workers", 2)):
            found[label] = timed_dataset(model, source, Path(name) / label.replace(" ", "-"), n_texts, workers)
            print(label, json.dumps(found[label]), flush=True)
    found["two_workers_against_one"] = found["1 worker"]["seconds"] / found["2 workers"]["seconds"]
    found["two_workers_against_one_working"] = (
        found["1 worker"]["seconds_working"] / found["2 workers"]["seconds_working"]
    )
    found["two_workers_against_plain"] = found["plain file"]["seconds"] / found["2 workers"]["seconds"]
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("results/scaling.json"))
    parser.add_argument("--reuters")
    parser.add_argument("--rows", type=int, default=1_000_000, help="of the conformal step alone")
    parser.add_argument("--texts", type=int, default=200_000, help="end to end")
    given = parser.parse_args()
    corpus = corpus_to_measure(given.reuters)
    model = served_bundle(corpus)
    texts = corpus.part("test").texts
    results: dict[str, Any] = {"machine": machine(), "versions": versions(), "goals": GOALS}
    results["conformal"] = measure_conformal(load_bundle(model), texts, given.rows)
    print("conformal", json.dumps(results["conformal"]), flush=True)
    results["end_to_end"] = measure_end_to_end(model, texts, given.texts)
    reached = {
        "conformal": results["conformal"]["two_against_one"],
        "workers": results["end_to_end"]["two_workers_against_one"],
    }
    for what, ratio in reached.items():
        print(f"{what}: two cores against one {ratio:.2f} times (goal {GOALS[what]})")
    with atomic_file(given.out) as temporary:
        temporary.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
