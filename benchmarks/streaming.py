"""Prediction on one machine: memory against the size of the input, and what overlapping steps are worth.

    python benchmarks/streaming.py --out results/streaming.json [--reuters PATH] [--texts 2000]

- memory: `surelabel predict` in a process of its own on 1, 10 and 100 times as many texts, JSONL in, Parquet out; its
  peak resident memory must not grow by more than a fifth;
- overlap: the same texts with the classifier ahead of the conformal step (as `predict_file` does it), and one batch
  after the other, in turns.

The texts are those of Reuters' test part, over and over.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from probabilities import corpus_to_measure
from service_load import served_bundle
from surelabel import load_bundle
from surelabel._core.storage import atomic_file
from surelabel.experiments.run import machine, versions
from surelabel.predicting import Answerer, AnswerSettings, TextSource, predict_file
from surelabel.predicting.files import PartialFile

FACTORS = (1, 10, 100)
GOAL = 1.2
TURNS = 3


def write_texts(path: Path, texts: tuple[str, ...], n_texts: int) -> Path:
    """Write texts over and over as JSONL."""
    with path.open("w", encoding="utf-8") as file:
        for number, text in enumerate(itertools.islice(itertools.cycle(texts), n_texts)):
            file.write(json.dumps({"id": number, "text": text}) + "\n")
    return path


def measure_memory(model: Path, texts: Path, target: Path) -> dict[str, float]:
    """Run the command in a process of its own; return its peak memory and times."""
    command = [sys.executable, "-m", "surelabel", "predict", str(model), str(texts), "--out", str(target), "--quiet"]
    start = time.perf_counter()
    process = subprocess.Popen(command)
    _, status, used = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - start
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        sys.exit(f"predict failed with {process.returncode}")
    return {
        "input_bytes": texts.stat().st_size,
        "peak_resident_mb": used.ru_maxrss / 1024,
        "seconds": seconds,
        "processor_seconds": used.ru_utime + used.ru_stime,
        "cores_busy": (used.ru_utime + used.ru_stime) / seconds,
    }


def one_after_the_other(bundle: Any, source: TextSource, target: Path) -> None:
    """Do what predict_file does, without overlapping."""
    settings = AnswerSettings()
    answerer = Answerer(bundle, settings)
    with PartialFile(target.with_suffix(".part"), {}, resume=False) as partial:
        for batch in source.batches(settings.batch_size):
            partial.write(batch, answerer.answer(batch))
        with atomic_file(target) as temporary, temporary.open("wb") as stream:
            partial.deliver(stream, "jsonl", settings)


def measure_overlap(model: Path, texts: Path, folder: Path) -> dict[str, float]:
    bundle = load_bundle(model)
    seconds: dict[str, list[float]] = {"overlapping": [], "one after the other": []}
    predict_file(bundle, TextSource(texts), folder / "warm.jsonl")
    for _ in range(TURNS):
        start = time.perf_counter()
        predict_file(bundle, TextSource(texts), folder / "a.jsonl")
        seconds["overlapping"].append(time.perf_counter() - start)
        start = time.perf_counter()
        one_after_the_other(bundle, TextSource(texts), folder / "b.jsonl")
        seconds["one after the other"].append(time.perf_counter() - start)
        assert (folder / "a.jsonl").read_bytes() == (folder / "b.jsonl").read_bytes()
    found = {name: statistics.median(values) for name, values in seconds.items()}
    return {**found, "times_faster": found["one after the other"] / found["overlapping"]}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("results/streaming.json"))
    parser.add_argument("--reuters")
    parser.add_argument("--texts", type=int, default=2_000, help="of the smallest input")
    given = parser.parse_args()
    corpus = corpus_to_measure(given.reuters)
    model = served_bundle(corpus)
    results: dict[str, Any] = {"machine": machine(), "versions": versions(), "memory": []}
    with tempfile.TemporaryDirectory() as name:
        for factor in FACTORS:
            n_texts = given.texts * factor
            texts = write_texts(Path(name) / "texts.jsonl", corpus.part("test").texts, n_texts)
            found = {"n_texts": n_texts, **measure_memory(model, texts, Path(name) / "answers.parquet")}
            results["memory"].append(found)
            print(json.dumps(found), flush=True)
            if factor == FACTORS[0]:
                results["overlap"] = measure_overlap(model, texts, Path(name))
                print(json.dumps(results["overlap"]), flush=True)
    peaks = [each["peak_resident_mb"] for each in results["memory"]]
    results["growth"] = max(peaks) / peaks[0]
    print(f"peak memory of the largest input against the smallest: {results['growth']:.3f} times")
    with atomic_file(given.out) as temporary:
        temporary.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    sys.exit(results["growth"] > GOAL)


if __name__ == "__main__":
    main()
