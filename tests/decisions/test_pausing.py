"""Pause and resume: a Schedule that stands still loses nothing, and does not come back as a storm."""

from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import pytest

from law.errors import BadInput, UnknownSchedule
from law.identity import DecisionId, ScheduleName
from store import cutover, ledger, pausing, relay
from tests.office import BRIDGE, NIGHTLY, Office, document

MINUTELY: dict[str, Any] = {
    **NIGHTLY, "name": "minutely", "cycle": "nominal", "window": {"allowed_delay": "10m"},
    "trigger": {"kind": "calendar", "cron": "* * * * *", "zone": "UTC"},
}  # fmt: skip
FRIDAY = datetime(2026, 1, 2, 17, 0, tzinfo=UTC)
MONDAY = datetime(2026, 1, 5, 8, 0, tzinfo=UTC)


def pause(office: Office, schedule: ScheduleName, note: str = "") -> pausing.Paused:
    return pausing.pause(office.pool, schedule, note, DecisionId(uuid4()))


def resume(office: Office, schedule: ScheduleName) -> pausing.Paused:
    return pausing.resume(office.pool, schedule, "", DecisionId(uuid4()))


@pytest.mark.obligation("CAL-8", boundary="ordinary")
def test_cal_8_a_weekend_of_pause_is_resumed_with_the_newest_and_a_record_of_the_rest(
    office: Office, evening, clock
) -> None:
    """B05: suspended from Friday to Monday. One firing runs; every other is in a row or in a stretch; the interval is recorded."""
    schedule = office.register(document(MINUTELY))
    clock.set(FRIDAY)
    office.ring(schedule)
    office.done(ledger.runs(office.pool, schedule)[0]["run_id"])
    assert pause(office, schedule, "the weekend").changed
    before = office.count("occurrence")
    for hours in (1, 24, 62):
        clock.set(FRIDAY + timedelta(hours=hours))
        found = office.materialize(schedule)
        assert (found.created, found.next_nominal_at) == (0, None)
        assert found.halted == "paused since 2026-01-02T17:00:00Z: the weekend"
        assert office.decide(schedule).wake_at is None
        assert relay.look(office.pool, 3, 3, 3).overdue == ()
    assert office.count("occurrence") == before
    clock.set(MONDAY)
    assert resume(office, schedule).changed
    assert relay.look(office.pool, 3, 3, 3).overdue == (schedule,)
    assert [outcome.state for outcome in office.ring(schedule).outcomes].count("admitted") == 1
    since = [line for line in ledger.occurrences(office.pool, schedule, limit=10_000) if line["rang_at"] > FRIDAY]
    counted = sum(
        line["firing_count"] for line in ledger.skipped_ranges(office.pool, schedule) if line["first_at"] > FRIDAY
    )
    assert len(since) + counted == (MONDAY - FRIDAY) / timedelta(minutes=1)
    assert Counter(line["state"] for line in since)["admitted"] == 1
    events = office.row(
        "SELECT array_agg(act ORDER BY event_ordinal), array_agg(sampled_at ORDER BY event_ordinal) FROM nightbell.pause_event"
    )
    assert events == (["pause", "resume"], [FRIDAY, MONDAY])


@pytest.mark.obligation("WIN-5", boundary="ordinary")
def test_win_5_windows_close_while_a_schedule_is_paused(office: Office, evening, clock) -> None:
    """What waited when it was paused is not admitted, and is missed when its bound comes."""
    schedule = office.register(document(NIGHTLY))
    clock.set(datetime(2026, 1, 2, 1, 0, tzinfo=UTC))
    office.materialize(schedule)
    pause(office, schedule)
    decided = office.decide(schedule)
    assert office.states(schedule) == [("civil_date:2026-01-02", "pending", "paused")]
    assert decided.wake_at == datetime(2026, 1, 2, 4, 0, tzinfo=UTC)
    clock.set(decided.wake_at)
    office.decide(schedule)
    assert office.states(schedule) == [("civil_date:2026-01-02", "missed", "latest_start_passed")]
    assert office.count("run") == 0


