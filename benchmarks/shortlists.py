"""The linear classifier by shortlists against one regression per label on all texts, and beyond its reach.

    python benchmarks/shortlists.py --out results/shortlists.json

Texts are generated (`many_label_texts`): most labels have a text or two, some test texts have labels that no
training text has. Every measurement is a process of its own; seconds are processor time.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from many_label_texts import generate_many_labels
from many_labels import write_page
from surelabel.exceptions import DataWarning
from surelabel.text import make

N_TEST = 1_000
# (labels, training texts, one regression per label on all texts)
CASES = ((2_000, 6_000, True), (2_000, 6_000, False), (10_000, 10_000, False), (100_000, 20_000, False))


def measure_one(n_labels: int, n_texts: int, every: bool) -> dict[str, Any]:
    """Fit and predict in this process."""
    made = generate_many_labels(n_texts + N_TEST, n_labels, seed=0)
    warnings.simplefilter("ignore", DataWarning)
    make("linear", min_texts=1).fit(made.texts[:50], made.labels[:50])  # compiles kernels
    classifier = make("linear", many_labels=10**9 if every else 1_000)
    start = time.process_time()
    classifier.fit(made.texts[:n_texts], made.labels[:n_texts])
    fitted = time.process_time()
    found = classifier.predict_proba_sparse(made.texts[n_texts:]).matrix
    predicted = time.process_time()
    truth, seen = made.labels[n_texts:], np.asarray(made.labels[:n_texts].sum(axis=0)) > 0
    learnable = truth.multiply(seen[None, :]).tocsr()
    taken = found > 0.5
    return {
        "n_labels": n_labels,
        "n_texts": n_texts,
        "learnt_labels": int(seen.sum()),
        "how": "all texts" if every else "shortlists",
        "fit_seconds": fitted - start,
        "predict_us_a_text": 1e6 * (predicted - fitted) / N_TEST,
        "peak_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        "f1_micro_learnt_labels": float(2 * taken.multiply(learnable).sum() / (taken.sum() + learnable.sum())),
        "listed_of_learnt_labels": float((found > 0).multiply(learnable).sum() / learnable.sum()),
    }


def as_table(rows: list[dict[str, Any]]) -> str:
    """Return the figures as markdown, for `docs/scaling.md`."""
    columns = {
        "labels": "n_labels",
        "with training texts": "learnt_labels",
        "training texts": "n_texts",
        "learnt from": "how",
        "fit, s": "fit_seconds",
        "predict, us per text": "predict_us_a_text",
        "peak, MiB": "peak_mib",
        "F1": "f1_micro_learnt_labels",
        "listed": "listed_of_learnt_labels",
    }

    def written(value: Any) -> str:
        if isinstance(value, str):
            return value
        return f"{value:,}" if isinstance(value, int) else f"{value:.3f}" if value < 1 else f"{value:.0f}"

    lines = [f"| {' | '.join(columns)} |", "|---:|---:|---:|---|---:|---:|---:|---:|---:|"]
    lines += [f"| {' | '.join(written(row[name]) for name in columns.values())} |" for row in rows]
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("results/shortlists.json"))
    parser.add_argument("--page", type=Path, help="page to put the figures on")
    parser.add_argument("--case", type=int, help="measure one case in this process, print JSON")
    options = parser.parse_args()
    if options.case is not None:
        print(json.dumps(measure_one(*CASES[options.case])))
        return
    rows = []
    for case in range(len(CASES)):
        command = [sys.executable, __file__, "--case", str(case)]
        rows.append(json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout))
        print(rows[-1], flush=True)
    options.out.write_text(json.dumps({"test_texts": N_TEST, "rows": rows}, indent=1) + "\n")
    if options.page:
        write_page(options.page, "shortlists", as_table(rows))


if __name__ == "__main__":
    main()
