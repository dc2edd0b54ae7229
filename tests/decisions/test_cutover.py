"""Activation in the store: one lock, one plan, one owner for each firing, whoever looks and whenever."""

import threading
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import pytest

from law.errors import PlanRefused, StillServing, UnknownRevision
from law.identity import DecisionId, RevisionNumber, ScheduleName, SourceKey
from law.partition import ExplicitPlan, FirstCyclePlan
from store import cutover, ledger, lookup, registry
from tests.office import BRIDGE, NIGHTLY, Office, document

TWO = RevisionNumber(2)
EVERY_UTC = {"kind": "calendar", "cron": "0 2 * * *", "zone": "UTC"}
MINUTELY = {**NIGHTLY, "name": "minutely", "cycle": "nominal", "window": {"allowed_delay": "30s"},
            "trigger": {"kind": "calendar", "cron": "* * * * *", "zone": "UTC"}}  # fmt: skip


def utc(day: int, hour: int, minute: int = 0) -> datetime:
    return datetime(2026, 1, day, hour, minute, tzinfo=UTC)


def revise(office: Office, base: dict[str, Any], **changes: Any) -> RevisionNumber:
    """Register a further revision."""
    return registry.register(office.pool, document(base, **changes), DecisionId(uuid4())).revision


def activate(
    office: Office, schedule: ScheduleName, plan: Any = None, revision: RevisionNumber = TWO
) -> cutover.Activated:
    return cutover.activate(office.pool, schedule, revision, plan, DecisionId(uuid4()))


def proposed(office: Office, schedule: ScheduleName, revision: RevisionNumber = TWO) -> Any:
    """The plan that is proposed now."""
    return cutover.examine(office.pool, schedule, revision, None, DecisionId(uuid4())).plan


def owners(office: Office, schedule: ScheduleName) -> dict[str, tuple[int, str]]:
    """Each firing's revision and state."""
    lines = ledger.occurrences(office.pool, schedule, limit=1000)
    return {line["key"]: (line["revision"], line["state"]) for line in reversed(lines)}


def whose(office: Office, schedule: ScheduleName, key: str, revision: int | None = None) -> lookup.Whose:
    known = RevisionNumber(revision) if revision is not None else None
    return lookup.whose(office.pool, schedule, SourceKey(key), known)


@pytest.mark.obligation("CUT-5", boundary="ordinary")
@pytest.mark.obligation("CUT-5", boundary="restart")
@pytest.mark.obligation("CUT-4", boundary="ordinary")
@pytest.mark.parametrize(
    "found_before", [True, False], ids=["assigned before the switch", "first met after the switch"]
)
def test_cut_5_the_worked_example_holds(office: Office, evening, clock, found_before: bool) -> None:
    """Activated at 01:30Z: January 2 is revision 1's, whichever relay brings it and whenever; revision 2 begins January 3."""
    schedule = office.register(document(NIGHTLY))
    assert revise(office, NIGHTLY, trigger=EVERY_UTC, window={"allowed_delay": "3h"}) == TWO
    if found_before:
        clock.set(utc(2, 1))
        office.ring(schedule)
    clock.set(utc(2, 1, 30))
    plan = proposed(office, schedule)
    assert plan == FirstCyclePlan(first_cycle="civil_date:2026-01-03")
    activate(office, schedule, plan)
    for revision in (1, 2, None):
        told = whose(office, schedule, "civil_date:2026-01-02", revision)
        assert (told.revision, told.standing) == (1, "occurrence" if found_before else "unassigned")
    clock.set(utc(2, 2))
    office.pool.check()
    office.ring(schedule)
    assert owners(office, schedule) == {"civil_date:2026-01-02": (1, "admitted")}
    first = whose(office, schedule, "civil_date:2026-01-02", 2)
    assert (first.revision, first.state) == (1, "admitted")
    run_id = ledger.runs(office.pool, schedule)[0]["run_id"]
    office.done(run_id)
    assert whose(office, schedule, "civil_date:2026-01-02", 2).trigger_occurrence_id == first.trigger_occurrence_id
    clock.set(utc(3, 2))
    office.ring(schedule)
    assert owners(office, schedule) == {
        "civil_date:2026-01-02": (1, "admitted"),
        "civil_date:2026-01-03": (2, "admitted"),
    }


