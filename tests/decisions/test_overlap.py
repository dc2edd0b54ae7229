"""Overlap, decided under the Schedule's own lock: forbidden, serialized, bounded, and raced for."""

import threading
from datetime import UTC, datetime, timedelta
from uuid import uuid4

import pytest

from law.identity import DecisionId
from store import relay
from tests.office import BRIDGE, NIGHTLY, Office, document

RINGS = datetime(2026, 1, 2, 1, 0, tzinfo=UTC)
NONTERMINAL = ("queued", "running", "parked", "cancelling", "contained")


@pytest.mark.obligation("OVL-1", boundary="ordinary")
@pytest.mark.obligation("OVL-2", boundary="ordinary")
@pytest.mark.parametrize("state", NONTERMINAL)
def test_ovl_1_every_nonterminal_state_of_an_earlier_run_forbids(office: Office, evening, state: str) -> None:
    """Parked, cancelling and contained work overlaps like running work: the new Occurrence is kept and suppressed."""
    schedule = office.register(document(BRIDGE))
    office.admitted_run(schedule, "one")
    waits_for = "'hardware'" if state == "parked" else "NULL"
    cancelled = "now(), cancel_requested_by = 'magus'" if state == "cancelling" else "NULL"
    office.execute(
        f"UPDATE nightbell.run SET state = '{state}', wait_owner = {waits_for}, cancel_requested_at = {cancelled}"
    )
    office.offer(schedule, "two")
    [outcome] = office.decide(schedule).outcomes
    assert (outcome.state, outcome.reason) == ("suppressed", "overlap_forbidden")
    assert office.count("run") == 1


@pytest.mark.obligation("OVL-2", boundary="failure")
def test_ovl_2_two_firings_in_one_round_are_an_overlap(office: Office, evening) -> None:
    """Of two events that wait together, one is admitted and the other suppressed."""
    schedule = office.register(document(BRIDGE))
    office.offer(schedule, "one")
    office.offer(schedule, "two")
    assert sorted(outcome.state for outcome in office.decide(schedule).outcomes) == ["admitted", "suppressed"]


@pytest.mark.obligation("OVL-2", boundary="restart")
@pytest.mark.obligation("OVL-1", boundary="restart")
def test_ovl_1_a_lost_worker_is_no_proof_of_settlement(office: Office, evening) -> None:
    """A claim that stopped beating still overlaps; only a settled Run frees the Schedule."""
    schedule = office.register(document(BRIDGE))
    run_id = office.admitted_run(schedule, "one")
    claim_id = office.claim(run_id)
    office.execute("UPDATE nightbell.claim SET heartbeat_at = heartbeat_at - interval '1 day'")
    office.offer(schedule, "two")
    assert [outcome.state for outcome in office.decide(schedule).outcomes] == ["suppressed"]
    assert office.settle(run_id, claim_id).state == "failed"
    office.offer(schedule, "three")
    assert [outcome.state for outcome in office.decide(schedule).outcomes] == ["admitted"]


@pytest.mark.obligation("OVL-1", boundary="failure")
def test_ovl_1_deciders_that_race_admit_one(office: Office, evening) -> None:
    """Eight deciders at once over one Schedule: one live Run, whoever was quickest."""
    schedule = office.register(document(BRIDGE))
    for number in range(8):
        office.offer(schedule, str(number))
    deciders = [threading.Thread(target=office.decide, args=(schedule,)) for _ in range(8)]
    for decider in deciders:
        decider.start()
    for decider in deciders:
        decider.join()
    states = [state for _, state, _ in office.states(schedule)]
    assert sorted(states) == ["admitted", *["suppressed"] * 7]


@pytest.mark.obligation("OVL-1", boundary="failure")
def test_ovl_1_the_database_refuses_a_second_live_run_under_forbid(office: Office, evening) -> None:
    """Even code that forgot the law could not have two live Runs of a forbidding Schedule."""
    schedule = office.register(document(BRIDGE))
    run_id = office.admitted_run(schedule, "one")
    office.done(run_id)
    office.admitted_run(schedule, "two")
    office.execute("ALTER TABLE nightbell.run DISABLE TRIGGER ALL")
    with pytest.raises(Exception, match="run_forbid_live"):
        office.execute("UPDATE nightbell.run SET state = 'queued', settled_at = NULL")


@pytest.mark.obligation("OVL-3", boundary="ordinary")
@pytest.mark.obligation("OVL-3", boundary="restart")
def test_ovl_3_serialized_work_waits_for_its_predecessor_inside_its_own_window(office: Office, evening, clock) -> None:
    """The second waits while the first lives, is found by the relay when nobody told it, and then begins."""
    schedule = office.register(document(BRIDGE, overlap={"policy": "serialize"}))
    run_id = office.admitted_run(schedule, "one")
    office.offer(schedule, "two")
    [waiting] = office.decide(schedule).outcomes
    assert (waiting.state, waiting.reason) == ("pending", "overlap")
    assert relay.look(office.pool, 3, 3, 3).overdue == ()
    office.done(run_id)
    assert relay.look(office.pool, 3, 3, 3).overdue == (schedule,)
    assert [outcome.state for outcome in office.decide(schedule).outcomes] == ["admitted"]


@pytest.mark.obligation("OVL-3", boundary="failure")
def test_ovl_3_a_window_that_closes_while_waiting_is_a_miss(office: Office, evening, clock) -> None:
    """Serialized behind a Run that never ends, the firing misses its own window; its wake-up is that bound."""
    schedule = office.register(document(NIGHTLY, overlap={"policy": "serialize"}))
    clock.set(RINGS)
    office.ring(schedule)
    clock.set(RINGS + timedelta(days=1))
    decided = office.ring(schedule)
    assert [(one.state, one.reason) for one in decided.outcomes] == [("pending", "overlap")]
    assert decided.wake_at == datetime(2026, 1, 3, 4, 0, tzinfo=UTC)
    clock.set(decided.wake_at)
    assert [(one.state, one.reason) for one in office.decide(schedule).outcomes] == [("missed", "latest_start_passed")]


@pytest.mark.obligation("OVL-4", boundary="ordinary")
@pytest.mark.obligation("OVL-4", boundary="failure")
def test_ovl_4_bounded_parallel_admits_to_its_ceiling(office: Office, evening) -> None:
    """Three wait under a ceiling of two: two begin, the third waits until one is settled."""
    schedule = office.register(document(BRIDGE, overlap={"policy": "bounded_parallel", "max": 2}))
    for number in range(3):
        office.offer(schedule, str(number))
    outcomes = office.decide(schedule).outcomes
    assert sorted(outcome.state for outcome in outcomes) == ["admitted", "admitted", "pending"]
    first = next(outcome.run_id for outcome in outcomes if outcome.run_id)
    office.done(type(office.value("SELECT gen_random_uuid()"))(first))
    assert [outcome.state for outcome in office.decide(schedule).outcomes] == ["admitted"]


@pytest.mark.obligation("SEL-6", boundary="ordinary")
@pytest.mark.obligation("WIN-4", boundary="ordinary")
def test_sel_6_the_same_decision_id_is_the_same_answer(office: Office, evening) -> None:
    """Asked twice with one id, the round answers twice the same, and writes once."""
    schedule = office.register(document(BRIDGE))
    office.offer(schedule, "one")
    decision_id = DecisionId(uuid4())
    assert office.decide(schedule, decision_id) == office.decide(schedule, decision_id)
    assert office.value("SELECT count(*) FROM nightbell.decision WHERE act = 'decide'") == 1
