"""Who waits in a simulation, for whom they wait, and which of them an event can concern.

A pool is a capability with the Schedules that need it, or one Schedule that needs none: nothing that is decided in one pool
changes an answer in another (DESIGN §6). A line is what waits of one Schedule, in the order in which it became eligible.
"""

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import islice
from typing import Any

from law.bounds import Bounds
from law.candidates import Candidate
from law.capacity import Hold
from law.finish import FinishTerms, disposition_at
from law.identity import SourceKey, run_id, trigger_occurrence_id
from law.overlap import Live
from law.reasons import Disposition, OccurrenceState, Reason
from law.selection import selection_order
from law.service_class import ServiceClass
from law.simulated import Arrival, Outcome, Simulated
from law.tally import Meter
from law.yielding import QuietWindow

A_DAY = timedelta(days=1)
AT_ONCE = timedelta(0)
NOTHING: Mapping[str, Any] = {}


@dataclass(slots=True, eq=False)
class Waiting:
    """One firing on its way: a candidate while it waits, a Run while it runs. `left`: what is left of its work."""

    ordinal: int
    line: "Line"
    arrival: Arrival
    bounds: Bounds
    resumes: bool = False
    """Whether it is a Run between two slices."""
    reasons: tuple[Reason, ...] = ()
    looks_at: datetime | None = None
    is_answered: bool = False
    run_from: datetime | None = None
    run_to: datetime | None = None
    left: timedelta = timedelta(0)
    units: int = 0
    slices: int = 0
    _candidate: Candidate | None = None

    @property
    def key(self) -> SourceKey:
        """What its firing is known by."""
        return self.arrival.key

    @property
    def candidate(self) -> Candidate:
        """It, as the law judges it; made when the law is asked."""
        made = self._candidate or self.line.candidate(self.arrival, self.bounds)
        if self.resumes and made.resumes is None:
            made = replace(made, resumes=run_id(made.trigger_occurrence_id, 0))
        self._candidate = made
        return made

    @property
    def tie(self) -> str:
        """What decides between two that are equal in everything else: identity."""
        return str(self.candidate.trigger_occurrence_id)

    def asking(self, at: datetime) -> Candidate:
        """The candidate as it stands at this sample: only a ceiling changes with time."""
        line = self.line
        if line.credentials.runs_per_day_max is None or self.resumes:
            return self.candidate
        spent = replace(line.credentials, runs_in_last_day=line.runs_in_last_day(at))
        return replace(self.candidate, credentials=spent)

    def wait_for(self, reason: Reason) -> None:
        """Remember what it waits for, before it was admitted."""
        if self.run_from is None and self.reasons[-1:] != (reason,):
            self.reasons = (*self.reasons, reason)

    def leave(self) -> None:
        """It waits no more."""
        self.is_answered = True
        self.line.waiting.pop(self.ordinal, None)
        self.line.parked.pop(self.ordinal, None)

    def outcome(
        self,
        state: OccurrenceState,
        reason: Reason,
        at: datetime,
        coalesced_into: SourceKey | None = None,
        evidence: Mapping[str, Any] = NOTHING,
    ) -> Outcome:
        """What became of one that was not admitted, as of `at`; whoever was decided says when."""
        bounds, line = self.bounds, self.line
        decided_at = None if state is OccurrenceState.PENDING else at
        return Outcome(
            self.ordinal, line.name, self.key, line.service_class, self.arrival.rang_at,
            bounds.eligible_at, state, reason, decided_at, self.reasons, self.waited(at),
            coalesced_into=coalesced_into, evidence=evidence,
        )  # fmt: skip

    def ran(self, run_to: datetime | None) -> Outcome:
        """What became of it once it was admitted; `run_to` None where nobody knows when its work ends."""
        assert self.run_from is not None, "it was admitted"
        bounds, line = self.bounds, self.line
        return Outcome(
            self.ordinal, line.name, self.key, line.service_class, self.arrival.rang_at,
            bounds.eligible_at, OccurrenceState.ADMITTED, Reason.ADMITTED, self.run_from, self.reasons,
            self.waited(self.run_from), self.run_from, run_to, self.units, self.slices, kept(bounds.finish_by, run_to),
        )  # fmt: skip

    def waited(self, at: datetime) -> timedelta:
        """How long it waited since it was eligible."""
        eligible_at = self.bounds.eligible_at
        return at - eligible_at if at > eligible_at else AT_ONCE


