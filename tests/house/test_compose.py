"""The production shape, as far as it can be checked where no container engine runs: the file against the compose
specification, and everything that it names against what there is."""

import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import typer.main
import yaml

from nightbell.cli import app
from nightbell.settings import Settings

ROOT = Path(__file__).resolve().parents[2]
FILE = ROOT / "docker-compose.yml"
IMAGE = "nightbell:0.1.0"
SUBSTITUTED = re.compile(r"(?<!\$)\$\{(\w+)(?::?[-?][^}]*)?\}")
SECRET = re.compile(r"password|pwd|secret|token|api_key|database_url", re.IGNORECASE)
COPIED = re.compile(r"^COPY (?!--from)(.+) \S+$", re.MULTILINE)

Service = dict[str, Any]


@pytest.fixture(scope="module")
def composed() -> dict[str, Any]:
    """The compose file, anchors and merges resolved."""
    return yaml.safe_load(FILE.read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def services(composed: dict[str, Any]) -> dict[str, Service]:
    """Its services by name."""
    return composed["services"]


def validate(file: Path) -> subprocess.CompletedProcess[str]:
    """What check-jsonschema says by the compose specification that it carries."""
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", "vendor.compose-spec", str(file)]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


def ours(services: dict[str, Service]) -> dict[str, Service]:
    """The services that run our image."""
    return {name: service for name, service in services.items() if service["image"] == IMAGE}


def mounts(service: Service) -> list[str]:
    """The files of the tree that a service mounts."""
    return [mount.split(":")[0] for mount in service.get("volumes", []) if mount.startswith("./")]


def test_the_file_is_what_the_compose_specification_allows(tmp_path: Path) -> None:
    """It validates; with a misspelt key it does not."""
    said = validate(FILE)
    assert said.returncode == 0, said.stdout
    broken = tmp_path / "docker-compose.yml"
    broken.write_text(FILE.read_text(encoding="utf-8").replace("healthcheck:", "healthchek:", 1), encoding="utf-8")
    assert validate(broken).returncode != 0


def test_the_whole_production_shape_is_there(services: dict[str, Service]) -> None:
    """PostgreSQL, Temporal, its UI, both one-shot set-ups, and two workers."""
    assert {"postgresql", "temporal", "temporal-ui", "migrate", "search-attributes", "worker"} <= services.keys()
    assert services["worker"]["deploy"]["replicas"] == 2
    assert ours(services).keys() == {"migrate", "search-attributes", "worker"}


def test_every_image_is_of_a_named_version(services: dict[str, Service]) -> None:
    """No image is whatever is newest today."""
    assert not [service["image"] for service in services.values() if not re.search(r":\d[\w.-]*$", service["image"])]


def test_every_command_is_one_of_ours_with_options_that_it_has(services: dict[str, Service]) -> None:
    """What a container runs, and what asks after its health, exists in the command line."""
    group = typer.main.get_group(app)
    lines = [service["command"] for service in ours(services).values()]
    lines += [service["healthcheck"]["test"][2:] for service in ours(services).values() if "healthcheck" in service]
    for name, *arguments in lines:
        assert name in group.commands
        options = {option for parameter in group.commands[name].params for option in parameter.opts}
        assert {argument for argument in arguments if argument.startswith("--")} <= options


def test_what_is_waited_for_can_come(services: dict[str, Service]) -> None:
    """Whoever must be healthy says how; whoever must complete is not started again for ever."""
    for name, service in services.items():
        for other, wanted in service.get("depends_on", {}).items():
            awaited = services[other]
            if wanted["condition"] == "service_healthy":
                assert "healthcheck" in awaited, f"{name} waits for {other}"
            else:
                assert wanted["condition"] == "service_completed_successfully"
                assert awaited["restart"].startswith("on-failure"), f"{name} waits for {other}"


def test_what_serves_is_started_again_and_what_sets_up_ends(services: dict[str, Service]) -> None:
    """Every service has a restart policy, by whether it serves or ends."""
    ends = {"temporal-schema", "temporal-namespace", "migrate", "search-attributes"}
    for name, service in services.items():
        assert service["restart"] == ("on-failure:5" if name in ends else "unless-stopped"), name


def test_no_password_stands_in_the_file(composed: dict[str, Any], services: dict[str, Service]) -> None:
    """Secrets come from the environment, without defaults; services are told the file they are in."""
    assert all(set(secret) == {"environment"} for secret in composed["secrets"].values())
    for name, service in services.items():
        for variable, value in service.get("environment", {}).items():
            assert not SECRET.search(variable) or str(value).startswith("/run/secrets/"), f"{name}: {variable}"
        assert set(service.get("secrets", [])) <= composed["secrets"].keys()


def test_the_settings_named_are_settings(services: dict[str, Service]) -> None:
    """Every variable that our containers are given is one that we read."""
    prefix = Settings.model_config["env_prefix"]
    known = {str(field.validation_alias or f"{prefix}{name.upper()}") for name, field in Settings.model_fields.items()}
    for service in ours(services).values():
        assert service["environment"].keys() <= known


def test_every_file_that_is_mounted_or_copied_is_there(services: dict[str, Service]) -> None:
    """What containers mount and what the image is made of exists, and the image's context lets it through."""
    assert [path for service in services.values() for path in mounts(service)]
    assert not [path for service in services.values() for path in mounts(service) if not (ROOT / path).is_file()]
    copied = {
        name for line in COPIED.findall((ROOT / "Dockerfile").read_text(encoding="utf-8")) for name in line.split()
    }
    allowed = {line[1:] for line in (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines() if line[0] == "!"}
    assert copied == allowed
    assert not [name for name in copied if not (ROOT / name).exists()]


def test_the_image_installs_by_hash_only() -> None:
    """Every installation in the image is hash-checked, or touches no index at all."""
    text = (ROOT / "Dockerfile").read_text(encoding="utf-8")
    installs = [command for command in re.split(r"&&|\n", text.replace("\\\n", " ")) if "pip install" in command]
    assert installs
    assert not [command for command in installs if "--require-hashes" not in command and "--no-index" not in command]


def test_secrets_are_made_and_never_the_same(composed: dict[str, Any]) -> None:
    """`deploy/secrets.sh` prints every variable that the file cannot do without, different each time, and one URL."""
    needed = {secret["environment"] for secret in composed["secrets"].values()}
    made = [dict(line.split("=", 1) for line in printed().splitlines()) for _ in range(2)]
    assert made[0].keys() == needed
    assert not set(made[0].values()) & set(made[1].values())
    assert all(len(value) >= 48 for value in made[0].values())
    assert f":{made[0]['NIGHTBELL_DATABASE_PASSWORD']}@postgresql:5432/" in made[0]["NIGHTBELL_DATABASE_URL"]
    defaulted = {name for name in SUBSTITUTED.findall(FILE.read_text(encoding="utf-8")) if SECRET.search(name)}
    assert not defaulted


def printed() -> str:
    """What the secrets script prints."""
    command = ["sh", str(ROOT / "deploy" / "secrets.sh")]
    return subprocess.run(command, capture_output=True, text=True, timeout=20, check=True).stdout


@pytest.mark.parametrize("script", sorted((ROOT / "deploy").glob("*.sh")), ids=lambda path: path.name)
def test_every_script_can_be_read_by_its_shell(script: Path) -> None:
    """No script is cut short or misspelt: its own shell parses it whole."""
    shell = script.read_text(encoding="utf-8").splitlines()[0].removeprefix("#!")
    found = shutil.which(shell) or shutil.which("bash")
    assert found
    subprocess.run([found, "-n", str(script)], capture_output=True, timeout=20, check=True)
