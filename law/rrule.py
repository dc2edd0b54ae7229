"""RFC 5545 recurrence rules, read (CAL-1): text becomes a closed set of parts, or is refused with the part's name.

What the RFC forbids is refused, and so is what well-known libraries read in different ways: a rule must mean here what its
author meant. The start is the trigger's `from`, never an embedded DTSTART; times are civil, so an UNTIL in UTC has no place.
"""

import re
from dataclasses import dataclass
from datetime import datetime
from enum import IntEnum

from law.errors import BadInput

RULE_LENGTH_MAX = 512
INTERVAL_MAX = 1_000_000
COUNT_MAX = 10_000
FIELD = "trigger.rrule"
TEXT = re.compile(r"[0-9A-Z=;,:+-]+")
NUMBER = re.compile(r"[+-]?[0-9]{1,7}")
BY_DAY = re.compile(r"([+-]?[0-9]{1,2})?(MO|TU|WE|TH|FR|SA|SU)")
CIVIL_UNTIL = re.compile(r"[0-9]{8}T[0-9]{6}")
WEEKDAYS = ("MO", "TU", "WE", "TH", "FR", "SA", "SU")


class Frequency(IntEnum):
    """How often a period of the rule comes, longest first."""

    YEARLY = 0
    MONTHLY = 1
    WEEKLY = 2
    DAILY = 3
    HOURLY = 4
    MINUTELY = 5
    SECONDLY = 6


BOUNDS = {
    "BYSECOND": (0, 59),
    "BYMINUTE": (0, 59),
    "BYHOUR": (0, 23),
    "BYMONTH": (1, 12),
    "BYMONTHDAY": (1, 31),
    "BYYEARDAY": (1, 366),
    "BYWEEKNO": (1, 53),
    "BYSETPOS": (1, 366),
}
SIGNED = frozenset({"BYMONTHDAY", "BYYEARDAY", "BYWEEKNO", "BYSETPOS"})
FORBIDDEN_WITH = {
    "BYMONTHDAY": {Frequency.WEEKLY},
    "BYYEARDAY": {Frequency.MONTHLY, Frequency.WEEKLY, Frequency.DAILY},
    "BYWEEKNO": set(Frequency) - {Frequency.YEARLY},
}
PARTS = frozenset({"FREQ", "INTERVAL", "COUNT", "UNTIL", "BYDAY", "WKST", *BOUNDS})


@dataclass(frozen=True, slots=True)
class DayRule:
    """Which days of a year match. Empty sets restrict nothing; numbers below zero count from the end. `by_month`: the
    ordinals of `weekdays` count within a month, otherwise within the year."""

    months: frozenset[int]
    month_days: frozenset[int]
    year_days: frozenset[int]
    week_numbers: frozenset[int]
    weekdays: frozenset[tuple[int, int]]
    by_month: bool
    week_start: int


@dataclass(frozen=True, slots=True)
class Rule:
    """A recurrence rule and its start, with everything that the RFC takes from the start spelled out."""

    start: datetime
    frequency: Frequency
    interval: int
    count: int | None
    until: datetime | None
    days: DayRule
    hours: frozenset[int]
    minutes: frozenset[int]
    seconds: frozenset[int]
    positions: tuple[int, ...]


def read_rule(text: str, start: datetime) -> Rule:
    """Read a rule whose first possible civil time is `start`. Raises BadInput naming the part that is at fault."""
    parts = split_parts(text)
    if parts.get("FREQ") not in Frequency.__members__:
        refuse("FREQ", "must be one of " + ", ".join(Frequency.__members__))
    frequency = Frequency[parts["FREQ"]]
    numbers = {name: read_numbers(name, parts[name]) for name in BOUNDS if name in parts}
    refuse_combinations(parts, frequency)
    hours, minutes, seconds = times_of_day(frequency, numbers, start)
    return Rule(
        start=start,
        frequency=frequency,
        interval=read_number("INTERVAL", parts.get("INTERVAL", "1"), INTERVAL_MAX),
        count=read_number("COUNT", parts["COUNT"], COUNT_MAX) if "COUNT" in parts else None,
        until=read_until(parts["UNTIL"], start) if "UNTIL" in parts else None,
        days=day_rule(frequency, numbers, parts, start),
        hours=hours,
        minutes=minutes,
        seconds=seconds,
        positions=tuple(sorted(numbers.get("BYSETPOS", ()))),
    )


def split_parts(text: str) -> dict[str, str]:
    """`NAME=VALUE` by name, each once, and no name that does not belong to a rule."""
    text = text.strip().upper().removeprefix("RRULE:")
    if len(text) > RULE_LENGTH_MAX or not TEXT.fullmatch(text):
        raise BadInput(field=FIELD, reason="is empty, too long, or has characters that no rule has")
    parts: dict[str, str] = {}
    for part in text.removesuffix(";").split(";"):
        name, _, value = part.partition("=")
        if name.partition(":")[0] in ("DTSTART", "TZID", "EXDATE", "RDATE", "EXRULE"):
            refuse(name, "does not belong in a rule: its start is the trigger's from, its zone is the trigger's own")
        if name not in PARTS or not value or name in parts:
            refuse(name[:12], "is unknown, empty, or given twice")
        parts[name] = value
    return parts


