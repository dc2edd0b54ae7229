"""The outbox: what admission promised to a lane, handed over at least once, under one name (IDN-1).

`take` marks a batch as picked for a few seconds, skipping what another publisher holds, so that publishers share the work;
nothing is locked while a lane is being spoken to. A crash before `published` commits leaves the delivery to be picked
again: the same Run and `enqueue_seq` are published a second time, which the lane's message id and the claim's fence make
harmless.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from psycopg import sql
from psycopg.rows import class_row

from law.identity import EnqueueSeq, RunId, ScheduleName
from store.connection import Pool, borrow

PICKED_FOR_SECONDS = 5.0
"""A publisher that has not reported after this long is taken for dead, and its batch is picked again."""


@dataclass(frozen=True, slots=True)
class Delivery:
    """One hop on its way to a lane."""

    run_id: RunId
    enqueue_seq: EnqueueSeq
    lane: str
    pattern: str
    schedule: ScheduleName


def take(pool: Pool, limit: int) -> list[Delivery]:
    """Pick at most `limit` pending deliveries, oldest first, for this publisher."""
    with borrow(pool) as connection:
        cursor = connection.cursor(row_factory=class_row(Delivery))
        return cursor.execute(TAKE, {"limit": limit, "picked_for": PICKED_FOR_SECONDS}).fetchall()


def published(pool: Pool, deliveries: Sequence[Delivery]) -> None:
    """The lane has them. A delivery that was claimed meanwhile stays claimed."""
    arguments = {
        "runs": [delivery.run_id for delivery in deliveries],
        "sequences": [delivery.enqueue_seq for delivery in deliveries],
    }
    with borrow(pool) as connection:
        connection.execute(PUBLISHED, arguments)


def undelivered(pool: Pool) -> int:
    """How many deliveries wait in the outbox, counted to a thousand."""
    with borrow(pool) as connection:
        [(waiting,)] = connection.execute(UNDELIVERED).fetchall()
    return waiting


TAKE = sql.SQL(
    """
    WITH picked AS (
        SELECT run_id, enqueue_seq FROM delivery
        WHERE state = 'PENDING'
          AND (picked_at IS NULL OR picked_at < trusted_now() - make_interval(secs => %(picked_for)s))
        ORDER BY created_at
        LIMIT %(limit)s
        FOR UPDATE SKIP LOCKED
    ), marked AS (
        UPDATE delivery d SET picked_at = trusted_now()
        FROM picked p WHERE d.run_id = p.run_id AND d.enqueue_seq = p.enqueue_seq
        RETURNING d.run_id, d.enqueue_seq, d.lane, d.pattern, d.created_at
    )
    SELECT m.run_id, m.enqueue_seq, m.lane, m.pattern, s.authority || '/' || s.name AS schedule
    FROM marked m
    JOIN run r ON r.run_id = m.run_id
    JOIN schedule s ON s.schedule_id = r.schedule_id
    ORDER BY m.created_at
    """
)

PUBLISHED = sql.SQL(
    """
    UPDATE delivery d
    SET state = CASE d.state WHEN 'PENDING' THEN 'PUBLISHED' ELSE d.state END,
        published_at = trusted_now(), publish_count = d.publish_count + 1
    FROM unnest(%(runs)s::uuid[], %(sequences)s::int[]) AS v (run_id, enqueue_seq)
    WHERE d.run_id = v.run_id AND d.enqueue_seq = v.enqueue_seq
    """
)

UNDELIVERED = sql.SQL("SELECT count(*) FROM (SELECT FROM delivery WHERE state = 'PENDING' LIMIT 1000) AS outbox")
