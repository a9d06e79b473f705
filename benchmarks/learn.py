"""Generations that learn from a review: errors of lists and of filing, and what learning is worth.

    python benchmarks/learn.py run reuters reuters --out results/learn --seeds 20
    python benchmarks/learn.py run arxiv arxiv2025.jsonl.gz --text title --text abstract --out results/learn
    python benchmarks/learn.py table results/learn > results/tables/learn.md

A simulation of `surelabel.review.learn` with the labels of a corpus. Generation 0 is trained on the first texts. The
others arrive in windows. A coin sends a tenth of them to the blind check; people decide some of those that the serving
generation does not file. At the end of each window the next generation learns from everything decided so far; the
audits of the window after that calibrate it, and it serves the window after those, on which it is measured.

Where people see a wrong best guess, they accept it with probability `--follow`: people follow suggestions.

Orders: "random" shuffles the corpus; "drifting" keeps its own order (by time, for Reuters and arXiv), with a little
noise so that seeds differ. Beside the main rule (random texts are decided, audits calibrate) there are

a  never learning: generation 0 serves to the end;
b  decided texts calibrate as well as audits (wrong: people follow suggestions, and the model chose the texts);
c  people decide the most uncertain texts first, near-duplicates set apart;
d  the old held-out texts calibrate as well as audits (a quick start).

A run is one seed and one order; finished runs are skipped.
"""

from __future__ import annotations

import argparse
import json
import math
import warnings
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
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
from surelabel.text.solver import Candidate, fit_scores

ORDERS = ("random", "drifting")
WINDOWS = 7  # two before the first new generation serves, then one for each of five


class Plan(NamedTuple):
    """What a simulation is about."""

    corpus: str
    source: str
    path: str | None
    text: tuple[str, ...]
    start: int
    window: int
    decided: int
    share: float
    filing: int
    lists: int
    follow: float
    max_missed: str
    max_wrong: str


class Texts(NamedTuple):
    """Texts in order of arrival."""

    texts: list[str]
    labels: list[frozenset[str]]

    def rows(self, rows: Any) -> Texts:
        """Return some texts."""
        return Texts([self.texts[k] for k in rows], [self.labels[k] for k in rows])


class Model(NamedTuple):
    """A frozen classifier: its probabilities of all texts, and the most labels that a training text has."""

    names: tuple[str, ...]
    probabilities: Any
    most: int

    def evidence(self, rows: Any, labels: list[frozenset[str]]) -> Evidence:
        """Return what a policy is calibrated on."""
        return Evidence(self.probabilities[rows], labels)


def in_order(all_texts: Texts, plan: Plan, order: str, rng: np.random.Generator) -> Texts:
    n_texts = plan.start + WINDOWS * plan.window
    if len(all_texts.texts) < n_texts:
        raise SystemExit(
            f"{plan.corpus} has {len(all_texts.texts)} texts, fewer than {n_texts}: use a smaller --window."
        )
    if order == "random":
        return all_texts.rows(rng.permutation(len(all_texts.texts))[:n_texts])
    kept = np.sort(rng.permutation(len(all_texts.texts))[:n_texts])
    return all_texts.rows(kept[np.argsort(np.arange(n_texts) + rng.normal(0, n_texts / 100, n_texts))])


def featured(texts: list[str], n_start: int) -> Any:
    """Return TF-IDF features of all texts; the weights of terms are those of the first texts."""
    counts = HashingVectorizer(n_features=2**16, alternate_sign=False, norm=None).transform(texts)
    weighted = TfidfTransformer(sublinear_tf=True).fit(counts[:n_start]).transform(counts)
    return scipy.sparse.csr_array(weighted.astype(np.float32))


def trained(features: Any, training: dict[int, frozenset[str]], seed: int) -> Model:
    """Fit logistic regressions, the core of `linear`, with the labels that people gave, and predict all texts."""
    rows = sorted(training)
    names = tuple(sorted({name for row in rows for name in training[row]}))
    labels = np.array([[name in training[row] for name in names] for row in rows])
    scores = fit_scores(features[rows], labels, Candidate("logistic", 15.0), seed)
    return Model(names, expit(scores(features)), max(1, int(labels.sum(axis=1).max())))


