"""External firings: one event of one source becomes one Occurrence, whoever brings it and however often (OCC-1, 3, 4, 5).

`offer` holds the Schedule's row, the same that activation holds, so that an event first met during a switch belongs to
exactly one revision. It looks the event up before it consults any revision: a repeat is answered from the Occurrence that
was made for the first, under the revision that was assigned then, and changed content fails closed. A crash before the
commit leaves no Occurrence, and the event may be offered again; a crash after it leaves the one that a repeat will find.
"""

from dataclasses import dataclass, field
from random import random
from typing import Any, Literal

from psycopg import sql

from law.bounds import Bounds, event_bounds
from law.errors import BadInput, ContentChanged, UnknownSchedule
from law.identity import (
    DecisionId,
    Digest,
    RevisionNumber,
    ScheduleName,
    SourceKey,
    TriggerOccurrenceId,
    digest_of,
    event_key,
    trigger_occurrence_id,
)
from law.origin import Origin, OriginPolicy, check_principal, policy_for
from law.reasons import MEANINGS, OccurrenceState, Reason
from law.service_class import ServiceClass
from law.triggers import ExternalTrigger
from store.connection import Pool
from store.firing_rows import settled, with_authority, work_columns
from store.jsonb import dumps
from store.locks import HeldPolicy, HeldSchedule, own_schedule, policies_of
from store.pinned import PinnedRevision, pinned_revision
from store.policies import as_policy
from store.rows import insert_rows
from store.tables import decision, occurrence
from store.turn import Turn, turn

CONTENT_LENGTH_MAX = 262_144


@dataclass(frozen=True, slots=True)
class Offer:
    """An external firing as its sender says it. `content` is JSON and immutable once offered; '' asks for the Schedule's
    own class."""

    schedule: ScheduleName
    source: str
    event_id: str
    content: dict[str, Any] = field(default_factory=dict[str, Any])
    requested_class: ServiceClass | Literal[""] = ""
    origin: Origin = "operator"
    principal: str = ""


@dataclass(frozen=True, slots=True)
class Offered:
    """The Occurrence of this event: made now (`created`), or found with what became of it."""

    trigger_occurrence_id: TriggerOccurrenceId
    key: SourceKey
    revision: RevisionNumber
    state: str
    reason: str
    created: bool


def offer(pool: Pool, asked: Offer, decision_id: DecisionId) -> Offered:
    """Make the event's Occurrence durable, or find it. Raises BadInput, UnknownSchedule and ContentChanged (OCC-4)."""
    key = event_key(asked.source, asked.event_id)
    check_principal(asked.principal)
    content_digest = digest_of(asked.content)
    if len(dumps(asked.content)) > CONTENT_LENGTH_MAX:
        raise BadInput(field="content", reason=f"is longer than {CONTENT_LENGTH_MAX} characters of JSON")
    with turn(pool, decision_id, own_schedule(asked.schedule), policies_of(asked.origin)) as held:
        if not held.locked[0]:
            raise UnknownSchedule(schedule=asked.schedule)
        own: HeldSchedule = held.locked[0][0]
        known_as = trigger_occurrence_id(asked.schedule, key)
        known = held.records(Known, KNOWN, {"trigger_occurrence_id": known_as})
        if known:
            return found(asked, key, content_digest, known[0])
        pinned = active_revision(held, own)
        [row] = with_authority(held, [event_row(held, pinned, asked, key, content_digest)])
        insert_rows(held, occurrence, [row])
        if row["state"] is not OccurrenceState.PENDING:
            insert_rows(held, decision, [refusal_row(row, asked)])
        held.record("offer", {"trigger_occurrence_id": known_as, "key": key}, own.last_sampled_at)
        reason = row.get("reason") or row["waiting_reason"] or ""
        return Offered(known_as, key, pinned.revision, str(row["state"]), str(reason), True)


@dataclass(frozen=True, slots=True)
class Known:
    """What is already known of this very event."""

    trigger_occurrence_id: TriggerOccurrenceId
    revision: RevisionNumber
    state: str
    reason: str | None
    content_digest: Digest


