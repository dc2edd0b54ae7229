"""The embedded stack: PostgreSQL, Temporal with its UI, and a worker, kept alive by one supervisor (DESIGN §10).

`up` is the supervisor: it holds the home's lock, starts the three in order, restarts whichever dies with the same data and
ports, and stops them in the reverse order when it is told to. `up --detach` leaves it running. Killed itself, it takes its
children with it, and the next `up` recovers what they left.
"""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from nightbell.home import Home, choose_port
from nightbell.postgres_server import PostgresServer
from nightbell.problems import StackProblem
from nightbell.processes import ProcessName, start, stop
from nightbell.temporal_server import TemporalServer

RESTART_PAUSE_SECONDS = (0.1, 0.5, 1.0, 2.0, 5.0)
STEADY_AFTER_SECONDS = 30.0
UP_WITHIN_SECONDS = 150.0
DOWN_WITHIN_SECONDS = 60.0

ORDERLY = {"worker": signal.SIGTERM, "temporal": signal.SIGTERM, "postgresql": signal.SIGINT}
"""How each is asked to stop, in the order of stopping."""


@dataclass(frozen=True, slots=True)
class Ports:
    """The ports that were asked for; None means any free one, kept across restarts."""

    postgres: int | None = None
    temporal: int | None = None
    ui: int | None = None


class Supervisor:
    """One running stack of one home."""

    def __init__(self, home: Home, ports: Ports, migrate: Callable[[str], object], *, with_worker: bool = True) -> None:
        self.home = home
        self.migrate = migrate
        self.with_worker = with_worker
        self.children: dict[str, subprocess.Popen[bytes]] = {}
        self.deaths: dict[str, tuple[int, float]] = {}
        self.stopping = False
        home.prepare()
        if not home.lock():
            raise StackProblem(
                "already_running", f"A stack of {home.path} is already running; `nightbell status` shows it."
            )
        before = home.read_state().get("ports", {})
        self.postgres = PostgresServer(home, choose_port("PostgreSQL", ports.postgres, before.get("postgres")))
        self.temporal = TemporalServer(
            home,
            choose_port("Temporal", ports.temporal, before.get("temporal")),
            choose_port("the Temporal UI", ports.ui, before.get("ui")),
        )

    def start(self) -> None:
        """Start everything in order; what was started is stopped again if anything fails. Raises StackProblem."""
        try:
            self.write("starting")
            for name in ("postgresql", "temporal", "worker"):
                self.start_one(name)
            self.write("running")
        except BaseException as problem:
            self.stop(str(problem))
            raise

    def start_one(self, name: str) -> None:
        """Start one of the three."""
        if name == "postgresql":
            self.children[name] = self.postgres.start()
            self.migrate(self.postgres.url)
        elif name == "temporal":
            self.children[name] = self.temporal.start()
        elif self.with_worker:
            command = [sys.executable, "-m", "nightbell", "worker"]
            self.children[name] = start(command, self.home.log("worker"), environment=self.environment())

    def environment(self) -> dict[str, str]:
        """What a process of this stack needs to find it."""
        return {
            **os.environ,
            "NIGHTBELL_HOME": str(self.home.path),
            "NIGHTBELL_DATABASE_URL": self.postgres.url,
            "TEMPORAL_ADDRESS": self.temporal.address,
            "PYTHONUNBUFFERED": "1",
        }

    def watch(self) -> None:
        """Keep the three alive until told to stop."""
        while not self.stopping:
            for name, child in list(self.children.items()):
                if child.poll() is not None and not self.stopping:
                    self.revive(name)
            time.sleep(0.1)

    def revive(self, name: str) -> None:
        """Start a child again that died, pausing longer each time it dies young."""
        died, at = self.deaths.get(name, (0, 0.0))
        died = died + 1 if time.monotonic() - at < STEADY_AFTER_SECONDS else 1
        self.deaths[name] = (died, time.monotonic())
        self.write("degraded")
        time.sleep(RESTART_PAUSE_SECONDS[min(died, len(RESTART_PAUSE_SECONDS)) - 1])
        if self.stopping:
            return
        try:
            self.start_one(name)
        except StackProblem as problem:
            self.write("degraded", str(problem))
            return
        self.write("running")

    def stop(self, problem: str = "") -> None:
        """Stop the three in order and give the home back."""
        self.stopping = True
        for name, number in ORDERLY.items():
            child = self.children.pop(name, None)
            if child is not None and child.poll() is None:
                stop(ProcessName.of(child.pid), number, 20.0)
                child.wait()
        self.write("stopped", problem)
        self.home.unlock()

    def write(self, state: str, problem: str = "") -> None:
        """Write what `status` reads."""
        running = {
            name: ProcessName.of(child.pid).plain() for name, child in self.children.items() if child.poll() is None
        }
        self.home.write_state(
            {
                "state": state,
                "problem": problem,
                "database_url": self.postgres.url,
                "temporal_address": self.temporal.address,
                "ui_url": self.temporal.ui_url,
                "ports": {"postgres": self.postgres.port, "temporal": self.temporal.port, "ui": self.temporal.ui_port},
                "supervisor": ProcessName.of(os.getpid()).plain(),
                "processes": running,
            }
        )


