"""The asker owns the question: stubs and answers have one signature, and no workflow can reach the database."""

import inspect
from typing import Any, get_type_hints
from uuid import uuid4

import pytest
from temporalio import activity
from temporalio.client import Client, WorkflowFailureError
from temporalio.worker import Worker

from activities.hops import HopActivities
from activities.publishing import PublishActivities
from activities.relaying import RelayActivities
from activities.schedules import ScheduleActivities
from nightbell.plugin import WORKFLOWS, sandbox
from tests.timers.reaches_for_the_store import ImportsADriverWhenItRuns, ImportsTheStoreWhenItRuns
from workflows import asks

ANSWERERS = (ScheduleActivities, HopActivities, PublishActivities, RelayActivities)


def definitions(holder: Any) -> dict[str, Any]:
    """Every activity of a module or class, by the name that it has in a history."""
    members = dict(inspect.getmembers(holder, inspect.isfunction))
    return {found: member for member in members.values() if (found := named(member)) is not None}


def named(member: Any) -> str | None:
    """An activity's name, or None for a plain function."""
    definition = getattr(member, "__temporal_activity_definition", None)
    return definition.name if definition is not None else None


def types_of(member: Any) -> list[Any]:
    """The types of what is asked and what is answered."""
    hints = get_type_hints(member)
    return [hints[name] for name in inspect.signature(member).parameters if name != "self"] + [hints["return"]]


def test_every_question_is_answered_under_its_own_signature() -> None:
    """The same names on both sides, the same types, one argument each."""
    asked = definitions(asks)
    answered = {name: member for one in ANSWERERS for name, member in definitions(one).items()}
    assert asked.keys() == answered.keys()
    assert {name: types_of(one) for name, one in asked.items()} == {
        name: types_of(one) for name, one in answered.items()
    }
    assert all(len(types_of(one)) == 2 for one in asked.values())
    assert len(asked) >= 9
    assert all(activity.defn is not None and inspect.iscoroutinefunction(one) for one in asked.values())


async def test_our_own_workflows_load_in_the_sandbox(temporal_client: Client) -> None:
    """The deny-list denies nothing that they need."""
    worker = Worker(temporal_client, task_queue="loads", workflows=list(WORKFLOWS), workflow_runner=sandbox())
    assert worker.task_queue == "loads"


async def test_a_module_that_imports_the_store_is_refused_when_its_worker_starts(temporal_client: Client) -> None:
    """Not at its first replay, and not in production."""
    from tests.timers.reaches_at_once import ImportsTheStore

    with pytest.raises(RuntimeError, match="Failed validating workflow") as refused:
        Worker(temporal_client, task_queue="refused", workflows=[ImportsTheStore], workflow_runner=sandbox())
    assert "Cannot access store" in str(refused.value.__cause__)


@pytest.mark.parametrize("reaching", [ImportsTheStoreWhenItRuns, ImportsADriverWhenItRuns])
async def test_a_workflow_that_reaches_for_the_database_fails(temporal_client: Client, reaching: type) -> None:
    """However late the import comes, it does not get through."""
    queue = f"reach-{uuid4().hex[:8]}"
    async with Worker(
        temporal_client, task_queue=queue, workflows=[reaching], workflow_runner=sandbox(),
        workflow_failure_exception_types=[Exception],
    ):  # fmt: skip
        with pytest.raises(WorkflowFailureError) as failed:
            await temporal_client.execute_workflow(reaching.__name__, id=queue, task_queue=queue)
    assert "not allowed" in str(failed.value.cause) or "Cannot access" in str(failed.value.cause)
