"""The explicit plan (CUT-1..3): every candidate around the cut is named, as a firing of its own, another name of one, or let go."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from itertools import chain, islice

from law.firings import JUST_AFTER, Firing
from law.identity import RevisionNumber, SourceKey
from law.partition import (
    ENTRIES_MAX,
    Candidate,
    ExplicitPlan,
    Line,
    Named,
    Partition,
    PlanEntry,
    Problem,
    Survey,
    pinned,
    problem,
)

SIGHT = timedelta(days=366 * 9)


def propose_explicit(old: Sequence[Line], new: Line, at: datetime) -> ExplicitPlan:
    """Old firings up to `at` stay; the new line begins with its next one; what the old line would have rung in between is
    let go, unless it is the same firing by name."""
    due = {
        firing.key for line in old for firing in islice(line.candidates(line.cursor_at, at + JUST_AFTER), ENTRIES_MAX)
    }
    coming = islice(new.candidates(at + JUST_AFTER, at + SIGHT), ENTRIES_MAX)
    first = next((firing for firing in coming if firing.key not in due), None)
    hi = first.at if first is not None else at
    lo = min((line.cursor_at for line in old), default=at)
    found = list(islice(open_candidates(old, new, lo, hi + JUST_AFTER), ENTRIES_MAX + 1))
    olds = [(revision, firing) for revision, firing in found if revision != new.revision]
    news = [firing for revision, firing in found if revision == new.revision]
    kept = [(revision, firing) for revision, firing in olds if firing.at <= at]
    keys_old = {firing.key: revision for revision, firing in olds}
    entries = [
        PlanEntry(revision=revision, key=firing.key, disposition="distinct", owner=revision)
        for revision, firing in kept
    ]
    renamed = {first.key} if first is not None else set[SourceKey]()
    for revision, firing in olds:
        if firing.at > at:
            entries.append(entry_for(revision, firing.key, new.revision if firing.key in renamed else None))
    entries += [entry_for(new.revision, one.key, keys_old.get(one.key)) for one in news if one != first]
    if first is not None:
        entries.append(PlanEntry(revision=new.revision, key=first.key, disposition="distinct", owner=new.revision))
    old_through = max(kept, key=lambda one: one[1].order)[1].key if kept else None
    return ExplicitPlan(
        old_through=old_through, new_from=first.key if first else None, entries=tuple(entries[:ENTRIES_MAX])
    )


def entry_for(revision: RevisionNumber, key: SourceKey, same_under: RevisionNumber | None) -> PlanEntry:
    """Another name of the firing of the same key, or let go."""
    if same_under is None:
        return PlanEntry(revision=revision, key=key, disposition="skip", owner=revision)
    named = Named(revision=same_under, key=key)
    return PlanEntry(revision=revision, key=key, disposition="same_as", owner=same_under, same_as=named)


def survey_entries(plan: ExplicitPlan, old: tuple[Line, ...], new: Line, at: datetime) -> Survey:
    """Every candidate of either line from the first that nobody owns yet to the later of the two ends, with its entry."""
    lo = min((line.cursor_at for line in old if line.trigger is not None), default=at)
    through, starts = ends_of(plan, old, new, lo)
    problems = [
        Problem("not_found", f"{name} {key} is no firing of that line within reach")
        for name, key, firing in (("old_through", plan.old_through, through), ("new_from", plan.new_from, starts))
        if key is not None and firing is None
    ]
    hi = max([at, *(firing.at for firing in (through, starts) if firing is not None)])
    if starts is None and (next_new := next(new.candidates(hi + JUST_AFTER, hi + SIGHT), None)) is not None:
        rings_on = (Named(revision=new.revision, key=next_new.key),)
        problems.append(Problem("missing", "the new revision rings on, and no new_from says from where", rings_on))
    universe = list(islice(open_candidates(old, new, lo, hi + JUST_AFTER), ENTRIES_MAX + 1))
    if len(universe) > ENTRIES_MAX:
        sentence = (
            f"more than {ENTRIES_MAX} candidates are open, which is what a plan can name; let the old line catch up"
        )
        return Survey(plan, old, new, at, (), (*problems, Problem("too_many", sentence)))
    candidates, wrong = match(plan, universe)
    problems += wrong
    problems += check_entries(candidates, plan, through, starts, new)
    return Survey(plan, old, new, at, tuple(candidates), tuple(problems))


def open_candidates(
    old: Sequence[Line], new: Line, lo: datetime, past: datetime
) -> Iterator[tuple[RevisionNumber, Firing]]:
    """Every candidate of either line before `past` that nobody owns yet."""
    for line in old:
        yield from ((line.revision, firing) for firing in line.candidates(line.cursor_at, past))
    yield from ((new.revision, firing) for firing in new.candidates(lo, past))


def ends_of(plan: ExplicitPlan, old: Sequence[Line], new: Line, lo: datetime) -> tuple[Firing | None, Firing | None]:
    """The two firings that the plan names, found on their lines."""
    olds = chain.from_iterable(line.candidates(line.cursor_at, lo + SIGHT) for line in old)
    return named_firing(plan.old_through, olds), named_firing(plan.new_from, new.candidates(lo, lo + SIGHT))


def named_firing(key: str | None, line: Iterator[Firing]) -> Firing | None:
    """The firing of this key among the next ones of a line."""
    if key is None:
        return None
    return next((firing for firing in islice(line, ENTRIES_MAX) if firing.key == key), None)


def match(
    plan: ExplicitPlan, universe: Sequence[tuple[RevisionNumber, Firing]]
) -> tuple[list[Candidate], list[Problem]]:
    """One entry a candidate, one candidate an entry."""
    entries = {(entry.revision, entry.key): entry for entry in plan.entries}
    often = Counter((entry.revision, entry.key) for entry in plan.entries)
    twice = [Named(revision=revision, key=key) for (revision, key), count in often.items() if count > 1]
    known = {(revision, firing.key): firing for revision, firing in universe}
    missing = [Named(revision=revision, key=key) for revision, key in known if (revision, key) not in entries]
    strange = [Named(revision=revision, key=key) for revision, key in entries if (revision, key) not in known]
    candidates = [
        Candidate(revision, firing, entry.disposition, RevisionNumber(entry.owner), entry.same_as)
        for revision, firing in universe
        if (entry := entries.get((revision, firing.key))) is not None
    ]
    found = (
        ("missing", "candidates without an entry", missing),
        ("ambiguous", "candidates with more than one entry", twice),
        ("unknown", "entries that are no candidate between the last assignment and the later of the two ends", strange),
    )
    return candidates, [Problem(code, sentence, tuple(named)) for code, sentence, named in found if named]


def check_entries(
    candidates: Sequence[Candidate], plan: ExplicitPlan, through: Firing | None, starts: Firing | None, new: Line
) -> Iterator[Problem]:
    """What the entries must be to each other."""
    often = Counter(one.firing.key for one in candidates if one.disposition != "same_as")
    rules = (
        ("owner_differs", "a firing of its own, or one let go, belongs to its own revision",
         [one for one in candidates if one.disposition != "same_as" and one.owner != one.revision]),
        ("overlapping", "candidates of one key are one firing: one has it, and the others are the same as that one",
         [one for one in candidates if one.disposition != "same_as" and often[one.firing.key] > 1]),
        ("beyond_old_through", "an old firing past old_through cannot be a firing of its own",
         [one for one in candidates if one.disposition == "distinct" and one.revision != new.revision
          and (through is None or one.firing.order > through.order)]),
        ("before_new_from", "a new firing before new_from cannot be a firing of its own",
         [one for one in candidates if one.disposition == "distinct" and one.revision == new.revision
          and (starts is None or one.firing.order < starts.order)]),
        ("end_not_distinct", "old_through and new_from name firings that ring",
         [one for one in candidates if one.disposition != "distinct"
          and one.firing.key == (plan.new_from if one.revision == new.revision else plan.old_through)]),
        ("owner_differs", "another name of a firing belongs to that firing's revision",
         [one for one in candidates if one.same_as is not None and one.owner != one.same_as.revision]),
    )  # fmt: skip
    for code, sentence, offending in rules:
        if offending:
            yield problem(code, sentence, offending)


def unresolved(found: Survey, assigned: Mapping[SourceKey, RevisionNumber]) -> list[Candidate]:
    """Other names of what is no firing: neither rung or let go under the plan nor assigned already."""
    firings = {(one.revision, one.firing.key) for one in found.candidates if one.disposition != "same_as"}
    return [
        one
        for one in found.candidates
        if one.same_as is not None
        and (one.same_as.revision, one.same_as.key) not in firings
        and assigned.get(SourceKey(one.same_as.key)) != one.same_as.revision
    ]


def cut_entries(found: Survey) -> Partition:
    """Every candidate up to the later end is pinned by its entry; beyond it only the new line rings."""
    hi = max((one.firing.at for one in found.candidates), default=found.at)
    ends = {line.revision: max(line.cursor_at, hi + JUST_AFTER) for line in found.old}
    mine = [
        one.firing.at for one in found.candidates if one.revision == found.new.revision and one.disposition != "same_as"
    ]
    first_at = min(mine, default=None)
    exclusions = tuple(pinned(one) for one in found.candidates if one.disposition != "distinct")
    return Partition(ends, first_at, exclusions)
