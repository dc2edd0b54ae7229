"""Retained zone rules: what a civil time meant when the revision was registered, and means for ever (CAL-1, CAL-4).

Rules are TZif bytes with their release and digest. Every question about civil time is answered from these bytes alone:
the host's zone and its zone files are never asked. Bytes that are altered, cut short or of a kind that we cannot trust
are refused before any question, and nothing falls back to other rules.
"""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from io import BytesIO
from itertools import pairwise
from zoneinfo import ZoneInfo

from law.errors import BadZoneRules
from law.identity import Digest, digest_of_bytes

TZIF_LENGTH_MIN, TZIF_LENGTH_MAX = 44, 65_536
HEADER_LENGTH = 44
LEAP_COUNT = slice(28, 32)
ONE_SECOND, ONE_DAY = timedelta(seconds=1), timedelta(days=1)
EARLIEST, LATEST = datetime(1, 1, 1), datetime(9999, 12, 31)
"""Civil times before and after all others."""


@dataclass(frozen=True, slots=True)
class ZoneRules:
    """The rules of one IANA zone in one release of the zone data. `digest` is that of `tzif`."""

    zone: str
    release: str
    tzif: bytes
    digest: Digest


@dataclass(frozen=True, slots=True)
class Normal:
    """The civil time happens once, at this instant."""

    at: datetime


@dataclass(frozen=True, slots=True)
class Repeated:
    """The civil time happens twice."""

    earlier: datetime
    later: datetime


@dataclass(frozen=True, slots=True)
class Missing:
    """The civil time never happens: the clock jumps over it at this instant, which is also the next valid one."""

    transition_at: datetime


Resolved = Normal | Repeated | Missing


@dataclass(frozen=True, slots=True)
class Jump:
    """The clocks change at `at`: until then they would have come to read `before` there, and they read `after`."""

    at: datetime
    before: datetime
    after: datetime


@dataclass(frozen=True, slots=True)
class Stretch:
    """A stretch of time, [begin, end) in UTC, in which the clocks do not change, with the changes nearest to it."""

    begin: datetime
    end: datetime
    offset: timedelta
    previous: Jump | None
    following: Jump | None

    @property
    def civil(self) -> tuple[datetime, datetime]:
        """What the clocks read at its begin and its end."""
        return (self.begin + self.offset).replace(tzinfo=None), (self.end + self.offset).replace(tzinfo=None)

    @property
    def gap(self) -> tuple[datetime, datetime] | None:
        """The civil times that the clocks jumped over where it begins."""
        jump = self.previous
        if jump is None or jump.at != self.begin or jump.after <= jump.before:
            return None
        return jump.before, jump.after

    @property
    def second_readings_until(self) -> datetime:
        """Civil times in it before this one were read before; none, where the clocks did not go back."""
        jump = self.previous
        return jump.before if jump is not None and jump.after < jump.before else EARLIEST

    @property
    def first_readings_from(self) -> datetime:
        """Civil times in it from this one on will be read again."""
        jump = self.following
        return jump.after if jump is not None and jump.after < jump.before else LATEST


def rules_from(zone: str, release: str, tzif: bytes) -> ZoneRules:
    """Take rules in, checked. Raises BadZoneRules."""
    rules = ZoneRules(zone, release, tzif, digest_of_bytes(tzif))
    check_rules(rules)
    return rules


def check_rules(rules: ZoneRules) -> None:
    """Raise BadZoneRules unless the bytes are whole, unaltered and of a kind that can be trusted.

    A footer that was cut off hangs the standard library's reader for ever, and leap seconds would shift every answer.
    """
    tzif = rules.tzif
    if digest_of_bytes(tzif) != rules.digest:
        raise BadZoneRules(zone=rules.zone, reason=f"the bytes no longer have the digest {rules.digest}")
    if not TZIF_LENGTH_MIN < len(tzif) <= TZIF_LENGTH_MAX or tzif[:4] != b"TZif" or tzif[4:5] not in b"234":
        raise BadZoneRules(zone=rules.zone, reason="the bytes are not TZif of version 2 or later")
    if tzif[-1:] != b"\n" or b"\n" not in tzif[-128:-1]:
        raise BadZoneRules(zone=rules.zone, reason="the footer is missing or cut short")
    second_header = tzif.find(b"TZif", HEADER_LENGTH)
    for start in (0, second_header):
        if start < 0 or any(tzif[start:][LEAP_COUNT]):
            raise BadZoneRules(zone=rules.zone, reason="the bytes carry leap seconds, or lack their 64-bit part")


