"""Which of several waiting Occurrences stands for the others, and which of them it may stand for (OVL-5, OVL-6).

The head is the one whose bounds are the tightest, so that what is admitted for all keeps the bounds of each. The others are
compared with it in the order in which they rang; inputs are merged together, and one by one only where that fails, so that it
can be said whose input it is that does not fit.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from law.candidates import Candidate
from law.merging import Merge, Mergeable, Merged, Unmergeable, difference, sealed
from law.reasons import OccurrenceState, Reason
from law.verdict import Verdict

LATEST = datetime.max.replace(tzinfo=UTC)


@dataclass(slots=True)
class Group:
    """One head, whom it stands for, and whom it refuses with the difference. `waits`: nobody here can merge them."""

    head: Candidate
    merged_in: list[Candidate] = field(default_factory=list[Candidate])
    refused: list[tuple[Candidate, Reason, str]] = field(default_factory=list[tuple[Candidate, Reason, str]])
    merged: Merged | None = None
    waits: Verdict | None = None


def coalesce(members: Sequence[Candidate], merge: Merge) -> Group:
    """Make one of the members of one Schedule. Pure, and the same for the same members in any order."""
    head = min(members, key=tightness)
    group = Group(head)
    for one in sorted((one for one in members if one is not head), key=lambda one: one.place):
        reason = difference(terms(head), terms(one))
        if reason is None:
            group.merged_in.append(one)
        else:
            group.refused.append((one, reason, reason.value.removeprefix("coalesce_")))
    if group.merged_in:
        merge_inputs(group, merge)
    return group


def tightness(one: Candidate) -> tuple[datetime, datetime, tuple[datetime, str]]:
    """The earliest bounds first, and among equals the one that rang first."""
    return one.bounds.finish_by or LATEST, one.bounds.latest_start_at or LATEST, one.place


def terms(one: Candidate) -> Mergeable:
    """What a coalescing candidate brings to be compared."""
    assert one.mergeable is not None, (
        "whoever loads a candidate whose policy is coalesce loads what it may be merged by"
    )
    return one.mergeable


def merge_inputs(group: Group, merge: Merge) -> None:
    """Merge the inputs of all that may be merged; where that fails, of as many as can be."""
    merged = merge(terms(group.head), inputs(group.head, group.merged_in))
    if isinstance(merged, Unmergeable) and merged.for_now:
        evidence = {"policy": "coalesce", "merge": merged.reason}
        group.waits = Verdict(OccurrenceState.PENDING, Reason.OVERLAP, evidence)
    elif isinstance(merged, Unmergeable):
        merge_one_by_one(group, merge)
    else:
        group.merged = sealed(merged)


def merge_one_by_one(group: Group, merge: Merge) -> None:
    """Let in whoever still fits, in the order they rang; the others are refused with what their Pattern said."""
    candidates, group.merged_in = group.merged_in, []
    for one in candidates:
        merged = merge(terms(group.head), inputs(group.head, [*group.merged_in, one]))
        if isinstance(merged, Unmergeable):
            group.refused.append((one, Reason.COALESCE_INPUT, f"input: {merged.reason}"))
        else:
            group.merged_in.append(one)
            group.merged = sealed(merged)


def inputs(head: Candidate, others: Sequence[Candidate]) -> list[Any]:
    """Their inputs in the order in which they rang."""
    return [terms(one).input for one in sorted([head, *others], key=lambda one: one.place)]
