"""A whole house for a story: a real worker between the session's Temporal and the test's own store and clock."""

from collections.abc import Iterator
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from temporalio.client import Client, WorkflowHandle

from law.identity import ScheduleName
from nightbell.settings import Settings
from nightbell.wiring import installed_patterns
from store.authority import register_patterns
from store.connection import Pool, open_pool
from tests.office import Office
from tests.serving import serving, settings_apart
from workflows.terms import schedule_workflow_id


@dataclass(frozen=True, slots=True)
class House:
    """What a story acts on: the store by `office`, the workflows by their handles, and workers that come and go."""

    office: Office
    client: Client
    settings: Settings

    def worker(self) -> AbstractAsyncContextManager[None]:
        """A worker while the block runs."""
        return serving(self.client, self.settings)

    def workflow(self, schedule: ScheduleName) -> WorkflowHandle[Any, Any]:
        """The workflow of a Schedule."""
        return self.client.get_workflow_handle(schedule_workflow_id(schedule))

    async def reconsider(self, schedule: ScheduleName) -> None:
        """Ring it, as the relay or a person would."""
        await self.workflow(schedule).signal("reconsider")


@pytest.fixture
def house(
    database_url: str, temporal_client: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[House]:
    """A house with a task queue, a deployment and a relay of its own."""
    settings = settings_apart(monkeypatch, database_url, tmp_path)
    pool: Pool = open_pool(database_url)
    register_patterns(pool, installed_patterns())
    yield House(Office(pool, database_url), temporal_client, settings)
    pool.close()
