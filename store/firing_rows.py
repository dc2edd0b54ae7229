"""An Occurrence's row, column by column: what a firing fixed for good the moment it became durable (OCC-2, CAL-9)."""

from collections.abc import Sequence
from typing import Any

from psycopg import sql

from law.bounds import Bounds
from law.firings import Firing
from law.identity import Digest, SourceKey, digest_of, trigger_occurrence_id
from law.origin import Granted
from law.reasons import OccurrenceState, Reason
from store.pinned import PinnedRevision
from store.turn import Turn

UNBOUNDED: dict[str, None] = {"eligible_at": None, "not_before": None, "latest_start_at": None, "finish_by": None}
"""A firing whose civil time never came has no instant, hence no bounds."""


def calendar_row(
    held: Turn, pinned: PinnedRevision, firing: Firing, bounds: Bounds | None, found_late: bool, granted: Granted
) -> dict[str, Any]:
    """The row of a calendar firing, pending, with its bounds; `bounds` None for a civil time that never came. One that policy
    refuses is final at birth (CLS-2)."""
    document, window = pinned.document, pinned.document.window_for(granted.service_class)
    row = {
        **work_columns(held, pinned, firing.key, bounds, document.work.input, granted),
        "source_kind": "calendar",
        "content_digest": firing_digest(firing),
        "rang_at": firing.at,
        "nominal_at": firing.nominal_at if bounds else None,
        "civil": firing.civil.isoformat(),
        "zone": firing.zone,
        "fold": firing.fold,
        "civil_kind": firing.kind.value,
        "origin": "schedule",
        "requested_class": document.class_.service_class,
        "finish_proof": window.finish_proof if window and bounds else None,
        "found_late": found_late,
    }
    return row if granted.refusal is None else settled(row, held, OccurrenceState.REFUSED, granted.refusal)


def work_columns(
    held: Turn,
    pinned: PinnedRevision,
    key: SourceKey,
    bounds: Bounds | None,
    work_input: dict[str, Any],
    granted: Granted,
) -> dict[str, Any]:
    """What every firing shares: identity, the exact work, authority and class, bounds, and that it waits."""
    document = pinned.document
    waits = bounds is not None and bounds.eligible_at > held.at
    return {
        "trigger_occurrence_id": trigger_occurrence_id(pinned.schedule, key),
        "schedule_id": pinned.schedule_id,
        "revision": pinned.revision,
        "source_key": key,
        "pattern": document.work.pattern,
        "pattern_revision": document.work.pattern_revision,
        "pattern_digest": pinned.pattern_digest,
        "input": work_input,
        "input_digest": digest_of(work_input),
        "owner": document.work.owner,
        "sigil": document.work.sigil,
        "priority": document.class_.priority,
        "service_class": granted.service_class,
        "policy_generation": granted.generation,
        "capability": document.capacity.capability if document.capacity else None,
        **bounds_columns(bounds),
        "materialized_at": held.at,
        "materialized_by": held.decision_id,
        "state": OccurrenceState.PENDING,
        "waiting_reason": Reason.NOT_YET_ELIGIBLE if waits else None,
    }


def bounds_columns(bounds: Bounds | None) -> dict[str, Any]:
    """The absolute bounds, as they will stand for ever."""
    if bounds is None:
        return {**UNBOUNDED, "jitter_milliseconds": 0}
    return {
        "eligible_at": bounds.eligible_at,
        "not_before": bounds.not_before,
        "latest_start_at": bounds.latest_start_at,
        "finish_by": bounds.finish_by,
        "jitter_milliseconds": bounds.jitter_milliseconds,
    }


def with_authority(held: Turn, rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The rows with the generation of their owner's authority as it stands now (OVL-6)."""
    owners = sorted({row["owner"] for row in rows})
    generations = dict(held.rows(GENERATIONS, {"owners": owners})) if owners else {}
    return [{**row, "authority_generation": generations.get(row["owner"], 0)} for row in rows]


def settled(row: dict[str, Any], held: Turn, state: OccurrenceState, reason: Reason) -> dict[str, Any]:
    """The same row, final at birth."""
    decided = {"state": state, "reason": reason, "waiting_reason": None}
    return {**row, **decided, "decision_time": held.at, "decision_id": held.decision_id}


def firing_digest(firing: Firing) -> Digest:
    """The immutable content of a calendar firing: the civil time that rings, in its zone, and which member (OCC-4)."""
    return digest_of({"civil": firing.civil.isoformat(), "zone": firing.zone, "fold": firing.fold})


GENERATIONS = sql.SQL("SELECT name, generation FROM principal WHERE name = ANY(%(owners)s)")
