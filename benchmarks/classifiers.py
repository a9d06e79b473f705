"""Classifiers side by side: a tuned linear support vector machine, `linear`, `hybrid`, `blend`, by both decision rules.

    python benchmarks/classifiers.py reuters debian-czech --kinds svm,linear,hybrid --out results/classifiers.json
    python benchmarks/classifiers.py reuters --kinds linear,randinit,linear+randinit --probabilities FOLDER --plain

Every kind learns from the training part; C, thresholds and curves are chosen on the validation part; sets are
calibrated on the calibration part; figures are of the test part. `svm` is scikit-learn's LinearSVC on its own TF-IDF,
with C and one threshold chosen for micro-F1 on the validation part: the rival. Kinds joined by + are blended as the
`blend` classifier does it, from the members' probabilities in the folder. With --plain calibration texts are trained
on, too, and there are no sets: the paper's tables without ICP. Probabilities that the folder has already are used
again, and trainings that were stopped are resumed from the checkpoints there. A kind that ends in -seed1 has that seed
instead of 0. Seconds are processor time of features, choice and fit, of the last run if a training was resumed.
Rows of a corpus and kind that the file has already are replaced.
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

from surelabel import Automation, ConformalLabelSets, LogLoss, choose_mixture, corpora, text
from surelabel.evaluation.metrics import classification_metrics
from surelabel.exceptions import CalibrationWarning, DataWarning
from surelabel.probabilities_file import PartProbabilities, Probabilities
from surelabel.text import Thresholds
from surelabel.text.blend import combined, fit_weights, log_odds

# Kind and settings of each row.
KINDS: dict[str, tuple[str, dict[str, Any]]] = {
    "linear": ("linear", {}),
    "linear-stems": ("linear", {"language": "english"}),
    "linear-characters": ("linear", {"character_weight": 1.0}),
    "hybrid": ("hybrid", {"model": "minilm", "max_tokens": 64}),
    "hybrid-e5": ("hybrid", {"model": "e5", "max_tokens": 128}),
    "hybrid-e5-stems": ("hybrid", {"model": "e5", "max_tokens": 128, "language": "english"}),
    "randinit": ("randinit", {}),
    "word2vec": ("word2vec", {}),
    "bert-minilm": ("bert", {"model": "minilm", "max_tokens": 128, "epochs": 4}),
    "bert-minilm-upper": ("bert", {"model": "minilm", "max_tokens": 64, "epochs": 3, "frozen_layers": 3}),
    "bert-mpnet": (
        "bert",
        {"model": "mpnet", "max_tokens": 128, "frozen_layers": 6, "epochs": 3, "encoder_learning_rate": 5e-5},
    ),
    "bert-minilm-int8": ("bert", {"model": "minilm", "max_tokens": 128, "epochs": 4, "quantise": "int8"}),
}
LANGUAGES = {"debian-czech": "czech"}
SEEDED = "-seed"
COSTS = (0.1, 0.3, 1.0, 3.0)
# Label-sets of corpora with more labels times labels per text than LARGE are counted for SIZED texts only.
LARGE, SIZED = 3_000, 100
PARTS = ("validation", "calibration", "test")


def kind_settings(kind: str) -> tuple[str, dict[str, Any]]:
    """Return the classifier and the settings of a row: "randinit-seed2" is randinit with seed 2."""
    name, _, seed = kind.partition(SEEDED)
    base, settings = KINDS[name]
    return base, {**settings, "seed": int(seed)} if seed else settings


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
        # From one place on, as in the rows that were measured first.
        automation = Automation(0.05, 0.95, LogLoss(), *limits, first_share=0.05)
        automation.calibrate(calibration.probabilities, calibration.labels)
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


def resplit_figures(kept: Probabilities, limits: tuple[int, int], n_resplits: int) -> dict[str, float]:
    """Return means over random divisions into calibration and test texts, which are exchangeable by construction."""
    names = [f"{what}_{level}" for what in ("error", "mean_size") for level in (0.05, 0.01)]
    names += ["filed", "filed_wrong", "considered_at_20_missed"]
    rows = []
    for seed in range(n_resplits):
        calibration, test = kept.redivided(seed)
        rows.append(conformal_figures({"calibration": calibration, "test": test}, limits))
    return {"n": n_resplits, **{name: float(np.mean([row[name] for row in rows])) for name in names}}


def plain_figures(parts: dict[str, PartProbabilities], training: Any, limits: tuple[int, int]) -> dict[str, Any]:
    """Return how good label-sets are without ICP, by three rules.

    "half" takes labels with a probability of 0.5 or more (the paper's), "exact" at least one of them, "joint" the best
    guess of the mixture that validation texts choose.
    """
    test, held = parts["test"], parts["validation"]
    half = test.probabilities >= 0.5
    exact = half.copy()
    if limits[0] == 1:
        empty = ~half.any(axis=1)
        exact[empty, test.probabilities[empty].argmax(axis=1)] = True
    bounds = {"min_labels": limits[0], "max_labels": limits[1]}
    mixture = choose_mixture(held.probabilities, held.labels, training, ("0.01", "0.05", "0.1"), **bounds)
    # Best guesses do not depend on the texts that calibrate.
    guesses = ConformalLabelSets(mixture, **bounds).calibrate(held.probabilities, held.labels)
    rules = {"half": half, "exact": exact, "joint": guesses.predict(test.probabilities).labels}
    return {rule: dataclasses.asdict(classification_metrics(test.labels, one)) for rule, one in rules.items()}


def _bounds(sets: Any) -> list[tuple[float, float]]:
    """Return the size of each set, or its bounds where it cannot be had."""
    return [one.size_bounds for one in sets]


def svm_probabilities(texts: Any, labels: Any) -> tuple[dict[str, Any], Any, dict[str, Any]]:
    """Return the probabilities of the rival by part, what it predicts for the test part, and how it was made."""
    start = time.process_time()
    model = TunedSvm().fit(texts["train"], labels["train"], (texts["validation"], labels["validation"]))
    made = {"seconds": time.process_time() - start, "chosen": {"inverse_regularisation": model.cost}}
    scores = {part: model.scores(texts[part]) for part in PARTS if part in texts}
    slope, intercept = model.curve
    probabilities = {part: scipy.special.expit(slope * values + intercept) for part, values in scores.items()}
    return probabilities, scores["test"] >= model.threshold, made


def classifier_probabilities(
    texts: Any, labels: Any, kind: str, corpus_name: str, checkpoints: Path | None
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Fit a classifier, or resume its training; return its probabilities by part, and how it was made."""
    base, settings = kind_settings(kind)
    if "language" in settings:
        settings = {**settings, "language": LANGUAGES.get(corpus_name, settings["language"])}
    start = time.process_time()
    classifier = text.make(base, **settings)
    held = texts["validation"], labels["validation"]
    classifier.fit(texts["train"], labels["train"], validation=held, checkpoint_folder=checkpoints)
    made = {
        "seconds": time.process_time() - start,
        "chosen": {"settings": settings, "tried": classifier.history_ if base in {"linear", "hybrid"} else None},
    }
    return {part: classifier.predict_proba(texts[part]) for part in PARTS if part in texts}, made


def blended(members: list[Probabilities]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Blend probabilities with weights fitted on the validation part; return them by part, and the mean weights."""

    def odds(part: str) -> list[Any]:
        return [log_odds(member.parts[part].probabilities) for member in members]

    start = time.process_time()
    labels = members[0].parts["validation"].labels
    weights = fit_weights(odds("validation"), labels, seed=0)
    chosen = {"mean_weights": weights.mean(axis=1).tolist(), "cross_fitted": cross_fitted(odds("validation"), labels)}
    made = {"seconds": time.process_time() - start, "chosen": chosen}
    probabilities = {part: scipy.special.expit(combined(odds(part), weights)) for part in members[0].parts}
    return probabilities, made


def cross_fitted(odds: list[Any], labels: Any) -> float:
    """Return the log-loss of a blend whose weights are fitted on the other half: what blends are chosen by."""
    halves = np.random.default_rng(0).permutation(len(labels)) % 2
    total = 0.0
    for half in (0, 1):
        held, other = halves == half, halves != half
        weights = fit_weights([one[other] for one in odds], labels[other], seed=0)
        blend = scipy.special.expit(combined([one[held] for one in odds], weights))
        total += log_loss(blend, labels[held]) * held.sum()
    return float(total / len(labels))


def saved_name(name: str, kind: str, plain: bool) -> str:
    """Return the name of the file that keeps probabilities."""
    return f"{name}-plain-{kind}.npz" if plain else f"{name}-{kind}.npz"


def measured(corpus: Any, name: str, kind: str, folder: Path | None, plain: bool, n_resplits: int) -> dict[str, Any]:
    """Fit one kind, or read or blend its probabilities; measure it."""
    by_part = {part: corpus.part(part) for part in ("validation", "test") if plain} or {
        part: corpus.part(part) for part in PARTS
    }
    by_part["train"] = corpus.part("train", "calibration") if plain else corpus.part("train")
    texts, labels = ({part: getattr(one, what) for part, one in by_part.items()} for what in ("texts", "labels"))
    sizes = labels["train"].sum(axis=1)
    limits = (min(1, int(sizes.min())), int(sizes.max()))
    file = None if folder is None else folder / saved_name(name, kind, plain)
    guesses = None
    if "+" in kind:
        members = [Probabilities.load(file.parent / saved_name(name, each, plain)) for each in kind.split("+")]
        probabilities, made = blended(members)
    elif kind == "svm":
        probabilities, guesses, made = svm_probabilities(texts, labels)
    elif file is not None and file.is_file():
        kept = Probabilities.load(file)
        probabilities = {part: one.probabilities for part, one in kept.parts.items()}
        made = {key: kept.settings.get(key) for key in ("seconds", "chosen")}
    else:
        checkpoints = None if file is None else file.with_name(f"{file.stem}-checkpoints")
        probabilities, made = classifier_probabilities(texts, labels, kind, name, checkpoints)
    parts = {
        part: PartProbabilities(values, labels[part], tuple(map(str, by_part[part].ids)))
        for part, values in probabilities.items()
    }
    counts = [int(count) for count in np.asarray(labels["train"].sum(axis=0)).reshape(-1)]
    described = {"corpus": name, "classifier": kind, "plain": plain, "seed": 0, "train_counts": counts, **made}
    whole = Probabilities(parts, corpus.label_names, limits[1], described)
    if file is not None and not file.is_file():
        whole.save(file)
    resplits = {"resplits": resplit_figures(whole, limits, n_resplits)} if n_resplits and not plain else {}
    held = probabilities["validation"], labels["validation"]
    macro = Thresholds.fit(*held, per_label=True).predict(probabilities["test"])
    if guesses is None:
        guesses = Thresholds.fit(*held).predict(probabilities["test"])
    return {
        "corpus": name,
        "classifier": kind,
        "plain": plain,
        "source": corpus.provenance.source,
        "n_train": len(texts["train"]),
        "n_labels": len(corpus.label_names),
        **made,
        "validation_log_loss": log_loss(probabilities["validation"], labels["validation"]),
        "log_loss": log_loss(probabilities["test"], labels["test"]),
        "f1": dataclasses.asdict(classification_metrics(labels["test"], guesses)),
        "macro": dataclasses.asdict(classification_metrics(labels["test"], macro)),
        **(plain_figures(parts, labels["train"], limits) if plain else conformal_figures(parts, limits)),
        **resplits,
    }


def as_table(rows: list[dict[str, Any]]) -> str:
    """Return the figures as markdown."""
    head = (
        "| corpus | classifier | acc | micro-F1 | macro-F1 | acc, F1 rule | micro-F1, F1 rule | macro-F1, F1 rule "
        "| log-loss | mean N .05 | mean N .01 | filed | tags at 20 % missed | s |"
    )
    lines = [head, "|---|---|" + "---:|" * 12]
    for row in rows:
        rules = [f"{row[rule][name]:.3f}" for rule in ("exact", "f1") for name in ("accuracy", "f1_micro", "f1_macro")]
        sizes = ["-"] * 4
        if not row["plain"]:
            sizes = [f"{row[f'mean_size_{level}']:.4g}" for level in (0.05, 0.01)]
            sizes += [f"{row['filed']:.2f}", f"{row['considered_at_20_missed']:.1f}"]
        seconds = "-" if row["seconds"] is None else f"{row['seconds']:.0f}"
        name = f"{row['corpus']}{', without ICP' if row['plain'] else ''}"
        cells = [name, row["classifier"], *rules, f"{row['log_loss']:.3f}", *sizes, seconds]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def limited(corpus: Any, most: int | None) -> Any:
    """Return the corpus with at most so many training texts, the first."""
    if most is None or len(corpus.parts["train"]) <= most:
        return corpus
    return dataclasses.replace(corpus, parts={**corpus.parts, "train": corpus.parts["train"][:most]})


def _key(row: dict[str, Any]) -> tuple[str, bool, str]:
    return row["corpus"], row["plain"], row["classifier"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpora", nargs="+")
    parser.add_argument("--kinds", default="svm,linear")
    parser.add_argument("--data", type=Path, help="folder of the corpora [default: as surelabel finds them]")
    parser.add_argument("--train-texts", type=int, help="learn from the first so many training texts")
    parser.add_argument("--probabilities", type=Path, help="folder to keep probabilities in; blends need it")
    parser.add_argument("--resplits", type=int, default=0, help="measure sets on so many random re-splits, too")
    parser.add_argument("--plain", action="store_true", help="train on calibration texts, too; no prediction sets")
    parser.add_argument("--out", type=Path, default=Path("results/classifiers.json"))
    options = parser.parse_args()
    warnings.simplefilter("ignore", DataWarning)
    text.make("linear", min_texts=1).fit(["a b", "c d"] * 10, [[1, 0], [0, 1]] * 10)  # compiles kernels
    for name in options.corpora:
        source = {} if options.data is None or name == "synthetic" else {"path": options.data}
        corpus = limited(corpora.load(name, seed=0, **source), options.train_texts)
        for kind in options.kinds.split(","):
            row = measured(corpus, name, kind, options.probabilities, options.plain, options.resplits)
            rows = json.loads(options.out.read_text())["rows"] if options.out.is_file() else []
            rows = [{"plain": False, **old} for old in rows]
            before = next((old for old in rows if _key(old) == _key(row)), {})
            # Probabilities that were kept by an earlier run do not always say how they were made; its row does.
            row |= {what: before.get(what) for what in ("seconds", "chosen") if row[what] is None}
            rows = [old for old in rows if _key(old) != _key(row)]
            rows = sorted([*rows, row], key=_key)
            options.out.write_text(json.dumps({"rows": rows}, indent=1) + "\n")
            print(as_table([row]), flush=True)


if __name__ == "__main__":
    main()
