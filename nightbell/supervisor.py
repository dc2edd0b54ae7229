"""The process that keeps one home's servers and worker alive, and takes them with it when it goes.

It holds the home's lock for life. Killed at any point, it leaves data that the servers recover by themselves, children
that the kernel ends with it (or that the next `up` finds by number and start, and ends), and a state file that is
whole. A child that dies is started again on the same port over the same data, at once the first time and every ten
seconds at the latest. It runs no thread: it forks.
"""

import errno
import importlib
import json
import logging
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field

from pydantic import BaseModel, ConfigDict

from nightbell.children import STOP_ORDER, STOPS, Child, back_off, has_ended, reap, stop_child
from nightbell.home import Home, Phase, Ports, StackState, prepare_home, read_state, take_lock, write_state
from nightbell.ports import choose_ports
from nightbell.postgres_server import (
    PostgresServer,
    address,
    postgres_server,
    recover_stale_lock,
    refusal,
    require_cluster,
    require_database,
)
from nightbell.problems import StackProblem
from nightbell.processes import end, identify, import_path, is_alive, last_lines, quote, spawn
from nightbell.temporal_server import temporal_refusal, temporal_server

TICK_SECONDS = 0.5
BUSY_TICK_SECONDS = 0.05
READY_WITHIN_SECONDS = 120.0
PORT_RACES_MAX = 3
log = logging.getLogger("nightbell.supervisor")


class Plan(BaseModel):
    """What one supervisor runs; it travels to a detached one as JSON and holds no secret.

    `migrate` names a function as `module:function`; it is called with the database URL, in a process of its own, before
    the worker starts. `worker_command` None runs the servers alone.
    """

    model_config = ConfigDict(frozen=True)

    home: str
    ports: Ports = Ports()
    namespace: str = "default"
    task_queue: str = "nightbell"
    migrate: str | None = None
    worker_command: tuple[str, ...] | None = (sys.executable, "-m", "nightbell", "worker")
    postgres_settings: dict[str, str] = {}


class Stopping(Exception):
    """We were asked to stop."""


