"""What label pairs as a tree-structured energy would win over refined log-odds, on held-out folds of validation texts.

P(Y | text) is proportional to the product of refined probabilities times exp(sum over edges of theta_ij y_i y_j): edges
are a spanning tree of the strongest correlations of training labels, so the normaliser is exact. There is no engine for
it: sizes are estimated, N = E[exp(score) 1(score <= threshold)] over label-sets drawn from the model. Mixtures count
what is not listed. Writes results/label_pairs.json. Give corpora and files of probabilities:

    python benchmarks/label_pairs.py debian-czech=runs/debian-czech-linear-conformal-seed0/probabilities.npz
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import minimize
from scipy.sparse.csgraph import minimum_spanning_tree
from scipy.special import expit

from surelabel import Mixture, corpora
from surelabel._core.storage import atomic_file
from surelabel.choosing.likelihood import Likelihood, likeliest
from surelabel.measures.odds import RefinedLogLoss, RefinedOdds
from surelabel.probabilities_file import Probabilities

LEVELS = (0.01, 0.05, 0.1)
_MOST_TEXTS, _FITTED_ON, _SIZED, _SAMPLES, _STEPS = 2000, 600, 60, 4000, 40
# Of offsets, and of the weights of pairs.
_RIDGES = (1.0, 3.0)
_SETTINGS = ("weight", "temperature", "prior", "discount")


class Tree(NamedTuple):
    """Edges (m, 2); labels in an order that has parents first; parent and edge of each label, -1 for a root."""

    edges: Any
    order: Any
    parents: Any
    edge_of: Any

    @classmethod
    def of(cls, labels: Any) -> Tree:
        """Span the strongest correlations of labels (n, d); those of rare labels count less."""
        n_labels, counts = labels.shape[1], labels.sum(axis=0)
        rest, spread = labels - labels.mean(axis=0), labels.var(axis=0) + 1e-4
        strength = np.abs(rest.T @ rest / len(labels)) / np.sqrt(np.outer(spread, spread))
        strength *= np.minimum(1.0, np.sqrt((np.minimum.outer(counts, counts) + 1.0) / 20.0))
        spanned = minimum_spanning_tree(-np.triu(strength + 1e-9, 1)).tocoo()
        edges = np.column_stack([spanned.row, spanned.col]).astype(int)
        near: list[list[tuple[int, int]]] = [[] for _ in range(n_labels)]
        for edge, (one, other) in enumerate(edges.tolist()):
            near[one].append((other, edge))
            near[other].append((one, edge))
        parents, edge_of, order, waiting = np.full(n_labels, -1), np.full(n_labels, -1), [], [0]
        while waiting:
            label = waiting.pop()
            order.append(label)
            for other, edge in near[label]:
                if other != parents[label]:
                    parents[other], edge_of[other] = label, edge
                    waiting.append(other)
        return cls(edges, np.array(order), parents, edge_of)

    def messages(self, odds: Any, pairs: Any) -> tuple[Any, Any, Any]:
        """Return log-sums (n, d) of what is below each label, without and with it, and log-normalisers (n,)."""
        without, having = np.zeros_like(odds), odds.copy()
        for label in self.order[:0:-1]:
            parent = self.parents[label]
            without[:, parent] += np.logaddexp(without[:, label], having[:, label])
            having[:, parent] += np.logaddexp(without[:, label], having[:, label] + pairs[self.edge_of[label]])
        root = self.order[0]
        return without, having, np.logaddexp(without[:, root], having[:, root])

    def energies(self, odds: Any, pairs: Any, labels: Any) -> Any:
        """Return the logarithms (n, m) of label-sets' (m, d) weights."""
        return odds @ labels.T + (labels[:, self.edges[:, 0]] * labels[:, self.edges[:, 1]]) @ pairs

    def fit(self, odds: Any, labels: Any) -> tuple[Any, Any]:
        """Return offsets (d,) and weights of pairs (m,) by penalised likelihood."""
        n_labels = odds.shape[1]
        both = labels[:, self.edges[:, 0]] * labels[:, self.edges[:, 1]]

        def loss(place: Any) -> tuple[float, Any]:
            offsets, pairs = place[:n_labels], place[n_labels:]
            without, having, normaliser = self.messages(odds + offsets, pairs)
            shares, joint = np.zeros_like(odds), np.zeros_like(both)
            shares[:, self.order[0]] = expit(having[:, self.order[0]] - without[:, self.order[0]])
            for label in self.order[1:]:
                edge, parent = self.edge_of[label], shares[:, self.parents[label]]
                gap = having[:, label] - without[:, label]
                joint[:, edge] = parent * expit(gap + pairs[edge])
                shares[:, label] = (1.0 - parent) * expit(gap) + joint[:, edge]
            summed = normaliser.sum() - ((odds + offsets) * labels).sum() - (both @ pairs).sum()
            slopes = (shares - labels).sum(axis=0), (joint - both).sum(axis=0)
            ridged = _RIDGES[0] * (offsets**2).sum() + _RIDGES[1] * (pairs**2).sum()
            return summed + ridged, np.concatenate(
                [slopes[0] + 2 * _RIDGES[0] * offsets, slopes[1] + 2 * _RIDGES[1] * pairs]
            )

        start = np.zeros(n_labels + len(self.edges))
        solved = minimize(loss, start, jac=True, method="L-BFGS-B", options={"maxiter": _STEPS}).x
        return solved[:n_labels], solved[n_labels:]

    def drawn(self, odds: Any, pairs: Any, rng: np.random.Generator) -> tuple[Any, Any]:
        """Draw label-sets for each text; return their scores (n, samples) and numbers of labels."""
        without, having, normaliser = self.messages(odds, pairs)
        labels = np.zeros((len(odds), _SAMPLES, odds.shape[1]), dtype=bool)
        energy = np.zeros(labels.shape[:2])
        for label in self.order:
            gap = np.repeat((having[:, label] - without[:, label])[:, None], _SAMPLES, axis=1)
            more = 0.0
            if self.parents[label] >= 0:
                more = pairs[self.edge_of[label]] * labels[:, :, self.parents[label]]
            labels[:, :, label] = rng.random(gap.shape) < expit(gap + more)
            energy += labels[:, :, label] * (odds[:, label][:, None] + more)
        return normaliser[:, None] - energy, labels.sum(axis=2)


