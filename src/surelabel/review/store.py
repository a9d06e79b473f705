"""Texts under review and decisions about them, in SQLite or PostgreSQL.

Every change is one transaction, which is on the disk when the call returns. Decisions are only added: undoing one sets
its `undone_at`. A text is leased to one reviewer at a time, and only that reviewer can decide it.
"""

from __future__ import annotations

import math
import os
import secrets
import time
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Self

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite

from surelabel.exceptions import ArtifactError, InvalidInputError, ReviewConflictError
from surelabel.review import queues, tables
from surelabel.review.queues import CHECK, QUEUES, Counts, Decision, NewText, ReviewText, hash_of
from surelabel.review.tables import DECISIONS, META, TEXTS, as_decision, as_text, opening, storable

_PAGE = 500
_LONGEST_LABEL = 1_000
_MOST_LABELS = 1_000
_BARRED = {"Cc", "Cs"}  # control characters and lone surrogates


class ReviewStore:
    """Texts under review and every decision about them.

    Parameters
    ----------
    url : path or URL
        An SQLite file, created if missing, or postgresql://user@host/database. A database (or a PostgreSQL schema,
        `?options=-csearch_path=name`) holds one review.
    lease_seconds : float
        How long a text stays with a reviewer who does nothing.
    clock : callable
        Returns seconds since 1970.

    Examples
    --------
    >>> import tempfile
    >>> store = ReviewStore(f"{tempfile.mkdtemp()}/reviews.sqlite")
    >>> store.add([NewText("1", "Crude and gas rose.", {"decision": "choose", "labels": ["oil"]})])
    1
    >>> [text] = store.lease("ann", "choose")
    >>> store.decide("a key", text.number, "ann", ["gas", "oil"]).action
    'change'
    >>> store.counts()["choose"]
    Counts(waiting=0, leased=0, decided=1)
    """

    def __init__(
        self, url: str | os.PathLike[str], *, lease_seconds: float = 300.0, clock: Callable[[], float] = time.time
    ) -> None:
        if not 0 < lease_seconds < math.inf:
            raise InvalidInputError(f"The 'lease_seconds' must be more than 0. Got {lease_seconds!r} instead.")
        self.lease_seconds = float(lease_seconds)
        self._clock = clock
        with opening(url):
            self._engine = tables.open_database(url)
        self._reads = self._engine.execution_options(reads=True)
        try:
            with opening(url):
                self._salt = self._prepare()
        except BaseException:
            self.close()
            raise

    def __repr__(self) -> str:
        return f"<ReviewStore {self._engine.url.render_as_string(hide_password=True)}>"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close all connections."""
        self._engine.dispose()

    def _prepare(self) -> bytes:
        """Create missing tables, refuse those of another version, and return the salt."""
        with self._engine.begin() as connection:
            if connection.dialect.name == "postgresql":
                # Two servers that start at once must not both create the tables.
                connection.exec_driver_sql("SELECT pg_advisory_xact_lock(7305992)")
            tables.METADATA.create_all(connection)
            row = connection.execute(sa.select(META)).one_or_none()
            if row is None:
                salt = secrets.token_hex(16)
                connection.execute(META.insert().values(id=1, version=tables.VERSION, salt=salt))
                return bytes.fromhex(salt)
        if row.version != tables.VERSION:
            raise ArtifactError(
                f"{self!r} has version {row.version}. This surelabel reads version {tables.VERSION}: update surelabel."
            )
        return bytes.fromhex(row.salt)

    def is_drawn(self, text_id: str, text: str, share: float) -> bool:
        """Return whether a text is drawn for the blind check. Call it before the model is asked."""
        return queues.is_drawn(self._salt, storable(text_id), hash_of(text), share)

    def unknown(self, texts: Sequence[tuple[str, str]]) -> list[int]:
        """Return the positions of the texts, given as (id, text), that the store does not have."""
        keys = [(storable(text_id), hash_of(text)) for text_id, text in texts]
        stored: set[tuple[str, str]] = set()
        with self._reads.connect() as connection:
            for start in range(0, len(keys), _PAGE):
                ids = [text_id for text_id, _ in keys[start : start + _PAGE]]
                query = sa.select(TEXTS.c.id, TEXTS.c.hash).where(TEXTS.c.id.in_(ids))
                stored.update((row.id, row.hash) for row in connection.execute(query))
        return [index for index, key in enumerate(keys) if key not in stored]

    def add(self, texts: Iterable[NewText]) -> int:
        """Add texts to their queues and return how many are new; a known text (same id and content) stays as it is."""
        rows = {(row["id"], row["hash"]): row for row in map(self._row, texts)}
        if not rows:
            return 0
        with self._engine.begin() as connection:
            insert: Any = postgresql.insert if connection.dialect.name == "postgresql" else sqlite.insert
            statement = insert(TEXTS).on_conflict_do_nothing(index_elements=["id", "hash"])
            return len(connection.execute(statement.returning(TEXTS.c.number), list(rows.values())).all())

    def _row(self, new: NewText) -> dict[str, Any]:
        """Return a new text as a row. The check keeps the order of arrival, other queues are in random order."""
        text_id, text_hash = storable(new.id), hash_of(new.text)
        place = 0 if new.queue == CHECK else queues.keyed_hash(self._salt, "place", text_id, text_hash) >> 1
        return {
            "id": text_id,
            "hash": text_hash,
            "text": storable(new.text),
            "columns": tables.storable_json(new.columns),
            "queue": new.queue,
            "is_check": new.is_check,
            "answer": tables.storable_json(new.answer),
            "model": storable(new.model),
            "place": place,
            "n_skips": 0,
        }

    def text(self, number: int) -> ReviewText:
        """Return a text by its number."""
        with self._reads.connect() as connection:
            return as_text(_one(connection, tables.select_texts(), number))

    def texts(self, queue: str | None = None) -> Iterator[ReviewText]:
        """Yield all texts, or those of a queue, in order of arrival."""
        last = 0
        query = tables.select_texts().order_by(TEXTS.c.number).limit(_PAGE)
        if queue is not None:
            query = query.where(TEXTS.c.queue == _as_queue(queue))
        while True:
            with self._reads.connect() as connection:
                rows = connection.execute(query.where(TEXTS.c.number > last)).all()
            if not rows:
                return
            last = rows[-1].number
            yield from map(as_text, rows)

    def last_number(self) -> int:
        """Return the number of the text that was added last, 0 if there is none."""
        with self._reads.connect() as connection:
            return connection.execute(sa.select(sa.func.max(TEXTS.c.number))).scalar() or 0

    def counts(self) -> dict[str, Counts]:
        """Return the numbers of pending, leased and decided texts in each queue."""
        pending = TEXTS.c.decided.is_(None)
        leased = sa.and_(pending, ~self._is_free(self._clock()))
        numbers = [sa.func.sum(sa.case((condition, 1), else_=0)) for condition in (pending, leased, ~pending)]
        with self._reads.connect() as connection:
            rows = connection.execute(sa.select(TEXTS.c.queue, *numbers).group_by(TEXTS.c.queue)).all()
        counts = {row[0]: Counts(*map(int, row[1:])) for row in rows}
        return {queue: counts.get(queue, Counts()) for queue in QUEUES}

    def _is_free(self, now: float) -> sa.ColumnElement[bool]:
        """Select texts that nobody has leased.

        No lease ends later than two terms from now: it is from before the clock was set back, and is over.
        """
        over = sa.or_(TEXTS.c.until <= now, TEXTS.c.until > now + 2 * self.lease_seconds)
        return sa.or_(TEXTS.c.owner.is_(None), over)

    def lease(self, reviewer: str, queue: str, n: int = 10) -> list[ReviewText]:
        """Lease up to `n` texts of a queue to a reviewer, first those that the reviewer has already.

        Nobody else gets them until they are decided or skipped, or until the lease ends. Texts of other queues that
        the reviewer has are released.
        """
        now = self._clock()
        if not 0 < n <= _PAGE:
            raise InvalidInputError(f"A reviewer can lease 1 to {_PAGE} texts. Got {n} instead.")
        mine = TEXTS.c.owner == _as_name(reviewer, "reviewer's name")
        chosen = (
            sa.select(TEXTS.c.number)
            .where(TEXTS.c.queue == _as_queue(queue), TEXTS.c.decided.is_(None), sa.or_(mine, self._is_free(now)))
            # NULL = reviewer is NULL, which databases sort in different places.
            .order_by(sa.case((mine, 0), else_=1), TEXTS.c.n_skips, TEXTS.c.place, TEXTS.c.number)
            .limit(n)
            .with_for_update(skip_locked=True)
        )
        released = TEXTS.update().where(mine, TEXTS.c.queue != queue).values(owner=None, until=None)
        with self._engine.begin() as connection:
            connection.execute(released)
            numbers = list(connection.execute(chosen).scalars())
            if not numbers:
                return []
            change = TEXTS.update().where(TEXTS.c.number.in_(numbers))
            connection.execute(change.values(owner=reviewer, until=now + self.lease_seconds))
            rows = connection.execute(tables.select_texts().where(TEXTS.c.number.in_(numbers))).all()
        position = {number: index for index, number in enumerate(numbers)}
        return sorted(map(as_text, rows), key=lambda text: position[text.number])

    def release(self, reviewer: str) -> int:
        """Release all texts of a reviewer and return how many there were."""
        mine = TEXTS.c.owner == _as_name(reviewer, "reviewer's name")
        with self._engine.begin() as connection:
            return int(connection.execute(TEXTS.update().where(mine).values(owner=None, until=None)).rowcount)

    def decide(
        self, key: str, number: int, reviewer: str, labels: Sequence[str] | None, *, seconds: float | None = None
    ) -> Decision:
        """Save a decision about a text that the reviewer has leased.

        A lease that has ended suffices while nobody else has leased the text since.

        Parameters
        ----------
        key : str
            New for each decision. If it is sent again with the same decision, nothing changes.
        number : int
            Of the text.
        reviewer : str
        labels : sequence of str or None
            None skips the text, an empty list means that no label fits. The model need not know the labels.
        seconds : float, optional
            How long the reviewer looked at the text.

        Raises
        ------
        ReviewConflictError
            The text is decided, is not leased to the reviewer, or the key was used for another decision.
        """
        row: dict[str, Any] = {
            "key": _as_name(key, "key of a decision"),
            "number": _as_number(number),
            "labels": _as_label_list(labels),
            "reviewer": _as_name(reviewer, "reviewer's name"),
            "seconds": _as_seconds(seconds),
            "at": self._clock(),
        }
        try:
            with self._engine.begin() as connection:
                text = _one(connection, sa.select(TEXTS).with_for_update(), number)
                earlier = connection.execute(tables.select_decisions().where(DECISIONS.c.key == key)).one_or_none()
                if earlier is not None:
                    return _same(as_decision(earlier), row)
                if text.decided is not None:
                    raise ReviewConflictError(f"Text {text.id!r:.60} is decided. Undo that decision first.")
                if text.owner != reviewer:
                    raise ReviewConflictError(f"Text {text.id!r:.60} is not leased to {reviewer}. Lease it first.")
                decision = connection.execute(DECISIONS.insert().values(row).returning(DECISIONS.c.id)).scalar_one()
                change: dict[str, Any] = {"owner": None, "until": None}
                change |= {"n_skips": text.n_skips + 1} if labels is None else {"decided": decision}
                connection.execute(TEXTS.update().where(TEXTS.c.number == number).values(change))
                saved = tables.select_decisions().where(DECISIONS.c.id == decision)
                return as_decision(connection.execute(saved).one())
        except sa.exc.IntegrityError as error:
            raise ReviewConflictError(f"The key {key!r:.60} was used for another decision. Make a new one.") from error

    def undo(self, reviewer: str, key: str | None = None) -> ReviewText | None:
        """Undo the last decision of a reviewer, or the one with this key, and lease its text to the reviewer again.

        Returns None if there is nothing to undo. A decision that is undone already stays so.
        """
        mine = DECISIONS.c.reviewer == _as_name(reviewer, "reviewer's name")
        which = DECISIONS.c.undone_at.is_(None) if key is None else DECISIONS.c.key == key
        last = sa.select(DECISIONS).where(mine, which).order_by(DECISIONS.c.id.desc()).limit(1)
        now = self._clock()
        with self._engine.begin() as connection:
            decision = connection.execute(last).one_or_none()
            if decision is None:
                return None
            text = _one(connection, sa.select(TEXTS).with_for_update(), decision.number)
            # Read again: another request of the same reviewer may have held the text until now.
            same = DECISIONS.c.id == decision.id
            if connection.execute(sa.select(DECISIONS.c.undone_at).where(same)).scalar() is None:
                self._undo(connection, text, decision, now)
            return as_text(_one(connection, tables.select_texts(), decision.number))

    def _undo(self, connection: sa.Connection, text: sa.Row[Any], decision: sa.Row[Any], now: float) -> None:
        """Undo a standing decision: its text waits again, with the reviewer unless somebody else has it."""
        change: dict[str, Any] = {"owner": decision.reviewer, "until": now + self.lease_seconds}
        if decision.labels is not None:
            change["decided"] = None
        elif text.decided is not None or text.owner not in {None, decision.reviewer}:
            raise ReviewConflictError(f"Text {text.id!r:.60} was skipped, and another reviewer has it now.")
        else:
            change["n_skips"] = max(0, text.n_skips - 1)
        connection.execute(DECISIONS.update().where(DECISIONS.c.id == decision.id).values(undone_at=now))
        connection.execute(TEXTS.update().where(TEXTS.c.number == text.number).values(change))

    def decisions(self) -> list[Decision]:
        """Return the decisions that stand, in their order, with the answers of the model.

        Never show the answer of a blind check to its reviewer.
        """
        query = tables.select_decisions().where(DECISIONS.c.id == TEXTS.c.decided).order_by(DECISIONS.c.id)
        return self._decisions(query)

    def history(self) -> list[Decision]:
        """Return all decisions, those that were undone and skips included."""
        return self._decisions(tables.select_decisions().order_by(DECISIONS.c.id))

    def _decisions(self, query: sa.Select[Any]) -> list[Decision]:
        with self._reads.connect() as connection:
            return [as_decision(row, reveal=True) for row in connection.execute(query)]


def _one(connection: sa.Connection, query: sa.Select[Any], number: int) -> sa.Row[Any]:
    """Return the row of a text."""
    row = connection.execute(query.where(TEXTS.c.number == _as_number(number))).one_or_none()
    if row is None:
        raise InvalidInputError(f"There is no text with number {number} in the store.")
    return row


def _same(earlier: Decision, row: dict[str, Any]) -> Decision:
    """Return an earlier decision if it is the one that is sent again."""
    labels = None if row["labels"] is None else tuple(row["labels"])
    if (earlier.number, earlier.reviewer, earlier.labels) != (row["number"], row["reviewer"], labels):
        raise ReviewConflictError(f"The key {earlier.key!r:.60} was used for another decision. Make a new one.")
    return earlier


def _as_number(number: Any) -> int:
    """Return the number of a text if a database can hold it."""
    if isinstance(number, bool) or not isinstance(number, int) or not 0 < number <= tables.LARGEST_NUMBER:
        raise InvalidInputError(f"The number of a text must be from 1 to 2^63 - 1. Got {number!s:.40} instead.")
    return number


def _as_seconds(seconds: Any) -> float | None:
    """Return a duration if it is one."""
    if seconds is None:
        return None
    is_number = isinstance(seconds, (int, float)) and not isinstance(seconds, bool)
    if not is_number or not 0 <= seconds <= 1e9:
        raise InvalidInputError(f"The seconds of a decision must be from 0 to 10^9. Got {seconds!s:.40} instead.")
    return float(seconds)


def _as_label_list(labels: Any) -> list[str] | None:
    """Return the labels of a decision, sorted and each once."""
    if labels is None:
        return None
    if isinstance(labels, str) or not all(isinstance(label, str) for label in labels):
        raise InvalidInputError("The labels of a decision must be a list of names, or None to skip the text.")
    if len(labels) > _MOST_LABELS:
        raise InvalidInputError(f"A decision has at most {_MOST_LABELS} labels. Got {len(labels)} instead.")
    for label in labels:
        if not label.strip() or len(label) > _LONGEST_LABEL or any(unicodedata.category(c) in _BARRED for c in label):
            raise InvalidInputError(
                f"A label must have 1 to {_LONGEST_LABEL} characters, none of control. Got {label!r:.60} instead."
            )
    return sorted(set(labels))


def _as_queue(queue: str) -> str:
    """Return the name of a queue if there is one."""
    if queue not in QUEUES:
        raise InvalidInputError(f"The 'queue' must be one of {', '.join(QUEUES)}. Got {queue!r:.60} instead.")
    return queue


def _as_name(name: str, what: str) -> str:
    """Return the name of a reviewer, or the key of a decision, if a database can hold it."""
    if not isinstance(name, str) or not 0 < len(name) <= tables.LONGEST_NAME or not name.isprintable():
        raise InvalidInputError(
            f"The {what} must have 1 to {tables.LONGEST_NAME} printable characters. Got {str(name)!r:.60} instead."
        )
    return name
