"""Words we do not use, each with the right one in the message (STYLE 5, 8; CLS-1, OCC-7, WIN-2)."""

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
HOUSE = ("law", "store", "activities", "workflows", "patterns", "nightbell")
DRAWERS = {"common", "helper", "helpers", "manager", "misc", "models", "service", "shared", "types", "util", "utils"}
CLASSES = {
    "immediate": "`foreground`: eligible now and preferred, never guaranteed to start at once",
    "remote": "an origin (CLS-1): where it came from is provenance, not a service class",
}
BARE_ID = re.compile(r"(?<!trigger_)(?<!Trigger)(occurrence_id\b|OccurrenceId\b)")
STALE_CLOCK = re.compile(
    r"(?<![\w.])(now\s*\(\s*\)|current_timestamp|localtimestamp|statement_timestamp|transaction_timestamp)"
    r"|\bfunc\.now\b|\bdatetime\.now\b|\btime\.time\b",
    re.IGNORECASE,
)
STATEMENT = re.compile(r"^\s*(SELECT|INSERT|UPDATE|DELETE|MERGE|WITH|ALTER|CREATE|DROP|TRUNCATE|GRANT|CALL|LOCK)\b")
EXECUTORS = {"execute", "executemany", "exec_driver_sql", "stream", "copy"}


def sources(*packages: str, suffixes: tuple[str, ...] = (".py",)) -> list[Path]:
    """The files of these packages with one of these endings."""
    return sorted(
        file
        for package in packages
        for file in (ROOT / package).rglob("*")
        if file.is_file() and file.suffix in suffixes
    )


def bare_ids(text: str) -> Iterator[str]:
    """Every `occurrence_id` that does not say which Occurrence it means."""
    for number, line in enumerate(text.splitlines(), 1):
        if BARE_ID.search(line):
            yield f"{number}: say trigger_occurrence_id (or station_attempt_id): {line.strip()}"


def class_words(text: str) -> Iterator[str]:
    """Every name or whole string that makes a service class of a word that is none."""
    for node in ast.walk(ast.parse(text)):
        word = (
            node.value if isinstance(node, ast.Constant) else getattr(node, "id", None) or getattr(node, "attr", None)
        )
        if isinstance(word, str) and word.lower() in CLASSES:
            yield f"{getattr(node, 'lineno', 0)}: not `{word}` but {CLASSES[word.lower()]}"


def stale_clocks(text: str, suffix: str) -> Iterator[str]:
    """Every clock in a store's code that is not the sample of the turn; what only talks about one is let be."""
    for number, line in code_lines(text, suffix):
        if found := STALE_CLOCK.search(line):
            yield f"{number}: not `{found[0]}` but the turn's sample (`t.at`, nightbell.trusted_now()): {line.strip()}"


def code_lines(text: str, suffix: str) -> Iterator[tuple[int, str]]:
    """The lines of a file without comments and docstrings, numbered."""
    talk = docstring_lines(text) if suffix == ".py" else set[int]()
    comment = "#" if suffix == ".py" else "--"
    for number, line in enumerate(text.splitlines(), 1):
        if number not in talk:
            yield number, line.split(comment)[0]


def docstring_lines(text: str) -> set[int]:
    """The lines of every string that stands as a statement of its own."""
    return {
        line
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
        for line in range(node.lineno, (node.end_lineno or node.lineno) + 1)
    }


