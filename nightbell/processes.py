"""Our processes, and nobody else's.

A process is known by its number and the moment it started, and is only signalled after both were checked and it carries
this home in its environment or command line: a number that was reused is never hurt. Children stand in sessions of
their own (a terminal's Ctrl-C reaches the supervisor only) and die with their parent, by the kernel's word where it has
one (Linux), by the next `up` elsewhere.
"""

import os
import signal
import site
import subprocess
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import psutil

from nightbell.accounts import Account, descent
from nightbell.home import Home, ProcessIdentity
from nightbell.problems import StackProblem

HOME_MARK = "NIGHTBELL_HOME"
LOG_BYTES_MAX = 16 * 1024 * 1024


def identify(pid: int) -> ProcessIdentity | None:
    """Who has this number now, or None when nobody living does."""
    try:
        if psutil.Process(pid).status() == psutil.STATUS_ZOMBIE:
            return None
        return ProcessIdentity(pid=pid, started=started(pid))
    except (psutil.NoSuchProcess, OSError):
        return None


def started(pid: int) -> str:
    """When the process started, in a form that a step of the wall clock does not change (boot and ticks on Linux)."""
    boot = Path("/proc/sys/kernel/random/boot_id")
    if boot.exists():
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
        return f"{boot.read_text(encoding='ascii').strip()}:{fields[19]}"
    return f"{psutil.Process(pid).create_time():.2f}"


def is_alive(identity: ProcessIdentity | None) -> bool:
    """Whether this very process still lives; a zombie does not."""
    return identity is not None and identify(identity.pid) == identity


def belongs_to(identity: ProcessIdentity, home: Home) -> bool:
    """Whether this very process lives and carries the home in its environment or command line."""
    try:
        process = psutil.Process(identity.pid)
        command = " ".join(process.cmdline())
        mark = process.environ().get(HOME_MARK)
    except (psutil.Error, OSError):
        return False
    return is_alive(identity) and (mark == str(home.path) or str(home.path) in command)


def send(identity: ProcessIdentity, home: Home, number: signal.Signals) -> bool:
    """Signal the process if it is ours; whether it was."""
    if not belongs_to(identity, home):
        return False
    with suppress(ProcessLookupError):
        os.kill(identity.pid, number)
    return True


def end(identity: ProcessIdentity, home: Home, number: signal.Signals, grace_seconds: float) -> None:
    """Ask a process of this home to stop, wait, and kill it when the grace is over."""
    for attempt, seconds in ((number, grace_seconds), (signal.SIGKILL, 5.0)):
        if not send(identity, home, attempt):
            return
        if wait_gone(identity, seconds):
            return


def wait_gone(identity: ProcessIdentity, seconds: float) -> bool:
    """Wait up to `seconds` for the process to be gone; whether it is."""
    limit = time.monotonic() + seconds
    while is_alive(identity):
        if time.monotonic() > limit:
            return False
        time.sleep(0.02)
    return True


def spawn(
    command: Sequence[str],
    home: Home,
    log_path: Path,
    environment: Mapping[str, str],
    account: Account | None = None,
    death_signal: signal.Signals = signal.SIGTERM,
) -> subprocess.Popen[bytes]:
    """Start a child of this home, its output appended to its log. Raises StackProblem when it cannot be started."""
    roll(log_path)
    try:
        with log_path.open("ab") as log:
            os.chmod(log_path, 0o600)
            return subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd="/",
                env={**environment, HOME_MARK: str(home.path)},
                start_new_session=True,
                preexec_fn=descent(account, death_signal),
            )
    except (OSError, subprocess.SubprocessError) as problem:
        what = str(problem).rstrip(".")
        raise StackProblem("cannot_start", f"{command[0]} cannot be started: {what}.") from problem


def import_path() -> dict[str, str]:
    """What lets another interpreter import us where we are not installed but run from a checkout."""
    root = str(Path(__file__).resolve().parents[1])
    if root in (*site.getsitepackages(), site.getusersitepackages()):
        return {"PYTHONSAFEPATH": "1"}
    known = os.environ.get("PYTHONPATH", "")
    return {"PYTHONSAFEPATH": "1", "PYTHONPATH": os.pathsep.join(part for part in (root, known) if part)}


def roll(log_path: Path) -> None:
    """Put a grown log aside, keeping one older."""
    if log_path.exists() and log_path.stat().st_size > LOG_BYTES_MAX:
        log_path.replace(log_path.with_suffix(".old.log"))


def last_lines(log_path: Path, since_bytes: int = 0, lines_max: int = 8) -> list[str]:
    """The end of a log, at most `lines_max` lines of what was written after `since_bytes`."""
    if not log_path.exists():
        return []
    with log_path.open("rb") as log:
        size = log.seek(0, os.SEEK_END)
        log.seek(max(since_bytes if since_bytes <= size else 0, size - 64_000))
        text = log.read().decode("utf-8", errors="replace")
    return [line for line in text.splitlines() if line.strip()][-lines_max:]


def quote(lines: Sequence[str]) -> str:
    """Log lines as part of a sentence."""
    return (
        " Its last words: " + " | ".join(line.strip() for line in lines) if lines else " It left no words in its log."
    )
