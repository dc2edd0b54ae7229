"""What a crash left behind, found by looking at the rows (OCC-6, IDN-1, WIN-7): the relay's only source of truth.

Reads only; whoever acts on what is found goes through the same transactions as everybody else, so an answer that is stale
by then is refused there. Nothing here is decided by time alone: a bell that nobody answered is asked about again, a
delivery that nobody claimed is published again under its own name, and a claim that stopped beating is brought to `settle`,
which judges what it left.
"""

from dataclasses import dataclass

from psycopg import sql
from psycopg.rows import class_row

from law.identity import ClaimId, EnqueueSeq, RunId, ScheduleName
from store.connection import Pool, borrow
from store.delivery import Delivery

FOUND_MAX = 500
"""One look brings back at most this many of each kind; the next look finds the rest."""


@dataclass(frozen=True, slots=True)
class LostClaim:
    """A claim whose worker has not been heard for a while."""

    run_id: RunId
    enqueue_seq: EnqueueSeq
    claim_id: ClaimId
    pattern: str
    schedule: ScheduleName


@dataclass(frozen=True, slots=True)
class Look:
    """Everything that seems to have been left behind."""

    overdue: tuple[ScheduleName, ...]
    unclaimed: tuple[Delivery, ...]
    lost: tuple[LostClaim, ...]
    out_of_doubt: tuple[RunId, ...]
    """Contained Runs about which nothing is in doubt any more."""
    undelivered: int


def look(pool: Pool, overdue_seconds: float, unclaimed_seconds: float, lost_seconds: float) -> Look:
    """Look for Schedules whose bell, eligibility or bound passed `overdue_seconds` ago unanswered, deliveries published
    `unclaimed_seconds` ago that nobody claimed, and claims silent for `lost_seconds`."""
    with borrow(pool) as connection:
        overdue = connection.execute(OVERDUE, {"seconds": overdue_seconds, "found_max": FOUND_MAX}).fetchall()
        deliveries = connection.cursor(row_factory=class_row(Delivery))
        unclaimed = deliveries.execute(UNCLAIMED, {"seconds": unclaimed_seconds, "found_max": FOUND_MAX}).fetchall()
        claims = connection.cursor(row_factory=class_row(LostClaim))
        lost = claims.execute(LOST, {"seconds": lost_seconds, "found_max": FOUND_MAX}).fetchall()
        cleared = [RunId(run_id) for (run_id,) in connection.execute(OUT_OF_DOUBT, {"found_max": FOUND_MAX}).fetchall()]
        [(undelivered,)] = connection.execute(UNDELIVERED).fetchall()
    return Look(
        tuple(ScheduleName(row[0]) for row in overdue), tuple(unclaimed), tuple(lost), tuple(cleared), undelivered
    )


