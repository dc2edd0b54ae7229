"""Promises: feasible deadlines by the latest instant at which they can still be kept (SEL-2, SEL-4, SEL-5).

Foreground comes first, but a flood of it must not starve a deadline that can be kept. So before anything takes units that a
waiting deadline may need, it is asked whether all deadlines that could be kept without it can be kept with it. They are laid
out in the order of their last instants on what is free and on what is expected to become free; what has no known end becomes
free never. The layout is a calculation and grants nothing: as estimates prove wrong it is made anew, at every decision.

The latest instant is exclusive: before `latest_start_at`, and, where there is a `finish_by`, early enough to end before it.
Where that needs a duration that is unknown, the deadline is neither feasible nor infeasible, and no promise is made for it.
"""

import heapq
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

from law.bounds import Bounds
from law.capacity import Capability, Hold, Room
from law.estimates import Estimate
from law.reasons import OccurrenceState, Reason
from law.verdict import Verdict

NEVER = datetime.max.replace(tzinfo=UTC)


def must_start_before(bounds: Bounds, estimate: Estimate | None) -> datetime | None:
    """The instant before which this work has to begin so that its bounds can be kept; None where nobody can say."""
    if bounds.finish_by is None:
        return bounds.latest_start_at
    if estimate is None:
        return None
    in_time = bounds.finish_by - estimate.duration
    return in_time if bounds.latest_start_at is None else min(in_time, bounds.latest_start_at)


def judge_feasibility(bounds: Bounds, estimate: Estimate | None, at: datetime) -> Verdict | None:
    """None unless a known estimate says that the finish bound cannot be kept any more; then the refusal, with the sum."""
    if bounds.finish_by is None or estimate is None or at + estimate.duration < bounds.finish_by:
        return None
    ends_at = {"decision_time": at, "would_end_at": at + estimate.duration, "finish_by": bounds.finish_by}
    return Verdict(OccurrenceState.REFUSED, Reason.INFEASIBLE, {**ends_at, "estimate": estimate.evidence()})


@dataclass(frozen=True, slots=True, order=True)
class Promise:
    """A waiting deadline that can be kept if it has its units before `must_start_before`."""

    must_start_before: datetime
    name: str
    units: int = field(compare=False)
    estimate: Estimate | None = field(compare=False)


@dataclass(slots=True)
class Promises:
    """The promises on one capability while a round is judged, in the order of their last instants."""

    room: Room
    at: datetime
    waiting: list[Promise]
    _seen: int = -1
    _kept_now: frozenset[str] = frozenset()
    _first_broken: dict[Hold, Promise | None] = field(default_factory=dict[Hold, "Promise | None"])

    def broken_by(self, work: Hold, own: Promise | None = None) -> Promise | None:
        """The first promise that can be kept as things stand and not beside this work; None where all still can. `own`: the
        promise that this very work would keep."""
        if not self.waiting:
            return None
        self.look()
        if work not in self._first_broken:
            self._first_broken[work] = self.first_broken(work, self.waiting)
        first = self._first_broken[work]
        if first is None or own is None or first < own:
            return first
        return self.first_broken(work, [one for one in self.waiting if one != own])

    def look(self) -> None:
        """Lay the promises out anew where something was taken since the last look."""
        if self._seen != self.room.version:
            self._seen = self.room.version
            self._kept_now = kept_of(self.room.capability, self.room.held, self.waiting, self.at)
            self._first_broken.clear()

    def first_broken(self, work: Hold, promises: Sequence[Promise]) -> Promise | None:
        """The first of these that is kept now and not beside this work. Who comes later in the order breaks nobody before."""
        kept = kept_of(self.room.capability, [*self.room.held, work], promises, self.at)
        return next((one for one in promises if one.name in self._kept_now and one.name not in kept), None)

    def settle(self, promise: Promise) -> None:
        """A promise that is kept from now on."""
        self.waiting.remove(promise)


def kept_of(capability: Capability, held: Sequence[Hold], promises: Sequence[Promise], at: datetime) -> frozenset[str]:
    """Which promises can be kept: each begins as soon as its units are free, in this order, and none passes another."""
    room = Room(capability, list(held))
    ends = [(hold.ends_at or NEVER, place, hold) for place, hold in enumerate(held)]
    heapq.heapify(ends)
    free, foreground = room.free, room.held_by("foreground")
    now, kept = at, set[str]()
    for promise in promises:
        units = room.units_of(promise.units)
        while free - max(0, capability.foreground_units - foreground) < units:
            if not ends or ends[0][0] >= promise.must_start_before:
                break
            ended_at, _, hold = heapq.heappop(ends)
            now, free = max(now, ended_at), free + hold.units
            foreground -= hold.units if hold.service_class == "foreground" else 0
        else:
            if now < promise.must_start_before:
                kept.add(promise.name)
                free -= units
                ends_at = NEVER if promise.estimate is None else now + promise.estimate.duration
                heapq.heappush(ends, (ends_at, len(held) + len(kept), Hold("deadline_windowed", units)))
    return frozenset(kept)
