"""The one office, three tempos (SEL-1..6, CLS-3): everything that waits gets its answer, in one order.

A round is everything under one authority at one sample. First whatever may not be admitted at all is taken out, each with its
reason: authority gone, window closed, its end out of reach (SEL-1, SEL-5). The rest goes by tempo:

1. deadlines that can be kept, by the latest instant at which they can still be kept, into the units protected for them;
2. foreground, unless a deadline that can be kept could then not be kept any more (see `law.promises`);
3. the other deadlines;
4. spare capacity, beyond every floor, and only where it is proven to yield or a quiet window covers it.

Inside a tempo the pinned priority with its aging decides, then age, then identity: the same candidates, capacity and instant
give the same answers (SEL-3, SEL-6). What an earlier candidate of the round was given counts against the later ones. A Run
that gave its units back between two slices is a candidate like any other, by its own class (YLD-5).
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from law.authority import judge_authority, judge_ceiling
from law.budget import judge_budget
from law.candidates import Candidate, Ground, Judgement, aged_priority
from law.capacity import Hold, Room, judge_supply
from law.catch_up import judge_catch_up
from law.coalescing import Group, coalesce
from law.identity import ScheduleName, TriggerOccurrenceId
from law.overlap import Live, behind, judge_overlap
from law.promises import Promise, Promises, judge_feasibility, must_start_before
from law.readiness import Asked, readiness_request
from law.reasons import OccurrenceState, Reason
from law.service_class import ServiceClass
from law.verdict import Verdict
from law.window import changes_at, judge_window
from law.yielding import judge_yielding, next_opening

TEMPO: Mapping[ServiceClass, int] = {"foreground": 1, "deadline_windowed": 2, "spare_capacity": 3}


def decide(candidates: Iterable[Candidate], ground: Ground) -> list[Judgement]:
    """Answer every candidate, in the order in which they were judged. Each is answered once.

    Keeps SEL-1 (what may not be admitted at all comes first), SEL-2, OVL-1 (a round's own admissions count) and SEL-6.
    """
    in_order = sorted(candidates, key=lambda one: selection_order(one, ground.at))
    round_ = Round(ground, Counter(), Counter(), dict(ground.live))
    going = [one for one in in_order if not round_.take_out(one)]
    round_.lay_out(going)
    for one in round_.promised:
        if round_.is_protected(one):
            round_.consider(one)
    for one in going:
        round_.consider(one)
    return list(round_.answers.values())


def selection_order(candidate: Candidate, at: datetime) -> tuple[int, int, datetime, datetime, str]:
    """Tempo, then aged priority, then the last instant, then age, then id: a total order (SEL-2, SEL-3, SEL-6)."""
    last = must_start_before(candidate.bounds, candidate.need.estimate) or candidate.bounds.eligible_at
    return (
        TEMPO[candidate.service_class],
        -aged_priority(candidate, at),
        last,
        candidate.bounds.eligible_at,
        str(candidate.trigger_occurrence_id),
    )


@dataclass(slots=True)
class Round:
    """A round under way: what it has answered, and what it has given away so far."""

    ground: Ground
    admitted: Counter[ScheduleName]
    caught_up: Counter[ScheduleName]
    live: dict[ScheduleName, Live]
    answers: dict[TriggerOccurrenceId, Judgement] = field(default_factory=dict[TriggerOccurrenceId, Judgement])
    rooms: dict[str, Room] = field(default_factory=dict[str, Room])
    promises: dict[str, Promises] = field(default_factory=dict[str, Promises])
    made: dict[TriggerOccurrenceId, Promise] = field(default_factory=dict[TriggerOccurrenceId, Promise])
    promised: list[Candidate] = field(default_factory=list[Candidate])
    """Deadlines that can be kept, by the latest instant at which they still can."""
    lines: dict[ScheduleName, list[Candidate]] = field(default_factory=dict[ScheduleName, list[Candidate]])
    groups: dict[ScheduleName, list[Candidate]] = field(default_factory=dict[ScheduleName, list[Candidate]])
    given: dict[tuple[str, str, int | None], float] = field(default_factory=dict[tuple[str, str, int | None], float])
    """What this round has given away of budgets, by holder, unit and period."""

    def take_out(self, one: Candidate) -> bool:
        """Answer what may not be admitted at all at this sample; whether it was (SEL-1, SEL-5). What only waits for its hour
        keeps its place in a serialized line."""
        objection = judge_authority(one.credentials, self.ground.at)
        if objection is None and one.resumes is None:
            objection = judge_window(one.bounds, self.ground.at)
            objection = objection or judge_feasibility(one.bounds, one.need.estimate, self.ground.at)
            objection = objection or judge_ceiling(one.credentials)
        is_waiting = objection is None or objection.state is OccurrenceState.PENDING
        if is_waiting and one.overlap.policy == "serialize" and one.resumes is None:
            self.lines.setdefault(one.schedule, []).append(one)
        if objection is not None:
            self.answer(one, objection)
        elif one.overlap.policy == "coalesce" and one.resumes is None:
            self.groups.setdefault(one.schedule, []).append(one)
        return objection is not None

    def lay_out(self, going: Sequence[Candidate]) -> None:
        """Before anything is given away: what there is, the order of every line, and the promises that can be made."""
        for line in self.lines.values():
            line.sort(key=lambda one: one.place, reverse=True)
        self.rooms = {one.capability.name: Room(one.capability, list(one.held)) for one in self.ground.supplies}
        places: dict[ScheduleName, Live] = dict(self.live)
        by_room: dict[str, list[Promise]] = {}
        with_promise = [(promise, one) for one in going if (promise := self.promise(one)) is not None]
        for promise, one in sorted(with_promise, key=lambda pair: pair[0]):
            live = places.get(one.schedule, Live())
            if self.may_not_begin(one) or judge_overlap(one.overlap, live, one.need.units):
                continue
            places[one.schedule] = live + one.need.units
            self.made[one.trigger_occurrence_id] = promise
            self.promised.append(one)
            by_room.setdefault(one.need.capability or "", []).append(promise)
        self.promises = {name: Promises(self.rooms[name], self.ground.at, made) for name, made in by_room.items()}

    def promise(self, one: Candidate) -> Promise | None:
        """The promise of a deadline that can be kept, or None."""
        room = self.rooms.get(one.need.capability or "")
        last = must_start_before(one.bounds, one.need.estimate)
        if one.service_class != "deadline_windowed" or one.resumes is not None or room is None or last is None:
            return None
        if last <= self.ground.at or room.capability.state != "WARM" or room.capability.admission != "open":
            return None
        return Promise(last, str(one.trigger_occurrence_id), one.need.units, one.need.estimate)

    def is_protected(self, one: Candidate) -> bool:
        """Whether it fits into the units that are protected for deadlines."""
        room = self.rooms[one.need.capability or ""]
        return (
            room.held_by("deadline_windowed") + room.units_of(one.need.units) <= room.capability.protected_units
            and one.trigger_occurrence_id not in self.answers
        )

    def consider(self, one: Candidate) -> None:
        """Answer one candidate that may be admitted if there is room for it."""
        if one.trigger_occurrence_id in self.answers:
            return
        if one.overlap.policy == "coalesce" and one.resumes is None:
            self.consider_together(self.groups[one.schedule])
            return
        objection = self.objection(one)
        if objection is not None:
            self.answer(one, objection)
        else:
            self.admit(one)

    def consider_together(self, members: Sequence[Candidate]) -> None:
        """Answer everything that waits to be coalesced: one is admitted for all, or all wait as it does."""
        group = coalesce(members, self.ground.merge)
        objection = self.objection(group.head) or group.waits
        if objection is not None:
            for one in members:
                self.answer(one, objection)
            return
        self.admit(group.head, group)
        for one, reason, said in group.refused:
            evidence = {"with": group.head.trigger_occurrence_id, "difference": said}
            self.answer(one, Verdict(OccurrenceState.REFUSED, reason, evidence))
        for one in group.merged_in:
            into = group.head.trigger_occurrence_id
            digest = group.merged.input_digest if group.merged else None
            verdict = Verdict(OccurrenceState.COALESCED, Reason.COALESCED, {"coalesced_into": into, "input": digest})
            self.answers[one.trigger_occurrence_id] = Judgement(one, verdict, merged=group.merged, coalesced_into=into)

    def objection(self, one: Candidate) -> Verdict | None:
        """The first thing that speaks against admitting it now, or None."""
        credentials, admitted = one.credentials, self.admitted[one.schedule]
        if admitted and one.resumes is None:
            spent = replace(credentials, runs_in_last_day=credentials.runs_in_last_day + admitted)
            objection = judge_ceiling(spent)
            if objection is not None:
                return objection
        objection = self.may_not_begin(one)
        if objection is None and one.resumes is None:
            objection = judge_overlap(one.overlap, self.live.get(one.schedule, Live()), one.need.units)
            objection = objection or judge_budget(one.ceilings, one.asks, self.given)
        return objection or self.capacity_objection(one)

    def may_not_begin(self, one: Candidate) -> Verdict | None:
        """Why its own Schedule holds it back: paused, behind a predecessor, or catching up as fast as it may."""
        if one.paused:
            return Verdict(OccurrenceState.PENDING, Reason.PAUSED)
        if one.resumes is not None:
            return None
        if one.overlap.policy == "serialize":
            first = self.first_in_line(one.schedule)
            if first is not None and first.trigger_occurrence_id != one.trigger_occurrence_id:
                return behind(str(first.trigger_occurrence_id))
        return judge_catch_up(one.caught_up, self.caught_up[one.schedule])

    def first_in_line(self, schedule: ScheduleName) -> Candidate | None:
        """The earliest of a serialized line that this round has not answered for good."""
        line = self.lines.get(schedule, [])
        while line and self.is_final(line[-1]):
            line.pop()
        return line[-1] if line else None

    def is_final(self, one: Candidate) -> bool:
        """Whether this round has decided it, and not only that it waits."""
        answered = self.answers.get(one.trigger_occurrence_id)
        return answered is not None and answered.verdict.state is not OccurrenceState.PENDING

    def capacity_objection(self, one: Candidate) -> Verdict | None:
        """None where its capability has room for it at this sample, by the law of its class."""
        need, at = one.need, self.ground.at
        if one.service_class == "spare_capacity":
            windows = self.ground.quiet_windows
            objection = judge_yielding(need.capability, need.is_proven, need.estimate, windows, at)
            if objection is not None:
                return objection
        if need.capability is None:
            return None
        room = self.rooms.get(need.capability)
        objection = judge_supply(room, need.capability, need.units, one.service_class)
        if objection is not None or room is None or need.capability not in self.promises:
            return objection
        work = Hold(
            one.service_class, room.units_of(need.units), at + need.estimate.duration if need.estimate else None
        )
        broken = self.promises[need.capability].broken_by(work, self.made.get(one.trigger_occurrence_id))
        return kept_for(need.capability, room, broken) if broken else None

    def admit(self, one: Candidate, group: Group | None = None) -> None:
        """Count what it takes against everything that is judged after it."""
        need, units = one.need, 0
        if need.capability is not None:
            room = self.rooms[need.capability]
            units = room.units_of(need.units)
            promise = self.made.pop(one.trigger_occurrence_id, None)
            if promise is not None:
                self.promises[need.capability].settle(promise)
            room.take(units, one.service_class, self.ground.at + need.estimate.duration if need.estimate else None)
        if one.resumes is None:
            self.live[one.schedule] = self.live.get(one.schedule, Live()) + need.units
            self.admitted[one.schedule] += 1
            self.caught_up[one.schedule] += one.caught_up is not None
            for budget in one.ceilings:
                of = budget.holder, budget.unit, budget.period_seconds
                self.given[of] = self.given.get(of, 0.0) + one.asks.get(budget.unit, 0.0)
        reason = Reason.ADMITTED if one.resumes is None else Reason.RESUMED
        verdict = Verdict(OccurrenceState.ADMITTED, reason, admission_evidence(one, units, self.ground.at))
        merged = group.merged if group else None
        self.answers[one.trigger_occurrence_id] = Judgement(one, verdict, units=units, merged=merged)

    def answer(self, one: Candidate, verdict: Verdict) -> None:
        """Keep a verdict that admits nothing; a wait is told when time alone may end it, and what may be asked for."""
        if verdict.state is not OccurrenceState.PENDING:
            self.answers[one.trigger_occurrence_id] = Judgement(one, verdict)
            return
        hints = [changes_at(one.bounds, self.ground.at)] if one.resumes is None else []
        if one.bounds.finish_by is not None and one.resumes is None:
            hints.append(must_start_before(one.bounds, one.need.estimate))
        if verdict.reason is Reason.CAPACITY and one.need.capability in self.rooms:
            held = self.rooms[one.need.capability].held  # one that outlives its estimate is looked at anew when it does
            hints.append(min((hold.ends_at for hold in held if hold.ends_at is not None), default=None))
        if verdict.reason is Reason.QUIET_WINDOW:
            hints.append(next_opening(one.need.capability, self.ground.quiet_windows, self.ground.at))
        at = min((hint for hint in hints if hint is not None and hint > self.ground.at), default=None)
        self.answers[one.trigger_occurrence_id] = Judgement(one, verdict, at, asks=self.asks(one, verdict))

    def asks(self, one: Candidate, verdict: Verdict) -> Asked | None:
        """What windowed work may ask of the Orchestrator while its capability is cold: once (YLD-4)."""
        need = one.need
        if verdict.reason is not Reason.READINESS or one.service_class != "deadline_windowed" or need.has_asked:
            return None
        state = self.rooms[need.capability or ""].capability.state
        return readiness_request(need.capability or "", state, need.transition, need.spent)


def kept_for(capability: str, room: Room, broken: Promise) -> Verdict:
    """The wait of work whose units a deadline needs that could not be kept beside it."""
    evidence = {"capability": capability, "free": room.free, "kept_for": broken.name}
    return Verdict(
        OccurrenceState.PENDING, Reason.CAPACITY, {**evidence, "must_start_before": broken.must_start_before}
    )


def admission_evidence(candidate: Candidate, units: int, at: datetime) -> dict[str, object]:
    """What the yes rests on: the sample, the bounds it was measured against, the estimate, and what it takes."""
    bounds, need = candidate.bounds, candidate.need
    evidence = {
        "decision_time": at,
        "not_before": bounds.not_before,
        "latest_start_at": bounds.latest_start_at,
        "finish_by": bounds.finish_by,
        "capability": need.capability,
        "units": units or None,
        "estimate": need.estimate.evidence() if need.estimate else None,
    }
    return {name: value for name, value in evidence.items() if value is not None}
