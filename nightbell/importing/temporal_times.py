"""Temporal's times as a Schedule's trigger, where one says exactly the same (CAL-1).

A structured calendar matches where every field does. Cron says that unless both day fields are restricted, since cron joins
those by OR; then an `rrule` says it, whose day parts are joined by AND. An interval counts from 1970-01-01T00:00:00Z and
knows no zone: in UTC it is a cron expression where it divides the day evenly, and otherwise an `rrule` that starts in 1970.
A cron string is first read as Temporal reads it: six fields end with a year, and the day fields are joined by AND.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from law.cron import ALIASES, parse_cron
from law.errors import BadInput
from nightbell.importing.temporal_form import (
    DAYS_AND_MONTHS,
    RANGES_MAX,
    TEXT_LENGTH_MAX,
    Calendar,
    Interval,
    Range,
    read_span,
)

EPOCH = datetime(1970, 1, 1)
A_SECOND, A_DAY = timedelta(seconds=1), timedelta(days=1)
INTERVAL_MAX = 1_000_000
WEEKDAYS = ("SU", "MO", "TU", "WE", "TH", "FR", "SA")
BOUNDS = {
    "second": (0, 59),
    "minute": (0, 59),
    "hour": (0, 23),
    "day_of_month": (1, 31),
    "month": (1, 12),
    "year": (1970, 9_999),
    "day_of_week": (0, 7),
}
TERM = re.compile(r"(\*|[0-9A-Za-z]{1,9})(?:-([0-9A-Za-z]{1,9}))?(?:/([0-9]{1,4}))?")
CRON_ZONE = re.compile(r"(?:CRON_)?TZ=(\S*)\s+(.*)", re.DOTALL)
CRON_EVERY = re.compile(r"@every\s+([0-9hmsd.]+)(?:/([0-9hmsd.]+))?")
DAYS = re.compile(r"([0-9]{1,6})d")


def calendar_trigger(calendar: Calendar) -> dict[str, Any]:
    """The form of a calendar, with `from` and `until` where it names years. Raises BadInput where none says the same."""
    values = {name: numbers(name, getattr(calendar, name)) for name in BOUNDS}
    form: dict[str, Any] = dict(year_bounds(values.pop("year"))) if calendar.year else {}
    values.pop("year", None)
    if len(values["day_of_month"]) < 31 and len(values["day_of_week"]) < 7:
        return {"rrule": rule_of(values), **form, "from": form.get("from", EPOCH)}
    fields = [
        field_of(name, getattr(calendar, name), values[name]) for name in ("minute", "hour", "day_of_month", "month")
    ]
    fields.append(field_of("day_of_week", calendar.day_of_week, values["day_of_week"]))
    if values["second"] != [0]:
        fields.insert(0, field_of("second", calendar.second, values["second"]))
    cron = " ".join(fields)
    parse_cron(cron)
    return {"cron": cron, **form}


def numbers(name: str, ranges: Sequence[Range]) -> list[int]:
    """The values that a field names, in order; Sunday is 0. Raises BadInput for none, or one out of bounds."""
    low, high = BOUNDS[name]
    found = {value for one in ranges for value in values_of(one)}
    if name == "year" and not ranges:
        return []
    if not found or min(found) < low or max(found) > high:
        raise BadInput(field=name, reason=f"names no value, or one outside {low} to {high}")
    return sorted({value % 7 for value in found} if name == "day_of_week" else found)


def values_of(one: Range) -> range:
    """One range; an end before the start, or none, is the start alone."""
    return range(one.start, max(one.start, one.end) + 1, one.step or 1)


def year_bounds(years: list[int]) -> dict[str, datetime]:
    """Years that follow each other as `from` and `until`. Raises BadInput for others."""
    if years[-1] - years[0] + 1 != len(years):
        raise BadInput(field="year", reason="names years with others between them, which no one Schedule can say")
    return {"from": datetime(years[0], 1, 1), "until": datetime(min(years[-1] + 1, 9_998), 1, 1)}


def field_of(name: str, ranges: Sequence[Range], values: list[int]) -> str:
    """A field of a cron expression, as near to how it was written as can be."""
    low, high = BOUNDS[name]
    high -= name == "day_of_week"
    if values == list(range(low, high + 1)):
        return "*"
    return ",".join(dict.fromkeys(term_of(one, low, high) for one in ranges))


def term_of(one: Range, low: int, high: int) -> str:
    """`5`, `1-5`, `*/20` or `3-40/7`."""
    values = values_of(one)
    if len(values) == 1:
        return str(one.start)
    if values.step == 1:
        return f"{values[0]}-{values[-1]}"
    whole = one.start == low == 0 and one.end == high
    return f"*/{values.step}" if whole else f"{values[0]}-{values[-1]}/{values.step}"


def rule_of(values: Mapping[str, list[int]]) -> str:
    """A rule whose day parts must both match."""
    parts = ["FREQ=DAILY"]
    if len(values["month"]) < 12:
        parts.append(f"BYMONTH={listed(values['month'])}")
    parts.append(f"BYMONTHDAY={listed(values['day_of_month'])}")
    parts.append(f"BYDAY={','.join(WEEKDAYS[day] for day in values['day_of_week'])}")
    times = (("BYHOUR", "hour"), ("BYMINUTE", "minute"), ("BYSECOND", "second"))
    return ";".join([*parts, *(f"{part}={listed(values[name])}" for part, name in times)])


def listed(values: Iterable[int]) -> str:
    """`1,2,3`."""
    return ",".join(map(str, values))


def interval_trigger(interval: Interval) -> dict[str, Any]:
    """The form of an interval, to be read in UTC. Raises BadInput for one that no form says."""
    every, phase = interval.every, interval.phase
    if every < A_SECOND or every.microseconds or phase.microseconds or not timedelta(0) <= phase:
        raise BadInput(field="interval", reason="is not a whole number of seconds, or its phase is not")
    phase %= every
    if cron := evenly(int(every.total_seconds()), int(phase.total_seconds())):
        return {"cron": cron}
    for unit, name in ((A_DAY, "DAILY"), (timedelta(hours=1), "HOURLY"), (timedelta(minutes=1), "MINUTELY"),
                       (A_SECOND, "SECONDLY")):  # fmt: skip
        if every % unit == timedelta(0) and every // unit <= INTERVAL_MAX:
            return {"rrule": f"FREQ={name};INTERVAL={every // unit}", "from": EPOCH + phase}
    raise BadInput(field="interval", reason=f"counts more than {INTERVAL_MAX} of its unit")


def evenly(every: int, phase: int) -> str:
    """A cron expression for an interval in seconds that divides the minute, the hour or the day evenly; else empty."""
    hours, minutes, seconds = phase // 3_600, phase // 60 % 60, phase % 60
    first = f"{seconds} " if seconds else ""
    if every < 60:
        return f"{stepped(seconds, every, 60)} * * * * *" if 60 % every == 0 else ""
    if every % 60 == 0 and 3_600 % every == 0:
        return f"{first}{stepped(minutes, every // 60, 60)} * * * *"
    if every % 3_600 == 0 and 86_400 % every == 0:
        return f"{first}{minutes} {stepped(hours, every // 3_600, 24)} * * *"
    return ""


def stepped(start: int, step: int, size: int) -> str:
    """From `start` on by `step`, as a field whose values are 0 to `size` - 1."""
    if step == size:
        return str(start)
    if step == 1:
        return "*"
    return f"*/{step}" if start == 0 else (f"{start}-{size - 1}/{step}" if start + step < size else str(start))


def cron_times(text: str) -> tuple[Calendar | Interval, str]:
    """A cron string as Temporal reads it, and the zone before it or nothing. Raises BadInput."""
    text, zone = text.partition("#")[0].strip(), ""
    if prefix := CRON_ZONE.fullmatch(text):
        zone, text = prefix[1], prefix[2].strip()
    if text.startswith("@every"):
        return every_of(text), zone
    fields = ALIASES.get(text.lower(), text).split()
    if not 5 <= len(fields) <= 7:
        raise BadInput(field="cronString", reason=f"{text[:80]!r} does not have five to seven fields")
    names = ["minute", "hour", "day_of_month", "month", "day_of_week", *(["year"] if len(fields) > 5 else [])]
    names = ["second", *names] if len(fields) == 7 else names
    return calendar_of(dict(zip(names, fields, strict=True))), zone


def every_of(text: str) -> Interval:
    """`@every 20d/2d`. Raises BadInput."""
    found = CRON_EVERY.fullmatch(text)
    if found is None:
        raise BadInput(field="cronString", reason=f"{text[:80]!r} is not an interval")
    return Interval(every=span_of(found[1]), phase=span_of(found[2]) if found[2] else timedelta(0))


def span_of(text: str) -> timedelta:
    """`20d`, or as Go spells it. Raises BadInput."""
    if days := DAYS.fullmatch(text):
        return timedelta(days=int(days[1]))
    try:
        return read_span(text)
    except ValueError as problem:
        raise BadInput(field="cronString", reason=f"{text[:80]!r} {problem}") from problem


def calendar_of(fields: Mapping[str, Any]) -> Calendar:
    """A calendar whose fields are written as in cron. Raises BadInput for a field that is not."""
    found = {snake(name): ranges_of(snake(name), text) for name, text in fields.items() if snake(name) in BOUNDS}
    if found.get("year") == (Range(start=1970, end=9_999),):
        del found["year"]
    return Calendar.model_validate({**found, "comment": ""})


def snake(name: str) -> str:
    """`dayOfMonth` → `day_of_month`."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()


