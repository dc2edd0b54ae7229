"""What a simulation is made of: Schedules with what is said of their work, their firings, and what became of each.

Nothing here is invented. A duration and the events of an external source are said by whoever asks; firings, bounds and keys
are those of the calendar law (CAL-1..7), one at a time and only as far as they are looked at. Bounded jitter, which is drawn
in life, is drawn here from the identity of the firing, so that the same question has the same answer (SEL-6).
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import count, takewhile
from typing import Any

from law.authority import Credentials
from law.bounds import Bounds, calendar_bounds, event_bounds
from law.candidates import Need
from law.catch_up import SWALLOWED
from law.errors import BadInput, CycleCollision
from law.estimates import CONFIDENCE_MIN, Estimate, known
from law.firings import Firing, firings
from law.identity import ScheduleName, SourceKey, digest_of, event_key
from law.merging import Mergeable
from law.pattern import YieldContract
from law.reasons import Disposition, OccurrenceState, Reason
from law.schedule import ScheduleDocument
from law.service_class import ServiceClass
from law.triggers import CalendarTrigger, ExternalTrigger
from law.zone_rules import ZoneRules

DRAW_DIGITS = 13
"""So many hexadecimal digits of a digest are a fraction that a float holds exactly, and that is less than one."""


@dataclass(frozen=True, slots=True)
class Event:
    """One event of an external source, as whoever asks says it."""

    at: datetime
    event_id: str


@dataclass(frozen=True, slots=True)
class Evenly:
    """Events at a steady rate without end, the first at `since`: `times` of them in every `per`."""

    since: datetime
    times: int
    per: timedelta

    def __iter__(self) -> Iterator[Event]:
        """The events, oldest first; each iteration begins anew."""
        for ordinal in count():
            yield Event(self.since + self.per * ordinal / self.times, f"simulated-{ordinal + 1}")


@dataclass(frozen=True, slots=True)
class Simulated:
    """One Schedule and what is said of its work. `rules`: of a calendar; `events`: of an external source, in order.

    `takes` is how long its work takes in all; `estimate` what the office believes, None where it knows nothing (SEL-4).
    `contract`: how its Pattern promises to yield; `is_proven`: whether it has shown that it does (YLD-1).
    """

    document: ScheduleDocument
    rules: ZoneRules | None
    takes: timedelta
    estimate: Estimate | None = None
    contract: YieldContract | None = None
    is_proven: bool = False
    events: Iterable[Event] = ()
    pattern_digest: str = ""

    @property
    def name(self) -> ScheduleName:
        """The stable name."""
        return self.document.schedule

    @property
    def need(self) -> Need:
        """What its work asks for. Nobody makes a cold capability ready here, so nothing asks for that."""
        pinned = self.document.capacity
        capability = pinned.capability if pinned is not None else None
        units = pinned.units if pinned is not None and capability is not None else 0
        return Need(capability, units, self.estimate, self.is_proven)

    @property
    def credentials(self) -> Credentials:
        """Authority as it stands while nobody withdraws anything."""
        work, ceiling = self.document.work, self.document.budget.runs_per_day
        return Credentials(
            work.owner, "active", work.pattern, "active", self.pattern_digest, self.pattern_digest, ceiling
        )

    @property
    def mergeable(self) -> Mergeable | None:
        """What is merged where the policy is `coalesce`. Firings of one revision differ in nothing."""
        document = self.document
        if document.overlap.policy != "coalesce":
            return None
        work = document.work
        revision = work.pattern, work.pattern_revision, self.pattern_digest
        return Mergeable(*revision, work.owner, 0, "", "", work.label or "", work.input)


@dataclass(frozen=True, slots=True)
class Arrival:
    """One firing as it rings. `reason` where it is final at birth, and then it has no bounds."""

    key: SourceKey
    rang_at: datetime
    bounds: Bounds | None
    reason: Reason | None = None


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one firing. `ordinal` counts firings in the order in which they rang.

    `decided_at` is None for what still waits when the simulation ends; `reason` then says for what. `waited_for`: everything
    it waited for, in that order. `run_to`: when its work ended, or would; None where its slices reach past the end.
    """

    ordinal: int
    schedule: ScheduleName
    key: SourceKey
    service_class: ServiceClass
    rang_at: datetime
    eligible_at: datetime | None
    state: OccurrenceState
    reason: Reason
    decided_at: datetime | None
    waited_for: tuple[Reason, ...] = ()
    waited: timedelta = timedelta(0)
    """From its eligibility to its decision, or to the end of the simulation."""
    run_from: datetime | None = None
    run_to: datetime | None = None
    units: int = 0
    slices: int = 0
    disposition: Disposition = Disposition.UNTIMED
    coalesced_into: SourceKey | None = None
    evidence: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """The arithmetic of a no."""


