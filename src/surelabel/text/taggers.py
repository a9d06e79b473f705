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
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, NamedTuple, TypeAlias

import numpy as np
import scipy.sparse
from scipy.special import expit, logit

from surelabel._core.files import read_arrays, write_arrays
from surelabel._core.validation import BoolArray, FloatArray, IntArray
from surelabel.exceptions import InvalidInputError, TaggerError
from surelabel.labels.shortlists import Shortlists
from surelabel.text import MANY_LABELS
from surelabel.text.base import HeldOut, History, Labelled, TextClassifier, Within, check_arrays, settings
from surelabel.text.curve import fit_regression

_log = logging.getLogger(__name__)

_ARRAYS, _ARRAYS_KIND = "tagger.npz", "tagger"
# Log-odds of scores are kept within this: scores of 0 and 1 are no certainty.
_FAR = 10.0
_RIDGE = 1.0
# Ranks from this on have one frequency.
_MOST_RANKS = 50
# Fewer texts at a time are not judged by their share of empty answers.
_ENOUGH_TEXTS = 50


class Suggestion(NamedTuple):
    """A label that a tagger suggests, by its name or URI; None as score if it is only listed."""

    label: str
    score: float | None
    name: str | None = None  # a second name to find the label by


Suggestions: TypeAlias = Sequence[Suggestion]


class ScoreKind(NamedTuple):
    """What a score is: a name and up to two numbers, such as votes(5) or rating(1-5)."""

    name: str
    first: float = 0.0
    second: float = 0.0

    @classmethod
    def parse(cls, text: str) -> ScoreKind:
        """Read `probability`, `logprob`, `votes(n)`, `rating(worst-best)`, `rank` or `listed`."""
        if text in {"probability", "logprob", "rank", "listed"}:
            return cls(text)
        if (votes := re.fullmatch(r"votes\((\d{1,6})\)", str(text))) and int(votes[1]) > 0:
            return cls("votes", float(votes[1]))
        number = r"\s*(-?\d{1,9}(?:\.\d{1,9})?)\s*"
        rating = re.fullmatch(rf"rating\({number}[-,]{number}\)", str(text))
        if rating and float(rating[1]) != float(rating[2]):
            return cls("rating", float(rating[1]), float(rating[2]))
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
        if self.name == "listed":
            if any(score is not None for score in scores):
                raise InvalidInputError(f"{where} has scores, but 'listed' means labels without scores.")
            return np.ones(len(scores))
        if self.name == "rank" and all(score is None for score in scores):
            return np.arange(1.0, len(scores) + 1)
        if any(score is None for score in scores):
            raise InvalidInputError(
                f"{where} has labels without scores. Use the kind 'rank' for lists in order, 'listed' for lists."
            )
        values = np.array(scores, dtype=np.float64)
        low, high, step = {
            "probability": (0.0, 1.0, 0.0),
            "logprob": (-math.inf, 0.0, 0.0),
            "votes": (0.0, self.first, 1.0),
            "rating": (min(self.first, self.second), max(self.first, self.second), 0.0),
            "rank": (1.0, math.inf, 1.0),
        }[self.name]
        wrong = ~(np.isfinite(values) & (values >= low) & (values <= high))
        if step:
            wrong |= values != np.round(values)
        if wrong.any():
            expected = "whole numbers" if step else "numbers"
            raise InvalidInputError(
                f"{where} has the score {values[wrong][0]:g}, but scores of the kind {self} must be {expected} from "
                f"{low:g} to {high:g}. Name the right kind by 'score_kind'."
            )
        if self.name == "logprob":
            return np.exp(values)
        if self.name == "votes":
            return (values + 0.5) / (self.first + 1)
        if self.name == "rating":
            return (values - self.first) / (self.second - self.first)
        return values

    def __str__(self) -> str:
        if self.name == "votes":
            return f"votes({self.first:g})"
        return f"rating({self.first:g}-{self.second:g})" if self.name == "rating" else self.name


