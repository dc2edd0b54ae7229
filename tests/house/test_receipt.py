"""The receipt believes the marks: here is what makes them worth believing, and what it says of tests that fail (EVD-2)."""

import ast
import json
import re
import shutil
import signal
import subprocess
import sys
import tomllib
from html.parser import HTMLParser
from pathlib import Path

import pytest

from law.obligations import BOUNDARIES, COVENANT, GROUPS, SENTENCES

ROOT = Path(__file__).resolve().parents[2]
TESTS = sorted((ROOT / "tests").rglob("test_*.py"))
MARKED = "import os, signal, pytest\n@pytest.mark.obligation('{0}', boundary='{1}')\ndef test_{2}():\n    {3}\n"


def take(*arguments: str, folder: Path = ROOT) -> "subprocess.CompletedProcess[str]":
    """The command in a process of its own."""
    command = [sys.executable, "-m", "nightbell", "receipt", *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=150, check=False)


def marks(file: Path) -> list[tuple[int, tuple[object, ...], dict[str | None, object]]]:
    """Every obligation mark of a file: its line, its plain arguments and its named ones."""
    calls = (node for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))) if isinstance(node, ast.Call))
    return [
        (
            call.lineno,
            tuple(ast.literal_eval(argument) for argument in call.args),
            {named.arg: ast.literal_eval(named.value) for named in call.keywords},
        )
        for call in calls
        if ast.unparse(call.func) == "pytest.mark.obligation"
    ]


@pytest.fixture
def house(tmp_path: Path) -> Path:
    """A folder of marked tests that pass."""
    folder = tmp_path / "tests"
    folder.mkdir()
    (folder / "test_one.py").write_text(MARKED.format("WIN-1", "ordinary", "late", "pass"), encoding="utf-8")
    return folder


@pytest.fixture
def out(tmp_path: Path) -> Path:
    """A folder that is not there yet."""
    return tmp_path / "made" / "receipt"


