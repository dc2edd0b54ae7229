"""What `preview` draws: days as long as they were, an hour that is repeated drawn twice, one that never was a cut (CAL-2)."""

import json
import os
import re
import shlex
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from law.errors import BadInput
from law.firings import FiringKind, count_firings
from law.schedule import ScheduleDocument, check_document
from law.triggers import CalendarTrigger
from nightbell import cli
from nightbell.commands.firings import read_file
from nightbell.drawing import files
from nightbell.drawing.days import DAYS_MAX, Day, Piece, Place, days_of, hours_of, is_ordinary, pieces, place, rows_of
from nightbell.drawing.months import calendar_lines, squares
from nightbell.drawing.picture import MARKS_MAX, End, Part, Picture, joined, picture_of
from nightbell.drawing.sheet import LEFT, PLOT, Sheet
from nightbell.drawing.strips import clock_line, label_line, strip_lines, strips, window_line
from nightbell.drawing.svg import svg_text
from nightbell.drawing.svg_legend import notes, signs
from nightbell.drawing.words import changes, say_change, say_for, say_special, say_window
from store.zone_rules import installed_rules

ROOT = Path(__file__).resolve().parents[2]
NIGHTLY = ROOT / "schedules" / "nightly-rite.toml"
BRATISLAVA, HAVANA, APIA, LORD_HOWE = "Europe/Bratislava", "America/Havana", "Pacific/Apia", "Australia/Lord_Howe"
ZONES = (
    BRATISLAVA,
    HAVANA,
    APIA,
    LORD_HOWE,
    "America/St_Johns",
    "America/Sao_Paulo",
    "Africa/Casablanca",
    "Asia/Manila",
)
SVG = "{http://www.w3.org/2000/svg}"
HOUR = 3600


def utc(*parts: int) -> datetime:
    return datetime(*parts, tzinfo=UTC)  # type: ignore[misc]


def schedule(cron: str, zone: str = BRATISLAVA, window: dict | None = None, jitter: dict | None = None, **policy: str):  # type: ignore[no-untyped-def]
    """A Schedule that rings by this expression."""
    return check_document(
        {
            "authority": "home",
            "name": "drawn",
            "trigger": {"kind": "calendar", "cron": cron, "zone": zone, **policy},
            "class": {"service_class": "deadline_windowed" if window else "foreground"},
            "work": {"pattern": "nightly_rite", "pattern_revision": "1", "owner": "magus"},
            **({"window": window} if window else {}),
            **({"jitter": jitter} if jitter else {}),
        }
    )


def drawn(document: ScheduleDocument, since: datetime, until: datetime) -> Picture:
    """The picture of a stretch."""
    assert isinstance(document.trigger, CalendarTrigger)
    rules = installed_rules(document.trigger.zone)
    return picture_of(document, rules, rows_of(rules, since, until))


def day_of(zone: str, since: datetime) -> Day:
    """The civil day that holds an instant."""
    return days_of(installed_rules(zone), since, since + timedelta(seconds=1))[0]


def bars(picture: Picture, part: Part) -> list[Piece]:
    """Where bars of one part lie."""
    return [bar.piece for bar in picture.bars if bar.part is part]


# Days


@pytest.mark.parametrize(
    ("zone", "at", "begin", "hours"),
    [
        (BRATISLAVA, utc(2026, 10, 25), utc(2026, 10, 24, 22), 25),
        (BRATISLAVA, utc(2026, 3, 29), utc(2026, 3, 28, 23), 23),
        (BRATISLAVA, utc(2026, 6, 1), utc(2026, 5, 31, 22), 24),
        (HAVANA, utc(2026, 3, 8, 5), utc(2026, 3, 8, 5), 23),  # 00:00 to 01:00 was jumped over
        (HAVANA, utc(2025, 11, 2, 4, 30), utc(2025, 11, 2, 4), 25),  # 00:00 to 01:00 was read twice
        (LORD_HOWE, utc(2026, 4, 5), utc(2026, 4, 4, 13), 24.5),
        (LORD_HOWE, utc(2026, 10, 4), utc(2026, 10, 3, 13, 30), 23.5),
        (
            "America/St_Johns",
            utc(2010, 11, 7, 3),
            utc(2010, 11, 7, 2, 30),
            25,
        ),  # read 00:00, then 23:01 of the day before
        ("America/Sao_Paulo", utc(2018, 2, 18), utc(2018, 2, 17, 2), 25),  # 23:00 to 24:00 was read twice
    ],
)
@pytest.mark.obligation("CAL-2", boundary="ordinary")
def test_cal_2_a_day_is_drawn_as_long_as_it_was(zone: str, at: datetime, begin: datetime, hours: float) -> None:
    """23, 24 or 25 hours, or a half more or less; it begins where the clocks first read its midnight or later."""
    found = day_of(zone, at)
    assert (found.begin, found.seconds) == (begin, hours * HOUR)


