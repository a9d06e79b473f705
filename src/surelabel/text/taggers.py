"""Any tagger as a classifier: its scores become probabilities by a curve on texts that were set aside for it.

A tagger is not trained here. `fit` learns the names of the labels and the curve. A label that the tagger does not list
for a text differs from one that it lists with the score 0: the former gets the share of unlisted labels that were true
on the texts set aside.
"""

from __future__ import annotations

import abc
import logging
import math
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import numpy as np
import scipy.sparse
from scipy.special import expit, logit

from surelabel._core.files import read_arrays, write_arrays
from surelabel._core.formatting import count
from surelabel._core.validation import FloatArray, IntArray
from surelabel.exceptions import InvalidInputError, TaggerError
from surelabel.labels.shortlists import Shortlists
from surelabel.tables.columns import matching_key
from surelabel.tables.scores import Scores, Suggestion, as_scores
from surelabel.text import MANY_LABELS
from surelabel.text.base import HeldOut, History, Labelled, TextClassifier, Within, check_arrays, settings
from surelabel.text.curve import fit_regression

_log = logging.getLogger(__name__)

_ARRAYS, _ARRAYS_KIND = "tagger.npz", "tagger"
_KIND = re.compile(r"(probability|logprob|rank|listed|votes|rating)(?:\((.*)\))?")
_NUMBERS = re.compile(r"\s*(-?\d{1,9}(?:\.\d{1,9})?)\s*(?:[-,]\s*(-?\d{1,9}(?:\.\d{1,9})?)\s*)?")
_LIMITS = {"probability": (0.0, 1.0), "logprob": (-math.inf, 0.0), "rank": (1.0, math.inf), "listed": (1.0, 1.0)}
# Log-odds of scores are kept within this: scores of 0 and 1 are no certainty.
_FAR = 10.0
# Ranks from this on have one frequency.
_MOST_RANKS = 50
# Fewer texts at a time are not judged by their share of empty answers.
_ENOUGH_TEXTS = 50


class ScoreKind(NamedTuple):
    """What a score is: a name, and the scores that mean never and always, such as votes(5) or rating(1-5)."""

    name: str
    worst: float
    best: float

    @classmethod
    def parse(cls, text: Any) -> ScoreKind:
        """Read `probability`, `logprob`, `votes(n)`, `rating(worst-best)`, `rank` or `listed`."""
        kind = _KIND.fullmatch(str(text))
        numbers = _NUMBERS.fullmatch(kind[2] or "") if kind else None
        if kind and kind[1] in _LIMITS and kind[2] is None:
            return cls(kind[1], *_LIMITS[kind[1]])
        if kind and numbers:
            first, second = float(numbers[1]), float(numbers[2] or "nan")
            if kind[1] == "votes" and math.isnan(second) and first >= 1 and first.is_integer():
                return cls("votes", 0.0, first)
            if kind[1] == "rating" and not math.isnan(second) and first != second:
                return cls("rating", first, second)
        raise InvalidInputError(
            "The 'score_kind' setting must be one of probability, logprob, votes(N) such as votes(5), "
            f"rating(WORST-BEST) such as rating(1-5), rank or listed. Got {text!r} instead."
        )

    @property
    def is_ordinal(self) -> bool:
        """Whether only the order of the labels counts."""
        return self.name in {"rank", "listed"}

    def shares(self, scores: Sequence[float | None], where: str) -> FloatArray:
        """Return scores as numbers from 0 to 1, ranks from 1 for ordinal kinds; raise if one is out of range."""
        values = np.array([math.nan if score is None else score for score in scores], dtype=np.float64)
        if self.is_ordinal and np.isnan(values).all():
            return np.ones(len(values)) if self.name == "listed" else np.arange(1.0, len(values) + 1)
        low, high = sorted((self.worst, self.best))
        is_good = np.isfinite(values) & (values >= low) & (values <= high)
        if self.name in {"votes", "rank"}:
            is_good &= values == np.round(values)
        if not is_good.all() or self.name == "listed":
            first = next((k for k, good in enumerate(is_good) if not good), 0)
            problem, expected = f"the score {scores[first]}", f"from {low:g} to {high:g}"
            if scores[first] is None:
                problem, expected = "a label without a score", "('rank' and 'listed' take lists of labels)"
            elif self.name == "listed":
                expected = "none: labels are only listed"
            raise InvalidInputError(
                f"{where} has {problem}, but scores of the kind {self.name!r} must be "
                f"{'whole ' if self.name in {'votes', 'rank'} else ''}numbers {expected}. "
                "Name the right kind by 'score_kind'."
            )
        if self.name == "logprob":
            return np.exp(values)
        if self.name == "votes":
            return (values + 0.5) / (self.best + 1)
        return (values - self.worst) / (self.best - self.worst) if self.name == "rating" else values


