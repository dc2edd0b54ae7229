"""RFC 5545 recurrence rules: against the RFC's own examples, against a well-known library, and against hostile text."""

from datetime import UTC, datetime, timedelta
from itertools import islice

import pytest
from dateutil.rrule import rrulestr
from hypothesis import given, settings
from hypothesis import strategies as st

from law.errors import BadInput
from law.firings import count_firings, firings, newest_firings
from law.recurrence import Recurrence
from law.rrule import read_rule
from law.triggers import CalendarTrigger
from store.zone_rules import installed_rules

NINE = datetime(1997, 9, 2, 9, 0)
DAYS = ("MO", "TU", "WE", "TH", "FR", "SA", "SU")


def rule(text: str, start: datetime = NINE) -> Recurrence:
    return Recurrence.of(read_rule(text, start))


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("FREQ=DAILY;COUNT=3", ["1997-09-02", "1997-09-03", "1997-09-04"]),
        (
            "FREQ=WEEKLY;INTERVAL=2;COUNT=4;WKST=SU;BYDAY=TU,TH",
            ["1997-09-02", "1997-09-04", "1997-09-16", "1997-09-18"],
        ),
        ("FREQ=MONTHLY;BYDAY=1FR;UNTIL=19971224T000000", ["1997-09-05", "1997-10-03", "1997-11-07", "1997-12-05"]),
        ("FREQ=MONTHLY;COUNT=3;BYDAY=-2MO", ["1997-09-22", "1997-10-20", "1997-11-17"]),
        ("FREQ=MONTHLY;BYMONTHDAY=-3;COUNT=3", ["1997-09-28", "1997-10-29", "1997-11-28"]),
        (
            "FREQ=YEARLY;INTERVAL=3;COUNT=4;BYYEARDAY=1,100,200",
            ["2000-01-01", "2000-04-09", "2000-07-18", "2003-01-01"],
        ),
        ("FREQ=YEARLY;BYDAY=20MO;COUNT=3", ["1998-05-18", "1999-05-17", "2000-05-15"]),
        ("FREQ=YEARLY;BYWEEKNO=20;BYDAY=MO;COUNT=3", ["1998-05-11", "1999-05-17", "2000-05-15"]),
        ("FREQ=MONTHLY;BYDAY=FR;BYMONTHDAY=13;COUNT=3", ["1998-02-13", "1998-03-13", "1998-11-13"]),
        ("FREQ=YEARLY;INTERVAL=4;BYMONTH=11;BYDAY=TU;BYMONTHDAY=2,3,4,5,6,7,8;COUNT=2", ["1997-11-04", "2001-11-06"]),
        ("FREQ=MONTHLY;COUNT=3;BYDAY=TU,WE,TH;BYSETPOS=3", ["1997-09-04", "1997-10-07", "1997-11-06"]),
        ("FREQ=MONTHLY;BYDAY=MO,TU,WE,TH,FR;BYSETPOS=-2;COUNT=3", ["1997-09-29", "1997-10-30", "1997-11-27"]),
    ],
)
def test_the_examples_of_the_rfc_are_read_as_the_rfc_reads_them(text: str, found: list[str]) -> None:
    """Rules and their first civil times as RFC 5545 lists them, from the same start."""
    listed = list(islice(rule(text).from_civil(NINE), len(found)))
    assert [f"{civil:%Y-%m-%d}" for civil in listed] == found
    assert {civil.time() for civil in listed} == {NINE.time()}


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("", "characters"), ("FREQ=NEVER", "FREQ"), ("INTERVAL=2", "FREQ"), ("FREQ=DAILY;INTERVAL=0", "INTERVAL"),
        ("FREQ=DAILY;INTERVAL=99999999999999999999", "INTERVAL"), ("FREQ=DAILY;COUNT=0", "COUNT"),
        ("FREQ=DAILY;COUNT=1;UNTIL=20270101T000000", "COUNT"), ("FREQ=DAILY;UNTIL=20270101T000000Z", "UNTIL"),
        ("FREQ=DAILY;UNTIL=20270101", "UNTIL"), ("FREQ=DAILY;UNTIL=20271301T000000", "UNTIL"),
        ("DTSTART:20260101T000000\nRRULE:FREQ=DAILY", "characters"), ("FREQ=DAILY;DTSTART=20260101", "DTSTART"),
        ("FREQ=DAILY;TZID=UTC", "TZID"), ("FREQ=DAILY;X-A=1", "X-A"), ("FREQ=DAILY;FREQ=DAILY", "FREQ"),
        ("FREQ=DAILY;BYHOUR=24", "BYHOUR"), ("FREQ=DAILY;BYHOUR=-1", "BYHOUR"), ("FREQ=DAILY;BYSECOND=60", "BYSECOND"),
        ("FREQ=DAILY;BYDAY=1MO", "BYDAY"), ("FREQ=MONTHLY;BYDAY=0MO", "BYDAY"), ("FREQ=DAILY;BYYEARDAY=1", "BYYEARDAY"),
        ("FREQ=WEEKLY;BYMONTHDAY=1", "BYMONTHDAY"), ("FREQ=YEARLY;BYWEEKNO=20", "BYWEEKNO"), ("FREQ=DAILY;WKST=XX", "WKST"),
        ("FREQ=DAILY;BYSETPOS=1", "BYSETPOS"), ("FREQ=DAILY;" + "BYHOUR=1;" * 99, "characters"), ("FREQ=DAİLY", "characters"),
        ("FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=30", "never"), ("FREQ=SECONDLY;BYMONTH=2;BYMONTHDAY=30", "never"),
        ("FREQ=HOURLY;INTERVAL=24;BYHOUR=5", "never"), ("FREQ=DAILY;BYHOUR=1;BYSETPOS=300", "never"),
        ("FREQ=SECONDLY;INTERVAL=999999;BYMONTHDAY=31;BYMONTH=4", "never"),
    ],
)  # fmt: skip
def test_a_rule_that_is_hostile_ambiguous_or_silent_is_refused_with_its_part(text: str, part: str) -> None:
    """Refused at once, naming the field and the part; no search runs long."""
    with pytest.raises(BadInput, match=part) as refused:
        rule(text, datetime(2026, 1, 1))
    assert refused.value.fields["field"] == "trigger.rrule"


