"""What an operator, or the Orchestrator, says of a capability, and the quiet windows an operator approves (SEL-2, YLD-2).

A change holds the capability's row, which every decision about it holds too: it waits for a decision in flight and is seen by
the next. It decides nothing itself; whoever waits for the capability is named, to be asked to look again. A crash before the
commit leaves everything as it was; a crash after it leaves a capability that was changed after it was last judged, which is
what the relay looks for.
"""

from dataclasses import asdict, dataclass
from datetime import datetime
from uuid import UUID

from psycopg import sql
from psycopg.rows import class_row

from law.capacity import Capability, CapabilityState, check_capability
from law.errors import BadInput
from law.identity import DecisionId, ScheduleName
from store.connection import Pool, borrow
from store.jsonb import plain_text
from store.locks import CAPABILITY, HeldCapability
from store.turn import Lock, turn

NOTE_LENGTH_MAX = 500


@dataclass(frozen=True, slots=True)
class CapabilityLine:
    """A capability as a list shows it: what was said of it, what is held, and how much waits for it."""

    capability: str
    state: str
    admission: str
    sharing: str
    units: int
    protected_units: int
    foreground_units: int
    held: int
    leases: int
    waiting: int
    changed_at: datetime


def set_capability(pool: Pool, one: Capability, decision_id: DecisionId) -> tuple[ScheduleName, ...]:
    """Register a capability, or say how it is now. Returns the Schedules of which something waits for it.

    Raises BadInput for numbers that contradict each other. Units may be fewer than what is held: then nothing is granted
    until enough was released. The same `decision_id` changes nothing twice.
    """
    check_capability(one)
    with turn(pool, decision_id, capability_named(one.name)) as held:
        if held.earlier is None:
            held.write(SET_CAPABILITY, {**asdict(one), "at": held.at})
            held.record("capability", asdict(one))
        return tuple(ScheduleName(name) for (name,) in held.rows(WAITS_FOR, {"capability": one.name}))


def set_state(pool: Pool, name: str, state: CapabilityState, decision_id: DecisionId) -> tuple[ScheduleName, ...]:
    """Say only whether a known capability is ready. Raises BadInput for one that is not registered."""
    with turn(pool, decision_id, capability_named(name)) as held:
        if not held.locked[0]:
            raise BadInput(field="capability", reason=f"{name[:128]!r} is not registered")
        if held.earlier is None:
            held.write(SET_STATE, {"capability": name, "state": state, "at": held.at})
            held.record("capability", {"name": name, "state": state})
        return tuple(ScheduleName(found) for (found,) in held.rows(WAITS_FOR, {"capability": name}))


def capability_named(name: str) -> Lock:
    """One capability; none where it is not registered yet."""
    return Lock(CAPABILITY, CAPABILITY_NAMED, {"capability": name}, HeldCapability)


def capabilities(pool: Pool) -> list[CapabilityLine]:
    """Every registered capability by name."""
    with borrow(pool) as connection:
        return connection.cursor(row_factory=class_row(CapabilityLine)).execute(CAPABILITIES).fetchall()


def capability(pool: Pool, name: str) -> Capability | None:
    """What was last said of one capability; None where it is not registered."""
    with borrow(pool) as connection:
        row = connection.execute(CAPABILITY_SAID, {"capability": name}).fetchone()
    return Capability(*row) if row is not None else None


@dataclass(frozen=True, slots=True)
class Approved:
    """A quiet window as an operator approved it. `capability` None: any, and work that names none."""

    quiet_window_id: UUID
    capability: str | None
    opens_at: datetime
    closes_at: datetime
    approved_by: str
    note: str
    withdrawn_at: datetime | None = None


