"""The receipt: the marked tests are run, and every obligation is told at each of its boundaries (EVD-2).

An obligation is proven at a boundary by a test that carries its mark and passed; it has failed where one such test failed
or never ended; everything else is not proven, and stands in the list like the rest. Nothing here knows what an obligation
means: it believes the marks. A receipt that is killed, before or while it writes, leaves the one before it whole.
"""

import dataclasses
import importlib.util
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import tomllib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from law.obligations import BOUNDARIES, Obligation, chosen
from nightbell.accounts import descent
from nightbell.problems import StackProblem
from nightbell.receipt_origin import Commit, commit_of, same_commit, versions

ROOT = Path(__file__).resolve().parents[1]
PROVEN, FAILED, NOT_PROVEN = "proven", "failed", "not proven"
STATES = (PROVEN, FAILED, NOT_PROVEN)
PASSED, UNFINISHED = "passed", "unfinished"
BAD = {FAILED, UNFINISHED}
STANDARD_ERROR = 2
"""Its number: standard output is for the answer alone, and a test may have put another object in its place."""


@dataclass(frozen=True, slots=True)
class Ran:
    """One run of one marked test: its marks, how it ended (passed, failed, skipped, unfinished) and how long it took."""

    nodeid: str
    marks: tuple[tuple[str, str], ...]
    outcome: str
    seconds: float

    @property
    def test(self) -> str:
        """The test without its parameters."""
        return self.nodeid.partition("[")[0]


@dataclass(frozen=True, slots=True)
class Shown:
    """What one test says of one obligation at one boundary: in how many cases it ended how."""

    test: str
    outcomes: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Finding:
    """One obligation at one boundary."""

    boundary: str
    state: str
    tests: tuple[Shown, ...]


@dataclass(frozen=True, slots=True)
class Receipt:
    """The whole of it, in the covenant's order. `broken` are the modules of tests that could not be read."""

    started_at: datetime
    duration_seconds: float
    only: tuple[str, ...]
    versions: Mapping[str, str | None]
    commit: Commit | None
    findings: tuple[tuple[Obligation, tuple[Finding, ...]], ...]
    broken: tuple[str, ...]
    tests: tuple[Ran, ...]

    @property
    def is_clean(self) -> bool:
        """Whether nothing that was run failed. What is not proven is no failure."""
        return not self.broken and all(one.outcome not in BAD for one in self.tests)

    @property
    def totals(self) -> dict[str, int]:
        """How many obligations at boundaries are in which state."""
        counted = Counter(finding.state for _, found in self.findings for finding in found)
        return {state: counted[state] for state in STATES}


def tests_beside() -> Path:
    """The tests of the checkout that this package runs from. Raises StackProblem where it is installed without them."""
    try:
        project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["name"]
    except (OSError, ValueError, KeyError):
        project = None
    if project != "nightbell" or not (ROOT / "tests").is_dir():
        sentence = (
            "The tests that a receipt is made of are not installed with the package. Run `nightbell receipt`, or "
            "`make receipt`, in a checkout of the repository; or name a folder of marked tests with --tests."
        )
        raise StackProblem("no_tests", sentence)
    return ROOT / "tests"


def take_receipt(tests: Path, only: Sequence[str] = ()) -> Receipt:
    """Run the marked tests of a folder, all or those of some groups and obligations; several minutes for the whole
    covenant. What pytest prints goes to standard error. Raises BadInput about `only`, StackProblem where pytest is missing
    or cannot even begin."""
    asked = chosen(only)
    if importlib.util.find_spec("pytest") is None:
        raise StackProblem(
            "no_pytest", "The receipt runs tests, and pytest is not installed here; `make setup` does it."
        )
    started_at, began, commit = datetime.now(UTC), time.monotonic(), commit_of(tests.resolve().parent)
    with tempfile.TemporaryDirectory(prefix="nightbell-receipt-") as folder:
        record = Path(folder) / "record"
        status = run_tests(tests.resolve(), [one.covenant_id for one in asked], record)
        ran, broken = read_record(record, status)
    return Receipt(
        started_at=started_at,
        duration_seconds=round(time.monotonic() - began, 1),
        only=tuple(name.strip().upper() for name in only),
        versions=versions(),
        commit=same_commit(commit, commit_of(tests.resolve().parent)),
        findings=tuple((one, findings(one, ran)) for one in asked),
        broken=broken,
        tests=ran,
    )


