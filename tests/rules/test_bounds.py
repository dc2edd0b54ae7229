"""Absolute bounds and jitter: civil bounds in folds and gaps, windows that never widen, draws that are made once."""

from datetime import UTC, datetime, timedelta

import pytest

from law.bounds import Bounds, Jitter, Window, calendar_bounds, check_jitter, event_bounds, select_jitter
from law.errors import BadInput
from law.firings import firings
from law.identity import ScheduleName, SourceKey
from law.schedule import check_document
from law.triggers import CalendarTrigger
from store.zone_rules import installed_rules

HOME, ZONE = ScheduleName("home/one"), "Europe/Bratislava"
NIGHTLY = {
    "authority": "home",
    "name": "nightly",
    "trigger": {"kind": "calendar", "cron": "0 2 * * *", "zone": ZONE},
    "class": {"service_class": "deadline_windowed"},
    "window": {"allowed_delay": "10m"},
    "work": {"pattern": "nightly_rite", "pattern_revision": "1", "owner": "magus"},
}


def utc(*parts: int) -> datetime:
    return datetime(*parts, tzinfo=UTC)  # type: ignore[misc]


def bounds_on(day: datetime, cron: str, window: dict, zone: str = ZONE, **policy: str) -> list[Bounds]:
    """The bounds of every firing of one UTC day."""
    trigger, rules = CalendarTrigger(kind="calendar", cron=cron, zone=zone, **policy), installed_rules(zone)  # type: ignore[arg-type]
    found = firings(trigger, "nominal", rules, day, day + timedelta(days=1))
    return [calendar_bounds(Window(**window), Jitter(), one, rules, HOME) for one in found if one.nominal_at]


@pytest.mark.obligation("CAL-7", boundary="ordinary")
def test_cal_7_two_until_five_is_three_hours_on_most_nights_and_another_number_on_two() -> None:
    """An ordinary night, the night with an hour more (02:00 is repeated; its first reading rings), and the one with an hour
    less, whose 02:00 was advanced."""
    window = {"latest_start_civil": "05:00"}
    long = {}
    for day in (utc(2026, 1, 2), utc(2026, 10, 25), utc(2026, 3, 29)):
        [one] = bounds_on(day, "0 2 * * *", window, gap="advance")
        long[day.month] = (one.latest_start_at or day) - one.eligible_at
    assert long == {1: timedelta(hours=3), 10: timedelta(hours=4), 3: timedelta(hours=2)}


@pytest.mark.obligation("CAL-7", boundary="failure")
@pytest.mark.parametrize(
    ("cron", "fold", "bound", "latest"),
    [
        ("0 2 * * *", "earlier", "02:30", [utc(2026, 10, 25, 0, 30)]),  # a repeated bound is its first reading
        ("30 2 * * *", "later", "02:45", [utc(2026, 10, 25, 1, 45)]),  # but one that is still to come
        ("30 2 * * *", "both", "02:45", [utc(2026, 10, 25, 0, 45), utc(2026, 10, 25, 1, 45)]),
        ("45 2 * * *", "earlier", "02:15", [utc(2026, 10, 26, 1, 15)]),  # not later by the clock: tomorrow's
    ],
)
def test_cal_7_a_bound_in_a_fold_is_the_earlier_reading_that_is_still_to_come(
    cron: str, fold: str, bound: str, latest: list[datetime]
) -> None:
    """The night of October 25: 02:00 to 03:00 is read twice, first from 00:00Z, then from 01:00Z."""
    found = bounds_on(utc(2026, 10, 25), cron, {"latest_start_civil": bound}, fold=fold)
    assert [one.latest_start_at for one in found] == latest


@pytest.mark.obligation("CAL-7", boundary="failure")
@pytest.mark.parametrize("bound", ["02:45", "03:00"])
def test_cal_7_a_firing_advanced_to_its_own_bound_has_an_empty_window_and_not_tomorrows(bound: str) -> None:
    """02:30 was jumped over and rings at 03:00, where its bound is, too: the window is empty, and never a day long."""
    [one] = bounds_on(
        utc(2026, 3, 29), "30 2 * * *", {"latest_start_civil": bound, "finish_by_civil": "04:00"}, gap="advance"
    )
    assert one.latest_start_at == one.not_before == utc(2026, 3, 29, 1)
    assert one.finish_by == utc(2026, 3, 29, 2)


