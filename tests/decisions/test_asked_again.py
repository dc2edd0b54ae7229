"""Asked again, asked late, asked by one that is stuck: whatever one of them meets, the others are served (WIN-4, OCC-6, IDN-1)."""

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any
from uuid import UUID, uuid4

import pytest

from activities import relaying
from activities.schedules import ScheduleActivities
from law.errors import BadZoneRules
from law.identity import DecisionId, RevisionNumber, RunId, StationAttemptId
from law.merging import no_merge
from law.routing import lane_for
from store import authority, cutover, effects, ledger, occurrences, pausing, registry, relay, runs
from tests.office import BRIDGE, NIGHTLY, Office, document
from workflows import asks

TWO, THREE = RevisionNumber(2), RevisionNumber(3)
MINUTELY: dict[str, Any] = {
    **NIGHTLY, "name": "minutely", "cycle": "nominal", "window": {"allowed_delay": "12h"},
    "trigger": {"kind": "calendar", "cron": "* * * * *", "zone": "UTC"},
}  # fmt: skip
A_MINUTE = timedelta(minutes=1)


@pytest.mark.obligation("WIN-4", boundary="restart")
@pytest.mark.obligation("OCC-6", boundary="restart")
async def test_a_question_that_is_asked_again_while_the_bell_rings_on_is_answered_each_time(
    office: Office, evening: datetime, clock: Any
) -> None:
    """Temporal repeats an activity whose acknowledgement was lost, with the same id, minute after minute: each new bell is made
    durable by it, once, and nothing stands still."""
    schedule = office.register(document(MINUTELY))
    with ThreadPoolExecutor(2) as threads:
        activities, question = (
            ScheduleActivities(office.pool, threads, no_merge),
            asks.MaterializeAsk(schedule, str(uuid4())),
        )
        for _ in range(5):
            clock.advance(A_MINUTE)
            await activities.materialize(question)
    assert len(office.states(schedule)) == 6
    assert office.value("SELECT count(*) FROM nightbell.round WHERE act = 'materialize'") == 1


@pytest.mark.obligation("WIN-4", boundary="failure")
def test_a_repeated_activation_is_answered_from_its_record_and_undoes_nothing(
    office: Office, evening: datetime
) -> None:
    """Its acknowledgement was lost, and somebody has activated a third revision since: the repeat says when it was done."""
    schedule, decision_id = office.register(document(BRIDGE)), DecisionId(uuid4())
    for priority in (60, 70):
        changed = document(BRIDGE, class_={"service_class": "foreground", "priority": priority})
        registry.register(office.pool, changed, DecisionId(uuid4()))
    first = cutover.activate(office.pool, schedule, TWO, None, decision_id)
    cutover.activate(office.pool, schedule, THREE, None, DecisionId(uuid4()))
    assert cutover.activate(office.pool, schedule, TWO, None, decision_id) == first
    assert registry.schedule(office.pool, schedule).revision == 3


def test_a_repeated_pause_is_answered_from_its_record_and_undoes_nothing(office: Office, evening: datetime) -> None:
    """Paused, resumed by somebody, and the first call repeated: it rings."""
    schedule, decision_id = office.register(document(NIGHTLY)), DecisionId(uuid4())
    first = pausing.pause(office.pool, schedule, "", decision_id)
    pausing.resume(office.pool, schedule, "", DecisionId(uuid4()))
    assert pausing.pause(office.pool, schedule, "", decision_id) == first
    assert registry.schedule(office.pool, schedule).paused_at is None


@pytest.mark.obligation("CAL-4", boundary="failure")
def test_cal_4_no_cutover_by_rules_that_the_store_no_longer_has(office: Office, evening: datetime) -> None:
    """Also in a process that has read them before: the row is asked, not the memory."""
    schedule = office.register(document(NIGHTLY))
    office.ring(schedule)
    registry.register(office.pool, document(NIGHTLY, window={"allowed_delay": "1h"}), DecisionId(uuid4()))
    plan = cutover.examine(office.pool, schedule, TWO, None, DecisionId(uuid4())).plan
    office.execute("ALTER TABLE nightbell.zone_rules DISABLE TRIGGER USER", "DELETE FROM nightbell.zone_rules")
    with pytest.raises(BadZoneRules):
        cutover.activate(office.pool, schedule, TWO, plan, DecisionId(uuid4()))


def test_a_halted_schedule_is_not_asked_in_a_busy_loop(office: Office, evening: datetime, clock: Any) -> None:
    """Its bell stands in the past and cannot be rung: it is no instant to wake at."""
    schedule = office.register(document(NIGHTLY))
    office.execute("ALTER TABLE nightbell.zone_rules DISABLE TRIGGER USER", "DELETE FROM nightbell.zone_rules")
    clock.set(datetime(2026, 1, 2, 1, tzinfo=UTC))
    assert office.materialize(schedule).halted
    assert office.decide(schedule).wake_at is None


