"""Firings: civil times resolved by retained rules (CAL-1..4, CUT-2). Lazily, in order, at the cost of what is asked for.

A trigger lists civil times. Between two changes of the clocks an ordinary one is one instant, at one offset; one that the
clocks read twice follows the fold policy in either stretch; one that they jumped over follows the gap policy and stands at
the jump that swallowed it, also where it was skipped or failed, so that it can be recorded. So a line is walked stretch by
stretch, from either end, already in order, and counted without being listed. Nothing here ever sorts civil times of two
zones.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum

from law.errors import CycleCollision
from law.identity import Cycle, ScheduleName, SourceKey, calendar_key
from law.triggers import CalendarTrigger, back_to, up_to
from law.zone_rules import Stretch, ZoneRules, stretches

SHIFT_MAX = timedelta(hours=26)
"""No clock has ever read further from UTC: a civil time rings within this much of the instant that reads the same."""

JUST_AFTER = timedelta(microseconds=1)
CYCLE_SIGHT = timedelta(days=1500)
CYCLE_SIGHT_COUNT = 40_000
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
    while start < end:
        first = next(trigger.from_civil(start.replace(tzinfo=None) - SHIFT_MAX), None)
        if first is None:
            return
        start = max(start, first.replace(tzinfo=UTC) - SHIFT_MAX)  # a quiet century costs one look
        past = min(end, new_year(start.year + 1))
        for stretch in stretches(rules, start, past):
            yield from rung(trigger, cycle, stretch)
        start = past


def newest_firings(
    trigger: CalendarTrigger, cycle: Cycle, rules: ZoneRules, start: datetime, end: datetime
) -> Iterator[Firing]:
    """The same firings, newest first."""
    start, end = max(start, FIRST_INSTANT), min(end, LAST_INSTANT)
    while start < end:
        last = next(trigger.before_civil(end.replace(tzinfo=None) + SHIFT_MAX), None)
        if last is None:
            return
        end = min(end, last.replace(tzinfo=UTC) + SHIFT_MAX + JUST_AFTER)
        begin = max(start, new_year((end - JUST_AFTER).year))
        for stretch in reversed(stretches(rules, begin, end)):
            yield from rung_newest(trigger, cycle, stretch)
        end = begin


def new_year(year: int) -> datetime:
    """The instant at which a UTC year begins."""
    return datetime(year, 1, 1, tzinfo=UTC)


def rung(trigger: CalendarTrigger, cycle: Cycle, stretch: Stretch) -> Iterator[Firing]:
    """What rings in one stretch, oldest first: first what the clocks jumped over where it begins."""
    if stretch.gap is not None:
        before, after = stretch.gap
        for civil in up_to(trigger.from_civil(before), after):
            yield swallowed(trigger, cycle, civil, stretch.begin)
    first, past = stretch.civil
    yield from read(trigger, cycle, stretch, up_to(trigger.from_civil(first), past))


def rung_newest(trigger: CalendarTrigger, cycle: Cycle, stretch: Stretch) -> Iterator[Firing]:
    """What rings in one stretch, newest first."""
    first, past = stretch.civil
    yield from read(trigger, cycle, stretch, back_to(trigger.before_civil(past), first))
    if stretch.gap is not None:
        before, after = stretch.gap
        for civil in back_to(trigger.before_civil(after), before):
            yield swallowed(trigger, cycle, civil, stretch.begin)


def read(trigger: CalendarTrigger, cycle: Cycle, stretch: Stretch, civil_times: Iterator[datetime]) -> Iterator[Firing]:
    """The firings of civil times that the clocks read in this stretch. At most one is made of each reading, and none is
    lost: a repeated time that is dropped here rings in the neighbouring stretch."""
    zone, shift = trigger.zone, stretch.begin - stretch.civil[0].replace(tzinfo=UTC)
    second_until, first_from = stretch.second_readings_until, stretch.first_readings_from
    for civil in civil_times:
        fold, kind = 0, FiringKind.NORMAL
        if civil < second_until:
            fold, kind = 1, FiringKind.FOLD
        elif civil >= first_from:
            kind = FiringKind.FOLD
        if kind is FiringKind.FOLD and trigger.fold == ("earlier" if fold else "later"):
            continue
        at = civil.replace(tzinfo=UTC) + shift
        yield Firing(calendar_key(cycle, zone, civil, fold), civil, zone, fold, kind, at, at)


def swallowed(trigger: CalendarTrigger, cycle: Cycle, civil: datetime, at: datetime) -> Firing:
    """The firing of a civil time that the clocks jumped over at `at`, which is also the next valid instant."""
    kind = GAP_KINDS[trigger.gap]
    key = calendar_key(cycle, trigger.zone, civil, 0)
    return Firing(key, civil, trigger.zone, 0, kind, at, at if kind is FiringKind.GAP_ADVANCED else None)


def next_firing_at(trigger: CalendarTrigger, cycle: Cycle, rules: ZoneRules, start: datetime) -> datetime | None:
    """The instant of the first firing at or after `start`; None where nothing rings any more."""
    first = next(firings(trigger, cycle, rules, start, LAST_INSTANT), None)
    return first.at if first else None


def count_firings(trigger: CalendarTrigger, rules: ZoneRules, start: datetime, end: datetime) -> int:
    """How many firings have `start <= at < end`, counted by the calendar and never listed."""
    return sum(count_in(trigger, stretch) for stretch in all_stretches(rules, start, end))


def swallowed_at(
    trigger: CalendarTrigger, rules: ZoneRules, start: datetime, end: datetime
) -> Iterator[tuple[datetime, int]]:
    """The instants in [start, end) at which the clocks jumped over some of its civil times, and over how many."""
    for stretch in all_stretches(rules, start, end):
        count = trigger.count(*stretch.gap) if stretch.gap is not None else 0
        if count:
            yield stretch.begin, count


def all_stretches(rules: ZoneRules, start: datetime, end: datetime) -> Iterator[Stretch]:
    """The stretches of any length of time, year by year."""
    start, end = max(start, FIRST_INSTANT), min(end, LAST_INSTANT)
    while start < end:
        past = min(end, new_year(start.year + 1))
        yield from stretches(rules, start, past)
        start = past


def count_in(trigger: CalendarTrigger, stretch: Stretch) -> int:
    """The count of `rung`: what the clocks read, less the readings that the fold policy drops, and what they jumped over."""
    first, past = stretch.civil
    found = trigger.count(first, past)
    if trigger.fold == "earlier":
        found -= trigger.count(first, min(past, stretch.second_readings_until))
    if trigger.fold == "later":
        found -= trigger.count(max(first, stretch.first_readings_from), past)
    return found + (trigger.count(*stretch.gap) if stretch.gap is not None else 0)


def check_cycle(
    schedule: ScheduleName, trigger: CalendarTrigger, cycle: Cycle, rules: ZoneRules, since: datetime
) -> None:
    """Raise CycleCollision if two firings share a cycle as far as can be seen (OCC-1): four years on from the first firing
    at or after `since`, and the whole of an explicit list."""
    if cycle == "nominal":
        return
    first_at = next_firing_at(trigger, cycle, rules, since) or LAST_INSTANT
    past = LAST_INSTANT if trigger.dates else first_at + CYCLE_SIGHT
    seen: dict[SourceKey, Firing] = {}
    for count, firing in enumerate(firings(trigger, cycle, rules, first_at, past)):
        other = seen.setdefault(firing.key, firing)
        if other is not firing:
            raise CycleCollision(
                schedule=schedule, key=firing.key, first=other.civil.isoformat(), second=firing.civil.isoformat()
            )
        if count >= CYCLE_SIGHT_COUNT:
            return
