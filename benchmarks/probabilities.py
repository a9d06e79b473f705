"""Probabilities to measure with: those of the linear classifier on the parts of a corpus, by the paper's split, seed 0.

    python benchmarks/probabilities.py reuters arxiv --out FOLDER [--most-training-texts 20000]

Writes FOLDER/NAME.npz with the arrays validation, calibration and test (n, d), their labels, and train_labels. The
classifier saw the training part only.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

import numpy as np

from surelabel import corpora, text
from surelabel.exceptions import CorpusError

PARTS = ("validation", "calibration", "test")


def corpus_to_measure(path: str | None) -> corpora.Corpus:
    """Return Reuters, or the synthetic corpus if Reuters is not available."""
    try:
        return corpora.load("reuters", path=path, parts="paper")
    except CorpusError as error:
        print(f"Reuters is not available, the synthetic corpus takes its place: {str(error).splitlines()[0]}")
        return corpora.load("synthetic", n_texts=11_000, n_labels=90, parts="paper")


def measured(corpus: corpora.Corpus, most_training_texts: int | None = None) -> dict[str, Any]:
    """Train the linear classifier; return probabilities and labels of the other parts, and the training labels."""
    training = corpus.part("train")
    texts, labels = training.texts[:most_training_texts], training.labels[:most_training_texts]
    classifier = text.make("linear").fit(list(texts), labels)
    rows = {"train_labels": _dense(labels)}
    for name in PARTS:
        part = corpus.part(name)
        rows |= {name: classifier.predict_proba(list(part.texts)), f"{name}_labels": _dense(part.labels)}
    return rows


def load(path: str | Path) -> dict[str, Any]:
    """Return the arrays of a file."""
    with np.load(path) as stored:
        return {name: stored[name] for name in stored.files}


def _dense(labels: Any) -> Any:
    return np.asarray(labels.toarray() if hasattr(labels, "toarray") else labels, dtype=bool)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpora", nargs="+")
    parser.add_argument("--out", type=Path, required=True, help="folder")
    parser.add_argument("--most-training-texts", type=int)
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    for name in options.corpora:
        start = time.process_time()
        rows = measured(corpora.load(name, parts="paper"), options.most_training_texts)
        np.savez(options.out / f"{name}.npz", **rows)
        print(f"{name}: {rows['test'].shape}, {time.process_time() - start:.0f} s of processor time", flush=True)


if __name__ == "__main__":
    main()
