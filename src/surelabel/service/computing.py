"""The work of a batch: classifier and conformal step, in the worker thread."""

from __future__ import annotations

import dataclasses
import itertools
import logging
import time
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from surelabel.answers import Answer
from surelabel.labels.sparse import SparseProbabilities, stacked

if TYPE_CHECKING:
    from surelabel._core.validation import BoolArray, FloatArray
    from surelabel.models import Bundle
    from surelabel.service.outcomes import ServiceOutcomes
    from surelabel.service.watching import ServiceWatch

_log = logging.getLogger(__name__)

Outcome: TypeAlias = "list[Answer] | float | Exception"
Given: TypeAlias = "FloatArray | SparseProbabilities"
"""Probabilities (n, d), of very many labels sparse ones."""


@dataclasses.dataclass(frozen=True, eq=False)
class SetsQuestion:
    """Find the plausible label-sets of texts.

    Attributes
    ----------
    texts : list of str
    level : tuple of str and value
        Name and value of the keyword argument that gives the level.
    top : int
        Label-sets to name for each text.
    describe : bool
        Whether to say each prediction set in a sentence.
    picture : bool
        Whether to draw each prediction set.
    is_served : bool
        Whether a client asks, so that the texts are watched.
    groups : list of str, optional
        The group of each text, if the model is calibrated by groups.
    assurance : float or str, optional
        Of the level.
    ids : list of str, optional
        Under which the texts are remembered.
    adapts : bool
        Whether the level is the one that follows errors, instead of `level`.
    """

    texts: list[str]
    level: tuple[str, Any]
    top: int
    describe: bool = False
    picture: bool = False
    is_served: bool = True
    groups: list[str] | None = None
    assurance: float | str | None = None
    ids: list[str] | None = None
    adapts: bool = False

    @property
    def n_texts(self) -> int:
        """How many texts it is about."""
        return len(self.texts)

    @property
    def asked(self) -> tuple[Any, ...]:
        """What questions have in common that are answered together."""
        return self.level, self.top, self.describe, self.picture, self.assurance, self.adapts


@dataclasses.dataclass(frozen=True, eq=False)
class LabelSetQuestion:
    """How plausible a label-set, a row (1, d), is for a text."""

    text: str
    labels: BoolArray
    groups: list[str] | None = None

    @property
    def texts(self) -> list[str]:
        """The text."""
        return [self.text]

    @property
    def n_texts(self) -> int:
        """How many texts it is about."""
        return 1


def warm_up_questions(bundle: Bundle) -> list[SetsQuestion | LabelSetQuestion]:
    """Return questions of no client whose answers compile or load all that the first ones need."""
    calibration = bundle.predictor.calibration_
    # The smallest level that still rules something out: the set then has members to name.
    level = ("significance", Fraction(2, calibration.n_texts + 2))
    groups = None if bundle.groups is None else [bundle.groups[0]]
    no_labels = np.zeros((1, calibration.n_labels), dtype=np.bool_)
    return [
        SetsQuestion(["warm-up"], level, 5, describe=True, picture=True, is_served=False, groups=groups),
        LabelSetQuestion("warm-up", no_labels, groups),
    ]


