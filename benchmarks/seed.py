"""Schedules and Occurrences in numbers, written straight into the tables by one statement each.

What the measured code reads is what it would have written itself: one Schedule is registered through the store and the
others are copies of its rows; an Occurrence is an event that was offered a minute ago.
"""

from uuid import uuid4

import psycopg

from law.identity import DecisionId, ScheduleName
from law.schedule import check_document
from store import registry
from store.connection import SESSION_LAW, open_pool

AUTHORITY = "bench"

HISTORY = 20_000
"""How many settled Occurrences a house has: plans that were made on empty tables are nobody's everyday."""

NO_TIMEOUT = "-c statement_timeout=0 -c transaction_timeout=0"

DOCUMENT = {
    "authority": AUTHORITY,
    "name": "d0",
    "trigger": {"kind": "external", "source": "bench"},
    "class": {"service_class": "foreground"},
    "overlap": {"policy": "bounded_parallel", "max": 10_000},
    "work": {"pattern": "bridge_turn", "pattern_revision": "1", "owner": "magus"},
}


def schedule_named(number: int) -> ScheduleName:
    """The name of the Schedule with this number."""
    return ScheduleName(f"{AUTHORITY}/d{number}")


def execute(database_url: str, *statements: str, **arguments: object) -> None:
    """Run statements of ours in one session, without the timeout that callers have."""
    with psycopg.connect(database_url, autocommit=True, options=f"{SESSION_LAW} {NO_TIMEOUT}") as connection:
        for statement in statements:
            connection.execute(statement.encode(), arguments or None)


def make_schedules(database_url: str, count: int, history: int = HISTORY) -> None:
    """Schedules d0 to d`count - 1`, all alike, and a history."""
    pool = open_pool(database_url, connections_max=1)
    registry.register(pool, check_document(DOCUMENT), DecisionId(uuid4()))
    pool.close()
    execute(database_url, SCHEDULES, count=count - 1, authority=AUTHORITY)
    execute(database_url, REVISIONS, ACTIVE)
    put_settled(database_url, history)


def put_waiting(database_url: str, first: int, count: int, each: int = 1, *, alone: bool = False) -> None:
    """`each` Occurrences that wait in every Schedule from `first` on. `alone`: none but the Schedule's own caller looks
    for them, as for an Occurrence that was made to wait before; so every decision is exactly one. What was admitted before
    is done by now: nobody counts thousands of live Runs."""
    names = [f"d{number}" for number in range(first, first + count)]
    execute(database_url, DELIVERED, DONE)
    execute(database_url, WAITING, names=names, each=each, waiting="overlap" if alone else None)


def put_settled(database_url: str, count: int) -> None:
    """So many Occurrences of d0 that are long decided, each with its Invocation and its Run that is done."""
    unchecked = ("SET session_replication_role = replica", "SET synchronous_commit = off")
    execute(database_url, *unchecked, *SETTLED, "VACUUM (ANALYZE)", "CHECKPOINT", count=count)


SCHEDULES = """
INSERT INTO schedule (authority, name, registered_at)
SELECT %(authority)s, 'd' || k, trusted_now() FROM generate_series(1, %(count)s) k
"""

REVISIONS = """
INSERT INTO schedule_revision
SELECT s.schedule_id, r.revision, r.digest, r.document, r.zone, r.zone_rules_digest, r.pattern, r.pattern_revision,
       r.pattern_digest, r.overlap_policy, r.parallel_max, r.aging_seconds, r.capability, r.runs_per_day_max, r.registered_at
FROM schedule s CROSS JOIN schedule_revision r WHERE s.active_revision IS NULL
"""

ACTIVE = "UPDATE schedule SET active_revision = 1 WHERE active_revision IS NULL"

DELIVERED = "UPDATE delivery SET state = 'CLOSED' WHERE state = 'PENDING'"

DONE = "UPDATE run SET state = 'done', reason = 'done', settled_at = admitted_at WHERE state = 'queued'"

WAITING = """
INSERT INTO occurrence (
    trigger_occurrence_id, schedule_id, revision, source_key, source_kind, content_digest, rang_at, nominal_at, event_source,
    event_id, pattern, pattern_revision, pattern_digest, input, input_digest, owner, origin, requested_class, service_class,
    priority, policy_generation, jitter_milliseconds, eligible_at, materialized_at, materialized_by, found_late, state,
    waiting_reason
)
SELECT e.id, s.schedule_id, 1, 'event:bench:' || e.id, 'event', r.digest, e.at, e.at, 'bench', e.id::text, r.pattern,
       r.pattern_revision, r.pattern_digest, '{"said": "a word"}', r.digest, 'magus', 'operator', 'foreground',
       'foreground', 50, 1, 0, e.at, e.at, e.id, false, 'pending', %(waiting)s::text
FROM schedule s
JOIN schedule_revision r ON r.schedule_id = s.schedule_id
CROSS JOIN LATERAL (
    SELECT uuidv7() AS id, trusted_now() - interval '1 minute' AS at FROM generate_series(1, %(each)s + 0 * s.schedule_id)
) e
WHERE s.name = ANY(%(names)s)
"""

SETTLED = (
    """
    INSERT INTO occurrence (
        trigger_occurrence_id, schedule_id, revision, source_key, source_kind, content_digest, rang_at, nominal_at,
        event_source, event_id, pattern, pattern_revision, pattern_digest, input, input_digest, owner, origin,
        requested_class, service_class, priority, policy_generation, jitter_milliseconds, eligible_at, materialized_at,
        materialized_by, found_late, state, reason, decision_time, decision_id
    )
    SELECT e.id, s.schedule_id, 1, 'event:bench:' || e.id, 'event', r.digest, e.at, e.at, 'bench', e.id::text, r.pattern,
           r.pattern_revision, r.pattern_digest, '{"said": "a word"}', r.digest, 'magus', 'operator', 'foreground',
           'foreground', 50, 1, 0, e.at, e.at, e.id, false, 'admitted', 'admitted', e.at, e.id
    FROM schedule s
    JOIN schedule_revision r ON r.schedule_id = s.schedule_id
    CROSS JOIN (
        SELECT uuidv7(make_interval(secs => -7 * k)) AS id, trusted_now() - make_interval(secs => 7 * k) AS at
        FROM generate_series(%(count)s, 1, -1) k
    ) e
    WHERE s.name = 'd0'
    """,
    """
    INSERT INTO invocation (invocation_id, trigger_occurrence_id, ordinal, admitted_at, decision_id)
    SELECT trigger_occurrence_id, trigger_occurrence_id, 0, decision_time, decision_id FROM occurrence
    WHERE state = 'admitted' AND %(count)s > 0
    """,
    """
    INSERT INTO run (
        run_id, invocation_id, trigger_occurrence_id, schedule_id, overlap_policy, state, disposition, reason, enqueue_seq,
        lost_hops, admitted_at, settled_at
    )
    SELECT trigger_occurrence_id, trigger_occurrence_id, trigger_occurrence_id, schedule_id, 'bounded_parallel', 'done',
           'untimed', 'done', 0, 0, decision_time, decision_time
    FROM occurrence WHERE state = 'admitted' AND %(count)s > 0
    """,
)
