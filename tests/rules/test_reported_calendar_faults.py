"""What happened to people elsewhere, kind by kind: each a situation that the calendar law makes impossible."""

from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from law.bounds import Bounds, Jitter, Window, calendar_bounds
from law.catch_up import CatchUp, sort_out
from law.errors import UnknownZone
from law.firings import Firing, firings, next_firing_at
from law.identity import ScheduleName, event_key
from law.reasons import Reason
from law.triggers import CalendarTrigger
from law.zone_rules import rules_from
from store.zone_rules import installed_rules

HOME = ScheduleName("home/one")
KEPT = Path(__file__).parent / "cases" / "zones"


def at(text: str) -> datetime:
    return datetime.fromisoformat(text + "+00:00")


def rung(cron: str, zone: str, start: str, end: str, **policy: Any) -> list[Firing]:
    """The firings of a UTC stretch."""
    trigger = CalendarTrigger(kind="calendar", cron=cron, zone=zone, **policy)
    return list(firings(trigger, "nominal", installed_rules(zone), at(start), at(end)))


def told(found: list[Firing]) -> list[tuple[str, str]]:
    return [(one.kind.value, f"{one.at:%m-%d %H:%M}") for one in found]


@pytest.mark.obligation("CAL-2", boundary="failure")
@pytest.mark.obligation("CAL-3", boundary="failure")
def test_a_time_in_a_gap_or_fold_has_a_knob_and_a_record() -> None:
    """B01, B58: 02:30 on the night it never came, and 01:30 on the night it came twice, under each policy."""
    spring = ("30 2 * * *", "America/New_York", "2026-03-08T00:00", "2026-03-09T00:00")
    kinds = {gap: told(rung(*spring, gap=gap)) for gap in ("skip", "advance", "fail")}
    assert kinds == {
        "skip": [("gap_skipped", "03-08 07:00")], "advance": [("gap_advanced", "03-08 07:00")],
        "fail": [("gap_failed", "03-08 07:00")],
    }  # fmt: skip
    autumn = ("30 1 * * *", "America/New_York", "2026-11-01T00:00", "2026-11-02T00:00")
    instants = {fold: [f"{one.at:%H:%M}" for one in rung(*autumn, fold=fold)] for fold in ("earlier", "later", "both")}
    assert instants == {"earlier": ["05:30"], "later": ["06:30"], "both": ["05:30", "06:30"]}


@pytest.mark.obligation("CAL-2", boundary="failure")
def test_a_long_run_over_the_repeated_hour_meets_no_second_firing_unless_both_is_pinned() -> None:
    """B03: 02:00 in Berlin on 2023-10-29 is one identity by default, and two under `both`."""
    night = ("0 2 * * *", "Europe/Berlin", "2023-10-28T12:00", "2023-10-29T12:00")
    assert [one.key for one in rung(*night)] == ["nominal:2023-10-29T02:00:00[Europe/Berlin]#0"]
    assert [one.key[-1] for one in rung(*night, fold="both")] == ["0", "1"]


@pytest.mark.obligation("CAL-3", boundary="failure")
def test_a_listed_hour_that_exists_on_the_day_of_the_gap_rings_at_that_hour() -> None:
    """B10: 07:00 on 2020-03-08 in California exists and rings at 07:00 PDT, whatever else is listed."""
    for cron in ("0 7-8 * * *", "0 7,9 * * *"):
        found = rung(cron, "America/Los_Angeles", "2020-03-08T00:00", "2020-03-09T00:00")
        assert ("normal", "03-08 14:00") in told(found) and len(found) == 2


@pytest.mark.obligation("OCC-3", boundary="failure")
@pytest.mark.parametrize("zone", ["America/New_York", "Europe/Zurich", "Australia/Sydney", "Australia/Lord_Howe"])
def test_no_day_is_skipped_or_rung_early_around_a_change(zone: str) -> None:
    """B13: nightly at 02:00 through two years: each civil date once, none before its instant, and a manual firing lives in
    another identity space."""
    found = rung("0 2 * * *", zone, "2024-01-01T00:00", "2026-01-01T00:00", gap="advance")
    dates = [one.civil.date() for one in found]
    assert dates == [dates[0] + timedelta(days=number) for number in range(len(dates))]
    assert not {one.key for one in found} & {event_key("manual", one.key) for one in found}


