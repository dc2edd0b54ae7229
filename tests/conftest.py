"""Real servers for the tests: one PostgreSQL and one Temporal a session, a fresh database a test.

A database is cloned from a template that was migrated once; a test that leaves a connection to it open fails. The clock
of a test is its own database's `nightbell.trusted_now()`, replaced there: nothing in the product can do that.
"""

import os
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import uuid4

import psycopg
import pytest
from psycopg import sql
from temporalio.client import Client
from temporalio.testing import TimeSkipper, TimeSkippingConfig

from nightbell.home import Home, prepare_home
from nightbell.ports import free_port
from nightbell.postgres_server import PostgresServer, address, make_cluster
from nightbell.postgres_server import postgres_server as server_of
from nightbell.temporal_server import TemporalServer
from nightbell.temporal_server import temporal_server as temporal_of
from store.migrate import migrate

EXIT_STATUS = pytest.StashKey[int]()
TEMPLATE = "nightbell_template"
READY_WITHIN_SECONDS = 60.0
CLOSED_WITHIN_SECONDS = 2.0
UNSAFE_FOR_TESTS_ONLY = {"fsync": "off", "autovacuum": "off", "max_connections": "200"}

TEST_CLOCK = """
CREATE SCHEMA nightbell_test;
CREATE TABLE nightbell_test.clock (at timestamptz);
INSERT INTO nightbell_test.clock VALUES (NULL);
CREATE OR REPLACE FUNCTION nightbell.trusted_now() RETURNS timestamptz LANGUAGE plpgsql VOLATILE PARALLEL SAFE AS
'BEGIN RETURN coalesce((SELECT at FROM nightbell_test.clock), clock_timestamp()); END';
"""


def pytest_addoption(parser: pytest.Parser) -> None:
    """How long the long walks are; without these the suite runs their short forms."""
    parser.addoption("--crash-rounds", type=int, default=0, help="how often each boundary of the crash walk is walked")
    parser.addoption("--model-steps", type=int, default=10_000, help="how many steps the store walks beside its model")
    parser.addoption("--model-random", action="store_true", help="walk other steps every time, not the pinned ones")
    parser.addoption("--model-shrink", action="store_true", help="look for the shortest walk that fails")
    parser.addoption("--races", type=int, default=40, help="how often an activation races two relays")


class Clock:
    """The time that decisions see in one test's database. plpgsql and volatile: a sample taken after a lock was waited
    for sees what was set meanwhile, as the real one would."""

    def __init__(self, database_url: str) -> None:
        self.database_url = database_url
        self.execute(TEST_CLOCK)

    def set(self, instant: datetime) -> None:
        """Stand still at this aware instant."""
        assert instant.tzinfo is not None, "a clock is set to an aware instant"
        self.execute("UPDATE nightbell_test.clock SET at = %s", instant)

    def advance(self, delta: timedelta) -> datetime:
        """Move a standing clock on (or back), a running one stands from here; the new instant."""
        statement = "UPDATE nightbell_test.clock SET at = coalesce(at, clock_timestamp()) + %s RETURNING at"
        return self.execute(statement, delta)

    def release(self) -> None:
        """Run again with the server's own clock."""
        self.execute("UPDATE nightbell_test.clock SET at = NULL")

    @property
    def at(self) -> datetime:
        """What a decision would see now."""
        return self.execute("SELECT nightbell.trusted_now()")

    def execute(self, statement: str, *values: object) -> datetime:
        with psycopg.connect(self.database_url, autocommit=True) as connection:
            cursor = connection.execute(statement, values or None)
            row = cursor.fetchone() if cursor.description else None
        return row[0].astimezone(UTC) if row else datetime.min.replace(tzinfo=UTC)


@pytest.fixture(scope="session")
def servers_home() -> Iterator[Home]:
    """A home for the session's servers, under a folder that every account may pass through."""
    folder = Path(tempfile.mkdtemp(prefix="nightbell-tests-"))
    home = Home.at(folder / "home")
    folder.chmod(0o711)
    prepare_home(home)
    yield home
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="session")
def postgres_server(servers_home: Home) -> Iterator[PostgresServer]:
    """The session's PostgreSQL, without fsync: a test's data need not survive the machine."""
    server = server_of(servers_home, free_port(None, set()), UNSAFE_FOR_TESTS_ONLY)
    make_cluster(server)
    process = server.start(os.environ)
    try:
        await_ready(server)
        make_template(server)
        yield server
    finally:
        process.send_signal(signal.SIGQUIT)
        process.wait(timeout=30)


