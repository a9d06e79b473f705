"""EURLEX57K with its own parts: 4,271 labels, from `surelabel train` to answers, beside omikuji alone.

    python benchmarks/eurlex.py --data eurlex57k.jsonl.xz --folder WORK --out results/eurlex.json

The file's "train" part trains, "dev" is divided at random into filing and calibration, "test" measures. Every step is
a process of its own with its processor time and peak memory. The single threshold for micro-F1 is chosen on all dev
texts. For omikuji alone: TF-IDF of scikit-learn, omikuji's own settings, its raw scores, the same parts and rule.
"""

from __future__ import annotations

import argparse
import json
import lzma
import os
import re
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

COLUMNS = ["--text", "title", "--text", "text"]
BEST = 5


def run(command: list[str]) -> tuple[str, dict[str, Any]]:
    """Run a command; return its output, and its figures."""
    started, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
    with tempfile.TemporaryFile("w+") as out:
        child = subprocess.Popen(command, stdout=out)
        peak = _watch_memory(child)
        out.seek(0)
        printed = out.read()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if child.returncode != 0:
        raise SystemExit(f"{' '.join(command)} ended with {child.returncode}")
    return printed, {
        "processor_seconds": round(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, 1),
        "seconds": round(time.perf_counter() - started, 1),
        "peak_gib": round(peak / 2**30, 2),
    }


def _watch_memory(child: subprocess.Popen[bytes]) -> int:
    """Return the largest sum of resident memory of a process and its descendants, until it ends."""
    peak = 0
    while child.poll() is None:
        peak = max(peak, sum(map(_resident, _family(child.pid))))
        time.sleep(0.2)
    return peak


def _family(pid: int) -> list[int]:
    found = [pid]
    for own in found:
        try:
            found += [int(one) for one in Path(f"/proc/{own}/task/{own}/children").read_text().split()]
        except OSError:
            continue
    return found


def _resident(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, IndexError):
        return 0


def texts_of(path: Path, part: str) -> tuple[list[str], list[list[str]]]:
    """Return texts and label-sets of a part, the title in front as `surelabel` reads it."""
    with lzma.open(path, "rt", encoding="utf-8") as file:
        rows = [row for row in map(json.loads, file) if row["part"] == part]
    return [f"{row['title']}\n{row['text']}" for row in rows], [row["labels"] for row in rows]


def ranked_figures(scores: dict[str, Any], truth: dict[str, Any]) -> dict[str, Any]:
    """Return micro-F1 by one threshold from dev scores, precision at 5, and recall at 100; dense or CSR matrices."""
    threshold, dev_f1 = best_threshold(scores["dev"], truth["dev"])
    taken = (scores["test"] >= threshold).astype(np.int64) if threshold > 0 else None
    hits = taken.multiply(truth["test"]).sum()
    order_hits, listed = [], 0
    matrix, labels = scores["test"].tocsr(), truth["test"].tocsr()
    for row in range(matrix.shape[0]):
        own = slice(matrix.indptr[row], matrix.indptr[row + 1])
        first = matrix.indices[own][np.argsort(-matrix.data[own], kind="stable")]
        true = set(labels.indices[labels.indptr[row] : labels.indptr[row + 1]].tolist())
        order_hits.append(len(true & set(first[:BEST].tolist())) / BEST)
        listed += len(true & set(first.tolist()))
    return {
        "threshold": float(threshold),
        "f1_micro_dev": dev_f1,
        "f1_micro_test": float(2 * hits / (taken.sum() + truth["test"].sum())),
        "precision_at_5": float(np.mean(order_hits)),
        "recall_of_lists": float(listed / truth["test"].sum()),
    }


def best_threshold(scores: Any, truth: Any) -> tuple[float, float]:
    """Return the threshold with the highest micro-F1, and that F1."""
    matrix = scores.tocoo()
    hits = np.asarray(truth.tocsr()[matrix.row, matrix.col]).ravel().astype(np.int64)
    order = np.argsort(-matrix.data, kind="stable")
    f1 = 2 * np.cumsum(hits[order]) / (np.arange(1, len(order) + 1) + truth.sum())
    place = int(np.argmax(f1))
    return float(matrix.data[order[place]]), float(f1[place])


def label_matrix(label_sets: list[list[str]], place: dict[str, int]) -> Any:
    """Return labels as CSR; those without a place get columns at the end, so that they count as missed."""
    import scipy.sparse

    places = dict(place)
    columns = [places.setdefault(name, len(places)) for own in label_sets for name in own]
    ends = np.cumsum([0, *map(len, label_sets)])
    return scipy.sparse.csr_array((np.ones(len(columns), np.int64), columns, ends), shape=(len(label_sets), 6_000))


def figures_of_model(folder: Path, data: Path) -> dict[str, Any]:
    """Return figures of a saved model's probabilities on dev and test texts."""
    import scipy.sparse

    from surelabel import load_bundle

    bundle = load_bundle(folder)
    place = {name: k for k, name in enumerate(bundle.label_names)}
    scores, truth = {}, {}
    for part in ("dev", "test"):
        texts, label_sets = texts_of(data, part)
        listed = scipy.sparse.coo_array(bundle.predict_proba(texts).tocsr())
        shape = (len(texts), 6_000)
        scores[part] = scipy.sparse.csr_array((listed.data, (listed.row, listed.col)), shape=shape)
        truth[part] = label_matrix(label_sets, place)
    return ranked_figures(scores, truth)


