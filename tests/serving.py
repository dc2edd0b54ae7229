"""A real worker between the session's Temporal and a test's own store: what stories and timers begin with."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from pydantic import SecretStr
from temporalio.client import Client
from temporalio.worker import Worker

from nightbell import plugin, versions
from nightbell.plugin import NightbellPlugin
from nightbell.settings import Settings

WITHIN_SECONDS = 60.0


def settings_apart(patch: pytest.MonkeyPatch, database_url: str, folder: Path) -> Settings:
    """Settings with a task queue, a deployment and a relay that no other test shares."""
    queue = f"test-{uuid4().hex[:8]}"
    patch.setattr(plugin, "RELAY_WORKFLOW_ID", f"relay-{queue}")
    patch.setattr(versions, "DEPLOYMENT", queue)
    url = SecretStr(database_url)
    return Settings(home=folder, database_url=url, task_queue=queue, temporal_address="127.0.0.1")


@asynccontextmanager
async def serving(client: Client, settings: Settings) -> AsyncIterator[None]:
    """A worker while the block runs, over a connection of its own; leaving it is its end, with whatever it had in hand."""
    own = await Client.connect(client.service_client.config.target_host, namespace=client.namespace)
    async with Worker(
        own, task_queue=settings.task_queue, plugins=[NightbellPlugin(settings)],
        graceful_shutdown_timeout=timedelta(seconds=0.3), sticky_queue_schedule_to_start_timeout=timedelta(seconds=1),
    ):  # fmt: skip
        yield


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
