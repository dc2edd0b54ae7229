"""Materialize: every due firing becomes one durable Occurrence (OCC-1..3, CAL-3..6, CAL-8, CAL-9).

Locks the caller's Schedule, and every other Schedule with a firing due that can be had without waiting: whoever wakes
first works for all. Then one sample; for each live segment (a revision and its rules, from its first firing to its last)
what rang between the cursor and the sample is enumerated newest first, sorted out by the pinned catch-up policy, and
written with the moved cursor. An Occurrence is assigned at or after its instant and never ahead of it.

A crash before the commit leaves the cursor, and the same firings are found again. After it, they are never found again:
the Occurrences wait to be decided. A Schedule whose retained rules are gone or altered is halted with the reason, alone;
it rings again, from its cursor, when its rules are whole (CAL-4).
"""

import time
from collections import Counter
from dataclasses import asdict, dataclass, field
from datetime import datetime, timedelta
from random import random
from typing import Any

from psycopg import sql

from law.bounds import Bounds, calendar_bounds
from law.catch_up import Backlog, found_late, sort_out
from law.errors import BadZoneRules, Contradiction, CycleCollision, UnknownSchedule
from law.firings import Firing, firings, next_firing_at
from law.identity import DecisionId, RevisionNumber, ScheduleName, SourceKey
from law.instants import instant_text
from law.origin import Granted, policy_for
from law.reasons import MEANINGS, OccurrenceState, Reason
from law.triggers import CalendarTrigger
from law.zone_rules import ZoneRules, civil_reading
from store.connection import Pool
from store.firing_rows import calendar_row, settled, with_authority
from store.jsonb import jsonb
from store.locks import HeldSchedule, other_schedules_due, own_schedule, policies_of
from store.pinned import PinnedRevision, pinned_revision
from store.policies import as_policy
from store.rows import insert_rows
from store.tables import decision, occurrence, skipped_range
from store.turn import Turn, turn

JUST_AFTER = timedelta(microseconds=1)
"""The clock's own resolution: a cursor stands just after the last instant that was looked at."""
LOOK_SECONDS_MAX, ROWS_IN_A_LOOK_MAX = 0.5, 2_000
"""Beyond this a look takes no further Schedule along: after a long outage of a large house each look is still short."""


@dataclass(frozen=True, slots=True)
class Materialized:
    """What became of the caller's own Schedule. `halted`: why it stands still, or ''; `next_civil`: as people read it."""

    schedule: ScheduleName
    revision: RevisionNumber
    service_class: str
    created: int
    skipped: int
    next_nominal_at: datetime | None
    next_civil: str
    halted: str


@dataclass(frozen=True, slots=True)
class Segment:
    """A live stretch of one revision's line: everything before `cursor_at` is materialized."""

    schedule_id: int
    segment_ordinal: int
    revision: RevisionNumber
    digest: str
    end_at: datetime | None
    cursor_at: datetime
    next_nominal_at: datetime | None
    zone: str | None
    rules_stand: bool
    exclusions: list[dict[str, Any]] | None
    """What a cutover took out of this line from the cursor on; None where that is nothing."""


@dataclass(slots=True)
class Found:
    """What one Schedule brings to the commit."""

    pinned: PinnedRevision | None = None
    rows: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    ranges: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    cursors: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    next_nominal_at: datetime | None = None
    halted: str = ""
    paused: bool = False
    left: bool = False
    """Whether this look had no time for it: its bell is found by the next."""


def materialize(pool: Pool, schedule: ScheduleName, decision_id: DecisionId) -> Materialized:
    """Make every due firing of this Schedule, and of every other that can be had, one durable Occurrence.

    Raises UnknownSchedule, ServerUnreachable and StoreBusy; then nothing was made. Asked again with any id, it makes
    nothing twice: the cursor and the firing's identity see to that.
    """
    with turn(pool, decision_id, own_schedule(schedule), other_schedules_due(), policies_of("schedule")) as held:
        own, others, _ = held.locked
        if not own:
            raise UnknownSchedule(schedule=schedule)
        held_schedules: list[HeldSchedule] = [*own, *others]
        found = look(held, [one for one in held_schedules if one.paused_at is None])
        if own[0].paused_at is not None:
            found[own[0].schedule_id] = paused(held, own[0])
        write(held, held_schedules, found)
        return report(held, own[0], found[own[0].schedule_id])


