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

from surelabel._kernels.compiling import compile_at_once
from surelabel.answers import Answer
from surelabel.labels.sparse import SparseProbabilities, stacked

if TYPE_CHECKING:
    from surelabel._core.validation import BoolArray, FloatArray
    from surelabel.models import Bundle
    from surelabel.service.sharing import ServiceOutcomes, ServiceWatch

_log = logging.getLogger(__name__)

Outcome: TypeAlias = "list[Answer] | float | Exception"
Given: TypeAlias = "FloatArray | SparseProbabilities"
"""Probabilities (n, d), of very many labels sparse ones."""
_Questions: TypeAlias = "Sequence[SetsQuestion | LabelSetQuestion]"


@dataclasses.dataclass(frozen=True, eq=False)
class SetsQuestion:
    """Find the plausible label-sets of texts.

    `level` has name and value of the keyword argument that gives it, unless the level `adapts`. Texts with `ids` are
    remembered under them; texts that no client asks about (not `is_served`) are not watched.
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

    @property
    def asked(self) -> int:
        """Each is answered on its own."""
        return id(self)


def warm_up_questions(bundle: Bundle) -> list[SetsQuestion | LabelSetQuestion]:
    """Return questions of no client whose answers compile or load all that the first ones need."""
    compile_at_once()
    calibration = bundle.predictor.calibration_
    # The smallest level that still rules something out: the set then has members to name.
    level = ("significance", Fraction(2, calibration.n_texts + 2))
    groups = None if bundle.groups is None else [bundle.groups[0]]
    no_labels = np.zeros((1, calibration.n_labels), dtype=np.bool_)
    return [
        *(
            SetsQuestion(["warm-up"], level, 5, describe=True, picture=picture, is_served=False, groups=groups)
            for picture in (False, True)
        ),
        LabelSetQuestion("warm-up", no_labels, groups),
    ]


class BatchWork:
    """Answers the questions of a batch with one bundle.

    The classifier is called once. Texts for which the same is asked go through the conformal step together. The two
    callables get the seconds that classifier and conformal step take; of the latter also those of processor time.
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

    def __call__(self, questions: _Questions) -> list[Outcome]:
        """Return one answer per question, or the exception that it ended with."""
        texts = [text for question in questions for text in question.texts]
        start = time.perf_counter()
        probabilities, known_words = self.bundle.predict_proba(texts), self.bundle.known_words(texts)
        if len(probabilities) != len(texts):
            raise RuntimeError(f"The classifier gave {len(probabilities)} rows for {len(texts)} texts.")
        self._saw_classifier(time.perf_counter() - start)
        start, start_cpu = time.perf_counter(), time.thread_time()
        answer = self._outcomes if len(questions) == 1 else self._outcomes_by_kind
        outcomes = answer(probabilities, known_words, questions)
        if self._watch is not None:
            self._show_watch(self._watch, _parts(probabilities, questions), questions, outcomes)
        self._saw_conformal(time.perf_counter() - start, time.thread_time() - start_cpu)
        return outcomes

    def _outcomes_by_kind(
        self, probabilities: Given, known_words: FloatArray | None, questions: _Questions
    ) -> list[Outcome]:
        """Answer questions, those together that ask for the same."""
        alike: dict[Any, list[int]] = {}
        for number, question in enumerate(questions):
            alike.setdefault(question.asked, []).append(number)
        if len(alike) == 1:
            return self._outcomes(probabilities, known_words, questions)
        rows, known = _parts(probabilities, questions), _parts(known_words, questions)
        outcomes: list[Outcome] = [0.0] * len(questions)
        for numbers in alike.values():
            words = None if known_words is None else np.concatenate([known[number] for number in numbers])
            together = stacked([rows[number] for number in numbers]), words, [questions[number] for number in numbers]
            for number, outcome in zip(numbers, self._outcomes(*together), strict=True):
                outcomes[number] = outcome
        return outcomes

    def _outcomes(self, probabilities: Given, known_words: FloatArray | None, questions: _Questions) -> list[Outcome]:
        """Answer questions that ask for the same; if that fails, one by one, so that only the bad one fails."""
        try:
            return _parts(self._answer(probabilities, known_words, questions), questions)
        except Exception as error:
            if len(questions) == 1:
                return [error]
        parts = zip(_parts(probabilities, questions), _parts(known_words, questions), questions, strict=True)
        return [self._outcomes(rows, known, [question])[0] for rows, known, question in parts]

    @staticmethod
    def _show_watch(watch: ServiceWatch, parts: list[Given], questions: _Questions, outcomes: list[Outcome]) -> None:
        """Show the watch the texts of clients that were answered; what goes wrong there is no client's problem."""
        seen = [
            rows
            for rows, question, outcome in zip(parts, questions, outcomes, strict=True)
            if isinstance(question, SetsQuestion) and question.is_served and isinstance(outcome, list)
        ]
        try:
            if seen:
                watch.update(stacked(seen))
        except Exception:
            _log.exception("The watch failed on %d texts.", sum(map(len, seen)))

    def _answer(self, probabilities: Given, known_words: FloatArray | None, questions: Sequence[Any]) -> Any:
        """Do the conformal step for questions that ask for the same, and remember texts with an id."""
        question = questions[0]
        if isinstance(question, LabelSetQuestion):
            p_values = self.bundle.predictor.predict_p(probabilities, question.labels, groups=question.groups)
            return float(p_values[0])
        ids = [name for question in questions for name in question.ids or ()]
        if ids and self._kept is not None:
            # All of them before anything is remembered: what fails together is tried one by one.
            self._kept.check_new(ids)
        name, level = question.level
        asked = {
            name: level,
            "top": question.top,
            "describe": question.describe,
            "picture": question.picture,
            "probabilities": probabilities,
            "known_words": known_words,
            "groups": [group for question in questions for group in question.groups or ()] or None,
            "assurance": question.assurance,
        }
        if question.adapts and self._kept is not None:
            with self._kept.answering() as (predictor, level):
                bundle = dataclasses.replace(self.bundle, predictor=predictor, forced_totals=None)
                answers = bundle.answers((), **asked | {"significance": Fraction(level)})
                self._remember(probabilities, questions)
            return [dataclasses.replace(answer, significance=f"{level:.6f}") for answer in answers]
        answers = self.bundle.answers((), **asked)
        if ids:
            used = Fraction(answers[0].significance)
            self._remember(probabilities, questions, significance=used, assurance=question.assurance)
        return answers

    def _remember(self, probabilities: Given, questions: Sequence[SetsQuestion], **asked: Any) -> None:
        """Remember texts with an id."""
        for question, rows in zip(questions, _parts(probabilities, questions), strict=True):
            if question.ids is not None and self._kept is not None:
                self._kept.remember(rows, question.ids, groups=question.groups, **asked)


def _parts(values: Any, questions: _Questions) -> list[Any]:
    """Return what is given for all texts, if anything, question by question."""
    if len(questions) == 1 or values is None:
        return [values] * len(questions)
    ends = itertools.accumulate((question.n_texts for question in questions), initial=0)
    return [values[start:stop] for start, stop in itertools.pairwise(ends)]