def formatted_statements(text: str) -> Iterator[str]:
    """Every statement that is put together as text: by an f-string that begins like one, or on its way to be executed."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.JoinedStr) and STATEMENT.match(beginning(node)):
            yield f"{node.lineno}: a statement is constant text with parameters, never an f-string"
        executed = node.args[:1] if isinstance(node, ast.Call) and getattr(node.func, "attr", "") in EXECUTORS else []
        if any(isinstance(argument, ast.JoinedStr | ast.BinOp) for argument in executed):
            yield f"{node.lineno}: what is executed is constant text with parameters"


def beginning(text: ast.JoinedStr) -> str:
    """The constant text that an f-string begins with."""
    first = text.values[0] if text.values else None
    return first.value if isinstance(first, ast.Constant) and isinstance(first.value, str) else ""


@pytest.mark.obligation("OCC-7", boundary="ordinary")
def test_occ_7_an_occurrence_is_named_by_its_trigger() -> None:
    """No bare `occurrence_id`: it could be taken for another id, and joined with it."""
    assert not [
        f"{file.relative_to(ROOT)}:{found}"
        for file in sources(*HOUSE, suffixes=(".py", ".sql", ".toml"))
        for found in bare_ids(file.read_text(encoding="utf-8"))
    ]


@pytest.mark.obligation("CLS-1", boundary="ordinary")
def test_cls_1_there_is_no_class_called_immediate_or_remote() -> None:
    """`immediate` promises what nobody can keep; `remote` is an origin."""
    assert not [
        f"{file.relative_to(ROOT)}:{found}"
        for file in sources(*HOUSE)
        for found in class_words(file.read_text(encoding="utf-8"))
    ]


@pytest.mark.obligation("WIN-2", boundary="ordinary")
def test_win_2_the_store_has_one_source_of_time() -> None:
    """No `now()`, no `current_timestamp`, no clock of this process: only the sample taken under the lock."""
    assert not [
        f"{file.relative_to(ROOT)}:{found}"
        for file in sources("store", suffixes=(".py", ".sql"))
        for found in stale_clocks(file.read_text(encoding="utf-8"), file.suffix)
    ]


def test_the_store_puts_no_statement_together_as_text() -> None:
    """No SQL by f-string."""
    assert not [
        f"{file.relative_to(ROOT)}:{found}"
        for file in sources("store")
        for found in formatted_statements(file.read_text(encoding="utf-8"))
    ]


def test_no_module_is_a_drawer_or_hides_one_of_pythons() -> None:
    """A module is named for its promise; none for a drawer, none like a module of the standard library."""
    stems = {file.relative_to(ROOT): file.stem for file in sources(*HOUSE) if not file.stem.startswith("__")}
    assert not [
        f"{name}: name what it keeps, not where things are put" for name, stem in stems.items() if stem in DRAWERS
    ]
    assert not [f"{name}: Python has a `{stem}`" for name, stem in stems.items() if stem in sys.stdlib_module_names]


@pytest.mark.obligation("OCC-7", boundary="failure")
@pytest.mark.parametrize(
    "line", ["occurrence_id = 1", "row.occurrence_id", "the_occurrence_id: UUID", "x: OccurrenceId"]
)
def test_a_bare_id_is_seen(line: str) -> None:
    """Whatever stands around it, a bare id is seen, and the message names the right word."""
    assert "say trigger_occurrence_id" in next(bare_ids(line))


@pytest.mark.parametrize("line", ["trigger_occurrence_id = 1", "x: TriggerOccurrenceId"])
def test_a_trigger_occurrence_id_is_let_be(line: str) -> None:
    """The right word is no offence."""
    assert not list(bare_ids(line))


@pytest.mark.parametrize("code", ["x = 'immediate'", "ServiceClass.REMOTE", "remote = 1"])
def test_a_class_that_is_none_is_seen(code: str) -> None:
    """As a text, as a member, as a name."""
    assert list(class_words(code))


@pytest.mark.obligation("WIN-2", boundary="failure")
@pytest.mark.parametrize(
    "code",
    [
        "text('SELECT now()')",
        "sa.func.now()",
        "X = 'DEFAULT CURRENT_TIMESTAMP'",
        "at = datetime.now(UTC)",
        "time.time()",
    ],
)
def test_a_stale_clock_is_seen(code: str) -> None:
    """In SQL, in the query builder, and in Python."""
    assert list(stale_clocks(code, ".py"))


@pytest.mark.parametrize("code", ["'SELECT nightbell.trusted_now()'", "'''Never `now()`.'''", "x = 1  # not now()"])
def test_the_trusted_sample_and_talk_about_clocks_are_let_be(code: str) -> None:
    """The one right call, a docstring and a comment are no offence."""
    assert not list(stale_clocks(code, ".py"))


@pytest.mark.parametrize("code", ["f'SELECT {x}'", "c.execute(f'{x} WHERE id = 1')", "c.execute('SELECT ' + x)"])
def test_a_statement_put_together_is_seen(code: str) -> None:
    """As an f-string, and as whatever is put together in the call that executes it."""
    assert list(formatted_statements(code))
