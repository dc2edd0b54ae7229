"""What may be judged: every eligible Occurrence of the Schedules that are held, and every Run between two slices.

Only reads, under the locks and at the sample of whoever decides. What needs a capability that is not locked here is left for
a decision that holds it; and with it the rest of its Schedule, since an order is kept whole or not at all.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from psycopg import sql

from law.identity import RunId, ScheduleName, TriggerOccurrenceId
from law.origin import Origin
from law.overlap import Live, OverlapPolicy, OverlapTerms
from law.schedule import CapacityTable
from law.service_class import ServiceClass
from store.locks import (
    HeldCapability,
    HeldOwner,
    HeldPattern,
    HeldRun,
    HeldSchedule,
    HeldSigil,
)
from store.turn import Turn

CANDIDATES_MAX = 2_000
"""A round judges at most this many; the rest are found by the next, at once."""


@dataclass(frozen=True, slots=True)
class Eligible:
    """A pending Occurrence whose eligibility instant has come, or one whose Run waits for its next slice, with the terms its
    revision pinned."""

    trigger_occurrence_id: TriggerOccurrenceId
    schedule_id: int
    source_key: str
    service_class: ServiceClass
    priority: int
    rang_at: datetime
    eligible_at: datetime
    not_before: datetime | None
    latest_start_at: datetime | None
    finish_by: datetime | None
    finish_proof: str | None
    owner: str
    sigil: str | None
    origin: Origin
    pattern: str
    pattern_revision: str
    pattern_digest: str
    authority_generation: int
    policy_generation: int
    waiting_reason: str | None
    overlap_policy: OverlapPolicy
    aging_seconds: int | None
    runs_per_day_max: int | None
    overlap: dict[str, Any]
    capacity: dict[str, Any] | None
    reserve: dict[str, float] | None
    has_asked: bool
    catch_up: dict[str, Any] | None
    """The pinned policy of a firing that was found late, where it is bounded."""
    document: dict[str, Any] | None
    input: dict[str, Any] | None
    """Both only where inputs may be merged."""
    resumes: RunId | None = None
    ordinal: int = 0
    recovers: UUID | None = None
    """The Invocation that this one takes up again, with what had been merged into it."""
    recovered_input: dict[str, Any] | None = None
    recovered_digest: str | None = None

    @property
    def needs(self) -> CapacityTable | None:
        """The pinned `[capacity]` table."""
        return CapacityTable.model_validate(self.capacity) if self.capacity is not None else None

    @property
    def terms(self) -> OverlapTerms:
        """The pinned overlap policy as the law judges it."""
        return OverlapTerms(self.overlap_policy, self.overlap["max"] or 1, self.overlap.get("max_units"))


@dataclass(frozen=True, slots=True)
class Gone:
    """Whose authority does not stand at the sample: owners, Sigils, and Pattern revisions as `pattern revision`."""

    owners: list[str]
    sigils: list[str]
    patterns: list[str]


def gone_of(
    held: Turn, owners: Sequence[HeldOwner], sigils: Sequence[HeldSigil], patterns: Sequence[HeldPattern]
) -> Gone:
    """Of all that was locked, what does not stand."""
    return Gone(
        [one.name for one in owners if one.standing != "active"],
        [one.name for one in sigils if one.standing != "active" or has_expired(one, held.at)],
        [f"{one.pattern} {one.pattern_revision}" for one in patterns if one.standing == "revoked"],
    )


def has_expired(one: HeldSigil, at: datetime) -> bool:
    """Whether a Sigil has expired at the sample."""
    return one.expires_at is not None and at >= one.expires_at


def read_eligible(
    held: Turn,
    schedules: Sequence[HeldSchedule],
    capabilities: Sequence[HeldCapability],
    runs: Sequence[HeldRun],
    gone: Gone,
) -> dict[TriggerOccurrenceId, Eligible]:
    """What waits in the held Schedules and may be judged now, oldest eligibility first; and what waits for its hour under an
    authority that is gone (AUT-2)."""
    arguments = {
        "owners": gone.owners,
        "sigils": gone.sigils,
        "patterns": gone.patterns,
        "schedules": [one.schedule_id for one in schedules],
        "capabilities": [one.capability for one in capabilities],
        "at": held.at,
        "candidates_max": CANDIDATES_MAX,
    }
    found = held.records(Eligible, ELIGIBLE, arguments)
    if runs:
        found += held.records(Eligible, RESUMABLE, {"runs": [one.run_id for one in runs]})
    return {one.trigger_occurrence_id: one for one in found}


def live_runs(held: Turn, schedules: Sequence[HeldSchedule]) -> dict[ScheduleName, Live]:
    """The nonterminal Invocations of each held Schedule, across its revisions, and the units they asked for (OVL-1)."""
    names = {one.schedule_id: one.schedule for one in schedules}
    rows = held.rows(LIVE_RUNS, {"schedules": list(names)})
    return {names[schedule_id]: Live(count, units) for schedule_id, count, units in rows}


ELIGIBLE = sql.SQL(
    """
    SELECT o.trigger_occurrence_id, o.schedule_id, o.source_key, o.service_class, o.priority, o.rang_at,
           o.eligible_at, o.not_before, o.latest_start_at, o.finish_by,
           o.finish_proof, o.owner, o.sigil, o.origin, o.pattern, o.pattern_revision, o.pattern_digest,
           o.authority_generation, o.policy_generation, o.waiting_reason,
           r.overlap_policy, r.aging_seconds, r.runs_per_day_max, r.document -> 'overlap' AS overlap,
           nullif(r.document -> 'capacity', 'null'::jsonb) AS capacity, r.document -> 'budget' -> 'reserve' AS reserve,
           o.capability IS NOT NULL AND EXISTS (
               SELECT FROM readiness_request q WHERE q.trigger_occurrence_id = o.trigger_occurrence_id) AS has_asked,
           CASE WHEN o.found_late AND r.document -> 'catch_up' ->> 'mode' = 'bounded'
                THEN r.document -> 'catch_up' END AS catch_up,
           CASE WHEN r.overlap_policy = 'coalesce' THEN r.document END AS document,
           CASE WHEN r.overlap_policy = 'coalesce' THEN o.input END AS input
    FROM occurrence o
    JOIN schedule_revision r ON r.schedule_id = o.schedule_id AND r.revision = o.revision
    WHERE o.state = 'pending' AND o.schedule_id = ANY(%(schedules)s)
      AND (o.eligible_at <= %(at)s OR r.overlap_policy = 'serialize' OR o.owner = ANY(%(owners)s)
           OR o.sigil = ANY(%(sigils)s) OR o.pattern || ' ' || o.pattern_revision = ANY(%(patterns)s))
      AND NOT EXISTS (
        SELECT FROM occurrence other JOIN capability c ON c.capability = other.capability
        WHERE other.schedule_id = o.schedule_id AND other.state = 'pending' AND other.capability IS NOT NULL
          AND other.capability <> ALL(%(capabilities)s)
      )
    ORDER BY o.eligible_at
    LIMIT %(candidates_max)s
    """
)

RESUMABLE = sql.SQL(
    """
    SELECT o.trigger_occurrence_id, o.schedule_id, o.source_key, o.service_class, o.priority, o.rang_at,
           o.eligible_at, o.not_before, o.latest_start_at, o.finish_by,
           o.finish_proof, o.owner, o.sigil, o.origin, o.pattern, o.pattern_revision, o.pattern_digest,
           o.authority_generation, o.policy_generation, o.waiting_reason,
           r.overlap_policy, r.aging_seconds, r.runs_per_day_max, r.document -> 'overlap' AS overlap,
           nullif(r.document -> 'capacity', 'null'::jsonb) AS capacity, r.document -> 'budget' -> 'reserve' AS reserve,
           true AS has_asked,
           NULL::jsonb AS catch_up, NULL::jsonb AS document, NULL::jsonb AS input, n.run_id AS resumes
    FROM run n
    JOIN occurrence o ON o.trigger_occurrence_id = n.trigger_occurrence_id
    JOIN schedule_revision r ON r.schedule_id = o.schedule_id AND r.revision = o.revision
    WHERE n.run_id = ANY(%(runs)s) AND n.wait_owner = 'hardware'
    ORDER BY o.eligible_at, n.run_id
    """
)

LIVE_RUNS = sql.SQL(
    """
    SELECT schedule_id, count(*)::int, sum(units)::int FROM run
    WHERE schedule_id = ANY(%(schedules)s) AND state IN ('queued', 'running', 'parked', 'cancelling', 'contained')
    GROUP BY schedule_id
    """
)
