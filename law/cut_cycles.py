"""The cut between two cycles that both revisions declare (CUT-1, CUT-2, CUT-5): before it the old line rings, from it on the new.

A cycle is a place in one order, and both candidates of one cycle are one firing. Instants follow that order but for the
hours around a change of the clocks: what stands out of order there is named, one by one.
"""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from itertools import islice

from law.firings import JUST_AFTER, Firing
from law.identity import RevisionNumber, SourceKey
from law.partition import (
    SHOWN_MAX,
    Candidate,
    Exclusion,
    FirstCyclePlan,
    Line,
    Named,
    Partition,
    Position,
    Problem,
    Survey,
    cycle_end,
    pinned,
    position_of,
    problem,
    read_cycle,
)
from law.zone_rules import Missing, Normal, Repeated, civil_reading, resolve

SIGHT = timedelta(days=366 * 9)
"""How far a line is searched for its next firing: the rarest ordinary one, a leap day, may be eight years off."""
LOOK_BACK = timedelta(days=63)
"""How far around a cut its neighbours are looked for: two months, twice the longest cycle there is, and a little."""

ONE_SECOND = timedelta(seconds=1)


def shares_cycle(old: Line, new: Line) -> bool:
    """Whether cycles of both lines can be compared: they are declared the same, and `nominal` only within one zone."""
    if old.trigger is None or new.trigger is None or old.cycle != new.cycle:
        return False
    return old.cycle != "nominal" or old.trigger.zone == new.trigger.zone


def first_cycle_after(old: Sequence[Line], new: Line, at: datetime) -> str | None:
    """The first cycle that nothing has reached by `at`, in which the new line still rings; for `nominal`, what the clocks read
    then, or where they read further before they went back."""
    lines = (*old, new) if new.cycle == "nominal" else tuple(old)
    reached = max((one for line in lines if (one := reached_by(line, at)) is not None), default=None)
    if new.cycle == "nominal":
        assert new.rules is not None
        civil, fold = civil_reading(new.rules, at)
        now = Position((civil + ONE_SECOND).replace(microsecond=0), fold)
        if reached is not None and reached >= now:
            now = Position(reached.civil + ONE_SECOND)
        return f"{now.civil.isoformat()}#{now.fold}"
    for firing in islice(new.candidates(at + JUST_AFTER, at + SIGHT), SHOWN_MAX):
        if reached is None or position_of(new.cycle, firing) > reached:
            return firing.key
    return None


def reached_by(line: Line, at: datetime) -> Position | None:
    """The furthest cycle that a line has rung in by `at`."""
    rung = islice(line.newest(at - LOOK_BACK, at + JUST_AFTER), SHOWN_MAX)
    return max((position_of(line.cycle, firing) for firing in rung), default=None)


def survey_cycles(plan: FirstCyclePlan, old: tuple[Line, ...], new: Line, at: datetime) -> Survey:
    """Every candidate from the old lines' cursors to the end of the region in which the two lines meet."""
    strangers = [line for line in old if line.trigger is not None and not shares_cycle(line, new)]
    if strangers or new.trigger is None:
        sentence = "the lines share no cycle, so no cycle can divide them; write an explicit plan"
        return Survey(plan, old, new, at, (), (Problem("no_shared_cycle", sentence),))
    first = read_cycle(new.cycle, plan.first_cycle)
    starts = first_from(new, first)
    problems: list[Problem] = []
    if starts is None:
        problems.append(Problem("nothing_rings", f"revision {new.revision} rings nothing from {plan.first_cycle} on"))
    elif starts.at <= at:
        problems.append(for_the_past(new, first, starts, at))
    lo = min((line.cursor_at for line in old if line.trigger is not None), default=at)
    hi = shown_until([*(line for line in old if line.trigger is not None), new], first)
    olds = [
        old_candidate(line, firing, new, first)
        for line in old
        for firing in islice(line.candidates(line.cursor_at, hi), SHOWN_MAX)
    ]
    news = [new_candidate(new, firing, old, first) for firing in islice(new.candidates(min(lo, at), hi), SHOWN_MAX)]
    return Survey(plan, old, new, at, (*olds, *news), tuple(problems), first.civil)


def shown_until(lines: Sequence[Line], first: Position) -> datetime:
    """Just after the first firing from the cut on of each line that has one soon: what ends and what begins is both shown."""
    pasts = [meeting(line, first)[1] for line in lines]
    nexts = [first_from(line, first) for line in lines]
    soon = max(pasts) + LOOK_BACK
    return max([*pasts, *(one.at + JUST_AFTER for one in nexts if one is not None and one.at < soon)])


def for_the_past(new: Line, first: Position, starts: Firing, at: datetime) -> Problem:
    """What the new line would ring although its instant has come already."""
    passed = (one for one in new.candidates(starts.at, at + JUST_AFTER) if position_of(new.cycle, one) >= first)
    late = [Candidate(new.revision, one, "distinct", new.revision) for one in islice(passed, SHOWN_MAX)]
    return problem("retroactive", "the new revision would ring for the past", late)


def old_candidate(line: Line, firing: Firing, new: Line, first: Position) -> Candidate:
    """Before the cut it rings; from it on it is the new revision's firing of that cycle, if there is one."""
    position = position_of(new.cycle, firing)
    if position < first:
        return Candidate(line.revision, firing, "distinct", line.revision)
    return renamed(line.revision, firing, new if rings_in(new, position) else None, new.revision)