class Listed(NamedTuple):
    """Suggestions as arrays: text and label of each pair, and its score from 0 to 1 or its rank."""

    rows: IntArray
    labels: IntArray
    values: FloatArray
    n_texts: int


class ListCurve(NamedTuple):
    """From scores or ranks of listed labels to probabilities; `unlisted` is that of a label that is not listed.

    For scores, `numbers` are slope and offset of the log-odds. For ranks, the probability at each rank.
    """

    numbers: FloatArray
    unlisted: float

    @classmethod
    def fit(cls, listed: Listed, labels: Any, *, is_ordinal: bool) -> ListCurve:
        """Fit on texts that the tagger has not seen; labels bool (n_texts, n_labels), dense or CSR."""
        hits = np.asarray(labels[listed.rows, listed.labels]).ravel().astype(bool)
        n_unlisted = labels.shape[0] * labels.shape[1] - len(hits)
        unlisted = (int(labels.sum()) - int(hits.sum()) + 0.5) / (n_unlisted + 1)
        if is_ordinal:
            return cls(_frequencies(listed.values, hits), unlisted)
        inputs = np.column_stack([_odds(listed.values), np.ones(len(hits))])
        start, penalty = np.array([1.0, 0.0]), np.array([_RIDGE, _RIDGE])
        slope, offset = fit_regression(inputs, hits.astype(np.float64), start, penalty)
        if slope <= 0:
            _log.warning(
                "Higher scores of the tagger do not mean that a label is likelier: they are taken as they are."
            )
            slope, offset = 1.0, 0.0
        return cls(np.array([slope, offset]), unlisted)

    def probabilities(self, values: FloatArray, *, is_ordinal: bool) -> FloatArray:
        """Return the probabilities of listed labels."""
        if is_ordinal:
            return np.asarray(self.numbers[np.minimum(values.astype(np.int64), len(self.numbers)) - 1])
        return np.asarray(expit(self.numbers[0] * _odds(values) + self.numbers[1]))


def _odds(values: FloatArray) -> FloatArray:
    return np.clip(logit(values), -_FAR, _FAR)


def _frequencies(ranks: FloatArray, hits: BoolArray) -> FloatArray:
    """Return the share of hits at each rank, with half a text added to either side; it never rises with the rank."""
    places = np.minimum(ranks.astype(np.int64), _MOST_RANKS) - 1
    counts = np.bincount(places, minlength=1)
    shares = (np.bincount(places, weights=hits, minlength=len(counts)) + 0.5) / (counts + 1)
    return np.minimum.accumulate(shares)


