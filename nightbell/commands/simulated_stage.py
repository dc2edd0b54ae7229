"""What a simulation is told on the command line, read and checked: files, capacities, durations, events, quiet windows.

Everything is either said, or stands in a file, or is refused by name: nothing is assumed. What the store has measured comes in
as `measured`, by Pattern, revision and capability.
"""

import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, get_args

from law.bounds import check_jitter
from law.capacity import Capability, CapabilityState, check_capability
from law.durations import parse_duration
from law.errors import BadInput
from law.identity import Digest, ScheduleName
from law.instants import read_instant
from law.merging import merge_with
from law.pattern import Pattern
from law.schedule import ScheduleDocument, read_schedule
from law.simulated import Evenly, Event, Simulated, simulated
from law.simulation import Stage
from law.triggers import CalendarTrigger
from law.yielding import QuietWindow
from law.zone_rules import ZoneRules
from patterns.catalogue import installed
from store.zone_rules import installed_rules

RATE = re.compile(r"([1-9][0-9]{0,6})/([smhd])")
PER = {"s": timedelta(seconds=1), "m": timedelta(minutes=1), "h": timedelta(hours=1), "d": timedelta(days=1)}
Measured = Mapping[tuple[str, str, str | None], timedelta]
"""(Pattern, revision, capability) → how long its Runs were measured to take."""
Catalogue = Mapping[tuple[str, str], Pattern[Any]]


@dataclass(frozen=True, slots=True)
class Said:
    """What was said, word for word."""

    capacities: Sequence[str] = ()
    durations: Sequence[str] = ()
    events: Sequence[str] = ()
    quiet: Sequence[str] = ()
    proven: Sequence[str] = ()
    measured: Measured = field(default_factory=dict[tuple[str, str, str | None], timedelta])


def stage_of(places: Iterable[Path], since: datetime, until: datetime, said: Said) -> Stage:
    """The stage of these files and folders. Raises BadInput naming what is wrong, or what nobody said."""
    documents = read_documents(places)
    names = {one.schedule for one in documents}
    durations = {
        name: parse_duration(text, f"duration of {name}") for name, text in by_name(said.durations, "duration", names)
    }
    events = {name: read_events(name, text, since) for name, text in by_name(said.events, "event", names)}
    catalogue: Catalogue = {(one.key, one.revision): one for one in installed()}
    check_proven(said.proven, documents, catalogue)
    rules: dict[str, ZoneRules] = {}
    schedules = list[Simulated]()
    for document in documents:
        pattern = catalogue.get(whose(document)[:2])
        schedules.append(
            simulated(
                document,
                rules_of(document, rules, since),
                durations.get(document.schedule),
                said.measured.get(whose(document)),
                pattern.yields if pattern is not None else None,
                is_named(document, said.proven),
                events_of(document, events),
                digest_for(document, pattern),
            )
        )
    capacities = [read_capacity(text) for text in said.capacities]
    return Stage(schedules, since, until, capacities, [read_quiet(text) for text in said.quiet], merge_with(catalogue))


def read_documents(places: Iterable[Path]) -> list[ScheduleDocument]:
    """Every Schedule in these files, and in these folders' own files. Raises BadInput naming file and field."""
    found: dict[ScheduleName, Path] = {}
    documents = list[ScheduleDocument]()
    for file in files_of(places):
        document = read_one(file)
        if document.schedule in found:
            reason = f"{document.schedule} is in {found[document.schedule]} already"
            raise BadInput(field=str(file), reason=reason)
        found[document.schedule] = file
        documents.append(document)
    if not documents:
        raise BadInput(field="files", reason="hold no Schedule")
    return documents


def files_of(places: Iterable[Path]) -> list[Path]:
    """The files themselves, and of a folder whatever ends in .toml and has a trigger."""
    found = dict[Path, None]()
    for place in places:
        inside = sorted(place.glob("*.toml")) if place.is_dir() else [place]
        found |= {file: None for file in inside if not place.is_dir() or has_trigger(file)}
    return list(found)


def has_trigger(file: Path) -> bool:
    """Whether a file of a folder means to be a Schedule: one that cannot be read does, so that it is refused by name."""
    try:
        return "trigger" in tomllib.loads(read_text(file))
    except tomllib.TOMLDecodeError:
        return True


def read_one(file: Path) -> ScheduleDocument:
    """One file. Raises BadInput naming it and the field."""
    try:
        return read_schedule(read_text(file))
    except BadInput as problem:
        raise BadInput(field=f"{file}: {problem.fields['field']}", reason=problem.fields["reason"]) from problem


def read_text(file: Path) -> str:
    """The text of a file. Raises BadInput naming it."""
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as problem:
        raise BadInput(field=str(file), reason=f"cannot be read: {problem}") from problem


def by_name(texts: Iterable[str], option: str, names: set[ScheduleName]) -> list[tuple[ScheduleName, str]]:
    """`SCHEDULE=TEXT`, each for a Schedule of the files and once. Raises BadInput naming the option."""
    found: dict[ScheduleName, str] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        known = next((one for one in names if one == name), None)
        if not equals or known is None:
            raise BadInput(field=option, reason=f"{text!r} does not begin with a Schedule of these files and =")
        if known in found:
            raise BadInput(field=option, reason=f"{known} is said twice")
        found[known] = value
    return list(found.items())


def rules_of(document: ScheduleDocument, known: dict[str, ZoneRules], since: datetime) -> ZoneRules | None:
    """The installed rules of its zone, each read once; None for an external source. Raises BadInput where its jitter could
    use up a window."""
    trigger = document.trigger
    if not isinstance(trigger, CalendarTrigger):
        return None
    if trigger.zone not in known:
        known[trigger.zone] = installed_rules(trigger.zone)
    check_jitter(trigger, document.window, document.jitter, known[trigger.zone], since)
    return known[trigger.zone]


