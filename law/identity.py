"""Who is who: the identities that survive every crash, relay and revision (OCC-1, OCC-3, OCC-7).

Whoever rediscovers a firing computes the same id from the Schedule's name and the source firing's key, so a second
discovery can only meet the first. Nothing that may differ between two discoveries (the revision, jitter, the moment,
the attempt) is part of an identity. `TriggerOccurrenceId` and `StationAttemptId` are different types and are never
joined.
"""

import hashlib
import re
from datetime import datetime
from typing import Literal, NewType
from uuid import UUID, uuid5

import rfc8785

from law.errors import BadInput

ScheduleName = NewType("ScheduleName", str)
RevisionNumber = NewType("RevisionNumber", int)
SourceKey = NewType("SourceKey", str)
TriggerOccurrenceId = NewType("TriggerOccurrenceId", UUID)
StationAttemptId = NewType("StationAttemptId", UUID)
InvocationId = NewType("InvocationId", UUID)
RunId = NewType("RunId", UUID)
EnqueueSeq = NewType("EnqueueSeq", int)
ClaimId = NewType("ClaimId", UUID)
DecisionId = NewType("DecisionId", UUID)
Digest = NewType("Digest", str)

Cycle = Literal["nominal", "civil_date", "civil_hour", "iso_week", "civil_month"]

NIGHTBELL = UUID("5f0b9a0e-3b0d-5b7c-9a51-0f4e1d2c6b77")
"""The namespace of every derived id. It never changes: a change would ring every known firing again."""

SLUG = re.compile(r"[a-z0-9](?:[a-z0-9._-]{0,61}[a-z0-9])?")
EVENT_PART_LENGTH_MAX = 512
NUL = re.compile(rb"(?<!\\)(?:\\\\)*\\u0000")
"""NUL as canonical JSON spells it, and not a backslash that somebody wrote before `u0000`."""


def schedule_name(authority: str, name: str) -> ScheduleName:
    """Join `authority/name`. Raises BadInput when either part is not a slug."""
    for field, part in (("authority", authority), ("name", name)):
        if not SLUG.fullmatch(part):
            raise BadInput(
                field=field, reason=f"{part[:70]!r} is not a slug (lower-case letters, digits, and . _ - inside)"
            )
    return ScheduleName(f"{authority}/{name}")


def calendar_key(cycle: Cycle, zone: str, civil: datetime, fold: int) -> SourceKey:
    """Name a calendar firing within its Schedule by the declared cycle. `civil` is naive, `fold` is 0 or 1 (CAL-2)."""
    if cycle == "nominal":
        return SourceKey(f"nominal:{civil.isoformat(timespec='seconds')}[{zone}]#{fold}")
    if cycle == "civil_date":
        return SourceKey(f"civil_date:{civil:%Y-%m-%d}")
    if cycle == "civil_hour":
        return SourceKey(f"civil_hour:{civil:%Y-%m-%dT%H}")
    if cycle == "iso_week":
        year, week, _ = civil.isocalendar()
        return SourceKey(f"iso_week:{year:04d}-W{week:02d}")
    return SourceKey(f"civil_month:{civil:%Y-%m}")


def event_key(source: str, event_id: str) -> SourceKey:
    """Name an external firing by its source and event id (OCC-5). Raises BadInput for an empty, long or unprintable part."""
    if not SLUG.fullmatch(source):
        raise BadInput(
            field="source", reason=f"{source[:70]!r} is not a slug (lower-case letters, digits, and . _ - inside)"
        )
    if not event_id or len(event_id) > EVENT_PART_LENGTH_MAX or not event_id.isprintable():
        raise BadInput(field="event_id", reason=f"must be 1 to {EVENT_PART_LENGTH_MAX} printable characters")
    return SourceKey(f"event:{source}:{event_id}")


def trigger_occurrence_id(schedule: ScheduleName, key: SourceKey) -> TriggerOccurrenceId:
    """The one id of one source firing of one Schedule, whoever computes it (OCC-1)."""
    return TriggerOccurrenceId(uuid5(NIGHTBELL, f"occurrence|{schedule}|{key}"))


def invocation_id(occurrence: TriggerOccurrenceId, ordinal: int) -> InvocationId:
    """The Invocation of an Occurrence: ordinal 0 at admission, higher for related recoveries (OCC-6, IDN-4)."""
    return InvocationId(uuid5(NIGHTBELL, f"invocation|{occurrence}|{ordinal}"))


def run_id(occurrence: TriggerOccurrenceId, ordinal: int) -> RunId:
    """The Run of that Invocation."""
    return RunId(uuid5(NIGHTBELL, f"run|{occurrence}|{ordinal}"))


def lane_message_id(run: RunId, enqueue_seq: EnqueueSeq) -> str:
    """The name of one delivery hop on any lane: publishing it twice is publishing it once (IDN-1)."""
    return f"run:{run}:{enqueue_seq}"


def digest_of(value: object, field: str = "content") -> Digest:
    """SHA-256 over RFC 8785 canonical JSON. Raises BadInput naming `field` for what canonical JSON cannot carry, and for
    text with a NUL, which PostgreSQL's JSON cannot."""
    try:
        canonical = rfc8785.dumps(value)  # pyright: ignore[reportArgumentType]  # it checks the value itself
    except (rfc8785.CanonicalizationError, RecursionError) as problem:
        raise BadInput(field=field, reason=f"is not JSON: {problem}") from problem
    if NUL.search(canonical):
        raise BadInput(field=field, reason="holds the character NUL, which no store of text can keep")
    return digest_of_bytes(canonical)


def digest_of_bytes(content: bytes) -> Digest:
    """SHA-256 of bytes as `sha256:<hex>`."""
    return Digest(f"sha256:{hashlib.sha256(content).hexdigest()}")
