"""The children of one supervisor: how each is asked to stop, and how soon one that died is started again.

Worker first, so that nothing new is begun; then Temporal; PostgreSQL last and fast, so that what was committed is on
disk and the next start recovers nothing. A dead child keeps its number until it is reaped, so no stranger is ever
signalled.
"""

import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass

from nightbell.processes import identify

CALM_AFTER_SECONDS = 10.0
BACKOFF_SECONDS_MAX = 10.0
STOP_ORDER = ("worker", "temporal", "postgres")
STOPS: Mapping[str, tuple[tuple[signal.Signals, float], ...]] = {
    "worker": ((signal.SIGTERM, 10.0), (signal.SIGKILL, 5.0)),
    "temporal": ((signal.SIGTERM, 10.0), (signal.SIGKILL, 5.0)),
    "postgres": ((signal.SIGINT, 30.0), (signal.SIGQUIT, 10.0), (signal.SIGKILL, 5.0)),
}


@dataclass(slots=True)
class Child:
    """One process that is kept alive."""

    name: str
    start: Callable[[], "subprocess.Popen[bytes]"]
    is_ready: Callable[[], bool]
    process: "subprocess.Popen[bytes] | None" = None
    ready: bool = False
    started_at_seconds: float = 0.0
    next_start_at_seconds: float = 0.0
    failures: int = 0


def stop_child(child: Child) -> int | None:
    """Ask, wait, insist; how it ended."""
    assert child.process is not None
    for number, grace_seconds in STOPS[child.name]:
        limit = time.monotonic() + grace_seconds
        if not has_ended(child):
            child.process.send_signal(number)
        while not has_ended(child) and time.monotonic() < limit:
            time.sleep(0.01)
    return reap(child)


def back_off(child: Child) -> None:
    """A child that died once is started again at once, one that keeps failing ever later."""
    calm = time.monotonic() - child.started_at_seconds > CALM_AFTER_SECONDS
    child.failures = 1 if calm else child.failures + 1
    pause_seconds = min(0.1 * 2**child.failures, BACKOFF_SECONDS_MAX) if child.failures > 1 else 0.0
    child.next_start_at_seconds = time.monotonic() + pause_seconds


def has_ended(child: Child) -> bool:
    """Whether the process is dead, without reaping it: its number stays its own until `reap`."""
    return child.process is not None and identify(child.process.pid) is None


def reap(child: Child) -> int | None:
    """End what a dead worker had started, then collect its status."""
    assert child.process is not None
    if child.name == "worker" and child.process.returncode is None:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(child.process.pid, signal.SIGKILL)
    with suppress(subprocess.TimeoutExpired):
        return child.process.wait(timeout=5)
    return None
