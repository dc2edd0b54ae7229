"""The zone data: `zones`."""

import dataclasses
from typing import Annotated, Any
from uuid import uuid4

import typer
from rich.console import Console

from law.identity import DecisionId
from nightbell.commands.changing import next_command
from nightbell.options import AsJson, HomeFolder, store_of
from nightbell.shown import cell, show, table
from store import cutover
from store import zones as watch
from store.connection import Pool

SHOWN_DATES_MAX = 20


def add_to(app: typer.Typer) -> None:
    """Register this module's commands."""
    app.command()(zones)


def zones(
    draft: Annotated[
        bool,
        typer.Option("--draft", help="Register a revision under the newer rules for each, and propose its cutover."),
    ] = False,
    home: HomeFolder = None,
    as_json: AsJson = False,
) -> None:
    """Which revisions would ring differently under the zone data that is installed now, and on which dates. Nothing changes
    by itself: retained rules ring on until a revision under newer ones is activated."""
    with store_of(home) as (_, pool):
        lines = [line(pool, one, draft) for one in watch.outdated(pool)]
    show(as_json, lines, lambda console: tell(console, lines))


def line(pool: Pool, one: watch.Outdated, draft: bool) -> dict[str, Any]:
    """One revision with what would differ; with `draft`, its successor and the plan that is proposed for it."""
    found = {**dataclasses.asdict(one), "differs": bool(one.differences), "draft": None}
    if draft and one.differences:
        registered = watch.draft(pool, one.schedule)
        verdict = cutover.examine(pool, one.schedule, registered.revision, None, DecisionId(uuid4()))
        found["draft"] = {
            "revision": registered.revision,
            "complete": verdict.complete,
            "plan": verdict.plan.model_dump() if verdict.plan is not None else None,
            "next_command": next_command(one.schedule, registered.revision, verdict),
        }
    return found


def tell(console: Console, lines: list[dict[str, Any]]) -> None:
    """The report for a person."""
    if not lines:
        console.print("Every revision that rings retains the rules that are installed.")
    for one in lines:
        console.print(
            f"{one['schedule']} revision {one['revision']}: {one['zone']} by the rules of {one['retained_release']}; "
            f"installed are those of {one['installed_release'] or '–'}", markup=False,
        )  # fmt: skip
        if one["problem"]:
            console.print(f"  cannot be compared: {one['problem']}", markup=False)
            continue
        if not one["differences"]:
            console.print("  the coming year reads alike under both")
            continue
        dates = [{**found, "civil": cell("", found["civil"])} for found in one["differences"][:SHOWN_DATES_MAX]]
        columns = {"civil": "civil time", "retained_at": "rings at", "installed_at": "would ring at"}
        table(dates, columns, "")(console)
        if len(one["differences"]) > SHOWN_DATES_MAX:
            console.print(f"  and {len(one['differences']) - SHOWN_DATES_MAX} more; --json lists them")
        if one["draft"]:
            console.print(one["draft"]["next_command"], markup=False)
