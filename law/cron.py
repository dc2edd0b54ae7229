"""Cron as a list of civil times, without a zone (CAL-1): five or six fields, names, ranges, steps, lists, `L`, `LW`, `#`,
and the `@daily` family.

The cronsim library reads the fields and says which days match; its day rule is Debian's: a day field that begins with `*`
means that both day fields must match, otherwise either may. The times of a matching day are the product of three fields,
so they are listed in either direction and counted without being listed. What the library would read differently from
classic cron, or accept by accident, is refused first, with a reason:

- `10-10/6` is hour 10 in classic cron and 10, 16, 22 in the library; `1/2` as a day of the week would count to 7 and take
  Sunday in; `L/2` would lose its step. All three are refused.
- `0/15` outside the day of the week is read as `0-59/15`, as most dialects do, although classic cron does not know it.
"""

import re
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from functools import lru_cache
from itertools import dropwhile

from cronsim import CronSim, CronSimError

from law.errors import BadInput

EXPRESSION_LENGTH_MAX = 256
EXPRESSION = re.compile(r"[0-9A-Za-z*,/#@ \t-]+")
NUMBER_LENGTH_MAX = 2
WEEKDAYS = ("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT")
MONTHS = ("JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC")

ALIASES = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}

A_LEAP_YEAR = datetime(2000, 1, 1)
"""Where the search for a first match begins; every pair of leap day and weekday comes within the next 28 years."""

ONE_DAY = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class Cron:
    """A cron expression that was read and is known to fire. `expression` has its aliases spelled out."""

    expression: str
    hours: tuple[int, ...] = field(compare=False)
    minutes: tuple[int, ...] = field(compare=False)
    seconds: tuple[int, ...] = field(compare=False)
    days: CronSim = field(compare=False, repr=False)
    every_day: bool = field(compare=False)

    def from_civil(self, civil: datetime) -> Iterator[datetime]:
        """Its civil times at or after `civil`, oldest first."""
        days = self._days_from(civil.date())
        for day in days:
            if day > civil.date():
                yield from self._times_on(day)
                break
            yield from dropwhile(lambda one: one < civil, self._times_on(day, civil.hour, civil.minute))
        for day in days:
            yield from self._times_on(day)

    def before_civil(self, civil: datetime) -> Iterator[datetime]:
        """Its civil times before `civil`, newest first."""
        days = self._days_to(civil.date())
        for day in days:
            if day < civil.date():
                yield from self._times_back_on(day)
                break
            yield from dropwhile(lambda one: one >= civil, self._times_back_on(day, civil.hour, civil.minute))
        for day in days:
            yield from self._times_back_on(day)

    def count(self, start: datetime, end: datetime) -> int:
        """How many civil times it has in [start, end), counted by days."""
        if start >= end:
            return 0
        on_whole_days = self._count_days(start.date(), end.date()) * self._times_before(None)
        before_start = self._times_before(start) if self.rings_on(start.date()) else 0
        before_end = self._times_before(end) if self.rings_on(end.date()) else 0
        return on_whole_days - before_start + before_end

    def rings_on(self, day: date) -> bool:
        """Whether a civil date has any of its times."""
        return day.month in self.days.months and (self.every_day or self.days.match_day(day))

    def _times_on(self, day: date, hour: int = 0, minute: int = 0) -> Iterator[datetime]:
        """The times of a day from a minute on."""
        year, month, number = day.year, day.month, day.day
        for one in self.hours[bisect_left(self.hours, hour) :]:
            minutes = self.minutes[bisect_left(self.minutes, minute) :] if one == hour else self.minutes
            for other in minutes:
                for second in self.seconds:
                    yield datetime(year, month, number, one, other, second)

    def _times_back_on(self, day: date, hour: int = 23, minute: int = 59) -> Iterator[datetime]:
        """The times of a day up to the end of a minute, newest first."""
        year, month, number = day.year, day.month, day.day
        for one in self.hours[: bisect_left(self.hours, hour + 1)][::-1]:
            minutes = self.minutes[: bisect_left(self.minutes, minute + 1)] if one == hour else self.minutes
            for other in minutes[::-1]:
                for second in self.seconds[::-1]:
                    yield datetime(year, month, number, one, other, second)

    def _times_before(self, civil: datetime | None) -> int:
        """How many of a day's times come before this time of day; all of them for None."""
        a_minute, an_hour = len(self.seconds), len(self.seconds) * len(self.minutes)
        if civil is None:
            return an_hour * len(self.hours)
        seconds = bisect_left(self.seconds, civil.second + bool(civil.microsecond))
        minutes = bisect_left(self.minutes, civil.minute)
        hours = bisect_left(self.hours, civil.hour)
        found = hours * an_hour
        if civil.hour in self.hours:
            found += minutes * a_minute
            found += seconds if civil.minute in self.minutes else 0
        return found

    def _count_days(self, first: date, past: date) -> int:
        if self.every_day and len(self.days.months) == len(MONTHS):
            return (past - first).days
        return sum(1 for _ in iter_until(self._days_from(first), past))

    def _days_from(self, day: date) -> Iterator[date]:
        months = self.days.months
        try:
            while True:
                if day.month not in months:
                    day = (day.replace(day=1) + 32 * ONE_DAY).replace(day=1)
                    continue
                if self.every_day or self.days.match_day(day):
                    yield day
                day += ONE_DAY
        except OverflowError:  # the calendar itself ends
            return

    def _days_to(self, day: date) -> Iterator[date]:
        months = self.days.months
        try:
            while True:
                if day.month not in months:
                    day = day.replace(day=1) - ONE_DAY
                    continue
                if self.every_day or self.days.match_day(day):
                    yield day
                day -= ONE_DAY
        except OverflowError:
            return

    @property
    def day_rule(self) -> str:
        """Which of the two day fields must match, in words."""
        _, _, _, day, _, weekday = self.days.parts
        if day == "*" and weekday == "*":
            return "every day"
        if day == "*" or weekday == "*":
            return f"days of the {'week' if day == '*' else 'month'} as written"
        if day.startswith("*") or weekday.startswith("*"):
            return "a day must match both its day of the month and its day of the week (a field begins with *)"
        return "a day may match either its day of the month or its day of the week (no field begins with *)"


