"""The crash walk: at each boundary of the chain, kill -9 the worker, PostgreSQL or Temporal; afterwards read the rows.

No firing may be lost, doubled or admitted twice, and every Run must be settled, or held with its reason. The short form walks
each boundary once with the worker and some with the servers; `make crash` walks all of them with all three, twenty times.
"""

import asyncio
import json
import os
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import psycopg
import pytest
from temporalio.client import Client
from temporalio.service import RPCError

from law.identity import DecisionId, RevisionNumber, ScheduleName
from law.schedule import check_document
from nightbell import stack
from nightbell.home import Home, ProcessIdentity, read_state
from nightbell.processes import is_alive
from nightbell.wiring import installed_patterns
from store import ledger, offers, registry
from store.authority import register_patterns
from store.connection import Pool, open_pool
from store.errors import StoreProblem
from store.migrate import migrate
from workflows.terms import schedule_workflow_id

STEPS = ("materialize", "decide", "publish", "claim", "perform", "settle")
BOUNDARIES = tuple(f"{side} {step}" for step in STEPS for side in ("before", "after"))
VICTIMS = ("worker", "postgres", "temporal")
SHORT = (
    *((one, "worker") for one in BOUNDARIES),
    ("before decide", "postgres"), ("after decide", "postgres"), ("after settle", "postgres"),
    ("after materialize", "temporal"), ("after decide", "temporal"), ("before settle", "temporal"),
)  # fmt: skip
RECOVERED_WITHIN_SECONDS = 90.0
EVERY = timedelta(seconds=2)

COMMON = {
    "authority": "crash",
    "class": {"service_class": "foreground"},
    "overlap": {"policy": "bounded_parallel", "max": 500},
    "catch_up": {"misfire_threshold": "10m"},
    "work": {"pattern": "bridge_turn", "pattern_revision": "1", "owner": "magus", "input": {"message": "6 * 7"}},
}
BELL = {**COMMON, "name": "bell", "trigger": {"kind": "calendar", "cron": "*/2 * * * * *", "zone": "UTC"}}
DOOR = {**COMMON, "name": "door", "trigger": {"kind": "external", "source": "door"}}


@dataclass(frozen=True, slots=True)
class House:
    """A running stack whose worker dies on demand."""

    home: Home
    plan: Path
    url: str
    temporal: str
    bell: ScheduleName
    door: ScheduleName

    def pool(self) -> Pool:
        return open_pool(self.url, connections_max=2)

    def die(self, boundary: str, victim: str) -> None:
        """Plan one kill."""
        self.plan.with_suffix(".taken").unlink(missing_ok=True)
        self.plan.write_text(json.dumps({"boundary": boundary, "victim": victim}))


@pytest.fixture(scope="module")
def house() -> Iterator[House]:
    """PostgreSQL, Temporal and the worker that dies, kept alive by the real supervisor."""
    folder = Path(tempfile.mkdtemp(prefix="nightbell-crash-"))
    folder.chmod(0o711)
    home, plan = Home.at(folder / "home"), folder / "plan.json"
    worker = [sys.executable, str(Path(__file__).with_name("worker_that_dies.py")), str(plan)]
    running = stack.up(home, migrate=migrate, worker_command=worker)
    try:
        url = running.address.database_url
        with open_pool(url, connections_max=1) as pool:
            register_patterns(pool, installed_patterns())
            names = [registry.register(pool, check_document(one), DecisionId(uuid4())).schedule for one in (BELL, DOOR)]
        yield House(home, plan, url, running.address.temporal_address, *names)
    finally:
        running.down()
        shutil.rmtree(folder, ignore_errors=True)


def until(what: str, holds: Callable[[], Any]) -> Any:
    """Wait until it holds; a server that is away meanwhile is no answer."""
    deadline = time.monotonic() + RECOVERED_WITHIN_SECONDS
    while True:
        try:
            if found := holds():
                return found
        except (StoreProblem, psycopg.Error):
            pass
        assert time.monotonic() < deadline, f"did not happen in time: {what}"
        time.sleep(0.1)


@pytest.mark.obligation("OCC-6", boundary="restart")
@pytest.mark.obligation("IDN-1", boundary="restart")
@pytest.mark.obligation("IDN-2", boundary="restart")
@pytest.mark.obligation("FIN-4", boundary="restart")
def test_occ_6_no_firing_is_lost_doubled_or_admitted_twice(house: House, request: pytest.FixtureRequest) -> None:
    """Each walk offers an event, kills at the boundary, waits for recovery; in the end the whole ledger is read."""
    rounds = request.config.getoption("--crash-rounds")
    walks = SHORT if rounds == 0 else tuple((one, victim) for one in BOUNDARIES for victim in VICTIMS) * rounds
    offered = [walk(house, boundary, victim) for boundary, victim in walks]
    lose_temporal_whole(house)
    offered.append(walk(house, "", ""))
    check_ledger(house, offered)