def run_tests(tests: Path, only: Iterable[str], record: Path) -> int:
    """pytest's exit code. It is interrupted, and cleans up after itself, when this process dies."""
    command = [sys.executable, "-m", "pytest", "-q", f"--rootdir={tests.parent}", "-p", "nightbell.receipt_plugin"]
    command += ["-p", "no:cacheprovider", "--continue-on-collection-errors", f"--receipt-record={record}"]
    command += [f"--receipt-only={covenant_id}" for covenant_id in only]
    environment = {name: value for name, value in os.environ.items() if name != "PYTEST_ADDOPTS"}
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    with subprocess.Popen(
        [*command, str(tests)],
        cwd=tests.parent,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=STANDARD_ERROR,
        preexec_fn=descent(None, signal.SIGINT),
    ) as child:
        return child.wait()


def read_record(record: Path, status: int) -> tuple[tuple[Ran, ...], tuple[str, ...]]:
    """What ran, by name, and what could not be read. Raises StackProblem where no test could have begun."""
    lines = [json.loads(line) for line in record.read_text(encoding="utf-8").splitlines()] if record.exists() else []
    told = {kind: [line for line in lines if line["kind"] == kind] for kind in ("refused", "begun", "broken")}
    if told["refused"]:
        raise StackProblem("tests_refused", told["refused"][0]["sentence"] + ".")
    if not told["begun"]:
        sentence = f"pytest ended with {status} before any test began; what it said stands on standard error."
        raise StackProblem("tests_unreadable", sentence)
    return tuple(ran_of(lines)), tuple(sorted({line["nodeid"] for line in told["broken"]}))


def ran_of(lines: Sequence[Mapping[str, Any]]) -> Iterable[Ran]:
    """Every test that was collected, by name; one without an end is unfinished."""
    ended = {line["nodeid"]: line for line in lines if line["kind"] == "ended"}
    collected = {line["nodeid"]: line["marks"] for line in lines if line["kind"] == "collected"}
    for nodeid, marks in sorted(collected.items()):
        end = ended.get(nodeid, {"outcome": UNFINISHED, "seconds": 0.0})
        yield Ran(nodeid, tuple((covenant_id, at) for covenant_id, at in marks), end["outcome"], end["seconds"])


def findings(obligation: Obligation, ran: Sequence[Ran]) -> tuple[Finding, ...]:
    """One obligation at its three boundaries."""
    return tuple(
        judged(boundary, [one for one in ran if (obligation.covenant_id, boundary) in one.marks])
        for boundary in BOUNDARIES
    )


def judged(boundary: str, ran: Sequence[Ran]) -> Finding:
    """Failed where anything failed; proven where something passed; otherwise, skipped tests included, not proven."""
    by_test: dict[str, Counter[str]] = {}
    for one in ran:
        by_test.setdefault(one.test, Counter())[one.outcome] += 1
    outcomes = {one.outcome for one in ran}
    state = FAILED if outcomes & BAD else PROVEN if PASSED in outcomes else NOT_PROVEN
    shown = (Shown(test, dict(sorted(counted.items()))) for test, counted in sorted(by_test.items()))
    return Finding(boundary, state, tuple(shown))


def document(receipt: Receipt) -> dict[str, Any]:
    """The receipt as receipt.json has it."""
    return {
        "started_at": receipt.started_at,
        "duration_seconds": receipt.duration_seconds,
        "only": receipt.only,
        "versions": receipt.versions,
        "commit": receipt.commit.commit if receipt.commit else None,
        "changed_since_commit": receipt.commit.changed if receipt.commit else None,
        "totals": {
            **receipt.totals,
            "obligations": len(receipt.findings),
            "tests": dict(sorted(Counter(one.outcome for one in receipt.tests).items())),
        },
        "obligations": [
            {
                "id": obligation.covenant_id,
                "sentence": obligation.sentence,
                "boundaries": {
                    one.boundary: {"state": one.state, "tests": [dataclasses.asdict(shown) for shown in one.tests]}
                    for one in found
                },
            }
            for obligation, found in receipt.findings
        ],
        "broken": receipt.broken,
        "tests": [
            {**dataclasses.asdict(one), "marks": [{"obligation": name, "boundary": at} for name, at in one.marks]}
            for one in receipt.tests
        ],
    }