@pytest.mark.obligation("CAL-2", boundary="ordinary")
def test_cal_2_a_day_that_was_skipped_has_a_row_without_length() -> None:
    """Samoa went from the 29th to the 31st of December 2011."""
    found = days_of(installed_rules(APIA), utc(2011, 12, 29, 10), utc(2011, 12, 31, 10))
    assert [(day.on.day, day.seconds) for day in found] == [(29, 86_400), (30, 0), (31, 86_400)]


@given(st.sampled_from(ZONES), st.datetimes(datetime(1840, 1, 1), datetime(2040, 1, 1)), st.integers(1, 9 * 86_400))
def test_days_follow_one_another_without_a_hole(zone: str, start: datetime, seconds: int) -> None:
    """Every instant lies in one row; a stretch is cut into rows without losing or doubling a second."""
    since, until = (
        start.replace(tzinfo=UTC, microsecond=0),
        start.replace(tzinfo=UTC, microsecond=0) + timedelta(seconds=seconds),
    )
    days = days_of(installed_rules(zone), since, until)
    assert all(one.end == two.begin and two.on - one.on == timedelta(days=1) for one, two in pairwise(days))
    assert days[0].begin <= since and until <= days[-1].end
    found = list(pieces(days, since, until))
    assert sum(piece.end_seconds - piece.begin_seconds for piece in found) == seconds
    assert (where := place(days, since)) is not None
    assert (where.row, where.seconds) == (found[0].row, found[0].begin_seconds)


@pytest.mark.parametrize(
    ("zone", "at", "first"),
    [
        (BRATISLAVA, utc(2026, 10, 25), [(0, 0), (1, 3600), (2, 7200), (2, 10800), (3, 14400)]),
        (BRATISLAVA, utc(2026, 3, 29), [(0, 0), (1, 3600), (3, 7200), (4, 10800)]),
        (HAVANA, utc(2026, 3, 8, 5), [(1, 0), (2, 3600)]),
        (HAVANA, utc(2025, 11, 2, 4, 30), [(0, 0), (0, 3600), (1, 7200)]),
        (LORD_HOWE, utc(2026, 4, 5), [(0, 0), (1, 3600), (2, 9000), (3, 12600)]),
        (LORD_HOWE, utc(2026, 10, 4), [(0, 0), (1, 3600), (3, 9000)]),
    ],
)
@pytest.mark.obligation("CAL-2", boundary="ordinary")
def test_cal_2_hours_are_labelled_as_the_clocks_read_them(
    zone: str, at: datetime, first: list[tuple[int, int]]
) -> None:
    """The hour that is repeated stands there twice, the one that was swallowed does not."""
    rules, day = installed_rules(zone), day_of(zone, at)
    found = hours_of(rules, day)
    assert [(hour.civil.hour, hour.seconds) for hour in found][: len(first)] == first
    assert (found[-1].civil.hour, found[-1].seconds) == (0, day.seconds)
    assert sum(hour.is_again for hour in found) == len(first) - len({hour for hour, _ in first})
    assert not is_ordinary(rules, day)


# The picture


@pytest.mark.obligation("CAL-9", boundary="ordinary")
def test_cal_9_the_repeated_hour_is_drawn_twice_and_the_window_is_four_hours() -> None:
    """The night of 2026-10-25: both readings of 02:00 to 03:00 one after the other, and a window from the first to 05:00."""
    picture = drawn(read_file(NIGHTLY), utc(2026, 10, 24, 22), utc(2026, 10, 25, 23))
    assert picture.rows_seconds == 25 * HOUR
    assert bars(picture, Part.FIRST_READING) == [Piece(0, 2 * HOUR, 3 * HOUR)]
    assert bars(picture, Part.SECOND_READING) == [Piece(0, 3 * HOUR, 4 * HOUR)]
    assert bars(picture, Part.WINDOW) == [Piece(0, 2 * HOUR, 6 * HOUR)]
    assert [(tick.place, tick.end) for tick in picture.ticks] == [(Place(0, 6 * HOUR), End.LATEST_START)]
    assert [(mark.place, mark.kind) for mark in picture.marks] == [(Place(0, 2 * HOUR), FiringKind.FOLD)]
    assert not picture.cuts