@dataclass(slots=True)
class Supervisor:
    """Starts, watches and stops the processes of one home. Use `serve`."""

    plan: Plan
    home: Home
    state: StackState
    children: dict[str, Child] = field(default_factory=dict[str, Child])
    stopping: bool = False
    wake: int = -1

    def run(self, on_ready: Callable[[StackState], None]) -> None:
        """Start everything, say so, watch until asked to stop, stop everything. Raises StackProblem from the start."""
        self.listen()
        try:
            self.start()
            on_ready(self.state)
            self.watch()
        except Stopping:
            log.info("asked to stop")
        finally:
            self.remember(phase="stopping")
            self.stop()

    def listen(self) -> None:
        """Signals wake the loop at once: ours to stop, SIGCHLD to look."""
        self.wake, write_end = os.pipe()
        os.set_blocking(self.wake, False)
        os.set_blocking(write_end, False)
        signal.set_wakeup_fd(write_end, warn_on_full_buffer=False)
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, self.ask_to_stop)
        signal.signal(signal.SIGCHLD, lambda *_: None)

    def ask_to_stop(self, *_: object) -> None:
        """Stop at the next look."""
        self.stopping = True

    def start(self) -> None:
        """Servers side by side, then the schema, then the worker."""
        self.end_leftovers()
        asked, remembered = self.plan.ports, self.state.ports
        for attempt in range(1, PORT_RACES_MAX + 1):
            self.remember(phase="starting", ports=choose_ports(asked, remembered), problem=None, problem_code=None)
            try:
                self.start_servers()
                break
            except StackProblem as problem:
                self.stop()
                if problem.code != "port_in_use" or attempt == PORT_RACES_MAX:
                    raise
                remembered = Ports()
        self.migrate()
        self.start_worker()
        self.remember(phase="running")

    def end_leftovers(self) -> None:
        """End what an earlier supervisor of this home left behind when it was killed."""
        for name in STOP_ORDER:
            identity = self.state.children.get(name)
            if identity is not None and is_alive(identity):
                log.warning("%s (process %d) outlived its supervisor; ending it", name, identity.pid)
                number, grace_seconds = STOPS[name][0]
                end(identity, self.home, number, grace_seconds)
        self.remember(children={})

    def start_servers(self) -> None:
        """PostgreSQL and Temporal, ready. Raises StackProblem with the server's own words."""
        ports = self.state.ports
        temporal = temporal_server(self.home, ports.temporal or 0, ports.ui or 0, self.plan.namespace)
        postgres = postgres_server(self.home, ports.postgres or 0, self.plan.postgres_settings)
        since = {name: log_size(self.home, name) for name in ("postgres", "temporal")}
        self.launch(Child("temporal", lambda: temporal.start(os.environ), temporal.is_ready))
        require_cluster(postgres, self.state.cluster_made)
        self.remember(cluster_made=True)
        self.launch(Child("postgres", lambda: self.start_postgres(postgres), postgres.is_ready))
        self.await_ready("postgres", lambda: refusal(self.home, "postgres", since["postgres"]))
        require_database(postgres)
        self.await_ready("temporal", lambda: temporal_refusal(self.home, since["temporal"]))

    def start_postgres(self, postgres: PostgresServer) -> "subprocess.Popen[bytes]":
        """Start PostgreSQL over its cluster; a lock that a crash left behind is looked at first."""
        recover_stale_lock(postgres)
        return postgres.start(os.environ)

    def migrate(self) -> None:
        """Bring the schema to its head in a process of its own. Raises StackProblem with its last words."""
        if self.plan.migrate is None:
            return
        since = log_size(self.home, "migrate")
        command = [sys.executable, "-m", "nightbell.supervisor", "call", self.plan.migrate]
        process = spawn(command, self.home, self.home.log_path("migrate"), self.environment())
        while process.poll() is None:
            self.pause(TICK_SECONDS)
        if process.returncode:
            words = quote(last_lines(self.home.log_path("migrate"), since, lines_max=3))
            raise StackProblem(
                "migration_failed", f"The schema of {self.home.path} could not be brought up to date.{words}"
            )

    def start_worker(self) -> None:
        """The worker, if there is one."""
        command = self.plan.worker_command
        if command is not None:
            log_path = self.home.log_path("worker")
            self.launch(Child("worker", lambda: spawn(command, self.home, log_path, self.environment()), lambda: True))
            self.children["worker"].ready = True

    def environment(self) -> dict[str, str]:
        """Our environment, with this home's servers in it and nobody else's."""
        state, kept = self.state, {key: value for key, value in os.environ.items() if not key.startswith("TEMPORAL_")}
        return {
            **kept,
            **import_path(),
            "NIGHTBELL_DATABASE_URL": address(self.home, state.ports.postgres or 0),
            "NIGHTBELL_TASK_QUEUE": self.plan.task_queue,
            "TEMPORAL_ADDRESS": f"127.0.0.1:{state.ports.temporal}",
            "TEMPORAL_NAMESPACE": self.plan.namespace,
            "TEMPORAL_CONFIG_FILE": os.devnull,
        }

    def launch(self, child: Child) -> None:
        """Start a child and remember who it is before anything else happens."""
        self.children[child.name] = child
        child.process, child.ready, child.started_at_seconds = child.start(), False, time.monotonic()
        identity = identify(child.process.pid)
        if identity is not None:
            self.remember(children={**self.state.children, child.name: identity})
        log.info("%s started as process %d", child.name, child.process.pid)

    def await_ready(self, name: str, refused: Callable[[], StackProblem]) -> None:
        """Wait until the child serves. Raises StackProblem when it ends instead or takes too long."""
        child = self.children[name]
        limit = time.monotonic() + READY_WITHIN_SECONDS
        while not child.is_ready():
            if has_ended(child) or time.monotonic() > limit:
                raise refused()
            self.pause(0.03)
        child.ready = True

    def pause(self, seconds: float) -> None:
        """Sleep, or until a signal. Raises Stopping when we were asked to stop."""
        select.select([self.wake], [], [], seconds)
        with suppress(BlockingIOError):
            os.read(self.wake, 4096)
        if self.stopping:
            raise Stopping

    def watch(self) -> None:
        """Keep every child alive until asked to stop."""
        while True:
            self.pause(TICK_SECONDS if self.state.phase == "running" else BUSY_TICK_SECONDS)
            for child in list(self.children.values()):
                self.look_after(child)
            phase: Phase = "running" if all(child.ready for child in self.children.values()) else "degraded"
            if phase != self.state.phase:
                self.remember(phase=phase)

    def look_after(self, child: Child) -> None:
        """Bury a child that died and start it again when its pause is over."""
        if child.process is not None and has_ended(child):
            self.bury(child)
        if child.process is None and time.monotonic() >= child.next_start_at_seconds:
            try:
                self.launch(child)
            except StackProblem as problem:
                log.error("%s cannot be started again: %s", child.name, problem.sentence)
                back_off(child)
        elif child.process is not None and not child.ready:
            child.ready = child.is_ready()

    def bury(self, child: Child) -> None:
        """Reap a dead child with whatever it had started, and say how it died."""
        assert child.process is not None
        status = reap(child)
        log.error("%s (process %d) died with %s", child.name, child.process.pid, status)
        child.process, child.ready = None, False
        self.remember(phase="degraded")
        back_off(child)

    def stop(self) -> None:
        """Worker first, then Temporal, then PostgreSQL; nothing survives."""
        for name in STOP_ORDER:
            child = self.children.pop(name, None)
            if child is not None and child.process is not None:
                log.info("%s stopped with %s", name, stop_child(child))
            self.remember(children={key: self.state.children[key] for key in self.state.children if key != name})

    def remember(self, **changes: object) -> None:
        """Change the state file; a disk that is full must not keep us from stopping."""
        self.state = self.state.model_copy(update=changes)
        try:
            write_state(self.home, self.state)
        except OSError as problem:
            log.error("the state file cannot be written: %s", problem)


