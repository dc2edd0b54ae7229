"""What rings: a calendar in a declared zone, or a named external source (CAL-1..3). As they stand in a Schedule file.

A calendar says its civil times in one of three forms: `cron`, `rrule` with `from` as its start, or a list of `dates`. Each
form lists them in either direction and counts them; the active bounds are `from`, which is included, and `until`, which is
not. Which instant a civil time is, is asked elsewhere.
"""

from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, datetime
from functools import lru_cache
from typing import Annotated, Any, Literal, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainSerializer,
    model_validator,
)

from law.cron import Cron, parse_cron
from law.errors import BadInput
from law.identity import SLUG
from law.recurrence import Recurrence
from law.rrule import RULE_LENGTH_MAX, read_rule

FoldPolicy = Literal["earlier", "later", "both"]
GapPolicy = Literal["skip", "advance", "fail"]

DATES_MAX = 10_000
FIRST_CIVIL = datetime(1800, 1, 1)
"""Nothing rings before zone data begins."""


def validate_civil(value: Any) -> datetime:
    """A civil time: ISO 8601 without an offset. A date alone is its midnight."""
    if isinstance(value, str):
        try:
            value = datetime.fromisoformat(value)
        except ValueError as problem:
            raise ValueError(f"{value!r} is not a civil time such as 2026-01-02T02:00") from problem
    if isinstance(value, date) and not isinstance(value, datetime):
        value = datetime(value.year, value.month, value.day)
    if not isinstance(value, datetime) or value.tzinfo is not None:
        raise ValueError("must be a civil time without an offset; the zone is the trigger's own")
    if value.microsecond:
        raise ValueError("a civil time has no fractions of a second")
    return value


def in_order(dates: tuple[datetime, ...]) -> tuple[datetime, ...]:
    """A list of civil times means the same in any order; one that names a time twice is a mistake."""
    if len(set(dates)) != len(dates):
        raise ValueError("names a civil time twice")
    return tuple(sorted(dates))


def up_to(civil_times: Iterator[datetime], past: datetime) -> Iterator[datetime]:
    """Civil times before `past`."""
    for civil in civil_times:
        if civil >= past:
            return
        yield civil


def back_to(civil_times: Iterator[datetime], first: datetime) -> Iterator[datetime]:
    """Civil times, newest first, from `first` on."""
    for civil in civil_times:
        if civil < first:
            return
        yield civil


CivilTime = Annotated[
    datetime,
    BeforeValidator(validate_civil),
    PlainSerializer(lambda civil: civil.isoformat(), return_type=str, when_used="json"),
]


@dataclass(frozen=True, slots=True)
class Dates:
    """An explicit list of civil times, in order."""

    civil_times: tuple[datetime, ...]

    def from_civil(self, civil: datetime) -> Iterator[datetime]:
        """Those at or after `civil`, oldest first."""
        return iter(self.civil_times[bisect_left(self.civil_times, civil) :])

    def before_civil(self, civil: datetime) -> Iterator[datetime]:
        """Those before `civil`, newest first."""
        return iter(self.civil_times[: bisect_left(self.civil_times, civil)][::-1])

    def count(self, start: datetime, end: datetime) -> int:
        """How many are in [start, end)."""
        return max(0, bisect_left(self.civil_times, end) - bisect_left(self.civil_times, start))


@lru_cache(maxsize=4096)
def recurrence(text: str, start: datetime) -> Recurrence:
    """Read a rule, once for each text and start. Raises BadInput for one that cannot be read or never fires."""
    return Recurrence.of(read_rule(text, start))


class CalendarTrigger(BaseModel):
    """Civil times in a zone: exactly one of `cron`, `rrule` and `dates`."""

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)

    kind: Literal["calendar"]
    cron: str | None = None
    rrule: str | None = Field(default=None, max_length=RULE_LENGTH_MAX)
    dates: Annotated[tuple[CivilTime, ...], AfterValidator(in_order)] | None = Field(
        default=None, min_length=1, max_length=DATES_MAX
    )
    zone: str = Field(min_length=1, max_length=64)
    fold: FoldPolicy = "earlier"
    gap: GapPolicy = "skip"
    from_: CivilTime | None = Field(default=None, alias="from")
    until: CivilTime | None = None

    @model_validator(mode="after")
    def can_be_read(self) -> Self:
        if self.from_ is not None and self.until is not None and self.from_ >= self.until:
            raise ValueError("until: must be later than from")
        try:
            self.check_form()
        except BadInput as problem:
            raise ValueError(
                f"{str(problem.fields['field']).removeprefix('trigger.')}: {problem.fields['reason']}"
            ) from problem
        return self

    def check_form(self) -> None:
        """Raise BadInput unless exactly one form is given, can be read, and fires at least once inside the bounds."""
        if [self.cron, self.rrule, self.dates].count(None) != 2:
            raise BadInput(field="trigger.cron", reason="exactly one of cron, rrule and dates says when it rings")
        if self.rrule is not None and self.from_ is None:
            raise BadInput(field="trigger.from", reason="an rrule needs from: the civil time at which it starts")
        if next(self.from_civil(FIRST_CIVIL), None) is None:
            raise BadInput(field="trigger.until", reason="nothing rings between from and until")

    @property
    def form(self) -> Cron | Recurrence | Dates:
        """The one form that is given."""
        if self.cron is not None:
            return parse_cron(self.cron)
        if self.rrule is not None:
            return recurrence(self.rrule, self.from_ or FIRST_CIVIL)
        return Dates(self.dates or ())

    def from_civil(self, civil: datetime) -> Iterator[datetime]:
        """Civil times at or after `civil` and inside the active bounds, oldest first."""
        found = self.form.from_civil(max(civil, self.from_ or FIRST_CIVIL))
        return found if self.until is None else up_to(found, self.until)

    def before_civil(self, civil: datetime) -> Iterator[datetime]:
        """Civil times before `civil` and inside the active bounds, newest first."""
        return back_to(self.form.before_civil(min(civil, self.until or civil)), self.from_ or FIRST_CIVIL)

    def count(self, start: datetime, end: datetime) -> int:
        """How many civil times in [start, end) are inside the active bounds, without listing them."""
        start, end = max(start, self.from_ or FIRST_CIVIL), min(end, self.until or end)
        return self.form.count(start, end) if start < end else 0


class ExternalTrigger(BaseModel):
    """A named source whose events ring."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    kind: Literal["external"]
    source: str

    @model_validator(mode="after")
    def source_is_a_slug(self) -> Self:
        if not SLUG.fullmatch(self.source):
            raise ValueError("source: is not a slug (lower-case letters, digits, and . _ - inside)")
        return self


Trigger = CalendarTrigger | ExternalTrigger
