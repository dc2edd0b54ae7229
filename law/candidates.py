"""What waits, as the law wants to see it, and what it is answered: plain values, made by `store`, judged by `law.selection`."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from law.authority import Credentials
from law.bounds import Bounds
from law.budget import Ceiling
from law.capacity import Supply
from law.catch_up import CaughtUp
from law.estimates import Estimate
from law.identity import RunId, ScheduleName, TriggerOccurrenceId
from law.merging import Merge, Mergeable, Merged, no_merge
from law.overlap import Live, OverlapTerms
from law.readiness import Asked, Spent, TransitionBudget
from law.service_class import ServiceClass
from law.verdict import Verdict
from law.yielding import QuietWindow


@dataclass(frozen=True, slots=True)
class Need:
    """What work asks of a capability. `estimate` is known (SEL-4) or None; `is_proven`: whether its Pattern revision has
    shown that it yields (YLD-1); `transition` and `spent`: what it may still ask the Orchestrator for (YLD-4)."""

    capability: str | None = None
    units: int = 0
    estimate: Estimate | None = None
    is_proven: bool = False
    transition: TransitionBudget | None = None
    spent: Spent = field(default_factory=Spent)
    has_asked: bool = False


@dataclass(frozen=True, slots=True)
class Candidate:
    """One waiting Occurrence with everything the law needs to know of it. `aging_seconds` adds one to the priority a step."""

    trigger_occurrence_id: TriggerOccurrenceId
    schedule: ScheduleName
    service_class: ServiceClass
    bounds: Bounds
    overlap: OverlapTerms
    credentials: Credentials
    priority: int = 50
    aging_seconds: float | None = None
    need: Need = field(default_factory=Need)
    caught_up: CaughtUp | None = None
    """How far the bounded catch-up of its Schedule has come; None for a firing that was found in time."""
    paused: bool = False
    """Whether its Schedule is paused: it may still be missed, and is not admitted."""
    rang_at: datetime | None = None
    """When its firing rang, which is its place in a serialized line."""
    mergeable: Mergeable | None = None
    """What is compared and merged where the policy is `coalesce`."""
    ceilings: tuple[Ceiling, ...] = ()
    """Every budget that it would spend of (AUT-4)."""
    asks: Mapping[str, float] = field(default_factory=dict[str, float])
    resumes: RunId | None = None
    """The parked Run whose next slice this asks for; it was admitted before, and is bound by its window no more (WIN-8)."""

    @property
    def place(self) -> tuple[datetime, str]:
        """Where it stands in the order in which firings of one Schedule rang."""
        return self.rang_at or self.bounds.eligible_at, str(self.trigger_occurrence_id)


@dataclass(frozen=True, slots=True)
class Judgement:
    """One candidate and its verdict; `changes_at` is when time alone may change a wait. `units`: what its lease takes.
    `merged` for one that is admitted for several; `coalesced_into` for those it is admitted for. `asks`: what it may ask the
    Orchestrator for while it waits."""

    candidate: Candidate
    verdict: Verdict
    changes_at: datetime | None = None
    units: int = 0
    merged: Merged | None = None
    coalesced_into: TriggerOccurrenceId | None = None
    asks: Asked | None = None


@dataclass(frozen=True, slots=True)
class Ground:
    """What a round is judged on, beside its candidates: the sample, what is live, what there is, and how inputs merge."""

    at: datetime
    live: Mapping[ScheduleName, Live] = field(default_factory=dict[ScheduleName, Live])
    supplies: Sequence[Supply] = ()
    quiet_windows: Sequence[QuietWindow] = ()
    merge: Merge = no_merge


def aged_priority(candidate: Candidate, at: datetime) -> int:
    """The pinned priority plus one for every aging step that has passed since eligibility."""
    if candidate.aging_seconds is None or at <= candidate.bounds.eligible_at:
        return candidate.priority
    return candidate.priority + int((at - candidate.bounds.eligible_at).total_seconds() // candidate.aging_seconds)
