"""What a drawing says in words: dates, changes of the clocks, and every firing that met one (CAL-2, CAL-3). Pure."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from itertools import islice

from law.bounds import Bounds
from law.firings import Firing, FiringKind, firings
from law.instants import instant_text
from law.schedule import ScheduleDocument
from law.triggers import CalendarTrigger
from law.zone_rules import Jump, ZoneRules, civil_reading
from nightbell.drawing.days import changes_between, repeated, seconds_between

WEEKDAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
FOLD_WORDS = {"earlier": "rings at the earlier reading", "later": "rings at the later reading", "both": "rings twice"}
GAP_WORDS = {"skip": "is skipped, recorded", "advance": "is advanced to the change", "fail": "is failed, recorded"}
SPECIAL_MAX = 6
"""So many firings of one change are named; of the rest it is said how many there are."""

JUST_AFTER = timedelta(microseconds=1)


@dataclass(frozen=True, slots=True)
class Change:
    """A change of the clocks, and the firings that met it: the first ones, and how many more."""

    jump: Jump
    special: tuple[Firing, ...]
    more_count: int


def changes(document: ScheduleDocument, rules: ZoneRules, since: datetime, until: datetime) -> list[Change]:
    """Every change of the clocks in [since, until) with the firings that met it."""
    trigger = document.trigger
    assert isinstance(trigger, CalendarTrigger)
    return [change(document, trigger, rules, jump) for jump in changes_between(rules, since, until)]


def change(document: ScheduleDocument, trigger: CalendarTrigger, rules: ZoneRules, jump: Jump) -> Change:
    """One change. Firings that it swallowed stand at its instant; those of a repeated time, in either reading of it."""
    both = repeated(jump)
    first, past = (both[0][0], both[1][1]) if both else (jump.at, jump.at + JUST_AFTER)
    found = (
        firing
        for firing in firings(trigger, document.cycle, rules, first, past)
        if firing.kind is not FiringKind.NORMAL
    )
    return Change(jump, tuple(islice(found, SPECIAL_MAX)), sum(1 for _ in found))


def say_change(trigger: CalendarTrigger, jump: Jump) -> str:
    """`Sun 25 Oct 2026 03:00 becomes 02:00 at 01:00Z; a time between rings at the earlier reading`."""
    policy = FOLD_WORDS[trigger.fold] if repeated(jump) else GAP_WORDS[trigger.gap]
    after = say_time(jump.after) if jump.after.date() == jump.before.date() else say_civil(jump.after)
    return f"{say_civil(jump.before)} becomes {after} at {say_instant(jump.at, jump.after)}; a time between {policy}"


def say_special(change: Change, rules: ZoneRules) -> Iterator[str]:
    """A sentence for each special firing, and one for all that are too many to name."""
    for firing in change.special:
        yield say_firing(firing, rules)
    if change.more_count:
        yield f"and {change.more_count} more like {'these' if len(change.special) > 1 else 'this'}"


def say_firing(firing: Firing, rules: ZoneRules) -> str:
    """`Sun 25 Oct 2026 02:00 happens twice; rings at the earlier, 00:00Z`."""
    return f"{say_civil(firing.civil)} {say_kind(firing, rules)}"


def say_window(document: ScheduleDocument, bounds: Bounds | None, firing: Firing, rules: ZoneRules) -> str:
    """`; may begin from 02:00 until before 05:00, for 4 h; finish by 06:00`, or nothing for one without bounds."""
    if bounds is None or bounds.latest_start_at is None:
        return ""
    opens_at, last = bounds.eligible_at, bounds.latest_start_at
    finish = f"; finish by {say_reading(bounds.finish_by, firing, rules)}" if bounds.finish_by else ""
    if last <= opens_at:
        return f"; its window is closed when it opens{finish}"
    until = f"until before {say_reading(last, firing, rules)}"
    if document.jitter.max is None or document.jitter.mode != "bounded":
        span = say_for(seconds_between(opens_at, last))
        return f"; may begin from {say_reading(opens_at, firing, rules)} {until}, for {span}{finish}"
    open_for_certain_at = opens_at + document.jitter.max
    span = say_for(max(0, seconds_between(open_for_certain_at, last)))
    fall = f"{say_reading(opens_at, firing, rules)} to {say_reading(open_for_certain_at, firing, rules)}"
    return f"; may begin from {fall}, as jitter falls, {until}, for at least {span}{finish}"


def say_reading(at: datetime, firing: Firing, rules: ZoneRules) -> str:
    """What the clocks read at an instant, with the date where it is another day."""
    reading = civil_reading(rules, at)[0]
    return say_time(reading) if reading.date() == firing.civil.date() else say_civil(reading)


def say_kind(firing: Firing, rules: ZoneRules) -> str:
    """What became of a civil time."""
    match firing.kind:
        case FiringKind.NORMAL:
            return f"rings, {say_instant(firing.at, firing.civil)}"
        case FiringKind.FOLD:
            member = "later" if firing.fold else "earlier"
            return f"happens twice; rings at the {member}, {say_instant(firing.at, firing.civil)}"
        case FiringKind.GAP_ADVANCED:
            landed = say_reading(firing.at, firing, rules)
            return f"does not exist; advanced to {landed}, {say_instant(firing.at, firing.civil)}"
        case FiringKind.GAP_SKIPPED:
            return "does not exist; skipped, recorded"
        case FiringKind.GAP_FAILED:
            return "does not exist; failed, recorded"


def say_date(on: date) -> str:
    """`Sun 25 Oct 2026`, whatever the locale."""
    return f"{WEEKDAYS[on.weekday()]} {on.day} {MONTHS[on.month - 1]} {on.year}"


def say_civil(civil: datetime) -> str:
    """`Sun 25 Oct 2026 02:00`."""
    return f"{say_date(civil.date())} {say_time(civil)}"


def say_time(civil: datetime) -> str:
    """`02:00`, with seconds only where there are some."""
    return civil.strftime("%H:%M:%S" if civil.second else "%H:%M")


def say_instant(at: datetime, beside: datetime) -> str:
    """`00:00Z`, or the whole instant where its date is not that of the civil time beside it."""
    return f"{say_time(at)}Z" if at.date() == beside.date() else instant_text(at.replace(microsecond=0))


def say_for(seconds: int) -> str:
    """`3 h`, `2 h 30 min`, `45 s`; days, of twenty-four hours each, only from two on."""
    days = seconds // 86_400 if seconds >= 2 * 86_400 else 0
    rest = seconds - days * 86_400
    parts = ((days, "d"), (rest // 3600, "h"), (rest % 3600 // 60, "min"), (rest % 60, "s"))
    return " ".join(f"{count} {unit}" for count, unit in parts if count) or "0 s"