def log_size(home: Home, name: str) -> int:
    """How long a log is now, to quote only what is written from here on."""
    path = home.log_path(name)
    return path.stat().st_size if path.exists() else 0


def serve(plan: Plan, on_ready: Callable[[StackState], None]) -> None:
    """Run one home's stack in this process until SIGTERM, SIGINT or SIGHUP. Call it from the main thread.

    Raises StackProblem when it cannot start; then it has stopped whatever it started, and no data was changed.
    """
    home = Home.at(plan.home)
    prepare_home(home)
    lock = claim(home)
    if lock is None:
        raise StackProblem("already_running", f"The stack of {home.path} runs already.")
    keep_log(home)
    supervisor = Supervisor(plan, home, read_state(home))
    supervisor.remember(supervisor=identify(os.getpid()), has_worker=plan.worker_command is not None)
    try:
        supervisor.run(on_ready)
        supervisor.remember(phase="stopped", supervisor=None)
    except (StackProblem, OSError) as caught:
        problem = caught if isinstance(caught, StackProblem) else unforeseen(home, caught)
        log.error("%s", problem.sentence)
        supervisor.remember(phase="failed", supervisor=None, problem_code=problem.code, problem=problem.sentence)
        raise problem from caught
    finally:
        os.close(lock)


def claim(home: Home) -> int | None:
    """The home's lock; whoever looks holds it for an instant, so a dead holder is asked again."""
    for _ in range(10):
        lock = take_lock(home)
        if lock is not None or is_alive(read_state(home).supervisor):
            return lock
        time.sleep(0.03)
    return None


def unforeseen(home: Home, problem: OSError) -> StackProblem:
    """What the system refused, as a sentence."""
    what = f"{problem.strerror or problem}" + (f": {problem.filename}" if problem.filename else "")
    code = "disk_full" if problem.errno == errno.ENOSPC else "cannot_start"
    return StackProblem(code, f"The stack of {home.path} cannot be started: {what}. Nothing was changed.")


def keep_log(home: Home) -> None:
    """Our own log, beside those of the children."""
    handler = logging.FileHandler(home.log_path("supervisor"))
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
    log.addHandler(handler)
    log.setLevel(logging.INFO)
    log.propagate = False


def detached(plan: Plan, report: int) -> None:
    """Serve as a process of our own that belongs to nobody, and report once: up, or the problem."""
    if os.fork():
        os._exit(0)
    try:
        serve(plan, lambda state: tell(report, {"state": state.phase}))
    except StackProblem as problem:
        tell(report, {"code": problem.code, "sentence": problem.sentence})
        os._exit(4)


def tell(report: int, answer: Mapping[str, str]) -> None:
    """Write the one answer whoever started us waits for; it may have gone away meanwhile."""
    with suppress(OSError):
        os.write(report, json.dumps(answer).encode())
        os.close(report)


def call(target: str) -> None:
    """Call `module:function` with the database URL from the environment."""
    module, _, function = target.partition(":")
    getattr(importlib.import_module(module), function)(os.environ["NIGHTBELL_DATABASE_URL"])


if __name__ == "__main__":
    if sys.argv[1] == "call":
        call(sys.argv[2])
    else:
        detached(Plan.model_validate_json(sys.argv[2]), int(sys.argv[3]))