def refuse(part: str, reason: str) -> None:
    """Refuse one part of a rule."""
    raise BadInput(field=FIELD, reason=f"{part} {reason}")


def read_number(name: str, text: str, largest: int) -> int:
    """A number from 1 to `largest`."""
    if not NUMBER.fullmatch(text) or not 1 <= int(text) <= largest:
        refuse(name, f"must be a number from 1 to {largest}")
    return int(text)


def read_numbers(name: str, text: str) -> frozenset[int]:
    """A list of numbers inside the part's own bounds; below zero only where the part counts from the end too."""
    low, high = BOUNDS[name]
    found: set[int] = set()
    for one in text.split(","):
        number = int(one) if NUMBER.fullmatch(one) else high + 1
        if not low <= (abs(number) if name in SIGNED else number) <= high:
            refuse(name, f"must be numbers from {low} to {high}" + (", or below zero" if name in SIGNED else ""))
        found.add(number)
    return frozenset(found)


def refuse_combinations(parts: dict[str, str], frequency: Frequency) -> None:
    """Combinations that the RFC forbids, or that libraries read in two ways."""
    for name, frequencies in FORBIDDEN_WITH.items():
        if name in parts and frequency in frequencies:
            refuse(name, f"has no meaning with FREQ={frequency.name}")
    if "COUNT" in parts and "UNTIL" in parts:
        refuse("COUNT", "and UNTIL are two ends of one rule; give one")
    if "BYSETPOS" in parts and not any(name.startswith("BY") and name != "BYSETPOS" for name in parts):
        refuse("BYSETPOS", "chooses among what another BY part names, and there is none")
    if "BYWEEKNO" in parts and "BYDAY" not in parts:
        refuse("BYWEEKNO", "without BYDAY is read in two ways; name the days of the week")


def read_until(text: str, start: datetime) -> datetime:
    """The last civil time that may ring, itself included."""
    if not CIVIL_UNTIL.fullmatch(text):
        refuse("UNTIL", "must be a civil time such as 20261231T235959: no zone, no Z, no bare date")
    try:
        until = datetime.strptime(text, "%Y%m%dT%H%M%S")  # noqa: DTZ007  # civil by design
    except ValueError:
        refuse("UNTIL", f"{text} is no civil time")
        raise
    if until < start:
        refuse("UNTIL", "comes before the rule's start")
    return until


def times_of_day(
    frequency: Frequency, numbers: dict[str, frozenset[int]], start: datetime
) -> tuple[frozenset[int], frozenset[int], frozenset[int]]:
    """Hours, minutes and seconds. What is finer than the frequency comes from the start; empty restricts nothing."""
    hours = numbers.get("BYHOUR", frozenset({start.hour} if frequency < Frequency.HOURLY else ()))
    minutes = numbers.get("BYMINUTE", frozenset({start.minute} if frequency < Frequency.MINUTELY else ()))
    seconds = numbers.get("BYSECOND", frozenset({start.second} if frequency < Frequency.SECONDLY else ()))
    return hours, minutes, seconds


def day_rule(
    frequency: Frequency, numbers: dict[str, frozenset[int]], parts: dict[str, str], start: datetime
) -> DayRule:
    """Which days match. A rule that names no days takes them from its start."""
    weekdays: frozenset[tuple[int, int]] = frozenset()
    if "BYDAY" in parts:
        weekdays = read_weekdays(parts["BYDAY"], frequency, "BYWEEKNO" in parts)
    months, month_days = numbers.get("BYMONTH", frozenset()), numbers.get("BYMONTHDAY", frozenset())
    year_days, week_numbers = numbers.get("BYYEARDAY", frozenset()), numbers.get("BYWEEKNO", frozenset())
    if not (weekdays or month_days or year_days or week_numbers):
        if frequency is Frequency.YEARLY:
            months = months or frozenset({start.month})
        if frequency <= Frequency.MONTHLY:
            month_days = frozenset({start.day})
        if frequency is Frequency.WEEKLY:
            weekdays = frozenset({(0, start.weekday())})
    by_month = frequency is Frequency.MONTHLY or bool(months)
    week_start = WEEKDAYS.index(parts.get("WKST", "MO")) if parts.get("WKST", "MO") in WEEKDAYS else -1
    if week_start < 0:
        refuse("WKST", "must be one of " + ", ".join(WEEKDAYS))
    return DayRule(months, month_days, year_days, week_numbers, weekdays, by_month, week_start)


def read_weekdays(text: str, frequency: Frequency, by_week_number: bool) -> frozenset[tuple[int, int]]:
    """Pairs of ordinal and weekday, Monday 0; ordinal 0 is every one."""
    found: set[tuple[int, int]] = set()
    for one in text.split(","):
        match = BY_DAY.fullmatch(one)
        ordinal = int(match[1]) if match and match[1] else 0
        if match is None or abs(ordinal) > 53 or (match[1] and not ordinal):
            refuse("BYDAY", f"{one[:12]!r} is no day such as MO, 1MO or -1FR")
            continue
        if ordinal and (frequency > Frequency.MONTHLY or by_week_number):
            refuse("BYDAY", f"{one}: the ordinal has a meaning only within a month or a year")
        found.add((ordinal, WEEKDAYS.index(match[2])))
    return frozenset(found)
