"""A classifier of classifiers: members trained on the same texts, their log-odds combined on validation texts."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import scipy.special

from surelabel._core.npz_file import read_arrays
from surelabel._core.validation import FloatArray
from surelabel.exceptions import DataWarning, InvalidInputError
from surelabel.text.base import History, TextClassifier, load, make
from surelabel.text.curves import fit_regression, log_loss
from surelabel.text.explaining import Explanation, merged
from surelabel.text.inputs import MANY_LABELS, FitOptions, LabelledTexts
from surelabel.text.settings import BlendSettings

_WEIGHTS = "blend.npz"
# Log-odds of members are kept within this.
_FAR = 12.0
# How strongly each label's weights are drawn to those of all labels; infinity takes these for every label.
_RIDGES = (np.inf, 300.0, 30.0, 3.0)
_SHARE_HELD_OUT = 0.2


class BlendClassifier(TextClassifier):
    """Members of any kinds and seeds, and one small regression on their log-odds.

    The weights are fitted on the validation texts: one for each member and a constant, common to all labels, then drawn
    apart label by label as far as that lowers the cross-validated log-loss. If `fit` gets no validation texts, a fifth
    of the training texts is held out of all members for it.

    Attributes
    ----------
    members_ : tuple of TextClassifier
        There after `fit`.

    Examples
    --------
    >>> from surelabel.text import BlendClassifier, BlendSettings
    >>> texts = ["wheat and corn", "the dollar fell", "corn prices", "dollar and yen"] * 5
    >>> labels = [[1, 0], [0, 1], [1, 0], [0, 1]] * 5
    >>> blend = BlendClassifier(BlendSettings(of="linear,linear", members={"linear": {"min_texts": 1}}))
    >>> blend.fit(texts, labels).predict_proba(["corn"]).argmax()
    np.int64(0)
    >>> blend.members_
    (make('linear', min_texts=1), make('linear', min_texts=1, seed=1))
    """

    kind = "blend"
    settings_class = BlendSettings
    members_: tuple[TextClassifier, ...]

    def __init__(self, settings: Any = None) -> None:
        super().__init__(settings)
        self._make_members()  # wrong settings are reported before anything is fitted

    def _make_members(self) -> list[TextClassifier]:
        """Return unfitted members; a kind that comes again gets the next seed."""
        kinds = self.settings.kinds
        seeds = [self.settings.seed + kinds[:place].count(kind) for place, kind in enumerate(kinds)]
        others = self.settings.members
        return [make(kind, **{"seed": seed, **others.get(kind, {})}) for kind, seed in zip(kinds, seeds, strict=True)]

    def _fit(self, training: LabelledTexts, validation: LabelledTexts | None, options: FitOptions) -> History:
        if training.labels.shape[1] > MANY_LABELS:
            raise InvalidInputError(
                f"A blend takes at most {MANY_LABELS:,} labels. Got {training.labels.shape[1]:,}; train one of its "
                "members alone."
            )
        if validation is None:
            training, validation = training.set_aside(_SHARE_HELD_OUT, self.settings.seed, "A blend")
        members = self._make_members()
        for place, member in enumerate(members):
            folder = None if options.checkpoint_folder is None else options.checkpoint_folder / f"member-{place}"
            with warnings.catch_warnings(action="ignore", category=DataWarning):  # the blend has warned
                member.fit(
                    training.texts,
                    training.labels,
                    validation=(validation.texts, validation.labels),
                    checkpoint_folder=folder,
                    resume=options.resume,
                    progress=options.progress,
                )
        self.members_ = tuple(members)
        odds = self._odds(validation.texts, None)
        self._weights = fit_weights(odds, validation.labels, self.settings.seed)
        return [{"log_loss": log_loss(one, validation.labels)} for one in (*odds, combined(odds, self._weights))]

    def _odds(self, texts: list[str], batch_size: int | None) -> list[FloatArray]:
        """Return the log-odds of each member, (n, d) each."""
        with warnings.catch_warnings(action="ignore", category=DataWarning):
            return [log_odds(member.predict_proba(texts, batch_size=batch_size)) for member in self.members_]

    def _explain(self, text: str, number: int, label: str | int) -> Explanation:
        weights = self._weights[:-1, number].tolist()
        parts = [member._explain(text, number, label) for member in self.members_]
        words = merged(text, zip(weights, parts, strict=True))
        score = float(combined(self._odds([text], None), self._weights)[0, number])
        intercept = float(self._weights[-1, number])
        rest = score - intercept - sum(word.weight for word in words)
        return Explanation(label, score, words, intercept, rest, is_exact=False)

    def _predict(self, texts: list[str], batch_size: int | None) -> FloatArray:
        odds = combined(self._odds(texts, batch_size), self._weights)
        return np.asarray(scipy.special.expit(odds), dtype=np.float64)

    def _known(self, texts: list[str]) -> list[float]:
        member = next((member for member in self.members_ if member.knows_words), self.members_[0])
        return member._known(texts)

    def _write(self, folder: Path) -> None:
        np.savez(folder / _WEIGHTS, allow_pickle=False, weights=self._weights)
        for place, member in enumerate(self.members_):
            member.save(folder / f"member-{place}")

    def _read(self, folder: Path) -> None:
        kinds = self.settings.kinds
        self.members_ = tuple(load(folder / f"member-{place}") for place in range(len(kinds)))
        self._weights = read_arrays(folder / _WEIGHTS)["weights"]
        fits = tuple(member.kind for member in self.members_) == kinds
        fits = fits and all(member.n_labels_ == self.n_labels_ for member in self.members_)
        if not fits or self._weights.shape != (len(kinds) + 1, self.n_labels_):
            raise ValueError("its members do not fit together.")


def log_odds(probabilities: FloatArray) -> FloatArray:
    """Return the log-odds of a member, kept within limits."""
    return np.clip(scipy.special.logit(probabilities), -_FAR, _FAR)


def combined(odds: list[FloatArray], weights: FloatArray) -> FloatArray:
    """Return the blend's log-odds (n, d) from its members' and the weights (m + 1, d)."""
    total = np.zeros(odds[0].shape) + weights[-1]
    for member, one in zip(weights, odds, strict=False):
        total += member * one
    return total


def fit_weights(odds: list[FloatArray], labels: Any, seed: int) -> FloatArray:
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
    """Return the weights (m + 1, d) for each of the ridges: of all labels first, then drawn apart."""
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
