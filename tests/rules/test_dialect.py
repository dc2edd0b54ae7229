"""The cron dialect: what is read, in which of its readings, and what is refused because there are two."""

import json
from datetime import datetime, timedelta
from itertools import islice
from pathlib import Path

import pytest
from cronsim import CronSim
from hypothesis import given, settings
from hypothesis import strategies as st

from law.cron import parse_cron
from law.errors import BadInput

TRAPS = json.loads((Path(__file__).parent / "cases" / "calendar.json").read_text())["dialect_traps"]
START = datetime(2026, 1, 1)
READ_IN_TWO_WAYS = {"0 10-10/6 * * *", "0 0 * * 1-1/1", "0 0 3-3/7 * *", "0 0 * * 1/2", "0 0 L/2 * *"}
CLASSIC = {
    "5-5 * * * *": ["2026-01-01 00:05", "2026-01-01 01:05", "2026-01-01 02:05"],
    "0 0 * 12-12 *": ["2026-12-01 00:00", "2026-12-02 00:00", "2026-12-03 00:00"],
    "0 0 1-7 * */7": ["2026-01-04 00:00", "2026-02-01 00:00", "2026-03-01 00:00"],
    "0 0 */2 * MON": ["2026-01-05 00:00", "2026-01-19 00:00", "2026-02-09 00:00"],
    "0 0 15,L * SAT#5": ["2026-01-15 00:00", "2026-01-31 00:00", "2026-02-15 00:00"],
    "*/7 * * * *": ["2026-01-01 00:00", "2026-01-01 00:07", "2026-01-01 00:14"],
    "0 0 * * 5-7": ["2026-01-02 00:00", "2026-01-03 00:00", "2026-01-04 00:00"],
}


@pytest.mark.parametrize("trap", TRAPS, ids=[trap["cron"] for trap in TRAPS])
def test_every_known_trap_is_read_as_classic_cron_or_refused(trap: dict) -> None:
    """What two libraries read differently has one reading here, or none."""
    if trap["cron"] in READ_IN_TWO_WAYS:
        with pytest.raises(BadInput, match=r"trigger\.cron: .*(two ways|no meaning)"):
            parse_cron(trap["cron"])
        return
    found = islice(parse_cron(trap["cron"]).from_civil(START), 3)
    assert [f"{civil:%Y-%m-%d %H:%M}" for civil in found] == CLASSIC[trap["cron"]]


@pytest.mark.parametrize(
    "text",
    ["0 1-01/6 * * *", "0 0 * * mon-MON/1", "0 0 * * MON-1/2", "0 0 * JAN-1/2 *", "0 0 LW/2 * *", "0 0 * * sun/2"],
)
def test_a_trap_in_another_spelling_is_a_trap(text: str) -> None:
    """Leading zeros, names and lower case do not let a second reading through."""
    with pytest.raises(BadInput, match=r"two ways|no meaning"):
        parse_cron(text)


@pytest.mark.parametrize(
    ("text", "first"),
    [
        ("0 0 L * *", "2026-01-31T00:00:00"),
        ("0 0 LW * *", "2026-01-30T00:00:00"),
        ("0 0 * * FRI#3", "2026-01-16T00:00:00"),
        ("0 0 * * 5L", "2026-01-30T00:00:00"),
        ("30 0 2 * * *", "2026-01-01T02:00:30"),
        ("0/20 5 * * *", "2026-01-01T05:00:00"),
        ("@Weekly", "2026-01-04T00:00:00"),
        ("@hourly", "2026-01-01T00:00:00"),
        ("0 0 29 2 MON", "2026-02-02T00:00:00"),
        ("0 0 29 2 *", "2028-02-29T00:00:00"),
    ],
)
def test_each_form_of_the_grammar_has_its_first_time(text: str, first: str) -> None:
    """Last days, last weekdays, ordinals, seconds, names and aliases."""
    assert next(parse_cron(text).from_civil(START)).isoformat() == first


FIELDS = (
    st.sampled_from(["*", "0", "*/7", "5,55", "10-40/15", "59"]),
    st.sampled_from(["*", "2", "*/5", "0,23", "8-18/2"]),
    st.sampled_from(["*", "1", "*/10", "31", "L", "LW", "13,28-30"]),
    st.sampled_from(["*", "2", "*/5", "JAN,DEC"]),
    st.sampled_from(["*", "MON", "1-5", "SUN#2", "7", "5L", "*/2"]),
)


@settings(max_examples=120, deadline=None)
@given(st.tuples(*FIELDS), st.sampled_from(["", "*/20 ", "0,59 "]), st.integers(0, 700), st.integers(0, 86_399))
def test_both_directions_and_the_count_agree_with_the_librarys_own_walk(
    fields: tuple[str, ...], seconds: str, day: int, second: int
) -> None:
    """The library walks one time after another; days and times must come to the same, forwards, backwards and counted."""
    text, start = seconds + " ".join(fields), datetime(2024, 2, 1) + timedelta(days=day, seconds=second)
    try:
        cron = parse_cron(text)
    except BadInput:
        return
    walked = list(islice(CronSim(text, start - timedelta(seconds=1)), 30))
    assert list(islice(cron.from_civil(start), 30)) == walked
    assert list(islice(cron.before_civil(start), 30)) == list(islice(CronSim(text, start, reverse=True), 30))
    assert cron.count(start, walked[-1]) == len(walked) - 1
    assert cron.count(walked[3], walked[17]) == 14


def test_a_line_ends_with_the_calendar_and_not_with_an_error() -> None:
    """The last year is listed to its end, the first one to its beginning."""
    assert len(list(parse_cron("@daily").from_civil(datetime(9999, 12, 30)))) == 2
    assert len(list(parse_cron("@daily").before_civil(datetime(1, 1, 3)))) == 2
