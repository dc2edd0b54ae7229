"""Readiness convergence (YLD-4): windowed work may ask once that a capability be made ready, under its own declared budget.

The request names a capability and what may be spent, and never an Animator: who makes it ready, and how, is the
Orchestrator's. It moves no bound; work whose window closes meanwhile is missed. Spare capacity never asks (YLD-3).
"""

from dataclasses import dataclass
from typing import Protocol

READY_STATES_ASKED_FOR = frozenset({"COLD"})
"""Only what is cold is asked for: what converges is under way, and what is unknown is nobody's to start."""


@dataclass(frozen=True, slots=True)
class TransitionBudget:
    """What a Schedule may spend on transitions in 24 hours: how many, how many seconds of them, and at what cost in the
    unit the Orchestrator counts in."""

    count: int
    seconds: int
    cost: float


@dataclass(frozen=True, slots=True)
class Spent:
    """What a Schedule's requests of the last 24 hours have spent, or may still spend."""

    count: int = 0
    seconds: int = 0
    cost: float = 0.0


@dataclass(frozen=True, slots=True)
class Asked:
    """One readiness request: the capability, and the most that making it ready may take."""

    capability: str
    seconds_max: int
    cost_max: float


def readiness_request(capability: str, state: str, budget: TransitionBudget | None, spent: Spent) -> Asked | None:
    """What may be asked for now, with all that is left of the budget; None where nothing may."""
    if budget is None or state not in READY_STATES_ASKED_FOR or spent.count >= budget.count:
        return None
    seconds_left, cost_left = budget.seconds - spent.seconds, budget.cost - spent.cost
    return Asked(capability, seconds_left, cost_left) if seconds_left > 0 and cost_left >= 0 else None


@dataclass(frozen=True, slots=True)
class Converged:
    """What the Orchestrator did: whether the capability is warm now, and what that took."""

    warm: bool
    seconds: float
    cost: float
    note: str = ""


class Orchestrator(Protocol):
    """Who makes capabilities ready. It chooses how; it may refuse by answering that nothing is warm."""

    def converge(self, asked: Asked) -> Converged:
        """Make the capability ready within the request's limits, or say that it is not."""
        ...
