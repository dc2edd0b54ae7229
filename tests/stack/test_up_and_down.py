"""The embedded stack as a person meets it: up, status, down, again; beside others; as whoever they are."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psutil
import psycopg
import pytest

from nightbell.accounts import Account, descent, first_account
from nightbell.home import Home, Ports, ProcessIdentity, prepare_home, read_state, write_state
from nightbell.ports import choose_ports
from nightbell.problems import StackProblem
from nightbell.processes import HOME_MARK, identify, import_path, wait_gone
from nightbell.stack import RunningStack, attach, down, status, up
from store.migrate import migrate

IDLE_WORKER = (sys.executable, "-S", "-c", "import time; time.sleep(3600)")
FOREGROUND = """
import os, sys
from nightbell.home import Home
from nightbell.stack import run_in_foreground
home = Home.at(sys.argv[1])
run_in_foreground(home, lambda address: print(address.pid, flush=True), worker_command=None)
print("left", flush=True)
"""
AS_ANOTHER = """
import json, os, sys
from nightbell.home import Home
from nightbell.stack import down, status, up
home = Home.at(sys.argv[1])
up(home, worker_command=None)
print(json.dumps({"uid": os.geteuid(), "state": status(home)["state"], "mode": home.path.stat().st_mode & 0o777}))
down(home)
"""


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    """A new home, stopped at the end whatever happened."""
    home = Home.at(tmp_path / "home")
    yield home
    down(home)


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningStack]:
    """A stack of servers that runs throughout, for tests that only look at it."""
    home = Home.at(tmp_path_factory.mktemp("running") / "home ü")
    yield only_servers(home)
    down(home)


def processes_of(home: Home) -> list[psutil.Process]:
    """Every living process that carries this home: by its environment, its command line or its working folder."""
    return [process for process in psutil.process_iter() if process.pid != os.getpid() and carries(process, home)]


def carries(process: psutil.Process, home: Home) -> bool:
    try:
        if process.status() == psutil.STATUS_ZOMBIE:
            return False
        marks = [process.environ().get(HOME_MARK, ""), process.cwd(), *process.cmdline()]
    except psutil.Error:
        return False
    return any(mark.startswith(str(home.path)) for mark in marks)


def test_up_gives_addresses_that_work_and_down_leaves_no_process(home: Home) -> None:
    """up, status, down: a migrated database, a Temporal, no process left; and again over the same data and ports."""
    first = up(home, migrate=migrate, worker_command=IDLE_WORKER).address
    assert status(home) == {
        "database_url": first.database_url,
        "temporal_address": first.temporal_address,
        "ui_url": first.ui_url,
        "pid": first.pid,
        "state": "running",
    }
    with psycopg.connect(first.database_url) as connection:
        connection.execute("CREATE TABLE kept AS SELECT nightbell.trusted_now() AS at")
        settings = [connection.execute("SELECT current_setting(%s)", (name,)).fetchone() for name in SETTINGS]
    assert [row[0] for row in settings if row] == list(SETTINGS.values())
    assert up(home, worker_command=IDLE_WORKER).address == first, "a second up attaches"
    assert {process.name() for process in processes_of(home)} >= {"postgres", "temporal"}
    down(home)
    assert processes_of(home) == []
    assert status(home)["state"] == "stopped"
    down(home)
    second = up(home, worker_command=IDLE_WORKER).address
    assert (second.database_url, second.temporal_address, second.ui_url) == addresses(first)
    with psycopg.connect(second.database_url) as connection:
        assert connection.execute("SELECT count(*) FROM kept").fetchone() == (1,)


SETTINGS = {
    "fsync": "on",
    "full_page_writes": "on",
    "synchronous_commit": "on",
    "data_checksums": "on",
    "TimeZone": "UTC",
    "server_encoding": "UTF8",
    "max_connections": "100",
    "listen_addresses": "127.0.0.1",
    "unix_socket_directories": "",
}


def addresses(address) -> tuple[str, str, str]:
    return address.database_url, address.temporal_address, address.ui_url


def test_the_home_is_private_and_its_password_is_never_shown(running: RunningStack) -> None:
    """The address names a private file instead of the secret; who has no password is not let in."""
    home, address = running.home, running.address
    password = home.pgpass_path.read_text(encoding="ascii").strip().rsplit(":", 1)[1]
    shown = json.dumps(status(home)) + repr(address) + home.state_path.read_text(encoding="utf-8")
    shown += " ".join(" ".join(process.cmdline()) for process in processes_of(home))
    shown += "".join(path.read_text(encoding="utf-8") for path in home.logs_path.iterdir())
    assert password not in shown
    assert home.path.stat().st_mode & 0o067 == 0
    assert home.pgpass_path.stat().st_mode & 0o077 == 0
    with pytest.raises(psycopg.OperationalError, match="password"):
        psycopg.connect(address.database_url.split("?")[0], passfile=os.devnull)


def test_two_homes_run_side_by_side_and_end_apart(running: RunningStack, home: Home) -> None:
    """A second home has addresses of its own, and stopping it leaves the first alone."""
    assert not set(addresses(only_servers(home).address)) & set(addresses(running.address))
    down(home)
    assert (status(home)["state"], status(running.home)["state"]) == ("stopped", "running")
    with psycopg.connect(running.address.database_url) as connection:
        assert connection.execute("SELECT 1").fetchone() == (1,)


def only_servers(home: Home) -> RunningStack:
    return up(home, worker_command=None)


def test_two_racing_ups_of_one_home_make_one_stack(home: Home) -> None:
    """The home's lock decides who supervises; the other attaches to the same stack."""
    with ThreadPoolExecutor() as threads:
        first, second = threads.map(only_servers, (home, home))
    assert first.address == second.address


