"""Migrations: from any earlier schema to this version's, while others are deciding.

One migrator at a time, by an advisory lock that is tried and never waited for (a blocking one deadlocks with CREATE INDEX
CONCURRENTLY). Each migration is one transaction under a short lock timeout, tried again: one waiting ALTER would stall
every decision. ANALYZE afterwards, since plans made on empty statistics scan whole tables. A crash leaves the last
complete migration.
"""

import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import sqlalchemy
from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy.exc import OperationalError

from store.errors import ServerUnreachable
from store.tables import SCHEMA

MIGRATOR_LOCK = 5_283_619_047_118_220
LOCK_TIMEOUT_MILLISECONDS = 2_000
ATTEMPTS_MAX = 30
LOCK_NOT_AVAILABLE = "55P03"


def migrate(database_url: str) -> list[str]:
    """Bring the database to this version's schema and return the revisions that were applied, oldest first.

    Raises ServerUnreachable when PostgreSQL is away. Safe to call from several processes at once.
    """
    with connect(database_url) as guard, the_only_migrator(guard), connect(database_url) as connection:
        before = applied(connection)
        prepare(connection)
        upgrade(connection)
        after = applied(connection)
        connection.exec_driver_sql("ANALYZE")
        connection.commit()
        return [revision for revision in history() if revision in after - before]


def at_head(database_url: str) -> bool:
    """Whether the database has exactly this version's schema. Raises ServerUnreachable."""
    with connect(database_url) as connection:
        return applied(connection) == set(history())


@contextmanager
def connect(database_url: str) -> Generator[sqlalchemy.Connection]:
    """A connection of its own, outside the pool: migrations are rare and live under other timeouts."""
    url = sqlalchemy.make_url(database_url).set(drivername="postgresql+psycopg")
    engine = sqlalchemy.create_engine(url, poolclass=sqlalchemy.NullPool)
    try:
        with engine.connect() as connection:
            yield connection
    except OperationalError as problem:
        raise ServerUnreachable(f"PostgreSQL cannot be reached: {problem.orig}") from problem
    finally:
        engine.dispose()


@contextmanager
def the_only_migrator(guard: sqlalchemy.Connection) -> Generator[None]:
    """Hold the migrators' lock, trying until it is free; it goes with its connection."""
    take = sqlalchemy.text("SELECT pg_try_advisory_lock(:key)").bindparams(key=MIGRATOR_LOCK)
    while not guard.scalar(take):
        guard.rollback()
        time.sleep(0.1)
    guard.commit()
    yield


def prepare(connection: sqlalchemy.Connection) -> None:
    """The schema that everything lives in, on the path of this session."""
    connection.execute(sqlalchemy.schema.CreateSchema(SCHEMA, if_not_exists=True))
    for setting, value in (("search_path", SCHEMA), ("lock_timeout", str(LOCK_TIMEOUT_MILLISECONDS))):
        connection.execute(sqlalchemy.select(sqlalchemy.func.set_config(setting, value, False)))
    connection.commit()


def upgrade(connection: sqlalchemy.Connection) -> None:
    """Apply what is missing; a lock that is not had in time is tried again."""
    config = alembic_config()
    config.attributes["connection"] = connection
    for attempt in range(1, ATTEMPTS_MAX + 1):
        try:
            command.upgrade(config, "head")
            connection.commit()
            return
        except OperationalError as problem:
            connection.rollback()
            if getattr(problem.orig, "sqlstate", None) != LOCK_NOT_AVAILABLE or attempt == ATTEMPTS_MAX:
                raise
            time.sleep(0.2)


def applied(connection: sqlalchemy.Connection) -> set[str]:
    """The revisions that the database says it has, with those that came before them."""
    context = MigrationContext.configure(connection, opts={"version_table_schema": SCHEMA})
    heads = context.get_current_heads()
    connection.rollback()
    script = ScriptDirectory.from_config(alembic_config())
    return {step.revision for head in heads for step in script.iterate_revisions(head, "base")}


def history() -> list[str]:
    """Every revision of this version, oldest first."""
    script = ScriptDirectory.from_config(alembic_config())
    return [step.revision for step in reversed(list(script.walk_revisions()))]


def alembic_config() -> Config:
    """Alembic pointed at our migrations, without an ini file."""
    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent / "migrations"))
    config.set_main_option("path_separator", "os")
    return config
