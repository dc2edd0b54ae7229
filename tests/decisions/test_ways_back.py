"""Ways back (WIN-8, FIN-2..5, IDN-3..5, OVL-1): parked and answered, cancelled, found out about, recovered, expired."""

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest

from law.errors import BadInput, NotRecoverable
from law.identity import ClaimId, DecisionId, EnqueueSeq, RunId, StationAttemptId
from store import authority, cancelling, capacity, effects, expiry, ledger, parking, recovery, relay, runs
from tests.office import BRIDGE, Office, document

NINE = datetime(2026, 1, 2, 9, 0, tzinfo=UTC)
MANY = {"policy": "bounded_parallel", "max": 9}
TIMED: dict[str, Any] = {
    "class": {"service_class": "deadline_windowed"},
    "window": {"allowed_delay": "5m", "finish_within": "10m"},
}


def minutes(count: float) -> datetime:
    """So many minutes past nine."""
    return NINE + timedelta(minutes=count)


def ask(office: Office, run_id: RunId, claim_id: ClaimId, key: str = "send") -> parking.Awaited:
    """Ask for a consent, as a Pattern's Casting does."""
    found = parking.ask(
        office.pool, run_id, claim_id, "consent", key, {"question": "May it go out?"}, None, DecisionId(uuid4())
    )
    assert found is not None
    return found


def park(office: Office, run_id: RunId, key: str = "send", enqueue_seq: int = 0) -> runs.Settled:
    """Claim, ask, and end the hop as parked."""
    claim_id = office.claim(run_id, enqueue_seq)
    ask(office, run_id, claim_id, key)
    runs.report(office.pool, claim_id, "parked", None, None, "")
    return office.settle(run_id, claim_id, enqueue_seq)


def consent(office: Office, run_id: RunId, said: parking.Said, key: str = "send") -> parking.Answered:
    """Answer as an operator does."""
    return parking.answer(office.pool, run_id, "consent", key, said, "magus", "", None, DecisionId(uuid4()))


def effect(office: Office, run_id: RunId, claim_id: ClaimId, key: str = "one", consent: str = "") -> object:
    """Ask to begin one effect."""
    return effects.admit(office.pool, run_id, claim_id, StationAttemptId(uuid4()), "write", key, consent)


@pytest.mark.obligation("WIN-8", boundary="ordinary")
@pytest.mark.obligation("WIN-8", boundary="failure")
@pytest.mark.obligation("FIN-2", boundary="failure")
@pytest.mark.parametrize(
    ("begins_at", "expected"),
    [
        (minutes(6), effects.Begin()),
        (minutes(10) - timedelta(microseconds=1), effects.Begin()),
        (minutes(10), effects.Refused("finish_bound_passed")),
        (minutes(11), effects.Refused("finish_bound_passed")),
    ],
)
def test_win_8_an_approval_after_the_latest_start_lets_begin_and_never_renews_the_finish_bound(
    office: Office, clock, begins_at: datetime, expected: object
) -> None:
    """Admitted at 09:01 against 09:05, approved at 09:06; its first effect may begin until, and not at, 09:10."""
    clock.set(NINE)
    schedule = office.register(document({**BRIDGE, **TIMED}))
    office.offer(schedule, "one")
    clock.set(minutes(1))
    run_id = RunId(UUID(office.decide(schedule).outcomes[0].run_id))
    assert park(office, run_id).state == "parked"
    clock.set(minutes(6))
    assert consent(office, run_id, "approved").state == "queued"
    clock.set(begins_at)
    claim_id = office.claim(run_id, 1)
    assert effect(office, run_id, claim_id, consent="send") == expected


