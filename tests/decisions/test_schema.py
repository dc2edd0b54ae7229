"""The schema: made by migrations, described by the tables, and refusing what is illegal."""

from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import psycopg
import pytest
import sqlalchemy as sa

from law.reasons import OccurrenceState, RunState
from store.connection import open_pool
from store.errors import SchemaMissing, ServerUnreachable
from store.migrate import at_head, history, migrate
from store.relay import look
from store.tables import SCHEMA, metadata
from store.turn import Lock, LockOrderBroken, turn
from tests.office import BRIDGE, Office, document

CATALOGUE = {
    "columns": """
        SELECT table_name, column_name, data_type, is_nullable, is_identity FROM information_schema.columns
        WHERE table_schema = 'nightbell' AND table_name <> 'alembic_version' ORDER BY 1, 2
    """,
    "constraints": """
        SELECT c.conrelid::regclass::text, c.conname, pg_get_constraintdef(c.oid) FROM pg_constraint c
        JOIN pg_class t ON t.oid = c.conrelid
        WHERE c.connamespace = 'nightbell'::regnamespace AND t.relname <> 'alembic_version' AND c.contype NOT IN ('n', 't')
        ORDER BY 1, 2
    """,
    "indexes": """
        SELECT tablename, indexname, indexdef FROM pg_indexes
        WHERE schemaname = 'nightbell' AND tablename <> 'alembic_version' ORDER BY 1, 2
    """,
}


@pytest.fixture
def from_tables(postgres_server: Any) -> Iterator[str]:
    """A database made from the table definitions instead of the migrations."""
    from nightbell.postgres_server import address

    name = f"tables_{uuid4().hex}"
    with psycopg.connect(address(postgres_server.home, postgres_server.port, "postgres"), autocommit=True) as admin:
        admin.execute(f"CREATE DATABASE {name}")
        url = address(postgres_server.home, postgres_server.port, name)
        engine = sa.create_engine(sa.make_url(url).set(drivername="postgresql+psycopg"), poolclass=sa.NullPool)
        with engine.begin() as connection:
            connection.execute(sa.text(f"CREATE SCHEMA {SCHEMA}"))
            metadata.create_all(connection)
        engine.dispose()
        yield url
        admin.execute(f"DROP DATABASE {name} WITH (FORCE)")


@pytest.mark.parametrize("part", list(CATALOGUE))
def test_migrations_make_what_the_tables_describe(database_url: str, from_tables: str, part: str) -> None:
    """Columns, constraints (their bodies too) and indexes (their predicates too) are equal."""
    found = []
    for url in (database_url, from_tables):
        with psycopg.connect(url, options="-c search_path=nightbell") as connection:
            found.append(connection.execute(CATALOGUE[part]).fetchall())
    assert found[0] == found[1]
    assert len(found[0]) > 15


def test_migrating_twice_changes_nothing_and_an_empty_database_says_what_it_lacks(database_url: str) -> None:
    """The second migration applies nothing; a database without the schema is named as such."""
    assert migrate(database_url) == []
    assert at_head(database_url)
    assert history()[0] == "0001"
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute("DROP SCHEMA nightbell CASCADE")
    pool = open_pool(database_url, connections_max=1)
    with pytest.raises(SchemaMissing):
        look(pool, 1, 1, 1)
    pool.close()
    assert not at_head(database_url)
    assert migrate(database_url) == history()


def test_a_server_that_is_away_is_said_to_be() -> None:
    """A connection that cannot be made is one error of ours."""
    with pytest.raises(ServerUnreachable):
        migrate("postgresql://nobody@127.0.0.1:9/none?connect_timeout=1")


@pytest.mark.obligation("OCC-7", boundary="ordinary")
def test_occ_7_an_occurrence_and_a_station_attempt_are_never_joined() -> None:
    """The two ids stand in different tables, and no statement of ours names both in one join."""
    columns = {table.name: set(table.columns.keys()) for table in metadata.sorted_tables}
    assert "station_attempt_id" not in columns["occurrence"]
    assert "trigger_occurrence_id" not in columns["effect"]


def test_every_state_of_the_law_is_a_state_of_the_database(office: Office, evening: object) -> None:
    """A word that is no state is refused for Occurrences, Runs and effects alike."""
    schedule = office.register(document(BRIDGE))
    office.admitted_run(schedule)
    office.execute("ALTER TABLE nightbell.occurrence DISABLE TRIGGER ALL")
    for table in ("occurrence", "run", "delivery"):
        with pytest.raises(psycopg.errors.CheckViolation):
            office.execute(f"UPDATE nightbell.{table} SET state = 'somehow'")
    assert len(OccurrenceState) == 9
    assert len(RunState) == 8


@pytest.mark.obligation("EVD-1", boundary="failure")
@pytest.mark.parametrize(
    "table", ["decision", "round", "schedule_revision", "zone_rules", "activation", "occurrence", "run"]
)
def test_evidence_is_neither_deleted_nor_emptied(office: Office, evening: object, table: str) -> None:
    """DELETE and TRUNCATE are refused on every table that is evidence."""
    from tests.office import NIGHTLY

    office.register(document(NIGHTLY))
    schedule = office.register(document(BRIDGE))
    office.admitted_run(schedule)
    for act in (f"DELETE FROM nightbell.{table}", f"TRUNCATE nightbell.{table} CASCADE"):
        with pytest.raises(Exception, match="append-only"):
            office.execute(act)


def test_locks_are_taken_in_one_order_or_not_at_all(office: Office) -> None:
    """A transaction that asks for its locks in another order is refused before it begins."""
    from store.locks import own_run, own_schedule

    backwards: tuple[Lock, ...] = (own_run(uuid4()), own_schedule("home/bridge"))  # type: ignore[arg-type]
    with pytest.raises(LockOrderBroken), turn(office.pool, uuid4(), *backwards):  # type: ignore[arg-type]
        pass


@pytest.mark.parametrize("statement", ["ELIGIBLE", "LIVE_RUNS"])
def test_hot_statements_use_their_partial_indexes(office: Office, evening: object, statement: str) -> None:
    """Beside many settled rows, what is pending and what is live is found by index."""
    from store import eligible

    schedule = office.register(document(BRIDGE, overlap={"policy": "bounded_parallel", "max": 500}))
    for number in range(300):
        office.offer(schedule, str(number))
    office.decide(schedule)
    office.execute("UPDATE nightbell.run SET state = 'done', reason = 'finished', settled_at = admitted_at")
    office.execute("ANALYZE nightbell.occurrence", "ANALYZE nightbell.run")
    nobody: dict[str, list[str]] = {"owners": [], "sigils": [], "patterns": []}
    arguments = {"schedules": [1], "capabilities": ["gpu"], **nobody, "at": evening, "candidates_max": 100}
    with office.pool.connection() as connection:
        plan = connection.execute(f"EXPLAIN {getattr(eligible, statement).as_string()}", arguments).fetchall()
    text = "\n".join(row[0] for row in plan)
    assert "occurrence_pending" in text or "occurrence_opening" in text or "run_live" in text, text