@pytest.mark.obligation("CUT-3", boundary="failure")
@pytest.mark.obligation("CUT-5", boundary="failure")
def test_cut_3_a_plan_that_would_move_a_firing_changes_nothing(office: Office, evening, clock) -> None:
    """Refused by name, and the ledger, the lines and the active revision are as they were."""
    schedule = office.register(document(NIGHTLY))
    revise(office, NIGHTLY, trigger=EVERY_UTC, window={"allowed_delay": "3h"})
    clock.set(utc(2, 1))
    office.ring(schedule)
    clock.set(utc(2, 1, 30))
    before = office.row("SELECT to_jsonb(array_agg(g)) FROM nightbell.segment g")
    for first in ("2026-01-02", "2026-01-01"):
        with pytest.raises(PlanRefused, match=r"would_move.*1:civil_date:2026-01-02"):
            activate(office, schedule, FirstCyclePlan(first_cycle=first))
    with pytest.raises(PlanRefused, match="missing"):
        activate(office, schedule)
    assert office.row("SELECT to_jsonb(array_agg(g)) FROM nightbell.segment g") == before
    assert registry.schedule(office.pool, schedule).revision == 1
    assert office.count("activation") == 1


@pytest.mark.obligation("CUT-3", boundary="failure")
def test_cut_3_an_unknown_revision_and_one_that_rings_already_are_refused(office: Office, evening) -> None:
    """There is nothing to activate, or it is active, or it rings on a line of its own."""
    schedule = office.register(document(NIGHTLY))
    with pytest.raises(UnknownRevision, match="revision 7"):
        activate(office, schedule, FirstCyclePlan(first_cycle="2026-01-03"), RevisionNumber(7))
    assert activate(office, schedule, None, RevisionNumber(1)).revision == 1
    revise(office, NIGHTLY, trigger=EVERY_UTC, window={"allowed_delay": "3h"})
    activate(office, schedule, FirstCyclePlan(first_cycle="2026-01-05"))
    with pytest.raises(StillServing):
        activate(office, schedule, FirstCyclePlan(first_cycle="2026-01-07"), RevisionNumber(1))


@pytest.mark.obligation("CUT-1", boundary="restart")
@pytest.mark.obligation("CUT-3", boundary="restart")
def test_cut_1_an_activation_killed_before_its_commit_never_was(office: Office, evening, clock) -> None:
    """The connection is cut while it commits: the old revision is whole, and the same call afterwards activates once."""
    schedule = office.register(document(NIGHTLY))
    revise(office, NIGHTLY, trigger=EVERY_UTC, window={"allowed_delay": "3h"})
    decision_id, plan = DecisionId(uuid4()), FirstCyclePlan(first_cycle="2026-01-03")
    with office.killed_at_commit("activation"):
        cutover.activate(office.pool, schedule, TWO, plan, decision_id)
    assert office.count("activation") == 1
    assert registry.schedule(office.pool, schedule).revision == 1
    first = cutover.activate(office.pool, schedule, TWO, plan, decision_id)
    assert cutover.activate(office.pool, schedule, TWO, plan, decision_id) == first
    assert office.count("activation") == 2
    clock.set(utc(2, 2))
    office.ring(schedule)
    assert owners(office, schedule) == {"civil_date:2026-01-02": (1, "admitted")}