@pytest.mark.obligation("CAL-7", boundary="failure")
def test_cal_7_a_bound_on_a_day_that_never_was_is_the_jump_over_it() -> None:
    """Apia, 2011-12-29 23:00 until 05:00 of a day that was skipped whole: the clocks jumped at midnight."""
    [one] = bounds_on(utc(2011, 12, 30), "0 23 29 12 *", {"latest_start_civil": "05:00"}, "Pacific/Apia")
    assert (one.eligible_at, one.latest_start_at) == (utc(2011, 12, 30, 9), utc(2011, 12, 30, 10))


@pytest.mark.parametrize(
    ("window", "said"),
    [
        ({}, "exactly one"),
        ({"allowed_delay": "1h", "latest_start_civil": "05:00"}, "exactly one"),
        ({"allowed_delay": "1h", "finish_within": "1h", "finish_by_civil": "05:00"}, "two forms"),
        ({"allowed_delay": "1h", "finish_proof": "p"}, "no"),
        ({"latest_start_civil": "24:00"}, "time of day"),
        ({"latest_start_civil": "5:00"}, "time of day"),
        ({"allowed_delay": "0s"}, "century"),
    ],
)
def test_a_window_that_says_two_things_or_nothing_is_refused(window: dict, said: str) -> None:
    """One latest start, at most one finish, a proof only where there is a finish, times of day as people write them."""
    with pytest.raises(ValueError, match=said):
        Window(**window)


@pytest.mark.obligation("CAL-6", boundary="ordinary")
def test_cal_6_jitter_moves_eligibility_and_no_bound() -> None:
    """With the largest jitter the window opens later and closes when it always did."""
    trigger, rules = CalendarTrigger(kind="calendar", cron="0 2 * * *", zone=ZONE), installed_rules(ZONE)
    [firing] = firings(trigger, "nominal", rules, utc(2026, 1, 2), utc(2026, 1, 3))
    jitter, window = Jitter(mode="bounded", max=timedelta(minutes=5)), Window(allowed_delay=timedelta(hours=3))
    bounds = calendar_bounds(window, jitter, firing, rules, HOME, draw=0.999_999_999)
    assert bounds.eligible_at == bounds.not_before == utc(2026, 1, 2, 1, 4, 59, 999_000)
    assert bounds.latest_start_at == utc(2026, 1, 2, 4)
    assert bounds.jitter_milliseconds == 299_999
    event = event_bounds(window, jitter, utc(2026, 1, 2), HOME, SourceKey("event:a:1"), draw=0.5)
    assert (event.eligible_at, event.latest_start_at) == (utc(2026, 1, 2, 0, 2, 30), utc(2026, 1, 2, 3))


@pytest.mark.obligation("CAL-6", boundary="failure")
@pytest.mark.parametrize("draw", [None, 1.0, -0.1, float("nan")])
def test_cal_6_bounded_jitter_without_a_lawful_draw_fails_closed(draw: float | None) -> None:
    """Nothing here is random: whoever forgets the draw, or brings one outside [0, 1), is told so."""
    with pytest.raises(BadInput, match="draw"):
        select_jitter(Jitter(mode="bounded", max=timedelta(minutes=5)), HOME, SourceKey("event:a:1"), draw)


@pytest.mark.obligation("CAL-6", boundary="failure")
def test_cal_6_jitter_that_could_use_up_a_window_is_refused_where_it_can_be_seen() -> None:
    """An elapsed window at once; a civil one on the one night of the year that is too short for it."""
    check_document({**NIGHTLY, "jitter": {"mode": "bounded", "max": "10m"}})
    for window in ({"allowed_delay": "9m"}, {"allowed_delay": "1h", "finish_within": "9m"}):
        with pytest.raises(BadInput, match="jitter"):
            check_document({**NIGHTLY, "window": window, "jitter": {"mode": "deterministic", "max": "10m"}})
    trigger, rules = CalendarTrigger(kind="calendar", cron="0 1 * * *", zone=ZONE), installed_rules(ZONE)
    civil = Window(latest_start_civil="03:30")
    check_jitter(trigger, civil, Jitter(mode="bounded", max=timedelta(minutes=90)), rules, utc(2026, 1, 1))
    with pytest.raises(BadInput, match=r"jitter\.max.*2026-03-29T01:00:00"):
        check_jitter(trigger, civil, Jitter(mode="bounded", max=timedelta(minutes=91)), rules, utc(2026, 1, 1))
