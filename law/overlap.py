"""Overlap (OVL-1..5, OVL-7): what an Occurrence meets when earlier work of its Schedule is not settled.

Overlap is any earlier nonterminal Invocation of the stable Schedule, across all its revisions: parked, cancelling and
contained included. A released worker or an empty lane proves nothing.

`forbid` lets the new one go; the others keep it waiting. `serialize` also keeps the order in which firings rang: nothing
passes a predecessor that is not decided. `bounded_parallel` counts Invocations, and units where a ceiling is pinned.
`coalesce` waits for the way to be free, and then goes as one (see `law.merging`).
"""

from dataclasses import dataclass
from typing import Literal

from law.reasons import OccurrenceState, Reason
from law.verdict import Verdict

OverlapPolicy = Literal["forbid", "serialize", "bounded_parallel", "coalesce"]


@dataclass(frozen=True, slots=True)
class OverlapTerms:
    """A pinned policy; `parallel_max` counts Invocations, `units_max` the units of their capabilities together (None: no
    ceiling of its own). Both belong to `bounded_parallel` alone."""

    policy: OverlapPolicy
    parallel_max: int = 1
    units_max: int | None = None


@dataclass(frozen=True, slots=True)
class Live:
    """The nonterminal Invocations of one Schedule, and the units that they asked for."""

    count: int = 0
    units: int = 0

    def __add__(self, units: int) -> "Live":
        """With one more Invocation of so many units."""
        return Live(self.count + 1, self.units + units)


def judge_overlap(terms: OverlapTerms, live: Live, units: int = 0) -> Verdict | None:
    """None when the policy lets work of so many units beside what is live; otherwise the suppression or the wait."""
    over_units = terms.units_max is not None and live.units + units > terms.units_max
    if live.count < terms.parallel_max and not over_units:
        return None
    evidence: dict[str, object] = {
        "policy": terms.policy,
        "nonterminal": live.count,
        "parallel_max": terms.parallel_max,
    }
    if terms.units_max is not None:
        evidence |= {"units": units, "units_held": live.units, "units_max": terms.units_max}
    if terms.policy == "forbid":
        return Verdict(OccurrenceState.SUPPRESSED, Reason.OVERLAP_FORBIDDEN, evidence)
    return Verdict(OccurrenceState.PENDING, Reason.OVERLAP, evidence)


def behind(predecessor: str) -> Verdict:
    """The wait of a serialized Occurrence whose predecessor is not decided (OVL-3)."""
    return Verdict(OccurrenceState.PENDING, Reason.OVERLAP, {"policy": "serialize", "behind": predecessor})
