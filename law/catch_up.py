"""Catch-up: what recovery may still consider, and what it must let go (CAL-5, CAL-8, OVL-7).

A firing found within the misfire threshold is simply due. One found later is missed. Older than the horizon, it is skipped.
A missed firing whose window has closed stays a row of its own, to be recorded as the miss it is. Of the others:

- `newest` (the default) considers the newest, and skips every older one in favour of it;
- `bounded` considers those not older than `max_age`, newest first and at most `max_count`; they are judged oldest first,
  like everything that waits, and obey the overlap policy as any firing does.

A long outage takes bounded work and space: firings are read newest first, at most ROWS_MAX missed ones become rows, and what
is older is counted between changes of the clocks, never listed, in one range a reason.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Literal, Self, cast

from pydantic import BaseModel, ConfigDict, Field, model_validator

from law.bounds import Bounds
from law.durations import Duration
from law.firings import Firing, FiringKind, count_firings, firings, newest_firings, swallowed_at
from law.identity import Cycle
from law.reasons import OccurrenceState, Reason
from law.triggers import CalendarTrigger
from law.verdict import Verdict
from law.zone_rules import ZoneRules

ROWS_MAX = 100
"""How many missed firings of one Schedule become rows of their own in one look; beyond it they are counted in ranges."""

JUST_AFTER, ONE_SECOND = timedelta(microseconds=1), timedelta(seconds=1)
SWALLOWED = {FiringKind.GAP_SKIPPED: Reason.GAP_SKIPPED, FiringKind.GAP_FAILED: Reason.GAP_FAILED}


class CatchUp(BaseModel):
    """`[catch_up]`: pinned with the revision."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    misfire_threshold: Duration = timedelta(seconds=60)
    horizon: Duration = timedelta(days=1)
    mode: Literal["newest", "bounded"] = "newest"
    max_age: Duration | None = None
    max_count: int | None = Field(default=None, ge=1, le=ROWS_MAX, strict=True)
    max_concurrency: int | None = Field(default=None, ge=1, le=ROWS_MAX, strict=True)
    """How many caught-up Runs may be on their way at once (default: one)."""
    budget: int | None = Field(default=None, ge=1, le=1_000_000, strict=True)
    """The aggregate budget: how many missed firings are admitted within any span of the horizon, over however many
    outages (default: max_count)."""

    @model_validator(mode="before")
    @classmethod
    def bounded_pins_all_four(cls, tables: object) -> object:
        """What a bounded policy leaves out is spelled out, so that the revision pins it."""
        if not isinstance(tables, Mapping):
            return tables
        given = {name: value for name, value in cast("Mapping[str, object]", tables).items() if value is not None}
        if given.get("mode") != "bounded":
            return given
        return {"max_concurrency": 1, "budget": given.get("max_count"), **given}

    @model_validator(mode="after")
    def bounds_belong_to_bounded(self) -> Self:
        if self.misfire_threshold > self.horizon:
            raise ValueError("misfire_threshold: cannot exceed the horizon, beyond which nothing is considered")
        if (self.mode == "bounded") != (self.max_age is not None and self.max_count is not None):
            raise ValueError("mode: bounded needs max_age and max_count")
        if self.mode == "newest" and (self.max_age, self.max_count, self.max_concurrency, self.budget) != (None,) * 4:
            raise ValueError("mode: max_age, max_count, max_concurrency and budget belong to bounded")
        if self.max_age is not None and not self.misfire_threshold <= self.max_age <= self.horizon:
            raise ValueError("max_age: lies between the misfire_threshold and the horizon")
        return self

    @property
    def take_max(self) -> int:
        """How many missed firings one look may consider."""
        return self.max_count or 1

    @property
    def left_over(self) -> Reason:
        """Why a missed firing that could still be admitted is let go when others were taken instead."""
        return Reason.NOT_NEWEST if self.mode == "newest" else Reason.OVER_COUNT


@dataclass(frozen=True, slots=True)
class CaughtUp:
    """How far a bounded catch-up of one Schedule has come: its caught-up Runs on their way, and those admitted within the
    last horizon."""

    terms: CatchUp
    live: int = 0
    spent: int = 0


def judge_catch_up(caught_up: CaughtUp | None, admitted_in_round: int) -> Verdict | None:
    """None lets a missed firing in; otherwise it waits for its predecessors, or is let go since the budget is spent."""
    if caught_up is None or caught_up.terms.mode != "bounded":
        return None
    terms, spent, live = caught_up.terms, caught_up.spent + admitted_in_round, caught_up.live + admitted_in_round
    if terms.budget is not None and spent >= terms.budget:
        return Verdict(OccurrenceState.SKIPPED, Reason.CATCH_UP_SPENT, {"budget": terms.budget, "spent": spent})
    if terms.max_concurrency is not None and live >= terms.max_concurrency:
        return Verdict(
            OccurrenceState.PENDING, Reason.CATCH_UP, {"max_concurrency": terms.max_concurrency, "live": live}
        )
    return None


