"""One transaction a decision: begin, lock, sample, judge, write (WIN-2, WIN-3, WIN-4). By construction.

The only way to a decision time is to hold the authority: `turn` begins, takes the locks it is given in the one lawful
order, samples the trusted clock in a statement of its own after them, and only then yields. Measured with a row held for
a second elsewhere, `now()` or a sample taken in the locking statement was 0.99 s stale; this sample is not.

BEGIN, locks and sample travel together and are waited for once; so is every read; so are the writes and the COMMIT. A
decision costs the same few round trips however many Occurrences it judges.

A crash before the COMMIT leaves nothing: nothing was decided. After it, `record` has left the answer under the caller's
`decision_id`: whoever lost the acknowledgement asks again with the same id and is answered from the record, under the
same locks, so that a commit still in flight is waited for and not overlooked.
"""

from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypeVar

import psycopg
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
        """Leave the answer under the decision id, where the first one stays, with whether the clock has stepped back since
        the latest sample of this authority. A step back is recorded and reopens nothing (WIN-7)."""
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
def turn(pool: Pool, decision_id: DecisionId, *locks: Lock) -> Generator[Turn]:
    """Hold the authority named by `locks` for one transaction; commit when the block ends, roll back if it raises.

    Raises LockOrderBroken for locks out of order, ServerUnreachable, StoreBusy and SchemaMissing.
    """
    keep_order(locks)
    with borrow(pool) as connection, pipelined_transaction(connection):
        held = [take(connection, lock) for lock in locks]
        sample = connection.execute(SAMPLE, {"decision_id": decision_id})
        locked = tuple(cursor.fetchall() for cursor in held)
        [(at, earlier)] = sample.fetchall()
        yield Turn(connection, decision_id, at, locked, earlier)


@contextmanager
def pipelined_transaction(connection: Connection) -> Generator[None]:
    """BEGIN travels with the locks and COMMIT with the writes. psycopg's own `transaction` would wait for the server four
    times more, once on each side of both. When the block or a queued write fails there is no COMMIT, and giving the
    connection back to the pool rolls back; a COMMIT that the server answers otherwise is a failure too."""
    with connection.pipeline():
        connection.execute(BEGIN)
        yield
        ended = connection.execute(COMMIT)
    if ended.statusmessage != "COMMIT":
        raise psycopg.OperationalError(f"the transaction ended with {ended.statusmessage}")


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


BEGIN = sql.SQL("BEGIN")

COMMIT = sql.SQL("COMMIT")

SAMPLE = sql.SQL("SELECT trusted_now(), (SELECT answer FROM round WHERE decision_id = %(decision_id)s)")

RECORD = sql.SQL(
    """
    INSERT INTO round (decision_id, act, sampled_at, clock_regressed, answer)
    VALUES (%(decision_id)s, %(act)s, %(at)s, %(regressed)s, %(answer)s)
    ON CONFLICT (decision_id) DO NOTHING
    """
)
