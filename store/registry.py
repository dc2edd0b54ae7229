"""Schedules and their revisions: registered once, immutable, the first one activated (OCC-2, CAL-4, CUT-1).

`register` holds the Schedule's row. A crash before its commit leaves nothing; after it, the same file registers nothing
again: a document that means what the latest revision means is that revision. An owner or a Sigil that was never seen is
enrolled by the operator's act of applying, the Sigil with every scope; what was revoked stays revoked.
"""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from psycopg import sql

from law.bounds import check_jitter
from law.errors import BadInput, UnknownPattern, UnknownSchedule
from law.firings import check_cycle, next_firing_at
from law.identity import DecisionId, Digest, RevisionNumber, ScheduleName
from law.schedule import ScheduleDocument, revision_digest
from law.triggers import CalendarTrigger
from law.zone_rules import ZoneRules
from store.connection import Pool, borrow
from store.locks import SCHEDULE, HeldPattern, HeldSchedule, named, own_schedule, pattern_of
from store.rows import insert_rows
from store.tables import activation, schedule_revision, segment
from store.turn import Lock, Turn, turn
from store.zone_rules import installed_rules

COLLISIONS_FROM = datetime(2024, 1, 1, tzinfo=UTC)
"""Where registration begins to look for two firings in one cycle: a leap year, so that every kind of year is seen."""


@dataclass(frozen=True, slots=True)
class NewSchedule:
    """A Schedule row that this transaction made."""

    schedule_id: int


@dataclass(frozen=True, slots=True)
class Registered:
    """One Schedule file, registered. `created`: this call made the revision; `active`: it is the active one."""

    schedule: ScheduleName
    revision: RevisionNumber
    digest: Digest
    created: bool
    active: bool


def register(pool: Pool, document: ScheduleDocument, decision_id: DecisionId) -> Registered:
    """Register a Schedule file. Raises BadInput, UnknownZone, UnknownPattern and CycleCollision; then nothing changed."""
    rules = rules_of(document)
    work = document.work
    locks = (new_schedule(document), own_schedule(document.schedule), pattern_of(work.pattern, work.pattern_revision))
    with turn(pool, decision_id, *locks) as held:
        own: HeldSchedule = held.locked[1][0]
        patterns: list[HeldPattern] = held.locked[2]
        if not patterns:
            raise UnknownPattern(pattern=work.pattern, pattern_revision=work.pattern_revision)
        if document.overlap.policy == "coalesce" and not patterns[0].merges:
            reason = f"coalesce needs a merge, and {work.pattern} {work.pattern_revision} declares none"
            raise BadInput(field="overlap.policy", reason=reason)
        digest = revision_digest(document, rules.digest if rules else None, patterns[0].digest)
        latest = held.rows(LATEST_REVISION, {"schedule_id": own.schedule_id})
        if latest and latest[0][1] == digest:
            revision = RevisionNumber(latest[0][0])
            return Registered(document.schedule, revision, digest, False, revision == own.active_revision)
        revision = RevisionNumber(latest[0][0] + 1 if latest else 1)
        write_revision(held, document, rules, own.schedule_id, revision, digest, patterns[0].digest)
        if not latest:
            activate_first(held, document, rules, own.schedule_id)
        held.record("register", {"schedule": document.schedule, "revision": revision}, own.last_sampled_at)
        return Registered(document.schedule, revision, digest, True, not latest)


def rules_of(document: ScheduleDocument) -> ZoneRules | None:
    """The rules to retain for a calendar Schedule, checked against its trigger; None for an external one."""
    if not isinstance(document.trigger, CalendarTrigger):
        return None
    rules = installed_rules(document.trigger.zone)
    check_cycle(document.schedule, document.trigger, document.cycle, rules, COLLISIONS_FROM)
    check_jitter(document.trigger, document.window, document.jitter, rules, COLLISIONS_FROM)
    return rules


def new_schedule(document: ScheduleDocument) -> Lock:
    """Make the Schedule's row if this is its first file; either way the next lock finds it."""
    return Lock(SCHEDULE, NEW_SCHEDULE, named(document.schedule), NewSchedule)


def write_revision(
    held: Turn,
    document: ScheduleDocument,
    rules: ZoneRules | None,
    schedule_id: int,
    revision: RevisionNumber,
    digest: Digest,
    pattern_digest: str,
) -> None:
    """Write the revision, retain its rules once by digest, and enrol an owner who was never seen."""
    held.write(ENROL_OWNER, {"name": document.work.owner, "at": held.at})
    if document.work.sigil is not None:
        held.write(ENROL_SIGIL, {"name": document.work.sigil, "owner": document.work.owner, "at": held.at})
    if rules is not None:
        arguments = {"digest": rules.digest, "zone": rules.zone, "release": rules.release, "tzif": rules.tzif}
        held.write(RETAIN_RULES, {**arguments, "at": held.at})
    row: dict[str, Any] = {
        "schedule_id": schedule_id,
        "revision": revision,
        "digest": digest,
        "document": document.canonical(),
        "zone": rules.zone if rules else None,
        "zone_rules_digest": rules.digest if rules else None,
        "pattern": document.work.pattern,
        "pattern_revision": document.work.pattern_revision,
        "pattern_digest": pattern_digest,
        "overlap_policy": document.overlap.policy,
        "parallel_max": document.overlap.terms.parallel_max,
        "aging_seconds": int(document.class_.aging.total_seconds()) if document.class_.aging else None,
        "capability": document.capacity.capability if document.capacity else None,
        "runs_per_day_max": document.budget.runs_per_day,
        "registered_at": held.at,
    }
    insert_rows(held, schedule_revision, [row])


