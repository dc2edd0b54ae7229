"""Catch-up as pure law: who is considered, who is let go and why, and that a decade costs as little as an hour."""

from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from law import catch_up
from law.bounds import Bounds, Jitter, Window, calendar_bounds
from law.catch_up import ROWS_MAX, Backlog, CatchUp, sort_out
from law.firings import Firing, count_firings, firings
from law.identity import ScheduleName
from law.reasons import Reason
from law.triggers import CalendarTrigger
from store.zone_rules import installed_rules

HOME = ScheduleName("home/one")
BOUNDED = {"mode": "bounded", "max_age": "6h", "max_count": 3, "horizon": "12h"}


def back(
    cron: str, since: datetime, at: datetime, zone: str = "UTC", window: dict | None = None, gap: str = "skip", **terms
) -> Backlog:
    """What recovery at `at` finds of everything since `since`."""
    trigger = CalendarTrigger(kind="calendar", cron=cron, zone=zone, gap=gap)  # type: ignore[arg-type]
    rules = installed_rules(zone)

    def bounds(firing: Firing) -> Bounds:
        return calendar_bounds(Window(**window) if window else None, Jitter(), firing, rules, HOME)

    return sort_out(trigger, "nominal", rules, since, at, bounds, at, CatchUp(**terms))


def considered(backlog: Backlog) -> list[datetime]:
    """The instants of the missed firings that wait to be decided."""
    return [entry.firing.at for entry in backlog.entries if entry.found_late and entry.reason is None]


def hour(number: int) -> datetime:
    return datetime(2026, 1, 1, tzinfo=UTC) + timedelta(hours=number)


@pytest.mark.obligation("CAL-8", boundary="ordinary")
def test_cal_8_newest_considers_one_and_skips_the_older_with_their_reasons() -> None:
    """Hourly, away for two days, horizon a day: the newest may begin, its elders are skipped, the oldest are too old."""
    backlog = back("0 * * * *", hour(0), hour(48) + timedelta(minutes=5))
    assert considered(backlog) == [hour(48)]
    assert Counter(entry.reason for entry in backlog.entries) == {
        None: 1, Reason.NOT_NEWEST: 23, Reason.BEYOND_HORIZON: 25,
    }  # fmt: skip
    assert backlog.ranges == ()


@pytest.mark.obligation("CAL-8", boundary="ordinary")
def test_cal_8_bounded_considers_the_newest_few_of_recent_age_and_orders_them_oldest_first() -> None:
    """Three of the last six hours; the other recent ones are over the count, older ones over age, the rest beyond the horizon."""
    backlog = back("0 * * * *", hour(0), hour(48) + timedelta(minutes=5), **BOUNDED)
    assert considered(backlog) == [hour(46), hour(47), hour(48)]
    reasons = Counter(entry.reason for entry in backlog.entries if entry.reason)
    assert reasons == {Reason.OVER_COUNT: 3, Reason.OVER_AGE: 6, Reason.BEYOND_HORIZON: 37}


@pytest.mark.obligation("CAL-8", boundary="failure")
def test_cal_8_a_closed_window_uses_up_no_place_and_stays_a_row_to_be_recorded_as_missed() -> None:
    """Those whose latest start has passed wait for their recorded miss; the open ones alone are counted."""
    backlog = back("0 * * * *", hour(40), hour(48) + timedelta(minutes=5), window={"allowed_delay": "2h"}, **BOUNDED)
    waiting = {entry.firing.at: entry.reason for entry in backlog.entries}
    assert waiting[hour(47)] is None and waiting[hour(48)] is None  # open
    assert waiting[hour(46)] is None and waiting[hour(41)] is None  # closed: to be missed, never over age or over count
    assert set(waiting.values()) == {None}


@pytest.mark.obligation("CAL-8", boundary="failure")
@pytest.mark.parametrize("terms", [{}, BOUNDED], ids=["newest", "bounded"])
def test_cal_8_a_decade_of_missed_seconds_yields_a_handful_of_firings(
    monkeypatch: pytest.MonkeyPatch, terms: dict
) -> None:
    """Three hundred million firings are accounted for while a few hundred are ever made."""
    made = Counter[str]()

    def counted(name: str) -> None:
        original = getattr(catch_up, name)

        def counting(*line: object) -> Iterator[Firing]:
            for firing in original(*line):
                made[name] += 1
                yield firing

        monkeypatch.setattr(catch_up, name, counting)

    counted("firings")
    counted("newest_firings")
    since, at = datetime(2016, 1, 1, tzinfo=UTC), datetime(2026, 6, 1, 12, 0, 0, 500, tzinfo=UTC)
    backlog = back("* * * * * *", since, at, zone="Europe/Bratislava", **terms)
    gaps = 11 * 3_600  # eleven springs swallowed an hour each
    accounted = len(backlog.entries) + sum(one.firing_count for one in backlog.ranges)
    assert accounted == int((at - since).total_seconds()) + 1 + gaps - 10 * 3_600  # ten autumns read an hour twice
    assert len(backlog.entries) <= ROWS_MAX + 64
    assert len(backlog.ranges) <= 4
    assert made.total() < 1_000


