"""Record the histories of every path from real runs: `python tests/timers/record.py` writes `tests/histories/*.json` anew;
with names of paths (`yielded`, `missed`) behind it, only those.

A real stack is started; Schedules ring, offers repeat, a worker is killed after it persisted and after it admitted, and a
Schedule's workflow lives long enough to begin again. What Temporal kept of it is what is written.
"""

import asyncio
import json
import os
import re
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

from temporalio.client import Client

from law.capacity import Capability
from law.identity import DecisionId, ScheduleName, lane_message_id
from law.schedule import check_document
from nightbell import stack
from nightbell.commands.schedules import ring
from nightbell.home import Home
from nightbell.options import store_of
from nightbell.wiring import installed_patterns
from store import capacity, ledger, offers, registry
from store.authority import register_patterns
from store.connection import Pool
from store.migrate import migrate
from workflows.terms import RELAY_WORKFLOW_ID, schedule_workflow_id

HISTORIES = Path(__file__).parent.parent / "histories"
DYING = Path(__file__).parent.parent / "crash" / "worker_that_dies.py"
WITHIN_SECONDS = 60.0
PATHS = (
    "admitted_and_duplicate",
    "missed",
    "suppressed",
    "yielded",
    "activated",
    "crashed",
    "continued_as_new",
    "relay",
)

WORK = {"pattern": "bridge_turn", "pattern_revision": "1", "owner": "magus", "input": {"message": "6 * 7"}}


def schedule(name: str, trigger: dict[str, Any], **changes: Any) -> dict[str, Any]:
    """A foreground Schedule's tables."""
    plain = {
        "authority": "recorded",
        "name": name,
        "class": {"service_class": "foreground"},
        "trigger": trigger,
        "work": WORK,
    }
    return {**plain, **changes}


def main() -> None:
    """Start, record, stop."""
    folder = Path(tempfile.mkdtemp(prefix="nightbell-record-"))
    folder.chmod(0o711)
    home, plan = Home.at(folder / "home"), folder / "plan.json"
    running = stack.up(home, migrate=migrate, worker_command=[sys.executable, str(DYING), str(plan)])
    try:
        with store_of(home.path) as (settings, pool):
            register_patterns(pool, installed_patterns())
            recorder = Recorder(pool, plan, settings, running.address.temporal_address)
            recorder.record_all()
    finally:
        running.down()
        shutil.rmtree(folder, ignore_errors=True)