@pytest.mark.obligation("WIN-8", boundary="restart")
@pytest.mark.obligation("IDN-3", boundary="restart")
def test_win_8_an_approval_that_was_killed_at_its_commit_is_given_again(office: Office, evening) -> None:
    """Killed at the commit, the Run is parked and unanswered; after it, it has returned exactly once."""
    schedule = office.register(document(BRIDGE))
    run_id = office.admitted_run(schedule)
    park(office, run_id)
    with office.killed_at_commit("delivery"):
        consent(office, run_id, "approved")
    office = office.restarted()
    assert office.row("SELECT state, enqueue_seq FROM nightbell.run") == ("parked", 0)
    assert [one.state for one in parking.awaited(office.pool)] == ["asked"]
    assert consent(office, run_id, "approved").changed
    assert not consent(office, run_id, "approved").changed
    assert office.row("SELECT state, enqueue_seq FROM nightbell.run") == ("queued", 1)
    assert office.count("delivery") == 2
    office.done(run_id, 1)


@pytest.mark.obligation("IDN-3", boundary="ordinary")
def test_an_answer_that_comes_before_the_hop_has_ended_is_not_lost(office: Office, evening) -> None:
    """Approved between the question and the settle: the Run is not parked for ever, it returns at once."""
    run_id = office.admitted_run(office.register(document(BRIDGE)))
    claim_id = office.claim(run_id)
    ask(office, run_id, claim_id)
    assert consent(office, run_id, "approved").state == "running"
    runs.report(office.pool, claim_id, "parked", None, None, "")
    settled = office.settle(run_id, claim_id)
    assert (settled.state, settled.reason) == ("queued", "answered")
    office.done(run_id, 1)


def test_answer_and_settle_race_and_the_run_returns_once(office: Office, evening) -> None:
    """Whichever comes first, there is one next hop and never none."""
    schedule = office.register(document(BRIDGE, overlap={"policy": "bounded_parallel", "max": 50}))
    with ThreadPoolExecutor(2) as threads:
        for number in range(25):
            run_id = office.admitted_run(schedule, str(number))
            claim_id = office.claim(run_id)
            ask(office, run_id, claim_id)
            runs.report(office.pool, claim_id, "parked", None, None, "")
            both = [
                threads.submit(office.settle, run_id, claim_id),
                threads.submit(consent, office, run_id, "approved"),
            ]
            assert [one.result().run_id for one in both] == [str(run_id)] * 2
            found = office.row("SELECT state, enqueue_seq FROM nightbell.run WHERE run_id = %s", run_id)
            assert found == ("queued", 1), number


@pytest.mark.obligation("AUT-1", boundary="failure")
@pytest.mark.obligation("AUT-2", boundary="failure")
def test_aut_1_a_return_is_asked_for_its_authority_and_an_effect_for_its_consent(office: Office, evening) -> None:
    """An effect without its consent, with a denied one, or with one that was withdrawn, does not begin; nor does a Run return
    whose owner was revoked meanwhile."""
    schedule = office.register(document(BRIDGE, overlap=MANY))
    first, second = office.admitted_run(schedule, "one"), office.admitted_run(schedule, "two")
    park(office, first)
    consent(office, first, "approved")
    claim_id = office.claim(first, 1)
    assert effect(office, first, claim_id, "a", "another") == effects.Refused("consent_missing")
    assert effect(office, first, claim_id, "b", "send") == effects.Begin()
    consent(office, first, "withdrawn")
    assert effect(office, first, claim_id, "c", "send") == effects.Refused("consent_withdrawn")
    with pytest.raises(BadInput, match="cannot be approved"):
        consent(office, first, "approved")
    park(office, second)
    authority.change_owner(office.pool, "magus", "suspended")
    answered = consent(office, second, "approved")
    assert (answered.state, answered.reason) == ("failed", "owner_revoked")


def test_a_consent_is_answered_once_and_only_where_it_was_asked(office: Office, evening) -> None:
    """Never asked, answered otherwise, or without a name: each is refused, and nothing changes."""
    run_id = office.admitted_run(office.register(document(BRIDGE)))
    park(office, run_id)
    with pytest.raises(BadInput, match="has not asked"):
        consent(office, run_id, "approved", "another")
    with pytest.raises(BadInput, match="cannot be withdrawn"):
        consent(office, run_id, "withdrawn")
    with pytest.raises(BadInput, match="by"):
        parking.answer(office.pool, run_id, "consent", "send", "approved", "", "", None, DecisionId(uuid4()))
    assert consent(office, run_id, "denied").state == "queued"
    with pytest.raises(BadInput, match="cannot be approved"):
        consent(office, run_id, "approved")


