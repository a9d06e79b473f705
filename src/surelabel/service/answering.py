"""From requests to answers: checks against the limits, and the way to the worker thread and back."""

from __future__ import annotations

import asyncio
import collections
import contextlib
import math
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING

import numpy as np

from surelabel.exceptions import InvalidInputError, SearchLimitError
from surelabel.guarantees.outcomes import OutcomeError
from surelabel.service import schemas
from surelabel.service.batching import ClosedError, MicroBatcher, QueueFullError
from surelabel.service.computing import BatchWork, LabelSetQuestion, SetsQuestion, warm_up_questions
from surelabel.service.errors import ServiceError
from surelabel.service.metrics import ServiceMetrics
from surelabel.service.settings import ServiceSettings
from surelabel.service.sharing import Shared

if TYPE_CHECKING:
    from surelabel.answers import Answer
    from surelabel.models import Bundle

# Texts of one request that are computed in one go: the largest sets take milliseconds each, and others wait. Several
# such parts fill a batch beside short requests: a batch takes long before its first text.
_PART_TEXTS = 8
# Answers that are written as JSON by the event loop itself.
_FEW_ANSWERS = 16


def _invalid(field: str | None, message: str, what_to_do: str) -> ServiceError:
    """Build the error of a request that passes a limit or names what there is not."""
    return ServiceError(422, "invalid_request", message, what_to_do, field=field)


def _refused(error: OutcomeError, field: str) -> ServiceError:
    """Build the error of an id that is not known, or is in use or settled already."""
    status, code, what_to_do = {
        "unknown": (404, "unknown_text", "Send the id that the text was answered under."),
        "settled": (409, "already_settled", "Nothing more is to be done; give each text an id of its own."),
        "contradicts": (409, "contradicting_outcome", "Find out which label-set is right; the first one stays."),
    }[error.reason]
    return ServiceError(status, code, str(error), what_to_do, field=field)


def _busy(code: str, message: str, seconds: float = 1.0) -> ServiceError:
    """Build the error that asks a client to come back."""
    wait = math.ceil(max(1.0, seconds))
    what_to_do = f"Try again in {wait} s, with fewer requests at once."
    return ServiceError(503, code, message, what_to_do, headers={"Retry-After": str(wait)})


