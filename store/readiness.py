"""Readiness requests (YLD-4): filed by the decision that found a capability cold, taken and answered by the Orchestrator.

A request is taken by one Orchestrator at a time, under the capability's row; taking it makes the capability CONVERGING, and
the answer makes it WARM or COLD again, and says what was spent. A crash of the Orchestrator between the two leaves the request
taken: after the seconds it was allowed it may be taken again. Nothing here moves a bound.
"""

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from psycopg import sql
from psycopg.rows import class_row

from law.errors import BadInput
from law.identity import DecisionId, ScheduleName, TriggerOccurrenceId
from law.readiness import Converged
from store.capacity import WAITS_FOR, capability_named
from store.connection import Pool, borrow
from store.jsonb import plain_text
from store.turn import turn


@dataclass(frozen=True, slots=True)
class Request:
    """One readiness request. `seconds_max`, `cost_max`: the most that may be spent on it."""

    trigger_occurrence_id: TriggerOccurrenceId
    schedule: ScheduleName
    capability: str
    state: str
    seconds_max: int
    cost_max: float
    asked_at: datetime
    taken_by: str | None
    seconds_spent: float | None
    cost_spent: float | None
    note: str | None


def requests(pool: Pool, limit: int = 100) -> list[Request]:
    """The newest requests, whatever became of them."""
    with borrow(pool) as connection:
        return connection.cursor(row_factory=class_row(Request)).execute(REQUESTS, {"limit": limit}).fetchall()


def open_requests(pool: Pool) -> list[Request]:
    """What may be taken now, oldest first: what nobody took, and what was taken and not answered in its time."""
    with borrow(pool) as connection:
        return connection.cursor(row_factory=class_row(Request)).execute(OPEN).fetchall()


def take(pool: Pool, request: Request, taken_by: str, decision_id: DecisionId) -> bool:
    """Take one request and let its capability converge. False where another took it, or it is cold no more."""
    arguments = {"trigger_occurrence_id": request.trigger_occurrence_id, "taken_by": taken_by}
    with turn(pool, decision_id, capability_named(request.capability)) as held:
        if held.earlier is not None:
            return bool(held.earlier["taken"])
        taken = bool(held.rows(TAKE, {**arguments, "at": held.at}))
        if taken:
            held.write(CONVERGING, {"capability": request.capability, "at": held.at})
        held.record("readiness", {"taken": taken})
        return taken


def answer(
    pool: Pool, request: Request, taken_by: str, converged: Converged, decision_id: DecisionId
) -> tuple[ScheduleName, ...]:
    """Record what the Orchestrator did, and how the capability is now; and who waits for it.

    Raises BadInput where the request is not this Orchestrator's (any more), or for a negative spending.
    """
    if converged.seconds < 0 or converged.cost < 0:
        raise BadInput(field="converged", reason="what was spent cannot be negative")
    with turn(pool, decision_id, capability_named(request.capability)) as held:
        if held.earlier is None:
            arguments = {
                "trigger_occurrence_id": request.trigger_occurrence_id,
                "taken_by": taken_by,
                "state": "converged" if converged.warm else "failed",
                "seconds_spent": converged.seconds,
                "cost_spent": converged.cost,
                "note": plain_text(converged.note)[:500] or None,
                "at": held.at,
            }
            if not held.rows(ANSWER, arguments):
                raise BadInput(field="request", reason=f"{request.trigger_occurrence_id} is not held by {taken_by!r}")
            state = "WARM" if converged.warm else "COLD"
            held.write(CONVERGED, {"capability": request.capability, "state": state, "at": held.at})
            held.record("readiness", {"capability": request.capability, "state": state})
        return tuple(ScheduleName(name) for (name,) in held.rows(WAITS_FOR, {"capability": request.capability}))


def request_of(pool: Pool, occurrence: UUID) -> Request | None:
    """The one request of an Occurrence, or None."""
    with borrow(pool) as connection:
        cursor = connection.cursor(row_factory=class_row(Request))
        return cursor.execute(REQUEST_OF, {"trigger_occurrence_id": occurrence}).fetchone()


COLUMNS = sql.SQL(
    """
    SELECT q.trigger_occurrence_id, s.authority || '/' || s.name AS schedule, q.capability, q.state, q.seconds_max,
           q.cost_max, q.asked_at, q.taken_by, q.seconds_spent, q.cost_spent, q.note
    FROM readiness_request q JOIN schedule s ON s.schedule_id = q.schedule_id
    """
)

REQUESTS = sql.SQL("{columns} ORDER BY q.asked_at DESC LIMIT %(limit)s").format(columns=COLUMNS)

OPEN = sql.SQL(
    """
    {columns}
    JOIN capability c ON c.capability = q.capability
    WHERE (q.state = 'asked' AND c.state = 'COLD')
       OR (q.state = 'taken' AND q.taken_at + make_interval(secs => q.seconds_max) <= trusted_now())
    ORDER BY q.asked_at
    """
).format(columns=COLUMNS)

REQUEST_OF = sql.SQL("{columns} WHERE q.trigger_occurrence_id = %(trigger_occurrence_id)s").format(columns=COLUMNS)

TAKE = sql.SQL(
    """
    UPDATE readiness_request q SET state = 'taken', taken_at = %(at)s, taken_by = %(taken_by)s
    WHERE q.trigger_occurrence_id = %(trigger_occurrence_id)s
      AND ((q.state = 'asked' AND EXISTS (
                SELECT FROM capability c WHERE c.capability = q.capability AND c.state = 'COLD'))
           OR (q.state = 'taken' AND q.taken_at + make_interval(secs => q.seconds_max) <= %(at)s))
    RETURNING q.trigger_occurrence_id
    """
)

CONVERGING = sql.SQL(
    "UPDATE capability SET state = 'CONVERGING', changed_at = %(at)s WHERE capability = %(capability)s"
)

ANSWER = sql.SQL(
    """
    UPDATE readiness_request SET state = %(state)s, answered_at = %(at)s, seconds_spent = %(seconds_spent)s,
        cost_spent = %(cost_spent)s, note = %(note)s
    WHERE trigger_occurrence_id = %(trigger_occurrence_id)s AND state = 'taken' AND taken_by = %(taken_by)s
    RETURNING trigger_occurrence_id
    """
)

CONVERGED = sql.SQL(
    """
    UPDATE capability SET state = %(state)s, changed_at = %(at)s
    WHERE capability = %(capability)s AND state = 'CONVERGING'
    """
)
