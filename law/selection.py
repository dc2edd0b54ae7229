"""The one office, three tempos (SEL-1..3, SEL-6, CLS-3): every waiting Occurrence gets its answer, in one order.

A round is everything under one authority at one sample. Candidates are judged in a fixed order, so that the same
candidates and the same instant always give the same answers. Each is asked in turn: does its authority stand, is its
window open, does overlap let it in, is there capacity. What an earlier candidate of the round was given counts against
the later ones: two firings of one Schedule in one round are an overlap like any other.

Capacity is not known to this office yet. Unknown is never rounded into success (SEL-4, YLD-3): work that names a
capability, and all spare-capacity work, waits for it.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Literal

from law.authority import Credentials, judge_authority
from law.bounds import Bounds
from law.catch_up import CaughtUp, judge_catch_up
from law.identity import ScheduleName, TriggerOccurrenceId
from law.overlap import OverlapTerms, judge_overlap
from law.reasons import OccurrenceState, Reason
from law.verdict import Verdict
from law.window import changes_at, judge_window

ServiceClass = Literal["foreground", "deadline_windowed", "spare_capacity"]

CLASS_ORDER: Mapping[ServiceClass, int] = {"foreground": 0, "deadline_windowed": 1, "spare_capacity": 2}


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
    capability: str | None = None
    caught_up: CaughtUp | None = None
    """How far the bounded catch-up of its Schedule has come; None for a firing that was found in time."""
    paused: bool = False
    """Whether its Schedule is paused: it may still be missed, and is not admitted."""


@dataclass(frozen=True, slots=True)
class Judgement:
    """One candidate and its verdict; `changes_at` is when time alone may change a wait."""

    candidate: Candidate
    verdict: Verdict
    changes_at: datetime | None = None


def decide(candidates: Iterable[Candidate], nonterminal: Mapping[ScheduleName, int], at: datetime) -> list[Judgement]:
    """Answer every candidate at the sample `at`, given the nonterminal Invocations of each Schedule.

    Keeps SEL-1 (authority and window come first), OVL-1 (a round's own admissions count) and SEL-6 (deterministic).
    """
    live = Counter(nonterminal)
    admitted: Counter[ScheduleName] = Counter()
    caught_up: Counter[ScheduleName] = Counter()
    judgements: list[Judgement] = []
    for candidate in sorted(candidates, key=lambda one: selection_order(one, at)):
        schedule = candidate.schedule
        objection = judge_catch_up(candidate.caught_up, caught_up[schedule])
        verdict = judge(candidate, live[schedule], admitted[schedule], objection, at)
        if verdict.state is OccurrenceState.ADMITTED:
            live[schedule] += 1
            admitted[schedule] += 1
            caught_up[schedule] += candidate.caught_up is not None
        waits = verdict.state is OccurrenceState.PENDING
        judgements.append(Judgement(candidate, verdict, changes_at(candidate.bounds, at) if waits else None))
    return judgements


def judge(
    candidate: Candidate, nonterminal: int, admitted_in_round: int, catch_up: Verdict | None, at: datetime
) -> Verdict:
    """The questions in their order; the first that objects answers."""
    credentials = candidate.credentials
    if admitted_in_round:
        credentials = replace(credentials, runs_in_last_day=credentials.runs_in_last_day + admitted_in_round)
    return (
        judge_authority(credentials)
        or judge_window(candidate.bounds, at)
        or judge_pause(candidate)
        or catch_up
        or judge_overlap(candidate.overlap, nonterminal)
        or judge_capacity(candidate)
        or Verdict(OccurrenceState.ADMITTED, Reason.ADMITTED, admission_evidence(candidate, at))
    )


def judge_pause(candidate: Candidate) -> Verdict | None:
    """None unless its Schedule is paused; then it waits, and its window goes on closing."""
    return Verdict(OccurrenceState.PENDING, Reason.PAUSED) if candidate.paused else None


def judge_capacity(candidate: Candidate) -> Verdict | None:
    """None for work that needs none; what needs capacity waits, since none is known to be free (SEL-4, YLD-3)."""
    if candidate.capability is None and candidate.service_class != "spare_capacity":
        return None
    return Verdict(OccurrenceState.PENDING, Reason.CAPACITY, {"capability": candidate.capability})


def selection_order(candidate: Candidate, at: datetime) -> tuple[int, int, datetime, str]:
    """Class, then aged priority, then age, then id: a total order (SEL-3, SEL-6)."""
    aged = aged_priority(candidate, at)
    return (
        CLASS_ORDER[candidate.service_class],
        -aged,
        candidate.bounds.eligible_at,
        str(candidate.trigger_occurrence_id),
    )


def aged_priority(candidate: Candidate, at: datetime) -> int:
    """The pinned priority plus one for every aging step that has passed since eligibility."""
    if candidate.aging_seconds is None or at <= candidate.bounds.eligible_at:
        return candidate.priority
    return candidate.priority + int((at - candidate.bounds.eligible_at).total_seconds() // candidate.aging_seconds)


def admission_evidence(candidate: Candidate, at: datetime) -> dict[str, object]:
    """What the yes rests on: the sample and the bounds it was measured against."""
    bounds = candidate.bounds
    evidence = {
        "decision_time": at,
        "not_before": bounds.not_before,
        "latest_start_at": bounds.latest_start_at,
        "finish_by": bounds.finish_by,
    }
    return {name: value for name, value in evidence.items() if value is not None}
