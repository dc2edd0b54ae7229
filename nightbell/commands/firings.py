"""What would ring, without any server: `preview` lists it, draws it in the terminal, and draws it into a file."""

from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from law.bounds import calendar_bounds
from law.cron import parse_cron
from law.errors import BadInput
from law.firings import Firing, firings
from law.instants import read_instant
from law.schedule import ScheduleDocument, read_schedule
from law.triggers import CalendarTrigger
from law.zone_rules import ZoneRules
from nightbell.drawing.days import rows_of
from nightbell.drawing.files import check_place, write_whole
from nightbell.drawing.months import TEXT_WIDTH, calendar_lines
from nightbell.drawing.picture import calendar_of, picture_of
from nightbell.drawing.strips import strip_lines
from nightbell.drawing.svg import svg_text
from nightbell.options import AsJson
from nightbell.shown import show, table
from store.zone_rules import installed_rules

A_YEAR = timedelta(days=366)


def add_to(app: typer.Typer) -> None:
    """Register this module's commands."""
    app.command()(preview)


def preview(
    file: Annotated[Path, typer.Argument(exists=True, dir_okay=False, help="A Schedule file (TOML).")],
    start: Annotated[
        str | None, typer.Option("--from", help="The first instant, ISO 8601 with Z (default: now).")
    ] = None,
    end: Annotated[
        str | None, typer.Option("--to", help="The first instant past the end (default: a year on).")
    ] = None,
    limit: Annotated[int, typer.Option(min=1, max=100_000, help="At most so many firings.")] = 20,
    as_calendar: Annotated[
        bool, typer.Option("--calendar", help="Draw months and nights instead of listing; no limit but a year.")
    ] = False,
    svg: Annotated[
        Path | None, typer.Option("--svg", help="Draw every day into this SVG file too; no limit but a year.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """List the firings of a Schedule file with their bounds: what repeats, what is skipped, what the windows are."""
    document = read_file(file)
    since = read_instant(start, "from") if start else datetime.now(UTC).replace(microsecond=0)
    until = read_instant(end, "to") if end else since + A_YEAR
    if since >= until:
        raise BadInput(field="to", reason="is not later than from")
    value = previewed(document, since, until, limit)
    if svg is not None:
        draw(svg, document, since, until)
    say_it = partial(say_calendar, since=since, until=until) if as_calendar else say
    show(as_json, value, lambda console: say_it(console, document, value))
    if svg is not None and not as_json:
        typer.echo(f"Drawn into {svg}.")


def read_file(file: Path) -> ScheduleDocument:
    """Read a Schedule file. Raises BadInput naming the file and the field."""
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as problem:
        raise BadInput(field=str(file), reason=f"cannot be read: {problem}") from problem
    return read_schedule(text)


def previewed(document: ScheduleDocument, since: datetime, until: datetime, limit: int) -> dict[str, Any]:
    """The preview as the command line's contract has it."""
    trigger = document.trigger
    if not isinstance(trigger, CalendarTrigger):
        return {"schedule": document.schedule, "rules": None, "day_rule": None, "firings": []}
    rules = installed_rules(trigger.zone)
    found = islice(firings(trigger, document.cycle, rules, since, until), limit)
    return {
        "schedule": document.schedule,
        "rules": {"zone": rules.zone, "release": rules.release, "digest": rules.digest},
        "day_rule": parse_cron(trigger.cron).day_rule if trigger.cron is not None else None,
        "firings": [line(document, firing, rules) for firing in found],
    }


def line(document: ScheduleDocument, firing: Firing, rules: ZoneRules) -> dict[str, Any]:
    """One firing with its bounds; a civil time that never comes has none."""
    bounds = None
    if firing.nominal_at is not None:
        bounds = calendar_bounds(document.window, document.jitter, firing, rules, document.schedule, draw=0.0)
    return {
        "key": firing.key,
        "civil": firing.civil.isoformat(),
        "fold": firing.fold,
        "kind": firing.kind.value,
        "at": firing.at,
        "nominal_at": firing.nominal_at,
        "eligible_at": bounds.eligible_at if bounds else None,
        "not_before": bounds.not_before if bounds else None,
        "latest_start_at": bounds.latest_start_at if bounds else None,
        "finish_by": bounds.finish_by if bounds else None,
    }


def draw(svg: Path, document: ScheduleDocument, since: datetime, until: datetime) -> None:
    """Draw the stretch into an SVG file. Raises BadInput naming `svg`, and then wrote nothing."""
    check_place(svg)
    rules = installed_rules(calendar_of(document).zone)
    write_whole(svg, svg_text(document, rules, picture_of(document, rules, rows_of(rules, since, until))))


def say_calendar(
    console: Console, document: ScheduleDocument, value: dict[str, Any], since: datetime, until: datetime
) -> None:
    """The preview as months and nights. In a pipe it is as wide as a terminal usually is."""
    if not isinstance(document.trigger, CalendarTrigger):
        return say(console, document, value)
    rules, width = installed_rules(document.trigger.zone), console.width if console.is_terminal else TEXT_WIDTH
    console.print(f"{value['schedule']}  {rules.zone} by the rules of {rules.release}")
    if value["day_rule"]:
        console.print(value["day_rule"])
    console.print()
    rows = rows_of(rules, since, until)
    for line in chain(calendar_lines(document, rules, rows, width), strip_lines(document, rules, rows, width)):
        console.print(line)
    return None


def say(console: Console, document: ScheduleDocument, value: dict[str, Any]) -> None:
    """The preview for a person."""
    if value["rules"] is None:
        console.print(f"{document.schedule} rings when its source does; there is no calendar to preview.")
        return
    rules = value["rules"]
    console.print(f"{value['schedule']}  {rules['zone']} by the rules of {rules['release']}")
    if value["day_rule"]:
        console.print(value["day_rule"])
    columns = {
        "civil": "civil time", "kind": "kind", "at": "instant", "latest_start_at": "latest start", "finish_by": "finish by",
    }  # fmt: skip
    table(value["firings"], columns, "Nothing rings in this stretch.")(console)