def approve_quiet_window(
    pool: Pool,
    quiet_window_id: UUID,
    capability: str | None,
    opens_at: datetime,
    closes_at: datetime,
    approved_by: str,
    note: str,
) -> tuple[Approved, tuple[ScheduleName, ...]]:
    """Let work that cannot yield use a capability as spare capacity between two instants; and who waits for that (YLD-2).

    Raises BadInput for a window that is empty or already over, or that nobody answers for. The same id approves once.
    """
    if not approved_by or len(approved_by) > 128 or not approved_by.isprintable():
        raise BadInput(field="approved_by", reason="must name who approves it, in at most 128 printable characters")
    if len(note) > NOTE_LENGTH_MAX:
        raise BadInput(field="note", reason=f"is longer than {NOTE_LENGTH_MAX} characters")
    if opens_at >= closes_at:
        raise BadInput(field="closes_at", reason="is not after the instant at which the window opens")
    arguments = {
        "quiet_window_id": quiet_window_id,
        "capability": capability,
        "opens_at": opens_at,
        "closes_at": closes_at,
        "approved_by": approved_by,
        "note": plain_text(note),
    }
    with borrow(pool) as connection, connection.transaction():
        [(over,)] = connection.execute(IS_OVER, {"closes_at": closes_at}).fetchall()
        if over:
            raise BadInput(field="closes_at", reason="lies in the past")
        connection.execute(APPROVE, arguments)
        waiting = connection.execute(WAITS_FOR_QUIET, {"capability": capability}).fetchall()
    approved = Approved(quiet_window_id, capability, opens_at, closes_at, approved_by, plain_text(note))
    return approved, tuple(ScheduleName(name) for (name,) in waiting)


def withdraw_quiet_window(pool: Pool, quiet_window_id: UUID, withdrawn_by: str) -> Approved:
    """Take an approval back: nothing more begins in it, and what began goes on. Raises BadInput for one that is not known or
    was withdrawn before."""
    if not withdrawn_by or len(withdrawn_by) > 128 or not withdrawn_by.isprintable():
        raise BadInput(field="withdrawn_by", reason="must name who withdraws it, in at most 128 printable characters")
    arguments = {"quiet_window_id": quiet_window_id, "withdrawn_by": withdrawn_by}
    with borrow(pool) as connection:
        row = connection.cursor(row_factory=class_row(Approved)).execute(WITHDRAW, arguments).fetchone()
    if row is None:
        raise BadInput(field="quiet_window", reason=f"{quiet_window_id} is not known, or was withdrawn before")
    return row


def approved_quiet_windows(pool: Pool) -> list[Approved]:
    """Every quiet window that is not over, by its opening; withdrawn ones too."""
    with borrow(pool) as connection:
        return connection.cursor(row_factory=class_row(Approved)).execute(APPROVED).fetchall()


@dataclass(frozen=True, slots=True)
class Leak:
    """A lease, or a sum of them, that contradicts the Runs."""

    capability: str
    run_id: str
    problem: str


def reconcile(pool: Pool) -> list[Leak]:
    """Compare leases with Runs, and with what there is: empty where they agree. Constraints refuse each of these, so a row
    found here was made around them."""
    with borrow(pool) as connection:
        return connection.cursor(row_factory=class_row(Leak)).execute(RECONCILE).fetchall()


CAPABILITY_NAMED = sql.SQL(
    """
    SELECT capability, state, admission, sharing, units, protected_units, foreground_units FROM capability
    WHERE capability = %(capability)s
    FOR NO KEY UPDATE
    """
)

SET_CAPABILITY = sql.SQL(
    """
    INSERT INTO capability (capability, state, admission, sharing, units, protected_units, foreground_units, changed_at)
    VALUES (%(name)s, %(state)s, %(admission)s, %(sharing)s, %(units)s, %(protected_units)s, %(foreground_units)s, %(at)s)
    ON CONFLICT (capability) DO UPDATE SET state = excluded.state, admission = excluded.admission,
        sharing = excluded.sharing, units = excluded.units, protected_units = excluded.protected_units,
        foreground_units = excluded.foreground_units, changed_at = excluded.changed_at
    """
)

SET_STATE = sql.SQL("UPDATE capability SET state = %(state)s, changed_at = %(at)s WHERE capability = %(capability)s")

