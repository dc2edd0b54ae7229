"""A PostgreSQL of its own for one run: the wheel's, on loopback, in a home that is thrown away, with fsync on.

A measurement gets a fresh, migrated database, so that nothing an earlier one wrote weighs on it.
"""

import os
import shutil
import signal
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psycopg
from psycopg import sql

from nightbell.home import Home, prepare_home
from nightbell.ports import free_port
from nightbell.postgres_server import PostgresServer, address, make_cluster, postgres_server
from nightbell.wiring import installed_patterns
from store.authority import register_patterns
from store.connection import open_pool
from store.migrate import migrate

READY_WITHIN_SECONDS = 60.0
SETTINGS = {"max_connections": "120", "checkpoint_timeout": "30min", "max_wal_size": "8GB"}
"""As shipped, but for room for 32 callers on either side, and no checkpoint in the middle of one side only."""


@dataclass(frozen=True, slots=True)
class Server:
    """A server that runs, and where its programs are."""

    postgres: PostgresServer

    def program(self, name: str) -> Path:
        """A client program of the same wheel, such as `pgbench`."""
        return self.postgres.postgres.with_name(name)

    def database(self, name: str) -> str:
        """The URL of a fresh, migrated database that knows the installed Patterns."""
        with psycopg.connect(address(self.postgres.home, self.postgres.port, "postgres"), autocommit=True) as admin:
            admin.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
        url = address(self.postgres.home, self.postgres.port, name)
        migrate(url)
        pool = open_pool(url, connections_max=1)
        register_patterns(pool, installed_patterns())
        pool.close()
        return url


@contextmanager
def running_server() -> Iterator[Server]:
    """Start it; stop it and throw its home away at the end, whatever happens."""
    folder = Path(tempfile.mkdtemp(prefix="nightbell-bench-"))
    folder.chmod(0o711)
    home = Home.at(folder / "home")
    try:
        prepare_home(home)
        server = postgres_server(home, free_port(None, set()), SETTINGS)
        make_cluster(server)
        process = server.start(os.environ)
        try:
            await_ready(server)
            yield Server(server)
        finally:
            process.send_signal(signal.SIGINT)
            process.wait(timeout=60)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def await_ready(server: PostgresServer) -> None:
    """Wait until the server lets us in."""
    limit = time.monotonic() + READY_WITHIN_SECONDS
    while not server.is_ready():
        if time.monotonic() > limit:
            raise TimeoutError("PostgreSQL did not become ready")
        time.sleep(0.05)
