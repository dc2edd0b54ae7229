"""Killed between two commits, and asked again by a process that has just begun: what was promised is still so, from the rows."""

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import pytest

from law.identity import ClaimId, DecisionId, EnqueueSeq, RevisionNumber, StationAttemptId
from store import authority, cutover, effects, ledger, offers, registry, runs
from tests.office import BRIDGE, NIGHTLY, Office, document

SPRING, AUTUMN = datetime(2026, 3, 28, 20, tzinfo=UTC), datetime(2026, 10, 24, 20, tzinfo=UTC)
BOUND = datetime(2026, 1, 2, 4, tzinfo=UTC)
A_MICROSECOND = timedelta(microseconds=1)
HALF_PAST = {"kind": "calendar", "cron": "30 2 * * *", "zone": "Europe/Bratislava"}
NOMINAL = {"cycle": "nominal", "window": {"latest_start_civil": "05:00"}}
FOREGROUND = {"class_": {"service_class": "foreground"}, "window": None}

ROW = """
    SELECT jsonb_agg(to_jsonb(o) - ARRAY['materialized_at', 'materialized_by', 'decision_id'] ORDER BY source_key)
    FROM nightbell.occurrence o
"""


@pytest.mark.obligation("CAL-2", boundary="restart")
@pytest.mark.obligation("CAL-3", boundary="restart")
@pytest.mark.obligation("CAL-7", boundary="restart")
@pytest.mark.obligation("CAL-9", boundary="restart")
@pytest.mark.obligation("OCC-8", boundary="restart")
@pytest.mark.parametrize(
    ("evening_before", "changes", "kinds", "instants", "bounds"),
    [
        (AUTUMN, {**NOMINAL, "trigger": {**HALF_PAST, "fold": "both"}}, ["fold", "fold"], ["00:30", "01:30"], ["04:00", "04:00"]),
        (AUTUMN, {**NOMINAL, "trigger": {**HALF_PAST, "fold": "later"}}, ["fold"], ["01:30"], ["04:00"]),
        (SPRING, {**NOMINAL, "trigger": {**HALF_PAST, "gap": "skip"}}, ["gap_skipped"], [None], [None]),
        (SPRING, {**NOMINAL, "trigger": {**HALF_PAST, "gap": "advance"}}, ["gap_advanced"], ["01:00"], ["03:00"]),
        (SPRING, {**NOMINAL, "trigger": {**HALF_PAST, "gap": "fail"}}, ["gap_failed"], [None], [None]),
        (AUTUMN, {**FOREGROUND, "trigger": HALF_PAST}, ["fold"], ["00:30"], [None]),
    ],
    ids=["both readings", "the later reading", "skipped", "advanced", "failed", "no window"],
)  # fmt: skip
def test_what_was_interpreted_survives_a_kill_on_either_side_of_its_commit(
    office: Office, clock: Any, evening_before: datetime, changes: dict[str, Any], kinds: list[str],
    instants: list[str | None], bounds: list[str | None],
) -> None:  # fmt: skip
    """Killed before the commit: nothing, and then exactly that. After it: the same rows, bound by bound, for a new process."""
    clock.set(evening_before)
    schedule = office.register(document(NIGHTLY, **changes))
    clock.set(evening_before + timedelta(hours=6))
    with office.killed_at_commit("occurrence"):
        office.materialize(schedule)
    assert office.count("occurrence") == 0
    office = office.restarted()
    office.materialize(schedule)
    kept = office.value(ROW)
    assert [row["civil_kind"] for row in kept] == kinds
    assert [row["nominal_at"] and row["nominal_at"][11:16] for row in kept] == instants
    assert [row["latest_start_at"] and row["latest_start_at"][11:16] for row in kept] == bounds
    office = office.restarted()
    clock.advance(timedelta(minutes=5))
    office.materialize(schedule)
    assert office.value(ROW) == kept
    office.pool.close()


