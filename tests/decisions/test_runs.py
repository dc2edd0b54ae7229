"""Runs: one fence, one settlement; proofs, bounds and doubt; authority asked again whenever something is begun."""

from datetime import UTC, datetime, timedelta
from uuid import UUID, uuid4

import pytest

from law.identity import ClaimId, DecisionId, EnqueueSeq, RunId, StationAttemptId
from law.pattern import Workplace
from patterns.bridge_turn import Message, perform
from store import authority, checkpoints, delivery, effects, ledger, relay, runs
from tests.office import BRIDGE, NIGHTLY, Office, document

RINGS = datetime(2026, 1, 2, 1, 0, tzinfo=UTC)
FINISH_BY = RINGS + timedelta(hours=2)
PROVEN = {"allowed_delay": "1h", "finish_within": "2h", "finish_proof": "backup_verified"}


def proven_run(office: Office, clock) -> RunId:
    """An admitted Run that must be finished with a proof by FINISH_BY."""
    schedule = office.register(document(NIGHTLY, window=PROVEN))
    clock.set(RINGS)
    return RunId(UUID(office.ring(schedule).outcomes[0].run_id))


@pytest.mark.obligation("IDN-1", boundary="ordinary")
@pytest.mark.obligation("IDN-1", boundary="restart")
def test_idn_1_a_lost_publication_republishes_the_same_run_and_sequence(office: Office, evening, clock) -> None:
    """Taken by a publisher that died, the same delivery is taken again; published and never claimed, the relay finds it."""
    schedule = office.register(document(BRIDGE))
    office.admitted_run(schedule)
    [taken] = delivery.take(office.pool, 10)
    assert delivery.take(office.pool, 10) == []
    clock.advance(timedelta(seconds=6))
    assert delivery.take(office.pool, 10) == [taken]
    delivery.published(office.pool, [taken])
    assert relay.look(office.pool, 9, 15, 9).unclaimed == ()
    clock.advance(timedelta(seconds=16))
    assert relay.look(office.pool, 9, 15, 9).unclaimed == (taken,)


@pytest.mark.obligation("IDN-1", boundary="failure")
def test_idn_1_two_publishers_share_the_outbox(office: Office, evening) -> None:
    """What one publisher has picked, another does not pick."""
    schedule = office.register(document(BRIDGE, overlap={"policy": "bounded_parallel", "max": 9}))
    for number in range(4):
        office.offer(schedule, str(number))
    office.decide(schedule)
    first, second = delivery.take(office.pool, 2), delivery.take(office.pool, 9)
    assert len({one.run_id for one in (*first, *second)}) == 4


@pytest.mark.obligation("IDN-2", boundary="ordinary")
@pytest.mark.obligation("IDN-2", boundary="failure")
def test_idn_2_stale_and_duplicate_deliveries_do_nothing(office: Office, evening) -> None:
    """A second claim of the hop, a claim of a hop that is not offered, and a claim after settling are all refused."""
    schedule = office.register(document(BRIDGE))
    run_id = office.admitted_run(schedule)
    claim_id = office.claim(run_id)
    assert runs.claim(office.pool, run_id, EnqueueSeq(0), claim_id, "again").granted
    asked = [(EnqueueSeq(0), "duplicate_delivery"), (EnqueueSeq(1), "stale_delivery")]
    for enqueue_seq, reason in asked:
        assert runs.claim(office.pool, run_id, enqueue_seq, ClaimId(uuid4()), "other").reason == reason
    runs.report(office.pool, claim_id, "done", None, None, "")
    assert office.settle(run_id, claim_id).state == "done"
    assert not runs.claim(office.pool, run_id, EnqueueSeq(0), ClaimId(uuid4()), "late").granted