@pytest.mark.parametrize(
    ("fold", "at"), [("earlier", [2.5]), ("later", [3.5]), ("both", [2.5, 3.5])]
)  # fmt: skip
@pytest.mark.obligation("CAL-2", boundary="ordinary")
def test_cal_2_a_repeated_time_is_marked_where_its_policy_rings_it(fold: str, at: list[float]) -> None:
    """At the earlier reading, at the later one, or at both."""
    picture = drawn(schedule("30 2 * * *", fold=fold), utc(2026, 10, 24, 22), utc(2026, 10, 25, 23))
    assert [mark.place.seconds / HOUR for mark in picture.marks] == at


@pytest.mark.parametrize(
    ("gap", "kind", "windows"),
    [
        ("skip", FiringKind.GAP_SKIPPED, []),
        ("fail", FiringKind.GAP_FAILED, []),
        ("advance", FiringKind.GAP_ADVANCED, [Piece(0, 2 * HOUR, 3 * HOUR)]),
    ],
)
@pytest.mark.obligation("CAL-3", boundary="ordinary")
def test_cal_3_a_swallowed_time_is_marked_at_the_cut(gap: str, kind: FiringKind, windows: list[Piece]) -> None:
    """02:30 of 2026-03-29: at the jump, with a window only where it was advanced."""
    document = schedule("30 2 * * *", window={"allowed_delay": "1h"}, gap=gap)
    picture = drawn(document, utc(2026, 3, 28, 23), utc(2026, 3, 29, 22))
    assert [cut.place for cut in picture.cuts] == [Place(0, 2 * HOUR)]
    assert [(mark.place, mark.kind, mark.count) for mark in picture.marks] == [(Place(0, 2 * HOUR), kind, 1)]
    assert bars(picture, Part.WINDOW) == windows
    assert not bars(picture, Part.FIRST_READING)


@pytest.mark.obligation("CAL-3", boundary="ordinary")
def test_cal_3_a_midnight_and_a_day_that_never_were_have_their_marks() -> None:
    """Havana's 00:30 stands where its day begins; Samoa's four firings of the 30th in that day's own empty row."""
    havana = drawn(schedule("30 0 * * *", HAVANA), utc(2026, 3, 8, 5), utc(2026, 3, 9, 4))
    assert [(mark.place, mark.kind) for mark in havana.marks] == [(Place(0, 0), FiringKind.GAP_SKIPPED)]
    apia = drawn(schedule("0 */6 * * *", APIA), utc(2011, 12, 29, 10), utc(2011, 12, 31, 10))
    assert [(mark.place.row, mark.count) for mark in apia.marks if mark.kind is FiringKind.GAP_SKIPPED] == [(1, 4)]
    assert [mark.place.row for mark in apia.marks if mark.kind is FiringKind.NORMAL] == [0] * 4 + [2] * 4
    assert [cut.place for cut in apia.cuts] == [Place(2, 0)]


@pytest.mark.obligation("CAL-6", boundary="ordinary")
def test_cal_6_a_window_is_cut_at_midnight_and_opens_after_its_jitter() -> None:
    """Deterministic jitter opens at a known instant inside its range; bounded is open for certain only after all of it."""
    window, stretch = {"allowed_delay": "3h", "finish_within": "4h"}, (utc(2026, 6, 1, 22), utc(2026, 6, 3, 22))
    known = drawn(schedule("0 23 * * *", window=window, jitter={"mode": "deterministic", "max": "30m"}), *stretch)
    assert bars(known, Part.JITTER)[0] == Piece(0, 23 * HOUR, 23 * HOUR + 1800)
    first, second = bars(known, Part.WINDOW)[:2]
    assert 23 * HOUR < first.begin_seconds < 23 * HOUR + 1800
    assert (first.row, first.end_seconds, second) == (0, 24 * HOUR, Piece(1, 0, 2 * HOUR))
    assert [tick.place for tick in known.ticks] == [Place(1, 2 * HOUR), Place(1, 3 * HOUR)]
    later = drawn(schedule("0 23 * * *", window=window, jitter={"mode": "bounded", "max": "30m"}), *stretch)
    assert bars(later, Part.WINDOW)[0] == Piece(0, 23 * HOUR + 1800, 24 * HOUR)


def test_a_bound_at_midnight_closes_its_own_row() -> None:
    """A latest start at 24:00 is the end of its day, not the begin of the next, and is drawn also in the last row."""
    picture = drawn(schedule("0 23 * * *", window={"allowed_delay": "1h"}), utc(2026, 6, 1, 22), utc(2026, 6, 3, 22))
    assert [tick.place for tick in picture.ticks] == [Place(0, 86_400), Place(1, 86_400)]


