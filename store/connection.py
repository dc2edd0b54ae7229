"""Connections to PostgreSQL, every one of them with the same session law.

Autocommit, so that a transaction is always an explicit `turn`; UTC; the schema on the path; and the four timeouts that
keep one stuck caller from holding everybody's locks: a half-open client loses its transaction, a waiter gives up, a
statement ends (FIELD: a half-open client holds its locks until `idle_in_transaction_session_timeout`).
"""

from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

import psycopg
from psycopg_pool import ConnectionPool, PoolTimeout

from store.errors import SchemaMissing, ServerUnreachable, StoreBusy
from store.tables import SCHEMA

Connection = psycopg.Connection[tuple[Any, ...]]
Pool = ConnectionPool[Connection]

LOCK_TIMEOUT_MILLISECONDS = 2_000
STATEMENT_TIMEOUT_MILLISECONDS = 2_500
IDLE_IN_TRANSACTION_TIMEOUT_MILLISECONDS = 2_000
TRANSACTION_TIMEOUT_MILLISECONDS = 8_000
"""A client that stops in the middle of a pipeline is not idle in the server's eyes: its transaction ends by this one."""
CONNECT_TIMEOUT_SECONDS = 5
ACQUIRE_TIMEOUT_SECONDS = 10.0

SESSION_LAW = (
    f"-c search_path={SCHEMA} -c timezone=UTC"
    f" -c lock_timeout={LOCK_TIMEOUT_MILLISECONDS}"
    f" -c statement_timeout={STATEMENT_TIMEOUT_MILLISECONDS}"
    f" -c idle_in_transaction_session_timeout={IDLE_IN_TRANSACTION_TIMEOUT_MILLISECONDS}"
    f" -c transaction_timeout={TRANSACTION_TIMEOUT_MILLISECONDS}"
)


def open_pool(database_url: str, connections_max: int = 8) -> Pool:
    """Open a pool of at most `connections_max` connections. Connections are made when first needed, so that an open
    pool says nothing about the server; the first use does (ServerUnreachable)."""
    return ConnectionPool(
        database_url,
        connection_class=psycopg.Connection[tuple[Any, ...]],
        kwargs={
            "autocommit": True,
            "options": SESSION_LAW,
            "connect_timeout": CONNECT_TIMEOUT_SECONDS,
            "application_name": "nightbell",
        },
        min_size=0,
        max_size=connections_max,
        timeout=ACQUIRE_TIMEOUT_SECONDS,
        open=True,
    )


@contextmanager
def borrow(pool: Pool) -> Generator[Connection]:
    """Borrow a connection; translate what the server's absence looks like into the store's own errors."""
    connection: Connection | None = None
    try:
        with pool.connection() as connection:
            yield connection
    except PoolTimeout as problem:
        raise ServerUnreachable("PostgreSQL cannot be reached") from problem
    except (
        psycopg.errors.UndefinedTable,
        psycopg.errors.InvalidSchemaName,
        psycopg.errors.UndefinedFunction,
    ) as problem:
        raise SchemaMissing("the database has no Nightbell schema; run `nightbell migrate`") from problem
    except (psycopg.errors.LockNotAvailable, psycopg.errors.DeadlockDetected, psycopg.errors.QueryCanceled) as problem:
        raise StoreBusy(f"another transaction held what was needed: {problem}") from problem
    except (
        psycopg.OperationalError,
        psycopg.errors.IdleInTransactionSessionTimeout,
        psycopg.errors.TransactionTimeout,
    ) as problem:
        if connection is not None and connection.broken:
            pool.check()  # its siblings broke with it: throw them out now, not one failed caller at a time
        raise ServerUnreachable(f"PostgreSQL did not answer: {problem}") from problem
