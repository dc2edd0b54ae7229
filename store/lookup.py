"""Whose is a firing, and what became of it: by its name, under whatever revision somebody knows it (OCC-1, CUT-4, CAL-8).

Only reads. The answer is what is pinned: the Occurrence that was made; what a cutover said of the name; the long stretch
that was let go whole and answers for every firing inside it; or the line that will ring it, when nobody has yet.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from psycopg import sql

from law.errors import BadInput, UnknownSchedule
from law.firings import Firing
from law.identity import RevisionNumber, ScheduleName, SourceKey, TriggerOccurrenceId
from law.partition import find_firing
from law.triggers import CalendarTrigger
from store.connection import Connection, Pool, borrow
from store.locks import named
from store.pinned import PinnedRevision, pinned_revision

Standing = Literal["occurrence", "skip", "range", "unassigned", "none"]


@dataclass(frozen=True, slots=True)
class Whose:
    """The pinned answer. `key`: the name under which it rings; `standing`: where the answer is written."""

    schedule: ScheduleName
    asked: SourceKey
    key: SourceKey
    standing: Standing
    revision: RevisionNumber | None
    trigger_occurrence_id: TriggerOccurrenceId | None = None
    state: str | None = None
    reason: str | None = None
    at: datetime | None = None


def whose(pool: Pool, schedule: ScheduleName, key: SourceKey, revision: RevisionNumber | None = None) -> Whose:
    """Look up a firing by its key, as `revision` has it (None: as any has it). Raises UnknownSchedule, and BadInput for a
    key that is no firing's name."""
    with borrow(pool) as connection:
        row = connection.execute(SCHEDULE_ID, named(schedule)).fetchone()
        if row is None:
            raise UnknownSchedule(schedule=schedule)
        return look(connection, row[0], schedule, key, revision)


def look(
    connection: Connection, schedule_id: int, schedule: ScheduleName, key: SourceKey, revision: RevisionNumber | None
) -> Whose:
    """The Occurrence, else the cutover's word, else the stretch, else the line."""
    arguments = {"schedule_id": schedule_id, "key": key, "revision": revision}
    excluded = connection.execute(EXCLUDED, arguments).fetchone() if revision is not None else None
    if excluded is not None and excluded[0] == "same_as" and excluded[3] != key:
        renamed = look(connection, schedule_id, schedule, SourceKey(excluded[3]), RevisionNumber(excluded[2]))
        return Whose(
            schedule, key, renamed.key, renamed.standing, renamed.revision,
            renamed.trigger_occurrence_id, renamed.state, renamed.reason, renamed.at,
        )  # fmt: skip
    known = connection.execute(KNOWN, arguments).fetchone()
    if known is not None:
        return Whose(schedule, key, key, "occurrence", *known)
    if excluded is None and revision is None:
        excluded = connection.execute(EXCLUDED_ANYWHERE, arguments).fetchone()
        if excluded is not None and excluded[0] == "same_as":
            return look(connection, schedule_id, schedule, key, RevisionNumber(excluded[4]))
    if excluded is not None and excluded[0] == "skip":
        return Whose(schedule, key, key, "skip", RevisionNumber(excluded[1]), at=excluded[5])
    return along_the_lines(connection, schedule_id, schedule, key)


def along_the_lines(connection: Connection, schedule_id: int, schedule: ScheduleName, key: SourceKey) -> Whose:
    """A firing without a row: let go in a long stretch, or not yet come; found on the line that owns its instant."""
    for revision, digest, first_at, end_at, cursor_at in connection.execute(
        LINES, {"schedule_id": schedule_id}
    ).fetchall():
        firing = firing_of(pinned_revision(connection, schedule_id, revision, digest), key)
        if firing is None or firing.at < first_at or (end_at is not None and firing.at >= end_at):
            continue
        stretch = {"schedule_id": schedule_id, "revision": revision, "at": firing.at}
        skipped = connection.execute(STRETCH, {**stretch, "swallowed": firing.nominal_at is None}).fetchone()
        if skipped is not None:
            state = "failed" if skipped[0] == "gap_failed" else "skipped"
            return Whose(schedule, key, key, "range", revision, None, state, skipped[0], firing.at)
        if firing.at >= cursor_at:
            return Whose(schedule, key, key, "unassigned", revision, at=firing.at)
    return Whose(schedule, key, key, "none", None)


def firing_of(pinned: PinnedRevision, key: SourceKey) -> Firing | None:
    """The firing of this name on a revision's line; None where it has none of that name."""
    trigger = pinned.document.trigger
    if not isinstance(trigger, CalendarTrigger) or pinned.rules is None:
        return None
    try:
        return find_firing(trigger, pinned.document.cycle, pinned.rules, key)
    except BadInput:
        return None


SCHEDULE_ID = sql.SQL("SELECT schedule_id FROM schedule WHERE authority = %(authority)s AND name = %(name)s")

KNOWN = sql.SQL(
    """
    SELECT revision, trigger_occurrence_id, state, coalesce(reason, waiting_reason), rang_at FROM occurrence
    WHERE schedule_id = %(schedule_id)s AND source_key = %(key)s
    """
)

EXCLUDED = sql.SQL(
    """
    SELECT disposition, owner_revision, same_as_revision, same_as_key, revision, rings_at FROM cutover_exclusion
    WHERE schedule_id = %(schedule_id)s AND source_key = %(key)s AND revision = %(revision)s
    ORDER BY activation_ordinal DESC LIMIT 1
    """
)

EXCLUDED_ANYWHERE = sql.SQL(
    """
    SELECT disposition, owner_revision, same_as_revision, same_as_key, revision, rings_at FROM cutover_exclusion
    WHERE schedule_id = %(schedule_id)s AND source_key = %(key)s
    ORDER BY activation_ordinal DESC LIMIT 1
    """
)

LINES = sql.SQL(
    """
    SELECT g.revision, r.digest, g.first_at, g.end_at, g.cursor_at FROM segment g
    JOIN schedule_revision r ON r.schedule_id = g.schedule_id AND r.revision = g.revision
    WHERE g.schedule_id = %(schedule_id)s
    ORDER BY g.segment_ordinal DESC
    """
)

STRETCH = sql.SQL(
    """
    SELECT reason FROM skipped_range
    WHERE schedule_id = %(schedule_id)s AND revision = %(revision)s AND %(at)s BETWEEN first_at AND last_at
      AND %(swallowed)s = (reason IN ('gap_skipped', 'gap_failed'))
    ORDER BY first_at DESC LIMIT 1
    """
)
