"""What would run, wait and miss: the same law over a stretch of time that has not happened (SEL-1..6, OVL-1..5, WIN-5).

Time goes from event to event: a bell, an eligibility, a bound, the end of a Run or of a slice, a quiet window. After each,
whoever waits where something changed is judged by `law.selection`, as the office judges it; nothing is decided here. Authority
stands as it is, capabilities keep their state, nothing is live when it begins, and every bell is heard at its instant. The
same stage gives the same outcomes in the same order.

Judged is only whoever may get another answer. Candidates of different capabilities never meet, so an event concerns the
waiting of one pool. Of those without a window that wait in one Schedule's line, no more can be admitted at once than there are
units and places for: the rest of the line is judged when one before it is answered for good. Where nothing is free at all,
only those are judged whose own hour has come. So a flood costs what rings, and not what waits.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from heapq import heappop, heappush
from itertools import count
from typing import Any

from law.candidates import Ground, Judgement
from law.capacity import Capability, Hold
from law.errors import BadInput
from law.identity import ScheduleName
from law.merging import Merge, no_merge
from law.overlap import Live
from law.reasons import OccurrenceState, Reason
from law.simulated import Arrival, Outcome, Simulated, arrivals
from law.simulated_lines import Line, Pool, Waiting
from law.simulated_rounds import Rounds
from law.tally import Meter
from law.yielding import QuietWindow

ENDS, OPENS, RINGS, LOOKS = range(4)
"""What happens at one instant, in this order; only then is anything decided."""


@dataclass(frozen=True, slots=True)
class Stage:
    """Everything a simulation of [since, until) rests on. The order of its Schedules means nothing."""

    schedules: Sequence[Simulated]
    since: datetime
    until: datetime
    capabilities: Sequence[Capability] = ()
    quiet_windows: Sequence[QuietWindow] = ()
    merge: Merge = no_merge


class Simulation:
    """One walk through a stage. Iterate over `outcomes` once; `meters` and `rounds` then say what there was.

    Raises BadInput where two Schedules or capabilities have one name.
    """

    def __init__(self, stage: Stage) -> None:
        check_stage(stage)
        self.stage = stage
        self.meters: dict[str, Meter] = {}
        self.rounds = Rounds()
        self._agenda: list[tuple[datetime, int, int, int, Any]] = []
        self._live: dict[ScheduleName, Live] = {}
        self._changed: dict[Pool, None] = {}
        self._open: list[QuietWindow] = []
        self._told: list[Outcome] = []
        self._ordinals, self._entries = count(), count()
        self._lines = self.make_lines()

    def make_lines(self) -> list[Line]:
        """A line for every Schedule, by name, in the pool of its capability; one that needs none has a pool of its own."""
        known = {one.name: one for one in self.stage.capabilities}
        in_order = [(one, one.need.capability) for one in sorted(self.stage.schedules, key=lambda one: one.name)]
        for name in sorted({*known, *(asked for _, asked in in_order if asked is not None)}):
            self.meters[name] = Meter(known.get(name, Capability(name)), self.stage.since, self.stage.until)
        pools = {name: Pool(meter) for name, meter in self.meters.items()}
        return [
            Line(place, one, pools[asked] if asked is not None else Pool(None))
            for place, (one, asked) in enumerate(in_order)
        ]

    def outcomes(self) -> Iterator[Outcome]:
        """What became of every firing of the stretch, each once, as soon as it is known."""
        self.open_stage()
        agenda, until = self._agenda, self.stage.until
        while agenda and agenda[0][0] < until:
            at = agenda[0][0]
            while agenda and agenda[0][0] == at:
                _, what, _, _, thing = heappop(agenda)
                self.happen(what, thing, at)
            while self._changed:
                self.decide(at)
            yield from self.told()
        self.close_stage()
        yield from self.told()

    def open_stage(self) -> None:
        """The first bell of every Schedule, and the quiet windows."""
        for line in self._lines:
            line.coming = arrivals(line.one, self.stage.since, self.stage.until)
            self.ring_next(line)
        for window in self.stage.quiet_windows:
            if window.closes_at > self.stage.since:
                self.note(max(window.opens_at, self.stage.since), OPENS, 0, window)

    def happen(self, what: int, thing: Any, at: datetime) -> None:
        """One entry of the agenda."""
        if what == ENDS:
            self.end(thing, at)
        elif what == OPENS:
            self.open_quiet(thing, at)
        elif what == RINGS:
            self.ring(*thing)
        else:
            self.look(thing, at)

    def note(self, at: datetime, what: int, place: int, thing: Any) -> None:
        """Put something on the agenda: by instant, kind and place, and never by chance."""
        heappush(self._agenda, (at, what, place, next(self._entries), thing))

    def ring_next(self, line: Line) -> None:
        """Look one bell ahead."""
        arrival = next(line.coming, None)
        if arrival is not None:
            self.note(arrival.rang_at, RINGS, line.place, (line, arrival))

    def ring(self, line: Line, arrival: Arrival) -> None:
        """A bell: its firing is final at birth, or waits, or is not eligible yet."""
        ordinal = next(self._ordinals)
        self.ring_next(line)
        if arrival.bounds is None or arrival.reason is not None:
            self._told.append(line.swallowed(arrival, arrival.reason or Reason.GAP_SKIPPED, ordinal))
            return
        one, eligible_at = Waiting(ordinal, line, arrival, arrival.bounds), None
        if arrival.bounds.eligible_at > arrival.rang_at and line.terms.policy != "serialize":
            eligible_at = arrival.bounds.eligible_at
        if eligible_at is None:
            self.enter(one)
        else:
            line.to_come[ordinal] = one
            self.look_at(eligible_at, one)

    def look_at(self, at: datetime, one: Waiting) -> None:
        """Its own hour will come."""
        one.looks_at = at
        self.note(at, LOOKS, one.ordinal, one)

    def look(self, one: Waiting, at: datetime) -> None:
        """Its own hour has come: it is eligible, or one of its bounds has passed."""
        if one.looks_at == at and not one.is_answered:
            self.enter(one)

    def enter(self, one: Waiting) -> None:
        """It waits, and has something new to say."""
        one.line.to_come.pop(one.ordinal, None)
        one.line.queue(one)
        self.change(one.line.pool, one)

    def change(self, pool: Pool, *fresh: Waiting) -> None:
        """Something changed in a pool, or for these who wait there."""
        pool.refresh(*fresh)
        self._changed[pool] = None

    def open_quiet(self, window: QuietWindow, at: datetime) -> None:
        """A quiet window opened: whoever waits for one is judged again."""
        self._open = [one for one in self._open if one.closes_at > at] + [window]
        for line in self._lines:
            if line.needs_quiet and window.capability in (None, line.need.capability):
                self.change(line.pool)

    def decide(self, at: datetime) -> None:
        """One round over whoever may get another answer in the pools where something changed."""
        pools, self._changed = list(self._changed), {}
        self._open = [one for one in self._open if one.closes_at > at]
        judged = list({one.ordinal: one for pool in pools for one in pool.to_judge(at, self._open)}.values())
        if not judged:
            return
        ground = Ground(at, self._live, (), self._open, self.stage.merge)
        answers = self.rounds.answer(judged, pools, ground)
        final = dict[Line, None]()
        for answer in answers:
            if answer.reason is not None:
                self.wait(answer.who, answer.reason, answer.changes_at)
                continue
            final[answer.who.line] = None
            if answer.refusal is None:
                self.start(answer.who, answer.units, at)
            else:
                self.refuse(answer.who, answer.refusal, judged, at)
        self.judge_rest(final, at)

    def judge_rest(self, lines: Iterable[Line], at: datetime) -> None:
        """Somebody was answered for good in these lines; where not everybody in one was judged, the next ones are, at once."""
        for line in lines:
            if line.is_left_out:
                line.is_left_out = False
                self.change(line.pool, *(line.waiting.values() if line.is_refused(at) else ()))

    def wait(self, one: Waiting, reason: Reason, changes_at: datetime | None) -> None:
        """It goes on waiting, and is judged again when time alone may change that."""
        one.wait_for(reason)
        if changes_at is not None and changes_at != one.looks_at:
            self.look_at(changes_at, one)

    def refuse(self, one: Waiting, judgement: Judgement, judged: Sequence[Waiting], at: datetime) -> None:
        """It is told no for good, or which other it became a part of."""
        one.leave()
        verdict, head = judgement.verdict, judgement.coalesced_into
        into = next((other.key for other in judged if other.candidate.trigger_occurrence_id == head), None)
        self._told.append(one.outcome(verdict.state, verdict.reason, at, into, verdict.evidence))

    def start(self, one: Waiting, units: int, at: datetime) -> None:
        """A Run begins, or its next slice does."""
        one.leave()
        line, estimate = one.line, one.line.need.estimate
        if one.run_from is None:
            one.run_from, one.units, one.left = at, units, line.one.takes
            line.admitted(at)
            self._live[line.name] = line.live
        a_slice = min(one.left, line.slice_max)
        one.left, one.run_to = one.left - a_slice, at + a_slice
        line.running[one.ordinal] = one
        ends_at = at + estimate.duration if estimate is not None else None
        line.pool.take(one.ordinal, Hold(line.service_class, units, ends_at), at)
        self.note(one.run_to, ENDS, one.ordinal, one)

    def end(self, one: Waiting, at: datetime) -> None:
        """A slice or a Run ends and gives back what it held; where work is left, its Run waits for its next slice (YLD-5)."""
        line = one.line
        del line.running[one.ordinal]
        line.pool.release(one.ordinal, at)
        one.slices += 1
        if one.left > timedelta(0):
            one.resumes = True
            line.parked[one.ordinal] = one
            self.change(line.pool, one)
            return
        line.settled()
        self._live[line.name] = line.live
        self._told.append(one.ran(one.run_to))
        self.change(line.pool)

    def close_stage(self) -> None:
        """Whatever is under way or waits when the stretch ends."""
        pending, until = OccurrenceState.PENDING, self.stage.until
        for line in self._lines:
            self._told += [one.ran(one.run_to if not one.left else None) for one in line.running.values()]
            self._told += [one.ran(None) for one in line.parked.values()]
            for one in line.waiting.values():
                self._told.append(one.outcome(pending, one.reasons[-1] if one.reasons else Reason.CAPACITY, until))
            for one in line.to_come.values():
                self._told.append(one.outcome(pending, Reason.NOT_YET_ELIGIBLE, until))
        for meter in self.meters.values():
            meter.move(until, meter.units)

    def told(self) -> Iterator[Outcome]:
        """What has become known, once."""
        told, self._told = self._told, []
        return iter(told)


def check_stage(stage: Stage) -> None:
    """Raise BadInput for a stretch without length, and for two things of one name."""
    if stage.since >= stage.until:
        raise BadInput(field="to", reason="is not later than from")
    named = ("schedule", [one.name for one in stage.schedules]), ("capacity", [one.name for one in stage.capabilities])
    for field, names in named:
        if twice := sorted(name for name, times in Counter(names).items() if times > 1):
            raise BadInput(field=field, reason=f"{', '.join(twice)} is there twice")
