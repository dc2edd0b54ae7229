"""Deploying a newer version of the code: it takes over what nobody else serves, and never what somebody does."""

import asyncio
from collections.abc import Iterator
from contextlib import AbstractAsyncContextManager
from datetime import timedelta
from pathlib import Path
from uuid import uuid4

import pytest
from temporalio.api.workflowservice.v1 import DescribeWorkerDeploymentRequest
from temporalio.client import Client
from temporalio.common import WorkerDeploymentVersion

from law.identity import DecisionId, ScheduleName
from nightbell import plugin, versions
from nightbell.settings import Settings
from nightbell.wiring import installed_patterns
from store import ledger, registry
from store.authority import register_patterns
from store.connection import Pool, open_pool
from tests.office import BRIDGE, document
from tests.serving import serving, settings_apart, until
from workflows.terms import schedule_workflow_id

SECONDLY = {"kind": "calendar", "cron": "* * * * * *", "zone": "UTC"}


class Fleet:
    """Workers of one deployment, each of its own version, over one store and one Temporal."""

    def __init__(self, client: Client, settings: Settings, patch: pytest.MonkeyPatch) -> None:
        self.client, self.settings, self.patch = client, settings, patch

    def worker(self, build: str) -> AbstractAsyncContextManager[None]:
        """A worker of this version while the block runs."""
        version = WorkerDeploymentVersion(self.settings.task_queue, build)
        self.patch.setattr(plugin, "deployment_version", lambda: version)
        return serving(self.client, self.settings)

    async def current(self) -> str:
        """The version that new work goes to."""
        asked = DescribeWorkerDeploymentRequest(
            namespace=self.client.namespace, deployment_name=self.settings.task_queue
        )
        described = await self.client.workflow_service.describe_worker_deployment(asked)
        return described.worker_deployment_info.routing_config.current_deployment_version.build_id

    async def pinned_to(self, name: ScheduleName) -> str:
        """The version that a Schedule's workflow is on."""
        described = await self.client.get_workflow_handle(schedule_workflow_id(name)).describe()
        return described.raw_description.workflow_execution_info.versioning_info.deployment_version.build_id


@pytest.fixture
def fleet(database_url: str, temporal_client: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Fleet:
    """A fleet with a task queue, a deployment and a relay of its own, and less patience than in production."""
    monkeypatch.setattr(plugin, "KEEP_EVERY_SECONDS", 0.5)
    monkeypatch.setattr(versions, "WAITING_AFTER", timedelta(seconds=3))
    monkeypatch.setattr(versions, "GONE_AFTER", timedelta(seconds=4))
    settings = settings_apart(monkeypatch, database_url, tmp_path)
    return Fleet(temporal_client, settings, monkeypatch)


@pytest.fixture
def pool(database_url: str) -> Iterator[Pool]:
    """A store that knows the installed Patterns."""
    with open_pool(database_url) as found:
        register_patterns(found, installed_patterns())
        yield found


def bell(pool: Pool, fleet: Fleet) -> ScheduleName:
    """A Schedule that rings every second."""
    every = document(
        BRIDGE, name=fleet.settings.task_queue, trigger=SECONDLY, overlap={"policy": "bounded_parallel", "max": 9}
    )
    return registry.register(pool, every, DecisionId(uuid4())).schedule


@pytest.mark.obligation("OCC-6", boundary="restart")
async def test_occ_6_a_newer_version_takes_over_when_no_older_worker_is_left(fleet: Fleet, pool: Pool) -> None:
    """Everything is stopped, the code is replaced, everything is started: the bell goes on, pinned to the newer code."""
    name = bell(pool, fleet)
    async with fleet.worker("one"):
        await until("the first bell", lambda: ledger.occurrences(pool, name))
    before = len(ledger.occurrences(pool, name, limit=1000))
    async with fleet.worker("two"):
        await until("a later bell", lambda: len(ledger.occurrences(pool, name, limit=1000)) > before)
        assert await fleet.pinned_to(name) == "two"
        assert await fleet.current() == "two"


async def test_an_older_worker_that_starts_again_takes_nothing_from_a_newer_one(fleet: Fleet, pool: Pool) -> None:
    """In a fleet that is half deployed, whoever restarts last does not decide which version serves."""
    name = bell(pool, fleet)
    async with fleet.worker("one"):
        await until("the first bell", lambda: ledger.occurrences(pool, name))
        async with fleet.worker("two"):

            async def moved() -> bool:
                return await fleet.pinned_to(name) == "two"

            await until("the workflow to begin anew on the newer version", moved)
            async with fleet.worker("one"):
                await asyncio.sleep(2.0)
                assert await fleet.current() == "two"
                assert await fleet.pinned_to(name) == "two"


async def test_an_older_version_serves_again_when_the_newer_one_is_gone(fleet: Fleet, pool: Pool) -> None:
    """A deployment that is taken back: nobody is left to serve the newer version, so the older one does."""
    name = bell(pool, fleet)
    for build in ("one", "two"):
        async with fleet.worker(build):
            before = len(ledger.occurrences(pool, name, limit=1000))
            await until(
                f"a bell under {build}", lambda before=before: len(ledger.occurrences(pool, name, limit=1000)) > before
            )
    fleet.patch.setattr(versions, "GONE_AFTER", timedelta(seconds=1))
    before = len(ledger.occurrences(pool, name, limit=1000))
    async with fleet.worker("one"):
        await until("a bell under one again", lambda: len(ledger.occurrences(pool, name, limit=1000)) > before)
        assert await fleet.current() == "one"
