"""One firing, one Occurrence: found again, raced for, missed by the thousand, and interpreted by retained rules alone."""

import threading
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import pytest

from law.errors import BadInput, UnknownSchedule
from law.identity import DecisionId, ScheduleName, trigger_occurrence_id
from store import ledger, occurrences
from tests.office import EVENING, NIGHTLY, Office, document

RINGS = datetime(2026, 1, 2, 1, 0, tzinfo=UTC)
MINUTELY: dict[str, Any] = {
    **NIGHTLY,
    "name": "minutely",
    "cycle": "nominal",
    "trigger": {"kind": "calendar", "cron": "* * * * *", "zone": "UTC"},
    "window": {"allowed_delay": "30s"},
}
SECONDLY = {**MINUTELY, "name": "secondly", "trigger": {"kind": "calendar", "cron": "* * * * * *", "zone": "UTC"}}


@pytest.mark.obligation("OCC-1", boundary="ordinary")
@pytest.mark.obligation("OCC-3", boundary="ordinary")
def test_occ_1_a_firing_becomes_one_occurrence_however_often_it_is_looked_for(office: Office, evening, clock) -> None:
    """Looked for three times, the firing is one row, under the id that anybody computes from Schedule and firing."""
    schedule = office.register(document(NIGHTLY))
    clock.set(RINGS)
    assert [office.materialize(schedule).created for _ in range(3)] == [1, 0, 0]
    [line] = ledger.occurrences(office.pool, schedule)
    assert line["trigger_occurrence_id"] == trigger_occurrence_id(schedule, line["key"])


@pytest.mark.obligation("OCC-3", boundary="failure")
def test_occ_3_nothing_rings_before_its_instant(office: Office, evening, clock) -> None:
    """A microsecond before the nominal instant there is no Occurrence."""
    schedule = office.register(document(NIGHTLY))
    clock.set(RINGS - timedelta(microseconds=1))
    assert office.materialize(schedule).created == 0
    assert office.count("occurrence") == 0


@pytest.mark.obligation("OCC-2", boundary="failure")
def test_occ_2_relays_that_race_make_one_occurrence(office: Office, evening, clock) -> None:
    """Eight relays at once over two Schedules: each firing is made once, whoever was quickest."""
    schedules = [office.register(document(NIGHTLY, name=name)) for name in ("one", "two")]
    clock.set(RINGS)
    made: list[int] = []
    relays = [threading.Thread(target=lambda s=s: made.append(office.materialize(s).created)) for s in schedules * 4]
    for relay in relays:
        relay.start()
    for relay in relays:
        relay.join()
    assert len(made) == 8
    assert office.count("occurrence") == 2


@pytest.mark.obligation("OCC-1", boundary="restart")
@pytest.mark.obligation("OCC-6", boundary="restart")
def test_occ_6_killed_before_the_commit_the_firing_is_found_again(office: Office, evening, clock) -> None:
    """A materializer that is ended before its COMMIT leaves the cursor; the next finds the same firing."""
    schedule = office.register(document(NIGHTLY))
    clock.set(RINGS)
    with office.killed_at_commit("occurrence"):
        office.materialize(schedule)
    assert office.count("occurrence") == 0
    assert office.materialize(schedule).created == 1


@pytest.mark.obligation("OCC-6", boundary="ordinary")
def test_whoever_wakes_first_works_for_all(office: Office, evening, clock) -> None:
    """One relay's round materializes and decides every Schedule that is due."""
    schedules = [office.register(document(NIGHTLY, name=f"rite-{number}")) for number in range(20)]
    clock.set(RINGS)
    office.ring(schedules[0])
    assert {state for one in schedules for _, state, _ in office.states(one)} == {"admitted"}
    assert office.value("SELECT count(*) FROM nightbell.round WHERE act = 'decide'") == 1


@pytest.mark.obligation("CAL-3", boundary="failure")
@pytest.mark.parametrize(
    ("gap", "state", "reason"),
    [("skip", "skipped", "gap_skipped"), ("fail", "failed", "gap_failed"), ("advance", "admitted", "admitted")],
)
def test_cal_3_a_civil_time_that_never_came_is_recorded(
    office: Office, clock, gap: str, state: str, reason: str
) -> None:
    """02:00 on the night the clocks go forward is recorded by the pinned policy, and never silently dropped."""
    clock.set(datetime(2026, 3, 28, 20, 0, tzinfo=UTC))
    schedule = office.register(document(NIGHTLY, trigger={**NIGHTLY["trigger"], "gap": gap}))
    clock.set(datetime(2026, 3, 29, 1, 0, tzinfo=UTC))
    office.ring(schedule)
    assert office.states(schedule) == [("civil_date:2026-03-29", state, reason)]


