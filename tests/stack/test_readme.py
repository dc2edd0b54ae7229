"""The README's first session, typed as it stands there: what it prints is what it says it prints."""

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
COMMAND = ".venv/bin/nightbell"
RELEASE = re.compile(r"\b20[0-9]{2}[a-z]\b")


def block(language: str, mark: str) -> str:
    """The one fenced block of this language that holds `mark`."""
    found = [one for one in re.findall(rf"^```{language}\n(.*?)^```", README, re.MULTILINE | re.DOTALL) if mark in one]
    assert len(found) == 1
    return found[0]


@pytest.fixture
def environment(tmp_path: Path) -> Iterator[dict[str, str]]:
    """A home of its own, whose stack is stopped however the session ends."""
    named = {**os.environ, "NIGHTBELL_HOME": str(tmp_path / "home")}
    yield named
    subprocess.run([sys.executable, "-m", "nightbell", "down"], env=named, cwd=ROOT, check=True, capture_output=True)


def typed(line: str, environment: dict[str, str]) -> str:
    """What one line prints."""
    words = shlex.split(line, comments=True)
    assert words[0] == COMMAND
    ran = subprocess.run(
        [sys.executable, "-m", "nightbell", *words[1:]],
        env=environment,
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    )
    return ran.stdout


def test_the_preview_prints_what_the_readme_shows(environment: dict[str, str]) -> None:
    """To the letter, but for the release of the zone data that happens to be installed."""
    prompt, shown = block("console", "preview").split("\n", 1)
    printed = typed(prompt.removeprefix("$ "), environment)
    assert [RELEASE.sub("", line).rstrip() for line in printed.splitlines()] == [
        RELEASE.sub("", line).rstrip() for line in shown.splitlines()
    ]


@pytest.mark.obligation("OCC-1", boundary="ordinary")
def test_the_first_session_goes_as_it_is_told(environment: dict[str, str]) -> None:
    """up, apply, offer twice, occurrences, explain, down: the second offer finds the first one's Occurrence."""
    export, *lines = block("sh", "up --detach").splitlines()
    assert export == "export NIGHTBELL_HOME=$PWD/.nightbell"
    printed: list[str] = []
    for line in lines:
        known = printed[-1].split()[-1] if " ID " in line else ""
        printed.append(typed(line.replace(" ID ", f" {known} "), environment))
    started, applied, first, second, listed, explained, stopped = printed
    assert "running" in started
    assert "home/nightly-rite" in applied
    assert "home/bridge" in applied
    assert "made" in first
    assert "known already" in second
    assert first.split()[-1] == second.split()[-1] == listed.split()[-1]
    assert "event:bridge:hello-1" in explained
    assert "stopped" in stopped
