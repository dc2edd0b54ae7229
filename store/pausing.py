"""Pause and resume: recorded decisions about a whole Schedule, under the lock that assignment and admission hold.

While it is paused its line stands still and nothing of it is admitted; windows go on closing, events go on being kept. When
it is resumed, whatever rang meanwhile is found late, and the pinned catch-up policy says what is considered and what is
recorded as let go: never a burst (CAL-8). A crash before the commit leaves it as it was; repeating changes nothing.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from psycopg import sql

from law.errors import BadInput, UnknownSchedule
from law.identity import DecisionId, ScheduleName
from law.instants import read_instant
from store.connection import Pool
from store.jsonb import plain_text
from store.locks import HeldSchedule, own_schedule
from store.rows import insert_rows
from store.tables import pause_event
from store.turn import turn

NOTE_LENGTH_MAX = 500


@dataclass(frozen=True, slots=True)
class Paused:
    """How a Schedule stands now. `changed`: whether this call did it; `paused_at` is None when it rings."""

    schedule: ScheduleName
    paused_at: datetime | None
    changed: bool


def pause(pool: Pool, schedule: ScheduleName, note: str, decision_id: DecisionId) -> Paused:
    """Let a Schedule stand still until it is resumed. Raises UnknownSchedule, and BadInput for a note that is too long."""
    return change(pool, schedule, "pause", note, decision_id)


def resume(pool: Pool, schedule: ScheduleName, note: str, decision_id: DecisionId) -> Paused:
    """Let it ring again, by its catch-up policy. Raises as `pause` does."""
    return change(pool, schedule, "resume", note, decision_id)


def change(
    pool: Pool, schedule: ScheduleName, act: Literal["pause", "resume"], note: str, decision_id: DecisionId
) -> Paused:
    """Record the act and make it so; one that is so already is recorded by nobody twice."""
    if len(note) > NOTE_LENGTH_MAX:
        raise BadInput(field="note", reason=f"is longer than {NOTE_LENGTH_MAX} characters")
    with turn(pool, decision_id, own_schedule(schedule)) as held:
        if not held.locked[0]:
            raise UnknownSchedule(schedule=schedule)
        own: HeldSchedule = held.locked[0][0]
        if held.earlier is not None:
            since = held.earlier["paused_at"]
            return Paused(schedule, read_instant(since, "paused_at") if since else None, True)
        if (own.paused_at is not None) == (act == "pause"):
            return Paused(schedule, own.paused_at, False)
        [(ordinal,)] = held.rows(NEXT_ORDINAL, {"schedule_id": own.schedule_id})
        event = {"schedule_id": own.schedule_id, "event_ordinal": ordinal, "act": act, "sampled_at": held.at}
        insert_rows(held, pause_event, [{**event, "note": plain_text(note), "decision_id": held.decision_id}])
        paused_at = held.at if act == "pause" else None
        held.write(SET_PAUSED, {"schedule_id": own.schedule_id, "paused_at": paused_at, "at": held.at})
        held.record(act, {"schedule": schedule, "paused_at": paused_at}, own.last_sampled_at)
        return Paused(schedule, paused_at, True)


NEXT_ORDINAL = sql.SQL(
    "SELECT coalesce(max(event_ordinal), 0) + 1 FROM pause_event WHERE schedule_id = %(schedule_id)s"
)

SET_PAUSED = sql.SQL(
    """
    UPDATE schedule SET paused_at = %(paused_at)s, last_sampled_at = greatest(last_sampled_at, %(at)s)
    WHERE schedule_id = %(schedule_id)s
    """
)
