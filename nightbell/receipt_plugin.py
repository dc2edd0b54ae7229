"""The part of the receipt that runs inside pytest: which marked tests there are, and how each of them ended (EVD-2).

Loaded by name (`-p nightbell.receipt_plugin`) in a process of its own, and imported by nothing else: pytest is no
requirement of the house. Each line of the record is whole JSON and is flushed as it is written, so a run that is killed
leaves what it had found, and a test that was collected without an outcome is one that never ended.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TextIO

import pytest

from law.obligations import BOUNDARIES, SENTENCES

RECORD, ONLY = "--receipt-record", "--receipt-only"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Where the record is written, and which obligations are asked about."""
    parser.addoption(RECORD, required=True)
    parser.addoption(ONLY, action="append", default=[])


def pytest_configure(config: pytest.Config) -> None:
    """Begin the record, and know the mark also where no pyproject.toml declares it."""
    config.addinivalue_line("markers", "obligation(covenant_id, boundary): what a test shows of the covenant")
    config.pluginmanager.register(
        Recorder(Path(str(config.getoption(RECORD))), {*map(str, config.getoption(ONLY) or [])})
    )


class Recorder:
    """Writes down what is collected and how it ends."""

    def __init__(self, record: Path, only: set[str]) -> None:
        self.file: TextIO = record.open("w", encoding="utf-8")
        self.only = only
        self.ended: dict[str, tuple[str, float]] = {}

    def say(self, kind: str, **fields: object) -> None:
        """One line, at once on its way to the disk."""
        self.file.write(json.dumps({"kind": kind, **fields}) + "\n")
        self.file.flush()

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """A module that cannot be read may hold any of the marked tests: it is a failure."""
        if report.failed:
            self.say("broken", nodeid=report.nodeid)

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        """Keep the tests that carry a mark that is asked about. Raises UsageError about a mark that says nothing."""
        chosen = [item for item in items if any(found in self.only for found, _ in self.marks(item))]
        config.hook.pytest_deselected(items=[item for item in items if item not in set(chosen)])
        items[:] = chosen

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Every test that will be run, before the first of them is."""
        for item in session.items:
            self.say("collected", nodeid=item.nodeid, marks=sorted(set(self.marks(item))))
        self.say("begun")

    def marks(self, item: pytest.Item) -> Iterator[tuple[str, str]]:
        """Obligation and boundary of every mark of a test."""
        for mark in item.iter_markers("obligation"):
            covenant_id, boundary = mark.args[0] if mark.args else None, mark.kwargs.get("boundary")
            if covenant_id not in SENTENCES or boundary not in BOUNDARIES or len(mark.args) != 1:
                sentence = (
                    f"{item.nodeid} carries a mark that names no obligation and boundary: {mark.args} {mark.kwargs}"
                )
                self.say("refused", sentence=sentence)
                raise pytest.UsageError(sentence)
            yield covenant_id, boundary

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Setup, call and teardown are one test: it passed where it was called and nothing failed."""
        outcome, seconds = self.ended.get(report.nodeid, ("passed", 0.0))
        worse = (
            "failed" if "failed" in (outcome, report.outcome) else report.outcome if outcome == "passed" else outcome
        )
        self.ended[report.nodeid] = (worse, seconds + report.duration)
        if report.when == "teardown":
            self.say("ended", nodeid=report.nodeid, outcome=worse, seconds=round(self.ended[report.nodeid][1], 3))