@pytest.mark.obligation("CAL-2", boundary="failure")
def test_cal_2_a_repeated_civil_time_rings_once_or_twice_as_pinned(office: Office, clock) -> None:
    """`both` makes two Occurrences with two identities, fold members 0 and 1, an hour apart."""
    clock.set(datetime(2026, 10, 24, 20, 0, tzinfo=UTC))
    trigger = {**NIGHTLY["trigger"], "fold": "both"}
    schedule = office.register(document(NIGHTLY, cycle="nominal", trigger=trigger, window={"allowed_delay": "2h"}))
    clock.set(datetime(2026, 10, 25, 1, 0, 30, tzinfo=UTC))
    office.materialize(schedule)
    lines = ledger.occurrences(office.pool, schedule)
    assert [(line["key"][-2:], line["nominal_at"].hour) for line in lines] == [("#1", 1), ("#0", 0)]


@pytest.mark.obligation("CAL-4", boundary="failure")
@pytest.mark.obligation("CAL-4", boundary="restart")
def test_cal_4_a_schedule_whose_retained_rules_are_gone_is_halted_alone(office: Office, evening, clock) -> None:
    """Altered rules stop their own Schedules with a reason and nothing else; made whole, they ring on from the cursor."""
    halted = office.register(document(NIGHTLY))
    rings = office.register(document(NIGHTLY, name="other", trigger={**NIGHTLY["trigger"], "zone": "Europe/Vienna"}))
    kept = office.value("SELECT tzif FROM nightbell.zone_rules WHERE zone = 'Europe/Bratislava'")
    tear = "UPDATE nightbell.zone_rules SET tzif = tzif || '\\x00'::bytea WHERE zone = 'Europe/Bratislava'"
    office.execute(
        "ALTER TABLE nightbell.zone_rules DISABLE TRIGGER ALL",
        "ALTER TABLE nightbell.zone_rules DROP CONSTRAINT zone_rules_digest_law",
        tear,
    )
    clock.set(RINGS)
    found = office.materialize(halted)
    assert (found.created, found.next_nominal_at) == (0, None)
    assert "Europe/Bratislava" in found.halted
    assert office.states(rings) == [("civil_date:2026-01-02", "pending", None)]
    assert office.states(halted) == []
    office.execute(f"UPDATE nightbell.zone_rules SET tzif = '\\x{kept.hex()}' WHERE zone = 'Europe/Bratislava'")
    assert (office.materialize(halted).created, office.materialize(halted).halted) == (1, "")


@pytest.mark.obligation("CAL-5", boundary="ordinary")
@pytest.mark.obligation("CAL-8", boundary="ordinary")
def test_cal_8_after_an_outage_the_newest_is_considered_and_the_others_are_recorded(office: Office, clock) -> None:
    """Three nights away: the oldest is beyond the horizon, the middle ones are skipped for the newest, which may begin."""
    clock.set(EVENING)
    window = {"allowed_delay": "3d"}
    schedule = office.register(document(NIGHTLY, window=window, catch_up={"horizon": "2d"}))
    clock.set(datetime(2026, 1, 4, 2, 0, tzinfo=UTC))
    office.ring(schedule)
    assert office.states(schedule) == [
        ("civil_date:2026-01-02", "skipped", "beyond_horizon"),
        ("civil_date:2026-01-03", "skipped", "not_newest"),
        ("civil_date:2026-01-04", "admitted", "admitted"),
    ]


@pytest.mark.obligation("CAL-5", boundary="failure")
@pytest.mark.obligation("CAL-8", boundary="failure")
def test_cal_8_a_decade_of_missed_seconds_is_a_handful_of_rows(office: Office, clock) -> None:
    """Ten million missed seconds become a hundred rows and two ranges that count every one of them."""
    clock.set(EVENING)
    schedule = office.register(document(SECONDLY))
    clock.set(EVENING + timedelta(seconds=10_000_000))
    office.ring(schedule)
    rows = office.value("SELECT count(*) FROM nightbell.occurrence")
    ranges = ledger.skipped_ranges(office.pool, schedule)
    assert rows <= 200
    assert {line["reason"] for line in ranges} == {"beyond_horizon", "latest_start_passed"}
    assert rows + sum(line["firing_count"] for line in ranges) == 10_000_001


@pytest.mark.obligation("CAL-8", boundary="restart")
def test_cal_8_after_the_outage_it_rings_on_as_if_nothing_had_been(office: Office, clock) -> None:
    """A long outage is settled once; the next minute rings as ever, and never as a burst."""
    clock.set(EVENING)
    schedule = office.register(document(MINUTELY))
    clock.set(EVENING + timedelta(days=3, seconds=5))
    office.ring(schedule)
    assert office.value("SELECT count(*) FROM nightbell.occurrence WHERE state = 'admitted'") == 1
    before = office.count("occurrence")
    clock.set(EVENING + timedelta(days=3, seconds=60))
    office.ring(schedule)
    assert office.count("occurrence") == before + 1


