"""Budgets: ceilings that operators set, and what Runs have reserved and spent of them (AUT-4).

A decision holds the ceilings that it reserves of, so that two of them cannot both take the last of a unit. What a Run has
reserved is written with its admission and settled with its end: from then on what its effects spent is what counts. A crash
between the two leaves the reservation, which is the more careful number.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from psycopg import sql
from psycopg.rows import class_row

from law.budget import Ceiling, check_units
from law.errors import BadInput
from law.identity import RunId
from store.connection import Pool, borrow
from store.locks import HeldBudget
from store.turn import Turn

PERIOD_SECONDS_MAX = 366 * 86_400


@dataclass(frozen=True, slots=True)
class BudgetLine:
    """A ceiling as a list shows it, with what is spent of it now. `period_seconds` 0: for ever."""

    holder_kind: str
    holder: str
    unit: str
    period_seconds: int
    ceiling: float
    generation: int
    spent: float


def ceilings(held: Turn, budgets: list[HeldBudget]) -> dict[tuple[str, str], tuple[Ceiling, ...]]:
    """Every locked ceiling with what is spent of it at the sample, by the kind and name of its holder."""
    found: dict[tuple[str, str], tuple[Ceiling, ...]] = {}
    for one in budgets:
        [(spent,)] = held.rows(
            SPENT, {**said(one.holder_kind, one.holder, one.unit, one.period_seconds), "at": held.at}
        )
        ceiling = Ceiling(f"{one.holder_kind} {one.holder}", one.unit, one.ceiling, spent, one.period_seconds or None)
        of = one.holder_kind, one.holder
        found[of] = (*found.get(of, ()), ceiling)
    return found


def said(holder_kind: str, holder: str, unit: str, period_seconds: int) -> dict[str, object]:
    """Which ceiling, as arguments."""
    return {"holder_kind": holder_kind, "holder": holder, "unit": unit, "period_seconds": period_seconds}


def of_run(held: Turn, run_id: RunId) -> tuple[dict[str, float], dict[str, float]]:
    """What a Run has reserved, and what its effects have spent of it, unit by unit."""
    reserved = dict(held.rows(RESERVED, {"run_id": run_id}))
    return reserved, dict(held.rows(SPENT_BY_RUN, {"run_id": run_id})) if reserved else {}


def left(pool: Pool, run_id: RunId) -> Mapping[str, float]:
    """What a Run may still spend, unit by unit."""
    with borrow(pool) as connection:
        reserved = dict(connection.execute(RESERVED, {"run_id": run_id}).fetchall())
        spent = dict(connection.execute(SPENT_BY_RUN, {"run_id": run_id}).fetchall())
    return {unit: much - spent.get(unit, 0.0) for unit, much in reserved.items()}


def set_budget(pool: Pool, holder_kind: str, holder: str, unit: str, period_seconds: int, ceiling: float) -> BudgetLine:
    """Set a ceiling of an owner or a Schedule. What was reserved before stays reserved. Raises BadInput."""
    if holder_kind not in ("owner", "schedule"):
        raise BadInput(field="holder", reason=f"{holder_kind[:70]!r} is neither owner nor schedule")
    if not holder or len(holder) > 256 or not holder.isprintable():
        raise BadInput(field="holder", reason="must be 1 to 256 printable characters")
    if not 0 <= period_seconds <= PERIOD_SECONDS_MAX:
        raise BadInput(field="period", reason=f"must be 0 to {PERIOD_SECONDS_MAX} seconds")
    check_units("unit", {unit: ceiling})
    which = said(holder_kind, holder, unit, period_seconds)
    with borrow(pool) as connection:
        connection.execute(SET_BUDGET, {**which, "ceiling": ceiling})
    return next(one for one in budgets(pool) if (one.holder_kind, one.holder, one.unit, one.period_seconds)
                == (holder_kind, holder, unit, period_seconds))  # fmt: skip


def budgets(pool: Pool) -> list[BudgetLine]:
    """Every ceiling, by its holder."""
    with borrow(pool) as connection:
        return connection.cursor(row_factory=class_row(BudgetLine)).execute(BUDGETS).fetchall()


SPENT = sql.SQL(
    """
    SELECT CASE %(unit)s::text
        WHEN 'concurrency' THEN (
            SELECT count(*) FROM run n JOIN occurrence o ON o.trigger_occurrence_id = n.trigger_occurrence_id
            JOIN schedule s ON s.schedule_id = n.schedule_id
            WHERE n.state IN ('queued', 'running', 'parked', 'cancelling', 'contained')
              AND CASE %(holder_kind)s::text WHEN 'owner' THEN o.owner ELSE s.authority || '/' || s.name END = %(holder)s)
        WHEN 'runs' THEN (
            SELECT count(*) FROM run n JOIN occurrence o ON o.trigger_occurrence_id = n.trigger_occurrence_id
            JOIN schedule s ON s.schedule_id = n.schedule_id
            WHERE (%(period_seconds)s = 0 OR n.admitted_at > %(at)s::timestamptz - make_interval(secs => %(period_seconds)s))
              AND CASE %(holder_kind)s::text WHEN 'owner' THEN o.owner ELSE s.authority || '/' || s.name END = %(holder)s)
        ELSE (
            SELECT coalesce(sum(coalesce(used, reserved)), 0) FROM budget_use
            WHERE unit = %(unit)s
              AND (%(period_seconds)s = 0 OR reserved_at > %(at)s::timestamptz - make_interval(secs => %(period_seconds)s))
              AND CASE %(holder_kind)s::text WHEN 'owner' THEN owner ELSE schedule END = %(holder)s)
        END::float8
    """
)

RESERVED = sql.SQL("SELECT unit, reserved FROM budget_use WHERE run_id = %(run_id)s")

SPENT_BY_RUN = sql.SQL(
    """
    SELECT c.key, sum(c.value::float8)::float8 FROM effect e, jsonb_each_text(e.cost) AS c
    WHERE e.run_id = %(run_id)s AND e.cost IS NOT NULL AND e.state <> 'failed'
      AND coalesce(e.finding, '') <> 'did_not_happen'
    GROUP BY c.key
    """
)

SET_BUDGET = sql.SQL(
    """
    INSERT INTO budget (holder_kind, holder, unit, period_seconds, ceiling, generation, changed_at)
    VALUES (%(holder_kind)s, %(holder)s, %(unit)s, %(period_seconds)s, %(ceiling)s, 1, trusted_now())
    ON CONFLICT (holder_kind, holder, unit, period_seconds) DO UPDATE SET ceiling = excluded.ceiling,
        generation = budget.generation + 1, changed_at = excluded.changed_at
    """
)

BUDGETS = sql.SQL(
    """
    SELECT b.holder_kind, b.holder, b.unit, b.period_seconds, b.ceiling, b.generation, CASE b.unit
        WHEN 'concurrency' THEN (
            SELECT count(*) FROM run n JOIN occurrence o ON o.trigger_occurrence_id = n.trigger_occurrence_id
            JOIN schedule s ON s.schedule_id = n.schedule_id
            WHERE n.state IN ('queued', 'running', 'parked', 'cancelling', 'contained')
              AND CASE b.holder_kind WHEN 'owner' THEN o.owner ELSE s.authority || '/' || s.name END = b.holder)
        WHEN 'runs' THEN (
            SELECT count(*) FROM run n JOIN occurrence o ON o.trigger_occurrence_id = n.trigger_occurrence_id
            JOIN schedule s ON s.schedule_id = n.schedule_id
            WHERE (b.period_seconds = 0 OR n.admitted_at > trusted_now() - make_interval(secs => b.period_seconds))
              AND CASE b.holder_kind WHEN 'owner' THEN o.owner ELSE s.authority || '/' || s.name END = b.holder)
        ELSE (
            SELECT coalesce(sum(coalesce(u.used, u.reserved)), 0) FROM budget_use u
            WHERE u.unit = b.unit
              AND (b.period_seconds = 0 OR u.reserved_at > trusted_now() - make_interval(secs => b.period_seconds))
              AND CASE b.holder_kind WHEN 'owner' THEN u.owner ELSE u.schedule END = b.holder)
        END::float8 AS spent
    FROM budget b ORDER BY b.holder_kind, b.holder, b.unit, b.period_seconds
    """
)