@pytest.mark.obligation("CAL-2", boundary="ordinary")
def test_cal_2_a_day_of_many_firings_is_drawn_by_counts_that_miss_none() -> None:
    """Every second of the longest day: counts by half hour, none in the second reading, and as many as there are."""
    document, stretch = schedule("* * * * * *"), (utc(2026, 10, 24, 22), utc(2026, 10, 25, 23))
    picture = drawn(document, *stretch)
    assert not picture.marks
    assert {one.count for one in picture.bins} == {1800}
    assert not [one for one in picture.bins if 3 * HOUR <= one.piece.begin_seconds < 4 * HOUR]
    assert isinstance(document.trigger, CalendarTrigger)
    assert sum(one.count for one in picture.bins) == count_firings(
        document.trigger, installed_rules(BRATISLAVA), *stretch
    )


@pytest.mark.parametrize(("gap", "extra"), [("skip", 0), ("advance", 3600)])
@pytest.mark.obligation("CAL-3", boundary="ordinary")
def test_cal_3_swallowed_seconds_are_one_mark_and_ring_only_where_they_are_advanced(gap: str, extra: int) -> None:
    """The 3600 seconds of the shortest day's lost hour."""
    picture = drawn(schedule("* * * * * *", gap=gap), utc(2026, 3, 28, 23), utc(2026, 3, 29, 22))
    assert [(mark.place, mark.count) for mark in picture.marks] == [(Place(0, 2 * HOUR), 3600)]
    assert sum(one.count for one in picture.bins) == 23 * HOUR + extra
    assert picture.marks[0].words.startswith("Sun 29 Mar 2026 02:00 does not exist")


def test_only_what_was_asked_for_is_marked_and_the_rest_of_a_day_is_shaded() -> None:
    """A stretch that begins and ends inside days."""
    picture = drawn(schedule("0 */6 * * *"), utc(2026, 6, 1, 1), utc(2026, 6, 2, 5))
    assert [(mark.place.row, mark.place.seconds // HOUR) for mark in picture.marks] == [
        (0, 6),
        (0, 12),
        (0, 18),
        (1, 0),
        (1, 6),
    ]
    assert bars(picture, Part.OUTSIDE) == [Piece(0, 0, 3 * HOUR), Piece(1, 7 * HOUR, 24 * HOUR)]


def test_a_longer_stretch_is_cut_short_and_says_so() -> None:
    """At most DAYS_MAX rows; a leap year that begins inside a day still fits."""
    document = schedule("0 2 * * *")
    whole = drawn(document, utc(2027, 6, 1, 12), utc(2028, 6, 1, 12))
    assert (len(whole.days), whole.is_cut_short) == (DAYS_MAX, False)
    longer = drawn(document, utc(2026, 6, 1, 12), utc(9000, 1, 1))
    assert (len(longer.days), longer.is_cut_short) == (DAYS_MAX, True)
    assert any("goes on" in note for note in notes(longer, document))
    rules = installed_rules(BRATISLAVA)
    lines = calendar_lines(document, rules, rows_of(rules, utc(2026, 6, 1, 12), utc(9000, 1, 1)), 80)
    assert "Drawn until Wed 2 Jun 2027: at most 367 days." in [line.plain for line in lines]


@pytest.mark.parametrize("year", [1, 9995])
def test_a_stretch_in_which_nothing_can_ring_is_refused(year: int) -> None:
    """Before zone data begins, and after the last year that is counted."""
    with pytest.raises(BadInput, match="nothing to draw"):
        rows_of(installed_rules(BRATISLAVA), utc(year, 1, 1), utc(year, 1, 3))


def test_overlapping_windows_are_one_bar() -> None:
    """Windows of ten days, four a day, are one bar a day; two that only meet are two; one that is empty is none."""
    picture = drawn(schedule("0 */6 * * *", window={"allowed_delay": "10d"}), utc(2026, 5, 31, 22), utc(2026, 6, 2, 22))
    assert bars(picture, Part.WINDOW) == [Piece(0, 0, 86_400), Piece(1, 0, 86_400)]
    one, two, three, four = (utc(2026, 6, day) for day in (1, 2, 3, 4))
    assert list(joined([(two, three), (one, two), (three, three)])) == [(one, two), (two, three)]
    assert list(joined([(one, three), (two, four), (one, two)])) == [(one, four)]


def test_over_many_days_fewer_firings_are_marked_one_by_one() -> None:
    """Twelve a day are marks over a week, and counts over a year."""
    document = schedule("0 */2 * * *", window={"allowed_delay": "30d"})
    week, year = (drawn(document, utc(2026, 6, 1), utc(2026, 6, 1) + timedelta(days=days)) for days in (7, 365))
    assert (week.marks_a_day_max, len(week.marks), len(week.bins)) == (48, 7 * 12, 0)
    assert year.marks_a_day_max == 10
    assert len(year.marks) <= MARKS_MAX and sum(one.count for one in year.bins) + len(year.marks) == 365 * 12


# The terminal


def printed(document: ScheduleDocument, since: datetime, until: datetime, width: int = 80) -> list[str]:
    """The lines of the calendar and the strips."""
    assert isinstance(document.trigger, CalendarTrigger)
    rules = installed_rules(document.trigger.zone)
    rows = rows_of(rules, since, until)
    return [
        line.plain
        for line in (*calendar_lines(document, rules, rows, width), *strip_lines(document, rules, rows, width))
    ]


@pytest.mark.obligation("CAL-9", boundary="ordinary")
def test_cal_9_the_strip_of_the_longest_night_has_its_hour_twice() -> None:
    """Four hours along the clocks: both readings, then 03:00, 04:00 and the bound, which is too late."""
    document, rules = read_file(NIGHTLY), installed_rules(BRATISLAVA)
    [strip] = strips(document, rules, utc(2026, 10, 25), utc(2026, 10, 26))
    assert clock_line(strip, rules, 41) == "//////////«\\\\\\\\\\\\\\\\\\+---------+---------+"
    assert window_line(strip, 41, False) == "◆" + "█" * 39 + "|"


@pytest.mark.obligation("CAL-3", boundary="ordinary")
def test_cal_3_the_strip_of_an_advanced_firing_begins_at_the_jump() -> None:
    """03:00 on, two hours, the finish an hour later; jitter as shades that need no colour."""
    window, jitter = {"allowed_delay": "2h", "finish_within": "3h"}, {"mode": "bounded", "max": "30m"}
    document, rules = schedule("30 2 * * *", window=window, jitter=jitter, gap="advance"), installed_rules(BRATISLAVA)
    [strip] = strips(document, rules, utc(2026, 3, 29), utc(2026, 3, 30))
    assert clock_line(strip, rules, 31) == "»---------+---------+---------+"
    assert window_line(strip, 31, True) == "◆▒▒▒▒" + "█" * 15 + "|" + " " * 9 + "F"


def test_a_strip_of_days_is_labelled_by_days() -> None:
    """Ten days: a midnight for every label that fits; the ends to the second."""
    document, rules = schedule("30 0 2 * * *", window={"allowed_delay": "10d"}), installed_rules(BRATISLAVA)
    [strip] = strips(document, rules, utc(2026, 6, 1), utc(2026, 6, 2))
    assert " ".join(label_line(strip, rules, 72).split()) == "02:00:30 3 Jun 5 Jun 7 Jun 9 Jun 02:00:30"
    assert clock_line(strip, rules, 72).count("+") == 5
    assert "for 10 d" in say_window(document, strip.bounds, strip.firing, rules)


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(0, "0 s"), (45, "45 s"), (5400, "1 h 30 min"), (90_000, "25 h"), (176_461, "2 d 1 h 1 min 1 s")],
)
def test_elapsed_time_is_said_in_its_units(seconds: int, words: str) -> None:
    """A day of twenty-five hours is never called a day."""
    assert say_for(seconds) == words