def found(asked: Offer, key: SourceKey, content_digest: Digest, known: Known) -> Offered:
    """The original, whatever revision is active by now; or the contradiction (OCC-4)."""
    if known.content_digest != content_digest:
        raise ContentChanged(schedule=asked.schedule, key=key, known=known.content_digest, offered=content_digest)
    return Offered(known.trigger_occurrence_id, key, known.revision, known.state, known.reason or "", False)


def active_revision(held: Turn, own: HeldSchedule) -> PinnedRevision:
    """The revision that owns an event at its first committed assignment (OCC-5)."""
    arguments = {"schedule_id": own.schedule_id, "revision": own.active_revision}
    [(digest,)] = held.rows(REVISION_DIGEST, arguments)
    return pinned_revision(held.connection, own.schedule_id, own.active_revision, digest)


def event_row(
    held: Turn, pinned: PinnedRevision, asked: Offer, key: SourceKey, content_digest: Digest
) -> dict[str, Any]:
    """The Occurrence's row: assigned to `pinned`, ringing at the sample."""
    document = pinned.document
    check_source(document.trigger, asked)
    requested = asked.requested_class or document.class_.service_class
    granted = document.grant(requested, policy_for(policies(held), asked.origin, asked.principal))
    window = document.window_for(granted.service_class)
    if granted.service_class == "deadline_windowed" and window is None:
        raise BadInput(field="class", reason="this Schedule declares no window, so deadline_windowed cannot be granted")
    bounds: Bounds = event_bounds(window, document.jitter, held.at, pinned.schedule, key, draw=random())
    work_input = {**document.work.input, **asked.content}
    row = {
        **work_columns(held, pinned, key, bounds, work_input, granted),
        "source_kind": "event",
        "content_digest": content_digest,
        "rang_at": held.at,
        "nominal_at": held.at,
        "event_source": asked.source,
        "event_id": asked.event_id,
        "origin": asked.origin,
        "origin_principal": asked.principal or None,
        "requested_class": requested,
        "finish_proof": window.finish_proof if window else None,
        "found_late": False,
    }
    return row if granted.refusal is None else settled(row, held, OccurrenceState.REFUSED, granted.refusal)


def policies(held: Turn) -> list[OriginPolicy]:
    """What operators let this origin ask for, as it was locked."""
    locked: list[HeldPolicy] = held.locked[1]
    return [as_policy(one) for one in locked]


def refusal_row(row: dict[str, Any], asked: Offer) -> dict[str, Any]:
    """The durable record of an event that policy refused: who asked for what (CLS-2, EVD-1)."""
    reason = Reason(row["reason"])
    return {
        "decision_id": row["decision_id"],
        "trigger_occurrence_id": row["trigger_occurrence_id"],
        "act": "offer",
        "outcome": row["state"],
        "reason": reason,
        "obligations": list(MEANINGS[reason].obligations),
        "evidence": {
            "origin": asked.origin,
            "principal": asked.principal,
            "requested_class": row["requested_class"],
            "policy_generation": row["policy_generation"],
        },
        "sampled_at": row["decision_time"],
    }


def check_source(trigger: object, asked: Offer) -> None:
    """Only the declared source rings an external Schedule; nothing rings a calendar's from outside."""
    if not isinstance(trigger, ExternalTrigger):
        raise BadInput(field="schedule", reason=f"{asked.schedule} is rung by its calendar and takes no events")
    if trigger.source != asked.source:
        raise BadInput(field="source", reason=f"{asked.schedule} listens to {trigger.source!r}, not {asked.source!r}")


KNOWN = sql.SQL(
    """
    SELECT trigger_occurrence_id, revision, state, coalesce(reason, waiting_reason) AS reason, content_digest FROM occurrence
    WHERE trigger_occurrence_id = %(trigger_occurrence_id)s
    """
)

REVISION_DIGEST = sql.SQL(
    "SELECT digest FROM schedule_revision WHERE schedule_id = %(schedule_id)s AND revision = %(revision)s"
)
