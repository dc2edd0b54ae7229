"""Hundreds of Schedules due in one second: from nominal instant to committed admission, through the real worker, beside
Temporal's own Schedules starting a workflow that does nothing, on the same server, one after the other.

Both are late by the difference of two durable instants: ours of the admission's commit (`pg_xact_commit_timestamp`) and the
nominal firing, theirs of the started workflow's first event and the second it was scheduled for. While ours wait, the worker's
memory and CPU are read: what an idle Schedule costs.
"""

import asyncio
import shutil
import statistics
import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

import psutil
import psycopg
from temporalio.client import (
    Client,
    Schedule,
    ScheduleActionStartWorkflow,
    ScheduleCalendarSpec,
    ScheduleRange,
    ScheduleSpec,
)
from temporalio.worker import UnsandboxedWorkflowRunner, Worker

from activities.relaying import wake
from benchmarks.nothing import NothingWorkflow
from law.identity import DecisionId, ScheduleName
from law.schedule import check_document
from nightbell import stack
from nightbell.home import Home
from nightbell.wiring import installed_patterns
from store import registry
from store.authority import register_patterns
from store.connection import open_pool
from store.migrate import migrate

QUEUE = "bench-nothing"
AT_ONCE = 20
IDLE_FOR_SECONDS = 4.0
ALL_WITHIN_SECONDS = 90.0
THEIRS_WITHIN_SECONDS = 40.0
"""Whatever Temporal has not started by then counts as started then, in its favour."""


def measure(*, schedules: int) -> dict[str, Any]:
    """Both sides, one after the other, on one embedded stack."""
    with running_stack() as running:
        return asyncio.run(both(running, schedules))


@contextmanager
def running_stack() -> Iterator[stack.RunningStack]:
    """A whole embedded stack in a home that is thrown away, its database noting when each commit happened."""
    folder = Path(tempfile.mkdtemp(prefix="nightbell-bench-"))
    folder.chmod(0o711)
    try:
        running = stack.up(
            Home.at(folder / "home"), migrate=migrate, postgres_settings={"track_commit_timestamp": "on"}
        )
        try:
            yield running
        finally:
            running.down()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


async def both(running: stack.RunningStack, schedules: int) -> dict[str, Any]:
    """Ours, then Temporal's; the 95th percentiles and their ratio."""
    client = await Client.connect(running.address.temporal_address)
    ours, idle = await ours_ring(running, client, schedules)
    theirs = await theirs_ring(client, schedules)
    ours_p95, theirs_p95 = percentile(ours, 95), percentile(theirs, 95)
    return {
        "schedules": schedules,
        "ours_late_p50_seconds": statistics.median(ours),
        "ours_late_p95_seconds": ours_p95,
        "temporal_late_p50_seconds": statistics.median(theirs),
        "temporal_late_p95_seconds": theirs_p95,
        "temporal_not_started_in_time": theirs.count(THEIRS_WITHIN_SECONDS),
        "ratio": ours_p95 / theirs_p95,
        **idle,
    }


async def ours_ring(
    running: stack.RunningStack, client: Client, schedules: int
) -> tuple[list[float], dict[str, float]]:
    """How many seconds after its nominal instant each admission was committed, and what the worker needed while idle."""
    assert running.address.worker_pid is not None
    worker = psutil.Process(running.address.worker_pid)
    await asyncio.sleep(3)
    before = worker.memory_info().rss
    due_at = in_whole_seconds(15 + schedules * 0.12)
    names = await asyncio.to_thread(register, running.address.database_url, schedules, due_at)
    await in_turn(names, lambda name: wake(client, "nightbell", name))
    await until(due_at - timedelta(seconds=IDLE_FOR_SECONDS + 1), "our Schedules")
    cpu = worker.cpu_times()
    await asyncio.sleep(IDLE_FOR_SECONDS)
    after = worker.cpu_times()
    used = (after.user + after.system - cpu.user - cpu.system) / IDLE_FOR_SECONDS
    idle = {
        "idle_kilobytes_a_schedule": (worker.memory_info().rss - before) / 1024 / schedules,
        "idle_cpu_share_of_a_core": used,
    }
    return await committed(running.address.database_url, schedules), idle


def register(database_url: str, schedules: int, due_at: datetime) -> list[ScheduleName]:
    """So many Schedules that ring once, all of them at `due_at`."""
    pool = open_pool(database_url, connections_max=2)
    register_patterns(pool, installed_patterns())
    names = [
        registry.register(pool, check_document(document(number, due_at)), DecisionId(uuid4())).schedule
        for number in range(schedules)
    ]
    pool.close()
    return names