@pytest.mark.obligation("CAL-3", boundary="failure")
def test_an_advanced_time_that_meets_another_keeps_its_own_identity_and_the_line_goes_on() -> None:
    """B50: every second hour in Toronto on 2023-03-12: 02:00 is advanced to 03:00's instant, and 04:00 follows."""
    found = rung("0 */2 * * *", "America/Toronto", "2023-03-12T04:00", "2023-03-12T13:00", gap="advance")
    assert told(found)[:3] == [("normal", "03-12 05:00"), ("gap_advanced", "03-12 07:00"), ("normal", "03-12 08:00")]
    hourly = rung("0 * * * *", "America/Toronto", "2023-03-12T07:00", "2023-03-12T07:01", gap="advance")
    assert [f"{one.civil:%H}" for one in hourly] == ["02", "03"] and len({one.key for one in hourly}) == 2


@pytest.mark.obligation("CAL-3", boundary="failure")
def test_a_skipped_time_leaves_an_explicit_record_and_nothing_else() -> None:
    """B51, B53: 02:00 on 2024-03-10 in Chicago is a skipped firing without an instant; the next one that rings is tomorrow's."""
    found = rung("0 2 * * *", "America/Chicago", "2024-03-10T00:00", "2024-03-12T00:00")
    assert [(one.kind.value, one.nominal_at) for one in found] == [
        ("gap_skipped", None), ("normal", at("2024-03-11T07:00")),
    ]  # fmt: skip
    assert (
        f"{rung('0 2 * * *', 'US/Eastern', '2013-03-10T08:00', '2013-03-12T00:00')[0].civil}" == "2013-03-11 02:00:00"
    )


@pytest.mark.obligation("CAL-3", boundary="failure")
@pytest.mark.parametrize("gap", ["skip", "advance", "fail"])
def test_a_time_in_the_gap_makes_one_firing_and_the_search_for_the_next_moves_on(gap: str) -> None:
    """B27: 02:00 on 2019-03-10 in New York, asked for what is next again and again: it never stands still."""
    trigger = CalendarTrigger(kind="calendar", cron="0 2 * * *", zone="America/New_York", gap=gap)  # type: ignore[arg-type]
    rules, moment, seen = installed_rules(trigger.zone), at("2019-03-09T12:00"), []
    while moment < at("2019-03-12T00:00"):
        moment = next_firing_at(trigger, "nominal", rules, moment) or at("2019-03-12T00:00")
        seen.append(f"{moment:%d %H:%M}")
        moment += timedelta(microseconds=1)
    assert seen == ["10 07:00", "11 06:00", "12 06:00"]


@pytest.mark.obligation("CAL-6", boundary="failure")
def test_jitter_never_loses_the_next_night() -> None:
    """B14, B76: midnight in California with jitter: each night rings, its nominal instant unmoved, many Schedules spread."""
    found = rung("0 0 * * *", "US/Pacific", "2022-03-12T00:00", "2022-03-16T00:00")
    assert [f"{one.civil:%d}" for one in found] == ["12", "13", "14", "15"]
    jitter, rules = Jitter(mode="deterministic", max=timedelta(minutes=10)), installed_rules("US/Pacific")
    spread = {
        calendar_bounds(None, jitter, found[2], rules, ScheduleName(f"home/{number}")).eligible_at
        for number in range(50)
    }
    assert len(spread) > 45 and all(found[2].at <= one < found[2].at + timedelta(minutes=10) for one in spread)


