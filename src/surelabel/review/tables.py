"""The tables of a review store, and their rows as plain values and back."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping, Sequence
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite

from surelabel.exceptions import InvalidInputError, ReviewConflictError
from surelabel.review.queues import QUEUES, Decision, Offer, ReviewText

VERSION = 1
METADATA = sa.MetaData()
_LONGEST_NAME = 200

# Numbers that a database counts up by itself; SQLite does that for plain integers alone.
_NUMBER = sa.BigInteger().with_variant(sa.Integer(), "sqlite")

NOTES = sa.Table(
    "surelabel_review_notes",
    METADATA,
    sa.Column("name", sa.String(_LONGEST_NAME), primary_key=True),
    sa.Column("value", sa.Text, nullable=False),
)
"""Version of the tables, the salt of the blind check, and the model in use."""

TEXTS = sa.Table(
    "surelabel_review_texts",
    METADATA,
    sa.Column("number", _NUMBER, primary_key=True, autoincrement=True),
    sa.Column("text_id", sa.Text, nullable=False),
    sa.Column("text_hash", sa.String(64), nullable=False),
    sa.Column("text", sa.Text, nullable=False),
    sa.Column("columns", sa.JSON, nullable=False),
    sa.Column("queue", sa.String(16), nullable=False),
    sa.Column("is_blind", sa.Boolean, nullable=False),
    sa.Column("offered", sa.JSON, nullable=False),
    sa.Column("model", sa.String(64), nullable=False),
    sa.Column("added_at", sa.Double, nullable=False),
    sa.Column("skips", sa.Integer, nullable=False, default=0),
    sa.Column("decided", _NUMBER, nullable=True),
    sa.Column("lease_owner", sa.String(_LONGEST_NAME), nullable=True),
    sa.Column("lease_until", sa.Double, nullable=True),
    sa.UniqueConstraint("text_id", "text_hash"),
    sa.Index("surelabel_review_waiting", "queue", "decided", "skips", "number"),
)
"""One row per text; `decided` is the id of the decision that stands."""

DECISIONS = sa.Table(
    "surelabel_review_decisions",
    METADATA,
    sa.Column("id", _NUMBER, primary_key=True, autoincrement=True),
    sa.Column("key", sa.String(_LONGEST_NAME), nullable=False, unique=True),
    sa.Column("text_number", sa.ForeignKey(TEXTS.c.number), nullable=False, index=True),
    sa.Column("text_id", sa.Text, nullable=False),
    sa.Column("text_hash", sa.String(64), nullable=False),
    sa.Column("action", sa.String(16), nullable=False),
    sa.Column("offered", sa.JSON, nullable=False),
    sa.Column("chosen", sa.JSON(none_as_null=True), nullable=True),
    sa.Column("queue", sa.String(16), nullable=False),
    sa.Column("reviewer", sa.String(_LONGEST_NAME), nullable=False, index=True),
    sa.Column("at", sa.Double, nullable=False),
    sa.Column("seconds", sa.Double, nullable=True),
    sa.Column("model", sa.String(64), nullable=False),
    sa.Column("is_blind", sa.Boolean, nullable=False),
    sa.Column("undoes", _NUMBER, nullable=True, unique=True),
)
"""One row per decision, skip and undoing; rows are added and never changed."""


def insert_if_new(connection: sa.Connection, rows: Sequence[Mapping[str, Any]]) -> int:
    """Insert texts whose id and hash are not there; return how many."""
    # Both dialects have the clause, each in a class of its own.
    insert: Any = postgresql.insert if connection.dialect.name == "postgresql" else sqlite.insert
    statement = insert(TEXTS).on_conflict_do_nothing(index_elements=["text_id", "text_hash"])
    return len(connection.execute(statement.returning(TEXTS.c.number), [dict(row) for row in rows]).all())


def with_decisions() -> sa.Select[Any]:
    """Select texts with the decisions that stand."""
    decision = [column.label(f"decision_{column.name}") for column in DECISIONS.c]
    return sa.select(TEXTS, *decision).outerjoin(DECISIONS, TEXTS.c.decided == DECISIONS.c.id)


def as_text(row: sa.Row[Any]) -> ReviewText:
    """Return a row of `with_decisions` as a text."""
    values = row._mapping
    decided = {column.name: values[f"decision_{column.name}"] for column in DECISIONS.c}
    decision = None if decided["id"] is None else as_decision(decided)
    renamed = {"id": values["text_id"], "hash": values["text_hash"], "decision": decision}
    return ReviewText(offer=Offer.from_dict(values["offered"]), **_fields(ReviewText, values, renamed))


def as_decision(values: Mapping[str, Any] | sa.RowMapping) -> Decision:
    """Return the values of a row of decisions as a decision."""
    chosen = None if values["chosen"] is None else tuple(values["chosen"])
    renamed = {"number": values["text_number"], "chosen": chosen}
    return Decision(offered=Offer.from_dict(values["offered"]), **_fields(Decision, values, renamed))


def _fields(kind: type[Any], values: Mapping[str, Any] | sa.RowMapping, renamed: dict[str, Any]) -> dict[str, Any]:
    """Return the values of a dataclass's fields but the offer, by their names in the row unless they are renamed."""
    names = [field.name for field in dataclasses.fields(kind) if field.name not in {"offer", "offered"}]
    return {name: renamed[name] if name in renamed else values[name] for name in names}


def record_of(text: Mapping[str, Any], **values: Any) -> dict[str, Any]:
    """Return the row of a decision about a text."""
    copied = ("text_id", "text_hash", "offered", "queue", "model", "is_blind")
    return {"text_number": text["number"], **{name: text[name] for name in copied}, **values}


def check_free(text: Mapping[str, Any], reviewer: str, now: float) -> None:
    """Raise if a text is decided, or is with another reviewer."""
    if text["decided"] is not None:
        raise ReviewConflictError(f"Text {text['text_id']!r:.60} is decided already. Undo that decision first.")
    if text["lease_owner"] not in {None, reviewer} and text["lease_until"] > now:
        raise ReviewConflictError(f"Text {text['text_id']!r:.60} is with another reviewer now. Take another text.")


def checked_queue(queue: str) -> str:
    """Return the name of a queue if there is such a one."""
    if queue not in QUEUES:
        raise InvalidInputError(f"The 'queue' must be one of {', '.join(QUEUES)}. Got {queue!r} instead.")
    return queue


def checked_name(name: str, what: str) -> str:
    """Return the name of a reviewer, or the key of a decision, if it can be stored."""
    if not name or len(name) > _LONGEST_NAME or not name.isprintable():
        raise InvalidInputError(f"The {what} must have 1 to {_LONGEST_NAME} printable characters. Got {name!r:.60}.")
    return name


def storable(text: str) -> str:
    """Return a text that every database takes: PostgreSQL has no character 0."""
    return text.replace("\0", "\N{REPLACEMENT CHARACTER}")


def plain(columns: Mapping[str, Any]) -> Any:
    """Return cells as values of JSON; what JSON has no value for becomes a string."""
    return json.loads(storable(json.dumps(dict(columns), default=str)).replace("\\u0000", "\\ufffd"))
