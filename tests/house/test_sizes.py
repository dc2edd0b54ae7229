"""Functions short enough to hold, files that fit one thought (STYLE 3). These numbers are only ever tightened."""

import ast
import statistics
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
HOUSE = ("law", "store", "activities", "workflows", "patterns", "nightbell")
MEDIAN_LINES_MAX = 10
MOST_LINES_MAX = 30
FUNCTION_LINES_MAX = 45
FILE_LINES_MAX = 400


def modules() -> list[Path]:
    """Every Python file of the six packages."""
    return sorted(file for package in HOUSE for file in (ROOT / package).rglob("*.py"))


def functions(source: str) -> Iterator[tuple[str, int]]:
    """Name and lines of every function, decorators and docstring included."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
            yield node.name, (node.end_lineno or first) - first + 1


@pytest.fixture(scope="module")
def measured() -> list[tuple[str, int]]:
    """Every function of the house with its lines."""
    return [
        (f"{file.relative_to(ROOT)}:{name}", lines)
        for file in modules()
        for name, lines in functions(file.read_text(encoding="utf-8"))
    ]


def test_half_of_the_functions_are_at_most_ten_lines(measured: list[tuple[str, int]]) -> None:
    """The median function is at most ten lines long."""
    assert statistics.median(lines for _, lines in measured) <= MEDIAN_LINES_MAX


def test_nineteen_of_twenty_functions_are_at_most_thirty_lines(measured: list[tuple[str, int]]) -> None:
    """Most functions fit thirty lines."""
    longer = [name for name, lines in measured if lines > MOST_LINES_MAX]
    assert len(longer) <= len(measured) / 20, longer


def test_no_function_is_longer_than_a_screen(measured: list[tuple[str, int]]) -> None:
    """No function is longer than forty-five lines."""
    longer = {name: lines for name, lines in measured if lines > FUNCTION_LINES_MAX}
    assert not longer, f"split these: {longer}"


def test_no_file_holds_more_than_one_thought() -> None:
    """No file is longer than four hundred lines."""
    lengths = {str(file.relative_to(ROOT)): len(file.read_text(encoding="utf-8").splitlines()) for file in modules()}
    longer = {name: lines for name, lines in lengths.items() if lines > FILE_LINES_MAX}
    assert not longer, f"split these: {longer}"


def test_the_ruler_measures_decorators_and_nested_functions() -> None:
    """A decorated function counts from its decorator; a function inside a function counts on its own."""
    source = "@cached\ndef outer():\n    async def inner():\n        pass\n    return inner\n"
    assert sorted(functions(source)) == [("inner", 2), ("outer", 5)]
