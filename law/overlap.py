"""Overlap (OVL-1..4, OVL-7): what an Occurrence meets when earlier work of its Schedule is not settled.

Overlap is any earlier nonterminal Invocation of the stable Schedule, across all its revisions: parked, cancelling and
contained included. A released worker or an empty lane proves nothing.
"""

from dataclasses import dataclass
from typing import Literal

from law.reasons import OccurrenceState, Reason
from law.verdict import Verdict

OverlapPolicy = Literal["forbid", "serialize", "bounded_parallel", "coalesce"]


@dataclass(frozen=True, slots=True)
class OverlapTerms:
    """A pinned policy; `parallel_max` counts Invocations and belongs to `bounded_parallel` alone."""

    policy: OverlapPolicy
    parallel_max: int = 1


def judge_overlap(terms: OverlapTerms, nonterminal: int) -> Verdict | None:
    """None when the policy lets it beside `nonterminal` earlier Invocations; otherwise the suppression or the wait."""
    if nonterminal < terms.parallel_max:
        return None
    evidence = {"policy": terms.policy, "nonterminal": nonterminal, "parallel_max": terms.parallel_max}
    if terms.policy == "forbid":
        return Verdict(OccurrenceState.SUPPRESSED, Reason.OVERLAP_FORBIDDEN, evidence)
    return Verdict(OccurrenceState.PENDING, Reason.OVERLAP, evidence)
