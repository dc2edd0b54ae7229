"""Nightbell inside an existing worker, in one line: `Worker(client, task_queue=…, plugins=[NightbellPlugin(settings)])`.

The plugin brings the workflows, the activities and the sandbox's deny-list, and while the worker runs it holds the store's
connections and keeps the relay alive. `nightbell worker` is nothing but a worker with this plugin.
"""

import asyncio
import dataclasses
import logging
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, suppress
from typing import Any

from temporalio.client import Client
from temporalio.common import VersioningBehavior, WorkflowIDConflictPolicy
from temporalio.plugin import SimplePlugin
from temporalio.service import RPCError
from temporalio.worker import WorkerConfig, WorkerDeploymentConfig
from temporalio.worker.workflow_sandbox import SandboxedWorkflowRunner, SandboxMatcher, SandboxRestrictions

from activities.relaying import wake
from law.errors import Contradiction
from nightbell.settings import Settings
from nightbell.versions import deployment_version, make_current, move_stranded
from nightbell.wiring import House, activities_of, installed_patterns
from store import registry
from store.authority import register_patterns
from store.connection import Pool, open_pool
from store.errors import StoreProblem
from workflows.hop import HopWorkflow
from workflows.relay import RelayTerms, RelayWorkflow
from workflows.schedule import ScheduleWorkflow
from workflows.terms import RELAY_WORKFLOW_ID

logger = logging.getLogger(__name__)

WORKFLOWS = (ScheduleWorkflow, HopWorkflow, RelayWorkflow)
CARRIERS_MAX = 16
KEEP_EVERY_SECONDS, FIRST_PAUSE_SECONDS = 5.0, 0.2

FORBIDDEN_IN_WORKFLOWS = frozenset({"store", "activities", "sqlalchemy", "psycopg", "psycopg_pool"})
"""A workflow that reaches for the database fails when its worker starts, not when it is replayed."""


def sandbox() -> SandboxedWorkflowRunner:
    """The workflow sandbox: what is thin and deterministic passes through, the database is out of reach."""
    restrictions = SandboxRestrictions.default.with_passthrough_modules(
        "workflows.asks", "workflows.shown", "workflows.terms"
    )
    forbidden = SandboxMatcher(access=set(FORBIDDEN_IN_WORKFLOWS))
    return SandboxedWorkflowRunner(dataclasses.replace(restrictions, invalid_modules=forbidden))


class NightbellPlugin(SimplePlugin):
    """Everything of Nightbell that a worker needs."""

    def __init__(
        self, settings: Settings, tools_folder: str = "", wrap: Callable[[str, Any], Any] | None = None
    ) -> None:
        """`tools_folder` is where `pg_dump` stands ('' asks PATH). `wrap` may put something around an activity by name:
        the crash walk stands there."""
        super().__init__("nightbell", workflows=list(WORKFLOWS), workflow_runner=sandbox(), run_context=self.running)
        self._settings = settings
        self._tools_folder = tools_folder
        self._wrap = wrap or (lambda _, answer: answer)
        self._threads = ThreadPoolExecutor(settings.connections_max, thread_name_prefix="nightbell-store")
        self._carriers = ThreadPoolExecutor(CARRIERS_MAX, thread_name_prefix="nightbell-pattern")
        self._pool: Pool | None = None
        self._client: Client | None = None
        self._task_queue = settings.task_queue
        self._version = deployment_version()

    def configure_worker(self, config: WorkerConfig) -> WorkerConfig:
        """Add our workflows and activities to the worker's own."""
        config = super().configure_worker(config)
        client, task_queue = config.get("client"), config.get("task_queue")
        assert client is not None, "a worker that is being configured has a client"
        assert task_queue is not None, "and a task queue"
        self._client, self._task_queue, self._pool = client, task_queue, self.open_pool()
        house = House(self._settings, self._pool, client, task_queue, self._tools_folder, self._threads)
        ours = [self._wrap(name, answer) for name, answer in activities_of(house, self._carriers).items()]
        config["activities"] = [*config.get("activities", ()), *ours]
        if config.get("deployment_config") is None:
            config["deployment_config"] = WorkerDeploymentConfig(
                self._version, use_worker_versioning=True, default_versioning_behavior=VersioningBehavior.PINNED
            )
        return config

    def open_pool(self) -> Pool:
        """The store's connections, as many as there are threads to use them and Patterns to carry."""
        url = self._settings.database_url
        if url is None:
            raise ValueError("NIGHTBELL_DATABASE_URL: is not set, and no stack of this home runs")
        return open_pool(url.get_secret_value(), self._settings.connections_max)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """While the worker runs: Patterns are known, this version is current, the relay lives."""
        keeper = asyncio.create_task(self.keep())
        try:
            yield
        finally:
            keeper.cancel()
            with suppress(asyncio.CancelledError):
                await keeper
            if self._pool is not None:
                self._pool.close(timeout=1.0)

    async def keep(self) -> None:
        """Make known what this worker brings, and see every few seconds that Temporal still has what it needs: started
        against an empty server, everything is begun again from the store."""
        known, told, said, pause = None, False, "", FIRST_PAUSE_SECONDS
        while True:
            try:
                if not told:
                    await self.in_thread(self.tell_patterns)
                    told = True
                relay, current = await self.ensure_relay(), await self.take_over()
                if current and relay != known:
                    await self.ensure_schedules()
                    known = relay
                pause, said = KEEP_EVERY_SECONDS, ""
            except (StoreProblem, RPCError, OSError) as problem:
                if str(problem) != said:
                    said = str(problem)
                    logger.warning("waiting: %s", said)
                pause = min(2 * pause, KEEP_EVERY_SECONDS)
            await asyncio.sleep(pause)

    def tell_patterns(self) -> None:
        """Make the installed Patterns known. One that is known with another source is said so and not carried: a hop
        checks the digest that its Run pinned (AUT-1)."""
        assert self._pool is not None
        for one in installed_patterns():
            try:
                register_patterns(self._pool, [one])
            except Contradiction as problem:
                logger.error("%s", problem.sentence)

    async def in_thread(self, work: Callable[..., Any], *arguments: Any) -> Any:
        return await asyncio.get_running_loop().run_in_executor(self._threads, work, *arguments)

    async def take_over(self) -> bool:
        """Serve new work, and what older versions left behind, if this version is the one to do it. Whether it is."""
        assert self._client is not None
        current = await make_current(self._client, self._task_queue, self._version)
        if current:
            await move_stranded(self._client, self._task_queue, self._version)
        return current

    async def ensure_relay(self) -> str:
        """The first run id of the relay, which is begun if there is none: another id is another Temporal."""
        assert self._client is not None
        handle = await self._client.start_workflow(
            RelayWorkflow.run,
            RelayTerms(),
            id=RELAY_WORKFLOW_ID,
            task_queue=self._task_queue,
            id_conflict_policy=WorkflowIDConflictPolicy.USE_EXISTING,
            static_summary="the safety net",
        )
        described = await handle.describe()
        return described.raw_description.workflow_execution_info.first_run_id or described.run_id

    async def ensure_schedules(self) -> None:
        """Ring every Schedule's workflow, beginning those that are missing."""
        assert self._client is not None
        for line in await self.in_thread(registry.schedules, self._pool):
            await wake(self._client, self._task_queue, line.schedule)