def calibrated(model: Model, filing: Evidence, lists: Evidence, plan: Plan) -> FilingPolicy:
    policy = FilingPolicy(
        max_wrong=plan.max_wrong, max_missed=plan.max_missed, max_labels=model.most, label_names=model.names
    )
    return policy.calibrate(filing, lists)


def joined(one: Evidence, other: Evidence) -> Evidence:
    return Evidence(
        np.concatenate([one.probabilities, other.probabilities]),
        [*one.labels, *other.labels],
    )


def divided(model: Model, audits: list[int], truth: list[frozenset[str]], plan: Plan) -> tuple[Evidence, Evidence]:
    """Return audits for the filing rule, and those behind them up to the number of unfiled texts that lists need."""
    first, rest = audits[: plan.filing], audits[plan.filing :]
    filing, lists = (model.evidence(rows, [truth[row] for row in rows]) for rows in (first, rest))
    filed = calibrated(model, filing, lists, plan).file(lists.probabilities)
    enough = np.flatnonzero(np.cumsum(~filed) == plan.lists)
    n_used = int(enough[0]) + 1 if len(enough) else len(rest)
    return filing, model.evidence(rest[:n_used], [truth[row] for row in rest[:n_used]])


def guesses(model: Model, policy: FilingPolicy, rows: Any) -> list[frozenset[str]]:
    labels = policy.automation.predict(model.probabilities[rows]).labels
    return [frozenset(model.names[k] for k in np.flatnonzero(row)) for row in labels]


def measured(model: Model, policy: FilingPolicy, rows: Any, truth: list[frozenset[str]]) -> dict[str, Any]:
    """Measure a generation on a window that it serves."""
    rows = np.asarray(rows)
    filed = policy.file(model.probabilities[rows])
    guess = guesses(model, policy, rows)
    true = [truth[row] for row in rows]
    wrong = np.array([one != other for one, other in zip(guess, true, strict=True)])
    seen = np.flatnonzero(~filed)
    considered = policy.tag_bounds.predict(model.probabilities[rows[seen]]).consider if len(seen) else []
    missed = []
    for k, consider in zip(seen, considered, strict=True):
        names = {model.names[column] for column in np.flatnonzero(consider)}
        missed.append(len(true[k] - names) / len(true[k]) if true[k] else 0.0)
    hits = sum(len(one & other) for one, other in zip(guess, true, strict=True))
    return {
        "n": len(rows),
        "filed": float(filed.mean()),
        "filed_wrong": float(wrong[filed].mean()) if filed.any() else None,
        "missed": float(np.mean(missed)) if missed else None,
        "tags": float(np.mean([row.sum() for row in considered])) if len(seen) else None,
        "f1": 2 * hits / (sum(map(len, guess)) + sum(map(len, true))),
    }


def chosen(model: Model, waiting: Any, plan: Plan, rule: str, rng: np.random.Generator) -> list[int]:
    """Return the texts of a window that people decide."""
    waiting = np.asarray(waiting)
    if rule == "random":
        return sorted(rng.permutation(waiting)[: plan.decided].tolist())
    values = model.probabilities[waiting]
    order = np.argsort(-np.minimum(values, 1 - values).sum(axis=1), kind="stable")
    lengths = np.linalg.norm(values, axis=1) + 1e-12
    taken: list[int] = []
    for k in order:  # a text whose probabilities are nearly those of a chosen one teaches nothing new
        if len(taken) == plan.decided:
            break
        recent = taken[-200:]
        if not recent or np.max(values[recent] @ values[k] / (lengths[recent] * lengths[k])) < 0.999:
            taken.append(int(k))
    return sorted(waiting[taken].tolist())


