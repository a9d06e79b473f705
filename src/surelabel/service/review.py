"""A review over HTTP: texts of queues with their cards, and decisions about them."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Annotated, Any, Literal

from fastapi.responses import JSONResponse, Response
from pydantic import Field, field_validator

from surelabel import review
from surelabel.service.pages import render_card, render_page
from surelabel.service.schemas import StrictRequest, described, posted

if TYPE_CHECKING:
    from fastapi import FastAPI

    from surelabel.models import Bundle
    from surelabel.review import ReviewStore, ReviewText
    from surelabel.review.background import Learner

MOST_LEASED = 50
_MOST_LABELS = 1_000
Name = Annotated[str, Field(min_length=1, max_length=200)]
Queue = Literal["choose", "read", "check", "filed"]
_TYPES = {
    "csv": "text/csv; charset=utf-8",
    "jsonl": "application/x-ndjson",
    "xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
}


class ReviewerRequest(StrictRequest):
    """Who is asking."""

    reviewer: Name

    @field_validator("reviewer", "key", check_fields=False)
    @classmethod
    def _printable(cls, name: str) -> str:
        if not name.isprintable():
            raise ValueError("it must be printable")
        return name


class LeaseRequest(ReviewerRequest):
    """A reviewer asks for texts of a queue."""

    queue: Queue
    n: int = Field(5, ge=1, le=MOST_LEASED)


class DecisionRequest(ReviewerRequest):
    """A decision; its key is new, or that of a request that is sent again."""

    key: Name
    number: int = Field(ge=1, lt=2**63)
    labels: list[Annotated[str, Field(min_length=1, max_length=1_000)]] | None = Field(
        max_length=_MOST_LABELS, description="null skips the text, [] means that no label fits."
    )
    seconds: float | None = Field(None, ge=0, le=10**9, allow_inf_nan=False)


class UndoRequest(ReviewerRequest):
    """Undo the last decision of a reviewer, or the one with this key."""

    key: Name | None = None


class LearningRequest(StrictRequest):
    """What to do about the next generation of the model."""

    action: Literal["learn", "calibrate", "switch", "undo"] = Field(
        description="learn: train it, or continue; calibrate: calibrate this model again; switch to it; undo that."
    )


def add_review(app: FastAPI, bundle: Bundle, store: ReviewStore, learner: Learner | None = None) -> None:
    """Add the page of a review and what it calls; FastAPI runs these functions in threads."""
    known = frozenset(bundle.label_names)

    def counts() -> dict[str, Any]:
        return {queue: dataclasses.asdict(each) for queue, each in store.counts().items()}

    def shown(text: ReviewText, labels: list[str] | None = None) -> dict[str, Any]:
        """Return what a reviewer sees; a text of the blind check comes without an answer."""
        is_check = text.is_check or text.queue == "check"
        card = render_card(None if is_check else text.answer, queue=text.queue, labels=labels)
        return {"number": text.number, "id": text.id, "text": text.text, "queue": text.queue, "card": card}

    @app.get("/review", include_in_schema=False)
    def page() -> Response:
        return render_page("review.html", info=bundle.info, queues=review.QUEUES, learns=learner is not None)

    @app.get("/v1/review", **described())
    def state() -> Response:
        """Return the counts of the queues."""
        return JSONResponse({"queues": counts(), "lease_seconds": store.lease_seconds})

    @app.get("/v1/review/labels", **described())
    def labels() -> Response:
        """Return the names of all labels, with alternative names, and names of broader concepts in a vocabulary."""
        return JSONResponse({"labels": _named_labels(bundle)})

    @app.post("/v1/review/lease", **posted())
    def lease(body: LeaseRequest) -> Response:
        """Lease texts of a queue to a reviewer; those of other queues are released."""
        texts = store.lease(body.reviewer, body.queue, body.n)
        return JSONResponse({"texts": [shown(text) for text in texts], "queues": counts()})

    @app.post("/v1/review/decisions", **posted())
    def decide(body: DecisionRequest) -> Response:
        """Save a decision about a leased text; sending it again changes nothing."""
        decision = store.decide(body.key, body.number, body.reviewer, body.labels, seconds=body.seconds)
        chosen = None if decision.labels is None else list(decision.labels)
        unknown = list(decision.unknown_labels(known))
        saved = {"id": decision.id, "number": decision.number, "labels": chosen, "unknown_labels": unknown}
        return JSONResponse(saved | {"queues": counts()})

    @app.post("/v1/review/undo", **posted())
    def undo(body: UndoRequest) -> Response:
        """Undo the last decision of a reviewer; its text is leased to the reviewer again."""
        text = store.undo(body.reviewer, body.key)
        return JSONResponse({"text": None if text is None else shown(text), "queues": counts()})

    @app.get("/v1/review/summary", **described())
    def summary() -> Response:
        """Return the figures of the decisions."""
        return JSONResponse(review.figures(store).to_dict())

    @app.get("/v1/review/export", **described(422))
    def export(format: Literal["csv", "jsonl", "xlsx"] = "csv") -> Response:  # noqa: A002
        """Return the decisions as a file."""
        uris = dict(zip(bundle.label_names, bundle.uris, strict=True)) if bundle.uris is not None else None
        content = review.exported_bytes(store, format, label_names=bundle.label_names, uris=uris)
        headers = {"Content-Disposition": f'attachment; filename="decisions.{format}"'}
        return Response(content, media_type=_TYPES[format], headers=headers)

    if learner is not None:
        _add_learning(app, store, learner)


def _named_labels(bundle: Bundle) -> list[dict[str, Any]]:
    """Return each label with its other names, those of the tagger and of the vocabulary, and broader concepts."""
    found: list[dict[str, Any]] = [{"name": name, "alternatives": []} for name in bundle.label_names]
    by_name = {one["name"]: one for one in found}
    for other, name in (getattr(bundle.classifier, "alternatives", None) or {}).items():
        if name in by_name:
            by_name[name]["alternatives"].append(other)
    if (words := bundle.vocabulary) is not None:
        for one, uri in zip(found, bundle.uris or (), strict=True):
            one["alternatives"] += words.alternatives(uri or "")
            one["broader"] = [words.name(broader) for broader in words.broader(uri or "")]
    return found


def _add_learning(app: FastAPI, store: ReviewStore, learner: Learner) -> None:
    """Add the next generation of the model: how far it is, and what to do about it."""

    @app.get("/v1/review/learning", **described())
    def learning() -> Response:
        """Return how far the next generation of the model is."""
        return JSONResponse(learner.state(store))

    @app.post("/v1/review/learning", **posted())
    def act(body: LearningRequest) -> Response:
        """Start, switch or undo; after a switch the service starts again with the other model."""
        if body.action in {"learn", "calibrate"}:
            learner.start(retrain=body.action == "learn")
        else:
            learner.switch() if body.action == "switch" else learner.undo()
            app.state.is_replaced = True
            server = getattr(app.state, "server", None)
            if server is not None:
                server.should_exit = True
        return JSONResponse(learner.state(store))