def omikuji_alone(data: Path) -> dict[str, Any]:
    """Fit omikuji with its own settings on TF-IDF of scikit-learn, and return its figures."""
    import omikuji
    import scipy.sparse
    from sklearn.datasets import dump_svmlight_file
    from sklearn.feature_extraction.text import TfidfVectorizer

    texts, label_sets = texts_of(data, "train")
    place = {name: k for k, name in enumerate(sorted({name for own in label_sets for name in own}))}
    words = TfidfVectorizer(sublinear_tf=True, min_df=2, max_features=200_000, dtype=np.float32)
    features = words.fit_transform(texts)
    labels = label_matrix(label_sets, place)[:, : len(place)]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "train.txt"
        with path.open("wb") as file:
            file.write(f"{features.shape[0]} {features.shape[1]} {labels.shape[1]}\n".encode())
            dump_svmlight_file(features, labels, file, multilabel=True)
        model = omikuji.Model.train_on_data(str(path), omikuji.Model.default_hyper_param(), 2)
    scores, truth = {}, {}
    for part in ("dev", "test"):
        own, label_sets = texts_of(data, part)
        matrix = words.transform(own).tocsr()
        found: list[tuple[int, int, float]] = []
        for row, (start, end) in enumerate(zip(matrix.indptr[:-1], matrix.indptr[1:], strict=True)):
            pairs = list(zip(matrix.indices[start:end].tolist(), matrix.data[start:end].tolist(), strict=True))
            found += [(row, label, score) for label, score in model.predict(pairs, 10, 100)]
        rows, columns, values = map(np.array, zip(*found, strict=True))
        scores[part] = scipy.sparse.csr_array((values, (rows, columns)), shape=(len(own), 6_000))
        truth[part] = label_matrix(label_sets, place)
    return ranked_figures(scores, truth)


def measure(data: Path, folder: Path, seed: int, settings: list[str]) -> dict[str, Any]:
    """Train, evaluate and predict on the command line, and return all figures."""
    python, model = sys.executable, folder / f"model-{seed}"
    here = [python, str(Path(__file__).resolve()), "--data", str(data)]
    steps: dict[str, Any] = {}
    command = [python, "-m", "surelabel", "train", str(data), *COLUMNS, "--split-column", "part", "--out", str(model)]
    command += ["--classifier", "omikuji", "--seed", str(seed)]
    command += [part for setting in settings for part in ("--setting", setting)]
    lines, steps["train"] = run(command)
    test = folder / "test.jsonl"
    with lzma.open(data, "rt", encoding="utf-8") as file, test.open("w", encoding="utf-8") as out:
        out.writelines(line for line in file if json.loads(line)["part"] == "test")
    evaluate = [python, "-m", "surelabel", "evaluate", str(model), str(test), *COLUMNS, "--json"]
    evaluated, steps["evaluate"] = run(evaluate)
    answers = folder / "answers.jsonl"
    predict = [python, "-m", "surelabel", "predict", str(model), str(test), *COLUMNS, "--out", str(answers)]
    _, steps["predict"] = run(predict)
    printed, _ = run([*here, "--model", str(model)])
    shown = json.loads(evaluated)
    return {
        "seed": seed,
        "settings": settings,
        "printed": lines.splitlines(),
        "steps": steps,
        "model": json.loads(printed.splitlines()[-1]),
        **{name: shown[name] for name in ("n_texts", "n_unknown", "left_out", "errors", "errors_filed", "errors_seen")},
        "decisions": shown["decisions"],
        "ranks": shown["ranks"],
        "model_mib": round(sum(file.stat().st_size for file in model.rglob("*") if file.is_file()) / 2**20, 1),
        "n_answers": sum(1 for _ in answers.open(encoding="utf-8")),
    }


def main() -> None:
    """Measure all seeds, or one step in this process."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--setting", action="append", default=[])
    parser.add_argument("--model", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--alone", action="store_true", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.model is not None:
        print(json.dumps(figures_of_model(asked.model, asked.data)))
        return
    if asked.alone:
        print(json.dumps(omikuji_alone(asked.data)))
        return
    from surelabel.models.train import versions

    asked.folder.mkdir(parents=True, exist_ok=True)
    document: dict[str, Any] = {"command": re.sub(r"/\S+/", "", " ".join(sys.argv)), "versions": versions(), "runs": []}
    for seed in range(asked.seeds):
        document["runs"].append(measure(asked.data, asked.folder, seed, asked.setting))
        asked.out.write_text(json.dumps(document, indent=1) + "\n")
    printed, steps = run([sys.executable, str(Path(__file__).resolve()), "--data", str(asked.data), "--alone"])
    document["omikuji_alone"] = {**json.loads(printed.splitlines()[-1]), "steps": steps}
    asked.out.write_text(json.dumps(document, indent=1) + "\n")


if __name__ == "__main__":
    main()