@pytest.mark.obligation("OVL-1", boundary="ordinary")
def test_ovl_1_parked_work_holds_no_units_and_still_overlaps(office: Office, evening) -> None:
    """While it waits for somebody its capability is free for others; when it returns it waits for a unit of its own."""
    schedule = office.register(document(BRIDGE, overlap=MANY, capacity={"capability": "gpu"}))
    forbidding = office.register(document(BRIDGE, name="forbids", capacity={"capability": "gpu"}))
    office.capability("gpu", 1)
    run_id = office.admitted_run(forbidding)
    assert park(office, run_id).state == "parked"
    office.offer(forbidding, "two")
    assert [one.state for one in office.decide(forbidding).outcomes] == ["suppressed"]
    other = office.admitted_run(schedule)
    assert consent(office, run_id, "approved").state == "parked"
    assert office.value("SELECT wait_owner FROM nightbell.run WHERE run_id = %s", run_id) == "hardware"
    office.done(other)
    office.decide(schedule)
    office.done(run_id, 1)
    assert capacity.reconcile(office.pool) == []


def cancel(office: Office, run_id: RunId) -> cancelling.Acted:
    return cancelling.cancel(office.pool, run_id, "magus", "not any more", DecisionId(uuid4()))


@pytest.mark.obligation("OVL-1", boundary="ordinary")
@pytest.mark.obligation("FIN-5", boundary="ordinary")
@pytest.mark.obligation("FIN-5", boundary="failure")
def test_fin_5_a_running_hop_is_cancelled_when_it_has_ended_and_never_killed(office: Office, evening) -> None:
    """Until its hop ends it is cancelling, overlaps, and begins no effect; the effect that had begun is recorded as it ended."""
    schedule = office.register(document(BRIDGE))
    run_id = office.admitted_run(schedule)
    claim_id = office.claim(run_id)
    attempt = StationAttemptId(uuid4())
    assert effects.admit(office.pool, run_id, claim_id, attempt, "write", "one") == effects.Begin()
    assert cancel(office, run_id).state == "cancelling"
    assert not cancel(office, run_id).changed
    assert runs.heartbeat(office.pool, claim_id), "nobody takes the hop away"
    assert effect(office, run_id, claim_id, "two") == effects.Refused("cancel_requested")
    office.offer(schedule, "two")
    assert [one.state for one in office.decide(schedule).outcomes] == ["suppressed"]
    effects.record(office.pool, attempt, "succeeded", {"path": "x"}, "")
    runs.report(office.pool, claim_id, "refused", None, None, "cancel_requested")
    settled = office.settle(run_id, claim_id)
    assert (settled.state, settled.reason) == ("cancelled", "cancelled")
    assert office.value("SELECT state FROM nightbell.effect") == "succeeded"
    assert [one["act"] for one in ledger.explain(office.pool, line(office, schedule))["decisions"]] == [
        "decide", "claim", "cancel", "settle",
    ]  # fmt: skip


def line(office: Office, schedule: str) -> Any:
    """The first Occurrence's id."""
    return ledger.occurrences(office.pool, schedule)[-1]["trigger_occurrence_id"]  # type: ignore[arg-type]


@pytest.mark.obligation("FIN-5", boundary="restart")
@pytest.mark.obligation("IDN-5", boundary="restart")
def test_fin_5_a_worker_that_dies_while_cancelling_leaves_its_effect_contained(office: Office, evening) -> None:
    """Its hop is lost with an effect in doubt: contained, not cancelled, until somebody finds out; a killed commit changes
    nothing."""
    run_id = office.admitted_run(office.register(document(BRIDGE)))
    claim_id = office.claim(run_id)
    attempt = StationAttemptId(uuid4())
    effects.admit(office.pool, run_id, claim_id, attempt, "write", "one")
    with office.killed_at_commit("decision"):
        cancel(office, run_id)
    office = office.restarted()
    assert office.value("SELECT state FROM nightbell.run") == "running"
    cancel(office, run_id)
    assert office.settle(run_id, claim_id, may_return=True).state == "contained"
    [doubt] = cancelling.in_doubt(office.pool, run_id)
    assert (doubt.station_attempt_id, doubt.state) == (attempt, "contained")
    assert find(office, run_id, attempt, "happened").state == "cancelled"


