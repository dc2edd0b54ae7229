"""Retained zone rules: what a civil time meant when the revision was registered, and means for ever (CAL-1, CAL-4).

Rules are TZif bytes with their release and digest. Every question about civil time is answered from these bytes alone:
the host's zone and its zone files are never asked. Bytes that are altered, cut short or of a kind that we cannot trust
are refused before any question, and nothing falls back to other rules.
"""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from io import BytesIO
from zoneinfo import ZoneInfo

from law.errors import BadZoneRules
from law.identity import Digest, digest_of_bytes

TZIF_LENGTH_MIN, TZIF_LENGTH_MAX = 44, 65_536
HEADER_LENGTH = 44
LEAP_COUNT = slice(28, 32)


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


def utc_of(civil: datetime, zone: ZoneInfo, fold: int) -> datetime:
    """The instant of one reading of a civil time; a repeated time is unequal to its own UTC value, so offsets are
    subtracted by hand."""
    offset = civil.replace(tzinfo=zone, fold=fold).utcoffset() or timedelta(0)
    return (civil.replace(fold=0) - offset).replace(tzinfo=UTC)


def transition_between(zone: ZoneInfo, low: datetime, high: datetime) -> datetime:
    """The instant in (low, high] at which the offset changes, to the second."""
    before = offset_at(zone, low)
    while high - low > timedelta(seconds=1):
        middle = low + timedelta(seconds=(high - low) // timedelta(seconds=2))
        low, high = (middle, high) if offset_at(zone, middle) == before else (low, middle)
    return high


def offset_at(zone: ZoneInfo, at: datetime) -> timedelta | None:
    """The zone's offset from UTC at an instant."""
    return at.astimezone(zone).utcoffset()


def zone_of(rules: ZoneRules) -> ZoneInfo:
    """The zone, built from the retained bytes and nothing else."""
    return _zone(rules.digest, rules.tzif)


@lru_cache(maxsize=2048)
def _zone(digest: Digest, tzif: bytes) -> ZoneInfo:
    return ZoneInfo.from_file(BytesIO(tzif), key=digest)
