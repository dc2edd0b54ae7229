"""Capacity: leases granted with admission, released with the hop, and never more than there is (SEL-2, SEL-4, YLD-1..5)."""

from datetime import datetime, timedelta
from uuid import UUID, uuid4

import psycopg
import pytest

from law.identity import ClaimId, EnqueueSeq, RunId
from store import capacity, checkpoints, runs
from tests.office import BRIDGE, Office, document

GPU = {"capability": "gpu"}
MANY = {"policy": "bounded_parallel", "max": 50}


def outcomes(office: Office, schedule: str) -> list[tuple[str, str]]:
    """(state, reason) of what one decision said."""
    return [(one.state, one.reason) for one in office.decide(schedule).outcomes]  # type: ignore[arg-type]


@pytest.mark.obligation("SEL-4", boundary="ordinary")
@pytest.mark.obligation("SEL-4", boundary="failure")
def test_sel_4_a_lease_is_granted_with_admission_and_released_with_the_hop(office: Office, evening: datetime) -> None:
    """Two units carry two Runs; the third waits, and is admitted when one of them is settled."""
    schedule = office.register(document(BRIDGE, overlap=MANY, capacity=GPU))
    office.capability("gpu", 2)
    for name in ("one", "two", "three"):
        office.offer(schedule, name)
    assert outcomes(office, schedule) == [("admitted", "admitted")] * 2 + [("pending", "capacity")]
    assert office.value("SELECT sum(units) FROM nightbell.lease WHERE released_at IS NULL") == 2
    first = RunId(office.value("SELECT run_id FROM nightbell.run ORDER BY run_id LIMIT 1"))
    office.done(first)
    assert office.value("SELECT count(*) FROM nightbell.lease WHERE released_at IS NULL") == 1
    assert outcomes(office, schedule) == [("admitted", "admitted")]
    assert capacity.reconcile(office.pool) == []


@pytest.mark.obligation("YLD-3", boundary="failure")
@pytest.mark.parametrize(
    ("said", "reason"),
    [
        ({"state": "UNKNOWN"}, "capacity"),
        ({"state": "COLD"}, "readiness"),
        ({"state": "CONVERGING"}, "readiness"),
        ({"admission": "closed"}, "capacity"),
        ({"units": 0}, "capacity"),
    ],
)
def test_yld_3_what_is_not_known_to_be_free_gives_nothing(office: Office, evening, said, reason) -> None:
    """Unknown, cold, converging, closed and empty: work waits with the reason, until the capability is warm and open."""
    schedule = office.register(document(BRIDGE, capacity=GPU))
    office.capability("gpu", said.pop("units", 1), **said)
    office.offer(schedule, "one")
    assert outcomes(office, schedule) == [("pending", reason)]
    assert office.capability("gpu", 1) == (schedule,)
    assert outcomes(office, schedule) == [("admitted", "admitted")]


@pytest.mark.obligation("YLD-5", boundary="ordinary")
def test_yld_5_a_yielded_slice_gives_its_units_back_and_waits_its_turn_behind_foreground(
    office: Office, evening
) -> None:
    """Between two slices the Run is parked without a lease; foreground that came meanwhile goes first, then the next slice."""
    spare = office.register(document(BRIDGE, name="backfill", class_={"service_class": "spare_capacity"}, capacity=GPU))
    front = office.register(document(BRIDGE, name="front", overlap=MANY, capacity=GPU))
    office.capability("gpu", 1)
    office.quiet_window(evening, evening + timedelta(hours=8), "gpu")
    run_id = office.admitted_run(spare)
    claim_id = office.claim(run_id)
    office.offer(front, "now")
    assert outcomes(office, front) == [("pending", "capacity")]
    checkpoints.save(office.pool, run_id, claim_id, {"shard": 1})
    runs.report(office.pool, claim_id, "yielded", None, None, "")
    assert office.settle(run_id, claim_id).state == "parked"
    assert office.value("SELECT count(*) FROM nightbell.lease WHERE released_at IS NULL") == 0
    decided = office.decide(spare)
    assert decided.outcomes == ()
    assert office.row("SELECT state, wait_owner FROM nightbell.run WHERE run_id = %s", run_id) == ("parked", "hardware")
    assert office.states(front)[0][1] == "admitted"
    office.done(RunId(UUID(office.value("SELECT run_id::text FROM nightbell.run WHERE state = 'queued'"))))
    office.decide(front)
    assert office.row("SELECT state, enqueue_seq FROM nightbell.run WHERE run_id = %s", run_id) == ("queued", 1)
    again = ClaimId(uuid4())
    assert runs.claim(office.pool, run_id, EnqueueSeq(1), again, "a test").granted
    assert runs.work(office.pool, again).checkpoint_state == {"shard": 1}


@pytest.mark.obligation("YLD-1", boundary="failure")
def test_yld_1_the_database_refuses_a_lease_that_outlives_its_hop_or_exceeds_what_there_is(
    office: Office, evening
) -> None:
    """A Run cannot settle and keep a lease, a lease cannot be released twice, and nobody grants what is not there."""
    schedule = office.register(document(BRIDGE, overlap=MANY, capacity=GPU))
    office.capability("gpu", 1)
    run_id = office.admitted_run(schedule)
    with pytest.raises(psycopg.Error, match="leave a lease behind"):
        office.execute(
            "UPDATE nightbell.run SET state = 'failed', reason = 'lost', settled_at = nightbell.trusted_now()"
        )
    with pytest.raises(psycopg.Error, match="does not have what was granted"):
        office.execute(
            "WITH hop AS (INSERT INTO nightbell.delivery (run_id, enqueue_seq, lane, pattern, state, created_at, publish_count) "
            "SELECT run_id, 7, lane, pattern, 'PENDING', created_at, 0 FROM nightbell.delivery RETURNING run_id), "
            "gone AS (UPDATE nightbell.lease SET released_at = granted_at RETURNING run_id) "
            "INSERT INTO nightbell.lease (run_id, enqueue_seq, capability, service_class, units, granted_at) "
            "SELECT hop.run_id, 7, 'gpu', 'foreground', 2, nightbell.trusted_now() FROM hop, gone"
        )
    office.done(run_id)
    with pytest.raises(psycopg.Error, match="released once"):
        office.execute("UPDATE nightbell.lease SET released_at = nightbell.trusted_now()")
