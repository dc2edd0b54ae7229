"""The doctor says what is wrong and what to do; settings never show a secret."""

import os
from collections.abc import Callable
from pathlib import Path

import psycopg
import pytest

from nightbell.doctor import Check, Patient, doctor, packages, search_attributes, trusted_now
from nightbell.home import Home
from nightbell.postgres_server import PostgresServer, address
from nightbell.problems import StackProblem
from nightbell.settings import Settings
from nightbell.temporal_server import TemporalServer
from store.migrate import at_head


def by_name(checks: list[Check]) -> dict[str, Check]:
    return {check.name: check for check in checks}


def patient(home: Path, database_url: str | None = None) -> Patient:
    return Patient(Settings(home=home), Home.at(home), database_url, "127.0.0.1:1")


async def test_servers_that_are_well_are_found_well(
    tmp_path: Path, database_url: str, temporal_server: TemporalServer
) -> None:
    """Every check passes against migrated, reachable servers; none then has a remedy."""
    named = {"database_url": database_url, "temporal_address": temporal_server.address}
    found = await doctor(Settings(home=tmp_path / "home", **named), at_head)
    assert [check for check in found if not check.ok or check.remedy] == []
    assert {"python", "disk", "postgres", "schema", "trusted_now", "clock", "temporal"} <= set(by_name(found))


async def test_a_machine_without_servers_is_told_how_to_start_them(tmp_path: Path) -> None:
    """A server that is away is said once, with what to do; the machine's own checks go on."""
    found = by_name(await doctor(Settings(home=tmp_path / "home"), at_head))
    assert not found["postgres"].ok
    assert not found["temporal"].ok
    assert "nightbell up" in found["postgres"].remedy
    assert "schema" not in found
    assert found["python"].ok
    assert not (tmp_path / "home").exists(), "a doctor changes nothing"


@pytest.mark.obligation("WIN-2", boundary="failure")
def test_a_replaced_source_of_time_is_found(tmp_path: Path, database_url: str, clock: object) -> None:
    """A trusted_now() that is not the server's clock is said: no decision of that database can be trusted."""
    found = trusted_now(patient(tmp_path, database_url))
    assert not found.ok
    assert "was replaced" in found.sentence


def test_a_database_without_the_schema_is_told_to_migrate(postgres_server: PostgresServer, tmp_path: Path) -> None:
    """Without trusted_now() the remedy is a command."""
    found = trusted_now(patient(tmp_path, address(postgres_server.home, postgres_server.port, "postgres")))
    assert (found.ok, found.remedy) == (False, "Run `nightbell migrate`.")


def test_missing_search_attributes_are_named_with_the_command(tmp_path: Path) -> None:
    """An existing Temporal is told exactly what it lacks."""
    found = search_attributes(patient(tmp_path), {"NightbellSchedule", "NightbellClass", "NightbellState"})
    assert not found.ok
    assert "search-attribute create --name NightbellNextAt --type Datetime" in found.remedy


def test_somebody_elses_package_of_our_name_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Generic names are shadowed easily; the doctor says by which."""
    assert packages(patient(tmp_path)).ok
    monkeypatch.setattr("nightbell.doctor.OUR_PACKAGES", ("law", "json"))
    assert "another package here: json" in packages(patient(tmp_path)).sentence


@pytest.fixture
def secret_file(tmp_path: Path) -> Callable[[str], Path]:
    def write(content: str) -> Path:
        (tmp_path / "secret").write_text(content, encoding="utf-8")
        return tmp_path / "secret"

    return write


def test_secrets_come_from_files_and_are_never_shown(
    monkeypatch: pytest.MonkeyPatch, secret_file: Callable[[str], Path]
) -> None:
    """The database URL and the API key may stand in files; neither is in what the settings show."""
    path = str(secret_file("postgresql://magus:open-sesame@db/nightbell\n"))
    monkeypatch.setenv("NIGHTBELL_DATABASE_URL", "")
    monkeypatch.setenv("NIGHTBELL_DATABASE_URL_FILE", path)
    monkeypatch.setenv("TEMPORAL_API_KEY_FILE", path)
    settings = Settings()
    assert settings.database_url is not None
    assert settings.database_url.get_secret_value() == "postgresql://magus:open-sesame@db/nightbell"
    assert settings.temporal_environment()["TEMPORAL_API_KEY"].startswith("postgresql://")
    assert "TEMPORAL_API_KEY" not in os.environ
    assert "open-sesame" not in repr(settings) + str(settings) + settings.model_dump_json()


def test_only_variables_of_our_name_are_heeded(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """HOME or somebody's DATABASE_URL are not settings of ours."""
    for name in ("HOME", "DATABASE_URL", "TASK_QUEUE", "FILES", "UI_PORT"):
        monkeypatch.setenv(name, str(tmp_path / "somebody"))
    monkeypatch.delenv("NIGHTBELL_HOME", raising=False)
    settings = Settings()
    assert settings.home.name == "nightbell"
    assert settings.home != tmp_path / "somebody"
    assert (settings.database_url, settings.files, settings.temporal_address) == (None, None, None)
    assert settings.task_queue == "nightbell"


def test_every_setting_has_its_variable(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The names that the documents and docker-compose.yml use."""
    given = {
        "NIGHTBELL_HOME": str(tmp_path),
        "NIGHTBELL_DATABASE_URL": "postgresql://db/nightbell",
        "NIGHTBELL_TASK_QUEUE": "other",
        "NIGHTBELL_POSTGRES_PORT": "1",
        "NIGHTBELL_TEMPORAL_PORT": "2",
        "NIGHTBELL_UI_PORT": "3",
        "TEMPORAL_ADDRESS": "temporal:7233",
        "TEMPORAL_NAMESPACE": "bells",
    }
    for name, value in given.items():
        monkeypatch.setenv(name, value)
    settings = Settings()
    assert settings.database_url is not None
    assert (settings.home, settings.database_url.get_secret_value()) == (tmp_path, "postgresql://db/nightbell")
    assert (settings.postgres_port, settings.temporal_port, settings.ui_port) == (1, 2, 3)
    assert (settings.temporal_address, settings.temporal_namespace) == ("temporal:7233", "bells")
    assert settings.task_queue == "other"


def test_a_secret_file_that_cannot_be_read_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The sentence names the variable and the file."""
    monkeypatch.setenv("NIGHTBELL_DATABASE_URL_FILE", str(tmp_path / "nowhere"))
    with pytest.raises(StackProblem, match=r"NIGHTBELL_DATABASE_URL_FILE names .*nowhere"):
        Settings()


def test_the_doctor_leaves_no_connection_open(database_url: str, tmp_path: Path) -> None:
    """Checks connect briefly."""
    trusted_now(patient(tmp_path, database_url))
    with psycopg.connect(database_url) as connection:
        others = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
        assert connection.execute(others).fetchone() == (0,)