def test_strips_are_the_first_nights_and_those_that_meet_a_change() -> None:
    """A year of nights: three, and the two of the year whose window meets a change and that ring."""
    found = strips(
        schedule("30 1 * * *", window={"allowed_delay": "2h"}),
        installed_rules(BRATISLAVA),
        utc(2026, 1, 1),
        utc(2027, 1, 1),
    )
    assert [strip.firing.civil.date() for strip in found] == [
        date(2026, 1, 1), date(2026, 1, 2), date(2026, 1, 3), date(2026, 3, 29), date(2026, 10, 25),
    ]  # fmt: skip


def test_the_calendar_counts_what_rings_on_each_day() -> None:
    """Twice in the night of the fold, never in the night of the gap, and the day of a change has its mark."""
    rules, document = installed_rules(BRATISLAVA), schedule("30 2 * * *", fold="both")
    fold = squares(document, rules, rows_of(rules, utc(2026, 10, 23, 22), utc(2026, 10, 26, 23)))
    assert [(square.on.day, square.count, square.change) for square in fold] == [(24, 1, ""), (25, 2, "«"), (26, 1, "")]
    gap = squares(document, rules, rows_of(rules, utc(2026, 3, 27, 23), utc(2026, 3, 30, 22)))
    assert [(square.on.day, square.count, square.change) for square in gap] == [(28, 1, ""), (29, 0, "»"), (30, 1, "")]
    assert [square.top for square in gap] == ["28•  ", "29 » ", "30•  "]


