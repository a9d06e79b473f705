"""What more cores are worth: the conformal step alone, and the linear model end to end on Dask workers.

    python benchmarks/scaling.py --out results/scaling.json --page docs/scaling.md [--rows 1000000] [--texts 200000]

- conformal: forced predictions, confidence, credibility and sizes of prediction sets (significance 0.05), rows of 90
  probabilities, on one thread and on two, block by block in turns;
- steps: processor time per text of classifier, conformal step with answers, and writing, on one thread;
- end to end: JSONL in, Parquet out, texts of Reuters' test part over and over: the plain `predict` of a file, the data
  set in this process, one Dask worker, two. Two clocks: the whole, with starting processes and loading; and working,
  from the first job to the last.

A cost model, seconds = start + texts * seconds per text / workers, is fitted to a tenth and three tenths of the texts
and held against all of them. It runs on a machine with nothing else to do; ratios of two cores mean little elsewhere.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import os
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from many_labels import write_page
from probabilities import corpus_to_measure
from service_load import served_bundle
from streaming import write_texts
from surelabel import load_bundle, predict_dataset
from surelabel._core.storage import atomic_file
from surelabel.experiments.run import machine, versions
from surelabel.predicting import (
    Answerer,
    AnswerSettings,
    TextBatch,
    TextSource,
    answer_writer,
    predict_file,
)

BLOCK = 250_000
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


def measure_steps(bundle: Any, texts: tuple[str, ...], n_texts: int = 2_000) -> dict[str, float]:
    """Return microseconds of processor time per text, for each step."""
    os.environ["SURELABEL_NUM_THREADS"] = "1"
    some = list(texts[:n_texts])
    found: dict[str, float] = {}

    def timed(name: str, work: Any) -> Any:
        work()
        start = time.process_time()
        made = work()
        found[name] = (time.process_time() - start) / len(some) * 1e6
        return made

    probabilities = timed("linear classifier", lambda: bundle.predict_proba(some))
    settings = AnswerSettings()
    answerer, batch = Answerer(bundle, settings), TextBatch(list(range(1, len(some) + 1)), some)
    records = timed("conformal step and answer", lambda: answerer.records(batch, probabilities))

    def write() -> None:
        with contextlib.closing(answer_writer(io.BytesIO(), "parquet", settings, list(records[0]))) as writer:
            writer.write(records)

    timed("Parquet", write)
    return found


def timed_dataset(model: Path, source: Path, out: Path, n_texts: int, workers: int | None) -> dict[str, float]:
    marks: list[float] = []
    start = time.perf_counter()
    predict_dataset(
        model,
        source,
        out,
        AnswerSettings(partition_bytes=4 * 2**20),
        workers=workers,
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
        tenth = n_texts // 10
        seconds = []
        for times in (1, 3):
            some = write_texts(Path(name) / "some.jsonl", texts, times * tenth)
            seconds.append(timed_dataset(model, some, Path(name) / f"some-{times}", times * tenth, 1)["seconds"])
    a_text = (seconds[1] - seconds[0]) / (2 * tenth)
    found["cost_model"] = {
        "start_seconds": seconds[0] - tenth * a_text,
        "seconds_a_text": a_text,
        "predicted_seconds": seconds[0] + (n_texts - tenth) * a_text,
        "measured_seconds": found["1 worker"]["seconds"],
    }
    found["two_workers_against_one"] = found["1 worker"]["seconds"] / found["2 workers"]["seconds"]
    found["two_workers_against_one_working"] = (
        found["1 worker"]["seconds_working"] / found["2 workers"]["seconds_working"]
    )
    found["two_workers_against_plain"] = found["plain file"]["seconds"] / found["2 workers"]["seconds"]
    return found


def as_tables(results: dict[str, Any]) -> str:
    """Return the figures as text for a page."""
    whole, model = results["end_to_end"], results["end_to_end"]["cost_model"]
    lines = ["| step | microseconds of processor time per text | texts per second per core |", "|---|---:|---:|"]
    steps = {**results["steps"], "all": sum(results["steps"].values())}
    lines += [f"| {name} | {value:,.0f} | {1e6 / value:,.0f} |" for name, value in steps.items()]
    conformal = results["conformal"]
    lines += [
        "",
        (
            "The conformal step without answers (best guesses, confidence, credibility, sizes) on "
            f"{conformal['n_rows']:,} rows of {conformal['n_labels']} probabilities: "
            f"{conformal['rows_a_second']['1']:,.0f} rows per second on one core; two cores are "
            f"{conformal['two_against_one']:.2f} times as fast."
        ),
        "",
        f"| {whole['n_texts']:,} texts, JSONL to Parquet | seconds | texts per second |",
        "|---|---:|---:|",
    ]
    lines += [
        f"| {name} | {whole[name]['seconds']:,.1f} | {whole[name]['texts_a_second']:,.0f} |"
        for name in ("plain file", "this process", "1 worker", "2 workers")
    ]
    lines += [
        "",
        (
            f"Two workers are {whole['two_workers_against_one']:.2f} times as fast as one if starting processes "
            f"counts, and {whole['two_workers_against_one_working']:.2f} times if it does not."
        ),
        "",
        (
            f"Cost model: seconds = {model['start_seconds']:.1f} + texts x {model['seconds_a_text'] * 1e6:,.0f} "
            "microseconds / workers, fitted to a tenth and three tenths of the texts. For all of them it predicts "
            f"{model['predicted_seconds']:,.1f} seconds on one worker; it took {model['measured_seconds']:,.1f}."
        ),
        "",
        "| a billion such texts on | cores | takes |",
        "|---|---:|---:|",
    ]
    for cores in (10, 1_000):
        hours = 1e9 * model["seconds_a_text"] / cores / 3600
        lines.append(f"| {'one machine' if cores == 10 else 'a cluster'} | {cores:,} | {hours:,.1f} hours |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("results/scaling.json"))
    parser.add_argument("--page", type=Path, help="page to put the figures on")
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
    results["steps"] = measure_steps(load_bundle(model), texts)
    print("steps", json.dumps(results["steps"]), flush=True)
    results["end_to_end"] = measure_end_to_end(model, texts, given.texts)
    reached = {
        "conformal": results["conformal"]["two_against_one"],
        "workers": results["end_to_end"]["two_workers_against_one"],
    }
    for what, ratio in reached.items():
        print(f"{what}: two cores against one {ratio:.2f} times (goal {GOALS[what]})")
    with atomic_file(given.out) as temporary:
        temporary.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    if given.page:
        write_page(given.page, "rates", as_tables(results))


if __name__ == "__main__":
    main()