def iter_until(days: Iterator[date], past: date) -> Iterator[date]:
    """The days before `past`."""
    for day in days:
        if day >= past:
            return
        yield day


@lru_cache(maxsize=4096)
def parse_cron(text: str, field: str = "trigger.cron") -> Cron:
    """Read an expression. Raises BadInput naming `field` for what cannot be read, or would never fire."""
    if len(text) > EXPRESSION_LENGTH_MAX:
        raise BadInput(field=field, reason=f"is longer than {EXPRESSION_LENGTH_MAX} characters")
    if not EXPRESSION.fullmatch(text):
        raise BadInput(field=field, reason=f"{text!r} has characters that no cron expression has")
    spelled = ALIASES.get(text.strip().lower(), text).upper().split()
    if any("@" in part for part in spelled):
        known = ", ".join(ALIASES)
        raise BadInput(field=field, reason=f"{text!r} is none of {known}")
    refuse_huge_numbers(spelled, field)
    refuse_two_readings(spelled, field)
    return listed(" ".join(spelled), text, field)


def refuse_huge_numbers(parts: list[str], field: str) -> None:
    """No field of any grammar has a number of three digits."""
    for number in re.findall(r"[0-9]+", " ".join(parts)):
        if len(number) > NUMBER_LENGTH_MAX:
            raise BadInput(field=field, reason=f"{number[:12]} is larger than any field")


def refuse_two_readings(parts: list[str], field: str) -> None:
    """Steps that classic cron and the library read differently: refuse them rather than guess."""
    for position, part in enumerate(parts):
        of_week = position == len(parts) - 1
        for term in part.split(","):
            span, slash, _ = term.partition("/")
            low, dash, high = span.partition("-")
            if not slash or span == "*":
                continue
            if span.startswith("L"):
                raise BadInput(field=field, reason=f"{term!r}: a step has no meaning after {span}")
            if dash and number_of(low) == number_of(high):
                raise BadInput(field=field, reason=f"{term!r} is read in two ways; write {low!r}")
            if not dash and of_week:
                raise BadInput(field=field, reason=f"{term!r} is read in two ways; write the days, or {span}-6/…")


def number_of(name: str) -> str:
    """A field's value as one spelling: `MON` and `01` are `1`."""
    for names, first in ((WEEKDAYS, 0), (MONTHS, 1)):
        if name in names:
            return str(names.index(name) + first)
    return name.lstrip("0") or "0"


def listed(expression: str, text: str, field: str) -> Cron:
    """The expression, if the library can read it and it fires at least once."""
    try:
        sim = CronSim(expression, A_LEAP_YEAR)
        next(CronSim(expression, A_LEAP_YEAR - timedelta(seconds=1)))
    except (CronSimError, ValueError, OverflowError) as problem:
        raise BadInput(
            field=field, reason=f"{text!r} cannot be read: {problem or 'not a cron expression'}"
        ) from problem
    except StopIteration:
        raise BadInput(field=field, reason=f"{text!r} never fires") from None
    every_day = sim.parts[3] == "*" and sim.parts[5] == "*"
    hours, minutes, seconds = (tuple(sorted(some)) for some in (sim.hours, sim.minutes, sim.seconds))
    return Cron(expression, hours, minutes, seconds, sim, every_day)
