"""The absolute bounds of one firing, fixed when it is materialized and never moved (CAL-6, CAL-7, CAL-9, WIN-1).

`latest_start_at` is derived from the nominal firing: as elapsed time, or as a civil time of day resolved by the retained
rules. 02:00 until 05:00 is three hours on most nights, and four on one. A civil bound is the first such time of day
strictly after the nominal civil time. Where the clock jumps over it, it is the instant of the jump; where it is repeated,
it is the earlier reading that still lies after the nominal instant. A firing that a jump advanced to or past its own civil
bound has a window that is closed when it opens: the bound is never read as tomorrow's, since a window must not widen.

Jitter moves eligibility, never a bound. `deterministic` is a function of the firing's identity; `bounded` is a draw that
the caller makes once and stores: nothing here is random. Jitter that could use up a window is refused at registration.
"""

import re
from dataclasses import dataclass
from datetime import datetime, time, timedelta
from itertools import islice
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

from law.durations import Duration
from law.errors import BadInput
from law.firings import Firing, FiringKind, firings, next_firing_at
from law.identity import ScheduleName, SourceKey, digest_of
from law.triggers import CalendarTrigger
from law.zone_rules import Missing, Normal, Repeated, ZoneRules, resolve

TIME_OF_DAY = re.compile(r"([01][0-9]|2[0-3]):[0-5][0-9](:[0-5][0-9])?")
MILLISECOND = timedelta(milliseconds=1)
SIGHT = timedelta(days=1500)
SIGHT_COUNT = 5_000
"""How far registration looks for a window that jitter could use up: four years, or this many firings."""


def check_time_of_day(text: str) -> str:
    """`HH:MM` or `HH:MM:SS`."""
    if not TIME_OF_DAY.fullmatch(text):
        raise ValueError(f"{text!r} is not a time of day such as 05:00")
    return text


TimeOfDay = Annotated[str, AfterValidator(check_time_of_day)]


class Window(BaseModel):
    """`[window]`: how long after its nominal firing an Occurrence may still be admitted, and when it must be finished."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    allowed_delay: Duration | None = None
    latest_start_civil: TimeOfDay | None = None
    finish_within: Duration | None = None
    finish_by_civil: TimeOfDay | None = None
    finish_proof: str | None = Field(default=None, min_length=1, max_length=128)

    @model_validator(mode="after")
    def one_form_of_each_bound(self) -> Self:
        if (self.allowed_delay is None) == (self.latest_start_civil is None):
            raise ValueError("exactly one of allowed_delay and latest_start_civil says the latest start")
        if self.finish_within is not None and self.finish_by_civil is not None:
            raise ValueError("finish_within and finish_by_civil are two forms of one bound; give one")
        if self.finish_proof is not None and self.finish_within is None and self.finish_by_civil is None:
            raise ValueError("finish_proof belongs to a finish bound, and there is none")
        return self


class Jitter(BaseModel):
    """`[jitter]`: how far eligibility may be moved from the nominal instant; chosen once, never part of identity."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    mode: Literal["none", "deterministic", "bounded"] = "none"
    max: Duration | None = None

    @model_validator(mode="after")
    def max_belongs_to_a_mode(self) -> Self:
        if (self.mode == "none") != (self.max is None):
            raise ValueError("max belongs to a jitter mode, and a mode needs it")
        return self


@dataclass(frozen=True, slots=True)
class Bounds:
    """Absolute instants (aware UTC); None where a class or revision has no such bound."""

    eligible_at: datetime
    not_before: datetime | None = None
    latest_start_at: datetime | None = None
    finish_by: datetime | None = None
    jitter_milliseconds: int = 0