def paused(held: Turn, own: HeldSchedule) -> Found:
    """A paused Schedule's line stands still where it is: what rings meanwhile is found, late, when it is resumed."""
    [(note,)] = held.rows(PAUSE_NOTE, {"schedule_id": own.schedule_id})
    assert own.paused_at is not None
    return Found(halted=f"paused since {instant_text(own.paused_at)}{f': {note}' if note else ''}", paused=True)


def look(held: Turn, schedules: list[HeldSchedule]) -> dict[int, Found]:
    """Find what rang in every live segment of every held Schedule; a contradiction halts its own Schedule alone."""
    found = {one.schedule_id: Found() for one in schedules}
    lines = held.records(Segment, LIVE_SEGMENTS, {"schedules": list(found)})
    by_schedule = {one: [line for line in lines if line.schedule_id == one] for one in found}
    deadline = time.monotonic() + LOOK_SECONDS_MAX
    for schedule_id, into in found.items():
        if time.monotonic() > deadline or sum(len(one.rows) for one in found.values()) > ROWS_IN_A_LOOK_MAX:
            into.left = True
            continue
        look_at(held, by_schedule[schedule_id], into)
    return found


def look_at(held: Turn, lines: list[Segment], into: Found) -> None:
    """Find what rang in every live segment of one Schedule; a contradiction halts it, and nothing else."""
    try:
        for line in lines:
            look_along(held, line, into)
        keys = Counter(row["source_key"] for row in into.rows)
        if into.pinned is not None and keys and max(keys.values()) > 1:
            key = keys.most_common(1)[0][0]
            raise CycleCollision(schedule=into.pinned.schedule, key=key, first="of one line", second="of another")
    except Contradiction as problem:
        into.halted = problem.sentence
        into.rows, into.ranges, into.cursors, into.next_nominal_at = [], [], [], None


def look_along(held: Turn, line: Segment, found: Found) -> None:
    """Find what rang along one segment since its cursor."""
    if not line.rules_stand:
        raise BadZoneRules(zone=line.zone, reason="the retained row is gone or altered")
    pinned = pinned_revision(held.connection, line.schedule_id, line.revision, line.digest)
    found.pinned = pinned
    trigger, rules = pinned.document.trigger, pinned.rules
    if not isinstance(trigger, CalendarTrigger) or rules is None:
        return
    found.next_nominal_at = line.next_nominal_at
    until = min(held.at + JUST_AFTER, line.end_at or held.at + JUST_AFTER)
    if line.next_nominal_at is None or line.next_nominal_at >= until:
        return
    taken_out = excluded_firings(line, pinned, trigger, rules)
    granted = granted_to(held, pinned)
    backlog = backlog_of(held, pinned, trigger, rules, line.cursor_at, until, frozenset(taken_out), granted)
    let_go = [firing for firing, disposition in taken_out.items() if disposition == "skip" and firing.at < until]
    rows = rows_of(held, pinned, backlog, granted)
    rows += [skipped_row(held, pinned, rules, firing, granted) for firing in let_go]
    found.rows += unassigned(held, pinned, rows)
    found.ranges += ranges_of(held, pinned, backlog)
    found.next_nominal_at = next_firing_at(trigger, pinned.document.cycle, rules, until)
    if line.end_at is not None and found.next_nominal_at is not None and found.next_nominal_at >= line.end_at:
        found.next_nominal_at = None
    found.cursors.append(
        {
            "schedule_id": line.schedule_id,
            "segment_ordinal": line.segment_ordinal,
            "cursor_at": until,
            "next_nominal_at": found.next_nominal_at,
        }
    )


def granted_to(held: Turn, pinned: PinnedRevision) -> Granted:
    """The class that policy grants to this Schedule's own firings, asked for by its owner (CLS-2)."""
    policies = [as_policy(one) for one in held.locked[2]]
    document = pinned.document
    return document.grant(document.class_.service_class, policy_for(policies, "schedule", document.work.owner))


def backlog_of(
    held: Turn,
    pinned: PinnedRevision,
    trigger: CalendarTrigger,
    rules: ZoneRules,
    since: datetime,
    until: datetime,
    excluded: frozenset[Firing],
    granted: Granted,
) -> Backlog:
    """Everything that rang in [since, until), sorted out by the pinned policy at the sample."""
    document, window = pinned.document, pinned.document.window_for(granted.service_class)

    def bounds(firing: Firing) -> Bounds:
        return calendar_bounds(window, document.jitter, firing, rules, pinned.schedule, draw=random())

    return sort_out(trigger, document.cycle, rules, since, until, bounds, held.at, document.catch_up, excluded)