@pytest.mark.obligation("IDN-2", boundary="restart")
@pytest.mark.obligation("IDN-3", boundary="ordinary")
@pytest.mark.obligation("IDN-3", boundary="restart")
def test_idn_3_a_lost_hop_returns_to_its_checkpoint_as_a_new_fenced_hop(office: Office, evening) -> None:
    """The same Invocation, the next `enqueue_seq`, the checkpoint in hand; the dead worker can neither act nor settle."""
    schedule = office.register(document(BRIDGE))
    run_id = office.admitted_run(schedule)
    dead = office.claim(run_id)
    assert checkpoints.save(office.pool, run_id, dead, {"done": 3})
    assert (office.settle(run_id, dead, may_return=True).state, office.count("invocation")) == ("queued", 1)
    alive = office.claim(run_id, 1)
    assert runs.work(office.pool, alive).checkpoint_state == {"done": 3}
    assert not runs.heartbeat(office.pool, dead)
    assert not checkpoints.save(office.pool, run_id, dead, {"done": 4})
    assert not runs.report(office.pool, dead, "done", None, None, "")
    refused = effects.admit(office.pool, run_id, dead, StationAttemptId(uuid4()), "write", "one")
    assert refused == effects.Refused("stale_delivery")
    assert office.settle(run_id, dead).reason == "stale_delivery"


@pytest.mark.obligation("IDN-3", boundary="failure")
def test_idn_3_a_pattern_that_does_not_permit_a_return_is_lost(office: Office, evening) -> None:
    """Without the Pattern's permission the Run fails as lost, and so does one that keeps losing its workers."""
    schedule = office.register(document(BRIDGE))
    run_id = office.admitted_run(schedule)
    settled = office.settle(run_id, office.claim(run_id))
    assert (settled.state, settled.reason) == ("failed", "lost")
    run_id = office.admitted_run(schedule, "two")
    for hop in range(11):
        settled = office.settle(run_id, office.claim(run_id, hop), hop, may_return=True)
    assert (settled.state, settled.reason) == ("failed", "lost")


@pytest.mark.obligation("IDN-5", boundary="ordinary")
@pytest.mark.obligation("IDN-5", boundary="failure")
@pytest.mark.obligation("IDN-5", boundary="restart")
@pytest.mark.parametrize("ending", [None, "unknown"])
def test_idn_5_an_effect_in_doubt_holds_its_run_and_is_not_repeated(office: Office, evening, ending) -> None:
    """Whether the worker died inside the effect or reported that it does not know: the Run is contained, not repeated."""
    schedule = office.register(document(BRIDGE))
    run_id = office.admitted_run(schedule)
    claim_id, attempt = office.claim(run_id), StationAttemptId(uuid4())
    assert effects.admit(office.pool, run_id, claim_id, attempt, "send", "mail") == effects.Begin()
    if ending:
        effects.record(office.pool, attempt, ending, None, "the line went dead")
        runs.report(office.pool, claim_id, "done", None, None, "")
    settled = office.settle(run_id, claim_id, may_return=True)
    assert (settled.state, settled.reason) == ("contained", "effect_in_doubt")
    assert office.value("SELECT state FROM nightbell.effect") == "contained"
    assert office.value("SELECT settled_at FROM nightbell.run") is None


@pytest.mark.obligation("IDN-3", boundary="ordinary")
def test_an_effect_that_succeeded_is_answered_from_its_record(office: Office, evening, tmp_path) -> None:
    """In a later hop of the same Invocation the effect is not performed again."""
    from activities.casting import StoreCasting

    schedule = office.register(document(BRIDGE))
    run_id = office.admitted_run(schedule)
    first = office.claim(run_id)
    workplace = Workplace(str(tmp_path), "", "")
    perform(StoreCasting(office.pool, first, runs.work(office.pool, first), workplace), Message(message="6 * 7"))
    [answer] = list((tmp_path / "outbox").glob("*.json"))
    answer.unlink()
    office.settle(run_id, first, may_return=True)
    second = office.claim(run_id, 1)
    perform(StoreCasting(office.pool, second, runs.work(office.pool, second), workplace), Message(message="6 * 7"))
    assert not answer.exists()
    assert office.count("effect") == 1


