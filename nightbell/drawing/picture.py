"""What is drawn of a Schedule: rows of civil days, and everything in them in exact seconds (CAL-2, CAL-6, CAL-9). Pure.

A firing is a mark, its window a bar up to its latest start, cut at midnights, and a civil time that the clocks jumped over a
mark at the jump. A day with too many firings to be told apart is drawn by how many there are in each half hour, counted by
the calendar and never listed.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from law.bounds import Bounds, calendar_bounds
from law.errors import BadInput
from law.firings import Firing, FiringKind, count_firings, firings, swallowed_at
from law.schedule import ScheduleDocument
from law.triggers import CalendarTrigger
from law.zone_rules import Jump, ZoneRules
from nightbell.drawing.days import Day, Piece, Place, Rows, pieces, place, place_of_end, repeated, seconds_between
from nightbell.drawing.words import say_firing, say_window

MARKS_MAX, MARKS_A_DAY_MAX = 4_000, 48
"""So many firings are marked one by one, over all days and in one; a day with more is drawn by counts."""

BIN_SECONDS = 1800
BIN = timedelta(seconds=BIN_SECONDS)
A_DAY_SECONDS = 86_400
SWALLOWED = (FiringKind.GAP_SKIPPED, FiringKind.GAP_ADVANCED, FiringKind.GAP_FAILED)


class Part(StrEnum):
    """What a bar means."""

    JITTER = "jitter"
    WINDOW = "window"
    FIRST_READING = "first reading"
    SECOND_READING = "second reading"
    OUTSIDE = "outside"


class End(StrEnum):
    """What a tick means."""

    LATEST_START = "latest start"
    FINISH_BY = "finish by"


@dataclass(frozen=True, slots=True)
class Bar:
    """A stretch of time in one row."""

    piece: Piece
    part: Part


@dataclass(frozen=True, slots=True)
class Tick:
    """A bound of a window."""

    place: Place
    end: End


@dataclass(frozen=True, slots=True)
class Mark:
    """Firings of one kind at one place; `words` says the first of them."""

    place: Place
    kind: FiringKind
    count: int
    words: str


@dataclass(frozen=True, slots=True)
class Cut:
    """Where the clocks jumped forward."""

    place: Place
    jump: Jump


@dataclass(frozen=True, slots=True)
class Bin:
    """How many ring in half an hour."""

    piece: Piece
    count: int


@dataclass(frozen=True, slots=True)
class Picture:
    """Everything that is drawn, and nothing of how."""

    days: tuple[Day, ...]
    rows_seconds: int
    bars: tuple[Bar, ...]
    ticks: tuple[Tick, ...]
    marks: tuple[Mark, ...]
    cuts: tuple[Cut, ...]
    bins: tuple[Bin, ...]
    marks_a_day_max: int
    is_cut_short: bool


def picture_of(document: ScheduleDocument, rules: ZoneRules, rows: Rows) -> Picture:
    """Draw every row: what rings in it inside the stretch, and the windows that reach into it."""
    trigger, days, since, until = calendar_of(document), rows.days, rows.since, rows.until
    found, marks, bins = list[Firing](), list[Mark](), list[Bin]()
    marks_a_day_max = min(MARKS_A_DAY_MAX, MARKS_MAX // len(days))
    for row, day in enumerate(days):
        begin, end = max(since, day.begin), min(until, day.end)
        if count_firings(trigger, rules, begin, end) <= marks_a_day_max:
            found += firings(trigger, document.cycle, rules, begin, end)
        else:
            bins += binned(trigger, rules, Place(row, 0), begin, end, day)
            marks += swallowed_marks(document, rules, days, begin, end)
    windows = list(bounded(document, rules, found))
    return Picture(
        days=days,
        rows_seconds=max(A_DAY_SECONDS, *(day.seconds for day in days)),
        bars=(*clock_bars(days, since, until), *window_bars(document, days, windows)),
        ticks=tuple(window_ticks(days, windows)),
        marks=(*marked(document, days, found, rules, dict(windows)), *marks),
        cuts=tuple(cuts(days)),
        bins=tuple(bins),
        marks_a_day_max=marks_a_day_max,
        is_cut_short=rows.is_cut_short,
    )


def calendar_of(document: ScheduleDocument) -> CalendarTrigger:
    """The calendar of a Schedule that has one. Raises BadInput for one that rings when its source does."""
    if not isinstance(document.trigger, CalendarTrigger):
        raise BadInput(field="trigger.kind", reason="an external trigger has no calendar that could be drawn")
    return document.trigger


def rung_count(trigger: CalendarTrigger, rules: ZoneRules, begin: datetime, end: datetime) -> int:
    """How many ring in [begin, end), without those that a change of the clocks swallowed for good."""
    found = count_firings(trigger, rules, begin, end)
    if trigger.gap != "advance":
        found -= sum(count for _, count in swallowed_at(trigger, rules, begin, end))
    return found


def binned(
    trigger: CalendarTrigger, rules: ZoneRules, row: Place, begin: datetime, end: datetime, day: Day
) -> Iterator[Bin]:
    """The half hours of one day in which anything rings, counted from the day's own begin."""
    for seconds in range(0, day.seconds, BIN_SECONDS):
        low = day.begin + timedelta(seconds=seconds)
        high = min(low + BIN, day.end)
        count = rung_count(trigger, rules, max(begin, low), min(end, high)) if low < end and high > begin else 0
        if count:
            yield Bin(Piece(row.row, seconds, seconds_between(day.begin, high)), count)


