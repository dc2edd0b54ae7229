"""Changing the active revision: proposed, verified and pinned under the Schedule's own lock (CUT-1..5, OCC-2, OCC-5).

`activate` holds the row that assignment holds, samples, enumerates both lines, asks the law, and writes the plan, where the
old lines end, where the new one begins, and every candidate that does not ring, in one commit. A crash before it leaves the
old revision whole; after it, the same call with the same `decision_id` is answered from the record. A relay that knows only
an old revision asks `whose`, and is told what is pinned (CUT-4).
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from psycopg import sql

from law.cutover import Verdict, judge, propose, survey
from law.errors import BadZoneRules, PlanRefused, StillServing, UnknownRevision, UnknownSchedule
from law.firings import SHIFT_MAX, next_firing_at
from law.identity import DecisionId, RevisionNumber, ScheduleName, SourceKey
from law.instants import read_instant
from law.partition import ExplicitPlan, FirstCyclePlan, Line, Partition, Survey
from law.triggers import CalendarTrigger
from store.connection import Pool
from store.locks import HeldSchedule, own_schedule
from store.pinned import PinnedRevision, pinned_revision
from store.rows import insert_rows
from store.tables import activation, cutover_exclusion, segment
from store.turn import Turn, turn

Plan = FirstCyclePlan | ExplicitPlan

ASSIGNED_MAX = 10_000


@dataclass(frozen=True, slots=True)
class Activated:
    """A revision that is active since `activated_at`."""

    schedule: ScheduleName
    revision: RevisionNumber
    activated_at: datetime


@dataclass(frozen=True, slots=True)
class LiveSegment:
    """An old line that still rings, or still may be asked about."""

    segment_ordinal: int
    revision: RevisionNumber
    digest: str
    cursor_at: datetime
    end_at: datetime | None
    excluded: list[str] | None


@dataclass(frozen=True, slots=True)
class Sides:
    """What stands on either side of the cut."""

    segments: tuple[LiveSegment, ...]
    old: tuple[Line, ...]
    new: Line
    pinned: PinnedRevision
    at: datetime
    """The sample, or the latest earlier one where the clock has stepped back since: what has rung is past."""


def examine(
    pool: Pool, schedule: ScheduleName, revision: RevisionNumber, plan: Plan | None, decision_id: DecisionId
) -> Verdict:
    """Propose a plan (None), or verify one, as of now; nothing is changed. Raises UnknownSchedule, UnknownRevision,
    StillServing and BadInput."""
    with turn(pool, decision_id, own_schedule(schedule)) as held:
        sides = both_sides(held, held_schedule(held, schedule), revision)
        return verify(sides, plan or propose(sides.old, sides.new, sides.at), held)


def activate(
    pool: Pool, schedule: ScheduleName, revision: RevisionNumber, plan: Plan | None, decision_id: DecisionId
) -> Activated:
    """Pin the plan and make the revision active. A revision that is active already stays as it is. Without a plan nothing
    is activated, unless neither side has a calendar and so there is nothing to divide. Raises as `examine` does, and
    PlanRefused with every offending candidate (CUT-3)."""
    with turn(pool, decision_id, own_schedule(schedule)) as held:
        own = held_schedule(held, schedule)
        if held.earlier is not None:
            return Activated(schedule, revision, read_instant(held.earlier["activated_at"], "activated_at"))
        if own.active_revision == revision:
            [(activated_at,)] = held.rows(LATEST_ACTIVATION, {"schedule_id": own.schedule_id})
            return Activated(schedule, revision, activated_at)
        sides = both_sides(held, own, revision)
        verdict = verify(sides, plan or plan_for_events(sides, schedule), held)
        if not verdict.complete or verdict.plan is None:
            raise refusal(schedule, revision, verdict)
        pin(held, own, sides, verdict)
        held.record(
            "activate", {"schedule": schedule, "revision": revision, "activated_at": held.at}, own.last_sampled_at
        )
        return Activated(schedule, revision, held.at)


def held_schedule(held: Turn, schedule: ScheduleName) -> HeldSchedule:
    """The Schedule whose row is held. Raises UnknownSchedule."""
    if not held.locked[0]:
        raise UnknownSchedule(schedule=schedule)
    return held.locked[0][0]


def both_sides(held: Turn, own: HeldSchedule, revision: RevisionNumber) -> Sides:
    """Every live line, and the line of the revision that is to be active."""
    segments = held.records(LiveSegment, LIVE, {"schedule_id": own.schedule_id})
    concerned = [revision, *(one.revision for one in segments)]
    for (zone,) in held.rows(RULES_GONE, {"schedule_id": own.schedule_id, "revisions": concerned}):
        raise BadZoneRules(zone=zone, reason="the retained row is gone or altered")
    if any(one.revision == revision for one in segments):
        raise StillServing(schedule=own.schedule, revision=revision)
    old = tuple(live_line(held, own, one) for one in segments)
    digests = held.rows(REVISION_DIGEST, {"schedule_id": own.schedule_id, "revision": revision})
    if not digests:
        raise UnknownRevision(schedule=own.schedule, revision=revision)
    pinned = pinned_revision(held.connection, own.schedule_id, revision, digests[0][0])
    at = max(held.at, own.last_sampled_at or held.at)
    return Sides(tuple(segments), old, line_of(pinned, at), pinned, at)


def live_line(held: Turn, own: HeldSchedule, live: LiveSegment) -> Line:
    """An old line from its cursor on, without what an earlier cutover took out of it."""
    pinned = pinned_revision(held.connection, own.schedule_id, live.revision, live.digest)
    excluded = frozenset(SourceKey(key) for key in live.excluded or ())
    return line_of(pinned, live.cursor_at, live.end_at, excluded)


def line_of(
    pinned: PinnedRevision,
    cursor_at: datetime,
    end_at: datetime | None = None,
    excluded: frozenset[SourceKey] = frozenset(),
) -> Line:
    """A pinned revision as the law of cutover sees it."""
    trigger = pinned.document.trigger
    calendar = trigger if isinstance(trigger, CalendarTrigger) else None
    return Line(pinned.revision, pinned.document.cycle, cursor_at, calendar, pinned.rules, end_at, excluded)


def plan_for_events(sides: Sides, schedule: ScheduleName) -> ExplicitPlan:
    """Where neither side has a calendar there are no candidates, and the empty plan is whole. Raises PlanRefused otherwise:
    a partition is never guessed."""
    if sides.new.trigger is not None or any(line.trigger is not None for line in sides.old):
        sentence = f"missing: no plan was given; `nightbell cutover {schedule} {sides.new.revision}` proposes one"
        raise PlanRefused(schedule=schedule, revision=sides.new.revision, problems=sentence)
    return ExplicitPlan()


def verify(sides: Sides, plan: Plan, held: Turn) -> Verdict:
    """Enumerate, read what is assigned, judge."""
    found = survey(plan, sides.old, sides.new, sides.at)
    return judge(found, assigned(held, sides, found))


def assigned(held: Turn, sides: Sides, found: Survey) -> dict[SourceKey, RevisionNumber]:
    """Which revision owns what is assigned already: of the candidates, of what entries name, and of all that lies beyond
    the cut."""
    named = {one.firing.key for one in found.candidates}
    named |= {SourceKey(one.same_as.key) for one in found.candidates if one.same_as is not None}
    arguments = {"schedule_id": sides.pinned.schedule_id, "keys": sorted(named)}
    rows = held.rows(ASSIGNED, arguments)
    if found.assigned_from is not None:
        about = {"civil": found.assigned_from, "shift": SHIFT_MAX, "assigned_max": ASSIGNED_MAX}
        rows += held.rows(ASSIGNED_FROM, {**arguments, **about})
    return {SourceKey(key): RevisionNumber(revision) for key, revision in rows}


def refusal(schedule: ScheduleName, revision: RevisionNumber, verdict: Verdict) -> PlanRefused:
    """Every problem with every candidate that offends."""
    told = "; ".join(
        f"{one.code}: {one.sentence}"
        + (f" ({', '.join(f'{name.revision}:{name.key}' for name in one.candidates)})" if one.candidates else "")
        for one in verdict.problems
    )
    return PlanRefused(schedule=schedule, revision=revision, problems=told)


def pin(held: Turn, own: HeldSchedule, sides: Sides, verdict: Verdict) -> None:
    """Write the activation, the ends, the beginning and the exclusions."""
    assert verdict.plan is not None
    [(ordinal,)] = held.rows(NEXT_ORDINAL, {"schedule_id": own.schedule_id})
    partition, identity = verdict.partition, {"schedule_id": own.schedule_id}
    row = {**identity, "activation_ordinal": ordinal, "revision": sides.new.revision, "plan": verdict.plan.model_dump()}
    insert_rows(held, activation, [{**row, "activated_at": held.at, "decision_id": held.decision_id}])
    for live in sides.segments:
        end = partition.ends.get(live.revision, held.at)
        end = end if live.end_at is None else min(end, live.end_at)
        held.write(END_SEGMENT, {**identity, "segment_ordinal": live.segment_ordinal, "end_at": end})
    insert_rows(held, segment, [{**identity, "segment_ordinal": ordinal, **new_segment(held, sides, partition)}])
    ordinals = {**{live.revision: live.segment_ordinal for live in sides.segments}, sides.new.revision: ordinal}
    exclusions = [
        {**identity, "segment_ordinal": ordinals[one.revision], "source_key": one.key, "revision": one.revision,
         "activation_ordinal": ordinal, "rings_at": one.at, "disposition": one.disposition, "owner_revision": one.owner,
         "same_as_revision": one.same_as.revision if one.same_as else None,
         "same_as_key": one.same_as.key if one.same_as else None}
        for one in partition.exclusions
    ]  # fmt: skip
    insert_rows(held, cutover_exclusion, exclusions)
    held.write(SET_ACTIVE, {**identity, "revision": sides.new.revision, "at": held.at})


def new_segment(held: Turn, sides: Sides, partition: Partition) -> dict[str, Any]:
    """The line of the new revision, from its first firing on."""
    trigger, rules, next_at = sides.new.trigger, sides.new.rules, None
    first_at = partition.first_at or held.at
    if trigger is not None and rules is not None and partition.first_at is not None:
        next_at = next_firing_at(trigger, sides.new.cycle, rules, first_at)
    return {
        "revision": sides.new.revision,
        "first_at": first_at,
        "end_at": None,
        "cursor_at": first_at,
        "next_nominal_at": next_at,
    }


LIVE = sql.SQL(
    """
    SELECT g.segment_ordinal, g.revision, r.digest, g.cursor_at, g.end_at,
           (SELECT array_agg(x.source_key) FROM cutover_exclusion x
            WHERE x.schedule_id = g.schedule_id AND x.segment_ordinal = g.segment_ordinal
              AND x.rings_at >= g.cursor_at) AS excluded
    FROM segment g
    JOIN schedule_revision r ON r.schedule_id = g.schedule_id AND r.revision = g.revision
    WHERE g.schedule_id = %(schedule_id)s AND (g.end_at IS NULL OR g.next_nominal_at IS NOT NULL)
    ORDER BY g.segment_ordinal
    """
)

RULES_GONE = sql.SQL(
    """
    SELECT r.zone FROM schedule_revision r
    LEFT JOIN zone_rules z ON z.digest = r.zone_rules_digest AND z.zone = r.zone
    WHERE r.schedule_id = %(schedule_id)s AND r.revision = ANY(%(revisions)s) AND r.zone IS NOT NULL
      AND NOT coalesce(z.digest = 'sha256:' || encode(sha256(z.tzif), 'hex'), false)
    """
)

REVISION_DIGEST = sql.SQL(
    "SELECT digest FROM schedule_revision WHERE schedule_id = %(schedule_id)s AND revision = %(revision)s"
)

LATEST_ACTIVATION = sql.SQL(
    """
    SELECT activated_at FROM activation WHERE schedule_id = %(schedule_id)s ORDER BY activation_ordinal DESC LIMIT 1
    """
)

NEXT_ORDINAL = sql.SQL("SELECT max(activation_ordinal) + 1 FROM activation WHERE schedule_id = %(schedule_id)s")

ASSIGNED = sql.SQL(
    """
    SELECT source_key, revision FROM occurrence
    WHERE schedule_id = %(schedule_id)s AND source_kind = 'calendar' AND source_key = ANY(%(keys)s)
    """
)

ASSIGNED_FROM = sql.SQL(
    """
    SELECT source_key, revision FROM occurrence
    WHERE schedule_id = %(schedule_id)s AND source_kind = 'calendar' AND civil >= %(civil)s
      AND rang_at >= (%(civil)s AT TIME ZONE 'UTC') - %(shift)s
    ORDER BY rang_at
    LIMIT %(assigned_max)s
    """
)

END_SEGMENT = sql.SQL(
    """
    UPDATE segment SET end_at = %(end_at)s,
           next_nominal_at = CASE WHEN next_nominal_at < %(end_at)s THEN next_nominal_at END
    WHERE schedule_id = %(schedule_id)s AND segment_ordinal = %(segment_ordinal)s
    """
)

SET_ACTIVE = sql.SQL(
    """
    UPDATE schedule SET active_revision = %(revision)s, last_sampled_at = greatest(last_sampled_at, %(at)s)
    WHERE schedule_id = %(schedule_id)s
    """
)
