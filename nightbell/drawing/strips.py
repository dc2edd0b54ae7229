"""One night as a strip of characters: from the nominal instant to the last bound, along the clocks (CAL-6, CAL-7, CAL-9).

The axis is elapsed time, labelled by what the clocks read; so a repeated hour is as long as any other and stands there
twice, / and then \\, and a swallowed one has no length: only » where it would be. Pure: a strip is text of a given width.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import islice

from rich.text import Text

from law.bounds import Bounds, calendar_bounds
from law.firings import Firing, firings, newest_firings
from law.schedule import ScheduleDocument
from law.zone_rules import ZoneRules, civil_reading
from nightbell.drawing.days import (
    ONE_DAY,
    ONE_SECOND,
    Rows,
    changes_between,
    days_of,
    hours_of,
    midnight,
    repeated,
)
from nightbell.drawing.months import wrapped
from nightbell.drawing.picture import calendar_of
from nightbell.drawing.words import JUST_AFTER, MONTHS, say_firing, say_time, say_window

FIRST_COUNT, CHANGE_COUNT = 3, 4
"""How many strips are drawn: of the first firings, and of those whose window meets a change of the clocks."""

SIGHT_COUNT = 64
HOURS_MAX = timedelta(hours=36)
LABEL = 9
"""A longer strip is labelled by its days, one for so many columns."""
INDENT = 2
NOMINAL, CLOSED, MAYBE, OPEN, LATEST, FINISH = "◆", "░", "▒", "█", "|", "F"
FIRST, SECOND, BACK, FORWARD, TICK, LINE = "/", "\\", "«", "»", "+", "-"
STYLES = {NOMINAL: "bold green", "[░▒]+": "cyan", "█+": "green", r"\|": "bold red", "F$": "bold red"}
CLOCK_STYLES = {r"[/\\«]+": "yellow", "»": "bold magenta"}


@dataclass(frozen=True, slots=True)
class Strip:
    """One firing from its nominal instant to its last bound."""

    firing: Firing
    bounds: Bounds
    begin: datetime
    end: datetime
    jitter_until: datetime

    def column(self, at: datetime, width: int) -> int:
        """The column of an instant; the last bound is the last column."""
        return (at - self.begin) * (width - 1) // max(self.end - self.begin, ONE_SECOND)


def strips(document: ScheduleDocument, rules: ZoneRules, since: datetime, until: datetime) -> list[Strip]:
    """The first firings that have a window, and those whose window meets a change of the clocks, in order."""
    trigger = calendar_of(document)
    if document.window is None:
        return []
    all_strips = (strip_of(document, rules, firing) for firing in firings(trigger, document.cycle, rules, since, until))
    found = {strip.firing: strip for strip in islice(filter(None, all_strips), FIRST_COUNT)}
    for jump in changes_between(rules, since, until)[:CHANGE_COUNT]:
        around = newest_firings(trigger, document.cycle, rules, since, min(until, jump.at + JUST_AFTER))
        for firing in islice(around, SIGHT_COUNT):
            strip = strip_of(document, rules, firing)
            if strip is not None and meets(strip, jump.at):
                found[firing] = strip
                break
    return sorted(found.values(), key=lambda strip: strip.firing.order)


def strip_of(document: ScheduleDocument, rules: ZoneRules, firing: Firing) -> Strip | None:
    """The strip of one firing; one that has no instant has none."""
    if firing.nominal_at is None:
        return None
    bounds = calendar_bounds(document.window, document.jitter, firing, rules, document.schedule, draw=0.0)
    jitter_until = firing.nominal_at + (document.jitter.max or timedelta(0))
    ends = [at for at in (bounds.latest_start_at, bounds.finish_by) if at is not None]
    return Strip(firing, bounds, firing.nominal_at, max(ends, default=jitter_until), jitter_until)


def meets(strip: Strip, at: datetime) -> bool:
    """Whether a change lies in a strip, also where it is what made it ring."""
    return strip.begin <= at < strip.end or strip.begin == at


def strip_lines(document: ScheduleDocument, rules: ZoneRules, rows: Rows, width: int) -> Iterator[Text]:
    """Every strip with its sentence, and what its characters mean."""
    found = strips(document, rules, rows.since, rows.until)
    room = max(24, min(width, 80) - 2 * INDENT)
    is_drawn = document.jitter.mode == "bounded"
    for strip in found:
        yield Text("")
        sentence = say_firing(strip.firing, rules) + say_window(document, strip.bounds, strip.firing, rules)
        yield from wrapped("", sentence, width)
        yield Text(" " * INDENT + label_line(strip, rules, room))
        yield coloured(" " * INDENT + clock_line(strip, rules, room), CLOCK_STYLES)
        yield coloured(" " * INDENT + window_line(strip, room, is_drawn), STYLES)
    if found:
        yield Text("")
        yield from wrapped("", legend(document), width)


def label_line(strip: Strip, rules: ZoneRules, width: int) -> str:
    """What the clocks read, at as many ticks as there is room for, the begin and the end first."""
    ends = [(at, say_time(civil_reading(rules, at)[0])) for at in (strip.begin, strip.end)]
    line, taken = [" "] * (width + INDENT), list[tuple[int, int]]()
    for at, text in [*ends, *ticks_in(strip, rules, width)]:
        begin = min(strip.column(at, width), width + INDENT - len(text))
        if all(begin > past or begin + len(text) < low for low, past in taken):
            line[begin : begin + len(text)] = text
            taken.append((begin, begin + len(text)))
    return "".join(line).rstrip()


def clock_line(strip: Strip, rules: ZoneRules, width: int) -> str:
    """The axis: full hours or days, both readings of what is read twice, and where the clocks jump."""
    line = [LINE] * width
    for at, _ in ticks_in(strip, rules, width):
        line[strip.column(at, width)] = TICK
    for jump in changes_between(rules, strip.begin - timedelta(days=2), strip.end + timedelta(days=2)):
        for (begin, end), sign in zip(repeated(jump) or (), (FIRST, SECOND), strict=False):
            fill(line, strip, width, begin, end, sign)
        if strip.begin <= jump.at <= strip.end:
            line[strip.column(jump.at, width)] = BACK if repeated(jump) else FORWARD
    return "".join(line)


def window_line(strip: Strip, width: int, is_drawn_later: bool) -> str:
    """When it may begin: ◆ the nominal instant, ░ not yet, ▒ open or not as jitter falls, █ open, | too late."""
    line = [" "] * width
    last = strip.bounds.latest_start_at or strip.end
    opens_at = strip.begin if is_drawn_later else strip.bounds.eligible_at
    fill(line, strip, width, strip.begin, opens_at, CLOSED)
    fill(line, strip, width, opens_at, min(last, strip.jitter_until), MAYBE)
    fill(line, strip, width, max(opens_at, strip.jitter_until), last, OPEN)
    line[0] = NOMINAL
    if strip.bounds.latest_start_at is not None:
        line[strip.column(strip.bounds.latest_start_at, width)] = LATEST
    if strip.bounds.finish_by is not None:
        line[strip.column(strip.bounds.finish_by, width)] = FINISH
    return "".join(line)


def fill(line: list[str], strip: Strip, width: int, begin: datetime, end: datetime, sign: str) -> None:
    """Fill the columns of [begin, end), as far as they lie in the strip."""
    begin, end = max(begin, strip.begin), min(end, strip.end)
    for column in range(strip.column(begin, width), strip.column(end, width)) if begin < end else ():
        line[column] = sign


def ticks_in(strip: Strip, rules: ZoneRules, width: int) -> Iterator[tuple[datetime, str]]:
    """The full hours of a strip with what the clocks read; of one that is longer than HOURS_MAX, as many midnights as can
    be labelled."""
    if strip.end - strip.begin <= HOURS_MAX:
        for day in days_of(rules, strip.begin, strip.end + ONE_SECOND):
            for hour in hours_of(rules, day):
                at = day.begin + timedelta(seconds=hour.seconds)
                if strip.begin <= at <= strip.end:
                    yield at, say_time(hour.civil)
        return
    step = ONE_DAY * -(-(strip.end - strip.begin) * LABEL // (width * ONE_DAY))
    on = civil_reading(rules, strip.begin)[0].date() + step
    while (at := midnight(rules, on)) <= strip.end:
        yield at, f"{on.day} {MONTHS[on.month - 1]}"
        on += step


def coloured(line: str, styles: Mapping[str, str]) -> Text:
    """Colour for the signs; the line means the same without it."""
    text = Text(line)
    for signs, style in styles.items():
        text.highlight_regex(signs, style)
    return text


def legend(document: ScheduleDocument) -> str:
    """What the signs mean that can occur."""
    jitter = {
        "none": "",
        "deterministic": f"{CLOSED} not yet, by jitter; {MAYBE} open, inside the jitter range; ",
        "bounded": f"{MAYBE} opens in here, as jitter falls; ",
    }[document.jitter.mode]
    finish = document.window is not None and (document.window.finish_within or document.window.finish_by_civil)
    return (
        f"{NOMINAL} nominal instant; {jitter}{OPEN} may begin; {LATEST} latest start, too late"
        f"{f'; {FINISH} finish by' if finish else ''}. On the clocks: {FIRST * 3}{BACK}{SECOND * 3} a time that is read "
        f"twice; {FORWARD} a time that is jumped over."
    )
