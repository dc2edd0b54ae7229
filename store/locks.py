"""The locks, in the one order that every transaction keeps: capabilities, Schedules, principals, Pattern revisions, Runs.

Within a rank, rows are locked in the order of their key. Whoever waits for the same capability is judged in one round, so
their Schedules are waited for; nobody who holds a Schedule ever waits for a capability. Other callers' Schedules, which need
none, are only taken when they can be had without waiting, so a round for everybody cannot deadlock. Authority rows are locked
FOR SHARE: a revocation, which updates them, waits for the act or is seen by it, never neither (AUT-1). Row locks are NO KEY,
so that inserting beside a foreign key never waits.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from psycopg import sql

from law.authority import PatternStanding, PrincipalStanding
from law.capacity import CapabilityAdmission, CapabilityState, Sharing
from law.finish import WaitOwner
from law.identity import EnqueueSeq, RunId, ScheduleName, TriggerOccurrenceId
from law.origin import AboveCeiling, Origin
from law.reasons import Disposition, RunState
from law.service_class import ServiceClass
from store.turn import Lock

CAPABILITY, SCHEDULE, OTHER_SCHEDULES, POLICY, PRINCIPAL, PATTERN, RUN = 5, 10, 11, 15, 20, 30, 40

OTHERS_MAX = 500
"""A round takes at most this many other Schedules with it."""


@dataclass(frozen=True, slots=True)
class HeldCapability:
    """A capability of which nobody else grants anything until this transaction ends."""

    capability: str
    state: CapabilityState
    admission: CapabilityAdmission
    sharing: Sharing
    units: int
    protected_units: int
    foreground_units: int


@dataclass(frozen=True, slots=True)
class HeldPolicy:
    """What an operator lets an origin ask for; it cannot change until this transaction ends."""

    origin: Origin
    principal: str
    ceiling: ServiceClass | None
    above: AboveCeiling
    generation: int


@dataclass(frozen=True, slots=True)
class HeldSchedule:
    """A Schedule whose row this transaction holds."""

    schedule_id: int
    authority: str
    name: str
    active_revision: int
    last_sampled_at: datetime | None
    halted_reason: str | None
    paused_at: datetime | None

    @property
    def schedule(self) -> ScheduleName:
        return ScheduleName(f"{self.authority}/{self.name}")


@dataclass(frozen=True, slots=True)
class HeldOwner:
    """A principal whose standing cannot change until this transaction ends."""

    name: str
    standing: PrincipalStanding
    generation: int


@dataclass(frozen=True, slots=True)
class HeldPattern:
    """A Pattern revision whose standing cannot change until this transaction ends."""

    pattern: str
    pattern_revision: str
    standing: PatternStanding
    digest: str
    merges: bool
    yields: dict[str, Any] | None
    returns: bool
    recovers: bool


@dataclass(frozen=True, slots=True)
class HeldRun:
    """A Run whose row this transaction holds."""

    run_id: RunId
    trigger_occurrence_id: TriggerOccurrenceId
    schedule_id: int
    schedule: ScheduleName
    state: RunState
    disposition: Disposition
    enqueue_seq: EnqueueSeq
    lost_hops: int
    finish_by: datetime | None
    finish_proof: str | None
    pattern: str
    pattern_revision: str
    pinned_digest: str
    capability: str | None
    service_class: ServiceClass
    wait_owner: WaitOwner | None
    cancel_requested_at: datetime | None

    @property
    def cancelling(self) -> bool:
        """Whether somebody asked that it be cancelled."""
        return self.cancel_requested_at is not None


def named(schedule: ScheduleName) -> dict[str, str]:
    """`authority/name` as the two arguments that statements use."""
    authority, _, name = schedule.partition("/")
    return {"authority": authority, "name": name}


def own_schedule(schedule: ScheduleName) -> Lock:
    """The caller's Schedule; none where there is no such name."""
    return Lock(SCHEDULE, OWN_SCHEDULE, named(schedule), HeldSchedule)


def capabilities_of(schedule: ScheduleName) -> Lock:
    """Every capability that a revision of the caller's Schedule names, where it is registered."""
    return Lock(CAPABILITY, CAPABILITIES_OF, named(schedule), HeldCapability)


def schedules_of_capabilities(schedule: ScheduleName) -> Lock:
    """The caller's Schedule, and every other of which something waits for a capability of the caller's."""
    return Lock(SCHEDULE, SCHEDULES_OF_CAPABILITIES, named(schedule), HeldSchedule)


def resumable_runs(schedule: ScheduleName) -> Lock:
    """Runs that gave their units back and wait for the next slice: the caller's, and those of its capabilities."""
    return Lock(RUN, RESUMABLE_RUNS, named(schedule), HeldRun)


def policies_of(origin: Origin) -> Lock:
    """What operators let an origin ask for."""
    return Lock(POLICY, POLICIES_OF, {"origin": origin}, HeldPolicy)


