"""RFC 5545 recurrence rules, listed: civil times without a zone, from either end, and counted without being listed (CAL-1).

Days first, then times of day. Which days of a year match is worked out once for each of the 400 kinds of year; the times of
a day repeat by residue of the interval. So a rule costs what it yields, a rule that never fires is known after four
centuries of days, and nothing here can be made to run for ever. (The well-known library lists forwards only, and searches
for a match without any bound; it is the oracle of our tests instead.)

A rule's start rings only if it matches. A rule that is silent for four centuries is over.
"""

from array import array
from bisect import bisect_left
from calendar import monthrange
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from functools import lru_cache
from itertools import groupby, islice
from typing import Self

from law.errors import BadInput
from law.rrule import FIELD, DayRule, Frequency, Rule

SILENT_YEARS_MAX = 400
LAST_YEAR = 9_998
A_DAY = timedelta(days=1)
DAY_SECONDS = 86_400
UNIT_SECONDS = {Frequency.HOURLY: 3_600, Frequency.MINUTELY: 60, Frequency.SECONDLY: 1}
"""Periods shorter than a day, in seconds."""


@dataclass(frozen=True, slots=True)
class Recurrence:
    """A rule that is known to fire, and its last civil time where it has one."""

    rule: Rule
    last: datetime | None

    @classmethod
    def of(cls, rule: Rule) -> Self:
        """Take a rule; COUNT becomes the civil time it ends with. Raises BadInput for a rule that never fires."""
        endless = cls(rule, rule.until)
        if next(endless.from_civil(rule.start), None) is None:
            raise BadInput(field=FIELD, reason="never fires")
        if rule.count is None:
            return endless
        return cls(rule, next(islice(endless.from_civil(rule.start), rule.count - 1, None), None))

    def from_civil(self, civil: datetime) -> Iterator[datetime]:
        """Its civil times at or after `civil`, oldest first."""
        civil, heard = max(civil, self.rule.start), max(civil, self.rule.start).year
        for days in periods(self.rule, civil.date(), backwards=False):
            for one in times_of(self.rule, days, civil):
                if self.last is not None and one > self.last:
                    return
                heard = one.year
                yield one
            if days[0].year - heard > SILENT_YEARS_MAX:
                return

    def before_civil(self, civil: datetime) -> Iterator[datetime]:
        """Its civil times before `civil`, newest first."""
        if self.last is not None:
            civil = min(civil, self.last + timedelta(seconds=1))
        heard = civil.year
        for days in periods(self.rule, civil.date(), backwards=True):
            for one in times_back_of(self.rule, days, civil):
                if one < self.rule.start:
                    return
                heard = one.year
                yield one
            if heard - days[0].year > SILENT_YEARS_MAX or days[-1] < self.rule.start.date():
                return

    def count(self, start: datetime, end: datetime) -> int:
        """How many civil times it has in [start, end): by days, or by periods where it has positions."""
        start = max(start, self.rule.start)
        end = min(end, self.last + timedelta(seconds=1)) if self.last is not None else end
        if start >= end:
            return 0
        past = (end - timedelta(microseconds=1)).date()
        found = 0
        for days in periods(self.rule, start.date(), backwards=False):
            if days[0] > past:
                break
            if chooses(self.rule):
                found += sum(1 for one in times_of(self.rule, days, start) if one < end)
                continue
            times = times_on(self.rule, days[0])
            low = bisect_left(times, (start - midnight(days[0])).total_seconds()) if days[0] == start.date() else 0
            high = bisect_left(times, (end - midnight(days[0])).total_seconds()) if days[0] == past else len(times)
            found += high - low
        return found


def chooses(rule: Rule) -> bool:
    """Whether positions choose among the times of a period of at least a day; shorter periods choose inside a day."""
    return bool(rule.positions) and rule.frequency <= Frequency.DAILY


def times_of(rule: Rule, days: Sequence[date], civil: datetime) -> Iterator[datetime]:
    """The civil times of one period at or after `civil`, oldest first. `days`: its matching days, in order."""
    if chooses(rule):
        yield from (one for one in chosen(rule, days) if one >= civil)
        return
    for day in days:
        times, begins = times_on(rule, day), midnight(day)
        first = bisect_left(times, (civil - begins).total_seconds()) if day <= civil.date() else 0
        for index in range(first, len(times)):
            yield begins + timedelta(seconds=times[index])