@dataclass(frozen=True, slots=True)
class Entry:
    """A firing that becomes a row. `reason` None: it waits to be decided; otherwise it is final at birth."""

    firing: Firing
    bounds: Bounds | None
    found_late: bool
    reason: Reason | None


@dataclass(frozen=True, slots=True)
class SkippedRange:
    """A stretch of firings that were let go whole: the first and last instant, and how many rang."""

    first_at: datetime
    last_at: datetime
    firing_count: int
    reason: Reason


@dataclass(frozen=True, slots=True)
class Backlog:
    """Everything that rang since the cursor, sorted out; `entries` oldest first."""

    entries: tuple[Entry, ...]
    ranges: tuple[SkippedRange, ...]


@dataclass(frozen=True, slots=True)
class Line:
    """One revision's line of firings, and how its bounds are computed."""

    trigger: CalendarTrigger
    cycle: Cycle
    rules: ZoneRules
    bounds_of: Callable[[Firing], Bounds]
    excluded: frozenset[Firing] = frozenset()
    """What a cutover took out of the line: other names of a firing, and what was let go (CUT-2)."""

    def oldest(self, start: datetime, end: datetime) -> Iterator[Firing]:
        """What rang in [start, end), oldest first."""
        return self.owned(firings(self.trigger, self.cycle, self.rules, start, end))

    def newest(self, start: datetime, end: datetime) -> Iterator[Firing]:
        """What rang in [start, end), newest first."""
        return self.owned(newest_firings(self.trigger, self.cycle, self.rules, start, end))

    def owned(self, found: Iterator[Firing]) -> Iterator[Firing]:
        """Without what is excluded."""
        return (firing for firing in found if firing not in self.excluded) if self.excluded else found

    def count(self, start: datetime, end: datetime) -> int:
        """How many rang in [start, end), without listing them."""
        taken_out = sum(start <= one.at < end for one in self.excluded)
        return count_firings(self.trigger, self.rules, start, end) - taken_out

    def swallowed(self, start: datetime, end: datetime) -> Iterator[tuple[datetime, int]]:
        """The jumps of the clocks in [start, end), and over how many of its firings each went."""
        for jumped_at, count in swallowed_at(self.trigger, self.rules, start, end):
            taken_out = sum(one.at == jumped_at and one.kind in SWALLOWED for one in self.excluded)
            if count > taken_out:
                yield jumped_at, count - taken_out


def sort_out(
    trigger: CalendarTrigger,
    cycle: Cycle,
    rules: ZoneRules,
    since: datetime,
    until: datetime,
    bounds_of: Callable[[Firing], Bounds],
    at: datetime,
    terms: CatchUp,
    excluded: frozenset[Firing] = frozenset(),
) -> Backlog:
    """Sort out what rang in [since, until) at the sample `at`, without what a cutover excluded."""
    line = Line(trigger, cycle, rules, bounds_of, excluded)
    entries: list[Entry] = []
    crowd: Crowd = {}
    late = considered = 0
    for firing in line.newest(since, until):
        entry = judge_found(firing, bounds_of, at, terms, considered)
        taken = is_considered(entry, at)
        if late < ROWS_MAX or taken or not entry.found_late:
            entries.append(entry)
            late, considered = late + entry.found_late, considered + taken
        elif shares_its_instant(firing, entries) or (
            entry.reason in SWALLOWED.values() and considered < terms.take_max
        ):
            join(crowd, SkippedRange(firing.at, firing.at, 1, entry.reason or closed_by(entry.bounds, at)))
        else:
            for left in left_out(line, since, firing.at + JUST_AFTER, at, terms):
                join(crowd, left)
            break
    return Backlog(tuple(reversed(entries)), tuple(sorted(crowd.values(), key=lambda one: one.first_at)))


Crowd = dict[Reason, SkippedRange]
"""What does not become rows: one range a reason."""


def join(crowd: Crowd, more: SkippedRange) -> None:
    """Count a range into the one of its reason."""
    known = crowd.get(more.reason, more)
    first_at, last_at = min(known.first_at, more.first_at), max(known.last_at, more.last_at)
    count = more.firing_count + (known.firing_count if known is not more else 0)
    crowd[more.reason] = SkippedRange(first_at, last_at, count, more.reason)


