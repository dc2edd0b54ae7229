"""Elapsed time as people write it: `90s`, `3h`, `1d12h`, or ISO 8601 `PT3H`. Always positive, always bounded.

A duration is elapsed, never civil: a day is twenty-four hours, whatever the clocks do. Civil bounds have their own words.
"""

import re
from datetime import timedelta
from typing import Annotated, Any

from pydantic import BeforeValidator, PlainSerializer

from law.errors import BadInput

UNITS = {"w": 604_800, "d": 86_400, "h": 3_600, "m": 60, "s": 1}
DURATION_MAX = timedelta(days=36_525)
"""A century: Temporal cuts longer timers in silence, and nobody means them."""

WRITTEN = re.compile(r"(?:(\d{1,6})w)?(?:(\d{1,6})d)?(?:(\d{1,7})h)?(?:(\d{1,8})m)?(?:(\d{1,10})s)?", re.ASCII)
ISO_8601 = re.compile(r"P(?:(\d{1,6})W)?(?:(\d{1,6})D)?(?:T(?:(\d{1,7})H)?(?:(\d{1,8})M)?(?:(\d{1,10})S)?)?", re.ASCII)


def parse_duration(text: str, field: str = "duration") -> timedelta:
    """Read a duration. Raises BadInput naming `field` for anything that is not one, is zero, or exceeds a century."""
    written = WRITTEN.fullmatch(text.strip()) or ISO_8601.fullmatch(text.strip())
    if written is None or not any(written.groups()):
        raise BadInput(field=field, reason=f"{text!r} is not a duration such as 90s, 3h, 1d12h or PT3H")
    seconds = sum(int(count or 0) * unit for count, unit in zip(written.groups(), UNITS.values(), strict=True))
    if not 0 < seconds <= DURATION_MAX.total_seconds():
        raise BadInput(field=field, reason=f"{text!r} is not between one second and a century")
    return timedelta(seconds=seconds)


def format_duration(duration: timedelta) -> str:
    """The canonical spelling, such as `1d12h`: what a digest is taken of."""
    seconds = int(duration.total_seconds())
    parts: list[str] = []
    for name, unit in list(UNITS.items())[1:]:
        count, seconds = divmod(seconds, unit)
        if count:
            parts.append(f"{count}{name}")
    return "".join(parts) or "0s"


def validate_duration(value: Any) -> timedelta:
    """pydantic's entry: text, or a duration that is one already."""
    if isinstance(value, timedelta):
        return value
    if not isinstance(value, str):
        raise ValueError("must be text such as 90s, 3h, 1d12h or PT3H")
    try:
        return parse_duration(value)
    except BadInput as problem:
        raise ValueError(str(problem.fields["reason"])) from problem


Duration = Annotated[
    timedelta, BeforeValidator(validate_duration), PlainSerializer(format_duration, return_type=str, when_used="json")
]
"""A duration in a Schedule file."""