def test_the_calendar_reads_as_it_should() -> None:
    """One month to the letter, with counts beneath the days."""
    lines = printed(schedule("30 2 * * *", fold="both"), utc(2026, 10, 23, 22), utc(2026, 10, 26, 23))
    assert [line.rstrip() for line in lines[:5]] == [
        "Oct 2026",
        "Mo   Tu   We   Th   Fr   Sa   Su",
        "                         24•  25•«",
        "                                2",
        "26•",
    ]


SPECIAL = [
    ("0 2 * * *", BRATISLAVA, {}, utc(2026, 10, 25),
     "Sun 25 Oct 2026 02:00 happens twice; rings at the earlier, 00:00Z"),
    ("0 2 * * *", BRATISLAVA, {"fold": "later"}, utc(2026, 10, 25),
     "Sun 25 Oct 2026 02:00 happens twice; rings at the later, 01:00Z"),
    ("30 2 * * *", BRATISLAVA, {}, utc(2026, 3, 29), "Sun 29 Mar 2026 02:30 does not exist; skipped, recorded"),
    ("30 2 * * *", BRATISLAVA, {"gap": "fail"}, utc(2026, 3, 29),
     "Sun 29 Mar 2026 02:30 does not exist; failed, recorded"),
    ("30 2 * * *", BRATISLAVA, {"gap": "advance"}, utc(2026, 3, 29),
     "Sun 29 Mar 2026 02:30 does not exist; advanced to 03:00, 01:00Z"),
    ("0 22 * * *", APIA, {"gap": "advance"}, utc(2011, 12, 30),
     "Fri 30 Dec 2011 22:00 does not exist; advanced to Sat 31 Dec 2011 00:00, 10:00Z"),
    ("45 1 * * *", LORD_HOWE, {"fold": "later"}, utc(2026, 4, 4),
     "Sun 5 Apr 2026 01:45 happens twice; rings at the later, 2026-04-04T15:15:00Z"),
]  # fmt: skip


@pytest.mark.parametrize(("cron", "zone", "policy", "day", "sentence"), SPECIAL)
@pytest.mark.obligation("CAL-3", boundary="ordinary")
def test_cal_3_every_special_firing_is_said_in_words(
    cron: str, zone: str, policy: dict[str, str], day: datetime, sentence: str
) -> None:
    """What happened to the civil time, and what the policy made of it."""
    rules = installed_rules(zone)
    [one] = changes(schedule(cron, zone, **policy), rules, day, day + timedelta(days=1))
    assert list(say_special(one, rules)) == [sentence]


def test_too_many_special_firings_are_counted() -> None:
    """Six are named, and the others of the 3600 counted."""
    rules, document = installed_rules(BRATISLAVA), schedule("* * * * * *")
    [one] = changes(document, rules, utc(2026, 3, 29), utc(2026, 3, 30))
    assert list(say_special(one, rules))[-1] == "and 3594 more like these"
    assert isinstance(document.trigger, CalendarTrigger)
    assert say_change(document.trigger, one.jump) == (
        "Sun 29 Mar 2026 02:00 becomes 03:00 at 01:00Z; a time between is skipped, recorded"
    )


@pytest.mark.parametrize("width", [44, 80, 120])
@pytest.mark.parametrize(("mode", "zone"), [("deterministic", APIA), ("bounded", LORD_HOWE), ("bounded", BRATISLAVA)])
def test_no_line_is_wider_than_the_terminal(width: int, mode: str, zone: str) -> None:
    """A year of windows, jitter, finish bounds and changes of the clocks."""
    document = schedule(
        "45 1,22 * * *", zone, {"allowed_delay": "3h", "finish_within": "9h"}, {"mode": mode, "max": "30m"}, fold="both"
    )
    lines = printed(document, utc(2011, 5, 1), utc(2012, 5, 1), width)
    assert max(map(len, lines)) <= width


def test_colour_adds_nothing_that_has_to_be_read() -> None:
    """The same signs with and without colour."""
    rules, document = installed_rules(BRATISLAVA), read_file(NIGHTLY)
    rows = rows_of(rules, utc(2026, 10, 24), utc(2026, 10, 27))
    coloured = Console(force_terminal=True, color_system="standard", width=80, no_color=False)
    plain = Console(color_system=None, width=80)
    texts = []
    for console in (coloured, plain):
        with console.capture() as captured:
            for line in (*calendar_lines(document, rules, rows, 80), *strip_lines(document, rules, rows, 80)):
                console.print(line)
        texts.append(captured.get())
    assert "\x1b[" in texts[0] and "\x1b[" not in texts[1]
    assert re.sub(r"\x1b\[[0-9;]*m", "", texts[0]) == texts[1]


# The file


