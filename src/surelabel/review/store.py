"""Decisions in a database: SQLite in a file, or PostgreSQL by URL.

Decisions are only ever added. A text is leased to one reviewer at a time; the lease ends by itself. Every change is one
transaction, which is on the disk when the call returns.
"""

from __future__ import annotations

import os
import secrets
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Self

import sqlalchemy as sa

from surelabel.exceptions import ArtifactError, InvalidInputError, ReviewConflictError
from surelabel.review import queues, tables
from surelabel.review.databases import engine_of, opening
from surelabel.review.queues import SKIP, UNDO, Decision, NewText, Offer, QueueCounts, ReviewText, hash_of, queue_of
from surelabel.review.tables import DECISIONS, NOTES, TEXTS, as_decision, as_text, checked_name, checked_queue

_UNDOINGS = DECISIONS.alias("undoings")
_STANDS = sa.not_(sa.exists().where(_UNDOINGS.c.undoes == DECISIONS.c.id))
_MANY = 500


class ReviewStore:
    """Texts under review and every decision about them, in a database.

    Parameters
    ----------
    place : path or URL
        An SQLite file, made if there is none; or postgresql://user@host/database. A database (or a PostgreSQL schema,
        `?options=-csearch_path=name`) holds one review.
    lease_seconds : float
        How long a text stays with a reviewer who does nothing.
    clock : callable
        Returns the seconds since 1970.

    Examples
    --------
    >>> import tempfile
    >>> from surelabel.review import NewText, Offer, ReviewStore
    >>> store = ReviewStore(f"{tempfile.mkdtemp()}/reviews.sqlite")
    >>> offer = Offer("choose", "Two label-sets are plausible.", ("oil",), ((("oil",), 0.6), (("gas", "oil"), 0.2)))
    >>> store.add([NewText("1", "Crude and gas rose.", offer, model="0")])
    1
    >>> [text] = store.lease("ann", "choose")
    >>> store.lease("bob", "choose")
    []
    >>> decision = store.decide("a key", text.number, "ann", "pick", ["gas", "oil"])
    >>> decision.chosen, decision.is_changed, store.counts()["choose"]
    (('gas', 'oil'), True, QueueCounts(waiting=0, leased=0, decided=1))
    """

    def __init__(
        self, place: str | os.PathLike[str], *, lease_seconds: float = 300.0, clock: Callable[[], float] = time.time
    ) -> None:
        if not lease_seconds > 0:
            raise InvalidInputError(f"The 'lease_seconds' must be more than 0. Got {lease_seconds!r} instead.")
        self.lease_seconds = float(lease_seconds)
        self._now = clock
        with opening(place):
            self._engine = engine_of(place)
        self._reads = self._engine.execution_options(reads=True)
        try:
            with opening(place):
                self._prepare()
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

    def _prepare(self) -> None:
        """Make the tables if there are none; refuse those of a newer version."""
        with self._engine.begin() as connection:
            if connection.dialect.name == "postgresql":
                # Two servers that start at once must not both make the tables.
                connection.exec_driver_sql("SELECT pg_advisory_xact_lock(7305991)")
            tables.METADATA.create_all(connection)
            notes = {row.name: row.value for row in connection.execute(sa.select(NOTES))}
            if "version" not in notes:
                made = {"version": str(tables.VERSION), "salt": secrets.token_hex(16)}
                connection.execute(NOTES.insert(), [{"name": name, "value": value} for name, value in made.items()])
                notes |= made
        if int(notes["version"]) > tables.VERSION:
            raise ArtifactError(
                f"{self!r} has version {notes['version']}; this surelabel reads up to {tables.VERSION}. Update "
                "surelabel."
            )
        self._salt = bytes.fromhex(notes["salt"])

    def note(self, name: str) -> str | None:
        """Return what was noted under a name."""
        with self._reads.connect() as connection:
            return connection.execute(sa.select(NOTES.c.value).where(NOTES.c.name == name)).scalar()

    def set_note(self, name: str, value: str) -> None:
        """Note something under a name, such as the folder of the model in use."""
        with self._engine.begin() as connection:
            changed = connection.execute(NOTES.update().where(NOTES.c.name == name).values(value=value))
            if changed.rowcount == 0:
                connection.execute(NOTES.insert().values(name=name, value=value))

    def is_drawn(self, text_id: str, text: str, share: float) -> bool:
        """Say whether a text is drawn for the blind check, before anything is known of its answer."""
        return queues.is_drawn(self._salt, text_id, hash_of(text), share)

    def unknown(self, texts: Iterable[tuple[str, str]]) -> list[int]:
        """Return the places of the texts, given as (id, text), that the store does not have."""
        keys = [(text_id, hash_of(text)) for text_id, text in texts]
        stored: set[tuple[str, str]] = set()
        with self._reads.connect() as connection:
            for start in range(0, len(keys), _MANY):
                ids = [text_id for text_id, _ in keys[start : start + _MANY]]
                query = sa.select(TEXTS.c.text_id, TEXTS.c.text_hash).where(TEXTS.c.text_id.in_(ids))
                stored.update((row.text_id, row.text_hash) for row in connection.execute(query))
        return [place for place, key in enumerate(keys) if key not in stored]

    def add(self, texts: Iterable[NewText]) -> int:
        """Add texts to their queues; return how many were new. Others (same id and text) stay as they are."""
        rows = {(new.id, hash_of(new.text)): new for new in texts}
        if not rows:
            return 0
        values = [
            {
                "text_id": text_id,
                "text_hash": text_hash,
                "text": tables.storable(new.text),
                "columns": tables.plain(new.columns),
                "queue": queue_of(new.offer, is_blind=new.is_blind),
                "is_blind": new.is_blind,
                "offered": new.offer.to_dict(),
                "model": new.model,
                "added_at": self._now(),
                "skips": 0,
            }
            for (text_id, text_hash), new in rows.items()
        ]
        with self._engine.begin() as connection:
            return tables.insert_if_new(connection, values)

    def reroute(self, offers: Iterable[tuple[int, Offer, str]]) -> int:
        """Replace the offers of texts (number, offer, model) that nobody has decided; return how many there were.

        Texts that are with a reviewer now keep what the reviewer sees.
        """
        now, n_changed = self._now(), 0
        with self._engine.begin() as connection:
            for number, offer, model in offers:
                free = sa.or_(TEXTS.c.lease_until.is_(None), TEXTS.c.lease_until <= now)
                queue = sa.case((TEXTS.c.is_blind, "check"), else_=queue_of(offer, is_blind=False))
                change = TEXTS.update().where(TEXTS.c.number == number, TEXTS.c.decided.is_(None), free)
                values = {"offered": offer.to_dict(), "model": model, "queue": queue}
                n_changed += connection.execute(change.values(values)).rowcount
        return n_changed

    def text(self, number: int) -> ReviewText:
        """Return a text by its number."""
        with self._reads.connect() as connection:
            return self._one(connection, number)

    def texts(self, *, queue: str | None = None) -> Iterator[ReviewText]:
        """Yield all texts with the decisions that stand, in the order in which they came."""
        last = 0
        while True:
            query = tables.with_decisions().where(TEXTS.c.number > last).order_by(TEXTS.c.number).limit(_MANY)
            if queue is not None:
                query = query.where(TEXTS.c.queue == checked_queue(queue))
            with self._reads.connect() as connection:
                rows = connection.execute(query).all()
            if not rows:
                return
            last = rows[-1].number
            yield from map(as_text, rows)

    def counts(self) -> dict[str, QueueCounts]:
        """Return how many texts wait and are decided in each queue."""
        waits = TEXTS.c.decided.is_(None)
        is_leased = sa.and_(waits, TEXTS.c.lease_until > self._now())
        numbers = [sa.func.sum(sa.case((condition, 1), else_=0)) for condition in (waits, is_leased, ~waits)]
        with self._reads.connect() as connection:
            rows = connection.execute(sa.select(TEXTS.c.queue, *numbers).group_by(TEXTS.c.queue)).all()
        counts = {row[0]: QueueCounts(*map(int, row[1:])) for row in rows}
        return {queue: counts.get(queue, QueueCounts()) for queue in queues.QUEUES}

    def lease(self, reviewer: str, queue: str, n: int = 10) -> list[ReviewText]:
        """Give a reviewer up to `n` texts of a queue, those that the reviewer has already first.

        Nobody else is given these until they are decided or skipped, or until the lease ends.
        """
        now = self._now()
        mine = TEXTS.c.lease_owner == checked_name(reviewer, "reviewer's name")
        free = sa.or_(TEXTS.c.lease_owner.is_(None), TEXTS.c.lease_until <= now, mine)
        chosen = (
            sa.select(TEXTS.c.number)
            .where(TEXTS.c.queue == checked_queue(queue), TEXTS.c.decided.is_(None), free)
            .order_by(sa.case((mine, 0), else_=1), TEXTS.c.skips, TEXTS.c.number)
            .limit(n)
            .with_for_update(skip_locked=True)
        )
        with self._engine.begin() as connection:
            numbers = list(connection.execute(chosen).scalars())
            if not numbers:
                return []
            change = TEXTS.update().where(TEXTS.c.number.in_(numbers))
            connection.execute(change.values(lease_owner=reviewer, lease_until=now + self.lease_seconds))
            rows = connection.execute(tables.with_decisions().where(TEXTS.c.number.in_(numbers))).all()
        place = {number: order for order, number in enumerate(numbers)}
        return sorted(map(as_text, rows), key=lambda text: place[text.number])

    def renew(self, reviewer: str) -> int:
        """Let the leases of a reviewer run from now on; return how many there are."""
        now = self._now()
        return self._change_leases(reviewer, TEXTS.c.lease_until > now, lease_until=now + self.lease_seconds)

    def release(self, reviewer: str, *, keep: str | None = None) -> int:
        """Give back the texts of a reviewer, all but those of one queue."""
        others = sa.true() if keep is None else TEXTS.c.queue != checked_queue(keep)
        return self._change_leases(reviewer, others, lease_owner=None, lease_until=None)

    def _change_leases(self, reviewer: str, which: sa.ColumnElement[bool], **values: Any) -> int:
        """Change some leases of a reviewer; return how many."""
        mine = TEXTS.c.lease_owner == checked_name(reviewer, "reviewer's name")
        with self._engine.begin() as connection:
            return int(connection.execute(TEXTS.update().where(mine, which).values(values)).rowcount)

    def decide(
        self,
        key: str,
        number: int,
        reviewer: str,
        action: str,
        labels: Sequence[str] | None = None,
        *,
        seconds: float | None = None,
    ) -> Decision:
        """Save a decision about a text.

        Parameters
        ----------
        key : str
            Made by the caller, new for each decision: sent again, the same decision is returned and nothing changes.
        number : int
            Of the text.
        reviewer : str
        action : {"accept", "pick", "edit", "none", "skip"}
        labels : sequence of str, optional
            The labels that the text ends with; none if none fits or the text is skipped.
        seconds : float, optional
            How long the reviewer looked at the text.

        Raises
        ------
        ReviewConflictError
            The text is decided already, or is with another reviewer, or the key was used for something else.
        """
        if action not in queues.ACTIONS:
            raise InvalidInputError(f"The 'action' must be one of {', '.join(queues.ACTIONS)}. Got {action!r} instead.")
        if labels and action in {SKIP, queues.NONE_FITS}:
            raise InvalidInputError(f"The action {action!r} takes no labels. Got {list(labels)[:3]} instead.")
        checked_name(key, "key of a decision")
        checked_name(reviewer, "reviewer's name")
        now = self._now()
        try:
            with self._engine.begin() as connection:
                text = self._locked(connection, number)
                chosen = _chosen(text, action, labels)
                earlier = self._earlier(connection, key)
                if earlier is not None:
                    return _same(earlier, number, reviewer, action, chosen)
                tables.check_free(text, reviewer, now)
                who: dict[str, Any] = {"key": key, "reviewer": reviewer, "at": now, "seconds": seconds}
                record = tables.record_of(text, action=action, chosen=chosen, **who)
                identity = connection.execute(DECISIONS.insert().values(record).returning(DECISIONS.c.id)).scalar_one()
                change: dict[str, Any] = {"lease_owner": None, "lease_until": None}
                change |= {"skips": text["skips"] + 1} if action == SKIP else {"decided": identity}
                connection.execute(TEXTS.update().where(TEXTS.c.number == number).values(change))
                return as_decision({**record, "id": identity})
        except sa.exc.IntegrityError as error:
            raise ReviewConflictError(f"The key {key!r:.60} was used for another decision. Make a new one.") from error

    def undo(self, key: str, reviewer: str) -> ReviewText | None:
        """Take back the last decision of a reviewer; return its text, which is with the reviewer again.

        None if there is nothing to take back. A key that was sent before changes nothing.
        """
        checked_name(key, "key of a decision")
        mine = DECISIONS.c.reviewer == checked_name(reviewer, "reviewer's name")
        now = self._now()
        with self._engine.begin() as connection:
            earlier = self._earlier(connection, key)
            if earlier is not None:
                return self._one(connection, earlier.number)
            own = sa.select(DECISIONS).where(mine, DECISIONS.c.action != UNDO, _STANDS)
            last = connection.execute(own.order_by(DECISIONS.c.id.desc()).limit(1)).mappings().one_or_none()
            if last is None:
                return None
            text = self._locked(connection, last["text_number"])
            if connection.execute(sa.select(DECISIONS.c.id).where(DECISIONS.c.undoes == last["id"])).first():
                raise ReviewConflictError("The last decision was just taken back. Reload what you see.")
            if last["action"] == SKIP:
                tables.check_free(text, reviewer, now)
            record = tables.record_of(text, key=key, reviewer=reviewer, action=UNDO, chosen=None, at=now, seconds=None)
            connection.execute(DECISIONS.insert().values({**record, "undoes": last["id"]}))
            change: dict[str, Any] = {"lease_owner": reviewer, "lease_until": now + self.lease_seconds}
            change |= {"skips": max(0, text["skips"] - 1)} if last["action"] == SKIP else {"decided": None}
            connection.execute(TEXTS.update().where(TEXTS.c.number == text["number"]).values(change))
            return self._one(connection, text["number"])

    def decisions(self, *, blind: bool | None = None) -> list[Decision]:
        """Return the decisions that stand, in the order in which they were made."""
        query = sa.select(DECISIONS).join(TEXTS, TEXTS.c.decided == DECISIONS.c.id)
        return self._decisions(query if blind is None else query.where(DECISIONS.c.is_blind == blind))

    def history(self, number: int | None = None) -> list[Decision]:
        """Return all that was ever done, skips, undone decisions and undoings too; of one text or of all."""
        query = sa.select(DECISIONS)
        return self._decisions(query if number is None else query.where(DECISIONS.c.text_number == number))

    def _decisions(self, query: sa.Select[Any]) -> list[Decision]:
        """Return the decisions that a query selects, in their order."""
        with self._reads.connect() as connection:
            return [as_decision(row) for row in connection.execute(query.order_by(DECISIONS.c.id)).mappings()]

    def _one(self, connection: sa.Connection, number: int) -> ReviewText:
        """Return a text by its number, or raise."""
        return as_text(_found(connection.execute(tables.with_decisions().where(TEXTS.c.number == number)), number))

    def _locked(self, connection: sa.Connection, number: int) -> Mapping[str, Any]:
        """Return the row of a text, which nobody else can change until the transaction ends."""
        query = sa.select(TEXTS).where(TEXTS.c.number == number).with_for_update()
        return dict(_found(connection.execute(query), number)._mapping)

    def _earlier(self, connection: sa.Connection, key: str) -> Decision | None:
        """Return what was saved under a key."""
        row = connection.execute(sa.select(DECISIONS).where(DECISIONS.c.key == key)).mappings().one_or_none()
        return None if row is None else as_decision(row)


def _found(result: sa.Result[Any], number: int) -> sa.Row[Any]:
    """Return the one row of a text, or raise."""
    row = result.one_or_none()
    if row is None:
        raise InvalidInputError(f"A text must be named by its number in the store. Got {number} instead.")
    return row


def _chosen(text: Mapping[str, Any], action: str, labels: Sequence[str] | None) -> list[str] | None:
    """Return the labels that a decision leaves a text with; None if it is skipped."""
    if action == SKIP:
        return None
    if action == queues.ACCEPT and labels is None:
        labels = text["offered"]["labels"]
    return sorted(set(labels or ()))


def _same(earlier: Decision, number: int, reviewer: str, action: str, chosen: list[str] | None) -> Decision:
    """Return an earlier decision if it is the one that is sent again."""
    before = (earlier.number, earlier.reviewer, earlier.action, earlier.chosen)
    if before != (number, reviewer, action, None if chosen is None else tuple(chosen)):
        raise ReviewConflictError(f"The key {earlier.key!r:.60} was used for another decision. Make a new one.")
    return earlier
