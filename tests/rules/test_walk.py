"""A second, slow interpretation of the calendar: walk the UTC line minute by minute and ask what the clock reads.

It shares nothing with `law.firings` but the question "what does the clock read at this instant": no stretches, no jumps, no
arithmetic on civil times. Civil minutes that were read twice are folds; those that no reading ever showed are gaps.
"""

from collections import defaultdict
from datetime import UTC, datetime, timedelta

import pytest
from cronsim import CronSim
from hypothesis import given, settings
from hypothesis import strategies as st

from law.firings import count_firings, firings, newest_firings
from law.triggers import CalendarTrigger
from law.zone_rules import ZoneRules, civil_reading
from store.zone_rules import installed_rules

MINUTE = timedelta(minutes=1)
HALF_A_WEEK = timedelta(hours=84)
CHANGES = {
    "Europe/Bratislava": ["2026-03-29", "2026-10-25", "1944-10-02"],
    "America/New_York": ["2026-03-08", "2026-11-01"],
    "Australia/Lord_Howe": ["2026-04-04", "2026-10-03"],  # half an hour
    "Antarctica/Troll": ["2026-03-29", "2026-10-25"],  # two hours
    "Europe/Dublin": ["2026-03-29", "2026-10-25"],  # negative daylight saving
    "Africa/Casablanca": ["2026-02-15", "2026-03-22"],
    "America/Sao_Paulo": ["2018-11-04", "2019-02-17"],  # midnight is missing, midnight is repeated
    "Asia/Beirut": ["2026-03-28", "2026-10-24"],  # midnight
    "Pacific/Apia": ["2011-12-30", "2011-09-24"],  # a whole day is missing
    "Pacific/Kwajalein": ["1993-08-21"],  # another
    "America/St_Johns": ["2011-11-06", "2011-03-13"],  # one minute past midnight
    "Asia/Kathmandu": ["1985-12-31"],  # a quarter of an hour
    "America/Juneau": ["1867-10-18", "1983-10-30"],  # a day twice; two hours
    "UTC": ["2026-01-01"],
}
PLACES = [(zone, day) for zone, days in CHANGES.items() for day in days]
FIELDS = (
    st.sampled_from(["*/15", "0", "30", "1,59", "*/7"]),
    st.sampled_from(["*", "0", "1-3", "*/6", "23"]),
    st.sampled_from(["*", "*/2", "1", "L"]),
    st.sampled_from(["*", "*", "3,10,12"]),
    st.sampled_from(["*", "SUN", "1-5", "6#1"]),
)


def walked(trigger: CalendarTrigger, rules: ZoneRules, start: datetime, end: datetime) -> list[tuple]:
    """What rings, found by walking from well before `start` to well after `end`."""
    readings: dict[datetime, list[datetime]] = defaultdict(list)
    shown_before, moment = None, start - HALF_A_WEEK
    missing: dict[datetime, datetime] = {}
    while moment < end + HALF_A_WEEK:
        shown, _ = civil_reading(rules, moment)
        shown = shown.replace(second=0)
        if shown_before is not None:
            skipped = shown_before + MINUTE
            while skipped < shown:
                missing[skipped], skipped = moment, skipped + MINUTE
        readings[shown].append(moment)
        shown_before, moment = shown, moment + MINUTE
    found = []
    sim = CronSim(trigger.cron, min(readings) - MINUTE)
    for civil in iter(lambda: next(sim, None), None):
        if civil > max(readings):
            break
        if civil in missing and civil not in readings:
            kind = {"skip": "gap_skipped", "advance": "gap_advanced", "fail": "gap_failed"}[trigger.gap]
            found.append((missing[civil], civil, 0, kind))
        elif len(readings[civil]) > 1:
            wanted = {"earlier": (0,), "later": (1,), "both": (0, 1)}[trigger.fold]
            found += [(readings[civil][member], civil, member, "fold") for member in wanted]
        elif readings[civil]:
            found.append((readings[civil][0], civil, 0, "normal"))
    return sorted(one for one in found if start <= one[0] < end)


@pytest.mark.obligation("CAL-2", boundary="ordinary")
@pytest.mark.obligation("CAL-3", boundary="ordinary")
@settings(max_examples=45, deadline=None)
@given(
    st.sampled_from(PLACES), st.tuples(*FIELDS), st.sampled_from(("earlier", "later", "both")),
    st.sampled_from(("skip", "advance", "fail")), st.integers(-40, 40), st.integers(1, 60), st.integers(0, 59),
)  # fmt: skip
def test_cal_2_and_3_firings_agree_with_a_walk_along_the_utc_line(
    place: tuple[str, str], fields: tuple[str, ...], fold: str, gap: str, hours: int, long: int, minute: int
) -> None:
    """Around every kind of change, cut anywhere: the same instants, civil times, fold members and kinds, in the same order;
    the same in reverse; and the same number, counted."""
    zone, day = place
    rules = installed_rules(zone)
    trigger = CalendarTrigger(kind="calendar", cron=" ".join(fields), zone=zone, fold=fold, gap=gap)  # type: ignore[arg-type]
    start = datetime.fromisoformat(day).replace(tzinfo=UTC) + timedelta(hours=hours, minutes=minute)
    end = start + timedelta(hours=long)
    found = list(firings(trigger, "nominal", rules, start, end))
    if zone != "America/Juneau" or "1867" not in day:  # local mean time has odd seconds, which a walk by minutes misses
        assert [(one.at, one.civil, one.fold, one.kind.value) for one in found] == walked(trigger, rules, start, end)
    assert list(newest_firings(trigger, "nominal", rules, start, end)) == found[::-1]
    assert count_firings(trigger, rules, start, end) == len(found)


@pytest.mark.obligation("CAL-3", boundary="failure")
@settings(max_examples=60, deadline=None)
@given(
    st.sampled_from(sorted(CHANGES)), st.tuples(*FIELDS), st.sampled_from(("earlier", "later", "both")),
    st.integers(1880, 2200), st.integers(0, 365), st.integers(1, 800), st.booleans(),
)  # fmt: skip
def test_cal_3_a_long_line_is_counted_as_it_is_listed_in_both_directions(
    zone: str, fields: tuple[str, ...], fold: str, year: int, day: int, days: int, bounded: bool
) -> None:
    """Over months and years of any age, with and without active bounds: lists and counts agree, in order, each key once."""
    start = datetime(year, 1, 1, 5, 17, tzinfo=UTC) + timedelta(days=day)
    end = start + timedelta(days=days, minutes=43)
    active = {"from": (start + timedelta(days=3)).replace(tzinfo=None), "until": end.replace(tzinfo=None)}
    plain = {"kind": "calendar", "cron": " ".join(("17", *fields[1:])), "zone": zone, "fold": fold}
    try:
        trigger = CalendarTrigger.model_validate({**plain, **(active if bounded and days > 40 else {})})
    except ValueError as refused:
        assert "nothing rings between" in str(refused)  # noqa: PT017  # the only lawful refusal, and not the point here
        return
    line = (trigger, "nominal", installed_rules(zone), start, end)
    found = list(firings(*line))
    assert found == sorted(found, key=lambda one: one.order)
    assert list(newest_firings(*line)) == found[::-1]
    assert count_firings(trigger, *line[2:]) == len(found)
    assert len({one.key for one in found}) == len(found)
