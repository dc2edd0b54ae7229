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

from law.authority import PatternStanding, PrincipalStanding, Sigil, SigilStanding
from law.capacity import CapabilityAdmission, CapabilityState, Sharing
from law.finish import WaitOwner
from law.identity import EnqueueSeq, RunId, ScheduleName, TriggerOccurrenceId
from law.origin import AboveCeiling, Origin
from law.reasons import Disposition, RunState
from law.service_class import ServiceClass
from store import lock_statements as statements
from store.turn import Lock

CAPABILITY, SCHEDULE, OTHER_SCHEDULES, POLICY, BUDGET, PRINCIPAL, SIGIL, PATTERN, RUN = (
    5,
    10,
    11,
    15,
    16,
    20,
    25,
    30,
    40,
)

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
class HeldSigil:
    """A Sigil that cannot be changed or revoked until this transaction ends."""

    name: str
    owner: str
    standing: SigilStanding
    scopes: list[str]
    expires_at: datetime | None


def as_sigil(one: HeldSigil) -> Sigil:
    """The row as the law knows it."""
    return Sigil(one.name, one.owner, one.standing, frozenset(one.scopes), one.expires_at)


@dataclass(frozen=True, slots=True)
class HeldBudget:
    """A ceiling of which nobody else reserves anything until this transaction ends. `period_seconds` 0: for ever."""

    holder_kind: str
    holder: str
    unit: str
    period_seconds: int
    ceiling: float


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
    owner: str
    sigil: str | None
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
    return Lock(SCHEDULE, statements.OWN_SCHEDULE, named(schedule), HeldSchedule)


def capabilities_of(schedule: ScheduleName) -> Lock:
    """Every capability that a revision of the caller's Schedule names, where it is registered."""
    return Lock(CAPABILITY, statements.CAPABILITIES_OF, named(schedule), HeldCapability)


def schedules_of_capabilities(schedule: ScheduleName) -> Lock:
    """The caller's Schedule, and every other of which something waits for a capability of the caller's."""
    return Lock(SCHEDULE, statements.SCHEDULES_OF_CAPABILITIES, named(schedule), HeldSchedule)


def resumable_runs(schedule: ScheduleName) -> Lock:
    """Runs that gave their units back and wait for the next slice: the caller's, and those of its capabilities."""
    return Lock(RUN, statements.RESUMABLE_RUNS, named(schedule), HeldRun)


def policies_of(origin: Origin) -> Lock:
    """What operators let an origin ask for."""
    return Lock(POLICY, statements.POLICIES_OF, {"origin": origin}, HeldPolicy)


def owner_named(name: str) -> Lock:
    """One principal by name."""
    return Lock(PRINCIPAL, statements.OWNER_NAMED, {"name": name}, HeldOwner)


def other_schedules_due() -> Lock:
    """Every other Schedule with a firing due that can be had without waiting."""
    return Lock(OTHER_SCHEDULES, statements.OTHER_SCHEDULES_DUE, {"others_max": OTHERS_MAX}, HeldSchedule)


def other_schedules_waiting() -> Lock:
    """Every other Schedule with an Occurrence that became eligible and was never judged."""
    return Lock(OTHER_SCHEDULES, statements.OTHER_SCHEDULES_WAITING, {"others_max": OTHERS_MAX}, HeldSchedule)


def owners_of_pending() -> Lock:
    """The owners behind everything that waits."""
    return Lock(PRINCIPAL, statements.OWNERS_OF_PENDING, {}, HeldOwner)


def sigils_of_pending() -> Lock:
    """The Sigils behind everything that waits."""
    return Lock(SIGIL, statements.SIGILS_OF_PENDING, {}, HeldSigil)


def budgets_of_pending() -> Lock:
    """The ceilings that everything that waits would spend of."""
    return Lock(BUDGET, statements.BUDGETS_OF_PENDING, {}, HeldBudget)


def budgets_of_run(run_id: RunId) -> Lock:
    """The ceilings of a Run's owner and Schedule."""
    return Lock(BUDGET, statements.BUDGETS_OF_RUN, {"run_id": run_id}, HeldBudget)


def sigil_of_run(run_id: RunId) -> Lock:
    """The Sigil behind a Run, where it names one."""
    return Lock(SIGIL, statements.SIGIL_OF_RUN, {"run_id": run_id}, HeldSigil)


def patterns_of_pending() -> Lock:
    """The Pattern revisions behind everything that waits."""
    return Lock(PATTERN, statements.PATTERNS_OF_PENDING, {}, HeldPattern)


def pattern_of(pattern: str, pattern_revision: str) -> Lock:
    """One Pattern revision by name; none where it is not known."""
    return Lock(PATTERN, statements.PATTERN_OF, {"pattern": pattern, "pattern_revision": pattern_revision}, HeldPattern)


def owner_of_run(run_id: RunId) -> Lock:
    """The owner behind a Run."""
    return Lock(PRINCIPAL, statements.OWNER_OF_RUN, {"run_id": run_id}, HeldOwner)


def pattern_of_run(run_id: RunId) -> Lock:
    """The Pattern revision behind a Run."""
    return Lock(PATTERN, statements.PATTERN_OF_RUN, {"run_id": run_id}, HeldPattern)


def own_run(run_id: RunId) -> Lock:
    """The Run itself; none where there is no such Run."""
    return Lock(RUN, statements.OWN_RUN, {"run_id": run_id}, HeldRun)