def whose(document: ScheduleDocument) -> tuple[str, str, str | None]:
    """Whose duration is measured: Pattern, revision and capability."""
    capability = document.capacity.capability if document.capacity is not None else None
    return document.work.pattern, document.work.pattern_revision, capability


def digest_for(document: ScheduleDocument, pattern: Pattern[Any] | None) -> Digest:
    """The digest of the installed Pattern. Raises BadInput where inputs have to be merged and nobody here can."""
    if pattern is None and document.overlap.policy == "coalesce":
        called = f"{document.work.pattern} {document.work.pattern_revision}"
        raise BadInput(
            field="work.pattern", reason=f"{document.schedule}: {called} is not installed, so nobody can merge"
        )
    return Digest(pattern.digest if pattern is not None else "")


def read_events(name: ScheduleName, text: str, since: datetime) -> Iterable[Event]:
    """`12/h`, or a file with an instant a line and, if it likes, an event id behind it. Raises BadInput."""
    if rate := RATE.fullmatch(text):
        return Evenly(since, int(rate[1]), PER[rate[2]])
    field = f"event of {name}"
    if not Path(text).is_file():
        raise BadInput(field=field, reason=f"{text!r} is neither a rate such as 12/h nor a file")
    found = dict[str, Event]()
    for number, line in enumerate(read_text(Path(text)).splitlines(), 1):
        at, _, event_id = line.partition("#")[0].strip().partition(" ")
        event = Event(read_instant(at, f"{text}, line {number}"), event_id.strip() or f"line-{number}") if at else None
        if event is not None and event.event_id in found:
            raise BadInput(field=f"{text}, line {number}", reason=f"the event {event.event_id!r} is there twice")
        found |= {event.event_id: event} if event is not None else {}
    return tuple(sorted(found.values(), key=lambda event: (event.at, event.event_id)))


def events_of(document: ScheduleDocument, said: Mapping[ScheduleName, Iterable[Event]]) -> Iterable[Event]:
    """The events of a Schedule. Raises BadInput where an external source has none said, or a calendar has some."""
    is_calendar, events = isinstance(document.trigger, CalendarTrigger), said.get(document.schedule)
    if is_calendar and events is not None:
        raise BadInput(field="event", reason=f"{document.schedule} rings by its calendar")
    if not is_calendar and events is None:
        reason = f"{document.schedule} rings when its source does: say when, as in {document.schedule}=12/h"
        raise BadInput(field="event", reason=reason)
    return events or ()


def read_capacity(text: str) -> Capability:
    """`NAME=UNITS[:protected=P][:foreground=F][:state=STATE][:closed][:exclusive]`. Raises BadInput."""
    name, equals, rest = text.partition("=")
    units, *more = rest.split(":")
    said: dict[str, Any] = {"name": name, "state": "WARM", "units": whole(units, "capacity")}
    for one in more if equals else ():
        key, has_value, value = one.partition("=")
        if key in ("protected", "foreground") and has_value:
            said[f"{key}_units"] = whole(value, f"capacity {key}")
        elif key == "state" and value in get_args(CapabilityState):
            said["state"] = value
        elif one == "closed":
            said["admission"] = "closed"
        elif one == "exclusive":
            said["sharing"] = "exclusive"
        else:
            reason = f"{one!r} is none of protected=P, foreground=F, state={'|'.join(get_args(CapabilityState))}"
            raise BadInput(field="capacity", reason=f"{reason}, closed, exclusive")
    capability = Capability(**said)
    check_capability(capability)
    return capability


def whole(text: str, field: str) -> int:
    """A whole number. Raises BadInput."""
    if not re.fullmatch(r"[0-9]{1,7}", text):
        raise BadInput(field=field, reason=f"{text!r} is not a number of units, as in store-io=4")
    return int(text)


def read_quiet(text: str) -> QuietWindow:
    """`FROM/TO[=CAPABILITY]`. Raises BadInput."""
    stretch, _, capability = text.partition("=")
    opens, slash, closes = stretch.partition("/")
    if not slash:
        raise BadInput(field="quiet", reason=f"{text!r} is not FROM/TO, two instants with a / between")
    opens_at, closes_at = read_instant(opens, "quiet"), read_instant(closes, "quiet")
    if opens_at >= closes_at:
        raise BadInput(field="quiet", reason=f"{text!r} ends before it begins")
    return QuietWindow(opens_at, closes_at, capability or None)


def is_named(document: ScheduleDocument, proven: Iterable[str]) -> bool:
    """Whether its Pattern is among those said to be proven, by name or by name and revision."""
    work = document.work
    return any(one in (work.pattern, f"{work.pattern}/{work.pattern_revision}") for one in proven)


def check_proven(proven: Iterable[str], documents: Sequence[ScheduleDocument], catalogue: Catalogue) -> None:
    """Raise BadInput for a name that no file's Pattern has, or one that promises nothing that could be proven."""
    for one in proven:
        named = [whose(document)[:2] for document in documents if is_named(document, [one])]
        if not named:
            raise BadInput(
                field="proven", reason=f"{one!r} is no Pattern of these files, as PATTERN or PATTERN/REVISION"
            )
        for key, revision in named:
            pattern = catalogue.get((key, revision))
            if pattern is None or pattern.yields is None:
                reason = (
                    f"{key} {revision} is not installed, or declares no yield contract, so nothing can be proven of it"
                )
                raise BadInput(field="proven", reason=reason)
