"""Generations that learn from a review: errors of lists and of filing, and what learning is worth.

    SURELABEL_DATA=data python benchmarks/learn.py --out results/learn.json --work build/learn

A simulation of `surelabel.review.learn` with the labels of Reuters and of arXiv. Generation 0 is trained on the first
texts. The others arrive in windows. A coin sends a share of them to the blind check; people decide some of those that
the serving generation does not file. At the end of each window the next generation learns from everything decided so
far; the audits of the window after that calibrate it, and it serves the window after those, on which it is measured.
The classifier is small: one logistic regression per label on TF-IDF.

Where people see a wrong best guess, they accept it with probability `FOLLOW`: people follow suggestions.

Orders: "random" shuffles the corpus; "drifting" keeps its own order (by time), with a little noise so that seeds
differ. Variants:

main       random texts are decided, audits calibrate: what `surelabel learn` does
uncertain  the same, but people decide the most uncertain texts first, near-duplicates set apart
a          never learning: generation 0 serves to the end
b          decided texts calibrate as well as audits (wrong: people follow suggestions, and the model chose the texts)
d          the old held-out texts calibrate as well as audits (a quick start)

A run is one corpus, order and seed, kept in a file below --work; finished runs are skipped.
"""

from __future__ import annotations

import argparse
import functools
import json
import math
import os
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse
from scipy.special import expit
from sklearn.feature_extraction.text import HashingVectorizer, TfidfTransformer

from surelabel import corpora
from surelabel._core.files import atomic_file
from surelabel.exceptions import SurelabelWarning
from surelabel.guarantees.decisions import Evidence, FilingPolicy
from surelabel.review.learn import audits_needed
from surelabel.text.solver import Candidate, fit_scores

ORDERS = ("random", "drifting")
WINDOWS = 7  # two before the first new generation serves, then one for each of five
FOLLOW = 0.5
MAX_MISSED = "0.1"
FIGURES = ("filed", "filed_wrong", "missed", "tags", "f1")


class Plan(NamedTuple):
    """How a corpus is used: texts of generation 0 and of a window, texts decided in it, share of audits, level."""

    start: int
    window: int
    decided: int
    share: float
    max_wrong: str
    why: str


PLANS = {
    "reuters": Plan(1_500, 1_300, 150, 0.5, "0.05", "Reuters has 10,789 texts: half of them have to be audits."),
    "arxiv": Plan(1_500, 2_200, 220, 0.1, "0.2", "At 5 % wrong nothing of arXiv can be filed, so 20 % is asked for."),
}


class Texts(NamedTuple):
    """Texts in order of arrival: counts of terms, and labels."""

    counts: Any
    labels: list[frozenset[str]]

    def rows(self, rows: Any) -> Texts:
        """Return some texts."""
        return Texts(self.counts[rows], [self.labels[k] for k in rows])


class Model(NamedTuple):
    """A frozen classifier: its probabilities of all texts, and the most labels that a training text has."""

    names: tuple[str, ...]
    probabilities: Any
    most: int

    def evidence(self, rows: Any, labels: list[frozenset[str]]) -> Evidence:
        """Return what a policy is calibrated on."""
        return Evidence(self.probabilities[rows], labels)


class Generation0(NamedTuple):
    """The first model, its policy, the rows of its held-out parts, and its number of training texts."""

    model: Model
    policy: FilingPolicy
    filing: list[int]
    lists: list[int]
    n_training: int


@functools.cache
def load(name: str) -> Texts:
    if name == "reuters":
        corpus = corpora.load(name, parts="own")
    else:
        path = Path(os.environ.get("SURELABEL_DATA", "data")) / "arxiv2025.jsonl.gz"
        corpus = corpora.load(str(path), text=("title", "text"), parts="own")
    counts = HashingVectorizer(n_features=2**16, alternate_sign=False, norm=None, dtype=np.float32)
    return Texts(counts.transform(corpus.texts), corpus.label_sets)


def arriving(name: str, order: str, rng: np.random.Generator) -> Texts:
    """Return the texts of a run in their order; the first ones are shuffled, so generation 0 is an ordinary model."""
    plan, everything = PLANS[name], load(name)
    n_texts = plan.start + WINDOWS * plan.window
    rows = rng.permutation(len(everything.labels))[:n_texts]
    if order == "drifting":
        rows = np.sort(rows)[np.argsort(np.arange(n_texts) + rng.normal(0, n_texts / 100, n_texts))]
    return everything.rows(np.concatenate([rng.permutation(rows[: plan.start]), rows[plan.start :]]))


def train(features: Any, training: dict[int, frozenset[str]], seed: int) -> Model:
    """Fit with the labels that people gave, and predict all texts."""
    rows = sorted(training)
    names = tuple(sorted({name for row in rows for name in training[row]}))
    labels = np.array([[name in training[row] for name in names] for row in rows])
    scores = fit_scores(features[rows], labels, Candidate("logistic", 8.0), seed)
    return Model(names, expit(scores(features)), max(1, int(labels.sum(axis=1).max())))


