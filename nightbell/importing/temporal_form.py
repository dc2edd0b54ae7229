"""A described Temporal Schedule, by its shape: protojson as `temporal schedule describe -o json` prints it, the same with
the names of the protocol's own files, and the spellings of the SDKs where they mean the same.

Types are exact. A duration is text with its unit, since a bare number is milliseconds in one SDK and seconds in another.
"""

import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any

from pydantic import AliasChoices, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from law.errors import BadInput
from law.schedule import bad_input

GO_DURATION = re.compile(r"(?:(\d{1,9})h)?(?:(\d{1,9})m)?(?:(\d{1,12})(?:\.(\d{1,9}))?s)?", re.ASCII)
DAYS_AND_MONTHS = {
    **{name: number for number, name in enumerate(("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"))},
    **{
        name: number
        for number, name in enumerate(
            ("JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"), 1
        )
    },
}
OVERLAP_NAMES = ("UNSPECIFIED", "SKIP", "BUFFER_ONE", "BUFFER_ALL", "CANCEL_OTHER", "TERMINATE_OTHER", "ALLOW_ALL")
"""In the order of the protocol's numbers."""


def read_number(value: Any) -> Any:
    """A number, or the name of a day or month."""
    if isinstance(value, str) and value[:3].upper() in DAYS_AND_MONTHS:
        return DAYS_AND_MONTHS[value[:3].upper()]
    return value


def read_span(value: Any) -> Any:
    """protojson's `600s`, or Go's `1h30m0s`."""
    if value is None or isinstance(value, timedelta):
        return value
    found = GO_DURATION.fullmatch(value) if isinstance(value, str) else None
    if found is None or not any(found.groups()):
        raise ValueError("is not text with its unit, such as 600s")
    hours, minutes, seconds, fraction = found.groups()
    whole = int(hours or 0) * 3_600 + int(minutes or 0) * 60 + int(seconds or 0)
    try:
        return timedelta(seconds=whole, microseconds=int((fraction or "0").ljust(9, "0")[:6]))
    except OverflowError as problem:
        raise ValueError("is longer than any duration") from problem


def read_when(value: Any) -> Any:
    """An instant with its offset."""
    if value is None or isinstance(value, datetime):
        return value
    try:
        at = datetime.fromisoformat(re.sub(r"(\.\d{6})\d+", r"\1", value))
    except (TypeError, ValueError) as problem:
        raise ValueError("is not an instant such as 2026-01-02T01:00:00Z") from problem
    if at.tzinfo is None or not 1800 < at.year < 9990:
        raise ValueError("is not an instant with an offset, such as 2026-01-02T01:00:00Z")
    return at.astimezone(UTC)


def read_overlap(value: Any) -> Any:
    """The policy's bare name, from its full name or its number."""
    if type(value) is int and 0 <= value < len(OVERLAP_NAMES):
        return OVERLAP_NAMES[value]
    if isinstance(value, str):
        name = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", value).upper().removeprefix("SCHEDULE_OVERLAP_POLICY_")
        if name in OVERLAP_NAMES:
            return name
    raise ValueError(f"is none of {', '.join(OVERLAP_NAMES)}")


def read_count(value: Any) -> Any:
    """protojson spells large integers as text."""
    return int(value) if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 20 else value


Span = Annotated[timedelta, BeforeValidator(read_span)]
When = Annotated[datetime, BeforeValidator(read_when)]
Number = Annotated[int, BeforeValidator(read_number)]
TIMES_MAX, RANGES_MAX, TEXT_LENGTH_MAX = 1_000, 100, 512
Text = Annotated[str, Field(max_length=TEXT_LENGTH_MAX)]


def spelled(*names: str) -> Any:
    """The spellings of one field."""
    return AliasChoices(*names)


class Shape(BaseModel):
    """A part of the description. What is not read is left alone: Temporal describes far more than a schedule."""

    model_config = ConfigDict(frozen=True, extra="ignore", strict=True, populate_by_name=True)


class Range(Shape):
    """From `start` to `end` by `step`; protojson leaves out what is zero."""

    start: Number = Field(default=0, ge=0, le=9_999)
    end: Number = Field(default=0, ge=0, le=9_999)
    step: int = Field(default=1, ge=0, le=9_999)