def document(number: int, due_at: datetime) -> dict[str, Any]:
    """A Schedule file's tables."""
    return {
        "authority": "bench",
        "name": f"d{number}",
        "trigger": {"kind": "calendar", "dates": [due_at.replace(tzinfo=None).isoformat()], "zone": "UTC"},
        "class": {"service_class": "foreground"},
        "work": {
            "pattern": "bridge_turn",
            "pattern_revision": "1",
            "owner": "magus",
            "input": {"message": "6 * 7"},
        },
    }


async def committed(database_url: str, schedules: int) -> list[float]:
    """Wait until every Schedule's firing was admitted; the lateness of each commit in seconds."""
    limit = time.monotonic() + ALL_WITHIN_SECONDS
    while time.monotonic() < limit:
        late = await asyncio.to_thread(read_late, database_url)
        if len(late) == schedules:
            return late
        await asyncio.sleep(1)
    raise TimeoutError(f"{len(late)} of {schedules} were admitted")


def read_late(database_url: str) -> list[float]:
    """The lateness of every admission so far."""
    with psycopg.connect(database_url, autocommit=True) as connection:
        return [float(row[0]) for row in connection.execute(LATE)]


async def theirs_ring(client: Client, schedules: int) -> list[float]:
    """How many seconds after its second each workflow of a Temporal Schedule was started."""
    due_at = in_whole_seconds(10 + schedules * 0.06)
    async with nothing_worker(client):
        await in_turn(range(schedules), lambda number: create(client, number, due_at))
        await until(due_at, "Temporal's Schedules")
        limit = time.monotonic() + THEIRS_WITHIN_SECONDS
        started: list[datetime] = []
        while len(started) < schedules and time.monotonic() < limit:
            await asyncio.sleep(1)
            started = [one.start_time async for one in client.list_workflows("WorkflowType = 'NothingWorkflow'")]
    unseen = [THEIRS_WITHIN_SECONDS] * (schedules - len(started))
    return [(one - due_at).total_seconds() for one in started] + unseen


@asynccontextmanager
async def nothing_worker(client: Client) -> AsyncIterator[None]:
    """A worker for the workflow that does nothing, as light as one can be."""
    runner = UnsandboxedWorkflowRunner()
    async with Worker(client, task_queue=QUEUE, workflows=[NothingWorkflow], workflow_runner=runner):
        yield


async def create(client: Client, number: int, due_at: datetime) -> None:
    """One Temporal Schedule that rings at that second."""
    parts = (due_at.second, due_at.minute, due_at.hour, due_at.day, due_at.month, due_at.year)
    second, minute, hour, day, month, year = ([ScheduleRange(part)] for part in parts)
    calendar = ScheduleCalendarSpec(second=second, minute=minute, hour=hour, day_of_month=day, month=month, year=year)
    action = ScheduleActionStartWorkflow(NothingWorkflow.run, id=f"nothing-{number}", task_queue=QUEUE)
    await client.create_schedule(f"nothing-{number}", Schedule(action=action, spec=ScheduleSpec(calendars=[calendar])))


async def in_turn(items: Any, act: Any) -> None:
    """Act on every item, at most twenty at once."""
    room = asyncio.Semaphore(AT_ONCE)

    async def one(item: Any) -> None:
        async with room:
            await act(item)

    await asyncio.gather(*(one(item) for item in items))


def in_whole_seconds(seconds: float) -> datetime:
    """A whole second this far ahead."""
    return (datetime.now(UTC) + timedelta(seconds=seconds)).replace(microsecond=0)


async def until(instant: datetime, whose: str) -> None:
    """Sleep until then. Raises when preparing took longer than was allowed for."""
    left = (instant - datetime.now(UTC)).total_seconds()
    if left < 0:
        raise TimeoutError(f"{whose} were not ready {-left:.1f} s ago, when they should have been idle")
    await asyncio.sleep(left)


def percentile(values: list[float], rank: int) -> float:
    """The value below which `rank` in a hundred lie."""
    return statistics.quantiles(values, n=100)[rank - 1]


LATE = """
SELECT extract(epoch FROM pg_xact_commit_timestamp(d.xmin) - o.nominal_at)
FROM nightbell.decision d JOIN nightbell.occurrence o USING (trigger_occurrence_id)
WHERE d.act = 'decide' AND d.outcome = 'admitted'
"""
