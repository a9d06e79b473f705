"""Classifiers side by side: a tuned linear support vector machine, `linear`, `hybrid`, `blend`, by both decision rules.

    python benchmarks/classifiers.py reuters debian-czech --kinds svm,linear,hybrid --out results/classifiers.json

Every kind learns from the training part; C, thresholds and curves are chosen on the validation part; sets are
calibrated on the calibration part; figures are of the test part. `svm` is scikit-learn's LinearSVC on its own TF-IDF,
with C and one threshold chosen for micro-F1 on the validation part: the rival. Seconds are processor time of features,
choice and fit. Rows of a corpus and kind that the file has already are replaced.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import scipy.special

from surelabel import Automation, ConformalLabelSets, LogLoss, corpora, text
from surelabel.evaluation.metrics import classification_metrics
from surelabel.exceptions import CalibrationWarning, DataWarning
from surelabel.probabilities_file import PartProbabilities, Probabilities
from surelabel.text import Thresholds

# Kind and settings of each row; MEMBERS of blends are rows above them.
KINDS: dict[str, tuple[str, dict[str, Any]]] = {
    "linear": ("linear", {}),
    "linear-stems": ("linear", {"language": "english"}),
    "linear-characters": ("linear", {"character_weight": 1.0}),
    "hybrid": ("hybrid", {"model": "minilm", "max_tokens": 64}),
    "blend": ("blend", {"of": "linear,randinit"}),
    "blend-hybrid": ("blend", {"of": "hybrid,randinit"}),
}
LANGUAGES = {"debian-czech": "czech"}
COSTS = (0.1, 0.3, 1.0, 3.0)
# Label-sets of corpora with more labels times labels per text than LARGE are counted for SIZED texts only.
LARGE, SIZED = 3_000, 100
PARTS = ("validation", "calibration", "test")


class TunedSvm:
    """LinearSVC on TF-IDF of words and pairs, C and one threshold chosen for micro-F1 on validation texts."""

    def fit(self, texts: Any, labels: Any, validation: Any) -> TunedSvm:
        """Choose C and the threshold on the validation texts."""
        from sklearn.feature_extraction.text import TfidfVectorizer
        from sklearn.svm import LinearSVC

        self.vectorizer = TfidfVectorizer(sublinear_tf=True, ngram_range=(1, 2), min_df=2)
        features, held = self.vectorizer.fit_transform(texts), self.vectorizer.transform(validation[0])
        best = -1.0
        for cost in COSTS:
            models = [LinearSVC(C=cost, random_state=0).fit(features, y) if y.any() else None for y in labels.T]
            scores = self._scores(models, held)
            threshold, f1 = best_threshold(scores, validation[1])
            if f1 > best:
                best, self.models, self.threshold, self.cost = f1, models, threshold, cost
                self.curve = platt(scores, validation[1])
        return self

    def _scores(self, models: Any, features: Any) -> Any:
        missing = np.full(features.shape[0], -1.0)
        return np.column_stack([missing if model is None else model.decision_function(features) for model in models])

    def scores(self, texts: Any) -> Any:
        """Return the margins of texts."""
        return self._scores(self.models, self.vectorizer.transform(texts))


def best_threshold(scores: Any, labels: Any) -> tuple[float, float]:
    """Return the threshold with the highest micro-F1, and that."""
    order = np.argsort(-scores.ravel(), kind="stable")
    f1 = 2 * np.cumsum(labels.ravel()[order]) / (np.arange(1, scores.size + 1) + labels.sum())
    return float(scores.ravel()[order[f1.argmax()]]), float(f1.max())


def platt(scores: Any, labels: Any) -> tuple[float, float]:
    """Return slope and intercept of one logistic curve for all labels."""
    from sklearn.linear_model import LogisticRegression

    model = LogisticRegression(C=1e4).fit(scores.reshape(-1, 1), labels.ravel())
    return float(model.coef_[0, 0]), float(model.intercept_[0])


def log_loss(probabilities: Any, labels: Any) -> float:
    """Return the log-loss, summed over labels, mean over texts."""
    clipped = np.clip(probabilities, 1e-6, 1 - 1e-6)
    return float(-np.where(labels, np.log(clipped), np.log1p(-clipped)).sum() / len(labels))


def conformal_figures(parts: dict[str, PartProbabilities], limits: tuple[int, int]) -> dict[str, Any]:
    """Return sizes of prediction sets, what can be filed, and tags to consider."""
    calibration, test = parts["calibration"], parts["test"]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CalibrationWarning)
        predictor = ConformalLabelSets(LogLoss(), *limits).calibrate(calibration.probabilities, calibration.labels)
        automation = Automation(0.05, 0.95, LogLoss(), *limits).calibrate(calibration.probabilities, calibration.labels)
    figures: dict[str, Any] = {}
    for level in (0.05, 0.01):
        sets = predictor.predict_set(test.probabilities, significance=level)
        figures[f"error_{level}"] = float((~sets.contains(test.labels)).mean())
        sized = sets[:SIZED] if test.labels.shape[1] * limits[1] > LARGE else sets
        low, high = (np.array([float(size) for size in side]) for side in zip(*_bounds(sized), strict=True))
        figures[f"mean_size_{level}"] = float(np.sqrt(low.mean() * high.mean()))
        figures[f"median_size_{level}"] = float(np.median(np.sqrt(low * high)))
    filed = automation.decide(test.probabilities)
    forced = predictor.predict(test.probabilities).labels
    right = (forced == test.labels).all(axis=1)
    figures["filed"] = float(filed.mean())
    figures["filed_wrong"] = float((~right[filed]).mean()) if filed.any() else 0.0
    # The highest threshold that misses at most a fifth of the calibration texts' labels.
    threshold = np.quantile(calibration.probabilities[calibration.labels], 0.2, method="lower")
    figures["considered_at_20_missed"] = float((test.probabilities >= threshold).sum(axis=1).mean())
    figures["exact"] = dataclasses.asdict(classification_metrics(test.labels, forced))
    return figures


def _bounds(sets: Any) -> list[tuple[float, float]]:
    """Return the size of each set, or its bounds where it cannot be had."""
    return [one.size_bounds for one in sets]


def measured(corpus: Any, name: str, kind: str, folder: Path | None) -> dict[str, Any]:
    """Fit one kind, measure it, keep its probabilities."""
    labels = {part: corpus.part(part).labels for part in ("train", *PARTS)}
    texts = {part: corpus.part(part).texts for part in ("train", *PARTS)}
    validation = (texts["validation"], labels["validation"])
    sizes = labels["train"].sum(axis=1)
    limits = (min(1, int(sizes.min())), int(sizes.max()))
    start, wall = time.process_time(), time.perf_counter()
    if kind == "svm":
        model = TunedSvm().fit(texts["train"], labels["train"], validation)
        seconds = time.process_time() - start
        scores = {part: model.scores(texts[part]) for part in PARTS}
        slope, intercept = model.curve
        probabilities = {part: scipy.special.expit(slope * scores[part] + intercept) for part in PARTS}
        f1 = classification_metrics(labels["test"], scores["test"] >= model.threshold)
        chosen: Any = {"inverse_regularisation": model.cost}
    else:
        base, settings = KINDS[kind]
        if "language" in settings:
            settings = {**settings, "language": LANGUAGES.get(name, settings["language"])}
        classifier = text.make(base, **settings).fit(texts["train"], labels["train"], validation=validation)
        seconds = time.process_time() - start
        probabilities = {part: classifier.predict_proba(texts[part]) for part in PARTS}
        thresholds = Thresholds.fit(probabilities["validation"], labels["validation"])
        f1 = classification_metrics(labels["test"], thresholds.predict(probabilities["test"]))
        chosen = {"settings": settings, "tried": classifier.history_ if base in {"linear", "hybrid"} else None}
    ids = {part: tuple(map(str, corpus.part(part).ids)) for part in PARTS}
    parts = {part: PartProbabilities(probabilities[part], labels[part], ids[part]) for part in PARTS}
    if folder is not None:
        kept = Probabilities(parts, corpus.label_names, limits[1], {"corpus": name, "classifier": kind, "seed": 0})
        kept.save(folder / f"{name}-{kind}.npz")
    return {
        "corpus": name,
        "classifier": kind,
        "n_train": len(texts["train"]),
        "n_labels": len(corpus.label_names),
        "seconds": seconds,
        "wall_seconds": time.perf_counter() - wall,
        "log_loss": log_loss(probabilities["test"], labels["test"]),
        "f1": dataclasses.asdict(f1),
        **conformal_figures(parts, limits),
        "chosen": chosen,
    }


def as_table(rows: list[dict[str, Any]]) -> str:
    """Return the figures as markdown."""
    head = (
        "| corpus | classifier | acc | micro-F1 | macro-F1 | acc, F1 rule | micro-F1, F1 rule | macro-F1, F1 rule "
        "| log-loss | mean N .05 | filed | tags at 20 % missed | s |"
    )
    lines = [head, "|---|---|" + "---:|" * 11]
    for row in rows:
        rules = [f"{row[rule][name]:.3f}" for rule in ("exact", "f1") for name in ("accuracy", "f1_micro", "f1_macro")]
        sizes = f"{row['mean_size_0.05']:.4g}", f"{row['filed']:.2f}", f"{row['considered_at_20_missed']:.1f}"
        cells = [row["corpus"], row["classifier"], *rules, f"{row['log_loss']:.3f}", *sizes, f"{row['seconds']:.0f}"]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def limited(corpus: Any, most: int | None) -> Any:
    """Return the corpus with at most so many training texts, the first."""
    if most is None or len(corpus.parts["train"]) <= most:
        return corpus
    return dataclasses.replace(corpus, parts={**corpus.parts, "train": corpus.parts["train"][:most]})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpora", nargs="+")
    parser.add_argument("--kinds", default="svm,linear")
    parser.add_argument("--data", type=Path, help="folder of the corpora [default: as surelabel finds them]")
    parser.add_argument("--train-texts", type=int, help="learn from the first so many training texts")
    parser.add_argument("--probabilities", type=Path, help="folder to keep probabilities in")
    parser.add_argument("--out", type=Path, default=Path("results/classifiers.json"))
    options = parser.parse_args()
    warnings.simplefilter("ignore", DataWarning)
    text.make("linear", min_texts=1).fit(["a b", "c d"] * 10, [[1, 0], [0, 1]] * 10)  # compiles kernels
    for name in options.corpora:
        source = {} if options.data is None or name == "synthetic" else {"path": options.data}
        corpus = limited(corpora.load(name, seed=0, **source), options.train_texts)
        for kind in options.kinds.split(","):
            row = measured(corpus, name, kind, options.probabilities)
            rows = json.loads(options.out.read_text())["rows"] if options.out.is_file() else []
            rows = [old for old in rows if (old["corpus"], old["classifier"]) != (name, kind)]
            rows = sorted([*rows, row], key=lambda one: (one["corpus"], one["classifier"]))
            options.out.write_text(json.dumps({"rows": rows}, indent=1) + "\n")
            print(as_table([row]), flush=True)


if __name__ == "__main__":
    main()
