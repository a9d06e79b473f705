"""A classifier of classifiers: members trained on the same texts, their log-odds combined on validation texts."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from scipy.special import expit, logit

from surelabel._core.files import read_arrays, write_arrays
from surelabel._core.validation import BoolArray, FloatArray
from surelabel.exceptions import DataWarning, InvalidInputError
from surelabel.text.base import (
    History,
    Labelled,
    TextClassifier,
    Within,
    check_arrays,
    make,
    read_files,
    settings,
)
from surelabel.text.curve import fit_regression, log_loss
from surelabel.text.explain import Explanation

_WEIGHTS = "blend.npz"
# Log-odds of members are kept within this.
_FAR = 12.0
# How strongly each label's weights are drawn to those of all labels. Infinity takes these for every label.
_RIDGES = (np.inf, 300.0, 30.0, 3.0)


@settings
class BlendClassifier(TextClassifier):
    """Members of any kinds and seeds, and one small regression on their log-odds.

    The weights are fitted on the validation texts: one for each member and a constant, common to all labels, then drawn
    apart label by label as far as that lowers the log-loss on halves.

    Parameters
    ----------
    of : str
        Kinds of the members, separated by commas. A kind that is repeated learns with the next seed.
    members : dict of dict
        Settings of each kind that differ from its defaults.
    seed : int
        Seed of the first member of each kind.

    Attributes
    ----------
    members_ : tuple of TextClassifier
    """

    kind = "blend"
    needs_validation = True

    of: str = "linear,randinit"
    members: dict[str, dict[str, Any]] | None = None
    seed: Annotated[int, Within(0, 2**31 - 100)] = 0

    def _check_settings(self) -> None:
        super()._check_settings()
        kinds, members = self._kinds(), self.members or {}
        allowed = {"linear", "hybrid", "randinit", "word2vec", "bert"}
        if len(kinds) < 2 or not allowed.issuperset(kinds):
            raise InvalidInputError(
                f"The 'of' setting of the blend classifier must name two or more of {', '.join(sorted(allowed))}, "
                f"separated by commas. Got {self.of!r} instead."
            )
        if not isinstance(members, dict) or set(members) - set(kinds):
            raise InvalidInputError(
                "The 'members' setting of the blend classifier must map kinds that 'of' names to their settings. "
                f"Got {self.members!r} instead."
            )
        self._make_members()

    def _kinds(self) -> list[str]:
        return [kind.strip() for kind in str(self.of).split(",")]

    def _make_members(self) -> list[TextClassifier]:
        """Return unfitted members; a kind that comes again gets the next seed."""
        kinds, own = self._kinds(), self.members or {}
        seeds = [self.seed + kinds[:place].count(kind) for place, kind in enumerate(kinds)]
        return [make(kind, **{"seed": seed, **own.get(kind, {})}) for kind, seed in zip(kinds, seeds, strict=True)]

    def _fit(self, training: Labelled, validation: Labelled | None, work_folder: Path | None) -> History:
        assert validation is not None
        members = self._make_members()
        for place, member in enumerate(members):
            folder = None if work_folder is None else work_folder / f"member-{place}"
            with warnings.catch_warnings(action="ignore", category=DataWarning):  # the blend has warned
                held = (validation.texts, validation.labels)
                member.fit(training.texts, training.labels, self.label_names_, validation=held, work_folder=folder)
        self.members_ = tuple(members)
        odds = self._odds(validation.texts)
        self._weights = fit_weights(odds, validation.labels, self.seed)
        return [{"log_loss": log_loss(one, validation.labels)} for one in (*odds, combine(odds, self._weights))]

    def _odds(self, texts: list[str]) -> list[FloatArray]:
        """Return the log-odds of each member, (n, d) each."""
        probabilities: list[Any] = [member.predict_proba(texts) for member in self.members_]
        return [np.clip(logit(one), -_FAR, _FAR) for one in probabilities]

    def _explain(self, text: str, number: int) -> Explanation:
        parts = [member.explain(text, number) for member in self.members_]
        weights: dict[tuple[int, int], float] = {}
        for factor, part in zip(self._weights[:-1, number].tolist(), parts, strict=True):
            for word in part.words:
                span = (word.start, word.end)
                weights[span] = weights.get(span, 0.0) + factor * word.weight
        log_odds = float(combine(self._odds([text]), self._weights)[0, number])
        return Explanation.of_words(text, weights, self.label_names_[number], log_odds)

    def _predict(self, texts: list[str]) -> FloatArray:
        return np.asarray(expit(combine(self._odds(texts), self._weights)), dtype=np.float64)

    def _write(self, folder: Path) -> None:
        write_arrays(folder / _WEIGHTS, {"kind": "blend"}, {"weights": self._weights})
        for place, member in enumerate(self.members_):
            (folder / f"member-{place}").mkdir()
            member.write_files(folder / f"member-{place}")

    def _read(self, folder: Path) -> None:
        kinds = self._kinds()
        self.members_ = tuple(read_files(folder / f"member-{place}") for place in range(len(kinds)))
        self._weights = read_arrays(folder / _WEIGHTS, "blend")[1]["weights"]
        check_arrays((self._weights, (len(kinds) + 1, self.n_labels_)))
        if [member.kind for member in self.members_] != kinds or {self.label_names_} != {
            member.label_names_ for member in self.members_
        }:
            raise ValueError("its members do not fit together")


def combine(odds: list[FloatArray], weights: FloatArray) -> FloatArray:
    """Return the blend's log-odds (n, d) from its members' and the weights (m + 1, d)."""
    total = np.zeros(odds[0].shape) + weights[-1]
    for member, one in zip(weights, odds, strict=False):
        total += member * one
    return total


def fit_weights(odds: list[FloatArray], labels: BoolArray, seed: int) -> FloatArray:
    """Return weights (m + 1, d) of the members' log-odds and of the constant, fitted on held-out texts."""
    inputs = np.stack([*odds, np.ones(odds[0].shape)], axis=2)
    target = np.asarray(labels, dtype=np.float64)
    halves = np.random.default_rng(seed).permutation(len(target)) % 2
    losses = np.zeros(len(_RIDGES))
    for half in (0, 1) if len(target) > 1 else ():
        fitted = _by_ridge(inputs[halves != half], target[halves != half])
        for place, weights in enumerate(fitted):
            losses[place] += log_loss((inputs[halves == half] * weights.T).sum(axis=2), target[halves == half] > 0.5)
    return _by_ridge(inputs, target)[int(losses.argmin())]


def _by_ridge(inputs: FloatArray, target: FloatArray) -> list[FloatArray]:
    """Return the weights (m + 1, d) for each of the ridges: those of all labels first, then drawn apart."""
    n_inputs = inputs.shape[2]
    start = np.append(np.full(n_inputs - 1, 1.0 / (n_inputs - 1)), 0.0)
    common = fit_regression(inputs.reshape(-1, n_inputs), target.ravel(), start, np.ones(n_inputs))
    labels = range(target.shape[1])
    by_ridge = [np.repeat(common[:, None], len(labels), axis=1)]
    for ridge in _RIDGES[1:]:
        penalty = np.full(n_inputs, ridge)
        own = [fit_regression(inputs[:, label], target[:, label], common, penalty) for label in labels]
        by_ridge.append(np.column_stack(own))
    return by_ridge