class Calendar(Shape):
    """A structured calendar: it matches where every field does."""

    second: tuple[Range, ...] = Field(default=(Range(),), strict=False, max_length=RANGES_MAX)
    minute: tuple[Range, ...] = Field(default=(Range(),), strict=False, max_length=RANGES_MAX)
    hour: tuple[Range, ...] = Field(default=(Range(),), strict=False, max_length=RANGES_MAX)
    day_of_month: tuple[Range, ...] = Field(
        default=(Range(start=1, end=31),),
        validation_alias=spelled("dayOfMonth", "day_of_month"),
        strict=False,
        max_length=RANGES_MAX,
    )
    month: tuple[Range, ...] = Field(default=(Range(start=1, end=12),), strict=False, max_length=RANGES_MAX)
    year: tuple[Range, ...] = Field(default=(), strict=False, max_length=RANGES_MAX)
    day_of_week: tuple[Range, ...] = Field(
        default=(Range(start=0, end=6),),
        validation_alias=spelled("dayOfWeek", "day_of_week"),
        strict=False,
        max_length=RANGES_MAX,
    )
    comment: str = ""


class Interval(Shape):
    """Every so long since 1970-01-01T00:00:00Z, moved by a phase."""

    every: Span = Field(validation_alias=spelled("interval", "every"))
    phase: Span = Field(default=timedelta(0), validation_alias=spelled("phase", "offset"))


class Spec(Shape):
    """When a Schedule rings."""

    calendars: tuple[Calendar, ...] = Field(
        default=(),
        validation_alias=spelled("structuredCalendar", "structured_calendar", "calendars"),
        strict=False,
        max_length=TIMES_MAX,
    )
    plain_calendars: tuple[dict[str, Any], ...] = Field(
        default=(), validation_alias=spelled("calendar"), strict=False, max_length=TIMES_MAX
    )
    crons: tuple[Text, ...] = Field(
        default=(),
        validation_alias=spelled("cronString", "cron_string", "cronExpressions", "cron_expressions"),
        strict=False,
        max_length=TIMES_MAX,
    )
    intervals: tuple[Interval, ...] = Field(
        default=(), validation_alias=spelled("interval", "intervals"), strict=False, max_length=TIMES_MAX
    )
    excluded: tuple[Any, ...] = Field(
        default=(),
        validation_alias=spelled(
            "excludeStructuredCalendar", "exclude_structured_calendar", "excludeCalendar", "exclude_calendar", "skip"
        ),
        strict=False,
        max_length=TIMES_MAX,
    )
    start_at: When | None = Field(
        default=None, validation_alias=spelled("startTime", "start_time", "startAt", "start_at")
    )
    end_at: When | None = Field(default=None, validation_alias=spelled("endTime", "end_time", "endAt", "end_at"))
    jitter: Span | None = None
    zone: str = Field(
        default="",
        max_length=64,
        validation_alias=spelled("timezoneName", "timezone_name", "timezone", "timeZoneName", "time_zone_name"),
    )
    zone_data: Any = Field(default=None, validation_alias=spelled("timezoneData", "timezone_data"))


class Policies(Shape):
    """What happens when work is still on its way, or the server was away."""

    overlap: Annotated[str, BeforeValidator(read_overlap)] = Field(
        default="UNSPECIFIED", validation_alias=spelled("overlapPolicy", "overlap_policy", "overlap")
    )
    catchup_window: Span | None = Field(default=None, validation_alias=spelled("catchupWindow", "catchup_window"))
    pause_on_failure: bool = Field(default=False, validation_alias=spelled("pauseOnFailure", "pause_on_failure"))


class State(Shape):
    """Whether it is paused, and how often it may still act."""

    paused: bool = False
    notes: str = Field(default="", validation_alias=spelled("notes", "note"))
    limited: bool = Field(default=False, validation_alias=spelled("limitedActions", "limited_actions"))
    remaining: Annotated[int | None, BeforeValidator(read_count)] = Field(
        default=None, validation_alias=spelled("remainingActions", "remaining_actions")
    )


class Described(Shape):
    """The Schedule itself."""

    spec: Spec
    action: dict[str, Any] = Field(default_factory=dict)
    policies: Policies = Field(default_factory=Policies, validation_alias=spelled("policies", "policy"))
    state: State = Field(default_factory=State)


def read_described(document: Any, field: str) -> Described:
    """One description, whether it wraps the Schedule or is it. Raises BadInput naming the field."""
    if not isinstance(document, Mapping):
        raise BadInput(field=field, reason="is not a described Schedule")
    inside, place = (document["schedule"], f"{field}.schedule") if "schedule" in document else (document, field)
    try:
        return Described.model_validate(inside)
    except ValidationError as problem:
        found = bad_input(problem)
        raise BadInput(field=f"{place}.{found.fields['field']}", reason=found.fields["reason"]) from problem