@pytest.mark.obligation("WIN-1", boundary="restart")
@pytest.mark.parametrize(("late", "state"), [(-A_MICROSECOND, "admitted"), (timedelta(0), "missed")])
def test_win_1_a_decider_killed_inside_the_window_gave_nobody_more_time(
    office: Office, evening: datetime, clock: Any, late: timedelta, state: str
) -> None:
    """What the killed one had sampled counts for nothing: the next is judged by its own sample, at the bound too."""
    schedule = office.register(document(NIGHTLY))
    clock.set(BOUND - timedelta(seconds=1))
    office.materialize(schedule)
    with office.killed_at_commit("invocation"):
        office.decide(schedule)
    office = office.restarted()
    clock.set(BOUND + late)
    assert [outcome.state for outcome in office.decide(schedule).outcomes] == [state]
    office.pool.close()


@pytest.mark.obligation("FIN-2", boundary="restart")
@pytest.mark.obligation("FIN-3", boundary="restart")
def test_fin_3_an_expiry_that_was_committed_survives_the_worker_and_the_clock(
    office: Office, evening: datetime, clock: Any
) -> None:
    """The bound passes while a hop is carried; its worker dies; a new process, and a clock set back, find it unmet for good."""
    schedule = office.register(document(NIGHTLY, window={"allowed_delay": "1h", "finish_within": "2h"}))
    clock.set(datetime(2026, 1, 2, 1, tzinfo=UTC))
    office.ring(schedule)
    run_id = ledger.runs(office.pool, schedule)[0]["run_id"]
    claim_id = office.claim(run_id)
    clock.set(datetime(2026, 1, 2, 3, tzinfo=UTC))
    refused = effects.admit(office.pool, run_id, claim_id, StationAttemptId(uuid4()), "dump", "one")
    assert isinstance(refused, effects.Refused)
    office = office.restarted()
    clock.set(datetime(2026, 1, 2, 2, tzinfo=UTC))
    again = effects.admit(office.pool, run_id, claim_id, StationAttemptId(uuid4()), "dump", "one")
    assert again == refused
    runs.report(office.pool, claim_id, "done", None, None, "")
    settled = office.settle(run_id, claim_id)
    assert (settled.state, settled.disposition) == ("done", "unmet")
    office.pool.close()


@pytest.mark.obligation("OCC-7", boundary="restart")
def test_occ_7_a_later_attempt_is_another_attempt_of_the_same_occurrence(office: Office, evening: datetime) -> None:
    """A worker dies between an effect's admission and its record. What is found afterwards keeps both names apart: the
    Occurrence's is the same, each attempt's its own."""
    run_id = office.admitted_run(office.register(document(BRIDGE)))
    occurrence_id = ledger.runs(office.pool)[0]["trigger_occurrence_id"]
    first = StationAttemptId(uuid4())
    claim_id = office.claim(run_id)
    effects.admit(office.pool, run_id, claim_id, first, "file", "one")
    office = office.restarted()
    effects.record(office.pool, first, "failed", None, "it did not happen")
    second = StationAttemptId(uuid4())
    assert isinstance(effects.admit(office.pool, run_id, claim_id, second, "file", "one"), effects.Begin)
    attempts = office.value("SELECT array_agg(station_attempt_id ORDER BY admitted_at) FROM nightbell.effect")
    assert set(attempts) == {first, second}
    assert ledger.runs(office.pool)[0]["trigger_occurrence_id"] == occurrence_id
    assert occurrence_id not in attempts
    office.pool.close()


