"""An Occurrence's row, column by column: what a firing fixed for good the moment it became durable (OCC-2, CAL-9)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from psycopg import sql

from law.authority import Credentials, PatternStanding, judge_authority, scopes_of
from law.bounds import Bounds
from law.firings import Firing
from law.identity import Digest, SourceKey, digest_of, trigger_occurrence_id
from law.origin import Granted
from law.reasons import OccurrenceState, Reason
from store.locks import HeldOwner, HeldSigil, as_sigil
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
    """The rows under their owner's authority as it stands now: each keeps its generation (OVL-6), and one whose authority is
    gone is final at birth, with that reason (AUT-1). What is read here cannot change before this commits."""
    owners = keyed(held.records(HeldOwner, OWNERS, {"names": sorted({row["owner"] for row in rows})}))
    named = sorted({row["sigil"] for row in rows if row["sigil"] is not None})
    sigils = keyed(held.records(HeldSigil, SIGILS, {"names": named})) if named else {}
    patterns = {
        one.key: one
        for one in held.records(KnownPattern, PATTERNS, {"names": sorted({row["pattern"] for row in rows})})
    }
    return [judged_at_birth(held, row, owners, sigils, patterns) for row in rows]


HeldT = TypeVar("HeldT", HeldOwner, HeldSigil)


def keyed(held: Sequence[HeldT]) -> dict[str, HeldT]:
    """By name."""
    return {one.name: one for one in held}


@dataclass(frozen=True, slots=True)
class KnownPattern:
    """A Pattern revision as it stands."""

    pattern: str
    pattern_revision: str
    standing: PatternStanding
    digest: str

    @property
    def key(self) -> tuple[str, str]:
        return self.pattern, self.pattern_revision


def judged_at_birth(
    held: Turn,
    row: dict[str, Any],
    owners: Mapping[str, HeldOwner],
    sigils: Mapping[str, HeldSigil],
    patterns: Mapping[tuple[str, str], KnownPattern],
) -> dict[str, Any]:
    """One row with its generation, settled where its authority is gone."""
    owner, sigil = owners.get(row["owner"]), sigils.get(row["sigil"] or "")
    pattern = patterns.get((row["pattern"], row["pattern_revision"]))
    stands = Credentials(
        owner=row["owner"],
        owner_standing=owner.standing if owner else None,
        pattern=row["pattern"],
        pattern_standing=pattern.standing if pattern else None,
        pattern_digest=pattern.digest if pattern else None,
        pinned_digest=row["pattern_digest"],
        sigil_named=row["sigil"],
        sigil=as_sigil(sigil) if sigil else None,
        needs=scopes_of(row["pattern"], row["service_class"], row["capability"]),
    )
    dated = {**row, "authority_generation": owner.generation if owner else 0}
    objection = judge_authority(stands, held.at) if row["state"] is OccurrenceState.PENDING else None
    return dated if objection is None else settled(dated, held, objection.state, objection.reason)


def settled(row: dict[str, Any], held: Turn, state: OccurrenceState, reason: Reason) -> dict[str, Any]:
    """The same row, final at birth."""
    decided = {"state": state, "reason": reason, "waiting_reason": None}
    return {**row, **decided, "decision_time": held.at, "decision_id": held.decision_id}


def firing_digest(firing: Firing) -> Digest:
    """The immutable content of a calendar firing: the civil time that rings, in its zone, and which member (OCC-4)."""
    return digest_of({"civil": firing.civil.isoformat(), "zone": firing.zone, "fold": firing.fold})


OWNERS = sql.SQL("SELECT name, standing, generation FROM principal WHERE name = ANY(%(names)s) ORDER BY name FOR SHARE")

SIGILS = sql.SQL(
    """
    SELECT name, owner, standing, scopes, expires_at FROM sigil WHERE name = ANY(%(names)s) ORDER BY name FOR SHARE
    """
)

PATTERNS = sql.SQL(
    """
    SELECT pattern, pattern_revision, standing, digest FROM pattern_revision WHERE pattern = ANY(%(names)s)
    ORDER BY pattern, pattern_revision FOR SHARE
    """
)
