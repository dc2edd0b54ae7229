"""Spare capacity is a yield contract (YLD-1..3, YLD-5): what was promised of a slice, what slices have shown, and what follows.

A contract that a Pattern declares is a claim. It is proven by its Pattern revision's own newest slices, each of which kept
every part of it; one slice that did not takes the proof away until as many others have kept it. Work without a proof is not
preemptible, and as spare capacity begins only in a quiet window that an operator approved; if it is known how long it takes,
only where it also ends in it.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from law.estimates import Estimate
from law.finish import RunJudgement
from law.pattern import YieldContract
from law.reasons import OccurrenceState, Reason, RunState
from law.service_class import ServiceClass
from law.verdict import Verdict

SLICES_TO_PROVE = 3
"""So many of the newest slices, all of them, have to have kept the contract."""


@dataclass(frozen=True, slots=True)
class Slice:
    """One hop that ended: how long it held its claim, where it ended, and what it left behind. Its leases are not counted:
    the commit that ends a hop releases them, and the database refuses one that would not."""

    took: timedelta
    at_boundary: bool
    """Whether it ended at a checkpoint of its own, or at the end of the Run."""
    effects_left: int
    """Effects begun and not known to have ended."""


@dataclass(frozen=True, slots=True)
class QuietWindow:
    """A stretch in which an operator lets work that cannot yield use a capability as spare capacity; None: any, or none."""

    opens_at: datetime
    closes_at: datetime
    capability: str | None = None

    def covers(self, capability: str | None, at: datetime) -> bool:
        """Whether it is open for this capability at the sample; its end belongs to it no more."""
        return self.opens_at <= at < self.closes_at and self.capability in (None, capability)


def keeps(contract: YieldContract, one: Slice) -> bool:
    """Whether a slice kept every part of the contract."""
    in_time = timedelta(0) <= one.took <= contract.max_slice  # a clock that stepped back has measured nothing
    return in_time and one.at_boundary and not one.effects_left


def proven(contract: YieldContract | None, newest: Sequence[Slice]) -> bool:
    """Whether the newest slices of the very Pattern revision, newest first, prove its contract (YLD-1)."""
    if contract is None or not contract.is_whole or len(newest) < SLICES_TO_PROVE:
        return False
    return all(keeps(contract, one) for one in newest[:SLICES_TO_PROVE])


def judge_yielding(
    capability: str | None, is_proven: bool, estimate: Estimate | None, windows: Sequence[QuietWindow], at: datetime
) -> Verdict | None:
    """None for spare work that is proven to yield, or that a quiet window covers to its end; otherwise the wait (YLD-2).

    Work that names no capability has nothing that is known to be free, so only a quiet window lets it begin (YLD-3).
    """
    if is_proven and capability is not None:
        return None
    open_now = [window for window in windows if window.covers(capability, at)]
    if any(estimate is None or at + estimate.duration <= window.closes_at for window in open_now):
        return None
    evidence: dict[str, object] = {"capability": capability, "proven": is_proven}
    if open_now and estimate is not None:
        closes_at = max(window.closes_at for window in open_now)
        evidence |= {"closes_at": closes_at, "estimate": estimate.evidence()}
    return Verdict(OccurrenceState.PENDING, Reason.QUIET_WINDOW, evidence)


def next_opening(capability: str | None, windows: Sequence[QuietWindow], at: datetime) -> datetime | None:
    """When the next quiet window for this capability opens."""
    ahead = [window.opens_at for window in windows if window.opens_at > at and window.capability in (None, capability)]
    return min(ahead, default=None)


def after_hop(judged: RunJudgement, capability: str | None, service_class: ServiceClass) -> RunJudgement:
    """A Run that has another hop to go gives back what it held and waits for its turn, where it needs capacity (YLD-5)."""
    needs_capacity = capability is not None or service_class == "spare_capacity"
    if judged.state is RunState.QUEUED and needs_capacity:
        return replace(judged, state=RunState.PARKED, wait_owner="hardware")
    return judged