def swallowed_marks(
    document: ScheduleDocument, rules: ZoneRules, days: Sequence[Day], begin: datetime, end: datetime
) -> Iterator[Mark]:
    """One mark for all that a change swallowed in a day that is drawn by counts."""
    trigger = calendar_of(document)
    for at, count in swallowed_at(trigger, rules, begin, end):
        first = next(firings(trigger, document.cycle, rules, at, end))
        where = place_of_firing(days, first)
        if where is not None:
            yield Mark(where, first.kind, count, say_firing(first, rules))


def bounded(document: ScheduleDocument, rules: ZoneRules, found: Sequence[Firing]) -> Iterator[tuple[Firing, Bounds]]:
    """The bounds of every firing that has an instant; bounded jitter is drawn when it rings, so that its least is shown."""
    for firing in found:
        if firing.nominal_at is not None:
            yield (
                firing,
                calendar_bounds(document.window, document.jitter, firing, rules, document.schedule, draw=0.0),
            )


def clock_bars(days: Sequence[Day], since: datetime, until: datetime) -> Iterator[Bar]:
    """What is outside of the stretch, and both readings of every time that the clocks read twice."""
    for begin, end in ((days[0].begin, since), (until, days[-1].end)):
        yield from (Bar(piece, Part.OUTSIDE) for piece in pieces(days, begin, end))
    for day in days:
        for jump in day.jumps:
            for stretch, part in zip(repeated(jump) or (), (Part.FIRST_READING, Part.SECOND_READING), strict=False):
                yield from (Bar(piece, part) for piece in pieces(days, *stretch))


def window_bars(
    document: ScheduleDocument, days: Sequence[Day], windows: Sequence[tuple[Firing, Bounds]]
) -> Iterator[Bar]:
    """Where work may begin, and how far jitter may move that: from where it opens if that is known, otherwise from where it
    has opened for certain."""
    jitter = document.jitter.max or timedelta(0)
    ranges, open_for = list[tuple[datetime, datetime]](), list[tuple[datetime, datetime]]()
    for firing, bounds in windows:
        ranges.append((firing.at, firing.at + jitter))
        if (last := bounds.latest_start_at or bounds.finish_by) is not None:
            opens_at = firing.at + jitter if document.jitter.mode == "bounded" else bounds.eligible_at
            open_for.append((opens_at, last))
    for part, stretches in ((Part.JITTER, ranges), (Part.WINDOW, open_for)):
        for begin, end in joined(stretches):
            yield from (Bar(piece, part) for piece in pieces(days, begin, end))


def joined(stretches: Sequence[tuple[datetime, datetime]]) -> Iterator[tuple[datetime, datetime]]:
    """Stretches that overlap as one, so that windows of months cost one bar a day and not one each; those that only meet
    stay two."""
    begin = end = None
    for low, high in sorted(stretch for stretch in stretches if stretch[0] < stretch[1]):
        if begin is None or end is None or low >= end:
            if begin is not None and end is not None:
                yield begin, end
            begin, end = low, high
        end = max(end, high)
    if begin is not None and end is not None:
        yield begin, end


def window_ticks(days: Sequence[Day], windows: Sequence[tuple[Firing, Bounds]]) -> Iterator[Tick]:
    """The bounds of every window that end inside the drawing."""
    for _, bounds in windows:
        for at, end in ((bounds.latest_start_at, End.LATEST_START), (bounds.finish_by, End.FINISH_BY)):
            if at is not None and (where := place_of_end(days, at)) is not None:
                yield Tick(where, end)


def marked(
    document: ScheduleDocument,
    days: Sequence[Day],
    found: Sequence[Firing],
    rules: ZoneRules,
    windows: Mapping[Firing, Bounds],
) -> Iterator[Mark]:
    """A mark for every place and kind, in the order in which they ring."""
    together: dict[tuple[Place, FiringKind], list[Firing]] = {}
    for firing in found:
        if (where := place_of_firing(days, firing)) is not None:
            together.setdefault((where, firing.kind), []).append(firing)
    for (where, kind), alike in together.items():
        words = say_firing(alike[0], rules) + say_window(document, windows.get(alike[0]), alike[0], rules)
        yield Mark(where, kind, len(alike), words)


def place_of_firing(days: Sequence[Day], firing: Firing) -> Place | None:
    """By its instant; one that the clocks jumped over, in the row of the day that it names, also where that day never was."""
    row = (firing.civil.date() - days[0].on).days
    if firing.kind not in SWALLOWED or not 0 <= row < len(days):
        return place(days, firing.at)
    return Place(row, min(max(0, seconds_between(days[row].begin, firing.at)), days[row].seconds))


def cuts(days: Sequence[Day]) -> Iterator[Cut]:
    """Every jump forward."""
    for row, day in enumerate(days):
        for jump in day.jumps:
            if jump.after > jump.before:
                yield Cut(Place(row, seconds_between(day.begin, jump.at)), jump)
