"""`nightbell demo`, which is `make run`: the whole chain, for real, for a person to watch.

A stack of its own home is started; the example Schedules are registered with a cadence that a person can watch; somebody
speaks on the Bridge now and then; a board shows what rang and what became of it, read from the ledger. Where nobody watches
(standard output is not a terminal) it prints plain lines, ends by itself, and stops the stack.
"""

import shutil
import sys
import time
import tomllib
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from importlib import resources
from pathlib import Path
from typing import Any
from uuid import uuid4

from rich.console import Console, Group
from rich.live import Live
from rich.text import Text

from law.capacity import Capability
from law.errors import BadInput, PatternChanged
from law.identity import DecisionId, ScheduleName
from law.schedule import ScheduleDocument, check_document
from nightbell import stack
from nightbell.commands.schedules import ring
from nightbell.home import Home
from nightbell.options import store_of
from nightbell.settings import Settings
from nightbell.shown import grid
from nightbell.wiring import installed_patterns
from store import capacity, ledger, offers, registry
from store.authority import register_patterns
from store.connection import Pool
from store.migrate import migrate

BRIDGE = ScheduleName("home/bridge")
LOOK_EVERY_SECONDS = 0.5
SPEAK_EVERY_SECONDS = 7.0
QUIET_FOR = timedelta(hours=1)
MESSAGES = (
    "6 * 7",
    "Is anybody at the forge?",
    "(3 + 4) * 2.5",
    "The hammer is still falling.",
    "2 / 0",
    "Good night.",
)
COLUMNS = {
    "rang_at": "rang",
    "schedule": "Schedule",
    "key": "firing",
    "state": "state",
    "reason": "reason",
    "run_state": "Run",
}


@dataclass(slots=True)
class Told:
    """What a demonstration showed."""

    ui_url: str = ""
    home: str = ""
    occurrences: dict[str, int] = field(default_factory=dict[str, int])
    runs: dict[str, int] = field(default_factory=dict[str, int])
    files: int = 0

    @property
    def summary(self) -> str:
        """The end, in a few words."""
        rang = ", ".join(f"{count} {state}" for state, count in sorted(self.occurrences.items()))
        ran = ", ".join(f"{count} {state}" for state, count in sorted(self.runs.items()))
        return f"Occurrences: {rang or 'none'}. Runs: {ran or 'none'}. Files under {self.home}: {self.files}."


def demonstrate(home: Home, seconds: int, quiet: bool) -> Told:
    """Run the demonstration to its end and stop its stack. Raises StackProblem."""
    watched = sys.stdout.isatty() and not quiet
    console = Console(highlight=False, soft_wrap=True, stderr=quiet)
    console.print(f"Starting PostgreSQL, Temporal and a worker in {home.path} …")
    running = stack.up(home, migrate=migrate)
    try:
        console.print(f"Temporal UI: {running.address.ui_url}")
        with store_of(home.path) as (settings, pool):
            lay_out_texts(home)
            names = register_examples(pool, home)
            lend_capacity(pool)
            ring(settings, names)
            show = board(pool, console) if watched else plain_lines(pool, console)
            watch(pool, settings, None if watched else seconds, show)
            return tell(pool, home, running.address.ui_url)
    finally:
        console.print("Stopping …")
        running.down()


def lay_out_texts(home: Home) -> None:
    """Give the backfill something to embed."""
    folder = home.files_path / "texts"
    folder.mkdir(parents=True, exist_ok=True)
    for text in (examples() / "texts").glob("*.txt"):
        shutil.copyfile(text, folder / text.name)


def examples() -> Path:
    """The folder of example Schedules: in the tree, or in the installed package."""
    beside = Path(__file__).resolve().parent.parent / "schedules"
    return beside if beside.is_dir() else Path(str(resources.files("nightbell").joinpath("schedules")))


def register_examples(pool: Pool, home: Home) -> list[ScheduleName]:
    """Register every example with its watchable cadence. Raises BadInput for a home in which other code was shown."""
    try:
        register_patterns(pool, installed_patterns())
    except PatternChanged as problem:
        reason = f"{home.path} was used by other code. {problem.sentence} Name another home, or delete this one."
        raise BadInput(field="home", reason=reason) from problem
    return [registry.register(pool, document, DecisionId(uuid4())).schedule for document in watchable()]


