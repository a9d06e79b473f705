"""Very many labels: time and peak memory of every step from 1,000 to 1,000,000 labels, 50 of them listed per text.

    python benchmarks/many_labels.py --out results/many_labels.json

Every measurement is a process of its own, so that peak memory is its own too. The rival is the dense engine on the same
texts with 1,000 labels; its answers must be the same, to the last bit.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import platform
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse

from surelabel import ConformalLabelSets, LogLoss, LpNorm

MEASURES = {"L2": LpNorm(2), "LogLoss": LogLoss()}
N_LABELS = (1_000, 10_000, 100_000, 1_000_000)
LISTED = 50
MAX_LABELS = 15
LEVEL = "0.05"
RUNS = 3


def texts(n_texts: int, n_labels: int, seed: int) -> tuple[Any, Any]:
    """Sparse probabilities and labels: listed labels are true as often as they claim, one text in fifty has another.

    Values do not depend on the number of labels, only their columns do.
    """
    values = np.random.default_rng(seed)
    places = np.random.default_rng(seed + 1)
    probabilities = np.sort(values.beta(0.08, 1.2, size=(n_texts, LISTED)), axis=1)
    is_true = values.random((n_texts, LISTED)) < probabilities
    is_true[~is_true.any(axis=1), -1] = True
    another = values.random(n_texts) < 0.02
    columns = np.array([np.sort(places.choice(n_labels, LISTED + 1, replace=False)) for _ in range(n_texts)])
    spare = places.integers(0, LISTED + 1, n_texts)
    listed = np.ones((n_texts, LISTED + 1), dtype=bool)
    listed[np.arange(n_texts), spare] = False
    starts = np.arange(n_texts + 1) * LISTED
    matrix = scipy.sparse.csr_array((probabilities.ravel(), columns[listed], starts), shape=(n_texts, n_labels))
    rows = np.concatenate([np.nonzero(is_true)[0], np.flatnonzero(another)])
    true_columns = np.concatenate([columns[listed].reshape(n_texts, LISTED)[is_true], columns[another, spare[another]]])
    labels = scipy.sparse.csr_array((np.ones(len(rows), dtype=bool), (rows, true_columns)), shape=matrix.shape)
    return matrix, labels


def peak_mib() -> float:
    """Highest resident memory of this process so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def best_of(runs: int, work: Callable[[], Any]) -> tuple[float, Any]:
    """Shortest processor time of several runs on one thread, and what the last one gave.

    Other work on the machine does not count in it.
    """
    seconds = []
    for _ in range(runs):
        start = time.process_time()
        result = work()
        seconds.append(time.process_time() - start)
    return min(seconds), result


def digest(*parts: Any) -> str:
    """One short string for all answers."""
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:16]


def _steps(predictor: Any, calibration: Any, test: Any, dense: bool) -> dict[str, Callable[[], Any]]:
    """Return what is timed, by name."""
    probabilities, labels = (part.toarray() for part in test) if dense else test

    def cut() -> Any:
        return predictor.predict_set(probabilities, significance=LEVEL)

    return {
        "calibrate": lambda: predictor.calibrate(*calibration).calibration_.totals,
        "sizes": lambda: cut().sizes(),
        "forced": lambda: predictor.predict(probabilities),
        "p_values": lambda: predictor.predict_p(probabilities, labels),
        "top_5": lambda: [one.top(5) for one in cut()],
    }


def measure_one(name: str, n_labels: int, n_texts: int, dense: bool) -> dict[str, Any]:
    """Time every step in this process."""
    predictor = ConformalLabelSets(MEASURES[name], max_labels=MAX_LABELS, n_jobs=1)
    small = texts(60, 200, seed=5)
    for work in _steps(predictor, [part.toarray() for part in small] if dense else small, small, dense).values():
        work()
    baseline = peak_mib()
    calibration, test = texts(2_000, n_labels, seed=1), texts(n_texts, n_labels, seed=3)
    if dense:
        calibration = tuple(part.toarray() for part in calibration)
    seconds, answers = {}, {}
    for step, work in _steps(predictor, calibration, test, dense).items():
        seconds[step], answers[step] = best_of(RUNS, work)
    forced = answers["forced"]
    return {
        "measure": name,
        "n_labels": n_labels,
        "form": "dense" if dense else "sparse",
        "seconds": seconds,
        "peak_mib": peak_mib(),
        "baseline_mib": baseline,
        "median_size": float(np.median(answers["sizes"].astype(float))),
        "digest": digest(
            answers["calibrate"].tolist(),
            answers["sizes"].tolist(),
            [sorted(label_set) for label_set in forced.label_sets],
            forced.confidence.tolist(),
            forced.credibility.tolist(),
            answers["p_values"].tolist(),
            [[(sorted(label_set), p) for label_set, p in best] for best in answers["top_5"]],
        ),
    }


