"""The worker process: connects, waits for its servers, serves until it is told to stop. `worker.py` and `nightbell worker`
are this function."""

import asyncio
import logging
import os
import shutil
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from functools import cache
from pathlib import Path
from typing import Any

from temporalio.client import Client
from temporalio.envconfig import ClientConfig
from temporalio.runtime import LogForwardingConfig, LoggingConfig, Runtime, TelemetryConfig, TelemetryFilter
from temporalio.worker import Worker

from nightbell.plugin import NightbellPlugin
from nightbell.problems import StackProblem
from nightbell.settings import Settings
from nightbell.wheels import POSTGRES_WHEEL, find_binary

CONNECT_PAUSE_SECONDS = (0.2, 0.5, 1.0, 2.0, 5.0)
logger = logging.getLogger(__name__)
TO_OUR_LOG = LoggingConfig(
    filter=TelemetryFilter(core_level="WARN", other_level="ERROR"),
    forwarding=LogForwardingConfig(logger=logging.getLogger("temporalio.core")),
)
"""The SDK's core would write to standard output, which is for answers."""
STICKY_PATIENCE = timedelta(seconds=1)
"""How long the server waits for a worker that held a workflow before another may have it: ten seconds by default."""


async def run_worker(settings: Settings, wrap: Callable[[str, Any], Any] | None = None) -> None:
    """Serve until SIGTERM or SIGINT. Waits for Temporal and for its namespace; the store is waited for by whoever asks it.
    `wrap` is the plugin's: the crash walk stands there."""
    client = await connect(settings)
    stopped = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stopped.set)
    said = ""
    while not stopped.is_set():
        try:
            await serve_until(stopped, worker_of(client, settings, wrap))
            return
        except (
            RuntimeError
        ) as problem:  # the SDK's word for a namespace that is not there, and for a server that went away
            if str(problem) != said:
                said = str(problem)
                logger.warning("waiting: %s", said)
            with suppress(TimeoutError):
                await asyncio.wait_for(stopped.wait(), CONNECT_PAUSE_SECONDS[-1])


def worker_of(client: Client, settings: Settings, wrap: Callable[[str, Any], Any] | None) -> Worker:
    """A worker with everything of ours."""
    return Worker(
        client,
        task_queue=settings.task_queue,
        plugins=[NightbellPlugin(settings, pg_tools(), wrap)],
        graceful_shutdown_timeout=timedelta(milliseconds=400),
        sticky_queue_schedule_to_start_timeout=STICKY_PATIENCE,
        max_concurrent_activities=100,
    )


async def serve_until(stopped: asyncio.Event, worker: Worker) -> None:
    """Run a worker until it is told to stop. Raises what ended it before."""
    serving = asyncio.create_task(worker.run())
    stopping = asyncio.create_task(stopped.wait())
    await asyncio.wait({serving, stopping}, return_when=asyncio.FIRST_COMPLETED)
    stopping.cancel()
    if serving.done():
        serving.result()
        return
    await worker.shutdown()
    with suppress(asyncio.CancelledError):
        await serving


async def connect(settings: Settings, *, attempts: int | None = None) -> Client:
    """A Temporal client by our settings and Temporal's own environment configuration (TLS, API key). Tries until it may
    not try any more; `attempts` None never gives up."""
    core_logs_with_us()
    profile = ClientConfig.load_client_connect_config(override_env_vars=settings.temporal_environment())
    profile["target_host"] = settings.temporal_address or profile.get("target_host") or "127.0.0.1:7233"
    profile["namespace"] = settings.temporal_namespace
    tried = 0
    while True:
        try:
            return await Client.connect(**profile)
        except RuntimeError as problem:
            tried += 1
            if attempts is not None and tried >= attempts:
                raise StackProblem(
                    "temporal_unreachable", f"Temporal cannot be reached at {profile['target_host']}; is the stack up?"
                ) from problem
            await asyncio.sleep(CONNECT_PAUSE_SECONDS[min(tried, len(CONNECT_PAUSE_SECONDS)) - 1])


@cache
def core_logs_with_us() -> None:
    """Let the SDK's core write where we write, once a process."""
    Runtime.set_default(Runtime(telemetry=TelemetryConfig(logging=TO_OUR_LOG)), error_if_already_set=False)


def pg_tools() -> str:
    """Where `pg_dump` stands: the wheel's, else the one on PATH, else nowhere."""
    with suppress(StackProblem):
        return str(find_binary(POSTGRES_WHEEL).parent)
    found = shutil.which("pg_dump")
    return str(Path(found).parent) if found else ""


def serve(settings: Settings) -> None:
    """Run a worker to its end; what it has to say meanwhile goes to standard error."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s %(message)s", stream=sys.stderr)
    logging.getLogger("temporalio.activity").setLevel(logging.ERROR)
    asyncio.run(run_worker(settings))


def leave(code: int) -> None:
    """Flush and leave at once: a process that used Temporal sometimes aborts when the interpreter tears it down."""
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            stream.flush()
    logging.shutdown()
    os._exit(code)
