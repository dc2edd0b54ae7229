"""What the oracle's cases do not reach: the cron dialect's traps, bounds in folds and gaps, jitter, cycles, rules, catch-up."""

import subprocess
import sys
from datetime import UTC, datetime, timedelta

import pytest

from law.bounds import Bounds, Jitter, Window, calendar_bounds, select_jitter
from law.catch_up import CatchUp, sort_out
from law.cron import parse_cron
from law.durations import format_duration, parse_duration
from law.errors import BadInput, BadZoneRules, CycleCollision, UnknownZone
from law.firings import check_cycle, count_firings, firings
from law.identity import ScheduleName, SourceKey, calendar_key, event_key, schedule_name, trigger_occurrence_id
from law.triggers import CalendarTrigger
from law.zone_rules import rules_from
from store.zone_rules import installed_rules, installed_zones

HOME = ScheduleName("home/one")


@pytest.mark.obligation("CAL-1", boundary="ordinary")
@pytest.mark.obligation("CAL-1", boundary="failure")
@pytest.mark.parametrize(
    "zone",
    ["", "localtime", "posixrules", "europe/bratislava", "../etc/passwd", "Europe/Bratislava ", "Mars/One", "/UTC"],
)
def test_cal_1_a_zone_that_is_unknown_or_host_local_is_refused(zone: str) -> None:
    """Missing, misspelled, host-local and path-like names are refused by name."""
    with pytest.raises(UnknownZone):
        installed_rules(zone)
    assert "Europe/Bratislava" in installed_zones()


@pytest.mark.obligation("CAL-1", boundary="restart")
def test_cal_1_the_hosts_own_zone_and_files_are_never_consulted() -> None:
    """Another TZ and no system zone files: the same firings."""
    program = (
        "from datetime import datetime, UTC\n"
        "from law.firings import firings\nfrom law.triggers import CalendarTrigger\nfrom store.zone_rules import installed_rules\n"
        "t = CalendarTrigger(kind='calendar', cron='30 2 * * *', zone='Europe/Bratislava', fold='both', gap='advance')\n"
        "rules = installed_rules(t.zone)\n"
        "start, end = datetime(2026, 3, 27, tzinfo=UTC), datetime(2026, 11, 1, tzinfo=UTC)\n"
        "print([f.at.isoformat() for f in firings(t, 'nominal', rules, start, end)])"
    )
    environments = (
        {"TZ": "Asia/Tokyo", "PYTHONTZPATH": ""},
        {"TZ": "America/New_York", "PYTHONTZPATH": "/nowhere"},
        {},
    )
    told = {
        subprocess.run(
            [sys.executable, "-c", program], env={**one, "PYTHONPATH": "."}, capture_output=True, text=True, check=True
        ).stdout
        for one in environments
    }
    assert len(told) == 1
    assert "2026-03-29T01:00:00" in told.pop()


@pytest.mark.parametrize(
    ("text", "hours"),
    [("0 10-10/6 * * *", None), ("5-5 * * * *", {5}), ("0 0 3-3 * *", {0})],
)
def test_a_range_of_one_is_that_one_and_never_a_step(text: str, hours: set[int] | None) -> None:
    """`a-a` is `a`; `a-a/n`, which is read in two ways, is refused."""
    if hours is None:
        with pytest.raises(BadInput, match="two ways"):
            parse_cron(text)
        return
    found = parse_cron(text).from_civil(datetime(2026, 1, 1))
    moments = [next(found) for _ in range(3)]
    assert {moment.minute if text.startswith("5") else moment.hour for moment in moments} == hours


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("0 0 1 * *", "of the month"),
        ("0 0 * * 1", "of the week"),
        ("0 0 1 * 1", "either"),
        ("0 0 */2 * 1", "both"),
        ("@daily", "every day"),
    ],
)
def test_the_day_rule_is_told_in_words(text: str, words: str) -> None:
    """Which of the two day fields must match is said, not left to folklore."""
    assert words in parse_cron(text).day_rule


