"""Imports point one way (STYLE 1, DESIGN §1), and the tool that says so is shown to say no."""

import ast
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
HOUSE = ("law", "store", "activities", "workflows", "patterns", "nightbell")
OUTSIDE = {"worker", "tests", "benchmarks"}
WHAT_PATTERNS_SEE = {"law.pattern"}

BREACHES = [
    ("law/reasons.py", "import time", "the law is pure"),
    ("law/reasons.py", "import os.path", "the law is pure"),
    ("law/reasons.py", "from random import random", "the law is pure"),
    ("law/reasons.py", "import sqlalchemy", "the law is pure"),
    ("law/reasons.py", "import store.tables", "imports point one way"),
    ("store/turn.py", "from temporalio.client import Client", "the store knows nothing of Temporal"),
    ("store/turn.py", "import workflows.asks", "imports point one way"),
    ("store/turn.py", "import nightbell.settings", "imports point one way"),
    ("workflows/asks.py", "import store.tables", "imports point one way"),
    ("workflows/asks.py", "import activities.border", "imports point one way"),
    ("workflows/asks.py", "import psycopg", "workflows never reach the database"),
    ("patterns/catalogue.py", "import store.tables", "imports point one way"),
    ("patterns/catalogue.py", "import law.selection", "Patterns see only the Pattern contract"),
    ("activities/border.py", "import nightbell.settings", "imports point one way"),
]


def lint(folder: Path) -> subprocess.CompletedProcess[str]:
    """What import-linter says about the packages in a folder."""
    command = [str(Path(sys.executable).with_name("lint-imports")), "--no-cache"]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=60, check=False)


@pytest.fixture
def copied(tmp_path: Path) -> Path:
    """The six packages and their contracts, free to be broken."""
    for package in HOUSE:
        shutil.copytree(ROOT / package, tmp_path / package, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copyfile(ROOT / "pyproject.toml", tmp_path / "pyproject.toml")
    return tmp_path


def imports(file: Path) -> Iterator[str]:
    """Every module that a file names in an import, as far as it can be told without importing."""
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield from [node.module] if node.module != "law" else [f"law.{alias.name}" for alias in node.names]


def test_every_arrow_points_one_way() -> None:
    """The contracts hold, and none has an exceptions list."""
    said = lint(ROOT)
    assert said.returncode == 0, said.stdout
    assert "ignore_imports" not in (ROOT / "pyproject.toml").read_text(encoding="utf-8")


@pytest.mark.parametrize(("file", "line", "contract"), BREACHES, ids=[f"{file}: {line}" for file, line, _ in BREACHES])
def test_a_breach_is_refused(copied: Path, file: str, line: str, contract: str) -> None:
    """One import against an arrow, and the contract that forbids it is reported broken."""
    broken = copied / file
    broken.write_text(f"{broken.read_text(encoding='utf-8')}\n{line}\n", encoding="utf-8")
    said = lint(copied)
    assert said.returncode != 0
    assert f"{contract} BROKEN" in said.stdout, said.stdout


def test_patterns_see_of_the_law_only_the_pattern_contract() -> None:
    """A Pattern knows what it is handed, and no rule about when it may run."""
    seen = {name for file in (ROOT / "patterns").rglob("*.py") for name in imports(file) if name.split(".")[0] == "law"}
    assert seen <= WHAT_PATTERNS_SEE


def test_nothing_reaches_for_the_process_or_the_tests() -> None:
    """`worker.py` imports the house; the house never imports it, nor tests, nor benchmarks."""
    reaching = [
        f"{file.relative_to(ROOT)}: {name}"
        for package in HOUSE
        for file in (ROOT / package).rglob("*.py")
        for name in imports(file)
        if name.split(".")[0] in OUTSIDE
    ]
    assert not reaching


def test_every_package_says_in_one_docstring_what_it_is_for() -> None:
    """No `__init__.py` re-exports anything: one docstring, and in `nightbell` the guard over our names."""
    for package in HOUSE:
        body = ast.parse((ROOT / package / "__init__.py").read_text(encoding="utf-8")).body
        assert isinstance(body[0], ast.Expr), package
        assert len(body) == 1 or package == "nightbell", package