@pytest.mark.obligation("CUT-2", boundary="ordinary")
@pytest.mark.obligation("CUT-4", boundary="restart")
def test_cut_2_same_distinct_and_skipped_are_kept_for_ever(office: Office, evening, clock) -> None:
    """An explicit plan between two zones: one new name is an old firing, one old firing is let go under its own revision."""
    schedule = office.register(document(MINUTELY, trigger={**EVERY_UTC, "zone": "Europe/Bratislava"}))
    revise(office, MINUTELY, trigger={**EVERY_UTC, "cron": "0 2,3 * * *"})
    clock.set(utc(2, 0, 30))
    night, two, three, next_night = (
        "nominal:2026-01-02T02:00:00[Europe/Bratislava]#0", "nominal:2026-01-02T02:00:00[UTC]#0",
        "nominal:2026-01-02T03:00:00[UTC]#0", "nominal:2026-01-03T02:00:00[Europe/Bratislava]#0",
    )  # fmt: skip
    entries = [
        {"revision": 1, "key": night, "disposition": "distinct", "owner": 1},
        {"revision": 2, "key": two, "disposition": "same_as", "owner": 1, "same_as": {"revision": 1, "key": night}},
        {"revision": 2, "key": three, "disposition": "skip", "owner": 2},
        {"revision": 1, "key": next_night, "disposition": "skip", "owner": 1},
        {"revision": 2, "key": "nominal:2026-01-03T02:00:00[UTC]#0", "disposition": "distinct", "owner": 2},
    ]
    plan = ExplicitPlan.model_validate(
        {"old_through": night, "new_from": "nominal:2026-01-03T02:00:00[UTC]#0", "entries": entries}
    )
    activate(office, schedule, plan)
    assert (whose(office, schedule, two, 2).key, whose(office, schedule, two, 2).revision) == (night, 1)
    for at in (utc(2, 1), utc(2, 2), utc(2, 3), utc(3, 1), utc(3, 2)):
        clock.set(at)
        office.ring(schedule)
    assert owners(office, schedule) == {
        night: (1, "admitted"), three: (2, "skipped"), next_night: (1, "skipped"),
        "nominal:2026-01-03T02:00:00[UTC]#0": (2, "suppressed"),
    }  # fmt: skip
    reasons = {line["key"]: line["reason"] for line in ledger.occurrences(office.pool, schedule)}
    assert reasons[three] == reasons[next_night] == "cutover_skipped"
    assert whose(office, schedule, two, 2).state == "admitted"
    assert office.count("occurrence") == 4


@pytest.mark.obligation("CUT-1", boundary="ordinary")
def test_cut_2_what_a_cutover_takes_out_of_a_long_outage_is_not_counted_in_it(office: Office, evening, clock) -> None:
    """Weeks of minutes missed around an explicit cut: every firing is in a row or in a stretch, once, under its own revision."""
    schedule = office.register(document(MINUTELY))
    revise(office, MINUTELY, trigger={**MINUTELY["trigger"], "cron": "*/2 * * * *"})
    clock.set(utc(1, 20, 30))
    plan = proposed(office, schedule)
    first = plan.first_cycle.split("#")[0]
    assert first == "2026-01-01T20:30:01"
    activate(office, schedule, plan)
    clock.set(utc(20, 20, 30))
    office.ring(schedule)
    counted = office.row(
        "SELECT (SELECT count(*) FROM nightbell.occurrence) + (SELECT sum(firing_count) FROM nightbell.skipped_range)"
    )
    assert counted == (31 + 19 * 24 * 30,)
    for key, revision in (("20:13", 1), ("20:30", 1), ("20:32", 2)):
        assert whose(office, schedule, f"nominal:2026-01-01T{key}:00[UTC]#0").revision == revision
    inside = whose(office, schedule, "nominal:2026-01-10T04:06:00[UTC]#0", 1)
    assert (inside.standing, inside.revision, inside.state, inside.reason) == ("range", 2, "skipped", "beyond_horizon")
    assert whose(office, schedule, "nominal:2026-01-10T04:07:00[UTC]#0").standing == "none"
    assert whose(office, schedule, "nominal:2027-01-10T04:06:00[UTC]#0").standing == "unassigned"


@pytest.mark.obligation("OCC-5", boundary="ordinary")
def test_occ_5_an_external_schedule_needs_no_plan(office: Office, evening) -> None:
    """There are no candidates to divide: what was first met before stays, what is first met afterwards is the new one's."""
    schedule = office.register(document(BRIDGE))
    first = office.offer(schedule, "one")
    revise(office, BRIDGE, overlap={"policy": "serialize"})
    activate(office, schedule)
    assert (office.offer(schedule, "one").trigger_occurrence_id, office.offer(schedule, "one").revision) == (
        first.trigger_occurrence_id, 1,
    )  # fmt: skip
    assert office.offer(schedule, "two").revision == 2
    activate(office, schedule, None, revise(office, BRIDGE, overlap={"policy": "forbid"}))
    assert office.offer(schedule, "three").revision == 3