@pytest.mark.obligation("CAL-4", boundary="failure")
@pytest.mark.parametrize("harm", ["cut", "empty", "text", "leap", "altered"])
def test_cal_4_bytes_that_cannot_be_trusted_are_refused(harm: str) -> None:
    """Cut short, empty, foreign, with leap seconds, or altered under their digest: refused, with no fallback."""
    from dataclasses import replace

    from law.zone_rules import check_rules

    rules = installed_rules("Europe/Bratislava")
    tzif = bytearray(rules.tzif)
    tzif[31] = 1
    harmed = {"cut": rules.tzif[:-9], "empty": b"", "text": b"TZ" * 40, "leap": bytes(tzif), "altered": rules.tzif}[
        harm
    ]
    with pytest.raises(BadZoneRules):
        if harm == "altered":
            check_rules(replace(rules, tzif=rules.tzif + b"\n"))
        rules_from("Europe/Bratislava", "x", harmed)


def bounds_of(text: str, window: dict, when: datetime, cron: str = "0 2 * * *", **policy: str) -> Bounds:
    """The bounds of the first firing at or after `when`."""
    trigger = CalendarTrigger(kind="calendar", cron=cron, zone=text, **policy)  # type: ignore[arg-type]
    rules = installed_rules(text)
    firing = next(one for one in firings(trigger, "nominal", rules, when, when + timedelta(days=9)) if one.nominal_at)
    return calendar_bounds(Window(**window), Jitter(), firing, rules, HOME)


@pytest.mark.obligation("CAL-7", boundary="failure")
@pytest.mark.parametrize(
    ("cron", "bound", "when", "latest"),
    [
        (
            "0 1 * * *",
            "02:30",
            datetime(2026, 3, 28, 23, tzinfo=UTC),
            datetime(2026, 3, 29, 1, 0, tzinfo=UTC),
        ),  # in the gap
        (
            "0 1 * * *",
            "02:30",
            datetime(2026, 10, 24, 22, tzinfo=UTC),
            datetime(2026, 10, 25, 0, 30, tzinfo=UTC),
        ),  # in the fold
        (
            "0 23 * * *",
            "05:00",
            datetime(2026, 1, 1, 12, tzinfo=UTC),
            datetime(2026, 1, 2, 4, 0, tzinfo=UTC),
        ),  # the next day
        (
            "0 2 * * *",
            "02:00",
            datetime(2026, 1, 1, 12, tzinfo=UTC),
            datetime(2026, 1, 3, 1, 0, tzinfo=UTC),
        ),  # a day later
    ],
)
def test_cal_7_a_civil_bound_in_a_gap_a_fold_or_on_the_next_day(
    cron: str, bound: str, when: datetime, latest: datetime
) -> None:
    """A bound that is jumped over is the jump; one that is repeated is its earlier reading; an earlier time is tomorrow's."""
    assert bounds_of("Europe/Bratislava", {"latest_start_civil": bound}, when, cron).latest_start_at == latest


@pytest.mark.obligation("CAL-6", boundary="ordinary")
@pytest.mark.obligation("CAL-6", boundary="failure")
@pytest.mark.obligation("CAL-6", boundary="restart")
def test_cal_6_jitter_is_drawn_from_identity_and_never_again() -> None:
    """The same firing draws the same jitter below the bound, in any process; other firings spread."""
    jitter = Jitter(mode="deterministic", max=timedelta(minutes=5))
    draws = [select_jitter(jitter, HOME, SourceKey(f"event:a:{number}")) for number in range(200)]
    assert draws == [select_jitter(jitter, HOME, SourceKey(f"event:a:{number}")) for number in range(200)]
    assert all(timedelta(0) <= draw < timedelta(minutes=5) for draw in draws)
    assert len(set(draws)) > 150
    with pytest.raises(ValueError, match="max"):
        Jitter(mode="deterministic")


@pytest.mark.obligation("OCC-1", boundary="failure")
def test_occ_1_two_firings_in_one_cycle_are_refused_as_far_as_can_be_seen() -> None:
    """Twice a day is not one firing a civil date."""
    trigger = CalendarTrigger(kind="calendar", cron="0 2,14 * * *", zone="UTC")
    with pytest.raises(CycleCollision, match="civil_date:2024-01-01"):
        check_cycle(HOME, trigger, "civil_date", installed_rules("UTC"), datetime(2024, 1, 1, tzinfo=UTC))
    check_cycle(HOME, trigger, "nominal", installed_rules("UTC"), datetime(2024, 1, 1, tzinfo=UTC))


