"""Described Temporal Schedules become Schedules: one file for each calendar and interval of the spec.

Temporal starts what it missed, in order, as long as it is within the catchup window; so does a bounded catch-up of that age.
When the clocks change, a time that does not come is skipped there and one that comes twice rings twice (measured with
server 1.32); both are said in the trigger. An action has no latest start there, so the class is `foreground`.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from law.durations import format_duration
from law.errors import BadInput
from law.instants import instant_text
from law.zone_rules import Repeated, ZoneRules, civil_reading, resolve
from nightbell.importing.entries import Entry, Found, Loss, Refused, gathered, slug
from nightbell.importing.temporal_form import Calendar, Described, Interval, Policies, State, read_described
from nightbell.importing.temporal_times import A_SECOND, calendar_of, calendar_trigger, cron_times, interval_trigger
from store.zone_rules import installed_rules

CATCHUP_DEFAULT = timedelta(days=365)
CAUGHT_UP_MAX, CAUGHT_UP_RUNS_MAX = 100, 1_000_000
INSTANT_ZERO = datetime(1970, 1, 1, tzinfo=UTC)
MISFIRE_THRESHOLD = timedelta(seconds=60)

ACTIONS = Loss(
    "the actions",
    "a Schedule rings an installed Pattern and never starts another workflow",
    "each file rings the Pattern that was named",
)
OVERLAPS: Mapping[str, tuple[str, Loss | None]] = {
    "UNSPECIFIED": ("forbid", None),
    "SKIP": ("forbid", None),
    "BUFFER_ALL": ("serialize", None),
    "BUFFER_ONE": (
        "serialize",
        Loss("BUFFER_ONE", "what waits is not thrown away for being the second", "all that rings waits its turn"),
    ),
    "CANCEL_OTHER": (
        "forbid",
        Loss("CANCEL_OTHER", "a later firing never cancels admitted work", "the later firing is suppressed (forbid)"),
    ),
    "TERMINATE_OTHER": (
        "forbid",
        Loss("TERMINATE_OTHER", "a later firing never ends admitted work", "the later firing is suppressed (forbid)"),
    ),
}


@dataclass(frozen=True, slots=True)
class Part:
    """One calendar or interval of a spec: where it stands, its own zone if it has one, and how it is shown."""

    where: str
    times: Calendar | Interval
    zone: str
    said: str


def read_schedules(document: Any, name: str, otherwise: str, parallel_max: int) -> Found:
    """Read one description or a list of them. `name` is theirs where it is given, and `otherwise` where they say none.
    Raises BadInput for what is malformed."""
    return gathered(read_all(document, name, otherwise, parallel_max))


def read_all(document: Any, name: str, otherwise: str, parallel_max: int) -> Iterator[Entry | Refused | Loss]:
    """What becomes of each description."""
    documents = document if isinstance(document, list) else [document]
    for number, one in enumerate(documents, 1):
        described = read_described(one, "file" if one is document else f"schedule {number}")
        if number == 1:
            yield ACTIONS
        yield from read_one(described, name or own_name(one, otherwise), parallel_max)


def own_name(document: Mapping[str, Any], otherwise: str) -> str:
    """The Schedule's id where the description has it (protojson has not)."""
    inside = document.get("schedule")
    for place in (document, inside if isinstance(inside, Mapping) else {}):
        for key in ("scheduleId", "schedule_id", "id"):
            if isinstance(said := place.get(key), str) and said:
                return said
    return otherwise


def read_one(described: Described, name: str, parallel_max: int) -> Iterator[Entry | Refused]:
    """An entry for every part of the spec."""
    parts = list(parts_of(described))
    if not parts:
        yield Refused(f"Schedule {name}", "its spec names no time, so it rings only by hand; offer an external event")
    shared = losses_of(described, len(parts), parallel_max)
    for part in parts:
        where = f"Schedule {name}, {part.where}"
        if isinstance(part, Refused):
            yield Refused(f"{where}", part.reason)
            continue
        try:
            losses: list[Loss] = []
            tables = tables_of(described, part, parallel_max, losses)
            yield Entry(
                where, (part.said, *policies_said(described)), slug(name, "schedule"), tables, (*losses, *shared)
            )
        except BadInput as problem:
            yield Refused(f"{where}: {part.said}", problem.sentence)