@pytest.mark.obligation("CAL-8", boundary="failure")
def test_cal_8_a_large_house_comes_back_from_a_long_outage_in_short_steps(
    office: Office, evening: datetime, clock: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Sixty Schedules that ring every minute, a week away: no look takes all of them along, and after some all have been."""
    monkeypatch.setattr(occurrences, "ROWS_IN_A_LOOK_MAX", 1_000)
    schedules = [office.register(document(MINUTELY, name=f"m{number}")) for number in range(60)]
    clock.advance(timedelta(days=7))
    office.materialize(schedules[0])
    assert office.count("occurrence") < 1_500
    for schedule in schedules:
        office.materialize(schedule)
    seen = office.value("SELECT count(DISTINCT schedule_id) FROM nightbell.skipped_range")
    assert seen == 60
    assert office.value("SELECT count(*) FROM nightbell.segment WHERE next_nominal_at <= nightbell.trusted_now()") == 0


@pytest.mark.obligation("OVL-4", boundary="failure")
def test_ovl_4_a_free_place_beside_a_running_one_is_seen_by_the_relay(
    office: Office, evening: datetime, clock: Any
) -> None:
    """Two places, one Run on its way, one settled whose word was lost: the third that waits is not forgotten."""
    schedule = office.register(document(BRIDGE, overlap={"policy": "bounded_parallel", "max": 2}))
    for event in "abc":
        office.offer(schedule, event)
    office.decide(schedule)
    first, second = [RunId(UUID(str(line["run_id"]))) for line in ledger.runs(office.pool, schedule, ("queued",))]
    office.claim(second)
    clock.advance(timedelta(hours=1))
    assert relay.look(office.pool, 3, 3, 1e6).overdue == ()
    office.done(first)
    assert relay.look(office.pool, 3, 3, 1e6).overdue == (schedule,)


@pytest.mark.obligation("CAL-8", boundary="failure")
def test_cal_8_what_waits_for_its_turn_to_catch_up_is_not_hidden_by_other_runs(
    office: Office, evening: datetime, clock: Any
) -> None:
    """A Run that rang in time goes on for long; the caught-up ones before the waiting one are settled: the relay sees it."""
    bounded = {"mode": "bounded", "max_age": "2h", "max_count": 3}
    many = {"policy": "bounded_parallel", "max": 50}
    schedule = office.register(document(MINUTELY, overlap=many, catch_up=bounded))
    clock.advance(timedelta(hours=5))
    office.ring(schedule)
    for line in ledger.runs(office.pool, schedule, ("queued",)):
        in_time = line["key"] >= "nominal:2026-01-02T00:59"
        (office.claim if in_time else office.done)(RunId(UUID(str(line["run_id"]))))
    office.execute("UPDATE nightbell.segment SET next_nominal_at = NULL")  # the bell itself is another matter
    assert relay.look(office.pool, 3, 3, 1e6).overdue == (schedule,)


@pytest.mark.obligation("IDN-1", boundary="failure")
async def test_idn_1_one_that_cannot_be_recovered_stands_in_nobodys_way(
    office: Office, evening: datetime, clock: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A proof that its validator cannot read, and a lane that is not there: the sweep says so, and publishes what it can."""
    monkeypatch.setattr(relaying, "LOST_SECONDS", 0.5)
    woken: list[str] = []

    async def woke(_: object, __: object, name: str) -> None:
        woken.append(name)

    monkeypatch.setattr(relaying, "wake", woke)
    schedule = office.register(document(BRIDGE))
    run_id = office.admitted_run(schedule)
    claim_id = office.claim(run_id)
    runs.report(office.pool, claim_id, "done", "broken", {"a": 1}, "")
    other = office.register(document(BRIDGE, name="other"))
    office.admitted_run(other)
    clock.advance(timedelta(hours=1))

    def cannot_read(_: object) -> str:
        raise KeyError("b")

    published: list[object] = []

    async def publish(one: object) -> None:
        published.append(one)

    patterns: Any = {
        ("bridge_turn", "1"): SimpleNamespace(finish_proofs={"broken": cannot_read}, returns_to_checkpoint=False)
    }
    lanes: Any = {lane_for("bridge_turn", "operator"): SimpleNamespace(publish=publish)}
    with ThreadPoolExecutor(2) as threads:
        activities = relaying.RelayActivities(office.pool, threads, None, "queue", lanes, patterns)  # type: ignore[arg-type]
        swept = await activities.sweep(asks.SweepAsk(str(uuid4())))
    assert len(published) == swept.republished == 1
    assert swept.recovered == 1
    assert schedule in woken


async def test_what_cannot_be_done_is_said_and_the_next_is_tried() -> None:
    """Whatever one thing raises, it is told apart from what went well."""

    async def fails() -> None:
        raise KeyError("no such lane")

    async def works() -> None:
        return None

    assert [await relaying.went_well(one()) for one in (fails, works)] == [False, True]


@pytest.mark.obligation("FIN-2", boundary="failure")
@pytest.mark.parametrize("what", ["the bound", "the owner"])
def test_fin_2_an_admission_whose_reply_was_lost_is_not_good_for_ever(office: Office, clock: Any, what: str) -> None:
    """Asked again after the bound, or after the owner was revoked: the effect was not begun, and is not begun any more."""
    clock.set(datetime(2026, 1, 1, 20, tzinfo=UTC))
    schedule = office.register(document(NIGHTLY, window={"allowed_delay": "1h", "finish_within": "2h"}))
    clock.set(datetime(2026, 1, 2, 1, tzinfo=UTC))
    office.ring(schedule)
    run_id = ledger.runs(office.pool, schedule)[0]["run_id"]
    claim_id, attempt = office.claim(run_id), StationAttemptId(uuid4())
    assert isinstance(effects.admit(office.pool, run_id, claim_id, attempt, "dump", "one"), effects.Begin)
    assert isinstance(effects.admit(office.pool, run_id, claim_id, attempt, "dump", "one"), effects.Begin)
    if what == "the bound":
        clock.set(datetime(2026, 1, 2, 3, tzinfo=UTC))
    else:
        authority.change_owner(office.pool, "magus", "revoked")
    assert isinstance(effects.admit(office.pool, run_id, claim_id, attempt, "dump", "one"), effects.Refused)
    assert office.row("SELECT state, left(note, 11) FROM nightbell.effect") == ("failed", "never begun")