def find(office: Office, run_id: RunId, attempt: StationAttemptId, finding: cancelling.Finding) -> cancelling.Acted:
    return cancelling.find(
        office.pool, run_id, attempt, finding, "magus", "looked", {"path": "seen"}, DecisionId(uuid4())
    )


@pytest.mark.parametrize("act", ["queued", "parked", "done"])
def test_cancelling_what_nobody_carries_ends_it_at_once_and_what_is_done_stays(
    office: Office, evening, act: str
) -> None:
    """A queued Run's delivery does nothing any more; a parked one is cancelled; a settled one stays as it was."""
    run_id = office.admitted_run(office.register(document(BRIDGE)))
    if act == "parked":
        park(office, run_id)
    if act == "done":
        office.done(run_id)
    acted = cancel(office, run_id)
    assert (acted.state, acted.changed) == (("done", False) if act == "done" else ("cancelled", True))
    claimed = runs.claim(office.pool, run_id, EnqueueSeq(0), ClaimId(uuid4()), "late")
    assert not claimed.granted


@pytest.mark.obligation("IDN-5", boundary="ordinary")
@pytest.mark.obligation("IDN-5", boundary="failure")
@pytest.mark.parametrize(
    ("finding", "state", "again"),
    [("happened", "queued", "done before"), ("did_not_happen", "queued", "may begin"), ("compensated", "failed", None)],
)
def test_idn_5_an_operators_finding_decides_what_follows(
    office: Office, evening, finding: cancelling.Finding, state: str, again: str | None
) -> None:
    """What happened is answered from the finding and not done again; what did not may begin; what was undone has failed."""
    run_id = office.admitted_run(office.register(document(BRIDGE)))
    claim_id = office.claim(run_id)
    attempt = StationAttemptId(uuid4())
    effects.admit(office.pool, run_id, claim_id, attempt, "write", "one")
    assert office.settle(run_id, claim_id).state == "contained"
    with pytest.raises(BadInput, match="in doubt"):
        find(office, run_id, StationAttemptId(uuid4()), finding)
    acted = find(office, run_id, attempt, finding)
    assert (acted.state, acted.reason) == (state, "containment_settled")
    with pytest.raises(BadInput, match="contained"):
        find(office, run_id, attempt, "happened")
    if again is None:
        return
    answer = effect(office, run_id, office.claim(run_id, 1))
    assert answer == (effects.AlreadyDone({"path": "seen"}) if again == "done before" else effects.Begin())


def recover(office: Office, run_id: RunId) -> recovery.Recovered:
    return recovery.recover(office.pool, run_id, "magus", "again", DecisionId(uuid4()))


def fail(office: Office, run_id: RunId) -> None:
    """Let it fail, plainly."""
    claim_id = office.claim(run_id)
    runs.report(office.pool, claim_id, "failed", None, None, "it rained")
    assert office.settle(run_id, claim_id).state == "failed"


@pytest.fixture
def recoverable(office: Office) -> None:
    """The Patterns declare that what they do can be done again."""
    office.execute("UPDATE nightbell.pattern_revision SET recovers = true")