def matching_key(name: str) -> str:
    """Return what two spellings of a name share: NFC, case, and spaces at the ends."""
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", name).casefold()).strip()


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
        `unlisted`, true labels that were not listed.
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
    def suggest(self, texts: list[str], scores: Any = None) -> list[Suggestions]:
        """Return the suggestions for each text."""

    def _fit(self, training: Labelled, validation: Labelled | None, work_folder: Path | None) -> History:
        suggestions = self.suggest(training.texts, training.scores)
        known = self._matcher()
        extra = {one.label for own in suggestions for one in own if self._place(known, one) is None}
        # The tagger's own labels are labels, too, unless a vocabulary says what the labels are.
        if self.alternatives is None:
            self.label_names_ = (*self.label_names_, *sorted(_distinct(extra)))
            self.n_labels_ = len(self.label_names_)
        listed = self._listed(suggestions)
        labels = training.labels
        if (added := self.n_labels_ - labels.shape[1]) > 0:
            labels = _with_columns(labels, added)
        is_ordinal = ScoreKind.parse(self.score_kind).is_ordinal
        self._curve = ListCurve.fit(listed, labels, is_ordinal=is_ordinal)
        # A curve of a few numbers: for what is chosen later, these texts are as good as unseen.
        self.held_out_ = HeldOut(np.arange(len(suggestions)), self._probabilities(suggestions))
        hits = np.asarray(labels[listed.rows, listed.labels]).ravel().astype(bool)
        n_true, n_all = int(labels.sum()), sum(map(len, suggestions))
        self.shares_ = {
            "empty": sum(not own for own in suggestions) / len(suggestions),
            "unknown": (n_all - len(listed.rows)) / max(1, n_all),
            "zero": float(np.mean(listed.values == 0)) if len(listed.rows) else 0.0,
            "unlisted": (n_true - int(hits.sum())) / max(1, n_true),
        }
        _log.info(
            "of %d texts set aside %.1f %% have no suggestions; %.1f %% of their true labels are not listed",
            len(suggestions),
            100 * self.shares_["empty"],
            100 * self.shares_["unlisted"],
        )
        return [self.shares_]

    def _predict(self, texts: list[str], batch_size: int | None) -> FloatArray | Shortlists:
        return self._probabilities(self.suggest(texts))

    def _probabilities(self, suggestions: Sequence[Suggestions]) -> FloatArray | Shortlists:
        """Return dense probabilities up to 1,000 labels, otherwise the highest as shortlists."""
        listed = self._listed(suggestions)
        values = self._curve.probabilities(listed.values, is_ordinal=ScoreKind.parse(self.score_kind).is_ordinal)
        if self.n_labels_ <= MANY_LABELS:
            probabilities = np.full((listed.n_texts, self.n_labels_), self._curve.unlisted)
            probabilities[listed.rows, listed.labels] = values
            return probabilities
        return as_shortlists(listed.rows, listed.labels, values, (listed.n_texts, self.n_labels_), self.n_listed)

    def _listed(self, suggestions: Sequence[Suggestions]) -> Listed:
        """Return suggestions as arrays; those that are no label are left out, of one label twice the first counts."""
        kind, known = ScoreKind.parse(self.score_kind), self._matcher()
        n_empty = sum(not own for own in suggestions)
        if len(suggestions) >= _ENOUGH_TEXTS and n_empty > self.max_empty * len(suggestions):
            raise TaggerError(
                f"The tagger has no suggestions for {n_empty} of {len(suggestions)} texts, more than a share of "
                f"{self.max_empty:g} ('max_empty'). Look at the tagger, or raise 'max_empty'."
            )
        rows: list[int] = []
        labels: list[int] = []
        values: list[float] = []
        for row, own in enumerate(suggestions):
            shares = kind.shares([one.score for one in own], f"Text {row + 1}")
            seen: set[int] = set()
            for one, share in zip(own, shares.tolist(), strict=True):
                place = self._place(known, one)
                if place is not None and place not in seen:
                    seen.add(place)
                    rows.append(row)
                    labels.append(place)
                    values.append(share)
        arrays = np.array(rows, dtype=np.int64), np.array(labels, dtype=np.int64), np.array(values, dtype=np.float64)
        return Listed(*arrays, len(suggestions))

    def _matcher(self) -> dict[str, int]:
        """Return the place of each label by its name, and by keys that belong to one label only."""
        by_name = {name: place for place, name in enumerate(self.label_names_)}
        names = [*by_name.items()]
        names += [(other, by_name[name]) for other, name in (self.alternatives or {}).items() if name in by_name]
        by_key: dict[str, set[int]] = {}
        for name, place in names:
            by_key.setdefault(matching_key(name), set()).add(place)
        return {key: min(places) for key, places in by_key.items() if len(places) == 1} | {
            f"\0{name}": place for name, place in by_name.items()
        }

    @staticmethod
    def _place(known: dict[str, int], one: Suggestion) -> int | None:
        """Return the number of a suggested label: by its exact name, then by the keys of its names."""
        if (place := known.get(f"\0{one.label}")) is not None:
            return place
        keys = (matching_key(name) for name in (one.label, one.name) if name is not None)
        return next((known[key] for key in keys if key in known), None)

    def _write(self, folder: Path) -> None:
        arrays = {"numbers": self._curve.numbers, "unlisted": np.array([self._curve.unlisted])}
        write_arrays(folder / _ARRAYS, {"kind": _ARRAYS_KIND}, arrays)

    def _read(self, folder: Path) -> None:
        _, arrays = read_arrays(folder / _ARRAYS, _ARRAYS_KIND)
        numbers, unlisted = arrays["numbers"], arrays["unlisted"]
        is_ordinal = ScoreKind.parse(self.score_kind).is_ordinal
        size = max(1, min(len(numbers), _MOST_RANKS)) if is_ordinal else 2
        check_arrays((numbers, (size,)), (unlisted, (1,)))
        probabilities = np.append(numbers, unlisted) if is_ordinal else unlisted
        if np.any((probabilities < 0) | (probabilities > 1)):
            raise ValueError("its probabilities must be from 0 to 1")
        self._curve = ListCurve(numbers, float(unlisted[0]))
        self.shares_ = self.history_[0]