def test_an_up_during_a_down_waits_and_starts_again_on_the_ports_it_asks_for(home: Home) -> None:
    """Whoever asks for a stack that is just stopping gets one that runs, on the ports of their choice."""
    only_servers(home)
    chosen = choose_ports(Ports(), Ports())
    with ThreadPoolExecutor() as threads:
        stopping = threads.submit(down, home)
        while read_state(home).phase == "running":
            time.sleep(0.005)
        again = up(home, chosen, worker_command=None).address.pid
        stopping.result()
    assert (status(home)["pid"], read_state(home).ports) == (again, chosen)
    assert status(home)["state"] == "running"


def test_in_the_foreground_ctrl_c_stops_everything_in_order(home: Home) -> None:
    """`up` in the foreground is the supervisor: Ctrl-C stops Temporal, then PostgreSQL, and it leaves with 0."""
    environment = {**os.environ, **import_path()}
    command = [sys.executable, "-c", FOREGROUND, str(home.path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as foreground:
        assert foreground.stdout is not None
        assert int(foreground.stdout.readline()) == foreground.pid == status(home)["pid"]
        foreground.send_signal(signal.SIGINT)
        assert foreground.wait(timeout=60) == 0
        assert foreground.stdout.read().strip() == "left"
    assert processes_of(home) == []
    log = home.log_path("supervisor").read_text(encoding="utf-8")
    assert log.index("temporal stopped with 0") < log.index("postgres stopped with 0")


def test_an_unprivileged_user_runs_a_home_of_their_own(tmp_path: Path) -> None:
    """Not root, a home where nobody else may look, and nothing but one's own rights: up and down work. Run as root, the
    test becomes an unprivileged account first."""
    folder = tmp_path / "theirs"
    folder.mkdir(mode=0o700)
    account = first_account() if os.geteuid() == 0 else None
    if account is not None:
        os.chown(folder, account.uid, account.gid)
        account = Account(account.name, account.uid, account.gid, capability=2)  # to pass pytest's own private folders
    result = subprocess.run(
        [sys.executable, "-c", AS_ANOTHER, str(folder / "home")],
        env={**os.environ, **import_path(), "HOME": str(folder), "PYTHONDONTWRITEBYTECODE": "1"},
        preexec_fn=descent(account, signal.SIGTERM),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    assert json.loads(result.stdout) == {
        "uid": account.uid if account else os.geteuid(),
        "state": "running",
        "mode": 0o700,
    }
    assert processes_of(Home.at(folder / "home")) == []


def test_a_number_that_was_reused_is_never_signalled(home: Home) -> None:
    """A process is known by its number and its start; the state file of a dead stack may name a stranger's number."""
    prepare_home(home)
    with subprocess.Popen([sys.executable, "-S", "-c", "import time; time.sleep(3600)"]) as stranger:
        alive = identify(stranger.pid)
        assert alive is not None
        earlier = ProcessIdentity(pid=stranger.pid, started="an earlier life")
        for supposed in (alive, earlier):
            children = {"postgres": supposed, "temporal": supposed, "worker": supposed}
            write_state(home, read_state(home).model_copy(update={"supervisor": supposed, "children": children}))
            if supposed is alive:
                with pytest.raises(StackProblem, match="could not be stopped"):
                    down(home)
            else:
                down(home)
            time.sleep(0.05)
            assert stranger.poll() is None
        stranger.kill()
        assert wait_gone(alive, 5)


def test_attach_and_status_of_a_home_that_never_ran_are_plain(home: Home) -> None:
    """Nothing runs, nothing is made, and it is said."""
    assert status(home)["state"] == "stopped"
    with pytest.raises(StackProblem, match="nightbell up"):
        attach(home)
    assert not home.path.exists()