def judge_found(
    firing: Firing, bounds_of: Callable[[Firing], Bounds], at: datetime, terms: CatchUp, considered: int
) -> Entry:
    """What one firing is: due, considered, missed, or let go. `considered`: how many newer missed ones were taken."""
    late = found_late(firing, at, terms)
    if firing.kind in SWALLOWED:
        return Entry(firing, None, late, SWALLOWED[firing.kind])
    bounds = bounds_of(firing)
    if not late:
        return Entry(firing, bounds, late, None)
    if at - firing.at > terms.horizon:
        return Entry(firing, bounds, late, Reason.BEYOND_HORIZON)
    if window_closed(bounds, at):
        return Entry(firing, bounds, late, None)
    if terms.max_age is not None and at - firing.at > terms.max_age:
        return Entry(firing, bounds, late, Reason.OVER_AGE)
    return Entry(firing, bounds, late, terms.left_over if considered >= terms.take_max else None)


def found_late(firing: Firing, at: datetime, terms: CatchUp) -> bool:
    """Whether a firing is missed: first found later than the pinned threshold."""
    return at - firing.at > terms.misfire_threshold


def window_closed(bounds: Bounds | None, at: datetime) -> bool:
    """Whether admission is over for good."""
    ends = (bounds.latest_start_at, bounds.finish_by) if bounds is not None else ()
    return any(end is not None and at >= end for end in ends)


def closed_by(bounds: Bounds | None, at: datetime) -> Reason:
    """Which bound closed a window that is closed; the latest start is judged first, as in `law.window`."""
    latest_start_at = bounds.latest_start_at if bounds is not None else None
    started_late = latest_start_at is not None and at >= latest_start_at
    return Reason.LATEST_START_PASSED if started_late else Reason.FINISH_BOUND_PASSED


def is_considered(entry: Entry, at: datetime) -> bool:
    """Whether a missed firing is taken by the catch-up policy."""
    return entry.found_late and entry.reason is None and not window_closed(entry.bounds, at)


def shares_its_instant(firing: Firing, entries: list[Entry]) -> bool:
    """Whether the firing rings in the same instant as the last row: a jump of the clocks moved many to one."""
    return bool(entries) and entries[-1].firing.at == firing.at


def left_out(line: Line, since: datetime, past: datetime, at: datetime, terms: CatchUp) -> Iterator[SkippedRange]:
    """Everything in [since, past), a range a reason: windows close in the order in which firings ring, so each reason is
    one stretch, apart from what the clocks jumped over."""
    if line.trigger.gap != "advance":
        reason = Reason.GAP_SKIPPED if line.trigger.gap == "skip" else Reason.GAP_FAILED
        for jumped_at, count in line.swallowed(since, past):
            yield SkippedRange(jumped_at, jumped_at, count, reason)
    horizon = min(max(since, at - terms.horizon), past)
    closed = max(horizon, closed_until(line, horizon, past, at))
    aged = min(max(closed, at - terms.max_age), past) if terms.max_age is not None else closed
    newest_closed = latest(line, horizon, closed)
    closing = closed_by(line.bounds_of(newest_closed), at) if newest_closed else Reason.LATEST_START_PASSED
    edges = (since, horizon, closed, aged, past)
    reasons = (Reason.BEYOND_HORIZON, closing, Reason.OVER_AGE, terms.left_over)
    for (start, end), reason in zip(pairwise(edges), reasons, strict=True):
        yield from stretch(line, start, end, reason)


def stretch(line: Line, start: datetime, end: datetime, reason: Reason) -> Iterator[SkippedRange]:
    """The range of everything in [start, end) that the clocks did not swallow; none where nothing rang."""
    first, last = next(standing(line.oldest(start, end)), None), latest(line, start, end)
    if first is None or last is None:
        return
    count = line.count(start, end)
    if line.trigger.gap != "advance":
        count -= sum(swallowed for _, swallowed in line.swallowed(start, end))
    yield SkippedRange(first.at, last.at, count, reason)


def standing(found: Iterator[Firing]) -> Iterator[Firing]:
    """Firings that have an instant of their own."""
    return (firing for firing in found if firing.kind not in SWALLOWED)


def latest(line: Line, start: datetime, end: datetime) -> Firing | None:
    """The newest firing in [start, end) that has an instant of its own."""
    return next(standing(line.newest(start, end)), None)


def closed_until(line: Line, start: datetime, end: datetime, at: datetime) -> datetime:
    """The instant in [start, end] before which every window is closed, and from which none is; found by halving, to the
    second, since an older firing's window never closes later."""
    newest = latest(line, start, end)
    if newest is None or window_closed(line.bounds_of(newest), at):
        return end
    low, high = start, end
    while high - low > ONE_SECOND:
        middle = low + (high - low) / 2
        firing = latest(line, start, middle)
        low, high = (middle, high) if firing is None or window_closed(line.bounds_of(firing), at) else (low, middle)
    return low