@settings
class ScoresTagger(Tagger):
    """Scores that come with the texts: from a file, a table or an LLM's output.

    Give `fit` and `predict_proba` the argument `scores`: for each text a dict of label and score, a sequence of
    (label, score), or None for no suggestions. A score of None means listed without a score.
    """

    kind = "scores"

    def _check_scores(self, scores: Any) -> None:
        if scores is None:
            raise InvalidInputError(
                "The 'scores' classifier needs the scores of each text: pass scores=..., one entry per text."
            )

    def predict_proba(
        self, texts: Iterable[str], *, batch_size: int | None = None, scores: Any = None
    ) -> FloatArray | Shortlists:
        """Return the probability of each label for each text, from `scores`, one entry per text."""
        checked = self._as_texts(texts)
        self._check_scores(scores)
        return self._probabilities(self.suggest(checked, scores)) if checked else np.empty((0, self.n_labels_))

    def suggest(self, texts: list[str], scores: Any = None) -> list[Suggestions]:
        """Return `scores` as suggestions."""
        self._check_scores(scores)
        given = list(scores)
        if len(given) != len(texts):
            raise InvalidInputError(f"There must be scores for each of {len(texts)} texts. Got {len(given)} instead.")
        suggestions: list[Suggestions] = []
        for row, own in enumerate(given):
            pairs = own.items() if isinstance(own, Mapping) else own or ()
            try:
                suggestions.append([Suggestion(str(label), _number(score)) for label, score in pairs])
            except (TypeError, ValueError) as error:
                raise InvalidInputError(
                    f"The scores of text {row + 1} must be pairs of label and score: {error}."
                ) from error
        return suggestions


def _number(score: Any) -> float | None:
    if isinstance(score, (bool, str)):
        raise TypeError(f"{score!r} is no number")
    return None if score is None else float(score)


def _distinct(names: Iterable[str]) -> list[str]:
    """Return one name of those that match each other."""
    return list({matching_key(name): name for name in sorted(names, reverse=True)}.values())


def _with_columns(labels: Any, n_added: int) -> Any:
    """Return labels with columns of zeros at the end, CSR above 1,000 labels."""
    if isinstance(labels, np.ndarray) and labels.shape[1] + n_added <= MANY_LABELS:
        return np.pad(labels, ((0, 0), (0, n_added)))
    matrix: Any = scipy.sparse.csr_array(labels)
    shape = (matrix.shape[0], matrix.shape[1] + n_added)
    return scipy.sparse.csr_array((matrix.data, matrix.indices, matrix.indptr), shape=shape)


def as_shortlists(
    rows: IntArray, labels: IntArray, values: FloatArray, shape: tuple[int, int], n_listed: int
) -> Shortlists:
    """Return pairs (text, label, probability) as shortlists of at most `n_listed` labels, the highest."""
    order = np.lexsort((labels, -values, rows))
    rows, labels, values = rows[order], labels[order], values[order]
    starts = np.searchsorted(rows, np.arange(shape[0]))
    ranks = np.arange(len(rows)) - starts[rows]
    kept = ranks < n_listed
    width = max(1, int(ranks[kept].max(initial=0)) + 1)
    columns, probabilities = np.full((shape[0], width), -1), np.zeros((shape[0], width))
    columns[rows[kept], ranks[kept]], probabilities[rows[kept], ranks[kept]] = labels[kept], values[kept]
    return Shortlists(columns, probabilities, shape[1])