class Answerer:
    """Answers requests with one bundle.

    The event loop only waits here: classifier and conformal step run in a worker thread. Requests of all processes add
    to what is `shared`.
    """

    def __init__(self, bundle: Bundle, settings: ServiceSettings, metrics: ServiceMetrics, shared: Shared) -> None:
        self.bundle = bundle
        self.settings = settings
        self.metrics = metrics
        self.outcomes = shared.outcomes
        metrics.show(shared)
        self._label_numbers = {name: number for number, name in enumerate(bundle.label_names)}
        self._n_requests = 0
        self._part_texts = min(_PART_TEXTS, settings.max_batch_texts)
        self._work = BatchWork(
            bundle, metrics.classifier_seconds.observe, metrics.saw_conformal, shared.watch, self.outcomes
        )
        self._batcher = MicroBatcher(
            self._work,
            max_batch_texts=settings.max_batch_texts,
            max_wait=settings.max_wait,
            max_queue_texts=settings.max_queue_texts,
            on_batch=metrics.saw_batch,
            on_waiting=metrics.queue_texts.set,
        )

    def switch(self, bundle: Bundle) -> None:
        """Answer with another bundle of the same labels from now on."""
        settings = self.settings
        if settings.watch or settings.adapt is not None or settings.state is not None:
            raise InvalidInputError(
                "A service that watches its texts, or keeps outcomes, cannot switch to another model: start it again "
                "with the new one."
            )
        if bundle.label_names != self.bundle.label_names:
            raise InvalidInputError("A service can only switch to a model with the same labels.")
        self.outcomes.restart(bundle.predictor)
        self._work.bundle = self.bundle = bundle

    def start(self) -> None:
        """Begin to work; call it within a running event loop."""
        self._batcher.start()

    async def close(self) -> None:
        """Take nothing more and finish what runs."""
        await self._batcher.close()

    async def warm_up(self) -> None:
        """Answer a text of no client: what is compiled or loaded on first use is then there."""
        for question in warm_up_questions(self.bundle):
            await self._batcher.ask(question)

    async def predict(self, request: schemas.PredictRequest) -> bytes:
        """Return the answer to a request, as JSON."""
        answers = await self.answers(request)
        if len(answers) <= _FEW_ANSWERS:
            return _predict_response(answers)
        return await asyncio.to_thread(_predict_response, answers)

    async def answers(self, request: schemas.PredictRequest) -> list[Answer]:
        """Return the answers to a request."""
        texts = request.all_texts
        self._check_limits(request, texts)
        self._check_lengths(texts, field="text" if "text" in request.model_fields_set else "texts")
        groups = request.all_groups
        self._check_groups(groups, field="group" if "group" in request.model_fields_set else "groups")
        ids = request.all_ids
        self._check_ids(ids, len(texts))
        answers: list[Answer] = []
        async with self._admitted(len(texts)):
            for start in range(0, len(texts), self._part_texts):
                rows = slice(start, start + self._part_texts)
                part = SetsQuestion(
                    texts[rows],
                    request.level,
                    request.top,
                    request.describe,
                    request.picture,
                    groups=None if groups is None else groups[rows],
                    assurance=request.asked_assurance,
                    ids=None if ids is None else ids[rows],
                    adapts=self.settings.adapt is not None and request.level[1] is None,
                )
                try:
                    answers += await self._batcher.ask(part, is_long=len(texts) > self._part_texts)
                except OutcomeError as error:  # another request took the id meanwhile
                    raise _refused(error, "ids") from None
        self.metrics.saw_answers(answers)
        return answers

    async def p_value(self, request: schemas.PValueRequest) -> bytes:
        """Return the p-value of a label-set, as JSON."""
        self._check_lengths([request.text], field="text")
        self._check_labels(request.labels)
        self._check_groups(request.all_groups, field="group")
        numbers = sorted({self._label_numbers[name] for name in request.labels})
        calibration = self.bundle.predictor.calibration_
        row = np.zeros((1, calibration.n_labels), dtype=np.bool_)
        row[0, numbers] = True
        async with self._admitted(1):
            p_value = await self._batcher.ask(LabelSetQuestion(request.text, row, request.all_groups))
        response = schemas.PValueResponse(
            labels=[self.bundle.label_names[number] for number in numbers],
            p_value=p_value,
            is_candidate=bool(calibration.is_candidate(row)[0]),
        )
        return response.model_dump_json().encode()

    async def settle(self, request: schemas.OutcomesRequest) -> bytes:
        """Take true label-sets that have become known, and return what they come to, as JSON."""
        for number, outcome in enumerate(request.outcomes):
            self._check_labels(outcome.labels, place=f"outcomes[{number}].labels")
        ids = [outcome.id for outcome in request.outcomes]
        (twice, n_times), *_ = collections.Counter(ids).most_common(1)
        if n_times > 1:
            message = f"The id {twice[:80]!r} is there twice."
            raise ServiceError(409, "id_twice", message, "Send one outcome per text.", field="outcomes")
        labels = [list(dict.fromkeys(outcome.labels)) for outcome in request.outcomes]
        try:
            missed = await asyncio.to_thread(self.outcomes.settle, ids, labels)
        except OutcomeError as error:
            raise _refused(error, f"outcomes[{ids.index(error.identity)}].id") from None
        response = schemas.OutcomesResponse(missed=missed.tolist(), **self.outcomes.counts())
        return response.model_dump_json().encode()

    def _check_ids(self, ids: list[str] | None, n_texts: int) -> None:
        """Check that ids are as many as texts, different and new, and that this model's texts can be remembered."""
        if ids is None:
            return
        if len(set(ids)) != n_texts or len(ids) != n_texts:
            raise ServiceError(
                409,
                "ids_do_not_fit",
                f"{n_texts:,} texts need as many different ids. Got {len(ids):,}, of which {len(set(ids)):,} differ.",
                "Give 'id' with 'text', or 'ids' with one id per text.",
                field="ids",
            )
        if self.bundle.info.listed is not None:
            raise _invalid("ids", "Texts of a model with very many labels are not remembered.", "Leave out the ids.")
        try:
            self.outcomes.check_new(ids)
        except OutcomeError as error:
            raise _refused(error, "ids") from None

    @contextlib.asynccontextmanager
    async def _admitted(self, n_texts: int) -> AsyncIterator[None]:
        """Admit a request and limit its time; turn what prevents an answer into an error that a client can act on."""
        if self._n_requests >= self.settings.max_requests:
            raise _busy("too_many_requests", f"{self.settings.max_requests:,} requests are being answered already.")
        self._n_requests += 1
        try:
            with self._batcher.admitted(n_texts, self.settings.timeout):
                async with asyncio.timeout(self.settings.timeout):
                    yield
        except TimeoutError:
            seconds = max(5.0, self._batcher.seconds_of_backlog)
            raise _busy("timeout", f"No answer within {self.settings.timeout:g} s.", seconds) from None
        except QueueFullError as error:
            raise _busy("queue_full", "Too many texts wait for the classifier already.", error.args[0]) from None
        except ClosedError:
            raise _busy("stopping", "The service is stopping.", seconds=10) from None
        except SearchLimitError as error:
            raise _invalid(
                None, f"The answer would take too much work: {error}", "Ask for a larger significance, or fewer texts."
            ) from None
        finally:
            self._n_requests -= 1

    def _check_limits(self, request: schemas.PredictRequest, texts: list[str]) -> None:
        """Check the number of texts, and how many label-sets are asked for."""
        settings, top = self.settings, request.top
        several = "Send them in several requests."
        fewer = "Ask for fewer label-sets, or send the texts in several requests."
        for field, what, limit, got, what_to_do in (
            ("texts", "A request can have {} texts.", settings.max_texts, len(texts), several),
            ("top", "'top' can be {}.", settings.max_top, top, "Ask for fewer label-sets."),
            ("top", "'top' times the number of texts can be {}.", settings.max_label_sets, top * len(texts), fewer),
        ):
            if got > limit:
                raise _invalid(field, f"{what.format(f'{limit:,}')} Got {got:,}.", what_to_do)

    def _check_lengths(self, texts: list[str], field: str) -> None:
        """Check the lengths of texts."""
        most = self.settings.max_text_chars
        for number, text in enumerate(texts):
            if len(text) > most:
                message = f"A text can have {most:,} characters. Got {len(text):,}."
                place = field if field == "text" else f"texts[{number}]"
                raise _invalid(place, message, "Shorten the text, or split it.")

    def _check_groups(self, groups: list[str] | None, *, field: str) -> None:
        """Check that there are groups if the model needs them, and that it knows them."""
        known = self.bundle.groups
        if known is None:
            if groups is not None:
                raise _invalid(field, "The model is not calibrated by groups.", f"Leave out {field!r}.")
            return
        if groups is None:
            raise _invalid(
                "group",
                f"The model is calibrated by {self.bundle.info.group_column or 'groups'}: each text needs its group.",
                "Give 'group', or 'groups' with one group per text; GET /v1/model lists them.",
            )
        categories = self.bundle.predictor.calibration_.categories
        takes_others = categories is not None and categories.has_others
        for number, group in enumerate(groups):
            if not group.strip() or (group not in known and not takes_others):
                what = f"has no calibration texts: {group[:80]!r}" if group.strip() else "is empty"
                place = field if field == "group" else f"groups[{number}]"
                raise _invalid(place, f"The group {what}.", "Use groups that GET /v1/model lists under 'groups'.")

    def _check_labels(self, labels: list[str], *, place: str = "labels") -> None:
        """Check that labels are known."""
        for number, name in enumerate(labels):
            if name not in self._label_numbers:
                raise _invalid(
                    f"{place}[{number}]",
                    f"There is no label {name[:80]!r}.",
                    "Use names that GET /v1/model lists under 'labels'.",
                )


def _predict_response(answers: list[Answer]) -> bytes:
    """Write the answer to a request as JSON."""
    first = answers[0]
    response = schemas.PredictResponse(
        significance=first.significance,
        n_candidates=schemas.count_of(first.n_candidates, first.n_candidates),
        answers=[schemas.text_answer(answer) for answer in answers],
    )
    return response.model_dump_json().encode()