def in_a_process(name: str, n_labels: int, n_texts: int, dense: bool) -> dict[str, Any]:
    """Measure in a process of its own."""
    command = [sys.executable, __file__, "--one", name, "--labels", str(n_labels), "--texts", str(n_texts)]
    done = subprocess.run([*command, *(["--dense"] if dense else [])], check=True, capture_output=True, text=True)
    row: dict[str, Any] = json.loads(done.stdout)
    times = ", ".join(f"{step} {1e6 * value / n_texts:.1f}" for step, value in row["seconds"].items())
    print(
        f"{name:8s} {row['form']:6s} d={n_labels:<9,} us per text: {times}; peak {row['peak_mib']:.0f} MiB", flush=True
    )
    return row


def summary(name: str, rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Largest over smallest of each figure over numbers of labels, and the dense engine beside it."""
    sparse = [row for row in rows if row["measure"] == name and row["form"] == "sparse"]
    dense = next(row for row in rows if row["measure"] == name and row["form"] == "dense")
    first = sparse[0]
    assert first["digest"] == dense["digest"], f"{name}: dense and sparse answers differ"
    steps = {step: [row["seconds"][step] for row in sparse] for step in first["seconds"]}
    return {
        "measure": name,
        "largest_over_smallest": {
            **{step: max(values) / min(values) for step, values in steps.items()},
            "all_steps": max(sums := [sum(row["seconds"].values()) for row in sparse]) / min(sums),
            "peak_memory": max(row["peak_mib"] for row in sparse) / min(row["peak_mib"] for row in sparse),
        },
        "dense_over_sparse": {step: dense["seconds"][step] / first["seconds"][step] for step in steps},
        "equal_to_dense_at": first["n_labels"],
    }


def as_table(result: dict[str, Any]) -> str:
    """Return the figures as markdown, for `docs/scaling.md`."""
    settings = result["settings"]
    steps = list(result["rows"][0]["seconds"])
    head = (
        f"{settings['texts']:,} texts with {settings['listed']} listed labels, {settings['calibration_texts']:,} for "
        f"calibration, max_labels = {settings['max_labels']}, significance {settings['significance']}, one thread; "
        f"microseconds of processor time per text (calibrate: per calibration text), best of {settings['runs']} runs. "
        "Sparse and dense answers at 1,000 labels are the same, to the last bit."
    )
    names = " | ".join(step.replace("_", " ") for step in steps)
    lines = ["### Measured", "", head, "", f"| measure | labels | form | {names} | peak memory, MiB |"]
    lines.append(f"|---|---:|---|{'---:|' * (len(steps) + 1)}")
    for row in result["rows"]:
        texts = {step: settings["calibration_texts" if step == "calibrate" else "texts"] for step in steps}
        times = " | ".join(f"{1e6 * row['seconds'][step] / texts[step]:.1f}" for step in steps)
        lines.append(f"| {row['measure']} | {row['n_labels']:,} | {row['form']} | {times} | {row['peak_mib']:.0f} |")
    for each in result["summary"]:
        flat = each["largest_over_smallest"]
        ratios = f"{flat['all_steps']:.2f} in time over all steps, {flat['peak_memory']:.2f} in peak memory"
        lines += ["", f"{each['measure']}, from 1,000 to 1,000,000 labels: largest over smallest {ratios}."]
    return "\n".join(lines)


def write_page(page: Path, name: str, table: str) -> None:
    """Put a table between its marks on a page."""
    before, rest = page.read_text(encoding="utf-8").split(f"<!-- {name}:", 1)
    mark, after = rest.split("-->", 1)[0], rest.split(f"<!-- /{name} -->", 1)[1]
    page.write_text(f"{before}<!-- {name}:{mark}-->\n{table}\n<!-- /{name} -->{after}", encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("results/many_labels.json"))
    parser.add_argument("--page", type=Path, help="page to put the figures on")
    parser.add_argument("--texts", type=int, default=10_000)
    parser.add_argument("--one", choices=list(MEASURES), help="measure in this process, print JSON")
    parser.add_argument("--labels", type=int, default=N_LABELS[0])
    parser.add_argument("--dense", action="store_true")
    options = parser.parse_args()
    if options.one:
        print(json.dumps(measure_one(options.one, options.labels, options.texts, options.dense)))
        return
    rows = []
    for dense in (True, False):
        in_a_process("L2", N_LABELS[0], 100, dense)  # compiles kernels, for memory that is not the compiler's
    for name in MEASURES:
        rows.append(in_a_process(name, N_LABELS[0], options.texts, dense=True))
        rows += [in_a_process(name, n_labels, options.texts, dense=False) for n_labels in N_LABELS]
    result = {
        "settings": {
            "texts": options.texts,
            "calibration_texts": 2_000,
            "listed": LISTED,
            "max_labels": MAX_LABELS,
            "significance": LEVEL,
            "runs": RUNS,
            "threads": 1,
            "machine": platform.machine(),
        },
        "rows": rows,
        "summary": [summary(name, rows) for name in MEASURES],
    }
    options.out.write_text(json.dumps(result, indent=1) + "\n")
    if options.page:
        write_page(options.page, "many-labels", as_table(result))


if __name__ == "__main__":
    main()
