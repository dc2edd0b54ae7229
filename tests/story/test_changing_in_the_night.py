"""Changing a Schedule in the middle of its night, through Temporal, with workers that die: no firing lost, doubled or moved."""

from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

import pytest
from temporalio.client import WorkflowUpdateFailedError
from temporalio.exceptions import ApplicationError

from law.identity import DecisionId, RevisionNumber, ScheduleName, SourceKey
from store import cutover, ledger, lookup, registry
from tests.office import NIGHTLY, document
from tests.serving import until
from tests.story.conftest import House
from workflows.schedule import ScheduleWorkflow, Shown
from workflows.terms import schedule_workflow_id

BY_UTC = {"trigger": {"kind": "calendar", "cron": "0 2 * * *", "zone": "UTC"}, "window": {"allowed_delay": "3h"}}


def utc(day: int, hour: int, minute: int = 0) -> datetime:
    return datetime(2026, 1, day, hour, minute, tzinfo=UTC)


def named(house: House, **changes: Any) -> Any:
    """The nightly Schedule under a name of this test's own: workflows outlive their databases here."""
    return document(NIGHTLY, name=house.settings.task_queue, **changes)


def register(house: House, **changes: Any) -> ScheduleName:
    return registry.register(house.office.pool, named(house, **changes), DecisionId(uuid4())).schedule


def nights(house: House, schedule: ScheduleName) -> dict[str, tuple[int, str]]:
    """Each night's revision and state."""
    lines = ledger.occurrences(house.office.pool, schedule)
    return {line["key"].removeprefix("civil_date:2026-01-"): (line["revision"], line["state"]) for line in lines}


@pytest.mark.obligation("CUT-5", boundary="restart")
@pytest.mark.obligation("CUT-4", boundary="restart")
@pytest.mark.obligation("OCC-2", boundary="restart")
async def test_cut_5_as_it_is_told(house: House, clock) -> None:
    """Revision 1 rings 02:00 Bratislava. At 01:30Z, with no worker alive, revision 2 (02:00 UTC) is signalled. A worker comes;
    at 02:00Z the firing is rediscovered, and is revision 1's; everything restarts; January 3 is revision 2's."""
    clock.set(utc(1, 20))
    schedule = register(house)
    async with house.worker():
        await until("the workflow", lambda: started(house, schedule))
        clock.set(utc(2, 1))
        await house.reconsider(schedule)
        await until("January 2", lambda: nights(house, schedule) == {"02": (1, "admitted")})
    register(house, **BY_UTC)
    clock.set(utc(2, 1, 30))
    await house.workflow(schedule).signal("activate_revision", {"revision": 2, "first_cycle": "2026-01-03"})
    async with house.worker():
        await until("the activation", lambda: registry.schedule(house.office.pool, schedule).revision == 2)
        clock.set(utc(2, 2))
        await house.reconsider(schedule)
        await until("a look", lambda: looked_at(house, schedule, utc(3, 2)))
    told = lookup.whose(house.office.pool, schedule, SourceKey("civil_date:2026-01-02"), RevisionNumber(2))
    assert (told.revision, told.standing) == (1, "occurrence")
    assert nights(house, schedule) == {"02": (1, "admitted")}
    clock.set(utc(3, 2))
    async with house.worker():
        await until("January 3", lambda: "03" in nights(house, schedule))
        await until("its Run", lambda: len(ledger.runs(house.office.pool, schedule)) == 2)
    assert {night: revision for night, (revision, _) in nights(house, schedule).items()} == {"02": 1, "03": 2}


async def looked_at(house: House, schedule: ScheduleName, next_at: datetime) -> bool:
    """Whether the workflow has asked since, and waits for this instant."""
    shown: Shown = await house.workflow(schedule).query(ScheduleWorkflow.progress)
    return shown.next_nominal_at == next_at


@pytest.mark.obligation("CUT-3", boundary="failure")
async def test_cut_3_a_signalled_activation_that_is_refused_is_shown_and_changes_nothing(house: House, clock) -> None:
    """Nobody waits for a signal's answer, so the page says it; an update is answered with the same sentence."""
    clock.set(utc(1, 20))
    schedule = register(house)
    register(house, **BY_UTC)
    async with house.worker():
        await until("the workflow", lambda: started(house, schedule))
        for message in (
            {"revision": 2},
            {"revision": 2, "first_cycle": "2020-01-01"},
            {"revision": "two"},
            {"no": 1},
            {},
        ):
            await house.workflow(schedule).signal("activate_revision", message)
            with pytest.raises(WorkflowUpdateFailedError) as refused:
                await house.workflow(schedule).execute_update("activate", message)
            assert isinstance(refused.value.cause, Exception)
            assert sentence(refused.value) != ""
            await until(
                "the refusal on the page", lambda refused=refused: shows(house, schedule, sentence(refused.value))
            )
        assert registry.schedule(house.office.pool, schedule).revision == 1
        answer = await house.workflow(schedule).execute_update(
            "activate", {"revision": 2, "first_cycle": "2026-01-04"}, result_type=dict
        )
        assert (answer["schedule"], answer["revision"]) == (schedule, 2)
        await until("a page without it", lambda: shows(house, schedule, ""))


async def started(house: House, schedule: ScheduleName) -> bool:
    """Whether the Schedule's workflow has looked once."""
    found = [one async for one in house.client.list_workflows(f"WorkflowId = '{schedule_workflow_id(schedule)}'")]
    return bool(found) and (await house.workflow(schedule).query(ScheduleWorkflow.progress)).rounds > 0


async def shows(house: House, schedule: ScheduleName, refusal: str) -> bool:
    """Whether the page shows this refusal, or none for ''."""
    shown: Shown = await house.workflow(schedule).query(ScheduleWorkflow.progress)
    return shown.refused == "" if not refusal else refusal in shown.refused


def sentence(problem: WorkflowUpdateFailedError) -> str:
    """The store's own words at the bottom of Temporal's."""
    cause: BaseException | None = problem
    while cause is not None and not isinstance(cause, ApplicationError):
        cause = cause.__cause__
    return cause.message if isinstance(cause, ApplicationError) else ""


@pytest.mark.obligation("CUT-1", boundary="restart")
async def test_cut_1_an_explicit_plan_travels_through_a_signal(house: House, clock) -> None:
    """Two zones that share no cycle: the proposed plan is signalled whole, and pinned as it stands."""
    clock.set(utc(1, 20))
    schedule = register(house, cycle="nominal")
    register(house, cycle="nominal", **BY_UTC)
    plan = cutover.examine(house.office.pool, schedule, RevisionNumber(2), None, DecisionId(uuid4())).plan
    assert plan is not None
    async with house.worker():
        await until("the workflow", lambda: started(house, schedule))
        await house.workflow(schedule).signal("activate_revision", {"revision": 2, "plan": plan.model_dump()})
        await until("the activation", lambda: registry.schedule(house.office.pool, schedule).revision == 2)
        clock.set(utc(2, 2))
        await house.reconsider(schedule)
        await until("the night", lambda: len(ledger.runs(house.office.pool, schedule)) == 1)
    states = {
        line["key"]: (line["revision"], line["state"]) for line in ledger.occurrences(house.office.pool, schedule)
    }
    assert states == {
        "nominal:2026-01-02T02:00:00[Europe/Bratislava]#0": (1, "skipped"),
        "nominal:2026-01-02T02:00:00[UTC]#0": (2, "admitted"),
    }
