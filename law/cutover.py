"""Changing a revision: whose is each firing around the cut? Proposed, shown, verified; pinned only when nothing is open (CUT-1..5).

Both lines are enumerated by their own retained rules, each in its own order; civil times of two zones are never sorted into
one line. A plan is verified against every candidate of either line from the first that nobody owns yet. It is refused, with
all that offends, when a candidate is left out, named twice or owned twice, when a firing that is assigned would move, and
when the new line would ring for the past.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from law.cut_cycles import beyond_the_cut, cut_cycles, first_cycle_after, settled_owner, shares_cycle, survey_cycles
from law.cut_entries import cut_entries, propose_explicit, survey_entries, unresolved
from law.identity import RevisionNumber, SourceKey
from law.partition import Candidate, ExplicitPlan, FirstCyclePlan, Line, Partition, Problem, Survey, problem, read_cycle


@dataclass(frozen=True, slots=True)
class Verdict:
    """The plan, every candidate with its owner, and either the partition to pin or what is wrong."""

    plan: FirstCyclePlan | ExplicitPlan | None
    candidates: tuple[Candidate, ...] = ()
    problems: tuple[Problem, ...] = ()
    partition: Partition = field(default_factory=Partition)

    @property
    def complete(self) -> bool:
        return self.plan is not None and not self.problems


def propose(old: Sequence[Line], new: Line, at: datetime) -> FirstCyclePlan | ExplicitPlan:
    """A plan under which everything that rang by `at` stays with the old revision, and the new one rings for the future
    alone. To be looked at: whether two lines share their cycles is the Schedule's to declare, not ours to guess."""
    old_calendar = [line for line in old if line.trigger is not None]
    if new.trigger is not None and old_calendar and all(shares_cycle(line, new) for line in old_calendar):
        first = first_cycle_after(old_calendar, new, at)
        if first is not None:
            return FirstCyclePlan(first_cycle=first)
    return propose_explicit(old_calendar, new, at)


def survey(plan: FirstCyclePlan | ExplicitPlan, old: Sequence[Line], new: Line, at: datetime) -> Survey:
    """Enumerate what the plan must account for. Raises BadInput for a first cycle that cannot be read."""
    if isinstance(plan, FirstCyclePlan):
        return survey_cycles(plan, tuple(old), new, at)
    return survey_entries(plan, tuple(old), new, at)


def judge(found: Survey, assigned: Mapping[SourceKey, RevisionNumber]) -> Verdict:
    """Verify the plan. `assigned`: the revision that owns each firing which is assigned already, for every candidate of
    the survey, whatever an entry names, and everything from `assigned_from` on."""
    problems = [*found.problems]
    if isinstance(found.plan, FirstCyclePlan):
        if found.assigned_from is None:
            return Verdict(found.plan, found.candidates, tuple(problems))
        first = read_cycle(found.new.cycle, found.plan.first_cycle)
        problems += beyond_the_cut(found, first, assigned)
        candidates = tuple(settled_owner(one, assigned) for one in found.candidates)
    else:
        candidates = found.candidates
        if strays := unresolved(found, assigned):
            problems.append(problem("no_such_firing", "same_as names what is no firing of its own", strays))
        if moved := [one for one in candidates if would_move(one, assigned)]:
            problems.append(problem("would_move", "the plan would move firings that are assigned already", moved))
        if late := [one for one in candidates if rings_for_the_past(one, found)]:
            problems.append(problem("retroactive", "the new revision would ring for the past", late))
    partition = Partition() if problems else partition_of(found)
    return Verdict(found.plan, candidates, tuple(problems), partition)


def partition_of(found: Survey) -> Partition:
    """What the verified plan pins."""
    if isinstance(found.plan, FirstCyclePlan):
        return cut_cycles(found, read_cycle(found.new.cycle, found.plan.first_cycle))
    return cut_entries(found)


def would_move(one: Candidate, assigned: Mapping[SourceKey, RevisionNumber]) -> bool:
    """Whether an assigned firing would change hands, or cease to be a firing of its own."""
    owner = assigned.get(one.firing.key)
    if owner is None:
        return False
    if one.same_as is not None and one.same_as.key == one.firing.key:
        return one.owner != owner
    return one.disposition != "distinct" or one.owner != owner


def rings_for_the_past(one: Candidate, found: Survey) -> bool:
    """Whether the new line would ring an instant that has come already."""
    return one.revision == found.new.revision and one.disposition == "distinct" and one.firing.at <= found.at
