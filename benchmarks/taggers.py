"""Taggers that Surelabel did not train, made safe: promises of lists and filing over five random divisions.

    python benchmarks/taggers.py --folder WORK --out results/taggers.json [--arxiv arxiv2025.jsonl.gz]

Two taggers of scikit-learn, on texts that they have not seen: logistic regression on Reuters-21578 (learns the ModApte
training part, scores its test part), and stochastic gradient descent on arXiv abstracts (learns 20,000, scores 6,000).
The scores are written to a file as they are. `surelabel train FILE --scores scores` divides it at random
with each seed, and `surelabel evaluate FILE --scores scores --json` measures on the texts that are left for tests.
The second one writes only scores of 0.01 and more, as a tagger that does not list every label. Divisions that are in
the output already are kept.
"""

from __future__ import annotations

import argparse
import gzip
import json
import re
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

LEVELS = {"wrong": 0.05, "missed": 0.1}
N_LEARNT, N_SCORED = 20_000, 6_000


def write_scores(
    path: Path, texts: Sequence[str], label_sets: Any, names: Sequence[str], scores: Any, least: float
) -> None:
    """Write texts with their labels and a tagger's scores of at least `least`."""
    with path.open("w", encoding="utf-8") as file:
        for number, (text, labels, row) in enumerate(zip(texts, label_sets, scores, strict=True)):
            listed = {names[k]: round(float(row[k]), 6) for k in np.flatnonzero(row >= least)}
            record = {"id": str(number), "text": text, "labels": sorted(labels), "scores": listed}
            file.write(json.dumps(record) + "\n")


def reuters(path: Path) -> None:
    """Score Reuters' test part by logistic regression on its training part."""
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.multiclass import OneVsRestClassifier

    from surelabel import corpora

    corpus = corpora.load("reuters")
    seen = np.array([name != "test" for name in part_names(corpus)])
    words = TfidfVectorizer(sublinear_tf=True, min_df=2)
    model = OneVsRestClassifier(LogisticRegression(C=10.0, max_iter=200))
    texts = np.array(corpus.texts, dtype=object)
    model.fit(words.fit_transform(texts[seen]), corpus.labels[np.flatnonzero(seen)].toarray())
    scores = model.predict_proba(words.transform(texts[~seen]))
    label_sets = [corpus.label_sets[row] for row in np.flatnonzero(~seen)]
    write_scores(path, texts[~seen].tolist(), label_sets, corpus.label_names, scores, 0.0)


def part_names(corpus: Any) -> list[str]:
    """Return the part of each text of a corpus."""
    from surelabel.corpora.corpus import PARTS

    return [PARTS[number] if number >= 0 else "" for number in np.asarray(corpus.part_of).tolist()]


def arxiv(path: Path, source: Path) -> None:
    """Score arXiv abstracts by logistic regression, fitted by stochastic gradient descent on others."""
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import SGDClassifier
    from sklearn.multiclass import OneVsRestClassifier
    from sklearn.preprocessing import MultiLabelBinarizer

    with gzip.open(source, "rt", encoding="utf-8") as file:
        rows = [json.loads(line) for line in file]
    order = np.random.RandomState(0).permutation(len(rows))[: N_LEARNT + N_SCORED]
    texts = [f"{rows[row]['title']}\n{rows[row]['text']}" for row in order]
    label_sets = [rows[row]["labels"] for row in order]
    binary = MultiLabelBinarizer().fit(label_sets)
    words = TfidfVectorizer(min_df=5, max_features=20_000, sublinear_tf=True)
    model = OneVsRestClassifier(SGDClassifier(loss="log_loss", alpha=1e-5, max_iter=5, tol=None, random_state=0))
    model.fit(words.fit_transform(texts[:N_LEARNT]), binary.transform(label_sets[:N_LEARNT]))
    scores = model.predict_proba(words.transform(texts[N_LEARNT:]))
    write_scores(path, texts[N_LEARNT:], label_sets[N_LEARNT:], binary.classes_.tolist(), scores, 0.01)


def run(*command: Any) -> str:
    """Return the output of surelabel."""
    line = [sys.executable, "-m", "surelabel", *map(str, command)]
    done = subprocess.run(line, check=False, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{line} ended with {done.returncode}: {done.stderr[-500:]}")
    return done.stdout


def divided(path: Path, model: Path, seed: int) -> dict[str, Any]:
    """Make the tagger safe on one random division, and measure on the rest."""
    started = time.perf_counter()
    run("train", path, "--scores", "scores", "--out", model, "--seed", seed)
    shown = json.loads(run("evaluate", model, path, "--scores", "scores", "--json"))
    decisions = {name: shown["decisions"][name] for name in ("file", "seen")}
    return {
        "seed": seed,
        "n_texts": shown["n_texts"],
        "errors": shown["errors"],
        "decisions": decisions,
        "ranks": shown["ranks"],
        "seconds": round(time.perf_counter() - started, 1),
    }


def summary(runs: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return means over divisions, and how many standard errors each promise is exceeded by at most."""
    figures = {}
    for name, what in (("file", "wrong"), ("seen", "missed")):
        found = [run["decisions"][name] for run in runs if run["decisions"][name]["n_texts"]]
        over = [(one[what] - LEVELS[what]) / max(one[f"{what}_error"], 1e-9) for one in found]
        figures[f"{what}_{name}"] = {
            "asked": LEVELS[what],
            "mean": float(np.mean([one[what] for one in found])) if found else None,
            "worst_in_standard_errors": max(over, default=None),
            "share_of_texts": float(np.mean([run["decisions"][name]["share"] for run in runs])),
        }
    figures["mean_list"] = float(np.mean([run["decisions"]["seen"]["n_tags"] for run in runs]))
    return figures


def main() -> None:
    """Measure, and write the figures after each division."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--arxiv", type=Path)
    parser.add_argument("--seeds", type=int, default=5)
    asked = parser.parse_args()
    asked.folder.mkdir(parents=True, exist_ok=True)
    document: dict[str, Any] = {"command": re.sub(r"/\S+/", "", " ".join(sys.argv)), "corpora": {}}
    if asked.out.exists():
        document = json.loads(asked.out.read_text())
    makers: dict[str, Any] = {"reuters": reuters}
    if asked.arxiv is not None:
        makers["arxiv"] = lambda path: arxiv(path, asked.arxiv)
    for name, make in makers.items():
        path = asked.folder / f"{name}.jsonl"
        if not path.exists():
            make(path)
        runs = document["corpora"].setdefault(name, {}).setdefault("runs", [])
        for seed in range(len(runs), asked.seeds):
            runs.append(divided(path, asked.folder / f"{name}-{seed}", seed))
            document["corpora"][name]["summary"] = summary(runs)
            asked.out.write_text(json.dumps(document, indent=1) + "\n")


if __name__ == "__main__":
    main()