def times_back_of(rule: Rule, days: Sequence[date], civil: datetime) -> Iterator[datetime]:
    """The civil times of one period before `civil`, newest first."""
    if chooses(rule):
        yield from (one for one in reversed(chosen(rule, days)) if one < civil)
        return
    for day in reversed(days):
        times, begins = times_on(rule, day), midnight(day)
        past = bisect_left(times, (civil - begins).total_seconds()) if day >= civil.date() else len(times)
        for index in range(past - 1, -1, -1):
            yield begins + timedelta(seconds=times[index])


def chosen(rule: Rule, days: Sequence[date]) -> list[datetime]:
    """The positions of a period's times that the rule names, in order."""
    times = times_on(rule, days[0])
    if not times:
        return []
    found = places(rule.positions, len(days) * len(times))
    return [midnight(days[place // len(times)]) + timedelta(seconds=times[place % len(times)]) for place in found]


def places(positions: Iterable[int], length: int) -> list[int]:
    """Positions, counted from one or from the end, as indexes into that many members."""
    found = {position - 1 if position > 0 else length + position for position in positions}
    return sorted(place for place in found if 0 <= place < length)


def midnight(day: date) -> datetime:
    """The civil time at which a day begins."""
    return datetime(day.year, day.month, day.day)


def periods(rule: Rule, day: date, *, backwards: bool) -> Iterator[list[date]]:
    """The matching days of one period after another, from the one that holds `day`; each on its own unless positions need
    the whole period."""
    if not chooses(rule):
        yield from ([one] for one in matching_days(rule, day, backwards=backwards))
        return
    if rule.frequency is Frequency.DAILY and not places(rule.positions, len(times_on(rule, day))):
        return
    edge = period_end(rule, day) if backwards else period_begin(rule, day)
    days = matching_days(rule, edge, backwards=backwards)
    for _, members in groupby(days, key=lambda one: period_of(rule, one)):
        yield sorted(members)


def period_of(rule: Rule, day: date) -> int:
    """The number of the period that holds a day."""
    match rule.frequency:
        case Frequency.YEARLY:
            return day.year
        case Frequency.MONTHLY:
            return day.year * 12 + day.month - 1
        case Frequency.WEEKLY:
            return (day.toordinal() - 1 - rule.days.week_start) // 7  # ordinal 1 was a Monday
        case _:
            return day.toordinal()


def period_begin(rule: Rule, day: date) -> date:
    """The first day of the period that holds a day."""
    match rule.frequency:
        case Frequency.YEARLY:
            return day.replace(month=1, day=1)
        case Frequency.MONTHLY:
            return day.replace(day=1)
        case Frequency.WEEKLY:
            return day - A_DAY * ((day.weekday() - rule.days.week_start) % 7)
        case _:
            return day


def period_end(rule: Rule, day: date) -> date:
    """The last day of the period that holds a day."""
    match rule.frequency:
        case Frequency.YEARLY:
            return day.replace(month=12, day=31)
        case Frequency.MONTHLY:
            return (day.replace(day=1) + 32 * A_DAY).replace(day=1) - A_DAY
        case Frequency.WEEKLY:
            return period_begin(rule, day) + 6 * A_DAY
        case _:
            return day


def matching_days(rule: Rule, day: date, *, backwards: bool) -> Iterator[date]:
    """The days from `day` on that match and lie in one of the rule's own periods, forwards or backwards."""
    years = range(day.year, rule.start.year - 2, -1) if backwards else range(day.year, LAST_YEAR + 1)
    heard = day.year
    for year in years:
        if abs(year - heard) > SILENT_YEARS_MAX:
            return
        numbers = days_of_year(rule.days, 2000 + year % 400)
        if rule.frequency is Frequency.YEARLY and (year - rule.start.year) % rule.interval:
            continue
        new_year = date(year, 1, 1)
        for number in reversed(numbers) if backwards else numbers:
            one = new_year + A_DAY * number
            if (one <= day if backwards else one >= day) and is_own(rule, one):
                heard = year
                yield one


def is_own(rule: Rule, day: date) -> bool:
    """Whether the interval reaches this day, and any time of it."""
    if rule.frequency in (Frequency.MONTHLY, Frequency.WEEKLY, Frequency.DAILY):
        return (period_of(rule, day) - period_of(rule, rule.start.date())) % rule.interval == 0
    return rule.frequency is Frequency.YEARLY or bool(times_on(rule, day))


def times_on(rule: Rule, day: date) -> Sequence[int]:
    """The times of a matching day in seconds, in order. They depend on the day only by the residue of the interval."""
    unit = UNIT_SECONDS.get(rule.frequency)
    if unit is None:
        return times_from(rule.hours, rule.minutes, rule.seconds, (), DAY_SECONDS, 0, 1)
    begins = (day.toordinal() - rule.start.toordinal()) * (DAY_SECONDS // unit)
    first = ((rule.start.hour * 60 + rule.start.minute) * 60 + rule.start.second) // unit - begins
    first %= rule.interval
    if first >= DAY_SECONDS // unit:
        return ()
    return times_from(rule.hours, rule.minutes, rule.seconds, rule.positions, unit, first, rule.interval)


@lru_cache(maxsize=128)
def times_from(
    hours: frozenset[int],
    minutes: frozenset[int],
    seconds: frozenset[int],
    positions: tuple[int, ...],
    unit: int,
    first: int,
    interval: int,
) -> Sequence[int]:
    """Times of day in seconds: every `interval`-th unit of so many seconds from the `first` on, and in it what is asked for."""
    found = array("I")
    for begins in range(first * unit, DAY_SECONDS, interval * unit):
        inside = list(finer(begins, unit, hours, minutes, seconds))
        found.extend([inside[place] for place in places(positions, len(inside))] if positions else inside)
    return found


def finer(
    begins: int, unit: int, hours: frozenset[int], minutes: frozenset[int], seconds: frozenset[int]
) -> Iterator[int]:
    """The times in one unit that begins at this second of the day. An empty set restricts nothing."""
    for hour in range(begins // 3_600, (begins + unit + 3_599) // 3_600):
        if hours and hour not in hours:
            continue
        for minute in [begins // 60 % 60] if unit < 3_600 else sorted(minutes):
            if minutes and minute not in minutes:
                continue
            for second in [begins % 60] if unit < 60 else sorted(seconds):
                if not seconds or second in seconds:
                    yield (hour * 60 + minute) * 60 + second


@lru_cache(maxsize=4_096)
def days_of_year(rule: DayRule, year: int) -> tuple[int, ...]:
    """The days of a year that match, from 0. A year is one of 400 kinds: the calendar repeats after that."""
    new_year, length = date(year, 1, 1), (date(year + 1, 1, 1) - date(year, 1, 1)).days
    return tuple(number for number in range(length) if matches(rule, new_year + A_DAY * number, number, length))


def matches(rule: DayRule, day: date, number: int, length: int) -> bool:
    """Whether a day matches each part that is given. `number` is its place in a year of `length` days, from 0."""
    if rule.months and day.month not in rule.months:
        return False
    _, month_length = monthrange(day.year, day.month)
    return (
        (not rule.month_days or not rule.month_days.isdisjoint((day.day, day.day - month_length - 1)))
        and (not rule.year_days or not rule.year_days.isdisjoint((number + 1, number - length)))
        and (not rule.week_numbers or not rule.week_numbers.isdisjoint(week_of(day, rule.week_start)))
        and (not rule.weekdays or matches_weekday(rule, day, number, length, month_length))
    )


def matches_weekday(rule: DayRule, day: date, number: int, length: int, month_length: int) -> bool:
    """Whether a day is one of the weekdays, at one of its ordinals within its month or year."""
    place, span = (day.day - 1, month_length) if rule.by_month else (number, length)
    ordinals = (0, place // 7 + 1, (place - span) // 7)
    return any((ordinal, day.weekday()) in rule.weekdays for ordinal in ordinals)


def week_of(day: date, week_start: int) -> tuple[int, int]:
    """The number of a day's week, counted from one and from the end. A week belongs to the year that has most of it."""
    begins = day - A_DAY * ((day.weekday() - week_start) % 7)
    year = (begins + 3 * A_DAY).year
    first = first_week(year, week_start)
    weeks = (first_week(year + 1, week_start) - first).days // 7
    number = (begins - first).days // 7 + 1
    return number, number - weeks - 1


def first_week(year: int, week_start: int) -> date:
    """The day on which the first week of a year begins: the week that holds January 4."""
    inside = date(year, 1, 4)
    return inside - A_DAY * ((inside.weekday() - week_start) % 7)
