"""Pages for people: a question with its answer as a card, and tables."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, get_args

import jinja2
from fastapi.responses import HTMLResponse, Response
from fastapi.staticfiles import StaticFiles

from surelabel._core import formatting
from surelabel.service import schemas
from surelabel.service.answering import Question, check_groups
from surelabel.service.security import PAGE_POLICY, REPORT_POLICY

if TYPE_CHECKING:
    from fastapi import FastAPI

    from surelabel.service.answering import Worker

_HEADINGS = {"file": "File", "choose": "Choose", "read": "Read"}


@functools.cache
def _templates() -> jinja2.Environment:
    """Return the templates; everything they insert is escaped."""
    templates = jinja2.Environment(
        loader=jinja2.PackageLoader("surelabel.service"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    templates.filters |= {"percent": lambda share: formatting.percent(float(share)), "number": _number}
    return templates


def _number(value: float) -> str:
    """Write a p-value: never 0, however small it is."""
    return formatting.count(float(value)) if value else "0"


def render_page(name: str, **values: Any) -> HTMLResponse:
    """Return a page; only its own scripts and styles may run in it."""
    content = _templates().get_template(name).render(values)
    return HTMLResponse(content, headers={"Content-Security-Policy": PAGE_POLICY})


def render_card(answer: Mapping[str, Any] | None, *, queue: str | None = None, labels: Any = None) -> str:
    """Return the card of an answer: what to do, the tags as buttons, why, and the rest folded.

    Parameters
    ----------
    answer : mapping or None
        `Answer.record()`, also an incomplete one; None in the blind check, which shows nothing of the answer.
    queue : str, optional
        In a review, the queue: tags become toggles.
    labels : sequence of str, optional
        The labels that are ticked; by default those that the answer vouches for.
    """
    record: dict[str, Any] = {"decision": "read", "reason": "", "labels": [], "consider": [], "assign": []}
    record |= {name: value for name, value in (answer or {}).items() if value is not None}
    decision = record["decision"]
    sure = {"file": record["labels"], "choose": [*record["assign"], *record.get("certain", ())], "read": []}[decision]
    shown = {"file": record["labels"], "choose": dict.fromkeys((*record["consider"], *sure)), "read": []}[decision]
    ticked = list(sure if labels is None else labels)
    sizes = [int(bound) for bound in record.get("size_bounds") or ()]
    return (
        _templates()
        .get_template("answer.html")
        .render(
            answer=record,
            heading="Check" if answer is None else _HEADINGS[decision],
            queue=queue,
            sure=sure,
            tags=list(dict.fromkeys((*shown, *ticked))),
            ticked=ticked,
            n_possible=formatting.bounds(*sizes) if sizes else None,
            is_one=sizes == [1, 1],
            is_blind=answer is None,
        )
    )


def add_pages(app: FastAPI, worker: Worker, *, has_review: bool) -> None:
    """Add the page, its card, the report and static files."""
    bundle = worker.bundle
    own_level = bundle.info.levels["max_wrong"]
    levels = sorted({*get_args(schemas.Dial), own_level}, key=float)

    @app.get("/", include_in_schema=False)
    def page() -> Response:
        return render_page(
            "index.html",
            info=bundle.info,
            groups=bundle.groups,
            levels=levels,
            level=own_level,
            has_report=bundle.report is not None,
            has_review=has_review,
        )

    @app.post("/v1/card", **schemas.posted({"content": {"text/html": {}}}))
    async def card(body: schemas.CardRequest) -> HTMLResponse:
        """Answer a text as a card in HTML."""
        check_groups(bundle, body.groups)
        [answer] = await worker.ask(Question([body.text], body.groups, body.level or own_level, dial=body.level))
        return HTMLResponse(render_card(answer.record()))

    @app.get("/report", include_in_schema=False)
    def report() -> Response:
        if bundle.report is None:
            raise schemas.ServiceError(
                404, "no_report", "The model has no report.", "Make one with 'surelabel evaluate'."
            )
        headers = {"Content-Security-Policy": REPORT_POLICY}
        return Response(bundle.report, media_type="text/html; charset=utf-8", headers=headers)

    app.mount("/static", StaticFiles(packages=[("surelabel.service", "static")]))