def activate_first(held: Turn, document: ScheduleDocument, rules: ZoneRules | None, schedule_id: int) -> None:
    """The first revision owns every firing from this instant on, and none before it."""
    plan = {"form": "first", "revision": 1}
    row = {"schedule_id": schedule_id, "activation_ordinal": 1, "revision": 1, "plan": plan}
    insert_rows(held, activation, [{**row, "activated_at": held.at, "decision_id": held.decision_id}])
    next_at = None
    if isinstance(document.trigger, CalendarTrigger) and rules is not None:
        next_at = next_firing_at(document.trigger, document.cycle, rules, held.at)
    line = {"schedule_id": schedule_id, "segment_ordinal": 1, "revision": 1, "first_at": held.at, "end_at": None}
    insert_rows(held, segment, [{**line, "cursor_at": held.at, "next_nominal_at": next_at}])
    held.write(SET_ACTIVE, {"schedule_id": schedule_id, "revision": 1})


@dataclass(frozen=True, slots=True)
class ScheduleLine:
    """One Schedule as a list shows it."""

    schedule: ScheduleName
    revision: RevisionNumber
    revisions: int
    digest: Digest
    document: dict[str, Any]
    zone_release: str | None
    zone_rules_digest: str | None
    registered_at: datetime
    activated_at: datetime
    next_nominal_at: datetime | None
    pending: int
    live_runs: int
    halted_reason: str | None
    paused_at: datetime | None


def schedules(pool: Pool) -> list[ScheduleLine]:
    """Every Schedule by name, with its active revision."""
    with borrow(pool) as connection:
        return [ScheduleLine(*row) for row in connection.execute(SCHEDULES, {"authority": None, "name": None})]


def schedule(pool: Pool, name: ScheduleName) -> ScheduleLine:
    """One Schedule. Raises UnknownSchedule."""
    with borrow(pool) as connection:
        row = connection.execute(SCHEDULES, named(name)).fetchone()
    if row is None:
        raise UnknownSchedule(schedule=name)
    return ScheduleLine(*row)


NEW_SCHEDULE = sql.SQL(
    """
    INSERT INTO schedule (authority, name, registered_at)
    VALUES (%(authority)s, %(name)s, trusted_now())
    ON CONFLICT (authority, name) DO NOTHING
    RETURNING schedule_id
    """
)

LATEST_REVISION = sql.SQL(
    """
    SELECT revision, digest FROM schedule_revision WHERE schedule_id = %(schedule_id)s ORDER BY revision DESC LIMIT 1
    """
)

ENROL_OWNER = sql.SQL(
    """
    INSERT INTO principal (name, standing, generation, changed_at) VALUES (%(name)s, 'active', 1, %(at)s)
    ON CONFLICT (name) DO NOTHING
    """
)

ENROL_SIGIL = sql.SQL(
    """
    INSERT INTO sigil (name, owner, standing, scopes, generation, changed_at)
    VALUES (%(name)s, %(owner)s, 'active', '["*"]'::jsonb, 1, %(at)s)
    ON CONFLICT (name) DO NOTHING
    """
)

RETAIN_RULES = sql.SQL(
    """
    INSERT INTO zone_rules (digest, zone, release, tzif, retained_at)
    VALUES (%(digest)s, %(zone)s, %(release)s, %(tzif)s, %(at)s)
    ON CONFLICT (digest, zone) DO NOTHING
    """
)

SET_ACTIVE = sql.SQL(
    "UPDATE schedule SET active_revision = %(revision)s, last_sampled_at = trusted_now() WHERE schedule_id = %(schedule_id)s"
)

SCHEDULES = sql.SQL(
    """
    SELECT s.authority || '/' || s.name, r.revision,
           (SELECT count(*) FROM schedule_revision v WHERE v.schedule_id = s.schedule_id),
           r.digest, r.document, z.release, r.zone_rules_digest, s.registered_at, a.activated_at,
           (SELECT min(g.next_nominal_at) FROM segment g WHERE g.schedule_id = s.schedule_id),
           (SELECT count(*) FROM occurrence o WHERE o.schedule_id = s.schedule_id AND o.state = 'pending'),
           (SELECT count(*) FROM run n WHERE n.schedule_id = s.schedule_id
            AND n.state IN ('queued', 'running', 'parked', 'cancelling', 'contained')),
           s.halted_reason, s.paused_at
    FROM schedule s
    JOIN schedule_revision r ON r.schedule_id = s.schedule_id AND r.revision = s.active_revision
    JOIN LATERAL (
        SELECT activated_at FROM activation a WHERE a.schedule_id = s.schedule_id
        ORDER BY activation_ordinal DESC LIMIT 1
    ) a ON true
    LEFT JOIN zone_rules z ON z.digest = r.zone_rules_digest AND z.zone = r.zone
    WHERE %(authority)s::text IS NULL OR (s.authority = %(authority)s AND s.name = %(name)s)
    ORDER BY s.authority, s.name
    """
)