def test_events_are_kept_while_a_door_is_paused(office: Office, evening, clock) -> None:
    """An offer is durable at once, waits with its reason, and is admitted when the door is open again, whoever rings it."""
    schedule = office.register(document(BRIDGE))
    pause(office, schedule)
    assert office.offer(schedule, "one").created
    assert office.decide(schedule).outcomes[0].state == "pending"
    assert office.states(schedule) == [("event:bridge:one", "pending", "paused")]
    assert office.decide(schedule).wake_at is None
    clock.advance(timedelta(hours=1))
    assert relay.look(office.pool, 3, 3, 3).overdue == ()
    resume(office, schedule)
    assert relay.look(office.pool, 3, 3, 3).overdue == (schedule,)
    assert office.decide(schedule).outcomes[0].state == "admitted"


def test_others_ring_on_and_take_nothing_of_a_paused_schedule_along(office: Office, evening, clock) -> None:
    """Whoever wakes first works for all, but not for one that is paused."""
    paused_one = office.register(document(MINUTELY, name="paused"))
    other = office.register(document(MINUTELY, name="other"))
    pause(office, paused_one)
    clock.advance(timedelta(minutes=3))
    office.ring(other)
    assert office.states(paused_one) == []
    assert len(office.states(other)) == 4


def test_pausing_twice_is_pausing_once_and_repeats_are_answered(office: Office, evening, clock) -> None:
    """The second call changes nothing, and says since when."""
    schedule = office.register(document(NIGHTLY))
    first = pause(office, schedule)
    clock.advance(timedelta(hours=1))
    assert pause(office, schedule) == pausing.Paused(schedule, first.paused_at, False)
    assert resume(office, schedule).changed
    assert not resume(office, schedule).changed
    assert office.count("pause_event") == 2
    with pytest.raises(UnknownSchedule):
        pause(office, ScheduleName("home/nobody"))
    with pytest.raises(BadInput, match="note"):
        pause(office, schedule, "x" * 501)
    assert pause(office, schedule, "NUL \0 and \ud800").changed


@pytest.mark.obligation("EVD-1", boundary="restart")
def test_evd_1_a_pause_killed_before_its_commit_never_was(office: Office, evening) -> None:
    """The connection is cut inside the transaction: it rings as before, and nothing is recorded of it."""
    schedule = office.register(document(NIGHTLY))
    with office.killed_at_commit("pause_event"):
        pause(office, schedule)
    assert office.value("SELECT paused_at FROM nightbell.schedule") is None
    assert office.count("pause_event") == 0


@pytest.mark.obligation("CUT-1", boundary="ordinary")
def test_a_paused_schedule_may_be_given_another_revision(office: Office, evening, clock) -> None:
    """What rang before the cut and was not looked at belongs to the old revision, and is judged when it is resumed."""
    schedule = office.register(document(NIGHTLY))
    pause(office, schedule)
    clock.set(datetime(2026, 1, 3, 12, 0, tzinfo=UTC))
    from store import registry

    registry.register(office.pool, document(NIGHTLY, window={"allowed_delay": "1h"}), DecisionId(uuid4()))
    two = registry.schedule(office.pool, schedule).revision + 1
    plan = cutover.examine(office.pool, schedule, two, None, DecisionId(uuid4())).plan  # type: ignore[arg-type]
    cutover.activate(office.pool, schedule, two, plan, DecisionId(uuid4()))  # type: ignore[arg-type]
    resume(office, schedule)
    clock.set(datetime(2026, 1, 4, 1, 0, tzinfo=UTC))
    office.ring(schedule)
    lines = ledger.occurrences(office.pool, schedule)
    assert {line["key"][-2:]: line["revision"] for line in lines} == {"02": 1, "03": 1, "04": 2}