def simulate(
    data: Texts,
    features: Any,
    plan: Plan,
    seed: int,
    rng: np.random.Generator,
    rule: str,
    gen0: tuple[Model, FilingPolicy, Any],
) -> Iterator[dict[str, Any]]:
    """Yield the figures of each generation on the window that it serves."""
    truth = data.labels
    model, policy, (old_filing, old_lists, n_training) = gen0
    decided: dict[int, frozenset[str]] = {row: truth[row] for row in range(n_training)}
    waiting_model: Model | None = None
    for window in range(WINDOWS):
        rows = np.arange(plan.window) + plan.start + window * plan.window
        yield {"generation": max(0, window - 1), "window": window, **measured(model, policy, rows, truth)}
        audits = rows[rng.random(len(rows)) < plan.share].tolist()
        others = np.setdiff1d(rows, audits)
        seen = others[~policy.file(model.probabilities[others])]
        reviewed = chosen(model, seen, plan, rule, rng)
        shown = guesses(model, policy, np.array(reviewed)) if reviewed else []
        labels = {
            row: guess if guess != truth[row] and rng.random() < plan.follow else truth[row]
            for row, guess in zip(reviewed, shown, strict=True)
        }
        frozen = waiting_model
        if window < WINDOWS - 1:
            known = {**decided, **labels, **{row: truth[row] for row in audits}}
            waiting_model = trained(features, known, seed)
            decided = known
        if frozen is None or window == WINDOWS - 1:
            continue
        model = frozen
        filing, lists = divided(model, audits, truth, plan)
        policy = calibrated(model, filing, lists, plan)
        following = rows + plan.window
        if rule == "random":
            half = len(reviewed) // 2
            parts = (model.evidence(some, [labels[row] for row in some]) for some in (reviewed[:half], reviewed[half:]))
            b = calibrated(model, joined(filing, next(parts)), joined(lists, next(parts)), plan)
            d = calibrated(
                model,
                joined(filing, model.evidence(old_filing, [truth[row] for row in old_filing])),
                joined(lists, model.evidence(old_lists, [truth[row] for row in old_lists])),
                plan,
            )
            for name, other in (("b", b), ("d", d)):
                yield {"variant": name, "generation": window, "window": window + 1} | measured(
                    model, other, following, truth
                )


def run(job: tuple[Plan, str, int, Path]) -> str:
    plan, order, seed, path = job
    warnings.simplefilter("ignore", SurelabelWarning)
    rng = np.random.default_rng([seed, ORDERS.index(order)])
    data = in_order(loaded(plan), plan, order, rng)
    n_held = plan.start // 6
    n_training = plan.start - 2 * n_held
    # The first texts in random order: generation 0 is an ordinary model.
    first = data.rows(rng.permutation(plan.start))
    data = Texts([*first.texts, *data.texts[plan.start :]], [*first.labels, *data.labels[plan.start :]])
    features = featured(data.texts, plan.start)
    model = trained(features, {row: data.labels[row] for row in range(n_training)}, seed)
    old_filing = list(range(n_training, n_training + n_held))
    old_lists = list(range(n_training + n_held, plan.start))
    policy = calibrated(
        model,
        model.evidence(old_filing, [data.labels[row] for row in old_filing]),
        model.evidence(old_lists, [data.labels[row] for row in old_lists]),
        plan,
    )
    gen0 = model, policy, (old_filing, old_lists, n_training)
    result: dict[str, Any] = {"plan": plan._asdict(), "order": order, "seed": seed, "figures": []}
    for rule in ("random", "uncertain"):
        same = np.random.default_rng([seed, ORDERS.index(order), 7])  # the same coins for both rules
        for figures in simulate(data, features, plan, seed, same, rule, gen0):
            result["figures"].append({"rule": rule, "variant": "main", **figures})
    for window in range(WINDOWS):
        rows = np.arange(plan.window) + plan.start + window * plan.window
        result["figures"].append(
            {"rule": "random", "variant": "a", "generation": 0, "window": window}
            | measured(model, policy, rows, data.labels)
        )
    with atomic_file(path) as file:
        json.dump(result, file)
    return f"{plan.corpus} {order} {seed}"