def calibrate(model: Model, filing: Evidence, lists: Evidence, plan: Plan) -> FilingPolicy:
    policy = FilingPolicy(plan.max_wrong, max_missed=MAX_MISSED, max_labels=model.most, label_names=model.names)
    return policy.calibrate(filing, lists)


def join(one: Evidence, other: Evidence) -> Evidence:
    return Evidence(np.concatenate([one.probabilities, other.probabilities]), [*one.labels, *other.labels])


def divide(model: Model, audits: list[int], truth: list[frozenset[str]], plan: Plan) -> tuple[Evidence, Evidence]:
    """Return audits for the filing rule, and those behind them up to the number of unfiled texts that lists need."""
    needed = audits_needed(MAX_MISSED, plan.max_wrong)
    first, rest = audits[: needed.filing], audits[needed.filing :]
    filing, lists = (model.evidence(rows, [truth[row] for row in rows]) for rows in (first, rest))
    filed = calibrate(model, filing, lists, plan).file(lists.probabilities)
    enough = np.flatnonzero(np.cumsum(~filed) == needed.lists)
    n_used = int(enough[0]) + 1 if len(enough) else len(rest)
    return filing, model.evidence(rest[:n_used], [truth[row] for row in rest[:n_used]])


def guess(model: Model, policy: FilingPolicy, rows: Any) -> list[frozenset[str]]:
    labels = policy.automation.predict(model.probabilities[rows]).labels
    return [frozenset(model.names[k] for k in np.flatnonzero(row)) for row in labels]


def measure(model: Model, policy: FilingPolicy, rows: Any, truth: list[frozenset[str]]) -> dict[str, Any]:
    """Measure a generation on a window that it serves."""
    rows = np.asarray(rows)
    filed = policy.file(model.probabilities[rows])
    guesses = guess(model, policy, rows)
    true = [truth[row] for row in rows]
    wrong = np.array([one != other for one, other in zip(guesses, true, strict=True)])
    seen = np.flatnonzero(~filed)
    considered = policy.tag_bounds.predict(model.probabilities[rows[seen]]).consider if len(seen) else []
    missed = []
    for k, consider in zip(seen, considered, strict=True):
        names = {model.names[column] for column in np.flatnonzero(consider)}
        missed.append(len(true[k] - names) / len(true[k]) if true[k] else 0.0)
    hits = sum(len(one & other) for one, other in zip(guesses, true, strict=True))
    return {
        "filed": float(filed.mean()),
        "filed_wrong": float(wrong[filed].mean()) if filed.any() else None,
        "missed": float(np.mean(missed)) if missed else None,
        "tags": float(np.mean([row.sum() for row in considered])) if len(seen) else None,
        "f1": 2 * hits / (sum(map(len, guesses)) + sum(map(len, true))),
    }


def choose(model: Model, pending: Any, plan: Plan, variant: str, rng: np.random.Generator) -> list[int]:
    """Return the texts of a window that people decide."""
    if variant == "main":
        return sorted(rng.permutation(pending)[: plan.decided].tolist())
    values = model.probabilities[pending]
    order = np.argsort(-np.minimum(values, 1 - values).sum(axis=1), kind="stable")
    lengths = np.linalg.norm(values, axis=1) + 1e-12
    taken: list[int] = []
    for k in order:  # a text whose probabilities are nearly those of a chosen one teaches nothing new
        if len(taken) == plan.decided:
            break
        if not taken or np.max(values[taken] @ values[k] / (lengths[taken] * lengths[k])) < 0.999:
            taken.append(int(k))
    return sorted(pending[taken].tolist())