def owner_named(name: str) -> Lock:
    """One principal by name."""
    return Lock(PRINCIPAL, OWNER_NAMED, {"name": name}, HeldOwner)


def other_schedules_due() -> Lock:
    """Every other Schedule with a firing due that can be had without waiting."""
    return Lock(OTHER_SCHEDULES, OTHER_SCHEDULES_DUE, {"others_max": OTHERS_MAX}, HeldSchedule)


def other_schedules_waiting() -> Lock:
    """Every other Schedule with an Occurrence that became eligible and was never judged."""
    return Lock(OTHER_SCHEDULES, OTHER_SCHEDULES_WAITING, {"others_max": OTHERS_MAX}, HeldSchedule)


def owners_of_pending() -> Lock:
    """The owners behind everything that waits."""
    return Lock(PRINCIPAL, OWNERS_OF_PENDING, {}, HeldOwner)


def patterns_of_pending() -> Lock:
    """The Pattern revisions behind everything that waits."""
    return Lock(PATTERN, PATTERNS_OF_PENDING, {}, HeldPattern)


def pattern_of(pattern: str, pattern_revision: str) -> Lock:
    """One Pattern revision by name; none where it is not known."""
    return Lock(PATTERN, PATTERN_OF, {"pattern": pattern, "pattern_revision": pattern_revision}, HeldPattern)


def owner_of_run(run_id: RunId) -> Lock:
    """The owner behind a Run."""
    return Lock(PRINCIPAL, OWNER_OF_RUN, {"run_id": run_id}, HeldOwner)


def pattern_of_run(run_id: RunId) -> Lock:
    """The Pattern revision behind a Run."""
    return Lock(PATTERN, PATTERN_OF_RUN, {"run_id": run_id}, HeldPattern)


def own_run(run_id: RunId) -> Lock:
    """The Run itself; none where there is no such Run."""
    return Lock(RUN, OWN_RUN, {"run_id": run_id}, HeldRun)


CAPABILITIES_OF = sql.SQL(
    """
    SELECT capability, state, admission, sharing, units, protected_units, foreground_units FROM capability
    WHERE capability IN (
        SELECT r.capability FROM schedule_revision r JOIN schedule s ON s.schedule_id = r.schedule_id
        WHERE s.authority = %(authority)s AND s.name = %(name)s AND r.capability IS NOT NULL
    )
    ORDER BY capability
    FOR NO KEY UPDATE
    """
)

SCHEDULES_OF_CAPABILITIES = sql.SQL(
    """
    WITH own AS (SELECT schedule_id FROM schedule WHERE authority = %(authority)s AND name = %(name)s),
    needed AS (
        SELECT DISTINCT r.capability FROM schedule_revision r JOIN own ON own.schedule_id = r.schedule_id
        WHERE r.capability IS NOT NULL
    )
    SELECT schedule_id, authority, name, active_revision, last_sampled_at, halted_reason, paused_at
    FROM schedule
    WHERE schedule_id IN (
        SELECT schedule_id FROM own
        UNION
        SELECT o.schedule_id FROM needed JOIN occurrence o ON o.capability = needed.capability
        WHERE o.state = 'pending' AND o.capability IS NOT NULL
        UNION
        SELECT n.schedule_id FROM needed JOIN run n ON n.capability = needed.capability
        WHERE n.wait_owner = 'hardware'
    )
    ORDER BY schedule_id
    FOR NO KEY UPDATE
    """
)

RESUMABLE_RUNS = sql.SQL(
    """
    WITH own AS (SELECT schedule_id FROM schedule WHERE authority = %(authority)s AND name = %(name)s),
    needed AS (
        SELECT DISTINCT r.capability FROM schedule_revision r JOIN own ON own.schedule_id = r.schedule_id
        WHERE r.capability IS NOT NULL
    )
    SELECT r.run_id, r.trigger_occurrence_id, r.schedule_id, s.authority || '/' || s.name AS schedule, r.state,
           r.disposition, r.enqueue_seq, r.lost_hops, r.finish_by, r.finish_proof, o.pattern, o.pattern_revision,
           o.pattern_digest AS pinned_digest, r.capability, o.service_class, r.wait_owner, r.cancel_requested_at
    FROM run r
    JOIN occurrence o ON o.trigger_occurrence_id = r.trigger_occurrence_id
    JOIN schedule s ON s.schedule_id = r.schedule_id
    WHERE r.wait_owner = 'hardware'
      AND (r.schedule_id IN (SELECT schedule_id FROM own) OR r.capability IN (SELECT capability FROM needed))
    ORDER BY r.run_id
    FOR NO KEY UPDATE OF r
    """
)