def kept(finish_by: datetime | None, run_to: datetime | None) -> Disposition:
    """What becomes of a finish bound when work ends at `run_to`."""
    if finish_by is None:
        return Disposition.UNTIMED
    if run_to is None:
        return Disposition.OPEN
    at_end = disposition_at(FinishTerms(finish_by=finish_by), Disposition.OPEN, run_to)
    return Disposition.TIMELY if at_end is Disposition.OPEN else at_end


class Line:
    """One Schedule under way. `place` is its place among all, by name; `coming` its bells that have not rung."""

    def __init__(self, place: int, one: Simulated, pool: "Pool") -> None:
        document = one.document
        self.place, self.one, self.name, self.pool = place, one, one.name, pool
        self.terms, self.mergeable = document.overlap.terms, one.mergeable
        self.need, self.credentials = one.need, one.credentials
        self.service_class: ServiceClass = document.class_.service_class
        self.priority = document.class_.priority
        self.aging_seconds = document.class_.aging.total_seconds() if document.class_.aging is not None else None
        is_spare, has_capability = self.service_class == "spare_capacity", self.need.capability is not None
        self.needs_quiet = is_spare and not (self.need.is_proven and has_capability)
        yields = one.contract is not None and one.contract.is_whole and (is_spare or has_capability)
        self.slice_max = one.contract.max_slice if one.contract is not None and yields else one.takes
        self.is_long = document.window is None and self.terms.policy != "coalesce"
        has_ceiling = self.terms.units_max is not None or self.credentials.runs_per_day_max is not None
        self.is_plain = not has_ceiling and not self.needs_quiet
        self.is_timeless = (
            self.credentials.runs_per_day_max is None and not self.needs_quiet and self.terms.policy != "coalesce"
        )
        self.coming: Iterator[Arrival] = iter(())
        self.live = Live()
        self.to_come: dict[int, Waiting] = {}
        self.waiting: dict[int, Waiting] = {}
        self.parked: dict[int, Waiting] = {}
        self.running: dict[int, Waiting] = {}
        self.is_left_out = False
        self._admitted_at: deque[datetime] = deque()

    def candidate(self, arrival: Arrival, bounds: Bounds) -> Candidate:
        """One of its firings as the law judges it."""
        return Candidate(
            trigger_occurrence_id=trigger_occurrence_id(self.name, arrival.key),
            schedule=self.name,
            service_class=self.service_class,
            bounds=bounds,
            overlap=self.terms,
            credentials=self.credentials,
            priority=self.priority,
            aging_seconds=self.aging_seconds,
            need=self.need,
            rang_at=arrival.rang_at,
            mergeable=self.mergeable,
        )

    def swallowed(self, arrival: Arrival, reason: Reason, ordinal: int) -> Outcome:
        """What became of a firing whose civil time never came: it is final where it would have rung (CAL-3)."""
        state = OccurrenceState.FAILED if reason is Reason.GAP_FAILED else OccurrenceState.SKIPPED
        rang_at = arrival.rang_at
        return Outcome(ordinal, self.name, arrival.key, self.service_class, rang_at, None, state, reason, rang_at)

    def queue(self, one: Waiting) -> None:
        """Put it into the line, at its end unless it came at the same instant as the last one."""
        last = next(reversed(self.waiting.values()), None)
        self.waiting[one.ordinal] = one
        if last is None or self.since(last) < self.since(one):
            return
        if self.order(one) < self.order(last):
            self.waiting = dict(sorted(self.waiting.items(), key=lambda item: self.order(item[1])))

    def order(self, one: Waiting) -> tuple[datetime, str]:
        """The order of the line, as selection has it: of those that ask for the same, the older first."""
        return self.since(one), one.tie

    def since(self, one: Waiting) -> datetime:
        """Since when it stands in the line."""
        return one.arrival.rang_at if self.terms.policy == "serialize" else one.bounds.eligible_at

    def admitted(self, at: datetime) -> None:
        """One more Run is live, and counts against a ceiling."""
        self.live += self.need.units
        if self.credentials.runs_per_day_max is not None:
            self._admitted_at.append(at)

    def settled(self) -> None:
        """One Run less is live."""
        self.live = Live(self.live.count - 1, self.live.units - self.need.units)

    def runs_in_last_day(self, at: datetime) -> int:
        """How many it was admitted in the 24 hours before `at`."""
        while self._admitted_at and self._admitted_at[0] <= at - A_DAY:
            self._admitted_at.popleft()
        return len(self._admitted_at)

    @property
    def places(self) -> int:
        """How many Runs more its overlap policy lets in."""
        return self.terms.parallel_max - self.live.count

    def is_refused(self, at: datetime) -> bool:
        """Whether whoever of it waits now is told no for good."""
        ceiling = self.credentials.runs_per_day_max
        is_forbidden = self.terms.policy == "forbid" and self.places <= 0
        return is_forbidden or (ceiling is not None and self.runs_in_last_day(at) >= ceiling)

    def is_quiet_for(self, at: datetime, open_now: Sequence[QuietWindow]) -> bool:
        """Whether it may begin as far as quiet windows go."""
        return not self.needs_quiet or any(window.covers(self.need.capability, at) for window in open_now)

    def heads(self, free: int | None) -> list[Waiting]:
        """Of a line without windows, as many as there are places and units for: no more can be admitted at once. At least
        one, so that somebody knows what it waits for."""
        room = self.places if free is None else min(self.places, free // max(1, self.need.units))
        found = list(islice(self.waiting.values(), max(1, room)))
        is_known = room <= 0 and found[:1] and found[0].reasons[-1:] == (Reason.OVERLAP,) and self.places <= 0
        self.is_left_out = len(self.waiting) > len(found)
        return [] if is_known else found


class Pool:
    """A capability and who holds and needs it; without a meter, one Schedule that needs none."""

    def __init__(self, meter: Meter | None) -> None:
        self.meter, self.capability = meter, meter.capability if meter is not None else None
        self.fresh: list[Waiting] = []
        self._held: dict[int, Hold] = {}
        self._held_units = 0
        self._waited_in: dict[Line, None] = {}

    def refresh(self, *fresh: Waiting) -> None:
        """These have something new to say, and wait from now on if they did not before."""
        for one in fresh:
            self.fresh.append(one)
            self._waited_in[one.line] = None

    def to_judge(self, at: datetime, open_now: Sequence[QuietWindow]) -> list[Waiting]:
        """Whoever has something new to say, and whoever may get another answer, where anything is free at all."""
        fresh, self.fresh = self.fresh, []
        free = self.free
        if free is not None and free <= 0:
            return fresh
        self._waited_in = {line: None for line in self._waited_in if line.waiting or line.parked}
        heads = list[Waiting]()
        for line in self._waited_in:
            fresh += line.parked.values()
            if not line.is_long:
                fresh += line.waiting.values()
            elif line.waiting and line.is_quiet_for(at, open_now):
                heads += line.heads(free)
        return fresh + self.first_of(heads, free, at)

    def first_of(self, heads: list[Waiting], free: int | None, at: datetime) -> list[Waiting]:
        """Of those who ask for the same, as many as can be given it, in the order of selection. Where a deadline may hold
        some of them back and not others, or something else may, all of them."""
        if free is None or len(heads) <= 1 or any(not line.is_long and line.waiting for line in self._waited_in):
            return heads
        alike: dict[tuple[str, int], list[Waiting]] = {}
        found = [one for one in heads if one.line.places <= 0]
        for one in (one for one in heads if one.line.places > 0):
            alike.setdefault((one.line.service_class, one.line.need.units), []).append(one)
        for (_, units), those in alike.items():
            if len(those) > 1 and all(one.line.is_plain for one in those):
                those.sort(key=lambda one: selection_order(one.candidate, at))
                del those[max(1, free // max(1, units)) :]
            found += those
        return found

    @property
    def free(self) -> int | None:
        """Units that nobody holds, 0 where it gives nothing to anybody; None where nothing is asked of any capability."""
        if self.capability is None:
            return None
        gives = self.capability.state == "WARM" and self.capability.admission == "open"
        return self.capability.units - self._held_units if gives else 0

    def held_at(self, at: datetime) -> tuple[Hold, ...]:
        """What is held, as the law counts it: an end that was expected and has passed is none."""
        return tuple(
            hold if hold.ends_at is None or hold.ends_at > at else replace(hold, ends_at=None)
            for hold in self._held.values()
        )

    def take(self, ordinal: int, hold: Hold, at: datetime) -> None:
        """A lease begins."""
        self._held[ordinal] = hold
        self.move(hold.units, at)

    def release(self, ordinal: int, at: datetime) -> None:
        """A lease ends."""
        hold = self._held.pop(ordinal, None)
        self.move(-hold.units if hold is not None else 0, at)

    def move(self, units: int, at: datetime) -> None:
        """So many units more are held from now on."""
        self._held_units += units
        if self.meter is not None:
            self.meter.move(at, self._held_units)