def ranges_of(name: str, text: Any) -> tuple[Range, ...]:
    """`*/20`, `3,15` or `MON-FRI` as ranges. Raises BadInput."""
    if not isinstance(text, str) or len(text) > TEXT_LENGTH_MAX:
        raise BadInput(field=name, reason=f"is not text of at most {TEXT_LENGTH_MAX} characters")
    terms = text.split(",")
    if len(terms) > RANGES_MAX:
        raise BadInput(field=name, reason=f"lists more than {RANGES_MAX} values, ranges and steps")
    return tuple(range_of(name, term.strip()) for term in terms)


def range_of(name: str, term: str) -> Range:
    """One term of a field. A step after a single value counts to the end of the field."""
    low, high = BOUNDS[name]
    high -= name == "day_of_week"
    found = TERM.fullmatch("*" if term in ("", "?") else term)
    if found is None:
        raise BadInput(field=name, reason=f"{term[:80]!r} is not a list of values, ranges and steps")
    if found[1] == "*":
        return Range(start=low, end=high, step=int(found[3] or 1))
    start = value_of(name, found[1])
    end = value_of(name, found[2]) if found[2] else (high if found[3] else start)
    if end < start:
        raise BadInput(field=name, reason=f"{term[:80]!r} ends before it starts")
    return Range(start=start, end=end, step=int(found[3] or 1))


def value_of(name: str, text: str) -> int:
    """A number, or the name of a day or a month. Raises BadInput."""
    value = int(text) if text.isdigit() else DAYS_AND_MONTHS.get(text[:3].upper(), -1)
    if not BOUNDS[name][0] <= value <= BOUNDS[name][1]:
        raise BadInput(field=name, reason=f"{text!r} is no value of this field")
    return value