@pytest.mark.obligation("CUT-1", boundary="restart")
@pytest.mark.obligation("CUT-3", boundary="restart")
def test_cut_1_an_activation_is_made_once_whoever_dies(house: House, request: pytest.FixtureRequest) -> None:
    """Signalled, killed before or after its commit, asked again by whoever lives next: one activation each, in order, and every
    event belongs to the revision that was active when it was first met."""
    rounds = max(1, request.config.getoption("--crash-rounds"))
    walks = [(f"{side} activate", victim) for side in ("before", "after") for victim in VICTIMS] * rounds
    owned: dict[UUID, int] = {}
    with house.pool() as pool:
        revision = registry.schedule(pool, house.door).revisions
        for boundary, victim in walks:
            revision = RevisionNumber(revision + 1)
            changed = {**DOOR, "class": {"service_class": "foreground", "priority": revision % 100}}
            until("the revision", lambda d=changed: registry.register(pool, check_document(d), DecisionId(uuid4())))
            house.die(boundary, victim)
            until("the signal", lambda n=revision: asyncio.run(signal_activation(house, n)))
            until(f"the kill {boundary} of {victim}", house.plan.with_suffix(".taken").exists)
            until("the activation", lambda n=revision: registry.schedule(pool, house.door).revision == n)
            event = offers.Offer(house.door, "door", str(uuid4()), {"message": "1 + 1"})
            offered = until("an offer", lambda e=event: offers.offer(pool, e, DecisionId(uuid4())))
            owned[offered.trigger_occurrence_id] = revision
        lines = {
            line["trigger_occurrence_id"]: line["revision"] for line in ledger.occurrences(pool, house.door, (), 10_000)
        }
        assert {one: lines[one] for one in owned} == owned
        activated = until("the log", lambda: activations(house))
    assert activated == list(range(1, revision + 1))


async def signal_activation(house: House, revision: int) -> bool:
    """Send the signal; False while Temporal is away."""
    try:
        client = await Client.connect(house.temporal)
        handle = client.get_workflow_handle(schedule_workflow_id(house.door))
        await handle.signal("activate_revision", {"revision": revision})
    except (RPCError, RuntimeError):
        return False
    return True


def activations(house: House) -> list[int]:
    """The revisions that the door activated, in order."""
    statement = (
        "SELECT a.revision FROM nightbell.activation a JOIN nightbell.schedule s USING (schedule_id) WHERE s.name = 'door' "
        "ORDER BY a.activation_ordinal"
    )
    with psycopg.connect(house.url) as connection:
        return [row[0] for row in connection.execute(statement)]


def walk(house: House, boundary: str, victim: str) -> UUID:
    """One kill, and the way back: the event that was offered meanwhile is settled, or held with a reason."""
    with house.pool() as pool:
        if boundary:
            house.die(boundary, victim)
        event = offers.Offer(house.door, "door", str(uuid4()), {"message": f"{boundary} {victim}"})
        occurrence_id = until("the offer", lambda: offers.offer(pool, event, DecisionId(uuid4()))).trigger_occurrence_id
        if boundary:
            until(f"the kill {boundary} of {victim}", lambda: house.plan.with_suffix(".taken").exists())
        until(f"recovery after {boundary} of {victim}", lambda: settled_or_held(pool, occurrence_id))
    return occurrence_id


def settled_or_held(pool: Pool, occurrence_id: UUID) -> bool:
    """Whether what became of an Occurrence is final."""
    found = ledger.explain(pool, occurrence_id)["run"]  # type: ignore[arg-type]
    return found is not None and found["state"] in ("done", "contained", "failed")


def lose_temporal_whole(house: House) -> None:
    """Delete Temporal's data under it and kill it: what comes back is empty, and everything is begun again from the rows."""
    victim = until("a living Temporal", lambda: living(house, "temporal"))
    for file in house.home.temporal_path.iterdir():
        if file.is_file():
            file.unlink()
    os.kill(victim.pid, signal.SIGKILL)
    until("another Temporal", lambda: read_state(house.home).children.get("temporal", victim).pid != victim.pid)


def living(house: House, name: str) -> ProcessIdentity | None:
    """The process of that name, if it lives."""
    found = read_state(house.home).children.get(name)
    return found if found is not None and is_alive(found) else None


def check_ledger(house: House, offered: list[UUID]) -> None:
    """Every event has one Occurrence and one Invocation; every bell that rang has one row; every Run is settled or held."""
    with house.pool() as pool:
        until("the last bells", lambda: not stragglers(pool))
        bells = ledger.occurrences(pool, house.bell, limit=10_000)
        doors = ledger.occurrences(pool, house.door, limit=10_000)
        runs = ledger.runs(pool, limit=10_000)
    assert {line["trigger_occurrence_id"] for line in doors} == set(offered)
    rang = sorted(line["nominal_at"] for line in bells)
    expected = [rang[0] + EVERY * number for number in range(len(rang))]
    assert rang == expected, "a bell was lost or doubled"
    assert rang[-1] > datetime.now(UTC) - timedelta(seconds=60)
    lines = [*bells, *doors]
    admitted = [line["trigger_occurrence_id"] for line in lines if line["state"] == "admitted"]
    assert sorted(admitted) == sorted(run["trigger_occurrence_id"] for run in runs)
    assert {line["state"] for line in lines} <= {"admitted", "pending"}
    held = {run["state"] for run in runs} - {"done"}
    assert all(run["reason"] for run in runs if run["state"] in ("contained", "failed"))
    assert held <= {"contained", "queued", "running"}, [run for run in runs if run["state"] == "failed"]


def stragglers(pool: Pool) -> list[Any]:
    """Runs that have been on their way for long."""
    long_ago = datetime.now(UTC) - timedelta(seconds=20)
    live = ledger.runs(pool, states=("queued", "running"), limit=10_000)
    return [run for run in live if run["admitted_at"] < long_ago]