def excluded_firings(
    line: Segment, pinned: PinnedRevision, trigger: CalendarTrigger, rules: ZoneRules
) -> dict[Firing, str]:
    """The firings that a cutover took out of this line, with what they are: another name (`same_as`), or let go (`skip`)."""
    dispositions = {one["source_key"]: one["disposition"] for one in line.exclusions or ()}
    instants = {datetime.fromisoformat(one["rings_at"]) for one in line.exclusions or ()}
    ringing = (
        firing
        for instant in sorted(instants)
        for firing in firings(trigger, pinned.document.cycle, rules, instant, instant + JUST_AFTER)
    )
    return {firing: dispositions[firing.key] for firing in ringing if firing.key in dispositions}


def skipped_row(
    held: Turn, pinned: PinnedRevision, rules: ZoneRules, firing: Firing, granted: Granted
) -> dict[str, Any]:
    """A firing that a cutover let go is recorded as that, under its own revision, when its time has come (CUT-2)."""
    document, bounds = pinned.document, None
    if firing.nominal_at is not None:
        window = document.window_for(granted.service_class)
        bounds = calendar_bounds(window, document.jitter, firing, rules, pinned.schedule, draw=random())
    row = calendar_row(held, pinned, firing, bounds, found_late(firing, held.at, document.catch_up), granted)
    return settled(row, held, OccurrenceState.SKIPPED, Reason.CUTOVER_SKIPPED)


def rows_of(held: Turn, pinned: PinnedRevision, backlog: Backlog, granted: Granted) -> list[dict[str, Any]]:
    """A row for every firing that stands alone: pending, or final with the reason the calendar gave it."""
    rows: list[dict[str, Any]] = []
    for entry in backlog.entries:
        row = calendar_row(held, pinned, entry.firing, entry.bounds, entry.found_late, granted)
        if entry.reason is None:
            rows.append(row)
            continue
        state = OccurrenceState.FAILED if entry.reason is Reason.GAP_FAILED else OccurrenceState.SKIPPED
        rows.append(settled(row, held, state, entry.reason))
    return rows


def ranges_of(held: Turn, pinned: PinnedRevision, backlog: Backlog) -> list[dict[str, Any]]:
    """One row for each long stretch that was skipped whole: it answers for every firing inside it (CAL-8)."""
    return [
        {
            "schedule_id": pinned.schedule_id,
            "revision": pinned.revision,
            **asdict(stretch),
            "decision_time": held.at,
            "decision_id": held.decision_id,
        }
        for stretch in backlog.ranges
    ]