class ListCurve(NamedTuple):
    """From scores or ranks of listed labels to probabilities; `unlisted` is that of a label that is not listed.

    For scores, `numbers` are slope and offset of the log-odds. For ranks, the probability at each rank.
    """

    numbers: FloatArray
    unlisted: float
    is_ordinal: bool

    @classmethod
    def fit(cls, values: FloatArray, hits: Any, n_unlisted: int, n_missed: int, *, is_ordinal: bool) -> ListCurve:
        """Fit on listed labels (n_pairs,) of texts that the tagger has not seen; `n_missed` unlisted ones were true."""
        unlisted = (n_missed + 0.5) / (n_unlisted + 1)
        if is_ordinal:
            places = np.minimum(values.astype(np.int64), _MOST_RANKS) - 1
            counts = np.bincount(places, minlength=1)
            shares = (np.bincount(places, weights=hits, minlength=len(counts)) + 0.5) / (counts + 1)
            return cls(np.minimum.accumulate(shares), unlisted, True)
        inputs = np.column_stack([_odds(values), np.ones(len(hits))])
        numbers = fit_regression(inputs, hits.astype(np.float64), np.array([1.0, 0.0]), np.ones(2))
        if numbers[0] <= 0:
            _log.warning(
                "Higher scores of the tagger do not mean that a label is likelier: they are taken as they are."
            )
            numbers = np.array([1.0, 0.0])
        return cls(numbers, unlisted, False)

    def probabilities(self, values: FloatArray) -> FloatArray:
        """Return the probabilities of listed labels."""
        if self.is_ordinal:
            return np.asarray(self.numbers[np.minimum(values.astype(np.int64), len(self.numbers)) - 1])
        return np.asarray(expit(self.numbers[0] * _odds(values) + self.numbers[1]))


def _odds(values: FloatArray) -> FloatArray:
    return np.clip(logit(values), -_FAR, _FAR)


class _Listed(NamedTuple):
    """Suggestions as arrays: text and label of each pair, and its score from 0 to 1 or its rank."""

    rows: IntArray
    labels: IntArray
    values: FloatArray