def numbers(low: int, high: int, *, signed: bool = False) -> st.SearchStrategy[str]:
    one = st.integers(low, high)
    either = st.one_of(one, one.map(lambda number: -number)) if signed else one
    return st.lists(either, min_size=1, max_size=3).map(lambda some: ",".join(map(str, some)))


@st.composite
def rules(draw: st.DrawFn) -> str:
    """A random rule of the kind that the library, too, reads as the RFC means it and can list in reasonable time."""
    frequency = draw(st.sampled_from(["YEARLY", "MONTHLY", "WEEKLY", "DAILY", "HOURLY", "MINUTELY"]))
    parts = [f"FREQ={frequency}", f"INTERVAL={draw(st.sampled_from([1, 1, 2, 3, 7, 25]))}"]
    if draw(st.booleans()):
        parts.append(f"WKST={draw(st.sampled_from(DAYS))}")
    if frequency != "WEEKLY" and draw(st.booleans()):
        parts.append(f"BYMONTHDAY={draw(numbers(1, 28, signed=True))}")
    elif draw(st.booleans()):
        ordinal = draw(st.sampled_from(["", "1", "2", "-1"])) if frequency in ("YEARLY", "MONTHLY") else ""
        days = draw(st.lists(st.sampled_from(DAYS), min_size=1, max_size=4, unique=True))
        parts.append("BYDAY=" + ",".join(ordinal + day for day in days))
    if draw(st.booleans()):
        parts.append(f"BYHOUR={draw(numbers(0, 23))}")
    if draw(st.booleans()):
        parts.append(f"BYMINUTE={draw(numbers(0, 59))}")
    if frequency in ("YEARLY", "MONTHLY") and len(parts) > 3 and draw(st.booleans()):
        parts.append(f"BYSETPOS={draw(numbers(1, 3, signed=True))}")
    return ";".join(part for part in parts)


@settings(max_examples=80, deadline=None)
@given(rules(), st.integers(0, 900), st.integers(0, 1439))
def test_both_directions_and_the_count_agree_with_another_implementation(text: str, day: int, minute: int) -> None:
    """An independent library lists forwards; ours is equal, and reversed and counted alike."""
    start = datetime(2024, 1, 1) + timedelta(days=day, minutes=minute)
    if "BYSETPOS" in text and not any(part in text for part in ("BYDAY", "BYMONTHDAY", "BYHOUR", "BYMINUTE")):
        return
    try:
        ours = rule(text, start)
    except BadInput:
        return
    theirs = list(islice(rrulestr(text, dtstart=start), 25))
    assert list(islice(ours.from_civil(start), 25)) == theirs
    assert list(ours.before_civil(theirs[-1])) == theirs[-2::-1]
    assert ours.count(start, theirs[-1]) == len(theirs) - 1
    assert ours.count(theirs[4], theirs[20]) == 16


def test_a_rule_that_rings_on_is_listed_through_the_centuries() -> None:
    """Silence ends a rule after four centuries; ringing never does, in either direction."""
    yearly = rule("FREQ=YEARLY")
    assert next(islice(yearly.from_civil(NINE), 700, None)).year == NINE.year + 700
    assert sum(1 for _ in yearly.before_civil(NINE.replace(year=NINE.year + 700))) == 700


def test_a_rule_without_a_start_or_beside_another_form_is_refused() -> None:
    """`from` is the start of a rule; two forms in one trigger are one too many."""
    with pytest.raises(ValueError, match="needs from"):
        CalendarTrigger(kind="calendar", rrule="FREQ=DAILY", zone="UTC")
    with pytest.raises(ValueError, match="exactly one"):
        CalendarTrigger(kind="calendar", rrule="FREQ=DAILY", cron="@daily", zone="UTC")


@pytest.mark.obligation("CAL-2", boundary="ordinary")
@pytest.mark.obligation("CAL-3", boundary="ordinary")
def test_cal_2_and_3_a_rule_meets_fold_and_gap_as_cron_does() -> None:
    """The same civil times, said as a rule and as cron, ring alike through a year of changes, in order, back and counted."""
    zone, start = "Australia/Lord_Howe", datetime(2026, 1, 1, tzinfo=UTC)
    bounds = {"kind": "calendar", "zone": zone, "fold": "both", "gap": "advance", "from": "2026-01-01T00:00"}
    said = CalendarTrigger(**bounds, rrule="FREQ=MINUTELY;INTERVAL=15", until="2026-12-01")
    cron = CalendarTrigger(**bounds, cron="*/15 * * * *", until="2026-12-01")
    rules, end = installed_rules(zone), start + timedelta(days=366)
    found = list(firings(said, "nominal", rules, start, end))
    assert found == list(firings(cron, "nominal", rules, start, end))
    assert list(newest_firings(said, "nominal", rules, start, end)) == found[::-1]
    assert count_firings(said, rules, start, end) == len(found)
