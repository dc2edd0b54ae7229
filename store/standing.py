"""How one Schedule stands, for whoever looks at its page (EVD-1): what rang last and became of it, and what waits.

Reads only, outside every decision's transaction and without a lock: it says what was true a moment ago, and nothing is
decided by it.
"""

from dataclasses import dataclass
from datetime import datetime

from psycopg import sql
from psycopg.rows import class_row

from law.errors import BadZoneRules, UnknownSchedule
from law.identity import ScheduleName
from store.connection import Connection, Pool, borrow
from store.locks import named
from store.occurrences import civil_text
from store.pinned import pinned_revision

LATEST_MAX = 10


@dataclass(frozen=True, slots=True)
class Line:
    """One Occurrence. `rang`: its civil time and zone, or its event id and source; the Run's fields are '' without a Run."""

    trigger_occurrence_id: str
    key: str
    state: str
    reason: str
    run_id: str
    rang: str
    rang_at: datetime
    run_state: str
    run_reason: str


@dataclass(frozen=True, slots=True)
class Counts:
    """How much of a Schedule is not settled. `held`: Runs that are parked or contained."""

    schedule_id: int
    revision: int | None
    digest: str | None
    paused: bool
    pending: int
    running: int
    held: int


@dataclass(frozen=True, slots=True)
class Standing:
    """`lines`: the newest first. `wake_civil`: the instant that was asked about, as the active revision's zone reads it."""

    lines: tuple[Line, ...]
    pending: int
    running: int
    held: int
    paused: bool
    wake_civil: str


def standing(pool: Pool, schedule: ScheduleName, wake_at: datetime | None) -> Standing:
    """How a Schedule stands now. Raises UnknownSchedule and ServerUnreachable."""
    with borrow(pool) as connection:
        counts = read_counts(connection, schedule)
        lines = connection.cursor(row_factory=class_row(Line))
        latest = lines.execute(LATEST, {"schedule_id": counts.schedule_id, "latest_max": LATEST_MAX}).fetchall()
        wake_civil = read_civil(connection, counts, wake_at)
    return Standing(tuple(latest), counts.pending, counts.running, counts.held, counts.paused, wake_civil)


def read_counts(connection: Connection, schedule: ScheduleName) -> Counts:
    """Raises UnknownSchedule."""
    rows = connection.cursor(row_factory=class_row(Counts))
    counts = rows.execute(COUNTS, named(schedule)).fetchone()
    if counts is None:
        raise UnknownSchedule(schedule=schedule)
    return counts


def read_civil(connection: Connection, counts: Counts, at: datetime | None) -> str:
    """`2026-03-29 02:00 Europe/Bratislava`, or '' where there is no zone, or none whose rules are whole."""
    if at is None or counts.revision is None or counts.digest is None:
        return ""
    try:
        return civil_text(pinned_revision(connection, counts.schedule_id, counts.revision, counts.digest), at)
    except BadZoneRules:  # the Schedule is halted, and materialize says why
        return ""


COUNTS = sql.SQL(
    """
    SELECT s.schedule_id, s.active_revision AS revision, r.digest, s.paused_at IS NOT NULL AS paused,
           (SELECT count(*) FROM occurrence o WHERE o.schedule_id = s.schedule_id AND o.state = 'pending') AS pending,
           live.running, live.held
    FROM schedule s
    LEFT JOIN schedule_revision r ON r.schedule_id = s.schedule_id AND r.revision = s.active_revision
    CROSS JOIN LATERAL (
        SELECT count(*) FILTER (WHERE state IN ('queued', 'running', 'cancelling')) AS running,
               count(*) FILTER (WHERE state IN ('parked', 'contained')) AS held
        FROM run
        WHERE run.schedule_id = s.schedule_id
          AND state IN ('queued', 'running', 'parked', 'cancelling', 'contained')
    ) live
    WHERE s.authority = %(authority)s AND s.name = %(name)s
    """
)

LATEST = sql.SQL(
    """
    SELECT o.trigger_occurrence_id::text, o.source_key AS key, o.state,
           coalesce(o.reason, o.waiting_reason, '') AS reason, coalesce(r.run_id::text, '') AS run_id,
           CASE o.source_kind WHEN 'event' THEN o.event_id || ' from ' || o.event_source
                ELSE to_char(o.civil, CASE WHEN extract(second FROM o.civil) = 0 THEN 'YYYY-MM-DD HH24:MI'
                                           ELSE 'YYYY-MM-DD HH24:MI:SS' END)
                     || ' ' || o.zone || CASE o.fold WHEN 1 THEN ', the second time' ELSE '' END
           END AS rang,
           o.rang_at, coalesce(r.state, '') AS run_state, coalesce(r.reason, '') AS run_reason
    FROM occurrence o
    LEFT JOIN LATERAL (
        SELECT * FROM run n WHERE n.trigger_occurrence_id = o.trigger_occurrence_id ORDER BY n.admitted_at DESC LIMIT 1
    ) r ON true
    WHERE o.schedule_id = %(schedule_id)s
    ORDER BY o.rang_at DESC, o.source_key DESC
    LIMIT %(latest_max)s
    """
)