def lend_capacity(pool: Pool) -> None:
    """One warm embedder, and a quiet window in which the backfill may show that it yields; then it needs none."""
    embedder = Capability("embedder", state="WARM", units=1)
    capacity.set_capability(pool, embedder, DecisionId(uuid4()))
    now = datetime.now(UTC)
    until, note = now + QUIET_FOR, "so that the backfill can show that it yields"
    capacity.approve_quiet_window(pool, uuid4(), embedder.name, now, until, "whoever runs the demo", note)


def watchable() -> Iterator[ScheduleDocument]:
    """The example files with what `watch.toml` changes in them."""
    changes = tomllib.loads((examples() / "watch.toml").read_text(encoding="utf-8"))
    for file in sorted(examples().glob("*.toml")):
        if file.name != "watch.toml":
            tables = tomllib.loads(file.read_text(encoding="utf-8"))
            yield check_document(changed(tables, changes.get(tables["name"], {})))


def changed(tables: dict[str, Any], changes: dict[str, Any]) -> dict[str, Any]:
    """Tables with some values replaced; an empty text takes a value out."""
    result = dict(tables)
    for name, value in changes.items():
        if isinstance(value, dict):
            result[name] = changed(result.get(name, {}), value)
        elif value == "":
            result.pop(name, None)
        else:
            result[name] = value
    return result


def watch(pool: Pool, settings: Settings, seconds: int | None, show: Any) -> None:
    """Look at the ledger and speak on the Bridge, until the time is over or Ctrl-C."""
    began = time.monotonic()
    spoken, speak_at = 0, began
    with show as update:
        try:
            while seconds is None or time.monotonic() - began < seconds:
                if time.monotonic() >= speak_at:
                    speak(pool, MESSAGES[spoken % len(MESSAGES)])
                    ring(settings, [BRIDGE])
                    spoken, speak_at = spoken + 1, speak_at + SPEAK_EVERY_SECONDS
                update()
                time.sleep(LOOK_EVERY_SECONDS)
        except KeyboardInterrupt:
            return


def speak(pool: Pool, message: str) -> None:
    """One message on the Bridge, as its own event."""
    event = offers.Offer(BRIDGE, "bridge", str(uuid4()), {"message": message})
    offers.offer(pool, event, DecisionId(uuid4()))


@contextmanager
def board(pool: Pool, console: Console) -> Iterator[Any]:
    """A live board for a terminal."""
    with Live(console=console, refresh_per_second=4) as live:

        def update() -> None:
            lines = ledger.occurrences(pool, limit=max(5, console.height - 8))
            live.update(Group(grid(lines, COLUMNS) if lines else Text("Nothing rang yet."), Text("Ctrl-C ends it.")))

        yield update


@contextmanager
def plain_lines(pool: Pool, console: Console) -> Iterator[Any]:
    """One line for everything that changed, for a log."""
    seen: dict[Any, tuple[Any, ...]] = {}

    def update() -> None:
        for line in reversed(ledger.occurrences(pool, limit=200)):
            now = (line["state"], line["reason"], line["run_state"])
            if seen.get(line["trigger_occurrence_id"]) != now:
                seen[line["trigger_occurrence_id"]] = now
                ran = f", Run {line['run_state']}" if line["run_state"] else ""
                console.print(f"{line['schedule']}  {line['key']}  {line['state']} ({line['reason'] or 'new'}){ran}")

    yield update


def tell(pool: Pool, home: Home, ui_url: str) -> Told:
    """Count what there is."""
    occurrences = Counter(line["state"] for line in ledger.occurrences(pool, limit=ledger.LIMIT_MAX))
    runs = Counter(line["state"] for line in ledger.runs(pool, limit=ledger.LIMIT_MAX))
    files = sum(1 for file in home.files_path.rglob("*") if file.is_file() and "texts" not in file.parts)
    return Told(ui_url, str(home.files_path), dict(occurrences), dict(runs), files)