@pytest.mark.obligation("CUT-2", boundary="restart")
def test_cut_2_what_a_plan_said_of_each_candidate_outlives_who_said_it(
    office: Office, evening: datetime, clock: Any
) -> None:
    """An explicit plan is pinned, everything restarts before any candidate has rung, and each is what the plan said."""
    base = {**NIGHTLY, "cycle": "nominal", "window": {"allowed_delay": "3h"}}
    schedule = office.register(document(base))
    utc = {"kind": "calendar", "cron": "0 2 * * *", "zone": "UTC"}
    two = registry.register(office.pool, document(base, trigger=utc), DecisionId(uuid4())).revision
    plan = cutover.examine(office.pool, schedule, two, None, DecisionId(uuid4())).plan
    cutover.activate(office.pool, schedule, RevisionNumber(two), plan, DecisionId(uuid4()))
    office = office.restarted()
    clock.set(datetime(2026, 1, 2, 2, tzinfo=UTC))
    with office.killed_at_commit("occurrence"):
        office.materialize(schedule)
    office = office.restarted()
    office.materialize(schedule)
    found = {
        line["key"]: (line["revision"], line["state"], line["reason"])
        for line in ledger.occurrences(office.pool, schedule)
    }
    assert found == {
        "nominal:2026-01-02T02:00:00[Europe/Bratislava]#0": (1, "skipped", "cutover_skipped"),
        "nominal:2026-01-02T02:00:00[UTC]#0": (2, "pending", None),
    }
    office.pool.close()


@pytest.mark.obligation("OCC-6", boundary="failure")
def test_occ_6_a_second_admission_of_one_occurrence_is_refused_by_the_rows(office: Office, evening: datetime) -> None:
    """However it might come about, the database holds one admission Invocation for each Occurrence, and one Run of it."""
    office.admitted_run(office.register(document(BRIDGE)))
    for table, name in (("invocation", "invocation_id"), ("run", "run_id")):
        with pytest.raises(Exception, match=r"invocation_once_key|run_invocation_key"):
            office.execute(
                f"INSERT INTO nightbell.{table} SELECT (jsonb_populate_record(t, jsonb_build_object('{name}', "
                f"gen_random_uuid()))).* FROM nightbell.{table} t"
            )
    assert (office.count("invocation"), office.count("run")) == (1, 1)


@pytest.mark.obligation("WIN-3", boundary="ordinary")
def test_win_3_a_decision_counts_from_the_commit_that_carries_it(office: Office, evening: datetime, clock: Any) -> None:
    """The committed row, its record and its Run carry one sample, and everybody reads them."""
    schedule = office.register(document(NIGHTLY))
    clock.set(datetime(2026, 1, 2, 1, tzinfo=UTC))
    office.ring(schedule)
    elsewhere = office.restarted()
    [line] = ledger.occurrences(elsewhere.pool, schedule)
    [run] = ledger.runs(elsewhere.pool, schedule)
    [decision] = ledger.explain(elsewhere.pool, line["trigger_occurrence_id"])["decisions"]
    assert line["decision_time"] == run["admitted_at"] == decision["sampled_at"] == datetime(2026, 1, 2, 1, tzinfo=UTC)
    elsewhere.pool.close()


@pytest.mark.obligation("OVL-4", boundary="restart")
@pytest.mark.obligation("AUT-4", boundary="restart")
@pytest.mark.obligation("SEL-6", boundary="restart")
@pytest.mark.parametrize(
    ("terms", "states"),
    [
        ({"overlap": {"policy": "bounded_parallel", "max": 2}}, ["admitted", "admitted", "pending"]),
        ({"overlap": {"policy": "bounded_parallel", "max": 9}, "budget": {"runs_per_day": 2}}, ["admitted", "admitted", "refused"]),
    ],
    ids=["at once", "a day"],
)  # fmt: skip
def test_a_ceiling_is_counted_from_the_rows_after_a_decider_was_killed(
    office: Office, evening: datetime, terms: dict[str, Any], states: list[str]
) -> None:
    """Killed before its commit it admitted nobody; asked again it admits to the ceiling; asked by a new process, nobody more,
    and the same id is given the same answer."""
    schedule = office.register(document(BRIDGE, **terms))
    for number in range(3):
        office.offer(schedule, str(number))
    with office.killed_at_commit("delivery"):
        office.decide(schedule)
    assert office.count("run") == 0
    office = office.restarted()
    decision_id = uuid4()
    first = office.decide(schedule, decision_id)
    assert sorted(one.state for one in first.outcomes) == states
    office = office.restarted()
    assert office.decide(schedule, decision_id) == first
    assert [one.state for one in office.decide(schedule).outcomes if one.state == "admitted"] == []
    assert office.count("run") == 2
    office.pool.close()


