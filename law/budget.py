"""Budgets (AUT-4): ceilings that an operator sets, asked again and reserved where work is admitted, and never widened.

A ceiling belongs to an owner or a Schedule, in a named unit, over a period that slides (or for ever). Every Run asks for one
of `runs` and one of `concurrency`, and for whatever its revision reserves (`[budget] reserve`). What is over a ceiling is
refused; over `concurrency` it waits, since that is given back when a Run is settled. What a Run has reserved is the most that
its effects may spend; at its end what they spent is what counts.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from law.errors import BadInput
from law.reasons import OccurrenceState, Reason
from law.verdict import Verdict

RUNS, CONCURRENCY = "runs", "concurrency"
UNIT_LENGTH_MAX = 64


@dataclass(frozen=True, slots=True)
class Ceiling:
    """So much of a unit, and what is spent or reserved of it at the sample. `holder`: `owner NAME` or `schedule NAME`."""

    holder: str
    unit: str
    ceiling: float
    spent: float
    period_seconds: int | None = None


def asks_of(reserve: Mapping[str, float]) -> dict[str, float]:
    """What one Run asks for: its reservations, itself, and its place."""
    return {**reserve, RUNS: 1.0, CONCURRENCY: 1.0}


def judge_budget(
    ceilings: tuple[Ceiling, ...], asks: Mapping[str, float], given: Mapping[tuple[str, str, int | None], float]
) -> Verdict | None:
    """None while every ceiling has room; otherwise the refusal, or the wait. `given`: what this round has given away already,
    by holder, unit and period."""
    for one in ceilings:
        asked = asks.get(one.unit, 0.0)
        spent = one.spent + given.get((one.holder, one.unit, one.period_seconds), 0.0)
        if asked and spent + asked > one.ceiling:
            evidence = {"budget": f"{one.holder}: {one.unit}", "ceiling": one.ceiling, "spent": spent, "asked": asked}
            if one.unit == CONCURRENCY:
                return Verdict(OccurrenceState.PENDING, Reason.BUDGET, evidence)
            period = {} if one.period_seconds is None else {"period_seconds": one.period_seconds}
            return Verdict(OccurrenceState.REFUSED, Reason.BUDGET_SPENT, {**evidence, **period})
    return None


def over(reserved: Mapping[str, float], spent: Mapping[str, float], cost: Mapping[str, float]) -> str:
    """The first unit of which an effect would spend more than its Run has reserved, or ''."""
    return next((unit for unit, much in cost.items() if spent.get(unit, 0.0) + much > reserved.get(unit, 0.0)), "")


def check_units(field: str, amounts: Mapping[str, float]) -> None:
    """Named units with amounts that are not negative. Raises BadInput."""
    for unit, amount in amounts.items():
        if not unit or len(unit) > UNIT_LENGTH_MAX or not unit.isprintable():
            raise BadInput(field=field, reason=f"a unit has 1 to {UNIT_LENGTH_MAX} printable characters")
        if not 0 <= amount < float("inf"):
            raise BadInput(field=field, reason=f"{unit}: {amount} is not an amount")
