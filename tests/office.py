"""Small words for what most decision tests do first: register a Schedule, let it ring, claim, settle."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from uuid import UUID, uuid4

import psycopg
import pytest

from law.capacity import Capability
from law.identity import ClaimId, DecisionId, EnqueueSeq, RunId, ScheduleName
from law.merging import Merge, no_merge
from law.schedule import ScheduleDocument, check_document
from store import admission, capacity, ledger, occurrences, offers, pinned, registry, runs
from store.connection import Pool, open_pool
from store.errors import StoreProblem

EVENING = datetime(2026, 1, 1, 20, 0, tzinfo=UTC)
"""When a test's Schedules are registered: the evening before the night it rings."""

NIGHTLY: dict[str, Any] = {
    "authority": "home",
    "name": "nightly",
    "cycle": "civil_date",
    "trigger": {"kind": "calendar", "cron": "0 2 * * *", "zone": "Europe/Bratislava"},
    "class": {"service_class": "deadline_windowed"},
    "window": {"latest_start_civil": "05:00"},
    "work": {"pattern": "nightly_rite", "pattern_revision": "1", "owner": "magus"},
}
BRIDGE: dict[str, Any] = {
    "authority": "home",
    "name": "bridge",
    "trigger": {"kind": "external", "source": "bridge"},
    "class": {"service_class": "foreground"},
    "work": {"pattern": "bridge_turn", "pattern_revision": "1", "owner": "magus"},
}


def document(base: dict[str, Any], **changes: Any) -> ScheduleDocument:
    """A Schedule file's tables with some replaced; `class_` spells the table named `class`, None takes one out."""
    tables = {**base, **{name.rstrip("_"): value for name, value in changes.items()}}
    return check_document({name: value for name, value in tables.items() if value is not None})


@dataclass(frozen=True, slots=True)
class Office:
    """The store of one test, asked the way activities ask it."""

    pool: Pool
    database_url: str

    def register(self, one: ScheduleDocument) -> ScheduleName:
        return registry.register(self.pool, one, DecisionId(uuid4())).schedule

    def materialize(self, schedule: ScheduleName) -> occurrences.Materialized:
        return occurrences.materialize(self.pool, schedule, DecisionId(uuid4()))

    def decide(
        self, schedule: ScheduleName, decision_id: UUID | None = None, merge: Merge = no_merge
    ) -> admission.Decided:
        return admission.decide(self.pool, schedule, DecisionId(decision_id or uuid4()), merge)

    def capability(self, name: str, units: int = 1, **said: Any) -> tuple[ScheduleName, ...]:
        """Register a warm, open capability, or say how it is now; who waits for it."""
        one = Capability(name, **{"state": "WARM", "units": units, **said})
        return capacity.set_capability(self.pool, one, DecisionId(uuid4()))

    def quiet_window(self, opens_at: datetime, closes_at: datetime, capability: str | None = None) -> UUID:
        """Approve a quiet window."""
        known_as = uuid4()
        capacity.approve_quiet_window(self.pool, known_as, capability, opens_at, closes_at, "an operator", "")
        return known_as

    def ring(self, schedule: ScheduleName) -> admission.Decided:
        """Materialize, then decide: one round of a Schedule's workflow."""
        self.materialize(schedule)
        return self.decide(schedule)

    def offer(self, schedule: ScheduleName, event_id: str, content: dict[str, Any] | None = None) -> offers.Offered:
        return offers.offer(self.pool, offers.Offer(schedule, "bridge", event_id, content or {}), DecisionId(uuid4()))

    def admitted_run(self, schedule: ScheduleName, event_id: str = "one") -> RunId:
        """Offer an event and admit it."""
        self.offer(schedule, event_id)
        return RunId(UUID(self.decide(schedule).outcomes[-1].run_id))

    def claim(self, run_id: RunId, enqueue_seq: int = 0) -> ClaimId:
        claim_id = ClaimId(uuid4())
        claimed = runs.claim(self.pool, run_id, EnqueueSeq(enqueue_seq), claim_id, "a test")
        assert claimed.granted, claimed.reason
        return claim_id

    def settle(
        self, run_id: RunId, claim_id: ClaimId, enqueue_seq: int = 0, *, may_return: bool = False, problem: str = ""
    ) -> runs.Settled:
        seq, decision_id = EnqueueSeq(enqueue_seq), DecisionId(uuid4())
        return runs.settle(self.pool, run_id, seq, claim_id, decision_id, lambda _, __: problem, may_return)

    def done(self, run_id: RunId, enqueue_seq: int = 0) -> runs.Settled:
        """Claim, report done, settle."""
        claim_id = self.claim(run_id, enqueue_seq)
        runs.report(self.pool, claim_id, "done", None, None, "")
        return self.settle(run_id, claim_id, enqueue_seq)

    def states(self, schedule: ScheduleName) -> list[tuple[str, str, str | None]]:
        """(firing, state, reason) of a Schedule's Occurrences, oldest first."""
        lines = ledger.occurrences(self.pool, schedule, limit=1000)
        return [(line["key"], line["state"], line["reason"]) for line in reversed(lines)]

    def count(self, table: str) -> int:
        return self.value(f"SELECT count(*) FROM nightbell.{table}")

    def value(self, statement: str, *arguments: object) -> Any:
        row = self.row(statement, *arguments)
        return row[0] if row else None

    def row(self, statement: str, *arguments: object) -> tuple[Any, ...] | None:
        """The first row, or None."""
        with psycopg.connect(self.database_url, autocommit=True) as connection:
            return connection.execute(statement, arguments or None).fetchone()

    @contextmanager
    def killed_at_commit(self, table: str) -> Iterator[None]:
        """Whoever inserts into `table` meanwhile has its backend ended after all its writes, before its COMMIT is done."""
        self.execute(
            "CREATE OR REPLACE FUNCTION nightbell.die() RETURNS trigger LANGUAGE plpgsql AS "
            "$$ BEGIN PERFORM pg_terminate_backend(pg_backend_pid()); RETURN NULL; END $$",
            f"CREATE CONSTRAINT TRIGGER die AFTER INSERT ON nightbell.{table} DEFERRABLE INITIALLY DEFERRED "
            "FOR EACH ROW EXECUTE FUNCTION nightbell.die()",
        )
        with pytest.raises(StoreProblem):
            yield
        self.execute(f"DROP TRIGGER die ON nightbell.{table}")

    def restarted(self) -> "Office":
        """The same store as a process that has just begun sees it: nothing is remembered but the rows."""
        self.pool.close()
        pinned.forget()
        return Office(open_pool(self.database_url, connections_max=12), self.database_url)

    def execute(self, *statements: str) -> None:
        with psycopg.connect(self.database_url, autocommit=True) as connection:
            for statement in statements:
                connection.execute(statement)