@pytest.mark.obligation("FIN-1", boundary="ordinary")
@pytest.mark.obligation("FIN-1", boundary="failure")
@pytest.mark.parametrize(
    ("kind", "problem", "late", "expected"),
    [
        ("backup_verified", "", timedelta(microseconds=-1), ("done", "timely", "finished")),
        ("backup_verified", "", timedelta(0), ("done", "unmet", "finished_late")),
        ("backup_verified", "it is empty", timedelta(-1), ("failed", "unmet", "proof_invalid")),
        ("something_else", "", timedelta(-1), ("failed", "unmet", "proof_missing")),
        (None, "", timedelta(-1), ("failed", "unmet", "proof_missing")),
    ],
)
def test_fin_1_done_proves_nothing_without_a_valid_proof_before_the_bound(
    office: Office, evening, clock, kind, problem, late, expected
) -> None:
    """Only the required, valid proof accepted strictly before the bound is a timely finish; equality is unmet."""
    run_id = proven_run(office, clock)
    claim_id = office.claim(run_id)
    runs.report(office.pool, claim_id, "done", kind, {"file": "x"} if kind else None, "")
    clock.set(FINISH_BY + late if abs(late) < timedelta(hours=1) else RINGS)
    settled = office.settle(run_id, claim_id, problem=problem)
    assert (settled.state, settled.disposition, settled.reason) == expected


@pytest.mark.obligation("FIN-2", boundary="ordinary")
@pytest.mark.obligation("FIN-2", boundary="failure")
@pytest.mark.obligation("FIN-3", boundary="ordinary")
@pytest.mark.obligation("FIN-3", boundary="failure")
@pytest.mark.obligation("FIN-4", boundary="ordinary")
def test_fin_2_every_effect_checks_the_bound_and_what_expired_stays_expired(office: Office, evening, clock) -> None:
    """At the bound an effect is refused and the unmet deadline is committed; a clock set back makes no timely finish."""
    run_id = proven_run(office, clock)
    claim_id = office.claim(run_id)
    clock.set(FINISH_BY)
    refused = effects.admit(office.pool, run_id, claim_id, StationAttemptId(uuid4()), "write", "one")
    assert refused == effects.Refused("finish_bound_passed")
    assert office.value("SELECT disposition FROM nightbell.run") == "unmet"
    clock.set(FINISH_BY - timedelta(minutes=1))
    runs.report(office.pool, claim_id, "done", "backup_verified", {"file": "x"}, "")
    settled = office.settle(run_id, claim_id)
    assert (settled.state, settled.disposition) == ("done", "unmet")


@pytest.mark.obligation("FIN-4", boundary="failure")
def test_fin_4_a_settled_run_never_changes(office: Office, evening) -> None:
    """The database refuses to reopen a terminal Run, whoever asks."""
    schedule = office.register(document(BRIDGE))
    office.done(office.admitted_run(schedule))
    with pytest.raises(Exception, match="settled"):
        office.execute("UPDATE nightbell.run SET state = 'queued', settled_at = NULL, reason = NULL")


@pytest.mark.obligation("FIN-6", boundary="ordinary")
def test_fin_6_without_a_bound_nothing_is_promised(office: Office, evening) -> None:
    """A Run without a finish bound is untimed, and stays so."""
    schedule = office.register(document(BRIDGE))
    assert office.done(office.admitted_run(schedule)).disposition == "untimed"


@pytest.mark.obligation("AUT-1", boundary="ordinary")
@pytest.mark.obligation("AUT-1", boundary="failure")
@pytest.mark.obligation("AUT-2", boundary="failure")
@pytest.mark.obligation("AUT-2", boundary="ordinary")
@pytest.mark.parametrize(("standing", "reason"), [("suspended", "owner_revoked"), ("revoked", "owner_revoked")])
def test_aut_1_authority_is_asked_again_at_admission_claim_and_effect(
    office: Office, evening, standing, reason
) -> None:
    """An owner who lost authority after the ring is not admitted; after admission, not claimed; after the claim, not acted for."""
    schedule = office.register(document(BRIDGE, overlap={"policy": "bounded_parallel", "max": 9}))
    claimed, queued = office.admitted_run(schedule, "one"), office.admitted_run(schedule, "two")
    claim_id = office.claim(claimed)
    office.offer(schedule, "three")
    authority.change_owner(office.pool, "magus", standing)
    [outcome] = office.decide(schedule).outcomes
    assert (outcome.state, outcome.reason) == ("revoked", reason)
    assert runs.claim(office.pool, queued, EnqueueSeq(0), ClaimId(uuid4()), "w") == runs.Claimed(False, reason)
    attempt = StationAttemptId(uuid4())
    assert effects.admit(office.pool, claimed, claim_id, attempt, "write", "one") == effects.Refused(reason)
    assert [line["state"] for line in ledger.runs(office.pool, schedule)] == ["failed", "running"]


