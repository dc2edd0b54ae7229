"""Firings: civil times resolved by retained rules (CAL-1..4, CUT-2). Lazily, in order, at the cost of what is asked for.

A trigger lists civil times; each is resolved on its own: an ordinary one is one instant, a repeated one follows the fold
policy, a nonexistent one follows the gap policy. A civil time that was skipped or failed is a firing too: it stands at the
transition that swallowed it, so that it can be recorded. Nothing here ever sorts civil times of two zones.
"""

import heapq
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from enum import StrEnum

from law.errors import CycleCollision
from law.identity import Cycle, ScheduleName, SourceKey, calendar_key
from law.triggers import CalendarTrigger
from law.zone_rules import Missing, Normal, Repeated, ZoneRules, civil_reading, resolve

SHIFT_MAX = timedelta(hours=26)
"""No zone has ever jumped further; a civil search begins this much before the instant that is asked about."""

ONE_DAY = timedelta(days=1)
CYCLE_SIGHT = timedelta(days=1500)
CYCLE_SIGHT_COUNT = 2_000
"""How far registration looks for two firings in one cycle: four years, or this many firings."""

FIRST_INSTANT = datetime(1800, 1, 3, tzinfo=UTC)
LAST_INSTANT = datetime(9990, 1, 1, tzinfo=UTC)


class FiringKind(StrEnum):
    """How a civil time met the clock."""

    NORMAL = "normal"
    FOLD = "fold"
    GAP_SKIPPED = "gap_skipped"
    GAP_ADVANCED = "gap_advanced"
    GAP_FAILED = "gap_failed"


GAP_KINDS = {"skip": FiringKind.GAP_SKIPPED, "advance": FiringKind.GAP_ADVANCED, "fail": FiringKind.GAP_FAILED}


@dataclass(frozen=True, slots=True)
class Firing:
    """One source firing of a calendar. `at` is its instant, or the transition that swallowed it; `nominal_at` is None then."""

    key: SourceKey
    civil: datetime
    zone: str
    fold: int
    kind: FiringKind
    at: datetime
    nominal_at: datetime | None

    @property
    def order(self) -> tuple[datetime, datetime, int]:
        """The order of one line: by instant, then civil time, then fold member."""
        return self.at, self.civil, self.fold


def firings(
    trigger: CalendarTrigger, cycle: Cycle, rules: ZoneRules, start: datetime, end: datetime
) -> Iterator[Firing]:
    """Firings with `start <= at < end` (aware UTC), oldest first by (at, civil, fold)."""
    start, end = max(start, FIRST_INSTANT), min(end, LAST_INSTANT)
    if start >= end:
        return
    waiting: list[tuple[tuple[datetime, datetime, int], Firing]] = []
    for civil in trigger.from_civil(civil_reading(rules, start)[0] - SHIFT_MAX):
        reached = civil.replace(tzinfo=UTC) - SHIFT_MAX  # nothing later in the list can ring before this
        while waiting and waiting[0][1].at < reached:
            yield heapq.heappop(waiting)[1]
        if reached >= end:
            break
        for firing in resolved(trigger, cycle, rules, civil):
            if start <= firing.at < end:
                heapq.heappush(waiting, (firing.order, firing))
    while waiting:
        yield heapq.heappop(waiting)[1]


def newest_firings(
    trigger: CalendarTrigger, cycle: Cycle, rules: ZoneRules, start: datetime, end: datetime
) -> Iterator[Firing]:
    """The same firings, newest first."""
    start, end = max(start, FIRST_INSTANT), min(end, LAST_INSTANT)
    if start >= end:
        return
    waiting: list[tuple[tuple[float, float, int], Firing]] = []
    for civil in trigger.before_civil(civil_reading(rules, end)[0] + SHIFT_MAX):
        reached = civil.replace(tzinfo=UTC) + SHIFT_MAX
        while waiting and waiting[0][1].at > reached:
            yield heapq.heappop(waiting)[1]
        if reached < start:
            break
        for firing in resolved(trigger, cycle, rules, civil):
            if start <= firing.at < end:
                heapq.heappush(waiting, (newest_order(firing), firing))
    while waiting:
        yield heapq.heappop(waiting)[1]


def newest_order(firing: Firing) -> tuple[float, float, int]:
    """The reverse of `Firing.order`, as numbers."""
    return -firing.at.timestamp(), -firing.civil.replace(tzinfo=UTC).timestamp(), -firing.fold


def next_firing_at(trigger: CalendarTrigger, cycle: Cycle, rules: ZoneRules, start: datetime) -> datetime | None:
    """The instant of the first firing at or after `start`; None where nothing rings any more."""
    first = next(firings(trigger, cycle, rules, start, LAST_INSTANT), None)
    return first.at if first else None


def count_firings(trigger: CalendarTrigger, cycle: Cycle, rules: ZoneRules, start: datetime, end: datetime) -> int:
    """How many firings have `start <= at < end`, without listing them: whole ordinary days are counted by the calendar,
    and only their edges and the days on which the clocks change are listed."""
    count = 0
    while start < end:
        day = civil_reading(rules, start)[0].date()
        before, begins, ends = (midnight(rules, day + ONE_DAY * days) for days in (-1, 0, 1))
        if (
            begins == start
            and ends is not None
            and ends <= end
            and before == start - ONE_DAY
            and ends == start + ONE_DAY
        ):
            count, start = count + trigger.count_on(day), ends
            continue
        until = min(end, ends or start + ONE_DAY)
        count, start = count + sum(1 for _ in firings(trigger, cycle, rules, start, until)), until
    return count


def midnight(rules: ZoneRules, day: date) -> datetime | None:
    """The instant at which a civil date begins; None where its midnight is missing or repeated."""
    match resolve(rules, datetime(day.year, day.month, day.day)):
        case Normal(at):
            return at
        case _:
            return None


def resolved(trigger: CalendarTrigger, cycle: Cycle, rules: ZoneRules, civil: datetime) -> Iterator[Firing]:
    """What one civil time comes to under the trigger's policies: no firing is ever lost here, at most two are made."""

    def firing(fold: int, kind: FiringKind, at: datetime, nominal_at: datetime | None) -> Firing:
        key = calendar_key(cycle, trigger.zone, civil, fold)
        return Firing(key, civil, trigger.zone, fold, kind, at, nominal_at)

    match resolve(rules, civil):
        case Normal(at):
            yield firing(0, FiringKind.NORMAL, at, at)
        case Repeated(earlier, later):
            if trigger.fold in ("earlier", "both"):
                yield firing(0, FiringKind.FOLD, earlier, earlier)
            if trigger.fold in ("later", "both"):
                yield firing(1, FiringKind.FOLD, later, later)
        case Missing(transition_at):
            kind = GAP_KINDS[trigger.gap]
            yield firing(0, kind, transition_at, transition_at if kind is FiringKind.GAP_ADVANCED else None)


def check_cycle(
    schedule: ScheduleName, trigger: CalendarTrigger, cycle: Cycle, rules: ZoneRules, since: datetime
) -> None:
    """Raise CycleCollision if two firings share a cycle as far as can be seen from `since` (OCC-1)."""
    if cycle == "nominal":
        return
    seen: dict[SourceKey, Firing] = {}
    for count, firing in enumerate(firings(trigger, cycle, rules, since, since + CYCLE_SIGHT)):
        other = seen.setdefault(firing.key, firing)
        if other is not firing:
            raise CycleCollision(
                schedule=schedule, key=firing.key, first=other.civil.isoformat(), second=firing.civil.isoformat()
            )
        if count >= CYCLE_SIGHT_COUNT:
            return