def calendar_bounds(
    window: Window | None,
    jitter: Jitter,
    firing: Firing,
    rules: ZoneRules,
    schedule: ScheduleName,
    draw: float | None = None,
) -> Bounds:
    """The bounds of a calendar firing that has an instant. Raises ValueError for one that has none, and BadInput for bounded
    jitter without its `draw` in [0, 1)."""
    if firing.nominal_at is None:
        raise ValueError(f"{firing.key} has no instant, hence no bounds")
    nominal_at, chosen = firing.nominal_at, select_jitter(jitter, schedule, firing.key, draw)
    if window is None:
        return Bounds(nominal_at + chosen, jitter_milliseconds=chosen // MILLISECOND)

    def bound(elapsed: timedelta | None, civil: str | None) -> datetime | None:
        if elapsed is not None:
            return nominal_at + elapsed
        return next_time_of_day(civil, firing.civil, nominal_at, rules) if civil is not None else None

    latest_start_at = bound(window.allowed_delay, window.latest_start_civil)
    finish_by = bound(window.finish_within, window.finish_by_civil)
    eligible_at = nominal_at + chosen
    return Bounds(eligible_at, eligible_at, latest_start_at, finish_by, chosen // MILLISECOND)


def event_bounds(
    window: Window | None,
    jitter: Jitter,
    at: datetime,
    schedule: ScheduleName,
    key: SourceKey,
    draw: float | None = None,
) -> Bounds:
    """The bounds of an external event assigned at `at`; its window has no civil bounds, since it has no zone."""
    chosen = select_jitter(jitter, schedule, key, draw)
    if window is None:
        return Bounds(at + chosen, jitter_milliseconds=chosen // MILLISECOND)
    latest_start_at = at + window.allowed_delay if window.allowed_delay is not None else None
    finish_by = at + window.finish_within if window.finish_within is not None else None
    return Bounds(at + chosen, at + chosen, latest_start_at, finish_by, chosen // MILLISECOND)


def select_jitter(jitter: Jitter, schedule: ScheduleName, key: SourceKey, draw: float | None = None) -> timedelta:
    """A whole number of milliseconds below `max` (CAL-6): from the firing's identity, so that a second draw is the same
    draw, or from `draw` in [0, 1), which the caller makes once. Raises BadInput for bounded jitter without a lawful draw."""
    if jitter.max is None:
        return timedelta(0)
    steps = jitter.max // MILLISECOND
    if jitter.mode == "bounded":
        if draw is None or not 0 <= draw < 1:
            raise BadInput(field="jitter.mode", reason="bounded jitter needs a draw in [0, 1), made once and stored")
        return min(int(draw * steps), steps - 1) * MILLISECOND
    return int(digest_of([schedule, key]).removeprefix("sha256:")[:16], 16) % steps * MILLISECOND


def check_jitter(
    trigger: CalendarTrigger, window: Window | None, jitter: Jitter, rules: ZoneRules, since: datetime
) -> None:
    """Raise BadInput if jitter could move eligibility to or past a bound of any firing, as far as can be seen."""
    if window is None or jitter.max is None:
        return
    still = Jitter()
    first_at = next_firing_at(trigger, "nominal", rules, since) or since
    for firing in islice(firings(trigger, "nominal", rules, first_at, first_at + SIGHT), SIGHT_COUNT):
        if firing.kind in (FiringKind.GAP_SKIPPED, FiringKind.GAP_FAILED, FiringKind.GAP_ADVANCED):
            continue  # one that a jump advanced may have an empty window of its own
        bounds = calendar_bounds(window, still, firing, rules, ScheduleName(""))
        ends = [end for end in (bounds.latest_start_at, bounds.finish_by) if end is not None]
        if any(bounds.eligible_at + jitter.max - MILLISECOND >= end for end in ends):
            civil = firing.civil.isoformat()
            raise BadInput(field="jitter.max", reason=f"could use up the whole window of the firing of {civil}")


def next_time_of_day(text: str, nominal_civil: datetime, nominal_at: datetime, rules: ZoneRules) -> datetime:
    """The first instant not before `nominal_at` that this time of day means, strictly after the nominal civil time."""
    of_day = time.fromisoformat(text)
    for days in range(4):
        civil = datetime.combine(nominal_civil.date() + timedelta(days=days), of_day)
        for at in readings(civil, rules):
            if civil > nominal_civil and at >= nominal_at:
                return at
    raise ValueError(f"no {text} follows {nominal_civil.isoformat()} in {rules.zone}")


def readings(civil: datetime, rules: ZoneRules) -> tuple[datetime, ...]:
    """The instants that a civil bound may mean, earliest first."""
    match resolve(rules, civil):
        case Normal(at):
            return (at,)
        case Repeated(earlier, later):
            return (earlier, later)
        case Missing(transition_at):
            return (transition_at,)


def plain_bounds(bounds: Bounds) -> dict[str, Any]:
    """The four instants by name."""
    return {
        "eligible_at": bounds.eligible_at,
        "not_before": bounds.not_before,
        "latest_start_at": bounds.latest_start_at,
        "finish_by": bounds.finish_by,
    }
