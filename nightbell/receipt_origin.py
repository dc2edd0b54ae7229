"""Where a receipt comes from: the versions of what was run, and the commit of the checkout it was run in (EVD-2).

What cannot be found out is null, never guessed: an environment without the servers' wheels, a tree without git.
"""

import importlib.metadata
import platform
import re
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from nightbell.problems import StackProblem
from nightbell.wheels import POSTGRES_WHEEL, TEMPORAL_WHEEL, Wheel, find_binary

ASKED_FOR_SECONDS = 20.0


@dataclass(frozen=True, slots=True)
class Commit:
    """What was checked out, and whether a file that git follows differs from it."""

    commit: str
    changed: bool


def versions() -> dict[str, str | None]:
    """Nightbell's, Python's, and those of the servers that the tests start. Raises nothing."""
    return {
        "nightbell": importlib.metadata.version("nightbell"),
        "python": platform.python_version(),
        "postgres": server_version(POSTGRES_WHEEL, r"\(PostgreSQL\) (\S+)"),
        "temporal": server_version(TEMPORAL_WHEEL, r"Server ([^\s,)]+)"),
        "temporal_sdk": importlib.metadata.version("temporalio"),
    }


def server_version(wheel: Wheel, pattern: str) -> str | None:
    """What the wheel's binary says its version is."""
    try:
        binary = find_binary(wheel)
    except StackProblem:
        return None
    found = re.search(pattern, said_by([str(binary), "--version"]) or "")
    return found[1] if found else None


def commit_of(root: Path) -> Commit | None:
    """The commit checked out at this very folder; a repository further up says nothing about it."""
    git = ["git", "-C", str(root)]
    if (said := said_by([*git, "rev-parse", "HEAD", "--show-toplevel"])) is None:
        return None
    commit, _, top = said.strip().partition("\n")
    if Path(top).resolve() != root.resolve():
        return None
    return Commit(commit, bool(said_by([*git, "status", "--porcelain", "--untracked-files=no"])))


def same_commit(before: Commit | None, after: Commit | None) -> Commit | None:
    """What the run began with; a tree that was another when it ended counts as changed."""
    return before if before is None or before == after else Commit(before.commit, changed=True)


def said_by(command: Sequence[str]) -> str | None:
    """What a command prints, or None where it is missing or refuses."""
    try:
        ran = subprocess.run(command, capture_output=True, text=True, timeout=ASKED_FOR_SECONDS, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return ran.stdout if ran.returncode == 0 else None