@pytest.mark.obligation("CUT-1", boundary="ordinary")
def test_cut_1_a_calendar_may_become_a_door_and_a_door_a_calendar(office: Office, evening, clock) -> None:
    """A line that only ends, and one that only begins."""
    schedule = office.register(document(NIGHTLY, class_={"service_class": "foreground"}, window=None))
    external = {"kind": "external", "source": "bridge"}
    revise(office, NIGHTLY, cycle="nominal", trigger=external, class_={"service_class": "foreground"}, window=None)
    clock.set(utc(1, 23))
    activate(office, schedule, proposed(office, schedule))
    clock.set(utc(2, 1))
    office.ring(schedule)
    assert owners(office, schedule) == {}
    assert office.offer(schedule, "one").revision == 2
    third = revise(office, NIGHTLY)
    activate(office, schedule, proposed(office, schedule, third), third)
    clock.set(utc(3, 1))
    office.ring(schedule)
    assert owners(office, schedule)["civil_date:2026-01-03"][0] == 3


@pytest.mark.obligation("CUT-1", boundary="ordinary")
@pytest.mark.obligation("OCC-2", boundary="ordinary")
def test_cut_1_revisions_may_follow_each_other_before_the_first_has_drained(office: Office, evening, clock) -> None:
    """Two cuts ahead: each night is rung by the revision whose stretch it lies in; one whose stretch is empty rings nothing."""
    schedule = office.register(document(NIGHTLY))
    for first, day in ((2, 4), (3, 6), (4, 6)):
        revision = revise(office, NIGHTLY, work={**NIGHTLY["work"], "input": {"keep": first}})
        activate(office, schedule, FirstCyclePlan(first_cycle=f"2026-01-0{day}"), revision)
    for day in range(2, 8):
        clock.set(utc(day, 1))
        office.ring(schedule)
        for line in ledger.runs(office.pool, schedule, ("queued",)):
            office.done(line["run_id"])
    found = {
        key.removeprefix("civil_date:2026-01-0"): revision for key, (revision, _) in owners(office, schedule).items()
    }
    assert found == {"2": 1, "3": 1, "4": 2, "5": 2, "6": 4, "7": 4}


@pytest.mark.obligation("CUT-1", boundary="failure")
@pytest.mark.obligation("CUT-4", boundary="failure")
@pytest.mark.obligation("OCC-2", boundary="ordinary")
def test_cut_1_two_relays_and_an_activation_race(
    office: Office, evening, clock, request: pytest.FixtureRequest
) -> None:
    """Forty races (a thousand in `make crash`) over a bell that rings every minute: nothing is assigned twice, nothing to
    the wrong revision."""
    schedule = office.register(document(MINUTELY))
    crons = ["* * * * *", "*/2 * * * *"]
    at = utc(1, 21)
    firsts = [at]
    for race in range(request.config.getoption("--races")):
        at += timedelta(minutes=5)
        clock.set(at)
        revision = revise(office, MINUTELY, trigger={**MINUTELY["trigger"], "cron": crons[(race + 1) % 2]})
        plan = proposed(office, schedule, revision)
        firsts.append(datetime.fromisoformat(plan.first_cycle.split("#")[0]).replace(tzinfo=UTC))
        together(
            lambda revision=revision, plan=plan: activate(office, schedule, plan, revision),
            lambda: office.materialize(schedule),
            lambda: office.materialize(schedule),
        )
        office.materialize(schedule)
    lines = ledger.occurrences(office.pool, schedule, limit=10_000)
    stretches = ledger.skipped_ranges(office.pool, schedule, limit=10_000)
    assert not stretches
    for line in lines:
        owner = max(number for number, first in enumerate(firsts, 1) if number == 1 or first <= line["rang_at"])
        assert line["revision"] == owner, line
    expected = {
        moment
        for number, first in enumerate(firsts, 1)
        for moment in minutes(first if number > 1 else utc(1, 20), firsts[number] if number < len(firsts) else at)
        if number % 2 or moment.minute % 2 == 0
    }
    assert {line["rang_at"] for line in lines} == expected


def minutes(start: datetime, end: datetime) -> list[datetime]:
    """Whole minutes in [start, end]."""
    first = start.replace(second=0) + (timedelta(minutes=1) if start.second else timedelta(0))
    return [first + timedelta(minutes=number) for number in range(int((end - first) / timedelta(minutes=1)) + 1)]


def together(*acts: Callable[[], object]) -> None:
    """Do all at once; a failure of any is a failure."""
    problems: list[BaseException] = []

    def act(one: Callable[[], object]) -> None:
        try:
            one()
        except BaseException as problem:
            problems.append(problem)

    threads = [threading.Thread(target=act, args=(one,)) for one in acts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not problems