WAITS_FOR = sql.SQL(
    """
    SELECT s.authority || '/' || s.name FROM schedule s WHERE s.schedule_id IN (
        SELECT schedule_id FROM occurrence
        WHERE state = 'pending' AND capability IS NOT NULL AND capability = %(capability)s
        UNION
        SELECT schedule_id FROM run WHERE wait_owner = 'hardware' AND capability = %(capability)s
    )
    ORDER BY s.schedule_id
    """
)

WAITS_FOR_QUIET = sql.SQL(
    """
    SELECT s.authority || '/' || s.name FROM schedule s WHERE s.schedule_id IN (
        SELECT schedule_id FROM occurrence
        WHERE state = 'pending' AND waiting_reason = 'quiet_window'
          AND (%(capability)s::text IS NULL OR capability = %(capability)s)
        UNION
        SELECT schedule_id FROM run
        WHERE wait_owner = 'hardware' AND (%(capability)s::text IS NULL OR capability = %(capability)s)
    )
    ORDER BY s.schedule_id
    """
)

CAPABILITIES = sql.SQL(
    """
    SELECT c.capability, c.state, c.admission, c.sharing, c.units, c.protected_units, c.foreground_units,
           coalesce((SELECT sum(units) FROM lease l
                     WHERE l.capability = c.capability AND l.released_at IS NULL), 0)::int AS held,
           (SELECT count(*) FROM lease l WHERE l.capability = c.capability AND l.released_at IS NULL)::int AS leases,
           (SELECT count(*) FROM occurrence o
            WHERE o.capability = c.capability AND o.capability IS NOT NULL AND o.state = 'pending')::int
           + (SELECT count(*) FROM run n
              WHERE n.capability = c.capability AND n.wait_owner = 'hardware')::int AS waiting,
           c.changed_at
    FROM capability c ORDER BY c.capability
    """
)

CAPABILITY_SAID = sql.SQL(
    """
    SELECT capability, state, admission, units, protected_units, foreground_units, sharing FROM capability
    WHERE capability = %(capability)s
    """
)

IS_OVER = sql.SQL("SELECT %(closes_at)s <= trusted_now()")

APPROVE = sql.SQL(
    """
    INSERT INTO quiet_window (quiet_window_id, capability, opens_at, closes_at, approved_by, note, approved_at)
    VALUES (%(quiet_window_id)s, %(capability)s, %(opens_at)s, %(closes_at)s, %(approved_by)s, %(note)s, trusted_now())
    ON CONFLICT (quiet_window_id) DO NOTHING
    """
)

WITHDRAW = sql.SQL(
    """
    UPDATE quiet_window SET withdrawn_at = trusted_now(), withdrawn_by = %(withdrawn_by)s
    WHERE quiet_window_id = %(quiet_window_id)s AND withdrawn_at IS NULL
    RETURNING quiet_window_id, capability, opens_at, closes_at, approved_by, note, withdrawn_at
    """
)

APPROVED = sql.SQL(
    """
    SELECT quiet_window_id, capability, opens_at, closes_at, approved_by, note, withdrawn_at FROM quiet_window
    WHERE closes_at > trusted_now() ORDER BY opens_at, quiet_window_id
    """
)

RECONCILE = sql.SQL(
    """
    SELECT l.capability, l.run_id::text AS run_id,
           'held by hop ' || l.enqueue_seq || ' of a Run that is ' || n.state || ' at hop ' || n.enqueue_seq AS problem
    FROM lease l JOIN run n ON n.run_id = l.run_id
    WHERE l.released_at IS NULL
      AND (n.state NOT IN ('queued', 'running', 'cancelling') OR n.enqueue_seq <> l.enqueue_seq)
    UNION ALL
    SELECT n.capability, n.run_id::text, 'is ' || n.state || ' and holds nothing' FROM run n
    WHERE n.capability IS NOT NULL AND n.state IN ('queued', 'running')
      AND NOT EXISTS (SELECT FROM lease l WHERE l.run_id = n.run_id AND l.released_at IS NULL)
    ORDER BY capability, run_id
    """
)
