"""The tables of a review store, and the database they are in."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import math
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from surelabel._core.extras import require
from surelabel._core.files import check_outside
from surelabel.exceptions import ArtifactError, InvalidInputError
from surelabel.review.queues import CHECK, Decision, ReviewText

VERSION = 2
METADATA = sa.MetaData()
LONGEST_NAME = 200
LARGEST_NUMBER = 2**63 - 1

# SQLite counts up plain integers only.
_NUMBER = sa.BigInteger().with_variant(sa.Integer(), "sqlite")

META = sa.Table(
    "surelabel_meta",
    METADATA,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("version", sa.Integer, nullable=False),
    sa.Column("salt", sa.String(64), nullable=False),
)
"""One row: the version of the tables and the key of the blind check's draw."""

TEXTS = sa.Table(
    "surelabel_texts",
    METADATA,
    sa.Column("number", _NUMBER, primary_key=True, autoincrement=True),
    sa.Column("id", sa.Text, nullable=False),
    sa.Column("hash", sa.String(64), nullable=False),
    sa.Column("text", sa.Text, nullable=False),
    sa.Column("columns", sa.JSON, nullable=False),
    sa.Column("queue", sa.String(16), nullable=False),
    sa.Column("is_check", sa.Boolean, nullable=False),
    sa.Column("answer", sa.JSON, nullable=False),
    sa.Column("model", sa.Text, nullable=False),
    sa.Column("place", sa.BigInteger, nullable=False),
    sa.Column("n_skips", sa.Integer, nullable=False, default=0),
    sa.Column("decided", _NUMBER, nullable=True),
    sa.Column("owner", sa.String(LONGEST_NAME), nullable=True),
    sa.Column("until", sa.Double, nullable=True),
    sa.UniqueConstraint("id", "hash"),
    sa.Index("surelabel_pending", "queue", "decided", "n_skips", "place", "number"),
    sqlite_autoincrement=True,
)
"""One row per text. `decided` is the id of the decision that stands, `place` the order in the queue."""

DECISIONS = sa.Table(
    "surelabel_decisions",
    METADATA,
    sa.Column("id", _NUMBER, primary_key=True, autoincrement=True),
    sa.Column("key", sa.String(LONGEST_NAME), nullable=False, unique=True),
    sa.Column("number", sa.ForeignKey(TEXTS.c.number), nullable=False, index=True),
    sa.Column("labels", sa.JSON(none_as_null=True), nullable=True),
    sa.Column("reviewer", sa.String(LONGEST_NAME), nullable=False, index=True),
    sa.Column("at", sa.Double, nullable=False),
    sa.Column("seconds", sa.Double, nullable=True),
    sa.Column("undone_at", sa.Double, nullable=True),
    sqlite_autoincrement=True,
)
"""One row per decision and skip. Rows are added; only `undone_at` is ever set later."""

_DECIDED = [column.label(f"decision_{column.name}") for column in DECISIONS.c]
_OF_TEXT = [field.name for field in dataclasses.fields(ReviewText) if field.name != "decision"]
_OF_DECISION = [field.name for field in dataclasses.fields(Decision)]


def select_texts() -> sa.Select[Any]:
    """Select texts with the decisions that stand."""
    return sa.select(TEXTS, *_DECIDED).outerjoin(DECISIONS, TEXTS.c.decided == DECISIONS.c.id)


def select_decisions() -> sa.Select[Any]:
    """Select all decisions with their texts."""
    return sa.select(TEXTS, *_DECIDED).join(DECISIONS, DECISIONS.c.number == TEXTS.c.number)


def as_text(row: sa.Row[Any]) -> ReviewText:
    """Return a row of `select_texts` as a value, without the answer if the check is blind."""
    values = {name: row._mapping[name] for name in _OF_TEXT}
    if row.queue == CHECK:
        values["answer"] = None
    return ReviewText(**values, decision=None if row.decision_id is None else as_decision(row))