def _listed_rows(measure: Mixture) -> Any:
    """Return the listed label-sets as 0/1 rows."""
    tree = measure.tree
    rows = np.zeros((len(tree.parents), measure.n_labels))
    rows[np.repeat(np.arange(len(rows)), np.diff(tree.starts)), tree.labels] = 1.0
    return rows[tree.counts > 0.0]


class _Fold:
    """What is fitted on other folds, and scores of the held-out texts by model."""

    def __init__(self, given: Any, own: Any, others: Any, rows: Any, seen: Mixture, tree: Tree) -> None:
        refined = RefinedLogLoss(1e-6, RefinedOdds.of(given[others], own[others]))
        absent, present = refined.costs(given)
        odds, labels = absent - present, own.astype(float)
        rng, none = np.random.default_rng(1), np.zeros(len(tree.edges))
        offsets, pairs = tree.fit(odds[others], labels[others])
        measure = seen.reweighted(odds=refined.odds)
        listed = _listed_rows(measure)
        self.scores: dict[str, Any] = {}
        self.drawn: dict[str, Any] = {}
        self.shifts: dict[str, float] = {}
        for name, moved, weights in (("refined", odds, none), ("tree", odds + offsets, pairs)):

            def likelihood(which: Any, moved: Any = moved, weights: Any = weights) -> Likelihood:
                made = Likelihood(measure, given[which], own[which])
                normaliser = tree.messages(moved[which], weights)[2]
                made._sums = normaliser[:, None] - tree.energies(moved[which], weights, listed)
                together = labels[which][:, tree.edges[:, 0]] * labels[which][:, tree.edges[:, 1]]
                made.plain_losses = normaliser - (moved[which] * labels[which]).sum(axis=1) - together @ weights
                return made

            _, place = likeliest([likelihood(others[:_FITTED_ON])], _SETTINGS)
            held_out = likelihood(rows)
            self.scores |= {name: held_out.plain_losses, f"{name}, mixture": held_out.losses(place, ())[0]}
            self.drawn |= dict.fromkeys((name, f"{name}, mixture"), tree.drawn(moved[rows[:_SIZED]], weights, rng))
            self.shifts |= {name: 0.0, f"{name}, mixture": float(np.log(expit(-place["weight"])))}


def measure_corpus(name: str, file: Path) -> dict[str, Any]:
    """Return held-out losses and estimated sizes by model."""
    parts = Probabilities.load(file)
    validation = parts.parts["validation"]
    dense = [
        np.asarray(labels.toarray() if hasattr(labels, "toarray") else labels, dtype=bool)
        for labels in (corpora.load(name, seed=0).part("train").labels, validation.labels[:_MOST_TEXTS])
    ]
    given, own = validation.probabilities[:_MOST_TEXTS], dense[1]
    seen, tree = Mixture().fit(dense[0]), Tree.of(dense[0].astype(float))
    order = np.random.default_rng(0).permutation(len(given))
    folds = [_Fold(given, own, np.setdiff1d(order, rows), rows, seen, tree) for rows in np.array_split(order, 3)]
    models = {}
    for model in folds[0].scores:
        scores = np.concatenate([fold.scores[model] for fold in folds])
        sizes = {}
        for level in LEVELS:
            threshold, counted = np.quantile(scores, 1.0 - level), []
            for fold in folds:
                drawn, numbers = fold.drawn[model]
                inside = (drawn <= threshold + fold.shifts[model]) & (numbers >= 1) & (numbers <= parts.max_labels)
                counted.append((np.exp(drawn) * inside).mean(axis=1))
            sizes[str(level)] = float(np.concatenate(counted).mean())
        models[model] = {"mean_score": float(scores.mean()), "estimated_mean_n": sizes}
    return {"n_labels": int(own.shape[1]), "n_texts": len(own), "models": models}


def main() -> None:
    """Read arguments, measure, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sources", nargs="+", metavar="CORPUS=FILE")
    parser.add_argument("--out", type=Path, default=Path("results/label_pairs.json"))
    arguments = parser.parse_args()
    document: dict[str, Any] = {"format": "surelabel-label-pairs-1", "corpora": {}}
    for source in arguments.sources:
        name, file = source.split("=", 1)
        document["corpora"][name] = measure_corpus(name, Path(file))
        with atomic_file(arguments.out) as temporary:
            temporary.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
