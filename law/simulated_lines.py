"""Who waits in a simulation, for whom they wait, and which of them an event can concern.

A pool is a capability with the Schedules that need it, or one Schedule that needs none: nothing that is decided in one pool
changes an answer in another (DESIGN §6). A line is what waits of one Schedule, in the order in which it became eligible.
"""

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import islice

from law.bounds import Bounds
from law.candidates import Candidate
from law.capacity import Hold
from law.finish import FinishTerms, disposition_at
from law.identity import SourceKey, TriggerOccurrenceId, trigger_occurrence_id
from law.overlap import Live
from law.reasons import Disposition, OccurrenceState, Reason
from law.service_class import ServiceClass
from law.simulated import Arrival, Outcome, Simulated
from law.tally import Meter
from law.yielding import QuietWindow

A_DAY = timedelta(days=1)
NO_CEILING = 1 << 62


@dataclass(slots=True, eq=False)
class Waiting:
    """One firing on its way: a candidate while it waits, a Run while it runs. `left`: what is left of its work."""

    ordinal: int
    line: "Line"
    key: SourceKey
    candidate: Candidate
    reasons: tuple[Reason, ...] = ()
    looks_at: datetime | None = None
    is_answered: bool = False
    run_from: datetime | None = None
    run_to: datetime | None = None
    left: timedelta = timedelta(0)
    units: int = 0
    slices: int = 0

    def asking(self, at: datetime) -> Candidate:
        """The candidate as it stands at this sample: only a ceiling changes with time."""
        line = self.line
        if line.credentials.runs_per_day_max is None or self.candidate.resumes is not None:
            return self.candidate
        spent = replace(line.credentials, runs_in_last_day=line.runs_in_last_day(at))
        return replace(self.candidate, credentials=spent)

    def wait_for(self, reason: Reason) -> None:
        """Remember what it waits for, before it was admitted."""
        if self.run_from is None and self.reasons[-1:] != (reason,):
            self.reasons = (*self.reasons, reason)

    def leave(self) -> None:
        """It waits no more."""
        occurrence = self.candidate.trigger_occurrence_id
        self.is_answered = True
        self.line.waiting.pop(occurrence, None)
        self.line.parked.pop(occurrence, None)

    def outcome(self, state: OccurrenceState, reason: Reason, at: datetime) -> Outcome:
        """What became of it, as of `at`; whoever was decided says when."""
        bounds = self.candidate.bounds
        return Outcome(
            self.ordinal,
            self.line.name,
            self.key,
            self.line.service_class,
            self.candidate.place[0],
            bounds.eligible_at,
            state,
            reason,
            None if state is OccurrenceState.PENDING else at,
            self.reasons,
            max(at - bounds.eligible_at, timedelta(0)),
            disposition=Disposition.UNTIMED if bounds.finish_by is None else Disposition.OPEN,
        )

    def ran(self, run_to: datetime | None) -> Outcome:
        """What became of it once it was admitted; `run_to` None where nobody knows when its work ends."""
        assert self.run_from is not None, "it was admitted"
        told = self.outcome(OccurrenceState.ADMITTED, Reason.ADMITTED, self.run_from)
        disposition = told.disposition
        if run_to is not None:
            disposition = disposition_at(FinishTerms(finish_by=self.candidate.bounds.finish_by), disposition, run_to)
            disposition = Disposition.TIMELY if disposition is Disposition.OPEN else disposition
        return replace(
            told,
            disposition=disposition,
            run_from=self.run_from,
            run_to=run_to,
            units=self.units,
            slices=self.slices,
        )


class Line:
    """One Schedule under way. `place` is its place among all, by name; `coming` its bells that have not rung."""

    def __init__(self, place: int, one: Simulated, pool: "Pool") -> None:
        document = one.document
        self.place, self.one, self.name, self.pool = place, one, one.name, pool
        pool.lines.append(self)
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
        self.coming: Iterator[Arrival] = iter(())
        self.live = Live()
        self.to_come: dict[TriggerOccurrenceId, Waiting] = {}
        self.waiting: dict[TriggerOccurrenceId, Waiting] = {}
        self.parked: dict[TriggerOccurrenceId, Waiting] = {}
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

    def may_judge(self, at: datetime, free: int | None, open_now: Sequence[QuietWindow]) -> Iterator[Waiting]:
        """Whoever of it may get another answer where so many units are free; None where it needs none."""
        yield from self.parked.values()
        self.is_left_out = False
        if self.needs_quiet and not any(window.covers(self.need.capability, at) for window in open_now):
            return
        judged_max = self.judged_max(at, free) if self.is_long else len(self.waiting)
        self.is_left_out = len(self.waiting) > judged_max
        yield from islice(self.waiting.values(), judged_max)

    def judged_max(self, at: datetime, free: int | None) -> int:
        """How many of a line without windows can be answered otherwise than the one before: as many as there are places and
        units for, and one more. Where the answer is a no for good, all of them."""
        places = self.terms.parallel_max - self.live.count
        is_spent = self.runs_in_last_day(at) >= (self.credentials.runs_per_day_max or NO_CEILING)
        if is_spent or (places <= 0 and self.terms.policy == "forbid"):
            return len(self.waiting)
        room = places if free is None else min(places, free // max(1, self.need.units))
        return max(0, room) + 1


class Pool:
    """A capability and who holds and needs it; without a meter, one Schedule that needs none."""

    def __init__(self, meter: Meter | None) -> None:
        self.meter, self.capability = meter, meter.capability if meter is not None else None
        self.lines: list[Line] = []
        self.fresh: list[Waiting] = []
        self._held: dict[int, Hold] = {}
        self._held_units = 0

    def to_judge(self, at: datetime, open_now: Sequence[QuietWindow]) -> list[Waiting]:
        """Whoever has something new to say, and whoever may get another answer, where anything is free at all."""
        fresh, self.fresh = self.fresh, []
        if self.capability is None:
            return [*fresh, *self.lines[0].may_judge(at, None, open_now)]
        if self.capability.state != "WARM" or self.capability.admission != "open":
            return fresh
        free = self.capability.units - self._held_units
        if free <= 0:
            return fresh
        return [*fresh, *(one for line in self.lines for one in line.may_judge(at, free, open_now))]

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
