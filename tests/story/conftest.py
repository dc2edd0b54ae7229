"""A whole house for a story: a real worker between the session's Temporal and the test's own store and clock."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from pydantic import SecretStr
from temporalio.client import Client, WorkflowHandle
from temporalio.worker import Worker

from law.identity import ScheduleName
from nightbell import plugin, versions
from nightbell.plugin import NightbellPlugin
from nightbell.settings import Settings
from nightbell.wiring import installed_patterns
from store.authority import register_patterns
from store.connection import Pool, open_pool
from tests.office import Office
from workflows.terms import schedule_workflow_id

WITHIN_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class House:
    """What a story acts on: the store by `office`, the workflows by their handles, and workers that come and go."""

    office: Office
    client: Client
    settings: Settings

    @asynccontextmanager
    async def worker(self) -> AsyncIterator[None]:
        """A worker while the block runs; leaving it is its end, with whatever it had in hand."""
        client = await Client.connect(self.client.service_client.config.target_host, namespace=self.client.namespace)
        async with Worker(
            client, task_queue=self.settings.task_queue, plugins=[NightbellPlugin(self.settings)],
            graceful_shutdown_timeout=timedelta(seconds=0.3), sticky_queue_schedule_to_start_timeout=timedelta(seconds=1),
        ):  # fmt: skip
            yield

    def workflow(self, schedule: ScheduleName) -> WorkflowHandle[Any, Any]:
        """The workflow of a Schedule."""
        return self.client.get_workflow_handle(schedule_workflow_id(schedule))

    async def reconsider(self, schedule: ScheduleName) -> None:
        """Ring it, as the relay or a person would."""
        await self.workflow(schedule).signal("reconsider")


async def until(what: str, holds: Callable[[], Any]) -> Any:
    """Wait until it holds, however it is asked."""
    deadline = asyncio.get_running_loop().time() + WITHIN_SECONDS
    while True:
        found = holds()
        found = await found if asyncio.iscoroutine(found) else found
        if found:
            return found
        assert asyncio.get_running_loop().time() < deadline, f"did not happen: {what}"
        await asyncio.sleep(0.1)


@pytest.fixture
def house(
    database_url: str, temporal_client: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[House]:
    """A house with a task queue, a deployment and a relay of its own."""
    queue = f"story-{uuid4().hex[:8]}"
    monkeypatch.setattr(plugin, "RELAY_WORKFLOW_ID", f"relay-{queue}")
    monkeypatch.setattr(versions, "DEPLOYMENT", queue)
    pool: Pool = open_pool(database_url)
    register_patterns(pool, installed_patterns())
    url = SecretStr(database_url)
    settings = Settings(home=tmp_path, database_url=url, task_queue=queue, temporal_address="127.0.0.1")
    yield House(Office(pool, database_url), temporal_client, settings)
    pool.close()
