"""How a Schedule stands, for its page: what rang last whoever decided it, what became of it, and what wants a hand."""

from datetime import UTC, datetime, timedelta
from uuid import UUID, uuid4

import pytest

from law.errors import UnknownSchedule
from law.identity import RunId, ScheduleName, StationAttemptId
from store import effects
from store.standing import LATEST_MAX, standing
from tests.office import BRIDGE, NIGHTLY, Office, document

RINGS = datetime(2026, 1, 2, 1, 0, tzinfo=UTC)


@pytest.mark.obligation("EVD-1", boundary="ordinary")
def test_evd_1_an_occurrence_that_somebody_else_decided_is_shown(office: Office, evening, clock) -> None:
    """Whoever wakes first works for all; the page of the Schedule that slept says what rang, by civil time and zone."""
    mine = office.register(document(NIGHTLY))
    other = office.register(document(NIGHTLY, name="other"))
    clock.set(RINGS)
    office.ring(other)
    stands = standing(office.pool, mine, RINGS + timedelta(days=1))
    [line] = stands.lines
    assert (line.rang, line.state, line.run_state) == ("2026-01-02 02:00 Europe/Bratislava", "admitted", "queued")
    assert (stands.pending, stands.running, stands.held, stands.paused) == (0, 1, 0, False)
    assert stands.wake_civil == "2026-01-03 02:00 Europe/Bratislava"


@pytest.mark.obligation("EVD-1", boundary="failure")
def test_evd_1_a_contained_run_counts_as_held(office: Office, evening) -> None:
    """A Run whose effect is in doubt is not under way: it is held, with its reason beside what rang."""
    schedule = office.register(document(BRIDGE))
    run_id = office.admitted_run(schedule)
    claim_id = office.claim(run_id)
    effects.admit(office.pool, run_id, claim_id, StationAttemptId(uuid4()), "send", "mail")
    office.settle(run_id, claim_id)
    stands = standing(office.pool, schedule, None)
    assert (stands.running, stands.held, stands.wake_civil) == (0, 1, "")
    assert [(one.rang, one.run_state, one.run_reason) for one in stands.lines] == [
        ("one from bridge", "contained", "effect_in_doubt")
    ]


def test_the_newest_come_first_and_no_more_than_a_page_holds(office: Office, evening, clock) -> None:
    """Ten lines, the newest first; what waits has its reason, what is settled its end."""
    schedule = office.register(document(BRIDGE))
    for number in range(LATEST_MAX + 2):
        clock.advance(timedelta(seconds=1))
        office.done(office.admitted_run(schedule, str(number)))
    clock.advance(timedelta(seconds=1))
    running = office.admitted_run(schedule, "running")
    clock.advance(timedelta(seconds=1))
    office.offer(schedule, "waits")
    office.decide(schedule)
    stands = standing(office.pool, schedule, None)
    assert len(stands.lines) == LATEST_MAX
    assert [one.rang.split()[0] for one in stands.lines][:3] == ["waits", "running", str(LATEST_MAX + 1)]
    assert RunId(UUID(stands.lines[1].run_id)) == running
    assert (stands.lines[2].run_state, stands.lines[2].run_reason) == ("done", "finished")


def test_an_unknown_schedule_is_said_so(office: Office) -> None:
    """Nothing stands for a name that nobody registered."""
    with pytest.raises(UnknownSchedule):
        standing(office.pool, ScheduleName("home/nobody"), None)