def arrivals(one: Simulated, since: datetime, until: datetime) -> Iterator[Arrival]:
    """The firings of one Schedule with `since <= rang_at < until`, oldest first, each with its bounds. Raises CycleCollision
    where two firings would be one."""
    trigger = one.document.trigger
    if isinstance(trigger, CalendarTrigger):
        assert one.rules is not None, "whoever simulates a calendar brings the rules of its zone"
        return calendar_arrivals(one, trigger, one.rules, since, until)
    return event_arrivals(one, trigger, since, until)


def calendar_arrivals(
    one: Simulated, trigger: CalendarTrigger, rules: ZoneRules, since: datetime, until: datetime
) -> Iterator[Arrival]:
    """The firings of a calendar."""
    document, name, before = one.document, one.name, None
    is_drawn = document.jitter.mode == "bounded"
    for firing in firings(trigger, document.cycle, rules, since, until):
        refuse_collision(name, before, firing)
        before = firing
        if firing.nominal_at is None:
            yield Arrival(firing.key, firing.at, None, SWALLOWED[firing.kind])
            continue
        drawn = draw(name, firing.key) if is_drawn else None
        bounds = calendar_bounds(document.window, document.jitter, firing, rules, name, drawn)
        yield Arrival(firing.key, firing.at, bounds)


def refuse_collision(schedule: ScheduleName, before: Firing | None, firing: Firing) -> None:
    """Raise CycleCollision where two firings in a row have one key (OCC-1)."""
    if before is not None and before.key == firing.key:
        first, second = before.civil.isoformat(), firing.civil.isoformat()
        raise CycleCollision(schedule=schedule, key=firing.key, first=first, second=second)


def event_arrivals(one: Simulated, trigger: ExternalTrigger, since: datetime, until: datetime) -> Iterator[Arrival]:
    """The events that were said, as if each were offered at its instant."""
    document, name = one.document, one.name
    for event in takewhile(lambda event: event.at < until, one.events):
        if event.at >= since:
            key = event_key(trigger.source, event.event_id)
            drawn = draw(name, key) if document.jitter.mode == "bounded" else None
            yield Arrival(key, event.at, event_bounds(document.window, document.jitter, event.at, name, key, drawn))


def draw(schedule: ScheduleName, key: SourceKey) -> float:
    """A fraction in [0, 1) that is the same whenever it is drawn for the same firing."""
    digest = digest_of(["draw", schedule, key]).removeprefix("sha256:")
    return int(digest[:DRAW_DIGITS], 16) / 16**DRAW_DIGITS


def simulated(
    document: ScheduleDocument,
    rules: ZoneRules | None,
    said: timedelta | None,
    measured: timedelta | None = None,
    contract: YieldContract | None = None,
    is_proven: bool = False,
    events: Iterable[Event] = (),
    pattern_digest: str = "",
) -> Simulated:
    """A Schedule with the duration that is known of its work: what was said, else what its file claims, else what was
    measured. Raises BadInput naming the Schedule whose duration nobody knows: a simulation cannot invent it."""
    claim = claim_of(document)
    takes = said or (claim.duration if claim is not None else None) or measured
    if takes is None:
        reason = f"nobody knows how long {document.schedule} takes: say it, as in {document.schedule}=4m"
        raise BadInput(field="duration", reason=reason)
    is_proven = is_proven and contract is not None and document.class_.service_class == "spare_capacity"
    estimate = believed(document, takes, contract if is_proven else None)
    return Simulated(document, rules, takes, estimate, contract, is_proven, events, pattern_digest)


def claim_of(document: ScheduleDocument) -> Estimate | None:
    """What the file itself says of its duration."""
    pinned = document.capacity.estimate if document.capacity is not None else None
    return pinned.claim if pinned is not None else None


def believed(document: ScheduleDocument, takes: timedelta, proven: YieldContract | None) -> Estimate | None:
    """What the office takes its work to last: a slice where it is proven to yield, else what the file claims where that is
    sure enough, else what will have been measured."""
    if proven is not None:
        return Estimate(proven.max_slice, "declared", 1.0)
    pinned, claim = document.capacity, claim_of(document)
    said_min = pinned.min_confidence if pinned is not None else None
    if claim is not None:
        return known(claim, CONFIDENCE_MIN if said_min is None else said_min)
    return Estimate(takes, "measured", 1.0)
