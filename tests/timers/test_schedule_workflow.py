"""One workflow a Schedule, by a real worker over a real store: nothing that was sent is lost, and nights pass in seconds."""

import asyncio
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import islice
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from temporalio.client import Client, WorkflowHandle
from temporalio.testing import TimeSkipper

from law.firings import Firing, firings
from law.identity import DecisionId, ScheduleName
from law.triggers import CalendarTrigger
from nightbell.settings import Settings
from nightbell.wiring import installed_patterns
from store import ledger, registry
from store.authority import register_patterns
from store.connection import Pool, open_pool
from store.zone_rules import installed_rules
from tests.office import BRIDGE, NIGHTLY, document
from tests.serving import serving, settings_apart, until
from workflows.schedule import OfferMessage, ScheduleWorkflow
from workflows.shown import Shown
from workflows.terms import schedule_workflow_id

SIGNALS = 200
A_SECOND = timedelta(seconds=1)


@pytest.fixture
def pool(database_url: str) -> Iterator[Pool]:
    """A store that knows the installed Patterns."""
    with open_pool(database_url) as found:
        register_patterns(found, installed_patterns())
        yield found


@pytest.fixture
def settings(database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    """A task queue, a deployment and a relay of the test's own."""
    return settings_apart(monkeypatch, database_url, tmp_path)


def register(pool: Pool, settings: Settings, base: dict[str, Any], **changes: Any) -> ScheduleName:
    """A Schedule under a name of this test's own: workflows outlive their databases here."""
    return registry.register(pool, document(base, name=settings.task_queue, **changes), DecisionId(uuid4())).schedule


def at_any_run(client: Client, name: ScheduleName) -> WorkflowHandle[Any, Any]:
    """The Schedule's workflow, whichever run of it there is by now."""
    return client.get_workflow_handle(schedule_workflow_id(name))


async def runs_of(client: Client, name: ScheduleName) -> int:
    """How often its history has begun."""
    query = f"WorkflowId = '{schedule_workflow_id(name)}'"
    return len([one async for one in client.list_workflows(query)])


@pytest.mark.obligation("OCC-4", boundary="restart")
@pytest.mark.obligation("OCC-6", boundary="restart")
async def test_two_hundred_messages_across_a_new_history_lose_none(
    temporal_client: Client, pool: Pool, settings: Settings
) -> None:
    """Updates that offer and signals that ring, sent while the history begins anew several times: each event has one
    Occurrence, and every repeat was answered with the first one's."""
    name = register(pool, settings, BRIDGE, overlap={"policy": "bounded_parallel", "max": 500})
    async with serving(temporal_client, settings):
        await temporal_client.start_workflow(
            ScheduleWorkflow.run, Shown(name), id=schedule_workflow_id(name), task_queue=settings.task_queue
        )
        handle, answers = at_any_run(temporal_client, name), list[Any]()
        for first in range(0, SIGNALS, 20):
            events = [str(number) for number in range(first, first + 20)]
            offers = [handle.execute_update(ScheduleWorkflow.offer, OfferMessage("bridge", event)) for event in events]
            rings = [handle.signal(ScheduleWorkflow.reconsider) for _ in range(10)]
            answers += (await asyncio.gather(*offers, *rings))[:20]
        repeated = await handle.execute_update(ScheduleWorkflow.offer, OfferMessage("bridge", "0"))
        await until("every admission", lambda: len(ledger.runs(pool, name, limit=1000)) == SIGNALS)
    lines = ledger.occurrences(pool, name, limit=1000)
    assert sorted(line["key"] for line in lines) == sorted(f"event:bridge:{number}" for number in range(SIGNALS))
    assert {answer.trigger_occurrence_id for answer in answers} == {
        str(line["trigger_occurrence_id"]) for line in lines
    }
    assert (repeated.trigger_occurrence_id, repeated.created) == (answers[0].trigger_occurrence_id, False)
    assert await runs_of(temporal_client, name) >= 3


@pytest.mark.obligation("OCC-3", boundary="restart")
async def test_nights_pass_by_durable_timers_and_each_rings_once(
    temporal_client: Client, time_skipper: TimeSkipper, pool: Pool, settings: Settings, clock: Any
) -> None:
    """Five nights in virtual time: the workflow sleeps to its hint, workers come and go, and each night has one Occurrence at
    the instant that the calendar says."""
    began = datetime.now(UTC)
    clock.set(began)
    name = register(pool, settings, NIGHTLY)
    handle, skipped = at_any_run(temporal_client, name), timedelta(0)
    async with serving(temporal_client, settings):
        await time_skipper.client.start_workflow(
            ScheduleWorkflow.run, Shown(name), id=schedule_workflow_id(name), task_queue=settings.task_queue
        )
    bells = [one.at for one in islice(nights(began), 5)]
    for number, bell in enumerate(bells, 1):
        async with serving(temporal_client, settings):
            clock.set(bell + A_SECOND)
            ahead = bell + 2 * A_SECOND - (datetime.now(UTC) + skipped)
            await time_skipper.fast_forward(handle, ahead)
            skipped += ahead
            await until("the night", lambda number=number: len(ledger.occurrences(pool, name)) == number)
            await until("its Run", lambda number=number: len(ledger.runs(pool, name, ("done", "failed"))) == number)
    assert [line["nominal_at"] for line in reversed(ledger.occurrences(pool, name))] == bells


def nights(since: datetime) -> Iterator[Firing]:
    """The firings of the nightly Schedule, as the law lists them."""
    trigger = document(NIGHTLY).trigger
    assert isinstance(trigger, CalendarTrigger)
    return firings(trigger, "civil_date", installed_rules(trigger.zone), since, since + timedelta(days=30))