def parsed(document: ScheduleDocument, since: datetime, until: datetime) -> ET.Element:
    """The SVG of a stretch, read back."""
    assert isinstance(document.trigger, CalendarTrigger)
    rules = installed_rules(document.trigger.zone)
    return ET.fromstring(svg_text(document, rules, picture_of(document, rules, rows_of(rules, since, until))))


@pytest.mark.obligation("CAL-9", boundary="ordinary")
def test_cal_9_the_file_hatches_the_repeated_hour_twice() -> None:
    """Side by side, each an hour of twenty-five wide, the second falling where the first rises."""
    root = parsed(read_file(NIGHTLY), utc(2026, 10, 24, 22), utc(2026, 10, 25, 23))
    legend = [one for one in root.iter(f"{SVG}rect") if (one.get("fill") or "").startswith("url(#")]
    hatched = [
        (one.get("fill"), float(one.get("x", 0)), float(one.get("width", 0)))
        for one in legend
        if one.find(f"{SVG}title") is not None
    ]
    hour = PLOT / 25
    assert hatched == [
        ("url(#first-reading)", round(LEFT + 2 * hour, 2), round(hour, 2)),
        ("url(#second-reading)", round(LEFT + 3 * hour, 2), round(hour, 2)),
    ]
    labels = [one.text for one in root.iter(f"{SVG}text") if "hour" in (one.get("class") or "") and one.text]
    assert labels.count("02") == 2
    assert "25 h long" in [one.text for one in root.iter(f"{SVG}text")]


def test_the_file_stands_alone_and_can_be_read_aloud() -> None:
    """No script, nothing from outside, a title, a description that tells every special firing, both colour schemes."""
    root = parsed(schedule("30 2 * * *"), utc(2026, 3, 27), utc(2026, 4, 2))
    text = ET.tostring(root, encoding="unicode")
    assert {one.tag.removeprefix(SVG) for one in root.iter()} <= {
        "svg", "title", "desc", "style", "defs", "pattern", "rect", "text", "path", "circle",
    }  # fmt: skip
    assert not re.search(r"href|@import|url\((?!#)|on[a-z]+=|<!", text)
    assert "http" not in text.replace("http://www.w3.org/2000/svg", "")
    assert root.findtext(f"{SVG}title") == "home/drawn: when it rings"
    assert "Sun 29 Mar 2026 02:30 does not exist; skipped, recorded." in (root.findtext(f"{SVG}desc") or "")
    assert {one.get("id") for one in root.iter()} >= set((root.get("aria-labelledby") or "?").split())
    assert "prefers-color-scheme: dark" in (root.findtext(f"{SVG}style") or "")
    assert re.search(r"by the rules of \S+, sha256:[0-9a-f]{12}…", text)


def test_what_is_written_into_the_file_is_escaped() -> None:
    """Text and attributes come back as they were put, whatever is in them."""
    rules = installed_rules(BRATISLAVA)
    sheet = Sheet(drawn(schedule("0 2 * * *"), utc(2026, 6, 1), utc(2026, 6, 2)), rules)
    nasty = "<script>&\"']]>"
    sheet.put("text", nasty, title=nasty, class_=nasty)
    found = ET.fromstring(ET.tostring(sheet.root, encoding="unicode"))[-1]
    assert (found.text, found[0].text, found.get("class")) == (nasty, nasty, nasty)


def test_the_legend_has_the_signs_that_occur_and_no_others() -> None:
    """A plain week has a disc; the night of the fold has both hatches; a secondly Schedule has its counts."""
    assert signs(drawn(schedule("0 2 * * *"), utc(2026, 6, 1, 22), utc(2026, 6, 3, 22))) == ["ring"]
    fold = drawn(read_file(NIGHTLY), utc(2026, 10, 24, 22), utc(2026, 10, 25, 23))
    assert signs(fold) == ["ring", "window", "latest", "first-reading", "second-reading"]
    gap = drawn(schedule("* * * * * *"), utc(2026, 3, 28, 23), utc(2026, 3, 29, 22))
    assert signs(gap) == ["lost", "cut", "dense"]


def test_ten_thousand_firings_do_not_make_ten_thousand_marks() -> None:
    """A week of every second is a few hundred elements."""
    assert len(list(parsed(schedule("* * * * * *"), utc(2026, 10, 19), utc(2026, 10, 26)).iter())) < 1200


# The command

Preview = Callable[..., tuple[int, str]]


@pytest.fixture
def preview(capsys: pytest.CaptureFixture[str]) -> Preview:
    """The command in this process: its exit code, and what it printed."""

    def run(*arguments: str, file: Path = NIGHTLY) -> tuple[int, str]:
        code = cli.run(
            ["preview", str(file), "--from", "2026-10-24T22:00:00Z", "--to", "2026-10-26T23:00:00Z", *arguments]
        )
        found = capsys.readouterr()
        return code, found.out + found.err

    return run


