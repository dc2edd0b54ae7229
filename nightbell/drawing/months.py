"""The calendar in a terminal: months of days that ring, and in words every change of the clocks and what it did (CAL-2).

A day's mark is the ring •, beneath it the count where there are several, and « or » where the clocks go back or forward. So
it reads the same without colour, and the months stand beside one another as far as the width goes.
"""

import calendar
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from itertools import zip_longest

from rich.text import Text

from law.schedule import ScheduleDocument
from law.zone_rules import Jump, ZoneRules
from nightbell.drawing.days import DAYS_MAX, Rows, repeated
from nightbell.drawing.picture import calendar_of, rung_count
from nightbell.drawing.words import MONTHS, WEEKDAYS, Change, changes, say_change, say_date, say_special

CELL = 5
MONTH_WIDTH, MONTH_GAP = 7 * CELL, 4
TEXT_WIDTH = 80
RINGS, BACK, FORWARD = "•", "«", "»"
STYLES = {RINGS: "bold green", BACK: "bold yellow", FORWARD: "bold magenta"}


@dataclass(frozen=True, slots=True)
class Square:
    """One day in the calendar."""

    on: date
    count: int
    change: str = ""

    @property
    def top(self) -> str:
        """The day's number, whether it rings, and whether the clocks change."""
        return f"{self.on.day:2}{RINGS if self.count else ' '}{self.change}".ljust(CELL)

    @property
    def below(self) -> str:
        """How many, where there are several."""
        return (say_count(self.count) if self.count > 1 else "").rjust(3).ljust(CELL)


def squares(document: ScheduleDocument, rules: ZoneRules, rows: Rows) -> list[Square]:
    """Every civil day that is drawn, with how many ring in it inside the stretch."""
    trigger = calendar_of(document)
    marks = dict(change_mark(jump) for day in rows.days for jump in day.jumps)
    return [
        Square(
            day.on,
            rung_count(trigger, rules, max(rows.since, day.begin), min(rows.until, day.end)),
            marks.get(day.on, ""),
        )
        for day in rows.days
    ]


def change_mark(jump: Jump) -> tuple[date, str]:
    """The mark of a change, on the day whose time it repeats or swallows."""
    return (jump.after.date(), BACK) if repeated(jump) else (jump.before.date(), FORWARD)


def calendar_lines(document: ScheduleDocument, rules: ZoneRules, rows: Rows, width: int) -> Iterator[Text]:
    """The whole calendar, line by line, never wider than `width` where that is at least one month."""
    found = squares(document, rules, rows)
    abreast = max(1, (width + MONTH_GAP) // (MONTH_WIDTH + MONTH_GAP))
    months = [list(month_lines(year, month, days)) for (year, month), days in by_month(found).items()]
    for begin in range(0, len(months), abreast):
        for side_by_side in zip_longest(*months[begin : begin + abreast], fillvalue=" " * MONTH_WIDTH):
            yield styled((" " * MONTH_GAP).join(side_by_side).rstrip())
        yield Text("")
    legend = f"{RINGS} rings, with the count where there are several   {BACK} clocks go back   {FORWARD} forward"
    yield from wrapped("", legend, width)
    if rows.is_cut_short:
        yield from wrapped("", f"Drawn until {say_date(found[-1].on)}: at most {DAYS_MAX} days.", width)
    yield from change_lines(document, rules, changes(document, rules, rows.since, rows.until), width)


def by_month(found: Iterable[Square]) -> Mapping[tuple[int, int], dict[int, Square]]:
    """The squares of every month, by the day of the month."""
    months: dict[tuple[int, int], dict[int, Square]] = {}
    for square in found:
        months.setdefault((square.on.year, square.on.month), {})[square.on.day] = square
    return months


def month_lines(year: int, month: int, days: Mapping[int, Square]) -> Iterator[str]:
    """One month: its name, the weekdays, and a line or two for every week that has a day in the stretch."""
    yield f"{MONTHS[month - 1]} {year}".ljust(MONTH_WIDTH)
    yield "".join(day[:2].ljust(CELL) for day in WEEKDAYS)
    for week in calendar.monthcalendar(year, month):
        known = [days.get(day) for day in week]
        if any(known):
            yield "".join(square.top if square else " " * CELL for square in known)
            if any(square and square.below.strip() for square in known):
                yield "".join(square.below if square else " " * CELL for square in known)


def change_lines(document: ScheduleDocument, rules: ZoneRules, found: Sequence[Change], width: int) -> Iterator[Text]:
    """Every change in words, and under it the firings that met it."""
    for one in found:
        mark = BACK if repeated(one.jump) else FORWARD
        yield Text("")
        yield from wrapped(f"{mark} ", say_change(calendar_of(document), one.jump), width)
        for sentence in say_special(one, rules):
            yield from wrapped("  ", sentence, width)


def wrapped(lead: str, sentence: str, width: int) -> Iterator[Text]:
    """A sentence behind its lead, its further lines indented as far."""
    wide = min(width, TEXT_WIDTH)
    for line in textwrap.wrap(sentence, wide, initial_indent=lead, subsequent_indent=" " * (len(lead) + 2)):
        yield styled(line)


def styled(line: str) -> Text:
    """Colour for the marks; the line means the same without it."""
    text = Text(line)
    for mark, style in STYLES.items():
        text.highlight_regex(mark, style)
    return text


def say_count(count: int) -> str:
    """At most four characters: `24`, `1440`, `86k`."""
    return str(count) if count < 10_000 else f"{count // 1000}k"