@pytest.mark.obligation("SEL-1", boundary="restart")
@pytest.mark.obligation("SEL-3", boundary="restart")
def test_sel_3_a_round_that_was_killed_is_judged_again_in_the_same_order(office: Office, evening: datetime) -> None:
    """One place, three that want it: the killed round's choice and the next one's are the same, by priority and then by age."""
    schedules = [
        office.register(document(BRIDGE, name=name, class_={"service_class": "foreground", "priority": priority}))
        for name, priority in (("low", 10), ("high", 90), ("middle", 50))
    ]
    for schedule in schedules:
        office.offer(schedule, "one")
    with office.killed_at_commit("delivery"):
        office.decide(schedules[0])
    office = office.restarted()
    office.decide(schedules[0])
    order = (
        "SELECT array_agg(s.name ORDER BY d.decision_seq) FROM nightbell.decision d JOIN nightbell.occurrence o USING"
    )
    decided = office.value(f"{order} (trigger_occurrence_id) JOIN nightbell.schedule s USING (schedule_id)")
    assert decided == ["high", "middle", "low"]
    office.pool.close()


@pytest.mark.obligation("AUT-1", boundary="restart")
@pytest.mark.obligation("AUT-2", boundary="restart")
def test_aut_1_a_revocation_between_two_commits_is_seen_by_whoever_acts_next(office: Office, evening: datetime) -> None:
    """The decider dies; the owner is revoked; a new process asks: nothing is admitted on what was true before."""
    schedule = office.register(document(BRIDGE))
    run_id = office.admitted_run(office.register(document(BRIDGE, name="earlier")))
    office.offer(schedule, "one")
    with office.killed_at_commit("invocation"):
        office.decide(schedule)
    authority.change_owner(office.pool, "magus", "revoked")
    office = office.restarted()
    [outcome] = office.decide(schedule).outcomes
    assert (outcome.state, outcome.reason) == ("revoked", "owner_revoked")
    claimed = runs.claim(office.pool, run_id, EnqueueSeq(0), ClaimId(uuid4()), "a new process")
    assert (claimed.granted, claimed.reason) == (False, "owner_revoked")
    office.pool.close()


@pytest.mark.obligation("CLS-2", boundary="restart")
def test_cls_2_a_class_that_was_lowered_stays_lowered(office: Office, evening: datetime) -> None:
    """An offer that asked for more than its ceiling, killed before its commit and brought again, has the ceiling, and keeps
    what it asked for."""
    spare = office.register(document(BRIDGE, class_={"service_class": "spare_capacity"}))
    asked = offers.Offer(spare, "bridge", "one", {}, "foreground", "a2a_peer", "elsewhere")
    with office.killed_at_commit("occurrence"):
        offers.offer(office.pool, asked, DecisionId(uuid4()))
    office = office.restarted()
    for created in (True, False):
        offered = offers.offer(office.pool, asked, DecisionId(uuid4()))
        assert offered.created is created
    occurrence = ledger.explain(office.pool, offered.trigger_occurrence_id)["occurrence"]
    assert (occurrence["requested_class"], occurrence["service_class"]) == ("foreground", "spare_capacity")
    office.pool.close()


@pytest.mark.obligation("FIN-6", boundary="restart")
@pytest.mark.obligation("FIN-6", boundary="failure")
def test_fin_6_a_run_without_a_bound_can_be_given_none_and_keeps_none(
    office: Office, evening: datetime, clock: Any
) -> None:
    """Untimed it was admitted, and untimed it is settled by a new process a month later; the rows refuse it a bound."""
    run_id = office.admitted_run(office.register(document(BRIDGE)))
    for change in ("finish_by = admitted_at", "disposition = 'timely'", "disposition = 'open'"):
        with pytest.raises(Exception, match=r"pinned|run_disposition_law|run_settled_law"):
            office.execute(f"UPDATE nightbell.run SET {change}")
    office = office.restarted()
    clock.advance(timedelta(days=30))
    assert office.done(run_id).disposition == "untimed"
    office.pool.close()