def simulate(
    features: Any, truth: list[frozenset[str]], plan: Plan, seed: int, variant: str, first: Generation0
) -> Iterator[dict[str, Any]]:
    """Yield the figures of each generation on the window that it serves."""
    rng = np.random.default_rng([seed, 7])  # the same coins for both variants
    model, policy = first.model, first.policy
    decided = {row: truth[row] for row in range(first.n_training)}
    pending_model: Model | None = None
    for window in range(WINDOWS):
        rows = np.arange(plan.window) + plan.start + window * plan.window
        yield {"variant": variant, "generation": max(0, window - 1), **measure(model, policy, rows, truth)}
        if window == WINDOWS - 1:
            return
        audits = rows[rng.random(len(rows)) < plan.share].tolist()
        others = np.setdiff1d(rows, audits)
        seen = others[~policy.file(model.probabilities[others])]
        reviewed = choose(model, seen, plan, variant, rng)
        shown = guess(model, policy, np.array(reviewed)) if reviewed else []
        labels = {
            row: one if one != truth[row] and rng.random() < FOLLOW else truth[row]
            for row, one in zip(reviewed, shown, strict=True)
        }
        frozen = pending_model
        decided |= {**labels, **{row: truth[row] for row in audits}}
        if window < WINDOWS - 2:
            pending_model = train(features, decided, seed)
        if frozen is None:
            continue
        model = frozen
        filing, lists = divide(model, audits, truth, plan)
        policy = calibrate(model, filing, lists, plan)
        if variant == "main":
            half = len(reviewed) // 2
            more = {
                "b": [[(row, labels[row]) for row in part] for part in (reviewed[:half], reviewed[half:])],
                "d": [[(row, truth[row]) for row in part] for part in (first.filing, first.lists)],
            }
            for name, parts in more.items():
                added = [model.evidence([row for row, _ in part], [one for _, one in part]) for part in parts]
                other = calibrate(model, join(filing, added[0]), join(lists, added[1]), plan)
                yield {"variant": name, "generation": window, **measure(model, other, rows + plan.window, truth)}


def run(name: str, order: str, seed: int) -> list[dict[str, Any]]:
    plan = PLANS[name]
    texts = arriving(name, order, np.random.default_rng([seed, ORDERS.index(order)]))
    truth = texts.labels
    weights = TfidfTransformer(sublinear_tf=True).fit(texts.counts[: plan.start])
    features = scipy.sparse.csr_array(weights.transform(texts.counts).astype(np.float32))
    n_held = plan.start // 6
    n_training = plan.start - 2 * n_held
    filing = list(range(n_training, n_training + n_held))
    lists = list(range(n_training + n_held, plan.start))
    model = train(features, {row: truth[row] for row in range(n_training)}, seed)
    parts = [model.evidence(rows, [truth[row] for row in rows]) for rows in (filing, lists)]
    first = Generation0(model, calibrate(model, *parts, plan), filing, lists, n_training)
    figures = [
        one for variant in ("main", "uncertain") for one in simulate(features, truth, plan, seed, variant, first)
    ]
    last = np.arange(plan.window) + plan.start + (WINDOWS - 1) * plan.window
    return [*figures, {"variant": "a", "generation": 0, **measure(model, first.policy, last, truth)}]


def mean_and_error(values: list[float]) -> dict[str, Any]:
    error = float(np.std(values, ddof=1)) / math.sqrt(len(values)) if len(values) > 1 else math.nan
    return {"mean": round(float(np.mean(values)), 4), "error": round(error, 4), "n": len(values)}


def summarise(work: Path, seeds: int) -> dict[str, Any]:
    """Return means over seeds with standard errors; `over` names figures three errors above their level."""
    groups: dict[tuple[str, str, str, int], list[dict[str, Any]]] = {}
    for name in PLANS:
        for order in ORDERS:
            for seed in range(seeds):
                path = work / f"{name}-{order}-{seed}.json"
                for one in json.loads(path.read_text(encoding="utf-8")):
                    groups.setdefault((name, order, one["variant"], one["generation"]), []).append(one)
    rows = []
    for (name, order, variant, generation), found in groups.items():
        row: dict[str, Any] = {"corpus": name, "order": order, "variant": variant, "generation": generation}
        values = {figure: [one[figure] for one in found if one[figure] is not None] for figure in FIGURES}
        row |= {figure: mean_and_error(some) if some else None for figure, some in values.items()}
        levels = {"filed_wrong": float(PLANS[name].max_wrong), "missed": float(MAX_MISSED)}
        row["over"] = [
            figure
            for figure, level in levels.items()
            if row[figure] and row[figure]["mean"] > level + 3 * row[figure]["error"]
        ]
        rows.append(row)
    settings = {name: plan._asdict() for name, plan in PLANS.items()}
    return {"settings": {"seeds": seeds, "follow": FOLLOW, "max_missed": MAX_MISSED, **settings}, "figures": rows}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("results/learn.json"))
    parser.add_argument("--work", type=Path, default=Path("build/learn"), help="folder of finished runs")
    parser.add_argument("--seeds", type=int, default=20)
    given = parser.parse_args()
    warnings.simplefilter("ignore", SurelabelWarning)
    given.work.mkdir(parents=True, exist_ok=True)
    for seed in range(given.seeds):
        for name in PLANS:
            for order in ORDERS:
                path = given.work / f"{name}-{order}-{seed}.json"
                if path.exists():
                    continue
                began = time.process_time()
                figures = run(name, order, seed)
                with atomic_file(path) as file:
                    json.dump(figures, file)
                print(f"{name} {order} {seed}: {time.process_time() - began:.0f} s of processor time", flush=True)
    with atomic_file(given.out) as file:
        json.dump(summarise(given.work, given.seeds), file, indent=1)


if __name__ == "__main__":
    main()