def as_decision(row: sa.Row[Any], *, reveal: bool = False) -> Decision:
    """Return a row as a decision; `reveal` the answer even if the check is blind."""
    found = row._mapping
    values = {name: found[f"decision_{name}" if name in DECISIONS.c else name] for name in _OF_DECISION}
    if values["labels"] is not None:
        values["labels"] = tuple(values["labels"])
    if row.queue == CHECK and not reveal:
        values["answer"] = None
    return Decision(**values)


def storable(text: str) -> str:
    """Return a text that every database accepts: no NUL (PostgreSQL), no lone surrogates (UTF-8)."""
    return text.replace("\0", "\N{REPLACEMENT CHARACTER}").encode("utf-8", "replace").decode()


def storable_json(value: Any) -> Any:
    """Return a value as plain JSON; what JSON cannot hold becomes a string, or None if it is not a number."""
    if isinstance(value, Mapping):
        return {storable(str(name)): storable_json(item) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [storable_json(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if value is None or isinstance(value, (bool, int, float)):
        return value
    return storable(value if isinstance(value, str) else str(value))


def open_database(url: str | os.PathLike[str]) -> sa.Engine:
    """Open an SQLite file (a path or sqlite:///PATH) or a PostgreSQL database (a URL)."""
    name = os.fspath(url)
    if "://" not in name:
        check_outside(name)
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        parsed = sa.URL.create("sqlite", database=name)
    else:
        parsed = sa.make_url(name)
        if parsed.drivername in {"postgres", "postgresql"}:
            parsed = parsed.set(drivername="postgresql+psycopg")
    if parsed.get_backend_name() == "sqlite":
        engine = sa.create_engine(parsed, connect_args={"timeout": 60}, json_serializer=_to_json)
        sa.event.listen(engine, "connect", _set_up_sqlite)
        sa.event.listen(engine, "begin", _begin_sqlite)
        return engine
    if parsed.get_backend_name() != "postgresql":
        raise InvalidInputError(
            f"A review store must be an SQLite file or a postgresql:// URL. Got {parsed.get_backend_name()}:// instead."
        )
    require("psycopg", "postgresql", "A review store in PostgreSQL")
    return sa.create_engine(parsed, pool_size=16, max_overflow=16, pool_pre_ping=True, json_serializer=_to_json)


def _to_json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def without_password(url: str | os.PathLike[str]) -> str:
    """Return a path or URL for messages."""
    try:
        return sa.make_url(os.fspath(url)).render_as_string(hide_password=True)
    except sa.exc.ArgumentError:
        return repr(os.fspath(url)) if "://" not in os.fspath(url) else "a URL that cannot be read"


@contextlib.contextmanager
def opening(url: str | os.PathLike[str]) -> Iterator[None]:
    """Name the store and the reason if it cannot be opened."""
    try:
        yield
    except sa.exc.ArgumentError as error:
        raise InvalidInputError(f"A review store must be a file or a URL. Got {without_password(url)}.") from error
    except (sa.exc.SQLAlchemyError, OSError) as error:
        reason = str(getattr(error, "orig", None) or error).splitlines()[0]
        raise ArtifactError(f"The review store {without_password(url)} cannot be opened: {reason}.") from error


def _set_up_sqlite(connection: Any, _: Any) -> None:
    """Let readers and a writer work at once, and put every commit on the disk."""
    connection.isolation_level = None  # transactions begin in _begin_sqlite
    cursor = connection.cursor()
    for pragma in ("journal_mode=WAL", "synchronous=FULL", "foreign_keys=ON"):
        cursor.execute(f"PRAGMA {pragma}")
    cursor.close()


def _begin_sqlite(connection: sa.Connection) -> None:
    """Ask for the right to write at the start: two writers then wait instead of failing."""
    reads = connection.get_execution_options().get("reads", False)
    connection.exec_driver_sql("BEGIN" if reads else "BEGIN IMMEDIATE")
