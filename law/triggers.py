"""What rings: a calendar in a declared zone, or a named external source (CAL-1..3). As they stand in a Schedule file."""

from collections.abc import Iterator
from datetime import date, datetime, timedelta
from itertools import takewhile
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, PlainSerializer, model_validator

from law.cron import parse_cron
from law.errors import BadInput
from law.identity import SLUG

FoldPolicy = Literal["earlier", "later", "both"]
GapPolicy = Literal["skip", "advance", "fail"]

DATES_MAX = 10_000
A_DAY = timedelta(days=1)
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


CivilTime = Annotated[
    datetime,
    BeforeValidator(validate_civil),
    PlainSerializer(lambda civil: civil.isoformat(), return_type=str, when_used="json"),
]


class CalendarTrigger(BaseModel):
    """Civil times in a zone: either `cron` or `dates`."""

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)

    kind: Literal["calendar"]
    cron: str | None = None
    dates: tuple[CivilTime, ...] | None = Field(default=None, min_length=1, max_length=DATES_MAX)
    zone: str = Field(min_length=1, max_length=64)
    fold: FoldPolicy = "earlier"
    gap: GapPolicy = "skip"
    from_: CivilTime | None = Field(default=None, alias="from")
    until: CivilTime | None = None

    @model_validator(mode="after")
    def can_be_read(self) -> Self:
        if (self.cron is None) == (self.dates is None):
            raise ValueError("cron: either cron or dates says when it rings, and not both")
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
        """Raise BadInput unless the form can be read and fires at least once inside its bounds."""
        if self.cron is not None:
            parse_cron(self.cron)
        elif len(set(self.dates or ())) != len(self.dates or ()):
            raise BadInput(field="trigger.dates", reason="names a civil time twice")
        if next(self.from_civil(FIRST_CIVIL), None) is None:
            raise BadInput(field="trigger.until", reason="nothing rings between from and until")

    def from_civil(self, civil: datetime) -> Iterator[datetime]:
        """Civil times at or after `civil` and inside the active bounds, oldest first."""
        start = max(civil, self.from_ or civil)
        for one in self._unbounded(start):
            if self.until is not None and one >= self.until:
                return
            yield one

    def before_civil(self, civil: datetime) -> Iterator[datetime]:
        """Civil times before `civil` and inside the active bounds, newest first."""
        for one in self._unbounded_before(min(civil, self.until or civil)):
            if self.from_ is not None and one < self.from_:
                return
            yield one

    def count_on(self, day: date) -> int:
        """How many civil times it has on a civil date, its active bounds included."""
        midnight = datetime(day.year, day.month, day.day)
        whole = midnight >= (self.from_ or midnight) and midnight + A_DAY <= (self.until or midnight + A_DAY)
        if self.cron is not None and whole:
            return parse_cron(self.cron).count_on(day)
        return sum(1 for _ in takewhile(lambda civil: civil < midnight + A_DAY, self.from_civil(midnight)))

    def _unbounded(self, civil: datetime) -> Iterator[datetime]:
        if self.cron is not None:
            return parse_cron(self.cron).from_civil(max(civil, FIRST_CIVIL))
        return iter(sorted(one for one in self.dates or () if one >= civil))

    def _unbounded_before(self, civil: datetime) -> Iterator[datetime]:
        if self.cron is not None:
            return parse_cron(self.cron).before_civil(civil)
        return iter(sorted((one for one in self.dates or () if one < civil), reverse=True))


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