@pytest.mark.obligation("OCC-1", boundary="failure")
@pytest.mark.parametrize("zone", ["Europe/London", "America/Denver"])
def test_firings_listed_before_and_after_a_change_have_the_same_identities(zone: str) -> None:
    """B55, B56: the week of the change, listed whole or piece by piece: the same keys, each once."""
    whole = rung("0 9 * * *", zone, "2022-10-25T00:00", "2022-11-10T00:00")
    pieces = [
        one
        for day in range(16)
        for one in rung(
            "0 9 * * *", zone, *(f"{at('2022-10-25T00:00') + timedelta(days=day + more):%FT%R}" for more in (0, 1))
        )
    ]
    assert [one.key for one in pieces] == [one.key for one in whole]
    assert len({one.key for one in whole}) == len(whole) == 16


@pytest.mark.obligation("CAL-4", boundary="failure")
def test_newer_zone_data_moves_nothing_that_is_pinned() -> None:
    """B59, B60: Amman gave up its winter time at seventeen days' notice: the pinned rules ring on as they did, the newer ones
    an hour earlier, and the morning has one identity under both."""
    trigger = CalendarTrigger(kind="calendar", cron="0 8 28 10 *", zone="Asia/Amman")
    lines = {}
    for release in ("2022d", "2022e"):
        rules = rules_from("Asia/Amman", release, (KEPT / release / "Asia__Amman").read_bytes())
        [one] = firings(trigger, "nominal", rules, at("2022-10-01T00:00"), at("2022-12-01T00:00"))
        lines[release] = (f"{one.at:%H:%M}", one.key)
    assert [instant for instant, _ in lines.values()] == ["06:00", "05:00"]
    assert len({key for _, key in lines.values()}) == 1


@pytest.mark.obligation("CAL-1", boundary="failure")
def test_a_zone_is_known_or_refused_when_it_is_named() -> None:
    """B63: Los Angeles is found without any system file; a zone that nobody knows is refused then, and not when it rings."""
    assert installed_rules("America/Los_Angeles").zone == "America/Los_Angeles"
    with pytest.raises(UnknownZone, match=r"trigger\.zone"):
        installed_rules("America/Los_Angelos")


@pytest.mark.obligation("CAL-6", boundary="restart")
def test_a_restart_draws_no_second_jitter_however_often_it_comes() -> None:
    """B21: twice a day with up to twelve hours of jitter: each look draws the same, so that it comes at last."""
    jitter, rules = Jitter(mode="deterministic", max=timedelta(hours=12)), installed_rules("UTC")
    [firing] = rung("0 6 * * *", "UTC", "2026-01-01T00:00", "2026-01-02T00:00")
    draws = {calendar_bounds(None, jitter, firing, rules, HOME).eligible_at for _ in range(20)}
    assert len(draws) == 1 and draws.pop() < firing.at + timedelta(hours=12)


@pytest.mark.obligation("CAL-8", boundary="failure")
def test_catching_up_one_firing_never_uses_up_the_next() -> None:
    """B22: hourly, down from 09:50 to 10:05, 09:00 drawn to 09:55: it is caught up, and 10:00 rings in its own right."""
    trigger, rules = CalendarTrigger(kind="calendar", cron="0 * * * *", zone="UTC"), installed_rules("UTC")

    def bounds(firing: Firing) -> Bounds:
        jitter, window = Jitter(mode="bounded", max=timedelta(minutes=60)), Window(allowed_delay=timedelta(hours=2))
        return calendar_bounds(window, jitter, firing, rules, HOME, draw=55 / 60)

    moment = at("2026-01-01T10:00:30")
    backlog = sort_out(trigger, "nominal", rules, at("2026-01-01T08:30"), moment, bounds, moment, CatchUp())
    assert [(f"{entry.firing.at:%H}", entry.found_late, entry.reason) for entry in backlog.entries] == [
        ("09", True, None), ("10", False, None),
    ]  # fmt: skip
    assert [f"{entry.bounds.eligible_at:%H:%M}" for entry in backlog.entries if entry.bounds] == ["09:55", "10:55"]
    assert Reason.NOT_NEWEST not in {entry.reason for entry in backlog.entries}
