"""What a newer release of the zone data would change, date by date (CAL-4). It changes nothing by being installed: the retained
rules keep ringing until an operator activates a revision that pins the newer ones.

The two lines are compared by the firings' names, and only where the clocks of the two releases differ: around a change of
the clocks that one has and the other has not, and wherever their offsets are unequal.
"""

from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise

from law.firings import SHIFT_MAX, Firing, all_stretches, firings
from law.identity import Cycle, SourceKey
from law.triggers import CalendarTrigger
from law.zone_rules import ZoneRules, civil_reading

DIFFERENCES_MAX = 1_000


@dataclass(frozen=True, slots=True)
class Difference:
    """A firing that would ring at another instant; None where it would not ring at all, or has none."""

    key: SourceKey
    civil: datetime
    retained_at: datetime | None
    installed_at: datetime | None


def differences(
    trigger: CalendarTrigger, cycle: Cycle, retained: ZoneRules, installed: ZoneRules, since: datetime, until: datetime
) -> list[Difference]:
    """The first firings in [since, until) that the two releases read differently, at most DIFFERENCES_MAX."""
    found: list[Difference] = []
    for begin, end in unequal(retained, installed, since, until):
        here, there = (
            {one.key: one for one in firings(trigger, cycle, rules, begin, end)} for rules in (retained, installed)
        )
        changed = [key for key in here.keys() | there.keys() if instant(here.get(key)) != instant(there.get(key))]
        found += sorted((difference(here.get(key), there.get(key)) for key in changed), key=by_time)
        if len(found) >= DIFFERENCES_MAX:
            break
    return found[:DIFFERENCES_MAX]


def unequal(one: ZoneRules, other: ZoneRules, since: datetime, until: datetime) -> list[tuple[datetime, datetime]]:
    """Stretches of time, apart from each other, outside of which both releases read every clock alike."""
    edges = {stretch.begin for rules in (one, other) for stretch in all_stretches(rules, since, until)} | {until}
    found: list[tuple[datetime, datetime]] = []
    for left, right in pairwise(sorted(edges)):
        if civil_reading(one, left)[0] == civil_reading(other, left)[0]:
            continue
        begin, end = max(since, left - SHIFT_MAX), min(until, right + SHIFT_MAX)
        if found and begin <= found[-1][1]:
            begin, _ = found.pop()
        found.append((begin, end))
    return found


def instant(firing: Firing | None) -> datetime | None:
    """When a firing rings; None for one that does not."""
    return firing.nominal_at if firing is not None else None


def difference(here: Firing | None, there: Firing | None) -> Difference:
    """One firing under both releases; at least one has it."""
    either = here or there
    assert either is not None
    return Difference(either.key, either.civil, instant(here), instant(there))


def by_time(one: Difference) -> tuple[datetime, str]:
    """The order of a report."""
    return one.civil, one.key
