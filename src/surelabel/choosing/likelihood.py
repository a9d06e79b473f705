"""The likelihood of texts' label-sets under a mixture, and its slopes: what the search for settings goes by.

Sums of costs of listed label-sets do not depend on the settings that are searched for, so they are worked out once per
text. What remains for each setting is one softmax per text.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from scipy.sparse import csr_array
from scipy.special import expit, log_expit

from surelabel._core.validation import FloatArray
from surelabel.labels.sparse import is_sparse
from surelabel.measures.mixture import Mixture, MixtureState

# Where the search for settings starts, and how far it goes; weight by its log-odds, temperature and neighbours by their
# logarithms.
_MOVES: Mapping[str, tuple[float, float, float]] = {
    "weight": (1.5, -3.0, 6.0),
    "temperature": (math.log(0.7), math.log(0.1), math.log(1.5)),
    "prior": (0.4, 0.0, 1.5),
    "discount": (0.2, 0.0, 1.5),
    "cardinality": (0.3, 0.0, 3.0),
    "neighbours": (math.log(0.1), math.log(0.01), math.log(3.0)),
}
_LOGARITHMS = ("temperature", "neighbours")
# Steps of the search at most, and the smallest share of the loss that is worth another.
_STEPS, _SMALLEST_GAIN = 60, 1e-6


class Likelihood:
    """Losses of texts under mixtures that differ in settings, with the label-sets and the log-odds of one of them.

    The measure is fitted; its `neighbours` above 0 list label-sets one label away too.
    """

    def __init__(self, measure: Mixture, probabilities: Any, labels: Any) -> None:
        tree = measure.tree
        is_listed = (tree.counts > 0.0) | (tree.shares > 0.0)
        columns = np.cumsum(is_listed) - 1
        nodes = measure.nodes_of(labels)
        self.plain_losses = measure.product_losses(probabilities, labels)
        self._rows = np.flatnonzero(nodes >= 0)
        self._columns = columns[nodes[self._rows]]
        self._sums = _sums_of_costs(measure, probabilities)[:, is_listed]
        self._terms = np.empty_like(self._sums)
        self._counts, self._shares, self._log_odds = (
            values[is_listed] for values in (tree.counts, tree.shares, tree.log_odds)
        )
        self._sizes = np.diff(tree.starts)[is_listed].astype(np.float64)

    def losses(self, place: Mapping[str, float], names: Sequence[str]) -> tuple[FloatArray, FloatArray]:
        """Return minus the log-likelihood of each text's label-set (n,), and the slopes of their mean by `names`."""
        temperature, near = math.exp(place["temperature"]), 0.0
        if "neighbours" in place:
            near = math.exp(place["neighbours"])
        prior, texts = place.get("prior", 0.0), self._counts + near * self._shares
        by_setting = {
            "prior": np.log(texts),
            "discount": -self._log_odds,
            "cardinality": -self._sizes,
            "neighbours": prior * near * self._shares / texts,
        }
        log_prior = sum(place.get(name, 0.0) * by_setting[name] for name in ("prior", "discount", "cardinality"))
        sums, terms, rows, columns = self._sums, self._terms, self._rows, self._columns
        np.multiply(sums, -temperature, out=terms)
        terms += log_prior
        own_terms, largest = terms[rows, columns], terms.max(axis=1, keepdims=True)
        terms -= largest
        np.exp(terms, out=terms)
        totals = terms.sum(axis=1)
        log_q = np.full(len(sums), -np.inf)
        log_q[rows] = own_terms - largest[rows, 0] - np.log(totals[rows])
        losses = -np.logaddexp(log_expit(-place["weight"]) - self.plain_losses, log_expit(place["weight"]) + log_q)
        # How much of a text's likelihood is its label-set's term of the softmax.
        share = np.exp(log_expit(place["weight"]) + log_q + losses)
        slopes = {"weight": expit(place["weight"]) - share}
        for name in names:
            if name == "temperature":
                expected, own = temperature * np.einsum("ij,ij->i", terms, sums), temperature * sums[rows, columns]
                slopes[name] = share * _spread(own - expected[rows] / totals[rows], rows, len(sums))
            elif name != "weight":
                expected, own = terms @ by_setting[name], by_setting[name][columns]
                slopes[name] = -share * _spread(own - expected[rows] / totals[rows], rows, len(sums))
        return losses, np.array([slopes[name].mean() for name in names])


def _spread(values: FloatArray, rows: Any, n_rows: int) -> FloatArray:
    """Return values (n,) at their rows, 0 elsewhere."""
    spread = np.zeros(n_rows)
    spread[rows] = values
    return spread


def _sums_of_costs(measure: Mixture, probabilities: Any) -> FloatArray:
    """Return the sums of costs of all nodes, (n, N), in plain arithmetic."""
    if measure.hubs is not None and not isinstance(measure, MixtureState):
        sums = np.empty((len(probabilities), len(measure.tree.parents)))
        for state in measure.states:
            inside = state.in_state
            sums[:, inside] = _sums_of_costs(state, probabilities)[:, inside]
        return sums
    tree, texts = measure.tree, measure.texts(probabilities)
    n_labels, n_nodes = measure.n_labels, len(tree.parents)
    members = csr_array((np.ones(len(tree.labels)), tree.labels, tree.starts), shape=(n_nodes, n_labels))
    if not is_sparse(probabilities):
        gains = texts.present - texts.absent
        return np.ascontiguousarray((members @ gains.T).T + texts.absent.sum(axis=1)[:, None])
    n_texts, by_default = len(probabilities), texts.group[1] - texts.group[0]
    shape, starts = (n_texts, n_labels), texts.starts
    absent = csr_array((texts.absent[0, :-1] - texts.group[0], texts.labels, starts), shape=shape)
    changes = csr_array((texts.present[0, :-1] - texts.absent[0, :-1] - by_default, texts.labels, starts), shape=shape)
    base = np.asarray(absent.sum(axis=1)) + n_labels * texts.group[0]
    return np.asarray((changes @ members.T).toarray() + by_default * np.diff(tree.starts) + base[:, None])


def likeliest(likelihoods: Sequence[Likelihood], names: Sequence[str]) -> tuple[dict[str, float], dict[str, float]]:
    """Return the settings under which texts are likeliest, 0 if `names` leave them out, and where the search ended."""
    from scipy.optimize import minimize  # noqa: PLC0415 (slow to import, and only those who choose need it)

    moves = [_MOVES[name] for name in names]

    def loss(place: FloatArray) -> tuple[float, FloatArray]:
        at = dict(zip(names, place.tolist(), strict=True))
        parts = [likelihood.losses(at, names) for likelihood in likelihoods]
        n_texts = sum(len(losses) for losses, _ in parts)
        summed = sum(len(losses) * slopes for losses, slopes in parts)
        return float(sum(losses.sum() for losses, _ in parts)) / n_texts, np.asarray(summed / n_texts)

    solved = minimize(
        loss,
        [first for first, _, _ in moves],
        jac=True,
        method="L-BFGS-B",
        bounds=[(least, most) for _, least, most in moves],
        options={"maxiter": _STEPS, "ftol": _SMALLEST_GAIN},
    )
    place = dict(zip(names, solved.x.tolist(), strict=True))
    settings = dict.fromkeys(_MOVES, 0.0) | place
    settings["weight"] = float(expit(settings["weight"]))
    settings |= {name: math.exp(place[name]) for name in _LOGARITHMS if name in place}
    # Three digits: more say nothing.
    return {name: float(f"{value:.3g}") for name, value in settings.items()}, place