class Recorder:
    """Makes each path happen and keeps its history."""

    def __init__(self, pool: Pool, plan: Path, settings: Any, address: str) -> None:
        self.pool, self.plan, self.settings, self.address = pool, plan, settings, address

    def record_all(self) -> None:
        """Every path, by name."""
        HISTORIES.mkdir(exist_ok=True)
        for path in sys.argv[1:] or PATHS:
            getattr(self, path)()

    def crashed(self) -> None:
        """A worker killed after it persisted, after it admitted, and before it performed."""
        self.killed("after materialize", "crash-after-persist")
        self.killed("after decide", "crash-after-admit")
        self.killed("before perform", "hop-lost-and-returned")

    def relay(self) -> None:
        """The safety net, whatever it saw meanwhile."""
        self.keep(RELAY_WORKFLOW_ID, "relay")

    def yielded(self) -> None:
        """Spare work that waits for a quiet window, then goes slice by slice: each a hop, and a decision between two."""
        texts = self.settings.files_folder / "texts"
        texts.mkdir(parents=True, exist_ok=True)
        for number in range(2):
            (texts / f"{number}.txt").write_text(f"the hammer fell {number} times")
        backfill = {**WORK, "pattern": "embedding_backfill", "pattern_revision": "2", "input": {"shard": 1}}
        spare = {"class": {"service_class": "spare_capacity"}, "capacity": {"capability": "embedder"}}
        name = self.door("yielded", work=backfill, **spare)
        embedder = Capability("embedder", state="WARM", units=1)
        capacity.set_capability(self.pool, embedder, DecisionId(uuid4()))
        occurrence_id = self.offer(name, "one")
        until(lambda: ledger.explain(self.pool, occurrence_id)["occurrence"]["reason"] == "quiet_window")  # type: ignore[arg-type]
        now = datetime.now(UTC)
        capacity.approve_quiet_window(self.pool, uuid4(), None, now, now + timedelta(hours=1), "magus", "")
        ring(self.settings, [name])
        until(lambda: self.state(occurrence_id) == ("admitted", "done"))
        time.sleep(1)
        self.keep(schedule_workflow_id(name), "yielded")
        run_id = ledger.explain(self.pool, occurrence_id)["run"]["run_id"]  # type: ignore[arg-type]
        self.keep(lane_message_id(run_id, 0), "hop-yielded")  # type: ignore[arg-type]

    def register(self, tables: dict[str, Any]) -> ScheduleName:
        name = registry.register(self.pool, check_document(tables), DecisionId(uuid4())).schedule
        ring(self.settings, [name])
        return name

    def door(self, name: str, **changes: Any) -> ScheduleName:
        return self.register(schedule(name, {"kind": "external", "source": "door"}, **changes))

    def offer(self, name: ScheduleName, event: str) -> UUID:
        offered = offers.offer(self.pool, offers.Offer(name, "door", event), DecisionId(uuid4()))
        ring(self.settings, [name])
        return offered.trigger_occurrence_id

    def state(self, occurrence_id: UUID) -> tuple[str, str | None]:
        found = ledger.explain(self.pool, occurrence_id)  # type: ignore[arg-type]
        return found["occurrence"]["state"], found["run"]["state"] if found["run"] else None

    def admitted_and_duplicate(self) -> None:
        """An event is admitted, performed, settled; offered again, it is found."""
        name = self.door("admitted")
        occurrence_id = self.offer(name, "one")
        until(lambda: self.state(occurrence_id) == ("admitted", "done"))
        asyncio.run(self.offer_by_update(name, "two"))
        asyncio.run(self.offer_by_update(name, "two"))
        time.sleep(1)
        self.keep(schedule_workflow_id(name), "admitted-and-duplicate")
        run_id = ledger.explain(self.pool, occurrence_id)["run"]["run_id"]  # type: ignore[arg-type]
        self.keep(lane_message_id(run_id, 0), "hop-done")  # type: ignore[arg-type]

    async def offer_by_update(self, name: ScheduleName, event: str) -> None:
        client = await Client.connect(self.address)
        handle = client.get_workflow_handle(schedule_workflow_id(name))
        await handle.execute_update("offer", {"source": "door", "event_id": event})

    def missed(self) -> None:
        """A window that closes while its predecessor lives."""
        window = {"class": {"service_class": "deadline_windowed"}, "window": {"allowed_delay": "2s"}}
        name = self.door("missed", overlap={"policy": "serialize"}, **window)
        with self.held_run(name):
            occurrence_id = self.offer(name, "late")
            until(lambda: self.state(occurrence_id) == ("missed", None))
        self.keep(schedule_workflow_id(name), "missed")

    def suppressed(self) -> None:
        """An event beside a Run that lives, under forbid."""
        name = self.door("suppressed")
        with self.held_run(name):
            occurrence_id = self.offer(name, "second")
            until(lambda: self.state(occurrence_id) == ("suppressed", None))
        self.keep(schedule_workflow_id(name), "suppressed")

    def activated(self) -> None:
        """Two signalled activations, one refused and one that is made, and the same again as an update."""
        name = self.door("activated")
        self.register(schedule("activated", {"kind": "external", "source": "door"}, overlap={"policy": "serialize"}))
        asyncio.run(self.activate(name))
        until(lambda: registry.schedule(self.pool, name).revision == 2)
        time.sleep(1)
        self.keep(schedule_workflow_id(name), "activated-and-refused")

    async def activate(self, name: ScheduleName) -> None:
        client = await Client.connect(self.address)
        handle = client.get_workflow_handle(schedule_workflow_id(name))
        await handle.signal("activate_revision", {"revision": 7})
        await handle.signal("activate_revision", {"revision": 2})
        await handle.execute_update("activate", {"revision": 2})

    @contextmanager
    def held_run(self, name: ScheduleName) -> Iterator[None]:
        """A Run of this Schedule that is admitted and parked, as an operator might find it."""
        occurrence_id = self.offer(name, "first")
        until(lambda: self.state(occurrence_id)[1] == "done")
        second = self.offer(name, "held")
        until(lambda: self.state(second)[1] == "done")
        with self.pool.connection() as connection:
            connection.execute("ALTER TABLE run DISABLE TRIGGER run_is_pinned")
            connection.execute(
                "UPDATE run SET state = 'parked', wait_owner = 'consent', settled_at = NULL, disposition = "
                "CASE WHEN finish_by IS NULL THEN 'untimed' ELSE 'open' END WHERE trigger_occurrence_id = %s", (second,),
            )  # fmt: skip
            connection.execute("ALTER TABLE run ENABLE TRIGGER run_is_pinned")
        yield

    def killed(self, boundary: str, kept_as: str) -> None:
        """The worker dies at a boundary, and the event is settled all the same."""
        name = self.door(kept_as)
        time.sleep(1)
        self.plan.with_suffix(".taken").unlink(missing_ok=True)
        self.plan.write_text(json.dumps({"boundary": boundary, "victim": "worker"}))
        occurrence_id = self.offer(name, "one")
        until(lambda: self.plan.with_suffix(".taken").exists())
        until(lambda: self.state(occurrence_id)[1] == "done")
        time.sleep(1)
        if "hop" in kept_as:
            run_id = ledger.explain(self.pool, occurrence_id)["run"]["run_id"]  # type: ignore[arg-type]
            self.keep(lane_message_id(run_id, 0), kept_as)  # type: ignore[arg-type]
        else:
            self.keep(schedule_workflow_id(name), kept_as)

    def continued_as_new(self) -> None:
        """Rung often enough that the history begins again: the last of the old and the first of the new are kept."""
        bell = schedule("bell", {"kind": "calendar", "cron": "* * * * * *", "zone": "UTC"})
        name = self.register({**bell, "overlap": {"policy": "bounded_parallel", "max": 50}})
        workflow_id = schedule_workflow_id(name)
        first = asyncio.run(self.run_id(workflow_id))
        for _ in range(40):
            ring(self.settings, [name])
            time.sleep(0.2)
        until(lambda: asyncio.run(self.run_id(workflow_id)) != first)
        self.keep(workflow_id, "continued-as-new-before", first)
        time.sleep(2)
        self.keep(workflow_id, "continued-as-new-after")

    async def run_id(self, workflow_id: str) -> str:
        client = await Client.connect(self.address)
        return (await client.get_workflow_handle(workflow_id).describe()).run_id

    def keep(self, workflow_id: str, kept_as: str, run_id: str | None = None) -> None:
        """Write one history, an event a line, without the names of machines and processes."""
        history = asyncio.run(self.fetch(workflow_id, run_id))
        events = ",\n".join(json.dumps(event, separators=(",", ":")) for event in history["events"])
        events = TRACE.sub('"stackTrace":""', PROCESS.sub('"a process"', events))
        (HISTORIES / f"{kept_as}.json").write_text(f'{{"events":[\n{events}\n]}}\n')
        print(f"{kept_as}: {len(history['events'])} events")

    async def fetch(self, workflow_id: str, run_id: str | None) -> dict[str, Any]:
        client = await Client.connect(self.address)
        return (await client.get_workflow_handle(workflow_id, run_id=run_id).fetch_history()).to_json_dict()


PROCESS = re.compile(r'"\d+@[^"]*"')
"""How a worker names itself and its own queue."""
TRACE = re.compile(r'"stackTrace":"(?:[^"\\]|\\.)*"')
"""Where an error was raised, by the folders of the machine that it was raised on."""


def until(holds: Callable[[], bool]) -> None:
    """Wait until it holds."""
    deadline = time.monotonic() + WITHIN_SECONDS
    while not holds():
        assert time.monotonic() < deadline, "did not happen in time"
        time.sleep(0.1)


if __name__ == "__main__":
    main()
    sys.stdout.flush()
    os._exit(0)
