"""Cron as a list of civil times, without a zone (CAL-1): five or six fields, names, ranges, steps, lists, `L`, `LW`, `#`,
and the `@daily` family.

The cronsim library does the listing, on naive time only. Its text is gated first: what it would read differently from
classic cron, or accept by accident, is refused here with a reason. Its day rule is Debian's: a day field that begins with
`*` means that both day fields must match, otherwise either may.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from functools import lru_cache

from cronsim import CronSim, CronSimError

from law.errors import BadInput

EXPRESSION_LENGTH_MAX = 256
EXPRESSION = re.compile(r"[0-9A-Za-z*,/#@ \t-]+")
NUMBER_LENGTH_MAX = 2
SAME_ENDS = re.compile(r"(?<![0-9A-Za-z#])([0-9A-Za-z]+)-\1(?![0-9A-Za-z])")

ALIASES = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}

A_LEAP_YEAR = datetime(2000, 1, 1)
"""Where the search for a first match begins: the Gregorian calendar repeats from here after 400 years."""


@dataclass(frozen=True, slots=True)
class Cron:
    """A cron expression that was read and is known to fire. `expression` has its aliases spelled out."""

    expression: str

    def from_civil(self, civil: datetime) -> Iterator[datetime]:
        """Its civil times at or after `civil`, oldest first."""
        return self._list(civil - timedelta(microseconds=1 if civil.microsecond else 1_000_000), reverse=False)

    def before_civil(self, civil: datetime) -> Iterator[datetime]:
        """Its civil times before `civil`, newest first."""
        return self._list(civil, reverse=True)

    def _list(self, start: datetime, *, reverse: bool) -> Iterator[datetime]:
        try:
            yield from CronSim(self.expression, start, reverse=reverse)
        except (OverflowError, ValueError):  # the calendar itself ends
            return

    def count_on(self, day: date) -> int:
        """How many civil times it has on a civil date."""
        sim = CronSim(self.expression, A_LEAP_YEAR)
        if day.month not in sim.months or not sim.match_day(day):
            return 0
        return len(sim.seconds) * len(sim.minutes) * len(sim.hours)

    @property
    def day_rule(self) -> str:
        """Which of the two day fields must match, in words."""
        day, weekday = self.expression.split()[-3], self.expression.split()[-1]
        if day == "*" and weekday == "*":
            return "every day"
        if day == "*" or weekday == "*":
            return f"days of the {'week' if day == '*' else 'month'} as written"
        if day.startswith("*") or weekday.startswith("*"):
            return "a day must match both its day of the month and its day of the week (a field begins with *)"
        return "a day may match either its day of the month or its day of the week (no field begins with *)"


@lru_cache(maxsize=4096)
def parse_cron(text: str, field: str = "trigger.cron") -> Cron:
    """Read an expression. Raises BadInput naming `field` for what cannot be read, or would never fire."""
    if len(text) > EXPRESSION_LENGTH_MAX:
        raise BadInput(field=field, reason=f"is longer than {EXPRESSION_LENGTH_MAX} characters")
    if not EXPRESSION.fullmatch(text):
        raise BadInput(field=field, reason=f"{text!r} has characters that no cron expression has")
    spelled = ALIASES.get(text.strip().lower(), text).split()
    if any("@" in part for part in spelled):
        known = ", ".join(ALIASES)
        raise BadInput(field=field, reason=f"{text!r} is none of {known}")
    refuse_huge_numbers(spelled, field)
    expression = SAME_ENDS.sub(r"\1", " ".join(spelled))
    refuse_lost_bounds(spelled, field)
    return Cron(checked(expression, text, field))


def refuse_huge_numbers(parts: list[str], field: str) -> None:
    """No field of any grammar has a number of three digits."""
    for number in re.findall(r"[0-9]+", " ".join(parts)):
        if len(number) > NUMBER_LENGTH_MAX:
            raise BadInput(field=field, reason=f"{number[:12]} is larger than any field")


def refuse_lost_bounds(parts: list[str], field: str) -> None:
    """`10-10/6` is hour 10 in classic cron and 10, 16, 22 in the library: refuse it rather than guess."""
    for part in ",".join(parts).split(","):
        span, _, step = part.partition("/")
        if step and SAME_ENDS.fullmatch(span):
            raise BadInput(field=field, reason=f"{part!r} is read in two ways; write {span.split('-')[0]!r}")


def checked(expression: str, text: str, field: str) -> str:
    """The expression, if the library can read it and it fires at least once."""
    try:
        next(CronSim(expression, A_LEAP_YEAR))
    except (CronSimError, ValueError, OverflowError) as problem:
        raise BadInput(
            field=field, reason=f"{text!r} cannot be read: {problem or 'not a cron expression'}"
        ) from problem
    except StopIteration:
        raise BadInput(field=field, reason=f"{text!r} never fires") from None
    return expression