def up(home: Home, ports: Ports, migrate: Callable[[str], object], announce: Callable[[dict[str, Any]], None]) -> None:
    """Run a stack until SIGTERM or SIGINT. Raises StackProblem."""
    supervisor = Supervisor(home, ports, migrate)

    def stop_soon(*_: object) -> None:
        supervisor.stopping = True

    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, stop_soon)
    supervisor.start()
    announce(status(home))
    supervisor.watch()
    supervisor.stop()


def up_detached(home: Home, ports: Ports) -> dict[str, Any]:
    """Leave a supervisor running and return the stack's status once it serves. Raises StackProblem. A stack that already
    runs is left as it is."""
    home.prepare()
    if is_running(home):
        return status(home)
    command = [sys.executable, "-m", "nightbell", "up", "--home", str(home.path)]
    for option, port in (
        ("--postgres-port", ports.postgres),
        ("--temporal-port", ports.temporal),
        ("--ui-port", ports.ui),
    ):
        command += [option, str(port)] if port else []
    with home.log("supervisor").open("ab") as sink:
        child = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=sink, stderr=sink, start_new_session=True)
    deadline = time.monotonic() + UP_WITHIN_SECONDS
    while time.monotonic() < deadline:
        state = home.read_state()
        if state.get("state") == "running" and (state.get("supervisor") or {}).get("pid") == child.pid:
            return status(home)
        if child.poll() is not None:
            if is_running(home):  # another `up` of this home was quicker
                return status(home)
            raise StackProblem(
                "stack_unstartable", state.get("problem") or f"The stack ended at once; see {home.log('supervisor')}."
            )
        time.sleep(0.05)
    raise StackProblem("stack_unstartable", f"The stack did not serve in time; see the logs in {home.path / 'logs'}.")


def is_running(home: Home) -> bool:
    """Whether a supervisor of this home lives."""
    supervisor = ProcessName.read(home.read_state().get("supervisor"))
    return supervisor is not None and supervisor.alive


def status(home: Home) -> dict[str, Any]:
    """The stack as the command line's contract shows it: state is `running`, `degraded`, `starting` or `stopped`."""
    state = home.read_state()
    alive = is_running(home)
    words = state.get("state", "stopped") if alive else "stopped"
    processes = {name: ProcessName.read(one) for name, one in state.get("processes", {}).items()}
    if words == "running" and not all(one is not None and one.alive for one in processes.values()):
        words = "degraded"
    return {
        "database_url": state.get("database_url"),
        "temporal_address": state.get("temporal_address"),
        "ui_url": state.get("ui_url"),
        "pid": state["supervisor"]["pid"] if alive else None,
        "state": words,
        "home": str(home.path),
        "processes": {name: one.pid for name, one in processes.items() if one is not None and one.alive},
    }


def down(home: Home) -> dict[str, Any]:
    """Stop the stack of this home, in order, and whatever a killed supervisor left. Raises StackProblem."""
    state = home.read_state()
    supervisor = ProcessName.read(state.get("supervisor"))
    if supervisor is not None and supervisor.alive:
        supervisor.signal(signal.SIGTERM)
        if not supervisor.wait_gone(DOWN_WITHIN_SECONDS):
            raise StackProblem(
                "stack_unstoppable", f"The supervisor {supervisor.pid} did not stop; see {home.log('supervisor')}."
            )
    for name, number in ORDERLY.items():
        left = ProcessName.read(state.get("processes", {}).get(name))
        if left is not None and left.alive:
            stop(left, number, 20.0)
    return status(home)