def resolve(rules: ZoneRules, civil: datetime) -> Resolved:
    """What `civil` (naive) means under these rules.

    Comparing the offsets of the two readings finds every fold and gap: they agree on an ordinary time; the first is ahead
    of the second where a time is repeated, and behind it where it is missing.
    """
    zone = zone_of(rules)
    earlier = utc_of(civil, zone, 0)
    later = utc_of(civil, zone, 1)
    if earlier == later:
        return Normal(earlier)
    if earlier < later:
        return Repeated(earlier, later)
    return Missing(transition_between(zone, later, earlier))


def civil_reading(rules: ZoneRules, at: datetime) -> tuple[datetime, int]:
    """What the zone's clocks read at the instant `at`: the naive civil time, and which of its two readings it is."""
    reading = at.astimezone(zone_of(rules))
    return reading.replace(tzinfo=None, fold=0), reading.fold


def stretches(rules: ZoneRules, start: datetime, end: datetime) -> list[Stretch]:
    """Cut [start, end), which lies in one UTC year, where the clocks change.

    Two changes of a zone are never nearer than six days (all zones of the installed data), so that a stretch meets its
    two neighbours and no other.
    """
    if start >= end:
        return []
    zone, inside = zone_of(rules), jumps(rules, start.year)
    around = (*jumps(rules, start.year - 1)[-1:], *inside, *jumps(rules, start.year + 1)[:1])
    edges = (start, *(jump.at for jump in inside if start < jump.at < end), end)
    return [
        Stretch(
            begin,
            past,
            offset_at(zone, begin),
            next((jump for jump in reversed(around) if jump.at <= begin), None),
            next((jump for jump in around if jump.at >= past), None),
        )
        for begin, past in pairwise(edges)
    ]


def jumps(rules: ZoneRules, year: int) -> tuple[Jump, ...]:
    """Every change of the zone's offset in a UTC year."""
    return _jumps(rules.digest, rules.tzif, year)


@lru_cache(maxsize=16_384)
def _jumps(digest: Digest, tzif: bytes, year: int) -> tuple[Jump, ...]:
    """Compare the offset day by day; where it differs, find the second at which it does."""
    zone = _zone(digest, tzif)
    low, last = (datetime(one, 1, 1, tzinfo=UTC) - ONE_SECOND for one in (year, year + 1))
    offset, found = offset_at(zone, low), list[Jump]()
    while low < last:
        high = min(low + ONE_DAY, last)
        if offset_at(zone, high) != offset:
            high = transition_between(zone, low, high)
            new = offset_at(zone, high)
            found.append(Jump(high, (high + offset).replace(tzinfo=None), (high + new).replace(tzinfo=None)))
            offset = new
        low = high
    return tuple(found)


def utc_of(civil: datetime, zone: ZoneInfo, fold: int) -> datetime:
    """The instant of one reading of a civil time; a repeated time is unequal to its own UTC value, so offsets are
    subtracted by hand."""
    offset = civil.replace(tzinfo=zone, fold=fold).utcoffset() or timedelta(0)
    return (civil.replace(fold=0) - offset).replace(tzinfo=UTC)


def transition_between(zone: ZoneInfo, low: datetime, high: datetime) -> datetime:
    """The instant in (low, high] at which the offset changes, to the second."""
    before = offset_at(zone, low)
    while high - low > ONE_SECOND:
        middle = low + (high - low) // (2 * ONE_SECOND) * ONE_SECOND
        low, high = (middle, high) if offset_at(zone, middle) == before else (low, middle)
    return high


def offset_at(zone: ZoneInfo, at: datetime) -> timedelta:
    """The zone's offset from UTC at an instant."""
    return at.astimezone(zone).utcoffset() or timedelta(0)


def zone_of(rules: ZoneRules) -> ZoneInfo:
    """The zone, built from the retained bytes and nothing else."""
    return _zone(rules.digest, rules.tzif)


@lru_cache(maxsize=2048)
def _zone(digest: Digest, tzif: bytes) -> ZoneInfo:
    return ZoneInfo.from_file(BytesIO(tzif), key=digest)