@pytest.mark.obligation("CAL-9", boundary="ordinary")
@pytest.mark.obligation("CAL-9", boundary="failure")
@pytest.mark.obligation("CAL-6", boundary="ordinary")
def test_cal_9_what_was_materialized_cannot_be_changed(office: Office, evening, clock) -> None:
    """Bounds, jitter, revision and identity of an Occurrence are refused by the database itself, whoever asks."""
    schedule = office.register(document(NIGHTLY, jitter={"mode": "deterministic", "max": "5m"}))
    clock.set(RINGS)
    office.materialize(schedule)
    for change in ("latest_start_at = latest_start_at + interval '1 h'", "jitter_milliseconds = 0", "source_key = 'x'"):
        with pytest.raises(Exception, match="pinned"):
            office.execute(f"UPDATE nightbell.occurrence SET {change}")
    with pytest.raises(Exception, match="append-only"):
        office.execute("DELETE FROM nightbell.occurrence")


@pytest.mark.obligation("CAL-6", boundary="restart")
def test_cal_6_bounded_jitter_is_drawn_once_and_stored(office: Office, evening, clock) -> None:
    """The draw is the row's: inside its bound, beside a latest start that it does not move, and the same when looked for again."""
    schedule = office.register(document(NIGHTLY, jitter={"mode": "bounded", "max": "30m"}))
    clock.set(RINGS + timedelta(minutes=31))
    office.materialize(schedule)
    stored = (
        "SELECT jitter_milliseconds, eligible_at - nominal_at, latest_start_at - nominal_at FROM nightbell.occurrence"
    )
    drawn, moved, delay = office.row(stored) or (None, None, None)
    assert drawn is not None
    assert 0 <= drawn < 30 * 60 * 1000
    assert moved == timedelta(milliseconds=drawn)
    assert delay == timedelta(hours=3)
    office.materialize(schedule)
    assert office.row(stored) == (drawn, moved, delay)


@pytest.mark.obligation("CAL-6", boundary="failure")
def test_cal_6_jitter_that_could_use_up_a_window_is_refused(office: Office, evening) -> None:
    """A window of three hours cannot hold a jitter of more: the revision is refused, and nothing is made."""
    with pytest.raises(BadInput, match=r"jitter\.max"):
        office.register(document(NIGHTLY, jitter={"mode": "bounded", "max": "181m"}))
    assert office.count("schedule") == 0


@pytest.mark.obligation("CAL-7", boundary="ordinary")
@pytest.mark.obligation("CAL-7", boundary="failure")
@pytest.mark.parametrize(
    ("evening_before", "rings", "hours"),
    [
        (datetime(2026, 1, 1, 20, tzinfo=UTC), datetime(2026, 1, 2, 1, tzinfo=UTC), 3),
        (datetime(2026, 10, 24, 20, tzinfo=UTC), datetime(2026, 10, 25, 0, tzinfo=UTC), 4),
    ],
)
def test_cal_7_two_until_five_is_three_hours_and_one_night_four(
    office: Office, clock, evening_before: datetime, rings: datetime, hours: int
) -> None:
    """A civil bound is resolved by the retained rules, on the night the clocks go back as on any other."""
    clock.set(evening_before)
    schedule = office.register(document(NIGHTLY))
    clock.set(rings)
    office.materialize(schedule)
    [line] = ledger.occurrences(office.pool, schedule)
    assert line["latest_start_at"] - line["nominal_at"] == timedelta(hours=hours)


@pytest.mark.obligation("OCC-8", boundary="ordinary")
@pytest.mark.obligation("OCC-8", boundary="failure")
def test_occ_8_only_windowed_work_has_window_columns(office: Office, evening, clock) -> None:
    """A foreground Occurrence has no invented cutoff, and the database refuses one."""
    schedule = office.register(document(NIGHTLY, class_={"service_class": "foreground"}, window=None))
    clock.set(RINGS)
    office.materialize(schedule)
    [line] = ledger.occurrences(office.pool, schedule)
    assert (line["not_before"], line["latest_start_at"], line["finish_by"]) == (None, None, None)
    office.execute("ALTER TABLE nightbell.occurrence DISABLE TRIGGER ALL")
    with pytest.raises(Exception, match="occurrence_window_law"):
        office.execute("UPDATE nightbell.occurrence SET latest_start_at = now()")


def test_an_unknown_schedule_is_an_error_and_changes_nothing(office: Office) -> None:
    """Asking about a Schedule that there is not names it."""
    with pytest.raises(UnknownSchedule, match="home/nobody"):
        occurrences.materialize(office.pool, ScheduleName("home/nobody"), DecisionId(uuid4()))
    assert office.count("round") == 0