@pytest.mark.obligation("AUT-1", boundary="failure")
@pytest.mark.obligation("AUT-2", boundary="ordinary")
def test_aut_1_a_revoked_pattern_revision_is_not_admitted(office: Office, evening) -> None:
    """The Pattern revision is read again in the transaction that admits."""
    schedule = office.register(document(BRIDGE))
    office.offer(schedule, "one")
    office.execute("UPDATE nightbell.pattern_revision SET standing = 'revoked' WHERE pattern = 'bridge_turn'")
    assert [(one.state, one.reason) for one in office.decide(schedule).outcomes] == [("revoked", "pattern_revoked")]


@pytest.mark.obligation("AUT-4", boundary="ordinary")
@pytest.mark.obligation("AUT-4", boundary="failure")
def test_aut_4_a_ceiling_of_runs_in_a_day_is_kept_inside_a_round_too(office: Office, evening, clock) -> None:
    """Of three waiting together under a ceiling of two, two begin and one is refused; a day later there is room again."""
    many = {"policy": "bounded_parallel", "max": 9}
    schedule = office.register(document(BRIDGE, overlap=many, budget={"runs_per_day": 2}))
    for number in range(3):
        office.offer(schedule, str(number))
    outcomes = sorted((one.state, one.reason) for one in office.decide(schedule).outcomes)
    assert outcomes == [("admitted", "admitted"), ("admitted", "admitted"), ("refused", "budget_spent")]
    clock.advance(timedelta(days=1))
    office.offer(schedule, "later")
    assert [one.state for one in office.decide(schedule).outcomes] == ["admitted"]


@pytest.mark.obligation("SEL-4", boundary="failure")
@pytest.mark.obligation("YLD-3", boundary="failure")
def test_yld_3_spare_capacity_waits_until_capacity_is_known(office: Office, evening) -> None:
    """Unknown capacity is not free: work that names a capability waits for it, and spare work that cannot yield for a quiet
    window; both as rows, with that reason."""
    spare = office.register(document(BRIDGE, class_={"service_class": "spare_capacity"}))
    named = office.register(document(BRIDGE, name="needs-iron", capacity={"capability": "gpu"}))
    for schedule, reason in ((spare, "quiet_window"), (named, "capacity")):
        office.offer(schedule, "one")
        assert [(one.state, one.reason) for one in office.decide(schedule).outcomes] == [("pending", reason)]
        assert office.decide(schedule, DecisionId(uuid4())).outcomes[0].state == "pending"
    assert office.value("SELECT count(*) FROM nightbell.decision") == 2


@pytest.mark.obligation("EVD-1", boundary="ordinary")
def test_evd_1_explain_tells_every_decision_in_order(office: Office, evening) -> None:
    """Admission, claim and settlement, each with its law, its sample and its sentence."""
    schedule = office.register(document(BRIDGE))
    office.done(office.admitted_run(schedule))
    [line] = ledger.occurrences(office.pool, schedule)
    found = ledger.explain(office.pool, line["trigger_occurrence_id"])
    assert [one["act"] for one in found["decisions"]] == ["decide", "claim", "settle"]
    assert all(one["obligations"] and one["sentence"] and one["sampled_at"] for one in found["decisions"])
    assert (found["run"]["state"], found["hops"][0]["ending"]) == ("done", "done")
    with pytest.raises(Exception, match="append-only"):
        office.execute("UPDATE nightbell.decision SET outcome = 'missed'")