def loaded(plan: Plan) -> Texts:
    options: dict[str, Any] = {"text": plan.text} if plan.text else {}
    if plan.path is not None:
        options["path"] = plan.path
    corpus = corpora.load(plan.source, parts="own", **options)
    return Texts(list(corpus.texts), corpus.label_sets)


def mean_and_error(values: list[float]) -> tuple[float, float]:
    array = np.array(values)
    error = float(array.std(ddof=1) / math.sqrt(len(array))) if len(array) > 1 else math.nan
    return float(array.mean()), error


def table(folder: Path) -> None:
    """Print the figures of all runs, means over seeds with standard errors."""
    runs = [json.loads(path.read_text(encoding="utf-8")) for path in sorted(folder.glob("*.json"))]
    keys = sorted({(run["plan"]["corpus"], run["order"]) for run in runs})
    print(
        "| corpus | order | texts decided | variant | generation | filed | wrong of filed | missed by lists |"
        " tags | micro-F1 |"
    )
    print("|---|---|---|---|---|---|---|---|---|---|")
    for corpus, order in keys:
        chosen_runs = [run for run in runs if (run["plan"]["corpus"], run["order"]) == (corpus, order)]
        groups: dict[tuple[str, str, int], list[dict[str, Any]]] = {}
        for one in chosen_runs:
            for figures in one["figures"]:
                if figures["variant"] == "a" and figures["window"] < WINDOWS - 1:
                    continue
                if figures["variant"] == "main" and figures["window"] == 0:
                    continue
                groups.setdefault((figures["rule"], figures["variant"], figures["generation"]), []).append(figures)
        levels = {"filed_wrong": float(chosen_runs[0]["plan"]["max_wrong"])}
        levels["missed"] = float(chosen_runs[0]["plan"]["max_missed"])
        for (rule, variant, generation), rows in sorted(groups.items()):
            cells = []
            for name in ("filed", "filed_wrong", "missed", "tags", "f1"):
                values = [row[name] for row in rows if row[name] is not None]
                if not values:
                    cells.append("-")
                    continue
                mean, error = mean_and_error(values)
                over = name in levels and mean > levels[name] + 3 * error
                cells.append(f"{mean:.3f} ± {error:.3f}{' **over**' if over else ''}")
            print(f"| {corpus} | {order} | {rule} | {variant} | {generation} | " + " | ".join(cells) + " |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    running = commands.add_parser("run")
    running.add_argument("corpus", help="name in the tables")
    running.add_argument("source", help="name of a corpus, or a file of texts and labels in order of time")
    running.add_argument("--path", help="where a named corpus lies")
    running.add_argument("--text", action="append", default=[])
    running.add_argument("--out", type=Path, default=Path("results/learn"))
    running.add_argument("--seeds", type=int, default=20)
    running.add_argument("--jobs", type=int, default=1)
    running.add_argument("--start", type=int, default=1_500)
    running.add_argument("--window", type=int, default=5_000)
    running.add_argument("--decided", type=int, default=500, help="texts that people decide in a window")
    running.add_argument("--share", type=float, default=0.1, help="of texts that go to the blind check")
    running.add_argument("--filing", type=int, default=336)
    running.add_argument("--lists", type=int, default=99)
    running.add_argument("--follow", type=float, default=0.5)
    running.add_argument("--max-missed", default="0.1")
    running.add_argument("--max-wrong", default="0.05")
    commands.add_parser("table").add_argument("folder", type=Path)
    arguments = parser.parse_args()
    if arguments.command == "table":
        table(arguments.folder)
        return
    values = {name: getattr(arguments, name) for name in Plan._fields if name != "text"}
    plan = Plan(text=tuple(arguments.text), **values)
    arguments.out.mkdir(parents=True, exist_ok=True)
    jobs = [
        (plan, order, seed, path)
        for seed in range(arguments.seeds)
        for order in ORDERS
        if not (path := arguments.out / f"{plan.corpus}-{order}-{seed}.json").exists()
    ]
    with ProcessPoolExecutor(arguments.jobs) as pool:
        for done in pool.map(run, jobs):
            print(done, flush=True)


if __name__ == "__main__":
    main()