@pytest.mark.obligation("CAL-8", boundary="failure")
@pytest.mark.parametrize("gap", ["skip", "fail", "advance"])
def test_cal_8_the_newest_eligible_is_found_behind_thousands_that_a_jump_swallowed(gap: str) -> None:
    """Every second, recovered minutes after the clocks jumped: what the jump swallowed does not hide the firing before it."""
    jump = datetime(2026, 3, 29, 1, tzinfo=UTC)
    since, at = jump - timedelta(hours=2), jump + timedelta(minutes=5)
    backlog = back("* * 0-2 * * *", since, at, zone="Europe/Bratislava", gap=gap)
    assert considered(backlog) == [jump if gap == "advance" else jump - timedelta(seconds=1)]
    swallowed = {"skip": Reason.GAP_SKIPPED, "fail": Reason.GAP_FAILED}.get(gap)
    in_rows = sum(entry.reason is swallowed for entry in backlog.entries) if swallowed else 0
    in_ranges = sum(one.firing_count for one in backlog.ranges if one.reason is swallowed)
    assert in_rows + in_ranges == (3_600 if swallowed else 0)
    assert len(backlog.entries) <= ROWS_MAX + 1


@pytest.mark.obligation("CAL-8", boundary="failure")
@pytest.mark.parametrize("gap", ["skip", "fail", "advance"])
@pytest.mark.parametrize("after", [61, 70, 150, 161])
def test_cal_8_rows_that_end_amid_firings_of_one_instant_count_the_rest_of_them_once(gap: str, after: int) -> None:
    """Every second, recovered so soon after the jump that the rows run out amid what it swallowed."""
    jump = datetime(2026, 3, 29, 1, tzinfo=UTC)
    since, at = jump - timedelta(minutes=10), jump + timedelta(seconds=after)
    backlog = back("* * * * * *", since, at, zone="Europe/Bratislava", gap=gap)
    accounted = len(backlog.entries) + sum(one.firing_count for one in backlog.ranges)
    assert accounted == 600 + 3_600 + after
    assert len(considered(backlog)) == 1


@pytest.mark.obligation("CAL-5", boundary="failure")
@pytest.mark.obligation("CAL-8", boundary="restart")
@settings(max_examples=60, deadline=None)
@given(
    st.sampled_from(["*/5 * * * * *", "*/3 * * * *", "* * 1-3 * * *", "0 2 * * *"]), st.integers(60, 400_000),
    st.sampled_from(["1m", "5h", "9d"]), st.sampled_from(["skip", "fail", "advance"]), st.booleans(), st.booleans(),
)  # fmt: skip
def test_cal_8_rows_and_ranges_account_for_every_firing_once(
    cron: str, away: int, horizon: str, gap: str, bounded: bool, windowed: bool
) -> None:
    """Across the night the clocks change: nothing is lost, nothing counted twice, ranges hold what their reason says, and a
    second look from the cursor finds nothing."""
    since = datetime(2026, 3, 28, 20, tzinfo=UTC)
    at, zone = since + timedelta(seconds=away), "Europe/Bratislava"
    terms = {"horizon": horizon, **({"mode": "bounded", "max_age": horizon, "max_count": 40} if bounded else {})}
    backlog = back(cron, since, at, zone, {"allowed_delay": "2h"} if windowed else None, gap, **terms)
    trigger = CalendarTrigger(kind="calendar", cron=cron, zone=zone, gap=gap)  # type: ignore[arg-type]
    rules = installed_rules(zone)
    assert len(backlog.entries) + sum(one.firing_count for one in backlog.ranges) == count_firings(
        trigger, rules, since, at
    )
    assert [entry.firing for entry in backlog.entries] == sorted(
        (entry.firing for entry in backlog.entries), key=lambda firing: firing.order
    )
    reach = at - CatchUp(**terms).horizon
    for one in backlog.ranges:
        assert since <= one.first_at <= one.last_at < at
        if one.reason is Reason.BEYOND_HORIZON:
            assert one.last_at < reach
        if one.reason in (Reason.NOT_NEWEST, Reason.OVER_COUNT):
            assert one.first_at >= reach
    open_late = [entry for entry in backlog.entries if catch_up.is_considered(entry, at)]
    assert len(open_late) <= (40 if bounded else 1)
    eligible = next((one for one in list(firings(trigger, "nominal", rules, max(since, reach), at))[::-1]
                     if one.nominal_at and at - one.at > timedelta(minutes=1)), None)  # fmt: skip
    if eligible is not None and not (windowed and at - eligible.at >= timedelta(hours=2)):
        assert eligible in [entry.firing for entry in open_late]
    assert back(cron, at, at, zone, None, gap, **terms) == Backlog((), ())


@pytest.mark.obligation("CAL-8", boundary="failure")
@pytest.mark.parametrize(
    ("terms", "said"),
    [
        ({"mode": "bounded"}, "max_age and max_count"),
        ({"mode": "bounded", "max_age": "1h"}, "max_age and max_count"),
        ({"max_count": 3}, "belong to bounded"),
        ({"mode": "bounded", "max_age": "2d", "max_count": 3}, "max_age"),
        ({"mode": "bounded", "max_age": "1h", "max_count": 101}, "less than or equal"),
        ({"misfire_threshold": "2d"}, "misfire_threshold"),
        ({"mode": "all"}, "newest"),
        ({"max_concurrency": 2}, "belong to bounded"),
        ({"budget": 2}, "belong to bounded"),
        ({"mode": "bounded", "max_age": "1h", "max_count": 3, "max_concurrency": 0}, "greater than or equal"),
        ({"max_parallel": 2}, "Extra inputs"),
    ],
)
def test_catch_up_terms_that_contradict_each_other_are_refused(terms: dict, said: str) -> None:
    """A bound without its mode, a mode without its bounds, a reach beyond the horizon, and what the law does not know."""
    with pytest.raises(ValueError, match=said):
        CatchUp(**terms)