@pytest.mark.obligation("IDN-4", boundary="ordinary")
def test_idn_4_a_recovery_is_a_new_related_invocation_of_the_same_occurrence(
    office: Office, recoverable, evening
) -> None:
    """Ordinal 1, another Run, the same Occurrence; it names what it takes up, and is carried like any other."""
    schedule = office.register(document(BRIDGE))
    run_id = office.admitted_run(schedule)
    fail(office, run_id)
    recovered = recover(office, run_id)
    assert (recovered.ordinal, recovered.recovers) == (1, str(run_id))
    new = RunId(UUID(recovered.run_id))
    assert office.done(new).state == "done"
    [listed] = ledger.occurrences(office.pool, schedule)
    assert (str(listed["run_id"]), listed["run_state"], listed["state"]) == (recovered.run_id, "done", "admitted")
    related = office.value(
        "SELECT i.recovers = p.invocation_id FROM nightbell.run n JOIN nightbell.invocation i USING (invocation_id), "
        "nightbell.run p WHERE n.run_id = %s AND p.run_id = %s", new, run_id,
    )  # fmt: skip
    assert related
    with pytest.raises(NotRecoverable, match="only what failed"):
        recover(office, new)


@pytest.mark.obligation("IDN-4", boundary="failure")
def test_idn_4_a_recovery_is_refused_where_anything_speaks_against_it(office: Office, clock) -> None:
    """The Pattern does not permit it; it is not the newest; an effect is in doubt; its window has closed; work of its Schedule
    is not settled; its owner was revoked."""
    clock.set(NINE)
    schedule = office.register(document({**BRIDGE, **TIMED}))
    run_id = office.admitted_run(schedule)
    fail(office, run_id)
    with pytest.raises(NotRecoverable, match="does not declare"):
        recover(office, run_id)
    office.execute("UPDATE nightbell.pattern_revision SET recovers = true")
    other = office.admitted_run(schedule, "two")
    with pytest.raises(NotRecoverable, match="overlap"):
        recover(office, run_id)
    claim_id = office.claim(other)
    effects.admit(office.pool, other, claim_id, StationAttemptId(uuid4()), "write", "one")
    office.settle(other, claim_id)
    with pytest.raises(NotRecoverable, match="only what failed"):
        recover(office, other)
    clock.set(minutes(5))
    with pytest.raises(NotRecoverable, match="latest start"):
        recover(office, run_id)
    clock.set(minutes(1))
    authority.change_owner(office.pool, "magus", "revoked")
    with pytest.raises(NotRecoverable, match="authority was withdrawn"):
        recover(office, run_id)
    assert office.count("invocation") == 2


@pytest.mark.obligation("IDN-4", boundary="restart")
def test_idn_4_a_recovery_killed_at_its_commit_leaves_nothing_and_is_made_once(
    office: Office, recoverable, evening
) -> None:
    """After the kill there is one Invocation; asked again there are two; asked a third time it is refused."""
    run_id = office.admitted_run(office.register(document(BRIDGE)))
    fail(office, run_id)
    with office.killed_at_commit("run"):
        recover(office, run_id)
    office = office.restarted()
    assert office.count("invocation") == 1
    recover(office, run_id)
    with pytest.raises(NotRecoverable, match="later Invocation"):
        recover(office, run_id)
    assert office.count("invocation") == 2


@pytest.mark.obligation("FIN-2", boundary="ordinary")
@pytest.mark.obligation("FIN-3", boundary="ordinary")
def test_fin_2_a_bound_that_nobody_touches_expires_once_and_the_run_goes_on(office: Office, clock) -> None:
    """A parked Run's bound is recorded as unmet at, and not before, its instant; the Run stays parked, and can return."""
    clock.set(NINE)
    run_id = office.admitted_run(office.register(document({**BRIDGE, **TIMED})))
    park(office, run_id)
    clock.set(minutes(10) - timedelta(microseconds=1))
    assert expiry.expire(office.pool, DecisionId(uuid4())) == 0
    clock.set(minutes(10))
    assert expiry.expire(office.pool, DecisionId(uuid4())) == 1
    assert expiry.expire(office.pool, DecisionId(uuid4())) == 0
    assert office.row("SELECT state, disposition FROM nightbell.run") == ("parked", "unmet")
    consent(office, run_id, "approved")
    assert office.done(run_id, 1).disposition == "unmet"
    assert office.value("SELECT count(*) FROM nightbell.decision WHERE reason = 'expired'") == 1


