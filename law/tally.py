"""What a simulated stretch comes to: how many ended how, who waited longest, and how much of each capability was at work.

Everything is counted as it passes, so that a year of outcomes needs the space of its totals.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from law.capacity import Capability
from law.identity import ScheduleName
from law.reasons import Disposition, OccurrenceState
from law.simulated import Outcome

BINS = 240
"""Into so many equal parts a stretch is cut to show its load."""


@dataclass(slots=True)
class Meter:
    """The load of one capability over [since, until): what was held at once at most, and unit-seconds, whole and by part."""

    capability: Capability
    since: datetime
    until: datetime
    units: int = 0
    peak_units: int = 0
    busy: list[float] = field(default_factory=lambda: [0.0] * BINS)
    """Unit-seconds in each part."""
    _moved_at: datetime | None = None

    def move(self, at: datetime, units: int) -> None:
        """From `at` on so many units are held. Instants never go back."""
        if self.units:
            self.spread(self._moved_at or self.since, min(at, self.until))
        self._moved_at, self.units = at, units
        self.peak_units = max(self.peak_units, units)

    def spread(self, begin: datetime, end: datetime) -> None:
        """Add what is held to every part that [begin, end) touches."""
        a_bin = self.bin_seconds
        low, high = (begin - self.since).total_seconds(), (end - self.since).total_seconds()
        while low < high:
            place = min(int(low / a_bin), BINS - 1)
            past = high if place == BINS - 1 else min(high, (place + 1) * a_bin)
            past = past if past > low else high
            self.busy[place] += self.units * (past - low)
            low = past

    @property
    def bin_seconds(self) -> float:
        """How long a part is."""
        return (self.until - self.since).total_seconds() / BINS

    @property
    def busy_unit_seconds(self) -> float:
        """All unit-seconds together."""
        return sum(self.busy)

    @property
    def busy_share(self) -> float:
        """What was held of what could have been; 0 where there is nothing to hold."""
        could = self.capability.units * (self.until - self.since).total_seconds()
        return self.busy_unit_seconds / could if could else 0.0

    @property
    def shares(self) -> list[float]:
        """What was held of what could have been, in every part."""
        could = self.capability.units * self.bin_seconds
        return [busy / could if could else 0.0 for busy in self.busy]


@dataclass(slots=True)
class Account:
    """What became of the firings of one Schedule."""

    totals: Counter[OccurrenceState] = field(default_factory=Counter[OccurrenceState])
    delayed_count: int = 0
    """How many were admitted later than they were eligible."""
    unmet_count: int = 0
    """How many were admitted and ended at or after their finish bound."""
    longest_wait: timedelta = timedelta(0)

    def add(self, one: Outcome) -> None:
        """Count one outcome."""
        self.totals[one.state] += 1
        self.delayed_count += one.state is OccurrenceState.ADMITTED and one.waited > timedelta(0)
        self.unmet_count += one.disposition is Disposition.UNMET
        self.longest_wait = max(self.longest_wait, one.waited)


@dataclass(slots=True)
class Tally:
    """The whole of a simulation."""

    schedules: dict[ScheduleName, Account]
    longest_foreground_wait: timedelta = timedelta(0)

    @classmethod
    def of(cls, names: Iterable[ScheduleName]) -> "Tally":
        """An empty one, in which every Schedule has its place also where it never rings."""
        return cls({name: Account() for name in sorted(names)})

    def counting(self, outcomes: Iterable[Outcome]) -> Iterator[Outcome]:
        """Count outcomes as they pass."""
        for one in outcomes:
            self.schedules[one.schedule].add(one)
            if one.service_class == "foreground" and one.waited > self.longest_foreground_wait:
                self.longest_foreground_wait = one.waited
            yield one

    @property
    def totals(self) -> Counter[OccurrenceState]:
        """How many ended how, of all Schedules."""
        return sum((account.totals for account in self.schedules.values()), Counter[OccurrenceState]())
