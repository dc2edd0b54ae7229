"""Catch-up: what recovery may still consider, and what it must let go (CAL-5, CAL-8, OVL-7).

A firing found within the misfire threshold is simply due. One found later is missed: older than the horizon, it is
skipped; of the others the newest still-eligible one is considered, and every older one is skipped in favour of it. A missed
firing whose window has closed stays a row of its own, to be recorded as the miss it is.

A long outage takes bounded work and space: firings are read newest first, at most ROWS_MAX become rows, and what is older
is counted day by day, never listed, in one range a reason.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from law.bounds import Bounds
from law.durations import Duration
from law.firings import Firing, FiringKind, count_firings, firings, newest_firings
from law.identity import Cycle
from law.reasons import Reason
from law.triggers import CalendarTrigger
from law.zone_rules import ZoneRules

ROWS_MAX = 100
"""How many firings of one Schedule become rows of their own in one look; beyond it they are counted in ranges."""


class CatchUp(BaseModel):
    """`[catch_up]`: pinned with the revision."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    misfire_threshold: Duration = timedelta(seconds=60)
    horizon: Duration = timedelta(days=1)
    mode: Literal["newest"] = Field(default="newest")


@dataclass(frozen=True, slots=True)
class Entry:
    """A firing that becomes a row. `reason` None: it waits to be decided; otherwise it is final at birth."""

    firing: Firing
    bounds: Bounds | None
    found_late: bool
    reason: Reason | None


@dataclass(frozen=True, slots=True)
class SkippedRange:
    """A stretch of firings that were skipped whole: the first and last instant, and how many rang."""

    first_at: datetime
    last_at: datetime
    firing_count: int
    reason: Reason


@dataclass(frozen=True, slots=True)
class Backlog:
    """Everything that rang since the cursor, sorted out; `entries` oldest first."""

    entries: tuple[Entry, ...]
    ranges: tuple[SkippedRange, ...]


BoundsOf = Callable[[Firing], Bounds]


def sort_out(
    trigger: CalendarTrigger,
    cycle: Cycle,
    rules: ZoneRules,
    since: datetime,
    until: datetime,
    bounds_of: BoundsOf,
    at: datetime,
    terms: CatchUp,
) -> Backlog:
    """Sort out what rang in [since, until) at the sample `at`."""
    newest = newest_firings(trigger, cycle, rules, since, until)
    entries: list[Entry] = []
    considered = False
    for firing in newest:
        if len(entries) == ROWS_MAX and found_late(firing, at, terms):
            ranges = leave_out(trigger, cycle, rules, since, firing.at, at, terms)
            return Backlog(tuple(reversed(entries)), ranges)
        entry = judge_found(firing, bounds_of, at, terms, considered)
        considered = considered or (entry.found_late and entry.reason is None and not window_closed(entry.bounds, at))
        entries.append(entry)
    return Backlog(tuple(reversed(entries)), ())


def judge_found(firing: Firing, bounds_of: BoundsOf, at: datetime, terms: CatchUp, considered: bool) -> Entry:
    """What one firing is: due, considered, missed, or let go. `considered`: a newer missed one was taken already."""
    late = found_late(firing, at, terms)
    if firing.kind is FiringKind.GAP_SKIPPED:
        return Entry(firing, None, late, Reason.GAP_SKIPPED)
    if firing.kind is FiringKind.GAP_FAILED:
        return Entry(firing, None, late, Reason.GAP_FAILED)
    bounds = bounds_of(firing)
    if not late:
        return Entry(firing, bounds, late, None)
    if at - firing.at > terms.horizon:
        return Entry(firing, bounds, late, Reason.BEYOND_HORIZON)
    if considered and not window_closed(bounds, at):
        return Entry(firing, bounds, late, Reason.NOT_NEWEST)
    return Entry(firing, bounds, late, None)


def found_late(firing: Firing, at: datetime, terms: CatchUp) -> bool:
    """Whether a firing is missed: first found later than the pinned threshold."""
    return at - firing.at > terms.misfire_threshold


def window_closed(bounds: Bounds | None, at: datetime) -> bool:
    """Whether admission is over for good."""
    ends = (bounds.latest_start_at, bounds.finish_by) if bounds is not None else ()
    return any(end is not None and at >= end for end in ends)


def leave_out(
    trigger: CalendarTrigger,
    cycle: Cycle,
    rules: ZoneRules,
    since: datetime,
    last_at: datetime,
    at: datetime,
    terms: CatchUp,
) -> tuple[SkippedRange, ...]:
    """One range on either side of the horizon for everything in [since, last_at]."""
    just_after = timedelta(microseconds=1)
    reaches = at - terms.horizon
    stretches = (
        (since, min(reaches, last_at + just_after), Reason.BEYOND_HORIZON),
        (max(reaches, since), last_at + just_after, Reason.NOT_NEWEST),
    )
    found = (stretch(trigger, cycle, rules, start, end, reason) for start, end, reason in stretches if start < end)
    return tuple(one for one in found if one is not None)


def stretch(
    trigger: CalendarTrigger, cycle: Cycle, rules: ZoneRules, start: datetime, end: datetime, reason: Reason
) -> SkippedRange | None:
    """The range of everything in [start, end), or None where nothing rang."""
    first = next(firings(trigger, cycle, rules, start, end), None)
    last = next(newest_firings(trigger, cycle, rules, start, end), None)
    if first is None or last is None:
        return None
    return SkippedRange(first.at, last.at, count_firings(trigger, cycle, rules, start, end), reason)
