"""Databases for reviews: opened, set up, and named in messages without their passwords."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from surelabel._core.extras import of_extra
from surelabel.exceptions import ArtifactError, InvalidInputError

DatabaseError = sa.exc.SQLAlchemyError
"""What a database that is away, busy or full leads to."""


def engine_of(place: str | os.PathLike[str]) -> sa.Engine:
    """Open a database: a URL, or the path of an SQLite file."""
    name = os.fspath(place)
    if "://" not in name:
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        url = sa.URL.create("sqlite", database=name)
    else:
        url = sa.make_url(name)
        if url.drivername in {"postgres", "postgresql"}:
            url = url.set(drivername="postgresql+psycopg")
    if url.get_backend_name() == "sqlite":
        engine = sa.create_engine(url, connect_args={"timeout": 60})
        sa.event.listen(engine, "connect", _set_up_sqlite)
        sa.event.listen(engine, "begin", _begin_sqlite)
        return engine
    if url.get_backend_name() != "postgresql":
        raise InvalidInputError(
            f"A review store must be an SQLite file or a postgresql:// URL. Got {url.get_backend_name()}:// instead."
        )
    with of_extra("postgresql", "A review store in PostgreSQL"):
        return sa.create_engine(url, pool_size=16, max_overflow=16, pool_pre_ping=True)


def _shown(place: str | os.PathLike[str]) -> str:
    """Return a path or URL for messages, without its password."""
    try:
        return sa.make_url(os.fspath(place)).render_as_string(hide_password=True)
    except sa.exc.ArgumentError:
        return repr(os.fspath(place)) if "://" not in os.fspath(place) else "a URL that cannot be read"


@contextlib.contextmanager
def opening(place: str | os.PathLike[str]) -> Iterator[None]:
    """Say of a store that cannot be opened which one it is, and why."""
    try:
        yield
    except sa.exc.ArgumentError as error:
        raise InvalidInputError(f"A review store must be a file or a URL. Got {_shown(place)} instead.") from error
    except sa.exc.SQLAlchemyError as error:
        reason = str(getattr(error, "orig", None) or error).splitlines()[0]
        raise ArtifactError(f"The review store {_shown(place)} cannot be opened: {reason}.") from error


def _set_up_sqlite(connection: Any, _: Any) -> None:
    """Let readers and a writer work at once, and put every commit on the disk; transactions are begun by hand."""
    connection.isolation_level = None
    cursor = connection.cursor()
    for pragma in ("journal_mode=WAL", "synchronous=FULL", "foreign_keys=ON"):
        cursor.execute(f"PRAGMA {pragma}")
    cursor.close()


def _begin_sqlite(connection: sa.Connection) -> None:
    """Take the right to write at the beginning: two writers then wait instead of failing."""
    reads = connection.get_execution_options().get("reads", False)
    connection.exec_driver_sql("BEGIN" if reads else "BEGIN IMMEDIATE")