@pytest.mark.obligation("FIN-1", boundary="failure")
@pytest.mark.obligation("FIN-3", boundary="failure")
@pytest.mark.parametrize("offset", [-1, 0, 1])
def test_fin_3_a_finish_at_the_bound_and_a_microsecond_on_either_side(office: Office, clock, offset: int) -> None:
    """Before the bound it is timely, whatever expires afterwards; at it or later it is unmet."""
    clock.set(NINE)
    run_id = office.admitted_run(office.register(document({**BRIDGE, **TIMED})))
    claim_id = office.claim(run_id)
    runs.report(office.pool, claim_id, "done", None, None, "")
    clock.set(minutes(10) + timedelta(microseconds=offset))
    assert office.settle(run_id, claim_id).disposition == ("timely" if offset < 0 else "unmet")
    clock.set(minutes(20))
    assert expiry.expire(office.pool, DecisionId(uuid4())) == 0


def test_fin_3_settlement_and_expiry_race_and_it_is_never_both(office: Office, clock, pytestconfig) -> None:
    """Both at once, around the bound: a timely Run has no expiry on record, and an expired one is never timely."""
    schedule = office.register(document({**BRIDGE, **TIMED, "overlap": {"policy": "bounded_parallel", "max": 2000}}))
    races = max(pytestconfig.getoption("--races"), 40)
    with ThreadPoolExecutor(2) as threads:
        for number in range(races):
            clock.set(NINE)
            run_id = office.admitted_run(schedule, str(number))
            claim_id = office.claim(run_id)
            runs.report(office.pool, claim_id, "done", None, None, "")
            clock.set(minutes(10) - timedelta(microseconds=1))
            both = (
                threads.submit(office.settle, run_id, claim_id),
                threads.submit(expiry.expire, office.pool, DecisionId(uuid4())),
            )
            clock.set(minutes(10))
            for one in both:
                one.result()
    both_told = office.value(
        "SELECT count(*) FROM nightbell.run r JOIN nightbell.decision d ON d.run_id = r.run_id AND d.reason = 'expired' "
        "WHERE r.disposition = 'timely'"
    )
    assert both_told == 0
    assert office.value("SELECT count(*) FROM nightbell.run WHERE state <> 'done'") == 0


@pytest.mark.obligation("FIN-4", boundary="ordinary")
@pytest.mark.obligation("FIN-4", boundary="failure")
@pytest.mark.obligation("FIN-4", boundary="restart")
def test_fin_4_a_late_result_ends_the_doubt_about_its_effect_and_nothing_else(office: Office, evening) -> None:
    """A worker that was taken for dead reports after all: its effect is known, the Run stays contained until it is looked at
    again, and then returns; a settled Run is not reopened by anything."""
    run_id = office.admitted_run(office.register(document(BRIDGE)))
    claim_id = office.claim(run_id)
    attempt = StationAttemptId(uuid4())
    effects.admit(office.pool, run_id, claim_id, attempt, "write", "one")
    assert office.settle(run_id, claim_id).state == "contained"
    assert not cancelling.look_again(office.pool, run_id, DecisionId(uuid4())).changed
    effects.record(office.pool, attempt, "succeeded", {"path": "late"}, "")
    effects.record(office.pool, attempt, "failed", None, "no, after all")
    assert office.row("SELECT e.state, r.state FROM nightbell.effect e JOIN nightbell.run r USING (run_id)") == (
        "succeeded", "contained",
    )  # fmt: skip
    assert relay.look(office.pool, 1, 1, 1).out_of_doubt == (run_id,)
    with office.killed_at_commit("delivery"):
        cancelling.look_again(office.pool, run_id, DecisionId(uuid4()))
    office = office.restarted()
    assert cancelling.look_again(office.pool, run_id, DecisionId(uuid4())).state == "queued"
    assert relay.look(office.pool, 1, 1, 1).out_of_doubt == ()
    assert effect(office, run_id, office.claim(run_id, 1)) == effects.AlreadyDone({"path": "late"})