class BatchWork:
    """Answers the questions of a batch with one bundle.

    The classifier is called once. Texts for which the same is asked go through the conformal step together.

    Parameters
    ----------
    bundle : Bundle
    saw_classifier, saw_conformal : callable
        Told the seconds that the two take; of the conformal step also the seconds of processor time.
    watch : ServiceWatch, optional
        Told the probabilities of texts that were answered.
    outcomes : ServiceOutcomes, optional
        Remembers texts that were answered under an id.
    """

    def __init__(
        self,
        bundle: Bundle,
        saw_classifier: Callable[[float], None],
        saw_conformal: Callable[[float, float], None],
        watch: ServiceWatch | None = None,
        outcomes: ServiceOutcomes | None = None,
    ) -> None:
        self.bundle = bundle
        self._saw_classifier = saw_classifier
        self._saw_conformal = saw_conformal
        self._watch = watch
        self._kept = outcomes

    def __call__(self, questions: list[SetsQuestion | LabelSetQuestion]) -> list[Outcome]:
        """Return one answer per question, or the exception that it ended with."""
        texts = [text for question in questions for text in question.texts]
        start = time.perf_counter()
        probabilities, known_words = self._classify(texts)
        self._saw_classifier(time.perf_counter() - start)
        start, start_cpu = time.perf_counter(), time.thread_time()
        ends = itertools.accumulate((question.n_texts for question in questions), initial=0)
        places = [slice(*pair) for pair in itertools.pairwise(ends)]
        rows = [probabilities[place] for place in places]
        known = [None if known_words is None else known_words[place] for place in places]
        outcomes: list[Outcome] = [0.0] * len(questions)
        alike: dict[Any, list[int]] = {}
        for number, question in enumerate(questions):
            if isinstance(question, SetsQuestion):
                alike.setdefault(question.asked, []).append(number)
            else:
                outcomes[number] = _caught(self._p_value, rows[number], question)
        for numbers in alike.values():
            asked: list[Any] = [questions[number] for number in numbers]
            answered = self._answer_together(asked, [rows[n] for n in numbers], [known[n] for n in numbers])
            for number, outcome in zip(numbers, answered, strict=True):
                outcomes[number] = outcome
        self._show_watch(questions, rows, outcomes)
        self._saw_conformal(time.perf_counter() - start, time.thread_time() - start_cpu)
        return outcomes

    def _show_watch(
        self,
        questions: Sequence[SetsQuestion | LabelSetQuestion],
        rows: Sequence[Given],
        outcomes: Sequence[Outcome],
    ) -> None:
        """Show the watch the texts of clients that were answered; what goes wrong there is no client's problem."""
        if self._watch is None:
            return
        seen = [
            part
            for question, part, outcome in zip(questions, rows, outcomes, strict=True)
            if isinstance(question, SetsQuestion) and question.is_served and isinstance(outcome, list)
        ]
        if seen and isinstance(error := _caught(self._watch.update, stacked(seen)), Exception):
            _log.error("The watch failed on %d texts.", sum(map(len, seen)), exc_info=error)

    def _classify(self, texts: list[str]) -> tuple[Given, FloatArray | None]:
        """Return probabilities (n, d), and the shares of known words (n,) if something is decided by them."""
        probabilities = self.bundle.predict_proba(texts)
        if len(probabilities) != len(texts):
            raise RuntimeError(f"The classifier gave {len(probabilities)} rows for {len(texts)} texts.")
        return probabilities, self.bundle.known_words(texts)

    def _p_value(self, probabilities: Given, question: LabelSetQuestion) -> float:
        """Return the p-value of a label-set."""
        return float(self.bundle.predictor.predict_p(probabilities, question.labels, groups=question.groups)[0])

    def _answer(self, probabilities: Given, known_words: FloatArray | None, *questions: SetsQuestion) -> list[Answer]:
        """Do the conformal step for questions that ask for the same, and remember texts with an id."""
        question = questions[0]
        ids = [name for question in questions for name in question.ids or ()]
        if ids and self._kept is not None:
            # All of them before anything is remembered: what fails together is tried one by one.
            self._kept.check_new(ids)
        if question.adapts and self._kept is not None:
            with self._kept.answering() as (predictor, level):
                bundle = dataclasses.replace(self.bundle, predictor=predictor, forced_totals=None)
                at = ("significance", Fraction(level))
                answers = self._said(bundle, probabilities, known_words, questions, at)
                self._remember(probabilities, questions, {})
            return [dataclasses.replace(answer, significance=f"{level:.6f}") for answer in answers]
        answers = self._said(self.bundle, probabilities, known_words, questions, question.level)
        if ids:
            asked = {"significance": Fraction(answers[0].significance), "assurance": question.assurance}
            self._remember(probabilities, questions, asked)
        return answers

    @staticmethod
    def _said(
        bundle: Bundle,
        probabilities: Given,
        known_words: FloatArray | None,
        questions: Sequence[SetsQuestion],
        level: tuple[str, Any],
    ) -> list[Answer]:
        """Return the answers of a bundle at a level."""
        question = questions[0]
        return bundle.answers(
            [text for each in questions for text in each.texts],
            top=question.top,
            describe=question.describe,
            picture=question.picture,
            probabilities=probabilities,
            known_words=known_words,
            groups=[group for each in questions for group in each.groups or ()] or None,
            assurance=question.assurance,
            **{level[0]: level[1]},
        )

    def _remember(self, probabilities: Given, questions: Sequence[SetsQuestion], asked: dict[str, Any]) -> None:
        """Remember texts with an id."""
        start = 0
        for question in questions:
            stop = start + question.n_texts
            if question.ids is not None and self._kept is not None:
                self._kept.remember(probabilities[start:stop], question.ids, groups=question.groups, **asked)
            start = stop

    def _answer_together(
        self, questions: Sequence[SetsQuestion], rows: Sequence[Given], known: Sequence[FloatArray | None]
    ) -> Sequence[Outcome]:
        """Answer questions that ask for the same; if that fails, one by one, so that only the bad one fails."""
        if len(questions) > 1:
            words = [part for part in known if part is not None]
            together = _caught(self._answer, stacked(rows), np.concatenate(words) if words else None, *questions)
            if isinstance(together, list):
                answers = iter(together)
                return [list(itertools.islice(answers, len(part))) for part in rows]
        return [_caught(self._answer, *one) for one in zip(rows, known, questions, strict=True)]


def _caught(function: Callable[..., Any], *arguments: Any) -> Any:
    """Return what a function returns, or the exception that it raises."""
    try:
        return function(*arguments)
    except Exception as error:
        return error
