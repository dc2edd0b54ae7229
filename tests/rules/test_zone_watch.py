"""A newer release of the zone data: exactly the firings that it would move are named."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from law.firings import firings
from law.triggers import CalendarTrigger
from law.zone_rules import ZoneRules, rules_from
from law.zone_watch import DIFFERENCES_MAX, differences

KEPT = Path(__file__).parent / "cases" / "zones"
PAIRS = [
    (zone.name, older.name, newer.name)
    for older in sorted(KEPT.iterdir())
    for newer in sorted(KEPT.iterdir())
    if older.name < newer.name
    for zone in sorted(older.iterdir())
    if (newer / zone.name).exists()
]


def rules(zone: str, release: str) -> ZoneRules:
    return rules_from(zone.replace("__", "/"), release, (KEPT / release / zone).read_bytes())


def trigger(cron: str, zone: str, **policies: str) -> CalendarTrigger:
    return CalendarTrigger.model_validate(
        {"kind": "calendar", "cron": cron, "zone": zone.replace("__", "/"), **policies}
    )


@pytest.mark.obligation("CAL-4", boundary="ordinary")
def test_cal_4_seventeen_days_before_a_zone_stays_on_summer_time() -> None:
    """B60: Amman did not go back in October 2022. Each morning from then on would ring an hour earlier; none before."""
    since = datetime(2022, 10, 11, tzinfo=UTC)
    found = differences(trigger("0 8 * * *", "Asia__Amman"), "nominal", rules("Asia__Amman", "2022d"),
                        rules("Asia__Amman", "2022e"), since, since + timedelta(days=60))  # fmt: skip
    assert found[0].civil == datetime(2022, 10, 28, 8)
    assert (found[0].retained_at, found[0].installed_at) == (
        datetime(2022, 10, 28, 6, tzinfo=UTC), datetime(2022, 10, 28, 5, tzinfo=UTC),
    )  # fmt: skip
    assert [one.civil.day for one in found[:3]] == [28, 29, 30]
    assert len(found) == 43


def test_the_same_rules_differ_nowhere() -> None:
    """Compared with themselves, whatever the release is called."""
    same = rules("Asia__Amman", "2022e")
    every_minute = trigger("* * * * *", "Asia__Amman")
    assert (
        differences(
            every_minute, "nominal", same, same, datetime(2022, 1, 1, tzinfo=UTC), datetime(2023, 1, 1, tzinfo=UTC)
        )
        == []
    )


@pytest.mark.obligation("CAL-4", boundary="failure")
@pytest.mark.parametrize(("zone", "older", "newer"), PAIRS, ids=str)
@given(data=st.data())
@settings(max_examples=6, deadline=None)
def test_cal_4_what_is_named_is_what_two_whole_lines_differ_in(
    zone: str, older: str, newer: str, data: st.DataObject
) -> None:
    """Against both lines listed whole: no date too many, none too few."""
    line = trigger(
        data.draw(st.sampled_from(["0 2 * * *", "30 */3 * * *", "15 0 1 * *", "59 23 * * 5"])), zone,
        fold=data.draw(st.sampled_from(["earlier", "later", "both"])), gap=data.draw(st.sampled_from(["skip", "advance"])),
    )  # fmt: skip
    since = datetime(int(older[:4]), 1, 1, tzinfo=UTC) + timedelta(hours=data.draw(st.integers(0, 9_000)))
    until = since + timedelta(days=500)
    one, other = rules(zone, older), rules(zone, newer)
    whole = [
        {firing.key: firing.nominal_at for firing in firings(line, "nominal", each, since, until)}
        for each in (one, other)
    ]
    changed = {key for key in whole[0].keys() | whole[1].keys() if whole[0].get(key) != whole[1].get(key)}
    found = differences(line, "nominal", one, other, since, until)
    assert {named.key for named in found} == changed or len(found) == DIFFERENCES_MAX
