"""Which revisions would ring differently under the zone data that is installed now, and the revision that would follow it
(CAL-4). Looking changes nothing; a draft is a further revision of the same document, registered and not active.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import uuid4

from psycopg import sql

from law.errors import Contradiction
from law.identity import DecisionId, RevisionNumber, ScheduleName
from law.triggers import CalendarTrigger
from law.zone_rules import ZoneRules
from law.zone_watch import Difference, differences
from store import registry
from store.connection import Pool, borrow
from store.pinned import PinnedRevision, pinned_revision
from store.zone_rules import installed_rules

AHEAD = timedelta(days=366)


@dataclass(frozen=True, slots=True)
class Outdated:
    """A revision that rings by rules of another release than the installed one. `differences` is empty where the coming
    year reads alike; `problem` says why it could not be compared, or is ''."""

    schedule: ScheduleName
    revision: RevisionNumber
    zone: str
    retained_release: str
    installed_release: str
    differences: tuple[Difference, ...]
    problem: str = ""


def outdated(pool: Pool, read_installed: Callable[[str], ZoneRules] = installed_rules) -> list[Outdated]:
    """Every revision that still rings and whose retained rules are not the installed ones, by Schedule."""
    with borrow(pool) as connection:
        rows = connection.execute(RINGING).fetchall()
        found: list[Outdated] = []
        for schedule_id, schedule, revision, digest, zone, release, at in rows:
            try:
                pinned = pinned_revision(connection, schedule_id, revision, digest)
                installed = read_installed(zone)
            except Contradiction as problem:
                found.append(Outdated(schedule, revision, zone, release or "", "", (), problem.sentence))
                continue
            if pinned.rules is not None and pinned.rules.digest != installed.digest:
                found.append(compared(pinned, pinned.rules, installed, at))
    return found


def compared(pinned: PinnedRevision, retained: ZoneRules, installed: ZoneRules, at: datetime) -> Outdated:
    """One revision under both releases, for a year from `at`."""
    trigger = pinned.document.trigger
    assert isinstance(trigger, CalendarTrigger)
    changed = differences(trigger, pinned.document.cycle, retained, installed, at, at + AHEAD)
    return Outdated(
        pinned.schedule, pinned.revision, retained.zone, retained.release, installed.release, tuple(changed)
    )


def draft(pool: Pool, schedule: ScheduleName) -> registry.Registered:
    """Register the active revision's own document again, under the rules that are installed now. Raises as `register`
    does; where nothing differs, the revision that there is, is the answer."""
    with borrow(pool) as connection:
        row = connection.execute(ACTIVE, {"schedule": schedule}).fetchone()
        if row is None:
            registry.schedule(pool, schedule)
        assert row is not None
        document = pinned_revision(connection, *row).document
    return registry.register(pool, document, DecisionId(uuid4()))


RINGING = sql.SQL(
    """
    SELECT DISTINCT g.schedule_id, s.authority || '/' || s.name AS schedule, r.revision, r.digest, r.zone, z.release,
           (SELECT trusted_now())
    FROM segment g
    JOIN schedule s ON s.schedule_id = g.schedule_id
    JOIN schedule_revision r ON r.schedule_id = g.schedule_id AND r.revision = g.revision
    LEFT JOIN zone_rules z ON z.digest = r.zone_rules_digest AND z.zone = r.zone
    WHERE g.next_nominal_at IS NOT NULL AND r.zone IS NOT NULL
    ORDER BY schedule, r.revision
    """
)

ACTIVE = sql.SQL(
    """
    SELECT s.schedule_id, r.revision, r.digest FROM schedule s
    JOIN schedule_revision r ON r.schedule_id = s.schedule_id AND r.revision = s.active_revision
    WHERE s.authority || '/' || s.name = %(schedule)s
    """
)