# What changed is compared with when its capability was last judged. A transaction that sampled before that judgement may have
# committed after it, by as long as a transaction may last: hence the ten seconds.
OVERDUE = sql.SQL(
    """
    WITH changed AS (
        SELECT c.capability FROM capability c
        WHERE c.judged_at IS NULL OR c.changed_at > c.judged_at - interval '10 seconds'
           OR EXISTS (SELECT FROM lease l WHERE l.capability = c.capability
                      AND l.released_at > c.judged_at - interval '10 seconds')
           OR EXISTS (SELECT FROM quiet_window w
                      WHERE w.withdrawn_at IS NULL AND coalesce(w.capability, c.capability) = c.capability
                      AND w.opens_at <= trusted_now()
                      AND greatest(w.opens_at, w.approved_at) > c.judged_at - interval '10 seconds')
    ), quiet AS (
        SELECT FROM quiet_window WHERE withdrawn_at IS NULL AND capability IS NULL
        AND trusted_now() >= opens_at AND trusted_now() < closes_at
    )
    SELECT s.authority || '/' || s.name FROM schedule s WHERE s.schedule_id IN (
        SELECT schedule_id FROM run WHERE wait_owner = 'hardware'
        AND (capability IN (SELECT capability FROM changed) OR (capability IS NULL AND EXISTS (SELECT FROM quiet)))
        UNION
        SELECT g.schedule_id FROM segment g JOIN schedule p ON p.schedule_id = g.schedule_id AND p.paused_at IS NULL
        WHERE g.next_nominal_at <= (SELECT trusted_now() - make_interval(secs => %(seconds)s))
        UNION
        SELECT schedule_id FROM occurrence WHERE state = 'pending' AND (
            (eligible_at <= (SELECT trusted_now() - make_interval(secs => %(seconds)s))
             AND (waiting_reason IS NULL OR waiting_reason = 'not_yet_eligible'))
            OR least(latest_start_at, finish_by) <= (SELECT trusted_now() - make_interval(secs => %(seconds)s))
            OR (waiting_reason IN ('capacity', 'readiness', 'quiet_window') AND capability IS NOT NULL
                AND capability IN (SELECT capability FROM changed))
            OR (waiting_reason = 'quiet_window' AND capability IS NULL AND EXISTS (SELECT FROM quiet))
            OR EXISTS (SELECT FROM principal p WHERE p.name = occurrence.owner AND p.standing <> 'active')
            OR EXISTS (SELECT FROM sigil g WHERE g.name = occurrence.sigil
                       AND (g.standing <> 'active' OR g.expires_at <= (SELECT trusted_now())))
            OR (waiting_reason = 'budget' AND eligible_at <= (SELECT trusted_now()))
            OR (waiting_reason = 'paused' AND EXISTS (
                SELECT FROM schedule WHERE schedule.schedule_id = occurrence.schedule_id AND schedule.paused_at IS NULL))
            OR (waiting_reason = 'overlap' AND (
                SELECT count(*) FROM run WHERE run.schedule_id = occurrence.schedule_id
                AND run.state IN ('queued', 'running', 'parked', 'cancelling', 'contained')
            ) < (SELECT r.parallel_max FROM schedule_revision r
                 WHERE r.schedule_id = occurrence.schedule_id AND r.revision = occurrence.revision))
            OR (waiting_reason = 'catch_up' AND (
                SELECT count(*) FROM run JOIN occurrence o ON o.trigger_occurrence_id = run.trigger_occurrence_id
                WHERE run.schedule_id = occurrence.schedule_id AND o.found_late
                AND run.state IN ('queued', 'running', 'parked', 'cancelling', 'contained')
            ) < (SELECT (r.document -> 'catch_up' ->> 'max_concurrency')::int FROM schedule_revision r
                 WHERE r.schedule_id = occurrence.schedule_id AND r.revision = occurrence.revision)))
    )
    ORDER BY s.schedule_id
    LIMIT %(found_max)s
    """
)

UNCLAIMED = sql.SQL(
    """
    SELECT d.run_id, d.enqueue_seq, d.lane, d.pattern, s.authority || '/' || s.name AS schedule
    FROM delivery d
    JOIN run r ON r.run_id = d.run_id AND r.enqueue_seq = d.enqueue_seq AND r.state = 'queued'
    JOIN schedule s ON s.schedule_id = r.schedule_id
    WHERE d.state = 'PUBLISHED' AND d.published_at <= (SELECT trusted_now() - make_interval(secs => %(seconds)s))
    ORDER BY d.published_at
    LIMIT %(found_max)s
    """
)

# While the server itself was away nobody could renew a claim: silence is counted from its start.
LOST = sql.SQL(
    """
    SELECT c.run_id, c.enqueue_seq, c.claim_id, d.pattern, s.authority || '/' || s.name AS schedule
    FROM claim c
    JOIN delivery d ON d.run_id = c.run_id AND d.enqueue_seq = c.enqueue_seq
    JOIN run n ON n.run_id = c.run_id
    JOIN schedule s ON s.schedule_id = n.schedule_id
    WHERE c.ended_at IS NULL AND c.heartbeat_at <= (SELECT trusted_now() - make_interval(secs => %(seconds)s))
      AND pg_postmaster_start_time() <= clock_timestamp() - make_interval(secs => %(seconds)s)
    ORDER BY c.heartbeat_at
    LIMIT %(found_max)s
    """
)

UNDELIVERED = sql.SQL("SELECT count(*) FROM (SELECT FROM delivery WHERE state = 'PENDING' LIMIT 1000) AS outbox")

OUT_OF_DOUBT = sql.SQL(
    """
    SELECT n.run_id FROM run n WHERE n.state = 'contained' AND NOT EXISTS (
        SELECT FROM effect e WHERE e.run_id = n.run_id AND e.state IN ('admitted', 'unknown', 'contained'))
    ORDER BY n.run_id LIMIT %(found_max)s
    """
)
