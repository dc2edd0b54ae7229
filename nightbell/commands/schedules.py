"""Schedules: `apply`, `schedules`, `show`, `offer`, `reconsider`."""

import asyncio
import dataclasses
import json
import sys
from pathlib import Path
from typing import Annotated, Any
from uuid import uuid4

import typer
from rich.console import Console

from activities.relaying import wake
from law.errors import BadInput
from law.identity import DecisionId, ScheduleName
from law.instants import instant_text
from law.origin import read_class, read_origin
from nightbell.commands.firings import read_file
from nightbell.options import AsJson, HomeFolder, read_name, store_of
from nightbell.problems import StackProblem
from nightbell.settings import Settings
from nightbell.shown import show, table
from nightbell.wiring import installed_patterns
from nightbell.worker_process import connect
from store import offers, registry
from store.authority import register_patterns

Name = Annotated[str, typer.Argument(help="authority/name, such as home/nightly-rite.", metavar="SCHEDULE")]


def add_to(app: typer.Typer) -> None:
    """Register this module's commands."""
    app.command("apply")(apply)
    app.command("schedules")(schedules)
    app.command("show")(show_one)
    app.command("offer")(offer)
    app.command("reconsider")(reconsider)


def apply(
    files: Annotated[list[Path], typer.Argument(exists=True, dir_okay=False, help="Schedule files (TOML).")],
    home: HomeFolder = None,
    as_json: AsJson = False,
) -> None:
    """Register Schedules and new revisions. The first revision of a Schedule is activated; a later one waits."""
    documents = [read_file(file) for file in files]  # all of them can be read before any is registered
    with store_of(home) as (settings, pool):
        register_patterns(pool, installed_patterns())
        registered = [registry.register(pool, document, DecisionId(uuid4())) for document in documents]
    ring(settings, [one.schedule for one in registered])
    lines = [dataclasses.asdict(one) for one in registered]
    columns = {
        "schedule": "Schedule",
        "revision": "revision",
        "created": "created",
        "active": "active",
        "digest": "digest",
    }
    show(as_json, lines, table(lines, columns, "Nothing to apply."))


def ring(settings: Settings, names: list[ScheduleName]) -> None:
    """Wake the workflows now; where Temporal is away, the relay does it when it is back, since the store knows already."""
    try:
        asyncio.run(ring_all(settings, names))
    except StackProblem as problem:
        sys.stderr.write(f"{problem.sentence} The store has it; the relay will ring.\n")


async def ring_all(settings: Settings, names: list[ScheduleName]) -> None:
    """Wake each Schedule's workflow. Raises StackProblem."""
    client = await connect(settings, attempts=1)
    for name in names:
        await wake(client, settings.task_queue, name)


def schedules(home: HomeFolder = None, as_json: AsJson = False) -> None:
    """Every Schedule, its active revision, and when it rings next."""
    with store_of(home) as (_, pool):
        lines = [listed(line) for line in registry.schedules(pool)]
    columns = {
        "schedule": "Schedule", "revision": "revision", "service_class": "class", "next_nominal_at": "next firing",
        "pending": "pending", "live_runs": "live Runs", "paused_at": "paused", "halted_reason": "halted",
    }  # fmt: skip
    show(as_json, lines, table(lines, columns, "There are no Schedules; `nightbell apply FILE` registers one."))


def listed(line: registry.ScheduleLine) -> dict[str, Any]:
    """A Schedule as a list shows it: everything but the document."""
    found = {name: value for name, value in dataclasses.asdict(line).items() if name != "document"}
    return {**found, "service_class": line.document["class"]["service_class"], "active_revision": line.revision}


def show_one(name: Name, home: HomeFolder = None, as_json: AsJson = False) -> None:
    """One Schedule with everything its active revision means."""
    with store_of(home) as (_, pool):
        line = registry.schedule(pool, read_name(name))
    value = {**listed(line), "document": line.document}

    def render(console: Console) -> None:
        for field, said in value.items():
            if field != "document" and said is not None:
                console.print(f"{field:<18} {instant_text(said) if hasattr(said, 'tzinfo') else said}")
        console.print_json(json.dumps(line.document))

    show(as_json, value, render)


def offer(
    name: Name,
    source: Annotated[str, typer.Option(help="The source that the Schedule listens to.")],
    event_id: Annotated[str, typer.Option(help="The source's own id of this event; a repeat finds the first.")],
    content: Annotated[str, typer.Option(help="A JSON object; immutable once offered.")] = "{}",
    requested_class: Annotated[
        str, typer.Option("--class", help="Ask for this class; never more than the ceiling.")
    ] = "",
    origin: Annotated[str, typer.Option(help="operator, legionnaire or a2a_peer.")] = "operator",
    principal: Annotated[str, typer.Option(help="Who asks.")] = "",
    home: HomeFolder = None,
    as_json: AsJson = False,
) -> None:
    """Bring an external firing. Repeating it changes nothing and answers with what became of the first."""
    asked = offers.Offer(
        schedule=read_name(name),
        source=source,
        event_id=event_id,
        content=read_content(content),
        requested_class=read_class(requested_class),
        origin=read_origin(origin),
        principal=principal,
    )
    with store_of(home) as (settings, pool):
        offered = offers.offer(pool, asked, DecisionId(uuid4()))
    if offered.state == "pending":
        ring(settings, [asked.schedule])
    found = "made" if offered.created else "known already"
    said = f"{offered.key} {found}: {offered.state} {offered.reason}\n{offered.trigger_occurrence_id}"
    show(as_json, dataclasses.asdict(offered), lambda console: console.print(said))


def read_content(text: str) -> dict[str, Any]:
    """The content of an event: a JSON object. Raises BadInput."""
    try:
        content = json.loads(text)
    except (ValueError, RecursionError) as problem:
        raise BadInput(field="content", reason=f"is not JSON: {problem}") from problem
    if not isinstance(content, dict):
        raise BadInput(field="content", reason="is not a JSON object")
    return content


def reconsider(name: Name, home: HomeFolder = None, as_json: AsJson = False) -> None:
    """Wake a Schedule: it looks again at what rang, what waits and what is on its way."""
    schedule = read_name(name)
    with store_of(home) as (settings, pool):
        registry.schedule(pool, schedule)
    asyncio.run(ring_all(settings, [schedule]))
    show(as_json, {"schedule": schedule, "rung": True}, lambda console: console.print(f"{schedule} was rung."))
