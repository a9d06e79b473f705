"""Train one text classifier on one corpus "without ICP", as the paper does for its tables, and measure it.

Training and calibration parts together are learnt from; the validation part decides when to stop; the
test labels are looked at once, for the final figures. One JSON file a run, with its settings inside; a
finished run is skipped, a killed one goes on from its last checkpoint under --runs.

    python benchmarks/text_reproduce.py randinit reuters --seed 0
    python benchmarks/text_reproduce.py bert reuters --set model=minilm --set max_tokens=256
"""

from __future__ import annotations

import argparse
import dataclasses
import importlib.metadata
import json
import os
import platform
import time
import warnings
from pathlib import Path

import numpy as np
from sklearn.metrics import accuracy_score, f1_score, hamming_loss

from surelabel import corpora
from surelabel._storage import atomic_file
from surelabel.exceptions import DataWarning
from surelabel.text import make

CORPORA = ("reuters", "reuters20", "arxiv", "debian-czech", "goemotions", "synthetic")
PACKAGES = ("surelabel", "numpy", "scikit-learn", "torch", "transformers", "tokenizers", "numba", "gensim")


def figures(probabilities: np.ndarray, labels: np.ndarray) -> dict[str, float]:
    """Return the paper's four measures at probability 0.5."""
    predicted = probabilities >= 0.5
    return {
        "accuracy": float(accuracy_score(labels, predicted)),
        "f1_micro": float(f1_score(labels, predicted, average="micro", zero_division=0)),
        "f1_macro": float(f1_score(labels, predicted, average="macro", zero_division=0)),
        "hamming_loss": float(hamming_loss(labels, predicted)),
    }


def machine() -> dict[str, object]:
    """Return what the figures' times depend on."""
    model = platform.processor() or platform.machine()
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.is_file():
        names = [line.split(":", 1)[1].strip() for line in cpuinfo.read_text().splitlines() if "model name" in line]
        model = names[0] if names else model
    return {"processor": model, "cores": os.cpu_count(), "system": platform.system()}


def versions() -> dict[str, str]:
    """Return the versions of Python and of the packages that matter."""
    found = {"python": platform.python_version()}
    for name in PACKAGES:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


def as_setting(text: str) -> tuple[str, object]:
    """Return name and value of "name=value"; values are JSON where they can be read as such."""
    name, _, value = text.partition("=")
    try:
        return name, json.loads(value)
    except json.JSONDecodeError:
        return name, value


def run(arguments: argparse.Namespace) -> dict[str, object]:
    corpus = corpora.load(arguments.corpus, path=arguments.path)
    training, validation = corpus.part("train", "calibration"), corpus.part("validation")
    settings = dict(as_setting(text) for text in arguments.set)
    classifier = make(arguments.kind, seed=arguments.seed, **settings)
    start = time.perf_counter()
    classifier.fit(
        training.texts,
        training.label_matrix,
        validation=(validation.texts, validation.label_matrix),
        label_names=corpus.label_names,
        checkpoint_folder=None if arguments.kind == "linear" else arguments.runs / name_of(arguments),
    )
    fit_seconds = time.perf_counter() - start
    classifier.save(arguments.runs / "models" / name_of(arguments))
    start = time.perf_counter()
    on_validation = figures(classifier.predict_proba(validation.texts), validation.labels)
    predict_seconds = time.perf_counter() - start
    test = corpus.part("test")
    return {
        "corpus": corpus.name,
        "kind": arguments.kind,
        "seed": arguments.seed,
        "n_texts": {"training": len(training), "validation": len(validation), "test": len(test)},
        "n_labels": len(corpus.label_names),
        "test": figures(classifier.predict_proba(test.texts), test.labels),
        "validation": on_validation,
        "settings": dataclasses.asdict(classifier.settings),
        "history": classifier.history_,
        "fit_seconds": round(fit_seconds, 1),
        "validation_texts_a_second": round(len(validation) / predict_seconds, 1),
        "versions": versions(),
        "machine": machine(),
    }


def name_of(arguments: argparse.Namespace) -> str:
    variant = f"-{arguments.variant}" if arguments.variant else ""
    return f"{arguments.corpus}-{arguments.kind}{variant}-seed{arguments.seed}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kind", choices=["linear", "randinit", "word2vec", "bert"])
    parser.add_argument("corpus", choices=CORPORA)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help="a setting of the kind")
    parser.add_argument("--variant", default="", help="part of the result's name where settings are changed")
    parser.add_argument("--path", type=Path, help="where the corpus lies; else SURELABEL_DATA, the cache, the web")
    parser.add_argument("--results", type=Path, default=Path("results/text"))
    parser.add_argument("--runs", type=Path, default=Path("runs/text"), help="checkpoints and trained classifiers")
    arguments = parser.parse_args()
    target = arguments.results / f"{name_of(arguments)}.json"
    if target.is_file():
        print(f"{target} is there already")
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        document = run(arguments)
    with atomic_file(target) as temporary:
        temporary.write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")
    test = ", ".join(f"{name} {value:.4f}" for name, value in document["test"].items())
    print(f"{name_of(arguments)}: {test} ({document['fit_seconds']} s)")


if __name__ == "__main__":
    main()
