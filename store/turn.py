"""One transaction a decision: begin, lock, sample, judge, write (WIN-2, WIN-3, WIN-4). By construction.

The only way to a decision time is to hold the authority: `turn` begins, takes the locks it is given in the one lawful
order, samples the trusted clock in a statement of its own after them, and only then yields. Measured with a row held for
a second elsewhere, `now()` or a sample taken in the locking statement was 0.99 s stale; this sample is not.

Locks and sample travel in one pipeline, the reads in a second, the writes and the COMMIT in a third: three round trips a
decision, however many Occurrences it judges.

A crash before the COMMIT leaves nothing: nothing was decided. After it, `record` has left the answer under the caller's
`decision_id`: whoever lost the acknowledgement asks again with the same id and is answered from the record, under the
same locks, so that a commit still in flight is waited for and not overlooked.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypeVar

from psycopg import Cursor, sql
from psycopg.rows import class_row

from law.identity import DecisionId
from store.connection import Connection, Pool, borrow
from store.jsonb import jsonb

Row = tuple[Any, ...]
RecordT = TypeVar("RecordT")


@dataclass(frozen=True, slots=True)
class Lock:
    """One locking statement and the record it reads of each row. `rank` is its place in the one order that every
    transaction keeps (see `store.locks`)."""

    rank: int
    statement: sql.SQL
    arguments: Mapping[str, Any]
    record: type[Any]


@dataclass(frozen=True, slots=True)
class Turn:
    """The authority, held: the connection to read and write with, the trusted sample, and what the locks returned."""

    connection: Connection
    decision_id: DecisionId
    at: datetime
    locked: tuple[list[Any], ...]
    earlier: Any
    """The answer this very `decision_id` was given before, or None."""

    def rows(self, statement: sql.SQL, arguments: Mapping[str, Any] | None = None) -> list[Row]:
        """Read under the authority."""
        return self.connection.execute(statement, arguments).fetchall()

    def records(self, record: type[RecordT], statement: sql.SQL, arguments: Mapping[str, Any]) -> list[RecordT]:
        """Read under the authority into records whose fields are the statement's columns."""
        cursor = self.connection.cursor(row_factory=class_row(record))
        return cursor.execute(statement, arguments).fetchall()

    def write(self, statement: sql.SQL, arguments: Mapping[str, Any] | None = None) -> None:
        """Write under the authority. The statement is queued; it fails the turn if it fails."""
        self.connection.execute(statement, arguments)

    def record(self, act: str, answer: Any, latest_earlier_sample: datetime | None = None) -> None:
        """Leave the answer under the decision id, with whether the clock has stepped back since the latest sample of
        this authority. A step back is recorded and reopens nothing (WIN-7)."""
        regressed = latest_earlier_sample is not None and self.at < latest_earlier_sample
        self.write(
            RECORD,
            {
                "decision_id": self.decision_id,
                "act": act,
                "at": self.at,
                "regressed": regressed,
                "answer": jsonb(answer),
            },
        )


@contextmanager
def turn(pool: Pool, decision_id: DecisionId, *locks: Lock) -> Iterator[Turn]:
    """Hold the authority named by `locks` for one transaction; commit when the block ends, roll back if it raises.

    Raises LockOrderBroken for locks out of order, ServerUnreachable, StoreBusy and SchemaMissing.
    """
    keep_order(locks)
    with borrow(pool) as connection, connection.pipeline(), connection.transaction():
        held = [take(connection, lock) for lock in locks]
        earlier = connection.execute(EARLIER, {"decision_id": decision_id})
        sample = connection.execute(SAMPLE)
        locked = tuple(cursor.fetchall() for cursor in held)
        answered = earlier.fetchone()
        (at,) = sample.fetchone() or ()
        yield Turn(connection, decision_id, at, locked, answered[0] if answered else None)


def take(connection: Connection, lock: Lock) -> Cursor[Any]:
    """Queue one locking statement."""
    return connection.cursor(row_factory=class_row(lock.record)).execute(lock.statement, lock.arguments)


class LockOrderBroken(AssertionError):
    """A transaction asked for its locks in another order than every other transaction does."""


def keep_order(locks: tuple[Lock, ...]) -> None:
    """One reversed client of eight was 10 % deadlocks; so the order is checked and not hoped for."""
    ranks = [lock.rank for lock in locks]
    if ranks != sorted(ranks):
        raise LockOrderBroken(f"locks were asked for in the order {ranks}")


EARLIER = sql.SQL("SELECT answer FROM round WHERE decision_id = %(decision_id)s")

SAMPLE = sql.SQL("SELECT trusted_now()")

RECORD = sql.SQL(
    """
    INSERT INTO round (decision_id, act, sampled_at, clock_regressed, answer)
    VALUES (%(decision_id)s, %(act)s, %(at)s, %(regressed)s, %(answer)s)
    """
)