class Reader(HTMLParser):
    """Reads a page back: the words of each row by its id, and every element there is."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.rows: dict[str, list[str]] = {}
        self.elements: set[str] = set()
        self.row = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.add(tag)
        if tag == "tr":
            self.row = dict(attrs).get("id") or ""

    def handle_data(self, data: str) -> None:
        self.rows.setdefault(self.row, []).append(data)


@pytest.mark.parametrize("file", TESTS, ids=lambda file: str(file.relative_to(ROOT)))
def test_every_mark_names_an_obligation_and_a_boundary(file: Path) -> None:
    """One number of the covenant, and one of ordinary, failure, restart; anything else would prove nothing unseen."""
    wrong = [
        f"{file.name}:{line}: {plain} {named}"
        for line, plain, named in marks(file)
        if len(plain) != 1 or plain[0] not in SENTENCES or named.get("boundary") not in BOUNDARIES or len(named) != 1
    ]
    assert not wrong


def test_the_mark_is_declared_and_strict() -> None:
    """A mark that is misspelt is an error of collection."""
    options = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["pytest"]["ini_options"]
    assert any(mark.startswith("obligation(covenant_id, boundary)") for mark in options["markers"])
    assert "--strict-markers" in options["addopts"]


def test_the_covenant_is_whole_and_every_number_in_the_house_is_in_it() -> None:
    """Groups in order, numbered from one without a gap; no error and no comment cites a number that is not there."""
    assert [one.group for one in COVENANT] == sorted((one.group for one in COVENANT), key=list(GROUPS).index)
    for group in GROUPS:
        numbers = [one.covenant_id for one in COVENANT if one.group == group]
        assert numbers == [f"{group}-{number}" for number in range(1, len(numbers) + 1)]
    assert len(set(SENTENCES.values())) == len(SENTENCES)
    cited = re.compile(rf"\b(?:{'|'.join(GROUPS)})-\d+\b")
    houses = ("law", "store", "workflows", "activities", "patterns", "nightbell")
    assert not {
        f"{file.relative_to(ROOT)}: {name}"
        for package in houses
        for file in (ROOT / package).rglob("*.py")
        for name in cited.findall(file.read_text(encoding="utf-8"))
        if name not in SENTENCES
    }


@pytest.mark.obligation("EVD-2", boundary="ordinary")
def test_evd_2_a_receipt_of_real_tests_lists_what_is_not_proven_as_plainly(out: Path) -> None:
    """One obligation of selection, and one that no test is marked with: what no test shows is `not proven` in both files."""
    said = take("--out", str(out), "--only", "sel-3", "--only", "IDN-6", "--json")
    assert said.returncode == 0, said.stderr
    written = json.loads((out / "receipt.json").read_text(encoding="utf-8"))
    assert json.loads(said.stdout) == written
    shown, missing = written["obligations"]
    assert (shown["id"], missing["id"]) == ("SEL-3", "IDN-6")
    assert shown["boundaries"]["ordinary"]["state"] == "proven"
    assert shown["boundaries"]["ordinary"]["tests"]
    assert {boundary["state"] for boundary in missing["boundaries"].values()} == {"not proven"}
    assert written["totals"]["proven"] + written["totals"]["not proven"] == 6
    assert {mark["obligation"] for one in written["tests"] for mark in one["marks"]} >= {"SEL-3"}
    assert [one["nodeid"] for one in written["tests"]] == sorted(one["nodeid"] for one in written["tests"])
    assert all(written["versions"].values())
    assert sorted(path.name for path in out.iterdir()) == ["receipt.html", "receipt.json"]
    page = Reader((out / "receipt.html").read_text(encoding="utf-8"))
    assert page.rows["IDN-6"].count("not proven") == 3
    assert "proven" in page.rows["SEL-3"]
    assert not page.elements & {"script", "link", "img", "iframe"}


@pytest.mark.obligation("EVD-2", boundary="failure")
@pytest.mark.parametrize(
    ("body", "outcome"),
    [("assert False", "failed"), ("os._exit(0)", "unfinished"), ("os.kill(os.getpid(), signal.SIGKILL)", "unfinished")],
)
def test_evd_2_a_test_that_fails_or_never_ends_is_said_to_have_failed(
    house: Path, out: Path, body: str, outcome: str
) -> None:
    """However it went down: `failed`, exit code 3, beside what is proven and what is not."""
    (house / "test_two.py").write_text(MARKED.format("WIN-2", "failure", "two", body), encoding="utf-8")
    said = take("--out", str(out), "--tests", str(house), "--only", "WIN")
    assert said.returncode == 3, said.stderr
    written = json.loads((out / "receipt.json").read_text(encoding="utf-8"))
    states = {
        (one["id"], boundary): found["state"]
        for one in written["obligations"]
        for boundary, found in one["boundaries"].items()
    }
    assert states.pop(("WIN-1", "ordinary")) == "proven"
    assert states.pop(("WIN-2", "failure")) == "failed"
    assert set(states.values()) == {"not proven"}
    assert written["totals"]["tests"] == {outcome: 1, "passed": 1}
    assert "failed: WIN-2 failure\n" in said.stdout
    assert "not proven: WIN-2 ordinary, restart\n" in said.stdout
    page = Reader((out / "receipt.html").read_text(encoding="utf-8"))
    assert "failed" in page.rows["WIN-2"]


@pytest.mark.obligation("EVD-2", boundary="restart")
def test_evd_2_a_receipt_that_is_killed_leaves_the_one_before_it_whole(house: Path, out: Path) -> None:
    """kill -9 while its tests run: the older receipt stands, nothing half written beside it; the next replaces it."""
    assert take("--out", str(out), "--tests", str(house)).returncode == 0
    before = (out / "receipt.json").read_bytes()
    killing = MARKED.format("WIN-2", "restart", "two", "os.kill(os.getppid(), signal.SIGKILL)")
    (house / "test_two.py").write_text(killing, encoding="utf-8")
    assert take("--out", str(out), "--tests", str(house)).returncode == -signal.SIGKILL
    assert (out / "receipt.json").read_bytes() == before
    assert sorted(path.name for path in out.iterdir()) == ["receipt.html", "receipt.json"]
    (house / "test_two.py").write_text(MARKED.format("WIN-2", "restart", "two", "pass"), encoding="utf-8")
    assert take("--out", str(out), "--tests", str(house)).returncode == 0
    assert json.loads((out / "receipt.json").read_text(encoding="utf-8"))["totals"]["proven"] == 2


def test_a_skipped_test_proves_nothing_and_a_broken_module_is_a_failure(house: Path, out: Path) -> None:
    """Skipped is not proven; a module that cannot be imported may hide any mark, so it ends with 3 and is named."""
    (house / "test_two.py").write_text(MARKED.format("WIN-2", "failure", "two", "pytest.skip('x')"), encoding="utf-8")
    assert take("--out", str(out), "--tests", str(house), "--only", "WIN-2").returncode == 0
    written = json.loads((out / "receipt.json").read_text(encoding="utf-8"))
    assert written["totals"]["not proven"] == 3
    assert written["totals"]["tests"] == {"skipped": 1}
    (house / "test_three.py").write_text("import nothing_of_this_name\n", encoding="utf-8")
    said = take("--out", str(out), "--tests", str(house), "--json")
    assert said.returncode == 3
    assert json.loads(said.stdout)["broken"] == ["tests/test_three.py"]


def test_what_a_test_is_called_is_text_on_the_page(house: Path, out: Path) -> None:
    """A folder called like an element draws nothing."""
    hostile = house / "<script>alert(1)<"
    hostile.mkdir()
    shutil.move(house / "test_one.py", hostile / "test_&amp;.py")
    assert take("--out", str(out), "--tests", str(house)).returncode == 0
    page = Reader((out / "receipt.html").read_text(encoding="utf-8"))
    assert "script" not in page.elements
    assert "test_&amp;.py::test_late" in page.rows["WIN-1"]


def test_a_mark_that_names_nothing_ends_the_receipt(house: Path, out: Path) -> None:
    """A receipt over marks that say nothing would be a receipt of less than it seems."""
    (house / "test_two.py").write_text(MARKED.format("WIN-99", "failure", "two", "pass"), encoding="utf-8")
    said = take("--out", str(out), "--tests", str(house), "--json")
    assert said.returncode == 4
    error = json.loads(said.stdout)["error"]
    assert error["code"] == "tests_refused"
    assert "WIN-99" in error["sentence"]
    assert not out.exists()


@pytest.mark.parametrize("place", ["file", "file/below"])
def test_a_place_that_cannot_be_written_is_said_before_anything_runs(house: Path, tmp_path: Path, place: str) -> None:
    """Usage, the option by its name, and no test was run for it."""
    (tmp_path / "file").write_text("kept", encoding="utf-8")
    (house / "test_one.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\n", encoding="utf-8")
    said = take("--out", str(tmp_path / place), "--tests", str(house))
    assert said.returncode == 2
    assert "--out" in said.stderr
    assert not (tmp_path / "ran").exists()
    assert (tmp_path / "file").read_text(encoding="utf-8") == "kept"


def test_an_obligation_that_there_is_not_is_usage(house: Path, out: Path) -> None:
    """The option and the name are in the sentence."""
    said = take("--out", str(out), "--tests", str(house), "--only", "WIN-99")
    assert said.returncode == 2
    assert "--only" in said.stderr
    assert "WIN-99" in said.stderr
    assert not out.exists()


def test_an_installed_package_says_that_it_has_no_tests(tmp_path: Path, out: Path) -> None:
    """Away from a checkout there is a sentence, also where somebody else's tests lie beside the package."""
    for package in ("law", "store", "workflows", "activities", "patterns", "nightbell"):
        shutil.copytree(ROOT / package, tmp_path / package, ignore=shutil.ignore_patterns("__pycache__"))
    (tmp_path / "tests").mkdir()
    said = take("--out", str(out), folder=tmp_path)
    assert said.returncode == 4, said.stderr
    assert "no_tests" in said.stderr
    assert not out.exists()