def new_candidate(new: Line, firing: Firing, old: Sequence[Line], first: Position) -> Candidate:
    """From the cut on it rings; before it, it is the old revision's firing of that cycle, if there is one."""
    position = position_of(new.cycle, firing)
    if position >= first:
        return Candidate(new.revision, firing, "distinct", new.revision)
    ringing = next((line for line in reversed(old) if rings_in(line, position)), None)
    return renamed(new.revision, firing, ringing, ringing.revision if ringing is not None else new.revision)


def renamed(revision: RevisionNumber, firing: Firing, under: Line | None, owner: RevisionNumber) -> Candidate:
    """Another name of the firing that `under` has in this cycle, or nobody's."""
    if under is None:
        return Candidate(revision, firing, "skip", owner)
    return Candidate(revision, firing, "same_as", owner, Named(revision=under.revision, key=firing.key))


def rings_in(line: Line, position: Position) -> bool:
    """Whether a line has a civil time in the cycle that begins there."""
    if line.trigger is None:
        return False
    return line.trigger.count(position.civil, cycle_end(line.cycle, position.civil)) > 0


def first_from(line: Line, first: Position) -> Firing | None:
    """The first firing, in the line's own order, of that cycle or a later one."""
    begin, past = meeting(line, first)
    found = line.candidates(begin, past + SIGHT)
    return next((firing for firing in found if position_of(line.cycle, firing) >= first), None)


def meeting(line: Line, first: Position) -> tuple[datetime, datetime]:
    """Where a line meets the cut, [begin, past): what rings earlier is before the cut, what rings later is not, and what
    rings inside is told apart by its civil time, since the clocks went back there, or moved many to one instant."""
    assert line.rules is not None
    match resolve(line.rules, first.civil):
        case Normal(at) | Missing(at):
            return at, at + JUST_AFTER
        case Repeated(earlier, later):
            return earlier - (later - earlier), later + (later - earlier)


def cut_cycles(found: Survey, first: Position) -> Partition:
    """Where the lines end and begin, and what stands out of order around the cut because the clocks went back there."""
    ends: dict[RevisionNumber, datetime] = {}
    exclusions: list[Exclusion] = []
    for line in found.old:
        ends[line.revision], beyond = end_before(line, first, found.at)
        exclusions += [pinned(old_candidate(line, firing, found.new, first)) for firing in beyond]
    starts = first_from(found.new, first)
    if starts is None:
        return Partition(ends, None, tuple(exclusions))
    past = meeting(found.new, first)[1]
    early = [one for one in found.new.candidates(starts.at, past) if position_of(found.new.cycle, one) < first]
    exclusions += [pinned(new_candidate(found.new, firing, found.old, first)) for firing in early]
    return Partition(ends, starts.at, tuple(exclusions))


def end_before(line: Line, first: Position, at: datetime) -> tuple[datetime, list[Firing]]:
    """Just after the last firing before the cut, and the firings until then that are not before it."""
    if line.trigger is None:
        return at, []
    begin, past = (max(line.cursor_at, edge) for edge in meeting(line, first))
    around = list(line.candidates(begin, past))
    before = [firing for firing in around if position_of(line.cycle, firing) < first]
    end = before[-1].at + JUST_AFTER if before else begin
    return end, [firing for firing in around if firing.at < end and position_of(line.cycle, firing) >= first]


def beyond_the_cut(found: Survey, first: Position, assigned: Mapping[SourceKey, RevisionNumber]) -> Iterator[Problem]:
    """What the old lines have rung, or let go, in cycles that the plan gives to the new one."""
    for line in found.old:
        if line.trigger is None:
            continue
        passed = (
            firing
            for firing in line.candidates(meeting(line, first)[0], line.cursor_at)
            if position_of(line.cycle, firing) >= first
        )
        own = [Candidate(line.revision, firing, "distinct", line.revision) for firing in islice(passed, SHOWN_MAX)]
        if own:
            yield problem("would_move", "the old revision has rung in cycles that the plan gives to the new one", own)
    named = (Named(revision=revision, key=key) for key, revision in assigned.items())
    reached = [one for one in named if is_from(found.new, one.key, first)]
    if reached:
        yield Problem("would_move", "firings from the first cycle on are assigned already", tuple(reached[:SHOWN_MAX]))


def is_from(line: Line, key: str, first: Position) -> bool:
    """Whether a key of this line's cycle (for `nominal`, of its zone) stands at or after the cut."""
    ours = key.startswith(f"{line.cycle}:") and (
        line.cycle != "nominal" or (line.trigger is not None and f"[{line.trigger.zone}]" in key)
    )
    return ours and read_cycle(line.cycle, key) >= first


def settled_owner(one: Candidate, assigned: Mapping[SourceKey, RevisionNumber]) -> Candidate:
    """Before the cut, a firing that is assigned already stays whose it is."""
    owner = assigned.get(one.firing.key)
    if one.disposition == "distinct" or owner is None:
        return one
    return Candidate(one.revision, one.firing, "same_as", owner, Named(revision=owner, key=one.firing.key))