def unassigned(held: Turn, pinned: PinnedRevision, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The rows whose firing nobody owns yet. A firing that another revision owns stays its own (OCC-2); two civil times
    of one revision under one key are a contradiction, and fail closed."""
    by_key: dict[SourceKey, dict[str, Any]] = {}
    for row in rows:
        other = by_key.setdefault(row["source_key"], row)
        if other is not row:
            collide(pinned, row["source_key"], row["content_digest"], other["content_digest"])
    for key, revision, content_digest in held.rows(ASSIGNED, {"schedule_id": pinned.schedule_id, "keys": list(by_key)}):
        row = by_key.pop(key)
        if revision == pinned.revision and content_digest != row["content_digest"]:
            collide(pinned, key, row["content_digest"], content_digest)
    return list(by_key.values())


def collide(pinned: PinnedRevision, key: SourceKey, first: str, second: str) -> None:
    """Refuse two firings in one cycle."""
    raise CycleCollision(schedule=pinned.schedule, key=key, first=first, second=second)


def write(held: Turn, schedules: list[HeldSchedule], found: dict[int, Found]) -> None:
    """Write the Occurrences, the records of what was final at birth, the ranges, and the moved cursors."""
    for one in found.values():
        one.rows = with_authority(held, one.rows) if one.rows else []
    rows = [row for one in found.values() for row in one.rows]
    ranges = [row for one in found.values() for row in one.ranges]
    insert_rows(held, occurrence, rows)
    insert_rows(held, decision, [decision_row(row) for row in rows if row["state"] is not OccurrenceState.PENDING])
    insert_rows(held, skipped_range, ranges)
    cursors = [cursor for one in found.values() for cursor in one.cursors]
    if cursors:
        held.write(MOVE_CURSORS, {"cursors": jsonb(cursors)})
    for one in schedules:
        halted = found[one.schedule_id].halted
        if found[one.schedule_id].paused or found[one.schedule_id].left:
            continue
        if halted != (one.halted_reason or ""):
            held.write(HALT, {"schedule_id": one.schedule_id, "reason": halted or None})
    if rows or ranges:
        latest = max((one.last_sampled_at for one in schedules if one.last_sampled_at is not None), default=None)
        held.record("materialize", {"created": len(rows), "ranges": len(ranges)}, latest)
        held.write(SAMPLED, {"schedules": [one.schedule_id for one in schedules], "at": held.at})


def decision_row(row: dict[str, Any]) -> dict[str, Any]:
    """The durable record of a firing that the calendar or the catch-up policy decided (EVD-1)."""
    reason = Reason(row["reason"])
    return {
        "decision_id": row["decision_id"],
        "trigger_occurrence_id": row["trigger_occurrence_id"],
        "act": "materialize",
        "outcome": row["state"],
        "reason": reason,
        "obligations": list(MEANINGS[reason].obligations),
        "evidence": {"rang_at": row["rang_at"], "decision_time": row["decision_time"]},
        "sampled_at": row["decision_time"],
    }


def report(held: Turn, own: HeldSchedule, found: Found) -> Materialized:
    """The caller's answer."""
    pinned = found.pinned
    [(service_class,)] = held.rows(OWN_CLASS, {"schedule_id": own.schedule_id, "revision": own.active_revision})
    final = [row for row in found.rows if row["state"] is not OccurrenceState.PENDING]
    return Materialized(
        schedule=own.schedule,
        revision=RevisionNumber(own.active_revision),
        service_class=service_class,
        created=len(found.rows) - len(final),
        skipped=len(final) + sum(row["firing_count"] for row in found.ranges),
        next_nominal_at=found.next_nominal_at,
        next_civil=civil_text(pinned, found.next_nominal_at),
        halted=found.halted,
    )


def civil_text(pinned: PinnedRevision | None, at: datetime | None) -> str:
    """`2026-03-29 02:00 Europe/Bratislava`: an instant as the Schedule's own people read it; '' where there is none."""
    if pinned is None or pinned.rules is None or at is None:
        return ""
    civil, _ = civil_reading(pinned.rules, at)
    seconds = "%Y-%m-%d %H:%M:%S" if civil.second else "%Y-%m-%d %H:%M"
    return f"{civil:{seconds}} {pinned.rules.zone}"


LIVE_SEGMENTS = sql.SQL(
    """
    SELECT g.schedule_id, g.segment_ordinal, g.revision, r.digest, g.end_at, g.cursor_at, g.next_nominal_at, r.zone,
           r.zone IS NULL OR coalesce(z.digest = 'sha256:' || encode(sha256(z.tzif), 'hex'), false) AS rules_stand,
           (SELECT jsonb_agg(jsonb_build_object('source_key', x.source_key, 'rings_at', x.rings_at,
                                                'disposition', x.disposition))
            FROM cutover_exclusion x
            WHERE x.schedule_id = g.schedule_id AND x.segment_ordinal = g.segment_ordinal AND x.rings_at >= g.cursor_at
           ) AS exclusions
    FROM segment g
    JOIN schedule_revision r ON r.schedule_id = g.schedule_id AND r.revision = g.revision
    LEFT JOIN zone_rules z ON z.digest = r.zone_rules_digest AND z.zone = r.zone
    WHERE g.schedule_id = ANY(%(schedules)s) AND (g.end_at IS NULL OR g.cursor_at < g.end_at)
    ORDER BY g.schedule_id, g.segment_ordinal
    """
)

ASSIGNED = sql.SQL(
    """
    SELECT source_key, revision, content_digest FROM occurrence
    WHERE schedule_id = %(schedule_id)s AND source_key = ANY(%(keys)s)
    """
)

MOVE_CURSORS = sql.SQL(
    """
    UPDATE segment g SET cursor_at = v.cursor_at, next_nominal_at = v.next_nominal_at
    FROM jsonb_populate_recordset(NULL::segment, %(cursors)s) v
    WHERE g.schedule_id = v.schedule_id AND g.segment_ordinal = v.segment_ordinal
    """
)

HALT = sql.SQL("UPDATE schedule SET halted_reason = %(reason)s WHERE schedule_id = %(schedule_id)s")

SAMPLED = sql.SQL(
    "UPDATE schedule SET last_sampled_at = greatest(last_sampled_at, %(at)s) WHERE schedule_id = ANY(%(schedules)s)"
)

PAUSE_NOTE = sql.SQL(
    "SELECT note FROM pause_event WHERE schedule_id = %(schedule_id)s ORDER BY event_ordinal DESC LIMIT 1"
)

OWN_CLASS = sql.SQL(
    """
    SELECT document -> 'class' ->> 'service_class' FROM schedule_revision
    WHERE schedule_id = %(schedule_id)s AND revision = %(revision)s
    """
)