POLICIES_OF = sql.SQL(
    """
    SELECT origin, principal, ceiling, above, generation FROM origin_policy WHERE origin = %(origin)s
    ORDER BY principal FOR SHARE
    """
)

OWNER_NAMED = sql.SQL("SELECT name, standing, generation FROM principal WHERE name = %(name)s FOR SHARE")

OWN_SCHEDULE = sql.SQL(
    """
    SELECT schedule_id, authority, name, active_revision, last_sampled_at, halted_reason, paused_at
    FROM schedule
    WHERE authority = %(authority)s AND name = %(name)s
    FOR NO KEY UPDATE
    """
)

# The clock in these two is a hint of whom to take along, in a scalar subquery so that the index is used; what is due or
# eligible is judged after the locks, at the sample.
OTHER_SCHEDULES_DUE = sql.SQL(
    """
    SELECT schedule_id, authority, name, active_revision, last_sampled_at, halted_reason, paused_at
    FROM schedule
    WHERE schedule_id IN (
        SELECT schedule_id FROM segment
        WHERE next_nominal_at IS NOT NULL AND next_nominal_at <= (SELECT trusted_now())
        ORDER BY next_nominal_at LIMIT %(others_max)s
    ) AND paused_at IS NULL
    ORDER BY schedule_id
    FOR NO KEY UPDATE SKIP LOCKED
    """
)

OTHER_SCHEDULES_WAITING = sql.SQL(
    """
    SELECT schedule_id, authority, name, active_revision, last_sampled_at, halted_reason, paused_at
    FROM schedule
    WHERE schedule_id IN (
        SELECT schedule_id FROM occurrence
        WHERE state = 'pending' AND eligible_at <= (SELECT trusted_now())
          AND (waiting_reason IS NULL OR waiting_reason = 'not_yet_eligible')
        ORDER BY eligible_at LIMIT %(others_max)s
    )
    ORDER BY schedule_id
    FOR NO KEY UPDATE SKIP LOCKED
    """
)

OWNERS_OF_PENDING = sql.SQL(
    """
    SELECT name, standing, generation FROM principal
    WHERE name IN (
        SELECT owner FROM occurrence WHERE state = 'pending'
        UNION
        SELECT o.owner FROM run n JOIN occurrence o ON o.trigger_occurrence_id = n.trigger_occurrence_id
        WHERE n.wait_owner = 'hardware'
    )
    ORDER BY name
    FOR SHARE
    """
)

PATTERNS_OF_PENDING = sql.SQL(
    """
    SELECT pattern, pattern_revision, standing, digest, merges, yields, returns, recovers FROM pattern_revision
    WHERE (pattern, pattern_revision) IN (
        SELECT pattern, pattern_revision FROM occurrence WHERE state = 'pending'
        UNION
        SELECT o.pattern, o.pattern_revision FROM run n
        JOIN occurrence o ON o.trigger_occurrence_id = n.trigger_occurrence_id
        WHERE n.wait_owner = 'hardware'
    )
    ORDER BY pattern, pattern_revision
    FOR SHARE
    """
)

PATTERN_OF = sql.SQL(
    """
    SELECT pattern, pattern_revision, standing, digest, merges, yields, returns, recovers FROM pattern_revision
    WHERE pattern = %(pattern)s AND pattern_revision = %(pattern_revision)s
    FOR SHARE
    """
)

OWNER_OF_RUN = sql.SQL(
    """
    SELECT p.name, p.standing, p.generation FROM principal p
    JOIN occurrence o ON o.owner = p.name
    JOIN run r ON r.trigger_occurrence_id = o.trigger_occurrence_id
    WHERE r.run_id = %(run_id)s
    FOR SHARE OF p
    """
)

PATTERN_OF_RUN = sql.SQL(
    """
    SELECT p.pattern, p.pattern_revision, p.standing, p.digest, p.merges, p.yields, p.returns, p.recovers FROM pattern_revision p
    JOIN occurrence o ON o.pattern = p.pattern AND o.pattern_revision = p.pattern_revision
    JOIN run r ON r.trigger_occurrence_id = o.trigger_occurrence_id
    WHERE r.run_id = %(run_id)s
    FOR SHARE OF p
    """
)

OWN_RUN = sql.SQL(
    """
    SELECT r.run_id, r.trigger_occurrence_id, r.schedule_id, s.authority || '/' || s.name AS schedule, r.state,
           r.disposition, r.enqueue_seq, r.lost_hops, r.finish_by, r.finish_proof, o.pattern, o.pattern_revision,
           o.pattern_digest AS pinned_digest, r.capability, o.service_class, r.wait_owner, r.cancel_requested_at
    FROM run r
    JOIN occurrence o ON o.trigger_occurrence_id = r.trigger_occurrence_id
    JOIN schedule s ON s.schedule_id = r.schedule_id
    WHERE r.run_id = %(run_id)s
    FOR NO KEY UPDATE OF r
    """
)
