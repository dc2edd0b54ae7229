"""What a revision pinned, read back whole: its document and its retained zone rules (CAL-4, OCC-2).

Both are immutable and known by digest, so they are parsed once a process. Whether the rules are still there and unaltered
is asked again at every use, from the row, by the caller's own statement: a cache must never keep a Schedule ringing by
rules that the store no longer has.
"""

from dataclasses import dataclass

from psycopg import sql

from law.errors import BadZoneRules
from law.identity import RevisionNumber, ScheduleName
from law.schedule import ScheduleDocument, check_document
from law.zone_rules import ZoneRules, check_rules
from store.connection import Connection

CACHED_REVISIONS_MAX = 10_000


@dataclass(frozen=True, slots=True)
class PinnedRevision:
    """One exact revision of one Schedule."""

    schedule: ScheduleName
    schedule_id: int
    revision: RevisionNumber
    digest: str
    document: ScheduleDocument
    rules: ZoneRules | None
    pattern_digest: str


def pinned_revision(connection: Connection, schedule_id: int, revision: int, digest: str) -> PinnedRevision:
    """Read a revision. `digest` is the one its row names. Raises BadZoneRules when its rules are gone or altered."""
    known = _known.get((digest, schedule_id, revision))
    return known or remember(load(connection, schedule_id, revision))


def load(connection: Connection, schedule_id: int, revision: int) -> PinnedRevision:
    """Read and check everything that the revision pinned."""
    row = connection.execute(PINNED, {"schedule_id": schedule_id, "revision": revision}).fetchone()
    if row is None:
        raise LookupError(f"revision {revision} of schedule {schedule_id}")
    authority, name, digest, document, zone, rules_digest, release, tzif, pattern_digest = row
    rules = None
    if zone is not None:
        if tzif is None:
            raise BadZoneRules(zone=zone, reason=f"the row {rules_digest} is gone")
        rules = ZoneRules(zone, release, bytes(tzif), rules_digest)
        check_rules(rules)
    return PinnedRevision(
        ScheduleName(f"{authority}/{name}"),
        schedule_id,
        RevisionNumber(revision),
        digest,
        check_document(document),
        rules,
        pattern_digest,
    )


def forget() -> None:
    """Forget every parsed revision, as a process that has just begun would."""
    _known.clear()


_known: dict[tuple[str, int, int], PinnedRevision] = {}


def remember(pinned: PinnedRevision) -> PinnedRevision:
    """Keep a parsed revision, forgetting the one that was kept longest when there are too many."""
    if len(_known) >= CACHED_REVISIONS_MAX:
        _known.pop(next(iter(_known)), None)
    _known[pinned.digest, pinned.schedule_id, pinned.revision] = pinned
    return pinned


PINNED = sql.SQL(
    """
    SELECT s.authority, s.name, r.digest, r.document, r.zone, r.zone_rules_digest, z.release, z.tzif, r.pattern_digest
    FROM schedule_revision r
    JOIN schedule s ON s.schedule_id = r.schedule_id
    LEFT JOIN zone_rules z ON z.digest = r.zone_rules_digest AND z.zone = r.zone
    WHERE r.schedule_id = %(schedule_id)s AND r.revision = %(revision)s
    """
)
