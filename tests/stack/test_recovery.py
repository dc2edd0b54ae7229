"""kill -9 of anything: it comes back on the same ports over the same data, or goes down as a whole and starts again."""

import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest

import nightbell.postgres_server
from nightbell.home import Home, ProcessIdentity, read_state
from nightbell.postgres_server import postgres_server, recover_stale_lock
from nightbell.processes import is_alive
from nightbell.stack import RunningStack, down, status, up
from nightbell.temporal_server import temporal_server

IDLE_WORKER = (sys.executable, "-S", "-c", "import time; time.sleep(3600)")
FAILING_WORKER = (sys.executable, "-S", "-c", "raise SystemExit(3)")


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningStack]:
    """One running stack that these tests hurt in turn; each leaves it running."""
    home = Home.at(tmp_path_factory.mktemp("recovery") / "home")
    yield up(home, worker_command=IDLE_WORKER)
    down(home)


def until(condition: Callable[[], bool], seconds: float = 30.0) -> None:
    """Wait for what must come to pass."""
    limit = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < limit, "it did not come to pass"
        time.sleep(0.02)


def runs_again(home: Home, name: str, killed: ProcessIdentity) -> bool:
    """Whether another process stands in the killed one's place and everything runs."""
    return read_state(home).children.get(name) != killed and status(home)["state"] == "running"


@pytest.mark.parametrize("name", ["postgres", "temporal", "worker"])
@pytest.mark.obligation("EVD-1", boundary="restart")
def test_a_killed_process_is_started_again_on_the_same_ports_over_the_same_data(stack: RunningStack, name: str) -> None:
    """kill -9 of PostgreSQL, Temporal or the worker: the supervisor starts it again and commits are still there."""
    with psycopg.connect(stack.address.database_url) as connection:
        connection.execute("CREATE TABLE IF NOT EXISTS killed (name text)")
        connection.execute("INSERT INTO killed VALUES (%s)", (name,))
    before = read_state(stack.home)
    os.kill(before.children[name].pid, signal.SIGKILL)
    until(lambda: runs_again(stack.home, name, before.children[name]))
    assert read_state(stack.home).ports == before.ports
    assert read_state(stack.home).supervisor == before.supervisor
    with psycopg.connect(stack.address.database_url) as connection:
        assert connection.execute("SELECT count(*) FROM killed WHERE name = %s", (name,)).fetchone() == (1,)
    assert temporal_server(stack.home, before.ports.temporal or 0, before.ports.ui or 0).is_ready()
    assert f"{name} (process {before.children[name].pid}) died with -9" in log_of(stack.home)


def log_of(home: Home) -> str:
    return home.log_path("supervisor").read_text(encoding="utf-8")


@pytest.mark.obligation("EVD-1", boundary="restart")
def test_a_killed_supervisor_takes_its_children_along_and_the_next_up_recovers(stack: RunningStack) -> None:
    """kill -9 of the supervisor: no child outlives it for long, and `up` starts again on the same ports and data."""
    before = read_state(stack.home)
    assert before.supervisor is not None
    os.kill(before.supervisor.pid, signal.SIGKILL)
    until(lambda: not any(is_alive(child) for child in before.children.values()))
    assert status(stack.home)["state"] == "stopped"
    again = up(stack.home, worker_command=IDLE_WORKER).address
    assert again.database_url == stack.address.database_url
    with psycopg.connect(again.database_url) as connection:
        assert connection.execute("SELECT 1").fetchone() == (1,)


@pytest.mark.obligation("EVD-1", boundary="restart")
def test_everything_killed_at_once_leaves_a_home_that_starts_again(stack: RunningStack) -> None:
    """A machine that lost power: locks and process numbers of the dead are no obstacle."""
    before = read_state(stack.home)
    assert before.supervisor is not None
    for identity in (before.supervisor, *before.children.values()):
        os.kill(identity.pid, signal.SIGKILL)
    assert (stack.home.postgres_path / "data" / "postmaster.pid").exists()
    up(stack.home, worker_command=IDLE_WORKER)
    assert status(stack.home)["state"] == "running"


@pytest.mark.parametrize("content", ["", "{pid}\nsomewhere\n"])
def test_a_stale_lock_of_postgresql_is_recovered(stack: RunningStack, content: str) -> None:
    """A crash left an empty lock, or one whose number a living stranger carries now."""
    home = stack.home
    down(home)
    lock = home.postgres_path / "data" / "postmaster.pid"
    lock.write_text(content.format(pid=os.getpid()), encoding="ascii")
    up(home, worker_command=IDLE_WORKER)
    assert status(home)["state"] == "running"


def test_the_lock_of_a_living_postgresql_is_left_alone(stack: RunningStack, monkeypatch: pytest.MonkeyPatch) -> None:
    """While any process works in the cluster its lock stays, whatever number stands in it."""
    monkeypatch.setattr(nightbell.postgres_server, "BACKENDS_GONE_WITHIN_SECONDS", 0.2)
    server = postgres_server(stack.home, 1)
    lock = server.data_path / "postmaster.pid"
    content = lock.read_bytes()
    lock.write_bytes(content.replace(content.split(b"\n")[0], str(os.getpid()).encode(), 1))
    recover_stale_lock(server)
    assert lock.exists()
    lock.write_bytes(content)


def test_a_worker_that_cannot_live_is_said_and_the_servers_stay(stack: RunningStack) -> None:
    """A worker that fails at once is tried again ever later; the stack is degraded, not down."""
    home = stack.home
    down(home)
    address = up(home, worker_command=FAILING_WORKER).address
    until(lambda: log_of(home).count("died with 3") >= 2)
    until(lambda: status(home)["state"] == "degraded")
    with psycopg.connect(address.database_url) as connection:
        assert connection.execute("SELECT 1").fetchone() == (1,)
    down(home)
    up(home, worker_command=IDLE_WORKER)


def test_temporal_can_be_lost_whole(stack: RunningStack) -> None:
    """Without its file Temporal starts empty on the same port, with our search attributes."""
    home, ports = stack.home, read_state(stack.home).ports
    down(home)
    for path in Path(home.temporal_path).iterdir():
        path.unlink()
    up(home, worker_command=IDLE_WORKER)
    assert read_state(home).ports == ports
    assert status(home)["state"] == "running"