@pytest.fixture(scope="session")
def temporal_server(servers_home: Home) -> Iterator[TemporalServer]:
    """The session's Temporal, in memory, with our search attributes. It runs in real time; workflows that are started
    through `time_skipper` have a virtual clock of their own."""
    port = free_port(None, set())
    found = temporal_of(servers_home, port, free_port(None, {port}))
    server = TemporalServer(found.home, found.port, found.ui_port, found.temporal, file=False, time_skipping=True)
    process = server.start(os.environ)
    try:
        await_ready(server)
        yield server
    finally:
        process.kill()
        process.wait(timeout=30)


def await_ready(server: PostgresServer | TemporalServer) -> None:
    """Wait until the server serves."""
    limit = time.monotonic() + READY_WITHIN_SECONDS
    while not server.is_ready():
        assert time.monotonic() < limit, f"{server} did not become ready"
        time.sleep(0.02)


def make_template(server: PostgresServer) -> None:
    """A migrated database that is only ever cloned."""
    with psycopg.connect(address(server.home, server.port, "postgres"), autocommit=True) as connection:
        connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(TEMPLATE)))
        migrate(address(server.home, server.port, TEMPLATE))
        closed = sql.SQL("ALTER DATABASE {} WITH IS_TEMPLATE true ALLOW_CONNECTIONS false")
        connection.execute(closed.format(sql.Identifier(TEMPLATE)))


@pytest.fixture
def database_url(postgres_server: PostgresServer) -> Iterator[str]:
    """A fresh, migrated database. Leaving a connection to it open fails the test."""
    name = sql.Identifier(plain := f"test_{uuid4().hex}")
    clone = sql.SQL("CREATE DATABASE {} TEMPLATE {} STRATEGY wal_log").format(name, sql.Identifier(TEMPLATE))
    with psycopg.connect(address(postgres_server.home, postgres_server.port, "postgres"), autocommit=True) as admin:
        admin.execute(clone)
        yield address(postgres_server.home, postgres_server.port, plain)
        left = open_connections(admin, plain)
        admin.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(name))
    assert not left, f"the test left {len(left)} connections open: {left}"


def open_connections(admin: psycopg.Connection, database: str) -> list[str]:
    """Who is still connected after a moment's grace for those that are just leaving."""
    statement = (
        "SELECT application_name || ': ' || query FROM pg_stat_activity WHERE datname = %s AND pid <> pg_backend_pid()"
    )
    limit = time.monotonic() + CLOSED_WITHIN_SECONDS
    while left := [row[0] for row in admin.execute(statement, (database,))]:
        if time.monotonic() > limit:
            break
        time.sleep(0.01)
    return left


@pytest.fixture
def clock(database_url: str) -> Clock:
    """Moves the time that decisions see in this test's database."""
    return Clock(database_url)


@pytest.fixture
async def temporal_client(temporal_server: TemporalServer) -> Client:
    """A client of the session's Temporal."""
    return await Client.connect(temporal_server.address, namespace=temporal_server.namespace)


@pytest.fixture
async def time_skipper(temporal_client: Client) -> TimeSkipper:
    """Starts workflows (through its `client`) on virtual clocks; `fast_forward(handle, delta)` moves one on. Take
    handles without a run id, or continue-as-new loses them. Only the workflow's clock moves: move `clock` with it."""
    return TimeSkipper(temporal_client, config=TimeSkippingConfig(max_session_skip_count=100_000))


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """Remember how the session ended, for the last word below."""
    session.config.stash[EXIT_STATUS] = int(exitstatus)


@pytest.hookimpl(trylast=True)
def pytest_unconfigure(config: pytest.Config) -> None:
    """Leave without the interpreter's farewell: the Temporal SDK sometimes aborts there after all has gone well."""
    status = config.stash.get(EXIT_STATUS, None)
    if status is not None and "temporalio" in sys.modules:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)
