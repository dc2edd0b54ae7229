"""The servers that other tests stand on."""

import asyncio
from datetime import UTC, datetime, timedelta

import psycopg
import pytest
from temporalio import workflow
from temporalio.client import Client
from temporalio.testing import TimeSkipper
from temporalio.worker import Worker

from nightbell.temporal_server import SEARCH_ATTRIBUTES


@workflow.defn
class SleepTwice:
    """Sleeps a day, continues as new once."""

    @workflow.run
    async def run(self, again: bool) -> str:
        await workflow.sleep(timedelta(days=1))
        if again:
            workflow.continue_as_new(False)
        return workflow.now().isoformat()


@pytest.mark.obligation("WIN-2", boundary="ordinary")
def test_a_test_clock_stands_moves_and_runs_again(database_url: str, clock) -> None:
    """The time of decisions is moved in the test's own database, by replacing the one SQL function."""
    noon = datetime(2026, 1, 2, 12, tzinfo=UTC)
    clock.set(noon)
    assert clock.at == noon
    assert clock.advance(timedelta(hours=1)) == noon + timedelta(hours=1)
    clock.release()
    with psycopg.connect(database_url) as connection:
        row = connection.execute(
            "SELECT nightbell.trusted_now() >= clock_timestamp() - interval '5 seconds'"
        ).fetchone()
    assert row == (True,)


def test_databases_of_two_tests_share_nothing(database_url: str) -> None:
    """Each test has a fresh clone: the clock of the test before is not in it."""
    with psycopg.connect(database_url) as connection:
        assert connection.execute("SELECT to_regnamespace('nightbell_test')").fetchone() == (None,)
        assert connection.execute("SELECT to_regprocedure('nightbell.trusted_now()')").fetchone() != (None,)


async def test_the_tests_temporal_knows_our_search_attributes(temporal_client: Client) -> None:
    """Search attributes are registered when the server starts."""
    from temporalio.api.operatorservice.v1 import ListSearchAttributesRequest

    found = await temporal_client.operator_service.list_search_attributes(
        ListSearchAttributesRequest(namespace="default")
    )
    assert set(SEARCH_ATTRIBUTES) <= set(found.custom_attributes)


async def test_a_virtual_clock_passes_days_at_once(time_skipper: TimeSkipper) -> None:
    """Days of a workflow's timers pass in seconds, across continue-as-new."""
    async with Worker(time_skipper.client, task_queue="skip", workflows=[SleepTwice]):
        await time_skipper.client.start_workflow(SleepTwice.run, True, id="sleeps", task_queue="skip")
        handle = time_skipper.client.get_workflow_handle("sleeps")
        result = await asyncio.wait_for(handle.result(), timeout=60)
    assert datetime.fromisoformat(result) > datetime.now(UTC) + timedelta(days=1, hours=23)