@settings
class Tagger(TextClassifier):
    """Base of the kinds that take a tagger's suggestions; settings that all of them have.

    Parameters
    ----------
    score_kind : str
        What a score is: "probability", "logprob", "votes(N)", "rating(WORST-BEST)", "rank" or "listed".
    n_listed : int
        Labels per text that are listed, the highest, if there are more than 1,000 labels in all.
    alternatives : dict of str, optional
        Label names by other names (preferred and alternative names of a vocabulary, or its URIs).
    max_empty : float
        Largest share of texts without any suggestion. More are an error: the tagger is out of order.

    Attributes
    ----------
    shares_ : dict
        On the texts set aside: `empty` texts; `unknown` suggestions (not a label); `zero`, listed labels with score 0;
        `unlisted`, true labels that were not listed; and `most`, the largest number of suggestions for a text.
    """

    many_labels = True
    learns_labels = False
    score_kind: str = "probability"
    n_listed: Annotated[int, Within(1, 10_000)] = 100
    alternatives: dict[str, str] | None = None
    max_empty: Annotated[float, Within(0, 1)] = 0.5

    def _check_settings(self) -> None:
        super()._check_settings()
        ScoreKind.parse(self.score_kind)
        other = self.alternatives
        if other is not None and not all(isinstance(part, str) for pair in dict(other).items() for part in pair):
            raise InvalidInputError("The 'alternatives' setting must map names to label names.")

    @abc.abstractmethod
    def suggest(self, texts: list[str], scores: Any = None) -> list[Scores]:
        """Return the suggestions for each text."""

    @property
    def notes(self) -> list[str]:
        """Remarks on what the tagger suggested for the texts that were set aside."""
        shares = {name: f"{100 * share:.1f} %" for name, share in self.shares_.items()}
        note = (
            f"On the texts set aside, the tagger lists at most {count(int(self.shares_['most']))} labels per text, and "
            f"none for {shares['empty']} of the texts. {shares['unlisted']} of the true labels are not listed, "
            f"{shares['zero']} of the listed labels have the score 0, {shares['unknown']} of all suggestions are no "
            "known label."
        )
        return [note]

    def _fit(self, training: Labelled, validation: Labelled | None, work_folder: Path | None) -> History:
        suggestions = self.suggest(training.texts, training.scores)
        find = self._finder()
        extra = sorted({one.label for own in suggestions for one in own if find(one) is None}, reverse=True)
        # The tagger's own labels are labels, too, unless a vocabulary says what the labels are.
        if self.alternatives is None:
            self.label_names_ = (*self.label_names_, *sorted({matching_key(name): name for name in extra}.values()))
            self.n_labels_ = len(self.label_names_)
        listed = self._listed(suggestions)
        labels: Any = scipy.sparse.csr_array(training.labels)
        labels.resize((len(suggestions), self.n_labels_))
        hits = np.asarray(labels[listed.rows, listed.labels]).ravel().astype(bool)
        n_true, n_all = int(labels.sum()), sum(map(len, suggestions))
        n_missed, is_ordinal = n_true - int(hits.sum()), ScoreKind.parse(self.score_kind).is_ordinal
        n_unlisted = len(suggestions) * self.n_labels_ - len(hits)
        self._curve = ListCurve.fit(listed.values, hits, n_unlisted, n_missed, is_ordinal=is_ordinal)
        # A curve of a few numbers: for what is chosen later, these texts are as good as unseen.
        self.held_out_ = HeldOut(np.arange(len(suggestions)), self._probabilities(suggestions))
        self.shares_ = {
            "empty": sum(not own for own in suggestions) / len(suggestions),
            "unknown": (n_all - len(hits)) / max(1, n_all),
            "zero": float((listed.values == 0).sum() / max(1, len(hits))),
            "unlisted": n_missed / max(1, n_true),
            "most": max(map(len, suggestions)),
        }
        return [self.shares_]

    def _predict(self, texts: list[str]) -> FloatArray | Shortlists:
        return self._probabilities(self.suggest(texts))

    def _probabilities(self, suggestions: Sequence[Scores]) -> FloatArray | Shortlists:
        """Return dense probabilities up to 1,000 labels, otherwise the highest as shortlists."""
        rows, labels, values = self._listed(suggestions)
        probabilities, shape = self._curve.probabilities(values), (len(suggestions), self.n_labels_)
        if self.n_labels_ > MANY_LABELS:
            return as_shortlists(rows, labels, probabilities, shape, self.n_listed)
        dense = np.full(shape, self._curve.unlisted)
        dense[rows, labels] = probabilities
        return dense

    def _listed(self, suggestions: Sequence[Scores]) -> _Listed:
        """Return suggestions as arrays; those that are no label are left out, of one label twice the first counts."""
        kind, find = ScoreKind.parse(self.score_kind), self._finder()
        pairs: dict[tuple[int, int], float] = {}
        for row, own in enumerate(suggestions):
            shares = kind.shares([one.score for one in own], own.place or f"Text {row + 1}")
            for one, share in zip(own, shares.tolist(), strict=True):
                if (label := find(one)) is not None:
                    pairs.setdefault((row, label), share)
        n_empty = len(suggestions) - len({row for row, _ in pairs})
        if len(suggestions) >= _ENOUGH_TEXTS and n_empty > self.max_empty * len(suggestions):
            names = next((f", only names such as {own[0].label!r:.60}" for own in suggestions if own), "")
            raise TaggerError(
                f"The tagger suggests no known label for {n_empty} of {len(suggestions)} texts{names}. That is more "
                f"than a share of {self.max_empty:g} ('max_empty'). Look at the tagger, or raise 'max_empty'."
            )
        where = np.array(list(pairs), dtype=np.int64).reshape(-1, 2)
        return _Listed(where[:, 0], where[:, 1], np.array(list(pairs.values()), dtype=np.float64))

    def _finder(self) -> Callable[[Suggestion], int | None]:
        """Return a function from a suggestion to its label's number: by exact name, then NFC and casefold, then others.

        A name that belongs to several labels finds none of them.
        """
        exact = {name: place for place, name in enumerate(self.label_names_)}
        others = {other: exact[name] for other, name in (self.alternatives or {}).items() if name in exact}
        by_key: dict[str, int | None] = {}
        for names in (others, exact):
            places: dict[str, set[int]] = defaultdict(set)
            for name, place in names.items():
                places[matching_key(name)].add(place)
            by_key |= {key: min(found) if len(found) == 1 else None for key, found in places.items()}

        def find(one: Suggestion) -> int | None:
            if one.label in exact:
                return exact[one.label]
            found = by_key.get(matching_key(one.label))
            return found if found is not None or one.name is None else by_key.get(matching_key(one.name))

        return find

    def _write(self, folder: Path) -> None:
        arrays = {"numbers": self._curve.numbers, "unlisted": np.array([self._curve.unlisted])}
        write_arrays(folder / _ARRAYS, {"kind": _ARRAYS_KIND}, arrays)

    def _read(self, folder: Path) -> None:
        _, arrays = read_arrays(folder / _ARRAYS, _ARRAYS_KIND)
        numbers, unlisted = arrays["numbers"], arrays["unlisted"]
        is_ordinal = ScoreKind.parse(self.score_kind).is_ordinal
        check_arrays((numbers, (max(1, len(numbers)) if is_ordinal else 2,)), (unlisted, (1,)))
        probabilities = np.append(numbers, unlisted) if is_ordinal else unlisted
        if np.any((probabilities < 0) | (probabilities > 1)):
            raise ValueError("its probabilities must be from 0 to 1")
        self._curve = ListCurve(numbers, float(unlisted[0]), is_ordinal)
        self.shares_ = self.history_[0]