@pytest.mark.obligation("OCC-1", boundary="failure")
@pytest.mark.parametrize(
    ("cycle", "tables"),
    [
        ("civil_hour", {"cron": "0 * * * *", "fold": "both"}),  # one hour of the year is read twice
        ("civil_date", {"cron": "30 2 * * *", "fold": "both"}),
        ("civil_date", {"cron": "0 2,14 * * *", "from": "2040-01-01"}),  # where the line begins, it is looked at
        ("iso_week", {"cron": "0 2 * * MON,SUN"}),
        ("civil_month", {"rrule": "FREQ=DAILY;INTERVAL=29", "from": "2026-01-01T02:00"}),
        ("civil_date", {"dates": ["2031-05-05T01:00", "2031-05-05T23:00"]}),
    ],
)
def test_occ_1_a_collision_that_comes_once_in_years_is_seen_when_it_is_registered(cycle: str, tables: dict) -> None:
    """A fold, a far beginning, the edge of a week, a long rhythm: found before they ring."""
    zone = "Europe/Bratislava"
    trigger = CalendarTrigger.model_validate({"kind": "calendar", "zone": zone, **tables})
    with pytest.raises(CycleCollision):
        check_cycle(HOME, trigger, cycle, installed_rules(zone), datetime(2024, 1, 1, tzinfo=UTC))  # type: ignore[arg-type]


@pytest.mark.obligation("OCC-1", boundary="ordinary")
def test_identities_are_computed_alike_by_everybody() -> None:
    """Keys and ids are stable texts: a change here would ring every known firing again."""
    civil = datetime(2026, 1, 2, 2, 0)
    keys = [
        calendar_key(cycle, "Europe/Bratislava", civil, 0)
        for cycle in ("nominal", "civil_date", "civil_hour", "iso_week", "civil_month")
    ]
    assert keys == [
        "nominal:2026-01-02T02:00:00[Europe/Bratislava]#0",
        "civil_date:2026-01-02",
        "civil_hour:2026-01-02T02",
        "iso_week:2026-W01",
        "civil_month:2026-01",
    ]
    assert event_key("bridge", "hello") == "event:bridge:hello"
    assert (
        str(trigger_occurrence_id(schedule_name("home", "nightly-rite"), keys[1]))
        == "07dc141c-4d4f-574b-ae05-20f9eaf81dc1"
    )


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("90s", 90), ("3h", 10800), ("1d12h", 129600), ("PT3H", 10800), ("P1DT12H", 129600), ("2w", 1209600)],
)
def test_durations_read_as_people_write_them(text: str, seconds: int) -> None:
    """Written and ISO 8601 forms, and back in the canonical spelling."""
    read = parse_duration(text)
    assert read.total_seconds() == seconds
    assert parse_duration(format_duration(read)) == read


@pytest.mark.parametrize("text", ["", "0s", "3", "h3", "-1h", "1h 2m", "1.5h", "P", "PT", "99999999d", "٣h"])
def test_what_is_no_duration_is_refused_by_field(text: str) -> None:
    """Empty, zero, negative, fractional, endless and look-alike durations are refused."""
    with pytest.raises(BadInput, match="horizon"):
        parse_duration(text, "horizon")


@pytest.mark.obligation("CAL-5", boundary="restart")
@pytest.mark.obligation("CAL-8", boundary="ordinary")
def test_cal_8_every_missed_firing_has_one_fate() -> None:
    """Rows and ranges partition what rang: nothing is lost and nothing is counted twice, wherever the horizon falls."""
    rules = installed_rules("UTC")
    trigger = CalendarTrigger(kind="calendar", cron="*/5 * * * * *", zone="UTC")
    since = datetime(2026, 1, 1, tzinfo=UTC)
    for away in (timedelta(seconds=30), timedelta(minutes=9), timedelta(hours=7), timedelta(days=3)):
        for horizon in (timedelta(minutes=1), timedelta(hours=5), timedelta(days=9)):
            at = since + away
            terms = CatchUp(horizon=horizon)
            backlog = sort_out(trigger, "nominal", rules, since, at, lambda firing: Bounds(firing.at), at, terms)
            rang = count_firings(trigger, rules, since, at)
            assert len(backlog.entries) + sum(one.firing_count for one in backlog.ranges) == rang
            considered = [one for one in backlog.entries if one.found_late and one.reason is None]
            assert len(considered) <= 1
            assert len(backlog.entries) <= 130
