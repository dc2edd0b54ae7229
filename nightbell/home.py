"""One private folder that holds everything an embedded stack owns.

`postgres/` the cluster, `temporal/` its history file, `files/` what Patterns write, `logs/` and `run/` what may be
thrown away. `state.json` remembers ports and processes and is replaced whole: a crash leaves the old or the new one.
The lock in `run/` is held by the supervisor for its life, so two `up`s of one home cannot race and the kernel drops it
with its holder. Nothing outside the folder is ever created, owned or re-moded.
"""

import fcntl
import os
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from nightbell.problems import StackProblem

FOLDERS = ("postgres", "temporal", "logs", "run", "files")

Phase = Literal["starting", "running", "degraded", "stopping", "stopped", "failed"]


class ProcessIdentity(BaseModel):
    """A process that cannot be mistaken for a later one with the same number: pid and when it started."""

    model_config = ConfigDict(frozen=True)

    pid: int
    started: str


class Ports(BaseModel):
    """TCP ports on loopback. None or 0: any free one, kept across restarts while it stays free."""

    model_config = ConfigDict(frozen=True)

    postgres: int | None = None
    temporal: int | None = None
    ui: int | None = None


class StackState(BaseModel):
    """What `state.json` remembers of one home."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    layout: Literal[1] = 1
    phase: Phase = "stopped"
    ports: Ports = Ports()
    supervisor: ProcessIdentity | None = None
    children: dict[str, ProcessIdentity] = {}
    has_worker: bool = False
    cluster_made: bool = False
    problem_code: str | None = None
    problem: str | None = None


@dataclass(frozen=True, slots=True)
class Home:
    """The folder `path` of one embedded stack. Making the value touches nothing."""

    path: Path

    @classmethod
    def at(cls, path: str | Path) -> "Home":
        """The home at `path`, made absolute; `~` is the user's home."""
        return cls(Path(path).expanduser().absolute())

    @property
    def postgres_path(self) -> Path:
        """The folder that PostgreSQL's account owns; the cluster is `data` in it."""
        return self.path / "postgres"

    @property
    def temporal_path(self) -> Path:
        """Temporal's folder; it may be deleted whole while the stack is down, PostgreSQL is the truth."""
        return self.path / "temporal"

    @property
    def logs_path(self) -> Path:
        """One log file a process."""
        return self.path / "logs"

    @property
    def run_path(self) -> Path:
        """Locks and what lives no longer than a run."""
        return self.path / "run"

    @property
    def files_path(self) -> Path:
        """What Patterns read and write."""
        return self.path / "files"

    @property
    def state_path(self) -> Path:
        """The remembered ports and processes."""
        return self.path / "state.json"

    @property
    def pgpass_path(self) -> Path:
        """The database password, in libpq's format, readable by the owner only."""
        return self.path / "pgpass"

    def log_path(self, name: str) -> Path:
        """The log file of the process called `name`."""
        return self.logs_path / f"{name}.log"


def prepare_home(home: Home) -> None:
    """Make the folder and its parts, private to this user. Raises StackProblem when it is not ours or not writable."""
    try:
        home.path.mkdir(mode=0o700, parents=True, exist_ok=True)
        require_own(home)
        require_home(home)
        for name in FOLDERS:
            (home.path / name).mkdir(mode=0o700, exist_ok=True)
        if home.path.stat().st_mode & 0o067:
            home.path.chmod(home.path.stat().st_mode & 0o710)
        with tempfile.TemporaryFile(dir=home.run_path):
            pass
    except OSError as problem:
        raise StackProblem(
            "home_not_writable",
            f"The home {home.path} cannot be written: {problem.strerror}. "
            "Choose another with --home or NIGHTBELL_HOME.",
        ) from problem


def require_own(home: Home) -> None:
    """Raises StackProblem when the folder belongs to another user; two users' files would mix in it."""
    owner = home.path.stat().st_uid
    if owner != os.geteuid():
        raise StackProblem(
            "home_of_another_user",
            f"The home {home.path} belongs to user number {owner}, not to you ({os.geteuid()}). "
            "Choose another with --home or NIGHTBELL_HOME.",
        )


def require_home(home: Home) -> None:
    """Raises StackProblem when the folder holds something else: it would be made private and written into."""
    names = {entry.name for entry in home.path.iterdir()}
    if home.state_path.name in names or names <= set(FOLDERS):
        return
    raise StackProblem(
        "home_not_ours",
        f"The folder {home.path} holds other things ({', '.join(sorted(names - set(FOLDERS))[:3])}) and never was a "
        "home. Choose an empty or new folder with --home or NIGHTBELL_HOME.",
    )


def read_state(home: Home) -> StackState:
    """What the home remembers; a home that never ran remembers nothing. Raises StackProblem when it cannot be read."""
    try:
        return StackState.model_validate_json(home.state_path.read_bytes())
    except (FileNotFoundError, NotADirectoryError):
        return StackState()
    except PermissionError as problem:
        raise StackProblem(
            "home_of_another_user", f"The home {home.path} cannot be read by this user: {home.state_path} is not yours."
        ) from problem
    except (ValidationError, OSError, ValueError) as problem:
        raise StackProblem(
            "home_damaged",
            f"The home {home.path} is damaged: {home.state_path.name} cannot be read. It only holds ports and process "
            "numbers: when no server of this home runs, move it away and run `nightbell up` again. "
            "Nothing was changed.",
        ) from problem


def write_state(home: Home, state: StackState) -> None:
    """Replace the state file whole: a crash leaves the old one or the new one, never half of one."""
    scratch = home.run_path / f"state.{os.getpid()}.json"
    descriptor = os.open(scratch, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(state.model_dump_json(indent=2) + "\n")
        file.flush()
        os.fsync(file.fileno())
    os.replace(scratch, home.state_path)


def take_lock(home: Home) -> int | None:
    """The home's lock as an open descriptor that its holder keeps for life, or None while another process holds it."""
    descriptor = os.open(home.run_path / "supervisor.lock", os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        return None
    return descriptor


def is_locked(home: Home) -> bool:
    """Whether a supervisor holds this home now."""
    if not (home.run_path / "supervisor.lock").exists():
        return False
    descriptor = take_lock(home)
    if descriptor is None:
        return True
    os.close(descriptor)
    return False
