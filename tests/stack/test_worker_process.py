"""The worker process where something is not there yet: it says what it waits for, and ends when it is told to."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from nightbell.temporal_server import TemporalServer

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("namespace", "database", "waits_for"),
    [("no-such-namespace", "", "no-such-namespace"), ("default", "postgresql://127.0.0.1:1/nothing", "PostgreSQL")],
    ids=["a namespace", "a store"],
)
def test_a_worker_waits_for_what_is_not_there_and_says_so(
    temporal_server: TemporalServer, database_url: str, tmp_path: Path, namespace: str, database: str, waits_for: str
) -> None:
    """One line says what is waited for; the process lives, and SIGTERM ends it in order."""
    environment = {
        **os.environ, "NIGHTBELL_HOME": str(tmp_path), "NIGHTBELL_DATABASE_URL": database or database_url,
        "TEMPORAL_ADDRESS": temporal_server.address, "TEMPORAL_NAMESPACE": namespace,
        "NIGHTBELL_TASK_QUEUE": f"waits-{namespace}",
    }  # fmt: skip
    log = tmp_path / "log"
    with log.open("wb") as written:
        command = [sys.executable, str(ROOT / "worker.py"), "--json"]
        worker = subprocess.Popen(command, env=environment, stderr=written, stdout=subprocess.PIPE, cwd=ROOT)
    try:
        deadline = time.monotonic() + 40
        while not ("waiting: " in (said := log.read_text(encoding="utf-8")) and waits_for in said):
            assert time.monotonic() < deadline, said
            assert worker.poll() is None, said
            time.sleep(0.1)
        assert "Traceback" not in said
        worker.send_signal(signal.SIGTERM)
        printed, _ = worker.communicate(timeout=20)
        assert worker.returncode == 0
        assert json.loads(printed)["state"] == "stopped"
    finally:
        worker.kill()
        worker.wait()


def test_a_worker_without_servers_says_so_and_ends_with_four(tmp_path: Path) -> None:
    """No stack, no settings: a sentence, not a traceback."""
    named = {name: value for name, value in os.environ.items() if not name.startswith(("NIGHTBELL_", "TEMPORAL_"))}
    ran = subprocess.run(
        [sys.executable, str(ROOT / "worker.py")], env={**named, "NIGHTBELL_HOME": str(tmp_path)}, cwd=ROOT,
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert ran.returncode == 4
    assert ran.stderr.startswith("not_running: ")