def parts_of(described: Described) -> Iterator[Part | Refused]:
    """Every calendar, cron string and interval; what cannot be read is refused alone."""
    spec = described.spec
    for number, calendar in enumerate(spec.calendars, 1):
        yield Part(f"structuredCalendar {number}", calendar, spec.zone, f"structuredCalendar: {shown(calendar)}")
    for number, plain in enumerate(spec.plain_calendars, 1):
        try:
            yield Part(f"calendar {number}", calendar_of(plain), spec.zone, f"calendar: {plain}")
        except BadInput as problem:
            yield Refused(f"calendar {number}", problem.sentence)
    for number, text in enumerate(spec.crons, 1):
        try:
            times, zone = cron_times(text)
            if zone and spec.zone and zone != spec.zone:
                raise BadInput(field="cronString", reason=f"is of {zone}, and the spec of {spec.zone}")
            yield Part(f"cronString {number}", times, zone or spec.zone, f"cronString: {text}")
        except BadInput as problem:
            yield Refused(f"cronString {number}", problem.sentence)
    for number, interval in enumerate(spec.intervals, 1):
        said = f"interval: every {format_duration(interval.every)}, phase {format_duration(interval.phase)}"
        yield Part(f"interval {number}", interval, "", said)


def shown(calendar: Calendar) -> str:
    """A structured calendar in one line, its fields as they were given."""
    given = calendar.model_dump(exclude_defaults=True)
    terms = [f"{name} {', '.join(map(range_said, ranges))}" for name, ranges in given.items() if name != "comment"]
    return "; ".join([*terms, *([f"({calendar.comment})"] if calendar.comment else [])]) or "midnight of every day"


def range_said(one: Mapping[str, int]) -> str:
    """`1-5/2` for a range with what it leaves out."""
    start, end, step = one.get("start", 0), one.get("end", 0), one.get("step", 1)
    return f"{start}" + (f"-{end}" if end > start else "") + (f"/{step}" if end > start and step > 1 else "")


def policies_said(described: Described) -> Iterator[str]:
    """What the description says beside its times."""
    spec, policies = described.spec, described.policies
    if spec.zone:
        yield f"timezoneName: {spec.zone}"
    for name, at in (("startTime", spec.start_at), ("endTime", spec.end_at)):
        if at is not None:
            yield f"{name}: {instant_text(at)}"
    if spec.jitter:
        yield f"jitter: {format_duration(spec.jitter)}"
    yield f"overlapPolicy: {policies.overlap}"
    if policies.catchup_window is not None:
        yield f"catchupWindow: {format_duration(policies.catchup_window)}"
    if described.state.notes:
        yield f"notes: {described.state.notes}"


def tables_of(described: Described, part: Part, parallel_max: int, losses: list[Loss]) -> dict[str, Any]:
    """The Schedule's tables. Raises BadInput with the reason why there are none."""
    tables: dict[str, Any] = {
        "trigger": trigger_of(described, part, losses),
        "class": {"service_class": "foreground"},
    }
    if described.spec.jitter:
        tables["jitter"] = jitter_of(described.spec.jitter, losses)
    policy, _ = OVERLAPS.get(described.policies.overlap, ("bounded_parallel", None))
    tables["overlap"] = {"policy": policy, **({"max": parallel_max} if policy == "bounded_parallel" else {})}
    concurrent_max = min(parallel_max, CAUGHT_UP_MAX) if policy == "bounded_parallel" else 1
    tables["catch_up"] = catch_up_of(described.policies.catchup_window or CATCHUP_DEFAULT, concurrent_max)
    return tables