@settings
class ScoresTagger(Tagger):
    """Scores that come with the texts: from a file, a table or an LLM's output.

    Give `fit` and `predict_proba` the argument `scores`: for each text a dict of label and score, a sequence of
    (label, score), or None for no suggestions. A score of None in a pair means listed without a score.
    """

    kind = "scores"

    def _check_scores(self, scores: Any) -> None:
        if scores is None:
            raise InvalidInputError(
                "The 'scores' classifier needs the scores of each text: give scores (--scores COLUMN or FILE)."
            )

    def predict_proba(self, texts: Iterable[str], *, scores: Any = None) -> FloatArray | Shortlists:
        """Return the probability of each label for each text, from `scores`, one entry per text."""
        checked = self._as_texts(texts)
        self._check_scores(scores)
        return self._probabilities(self.suggest(checked, scores)) if checked else np.empty((0, self.n_labels_))

    def suggest(self, texts: list[str], scores: Any = None) -> list[Scores]:
        """Return `scores` as suggestions."""
        given = [] if isinstance(scores, Mapping) else list(scores)
        if len(given) != len(texts):
            raise InvalidInputError(f"There must be scores for each of {len(texts)} texts. Got {len(given)} instead.")
        found = []
        for row, own in enumerate(given, 1):
            try:
                found.append(own if isinstance(own, Scores) else as_scores(own) or Scores())
            except ValueError as error:
                raise InvalidInputError(f"Text {row} {error}") from error
        return found


def as_shortlists(
    rows: IntArray, labels: IntArray, values: FloatArray, shape: tuple[int, int], n_listed: int
) -> Shortlists:
    """Return pairs (text, label, probability) as shortlists of at most `n_listed` labels, the highest."""
    order = np.lexsort((labels, -values, rows))
    ranks = np.arange(len(rows)) - np.searchsorted(rows[order], rows[order])
    kept = order[ranks < n_listed]
    return Shortlists.from_csr(scipy.sparse.coo_array((values[kept], (rows[kept], labels[kept])), shape=shape))