def test_a_receipt_names_the_commit_that_it_began_with(house: Path, out: Path) -> None:
    """Committed and clean, it is that commit; a tree that changes while its tests run is said to have changed."""
    tree = house.parent
    identity = ["-c", "user.name=n", "-c", "user.email=e@example.org", "-c", "commit.gpgsign=false"]
    git = ["git", "-C", str(tree), *identity]
    for arguments in (["init", "-q"], ["add", "tests"], ["commit", "-q", "-m", "one"]):
        subprocess.run([*git, *arguments], check=True, capture_output=True)
    head = subprocess.run([*git, "rev-parse", "HEAD"], check=True, capture_output=True, text=True).stdout.strip()
    assert take("--out", str(out), "--tests", str(house)).returncode == 0
    written = json.loads((out / "receipt.json").read_text(encoding="utf-8"))
    assert (written["commit"], written["changed_since_commit"]) == (head, False)
    (house / "test_one.py").write_text(
        MARKED.format("WIN-1", "ordinary", "late", "open(__file__, 'a').write('#')"), encoding="utf-8"
    )
    subprocess.run([*git, "commit", "-q", "-a", "-m", "two"], check=True, capture_output=True)
    assert take("--out", str(out), "--tests", str(house)).returncode == 0
    written = json.loads((out / "receipt.json").read_text(encoding="utf-8"))
    assert written["changed_since_commit"] is True