def test_json_is_the_same_document_whatever_is_drawn(preview: Preview, tmp_path: Path) -> None:
    """One document and nothing else, with and without `--svg` and `--calendar`; the file is written."""
    file = tmp_path / "one.svg"
    code, plain = preview("--json")
    assert code == 0
    assert preview("--json", "--svg", str(file), "--calendar") == (0, plain)
    assert json.loads(plain)["schedule"] == "home/nightly-rite"
    assert ET.parse(file).getroot().tag == f"{SVG}svg"


def test_the_picture_replaces_an_older_one_and_is_as_readable_as_any_file(preview: Preview, tmp_path: Path) -> None:
    """Whole, with the permissions that a new file has, and no draft beside it."""
    file = tmp_path / "one.svg"
    file.write_text("older", encoding="utf-8")
    code, said = preview("--svg", str(file))
    assert (code, said.splitlines()[-1]) == (0, f"Drawn into {file}.")
    (plain := tmp_path / "plain").touch()
    assert file.stat().st_mode == plain.stat().st_mode
    assert sorted(os.listdir(tmp_path)) == ["one.svg", "plain"]


def test_a_calendar_is_drawn_in_the_terminal(preview: Preview) -> None:
    """Head, month, words and strip; for an external trigger, that there is none."""
    code, said = preview("--calendar")
    assert code == 0
    assert "Oct 2026" in said and "25•«" in said
    assert "Sun 25 Oct 2026 02:00 happens twice; rings at the earlier, 00:00Z" in said
    assert "///«\\\\\\" in said
    code, said = preview("--calendar", file=ROOT / "schedules" / "bridge.toml")
    assert code == 0 and "no calendar" in said


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("one.toml", "does not end in .svg"),
        ("folder.svg", "no file"),
        ("nowhere/one.svg", "not a folder"),
        ("file/one.svg", "not a folder"),
        (f"{'a' * 300}.svg", "cannot be used"),
    ],
)
def test_a_place_that_cannot_hold_a_picture_is_refused_by_its_field(
    preview: Preview, tmp_path: Path, name: str, why: str
) -> None:
    """Exit code 3, the field `svg`, and nothing is written or changed."""
    (tmp_path / "folder.svg").mkdir()
    for kept in ("one.toml", "file"):
        (tmp_path / kept).write_text("kept", encoding="utf-8")
    code, said = preview("--svg", str(tmp_path / name), "--json")
    error = json.loads(said)["error"]
    assert (code, error["field"]) == (3, "svg")
    assert why in error["reason"]
    assert sorted(os.listdir(tmp_path)) == ["file", "folder.svg", "one.toml"]
    assert (tmp_path / "one.toml").read_text(encoding="utf-8") == "kept"


@pytest.mark.parametrize("step", ["fsync", "replace"])
def test_a_disk_that_fails_leaves_the_older_picture(
    preview: Preview, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    """Refused by the field's name, and neither half a picture nor a draft is left."""

    def fails(*_: object) -> None:
        raise OSError(28, "No space left on device")

    file = tmp_path / "one.svg"
    file.write_text("older", encoding="utf-8")
    monkeypatch.setattr(files.os, step, fails)
    code, said = preview("--svg", str(file))
    assert code == 3 and said.startswith("bad_input: svg:")
    assert os.listdir(tmp_path) == ["one.svg"]
    assert file.read_text(encoding="utf-8") == "older"


def test_an_external_trigger_has_no_picture(preview: Preview, tmp_path: Path) -> None:
    """Refused, and nothing is written."""
    code, said = preview("--svg", str(tmp_path / "one.svg"), file=ROOT / "schedules" / "bridge.toml")
    assert code == 3 and "no calendar" in said
    assert not os.listdir(tmp_path)


def test_the_picture_in_the_readme_is_what_its_command_draws(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Byte by byte, but for the release of the zone data that happens to be installed and its digest."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    [line] = re.findall(r"^\.venv/bin/nightbell (preview .* --svg docs/.*)$", readme, re.MULTILINE)
    words = shlex.split(line)
    kept = ROOT / words[-1]
    assert f"({words[-1]})" in readme
    monkeypatch.chdir(ROOT)
    assert cli.run([*words[:-1], str(tmp_path / "again.svg")]) == 0
    capsys.readouterr()
    installed = re.compile(r"\b20[0-9]{2}[a-z], sha256:[0-9a-f]{12}")
    again, shown = (installed.sub("", one.read_text(encoding="utf-8")) for one in (tmp_path / "again.svg", kept))
    assert again == shown
