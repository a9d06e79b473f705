"""A catalogue of very many labels from texts to answers: train, predict, evaluate, add to the calibration.

    python benchmarks/catalogue.py --out results/catalogue.json --page docs/scaling.md

Texts are generated (`corpora.many_labels`); every step is a process of its own, as a user would run it, so that peak
memory is its own too. Seconds are processor time. 1,000 labels go through arrays of all labels, more through lists of
the highest: what all texts times all labels would take stands beside.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from many_label_texts import ManyLabels, generate_many_labels
from many_labels import write_page
from surelabel import load_bundle
from surelabel.corpora import Corpus
from surelabel.exceptions import DataWarning
from surelabel.models import TrainingSettings, train_to_folder

N_LABELS = (1_000, 10_000, 100_000)
SIZES = {"train": 5_000, "calibration": 1_000, "test": 300, "more": 300, "new": 1_000}
LEVEL = "0.1"


def _rows() -> dict[str, np.ndarray]:
    """Return the texts of each part."""
    ends = np.cumsum([0, *SIZES.values()])
    return {name: np.arange(start, end) for name, start, end in zip(SIZES, ends[:-1], ends[1:], strict=True)}


def _corpus(made: ManyLabels) -> Corpus:
    """Return the catalogue with the names of all labels, those without a text too."""
    rows = {name: found for name, found in _rows().items() if name in {"train", "calibration", "test"}}
    n_texts = sum(map(len, rows.values()))
    ids = tuple(map(str, range(n_texts)))
    return Corpus("catalogue", tuple(made.texts[:n_texts]), ids, made.labels[:n_texts], made.label_names, rows)


def _write(path: Path, made: ManyLabels, rows: np.ndarray) -> None:
    """Write texts and labels as a user's file."""
    starts, labels = made.labels.indptr, made.labels.indices
    with path.open("w", encoding="utf-8") as file:
        for row in rows.tolist():
            subjects = [made.label_names[k] for k in labels[starts[row] : starts[row + 1]]]
            file.write(json.dumps({"id": str(row), "text": made.texts[row], "subjects": subjects}) + "\n")


def train(n_labels: int, folder: Path) -> None:
    """Train a model into a folder, in this process, and leave files for the other steps."""
    warnings.simplefilter("ignore", DataWarning)
    made = generate_many_labels(sum(SIZES.values()), n_labels, seed=0)
    for name, rows in _rows().items():
        if name in {"test", "more", "new"}:
            _write(folder / f"{name}.jsonl", made, rows)
    _write(folder / "one.jsonl", made, _rows()["new"][:1])
    # What is compared beside would be measured as often as there are measures.
    train_to_folder(_corpus(made), folder / "model", TrainingSettings(compared={}))


def measured(*arguments: Any) -> dict[str, float]:
    """Run a command in a process of its own; return its seconds and its peak memory."""
    start = time.perf_counter()
    process = subprocess.Popen([sys.executable, *map(str, arguments)], stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    assert status == 0, f"{arguments} ended with {status}"
    return {
        "seconds": usage.ru_utime + usage.ru_stime,
        "wall_seconds": time.perf_counter() - start,
        "peak_mib": usage.ru_maxrss / 1024,
    }


def measure_one(n_labels: int) -> dict[str, Any]:
    """Measure all steps of one number of labels."""
    with tempfile.TemporaryDirectory() as work:
        folder = Path(work)
        model, command = folder / "model", ("-m", "surelabel")
        own = ("--labels", "subjects", "--quiet")
        answers = folder / "answers.jsonl"
        steps = {"train": measured(__file__, "--train", n_labels, "--folder", folder)}
        for step, name in (("predict_one", "one"), ("predict", "new")):
            given = folder / f"{name}.jsonl"
            steps[step] = measured(*command, "predict", model, given, "-s", LEVEL, "--out", answers, "--quiet")
        steps["evaluate"] = measured(*command, "evaluate", model, folder / "test.jsonl", *own)
        steps["add"] = measured(
            *command, "calibrate", model, folder / "more.jsonl", "--add", "--out", folder / "added", *own
        )
        bundle = load_bundle(model)
        assert bundle.evaluation is not None
        point = bundle.evaluation["LogLoss"].at(LEVEL.ljust(4, "0"))
        records = [json.loads(line) for line in answers.read_text(encoding="utf-8").splitlines()]
        size = sum(file.stat().st_size for file in model.rglob("*") if file.is_file())
    return {
        "n_labels": n_labels,
        "listed": bundle.info.listed,
        "steps": steps,
        "error": point.error,
        "median_size": point.sizes.median,
        "more_possible": float(np.mean([record["n_more_open"] > 0 for record in records])),
        "bytes_an_answer": answers_bytes(records),
        "model_mib": size / 2**20,
        "dense_mib": SIZES["train"] * n_labels * 8 / 2**20,
    }


def answers_bytes(records: list[dict[str, Any]]) -> float:
    """Return the mean length of an answer as JSON."""
    return float(np.mean([len(json.dumps(record)) for record in records]))


def as_table(result: dict[str, Any]) -> str:
    """Return the figures as markdown, for `docs/scaling.md`."""
    sizes = result["sizes"]
    head = (
        f"{sizes['train']:,} training, {sizes['calibration']:,} calibration and {sizes['test']:,} test texts; "
        f"{sizes['new']:,} new ones at significance {result['significance']}; LogLoss; processor time of whole "
        "commands, of predict without its start. Texts x labels: one float array of the training texts."
    )
    columns = ("labels", "listed", "train, s", "predict, texts a s", "evaluate, s", f"add {sizes['more']}, s")
    columns += ("peak of train, MiB", "of predict, MiB", "texts x labels, MiB", "error", "an answer, bytes")
    lines = [head, "", f"| {' | '.join(columns)} |", "|" + "---:|" * len(columns)]
    for row in result["rows"]:
        steps = row["steps"]
        rate = (sizes["new"] - 1) / (steps["predict"]["seconds"] - steps["predict_one"]["seconds"])
        cells = [
            f"{row['n_labels']:,}",
            "all" if row["listed"] is None else str(row["listed"]),
            f"{steps['train']['seconds']:.0f}",
            f"{rate:.0f}",
            f"{steps['evaluate']['seconds']:.0f}",
            f"{steps['add']['seconds']:.0f}",
            f"{steps['train']['peak_mib']:.0f}",
            f"{steps['predict']['peak_mib']:.0f}",
            f"{row['dense_mib']:,.0f}",
            f"{row['error']:.3f}",
            f"{row['bytes_an_answer']:,.0f}",
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("results/catalogue.json"))
    parser.add_argument("--page", type=Path, help="page to put the figures on")
    parser.add_argument("--labels", type=int, nargs="*", default=N_LABELS)
    parser.add_argument("--train", type=int, help="train a model of so many labels in this process")
    parser.add_argument("--folder", type=Path)
    options = parser.parse_args()
    if options.train:
        train(options.train, options.folder)
        return
    rows = []
    for n_labels in options.labels:
        rows.append(measure_one(n_labels))
        print(json.dumps(rows[-1]), flush=True)
    result = {"sizes": SIZES, "significance": LEVEL, "rows": rows}
    options.out.write_text(json.dumps(result, indent=1) + "\n")
    if options.page:
        write_page(options.page, "catalogue", as_table(result))


if __name__ == "__main__":
    main()
