"""The rows of every drawing: civil days as they truly passed, of 23, 24 or 25 hours (CAL-1, CAL-2). Pure.

A day begins at the first instant at which the clocks read its midnight or later, and ends where the next one begins. So the
days of a zone follow one another without a hole, whatever its clocks do: one whose midnight was jumped over begins at the
jump, one that was skipped whole has no length, and an hour that is read twice lies in its row twice. A place in a row is
the seconds that passed since the row began, never a time of day.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from itertools import pairwise

from law.bounds import readings
from law.errors import BadInput
from law.firings import FIRST_INSTANT, LAST_INSTANT
from law.instants import instant_text
from law.zone_rules import Jump, ZoneRules, civil_reading, jumps

DAYS_MAX = 367
"""A leap year that begins and ends inside a day; what is beyond is not drawn, and the drawing says so."""

ONE_DAY, ONE_HOUR, ONE_SECOND = timedelta(days=1), timedelta(hours=1), timedelta(seconds=1)


@dataclass(frozen=True, slots=True)
class Day:
    """One civil day: [begin, end) in UTC, and the changes of the clocks in it."""

    on: date
    begin: datetime
    end: datetime
    jumps: tuple[Jump, ...] = ()

    @property
    def seconds(self) -> int:
        """How long it lasted."""
        return seconds_between(self.begin, self.end)


@dataclass(frozen=True, slots=True)
class Rows:
    """The days that are drawn, and the part of what was asked for that lies in them."""

    days: tuple[Day, ...]
    since: datetime
    until: datetime
    is_cut_short: bool


@dataclass(frozen=True, slots=True)
class Piece:
    """The part of a stretch of time that lies in one row, in seconds since the row began."""

    row: int
    begin_seconds: int
    end_seconds: int


@dataclass(frozen=True, slots=True)
class Place:
    """One instant in one row."""

    row: int
    seconds: int


@dataclass(frozen=True, slots=True)
class Hour:
    """A full hour on the clocks: where it lies in its row, and what they read. `is_again`: they have read it before."""

    seconds: int
    civil: datetime
    is_again: bool


def rows_of(rules: ZoneRules, since: datetime, until: datetime) -> Rows:
    """The rows for [since, until). Raises BadInput for a stretch in which nothing can ring."""
    since, until = max(since, FIRST_INSTANT), min(until, LAST_INSTANT)
    if since >= until:
        known = f"{instant_text(FIRST_INSTANT)} and {instant_text(LAST_INSTANT)}"
        raise BadInput(field="from", reason=f"nothing rings but between {known}, so there is nothing to draw")
    days = days_of(rules, since, until)
    return Rows(tuple(days), since, min(until, days[-1].end), days[-1].end < until)


def days_of(rules: ZoneRules, since: datetime, until: datetime) -> list[Day]:
    """The civil days that [since, until) touches, at most DAYS_MAX of them, the first ones."""
    on = civil_reading(rules, since)[0].date()
    while midnight(rules, on + ONE_DAY) <= since:
        on += ONE_DAY
    begins = [(on, midnight(rules, on))]
    while begins[-1][1] < until and len(begins) <= DAYS_MAX:
        on += ONE_DAY
        begins.append((on, midnight(rules, on)))
    changes = changes_between(rules, begins[0][1], begins[-1][1])
    return [Day(on, begin, end, jumps_in(changes, begin, end)) for (on, begin), (_, end) in pairwise(begins)]


def midnight(rules: ZoneRules, on: date) -> datetime:
    """The first instant at which the clocks read this date, or would have."""
    return readings(datetime.combine(on, time()), rules)[0]


def changes_between(rules: ZoneRules, start: datetime, end: datetime) -> list[Jump]:
    """The changes of the clocks in [start, end), oldest first."""
    found = (jump for year in range(start.year, end.year + 1) for jump in jumps(rules, year))
    return [jump for jump in found if start <= jump.at < end]


def jumps_in(changes: Sequence[Jump], begin: datetime, end: datetime) -> tuple[Jump, ...]:
    """The changes of one day. A day without length has none: the change that swallowed it is the next day's."""
    return tuple(jump for jump in changes if begin <= jump.at < end)


def place(days: Sequence[Day], at: datetime) -> Place | None:
    """Where an instant lies; None outside of the drawing."""
    row = bisect_right(days, at, key=lambda day: day.begin) - 1
    if row < 0 or at >= days[row].end:
        return None
    return Place(row, seconds_between(days[row].begin, at))


def place_of_end(days: Sequence[Day], at: datetime) -> Place | None:
    """Where a stretch ends that ends at `at`: at a midnight, in the row that it closes."""
    row = bisect_left(days, at, key=lambda day: day.begin) - 1
    if row < 0 or at > days[row].end:
        return None
    return Place(row, seconds_between(days[row].begin, at))


def pieces(days: Sequence[Day], begin: datetime, end: datetime) -> Iterator[Piece]:
    """[begin, end) cut at midnights; what lies outside of the drawing is left out."""
    first = max(0, bisect_right(days, begin, key=lambda day: day.begin) - 1)
    for row in range(first, len(days)):
        day = days[row]
        if day.begin >= end:
            return
        low, high = max(begin, day.begin), min(end, day.end)
        if low < high:
            yield Piece(row, seconds_between(day.begin, low), seconds_between(day.begin, high))


def hours_of(rules: ZoneRules, day: Day) -> list[Hour]:
    """Every full hour that the clocks read in a day, in the order in which they read it, its end included."""
    found: list[Hour] = []
    for begin, end in pairwise((day.begin, *(jump.at for jump in day.jumps if jump.at > day.begin), day.end)):
        reading = civil_reading(rules, begin)[0]
        civil = reading.replace(minute=0, second=0, microsecond=0)
        civil += ONE_HOUR if civil < reading else timedelta(0)
        while (at := begin + (civil - reading)) < end or at == end == day.end:
            is_again = any(hour.civil == civil for hour in found)
            found.append(Hour(seconds_between(day.begin, at), civil, is_again))
            civil += ONE_HOUR
    return found


def is_ordinary(rules: ZoneRules, day: Day) -> bool:
    """Whether the time of day is the time since it began, all day long."""
    return (
        not day.jumps and day.seconds == ONE_DAY // ONE_SECOND and civil_reading(rules, day.begin)[0].time() == time()
    )


def repeated(jump: Jump) -> tuple[tuple[datetime, datetime], tuple[datetime, datetime]] | None:
    """Both readings of what the clocks read twice, as instants; None where they did not go back."""
    back = jump.before - jump.after
    return ((jump.at - back, jump.at), (jump.at, jump.at + back)) if back > timedelta(0) else None


def seconds_between(start: datetime, end: datetime) -> int:
    """Whole seconds: no zone has ever changed its clocks inside one."""
    return (end - start) // ONE_SECOND