def trigger_of(described: Described, part: Part, losses: list[Loss]) -> dict[str, Any]:
    """The trigger: an interval knows no zone, and a calendar without one is in UTC."""
    zone = "UTC" if isinstance(part.times, Interval) else part.zone or "UTC"
    rules = installed_rules(zone)
    form = interval_trigger(part.times) if isinstance(part.times, Interval) else calendar_trigger(part.times)
    every = part.times.every if isinstance(part.times, Interval) and "rrule" in form else None
    spec = described.spec
    if spec.start_at is not None:
        first = civil_bound(rules, -(-(spec.start_at - INSTANT_ZERO) // A_SECOND), "startTime", losses)
        form["from"] = aligned(form["from"], first, every) if every else max(form.get("from", first), first)
    if spec.end_at is not None:  # Temporal's end is included, ours is not
        past = civil_bound(rules, (spec.end_at - INSTANT_ZERO) // A_SECOND + 1, "endTime", losses)
        form["until"] = min(form.get("until", past), past)
    civil = {name: form[name].isoformat() for name in ("from", "until") if name in form}
    return {"kind": "calendar", **form, "zone": zone, "fold": "both", "gap": "skip", **civil}


def civil_bound(rules: ZoneRules, second: int, name: str, losses: list[Loss]) -> datetime:
    """What the zone's clocks read in a second since 1970."""
    civil, _ = civil_reading(rules, INSTANT_ZERO + second * A_SECOND)
    if isinstance(resolve(rules, civil), Repeated):
        because = f"the clocks read {civil.isoformat()} twice"
        losses.append(Loss(f"{name} to the hour", because, "the bound holds for both readings"))
    return civil


def aligned(anchor: datetime, first: datetime, every: timedelta) -> datetime:
    """The first of a line that counts from `anchor`, at or after `first`. Raises BadInput where the calendar has ended."""
    try:
        return anchor + max(0, -((anchor - first) // every)) * every
    except OverflowError as problem:
        raise BadInput(field="startTime", reason="nothing rings after it before the calendar ends") from problem


def jitter_of(jitter: timedelta, losses: list[Loss]) -> dict[str, str]:
    """Temporal's delay is of each action; ours is drawn once for each firing and kept."""
    because = "Temporal draws them from identities of its own"
    losses.append(Loss("the very delays of the jitter", because, "each is drawn once, from the same span, and kept"))
    return {"mode": "bounded", "max": format_duration(max(A_SECOND, whole(jitter)))}


def catch_up_of(window: timedelta, concurrent_max: int) -> dict[str, Any]:
    """All that was missed within the window, oldest first, as far as a Schedule can consider it."""
    window = max(A_SECOND, whole(window))
    return {
        "misfire_threshold": format_duration(min(MISFIRE_THRESHOLD, window)),
        "horizon": format_duration(window),
        "mode": "bounded",
        "max_age": format_duration(window),
        "max_count": CAUGHT_UP_MAX,
        "max_concurrency": concurrent_max,
        "budget": CAUGHT_UP_RUNS_MAX,
    }


def whole(span: timedelta) -> timedelta:
    """Whole seconds."""
    return span // A_SECOND * A_SECOND


def losses_of(described: Described, parts_count: int, parallel_max: int) -> tuple[Loss, ...]:
    """What of the spec, the policies and the state no file says, whichever of its parts it is for."""
    return (
        *spec_losses(described, parts_count),
        *policy_losses(described.policies, parallel_max),
        *state_losses(described.state),
    )


def spec_losses(described: Described, parts_count: int) -> Iterator[Loss]:
    """Of the spec."""
    if parts_count > 1:
        because = "one Schedule has one line of times"
        yield Loss("one overlap policy over all times", because, f"{parts_count} Schedules that do not see each other")
    if described.spec.excluded:
        because = "no trigger leaves out times of another calendar"
        yield Loss(
            "excludeStructuredCalendar", because, "those times ring too; name the wanted ones with dates or rrule"
        )
    if described.spec.zone_data:
        because = "rules are retained from the installed zone data, by digest"
        yield Loss("timezoneData", because, "the installed rules of the named zone")


def policy_losses(policies: Policies, parallel_max: int) -> Iterator[Loss]:
    """Of the policies."""
    _, lost = OVERLAPS.get(policies.overlap, ("", None))
    if lost is not None:
        yield lost
    if policies.overlap == "ALLOW_ALL":
        because = "a Schedule is never without a bound"
        yield Loss("ALLOW_ALL", because, f"at most {parallel_max} at once, and what rings then waits its turn")
    because = f"one look considers at most {CAUGHT_UP_MAX} missed firings"
    yield Loss("an unbounded catch-up", because, f"the newest {CAUGHT_UP_MAX} within the catchup window, oldest first")
    if policies.pause_on_failure:
        yield Loss(
            "pauseOnFailure", "a Run that fails pauses nothing here", "pause the Schedule by hand where one failed"
        )


def state_losses(state: State) -> Iterator[Loss]:
    """Of the state."""
    if state.paused:
        because = "a file cannot be paused, only a Schedule can"
        yield Loss("state.paused", because, "leave the file unapplied, or pause the Schedule as soon as it is applied")
    if state.limited or state.remaining:
        because = "no Schedule counts its firings down"
        yield Loss(
            f"remainingActions ({state.remaining or 0})", because, "it rings until trigger.until, if there is one"
        )
