"""Changing a Schedule: `cutover`, `activate`, `whose`, `pause`, `resume`."""

import json
from pathlib import Path
from typing import Annotated, Any
from uuid import uuid4

import typer
from rich.console import Console

from law.cutover import Verdict
from law.errors import BadInput
from law.identity import DecisionId, RevisionNumber, ScheduleName, SourceKey
from law.partition import ExplicitPlan, FirstCyclePlan, check_plan, read_activation
from nightbell.commands.schedules import Name, ring
from nightbell.options import AsJson, HomeFolder, read_name, store_of
from nightbell.problems import REFUSED
from nightbell.shown import cell, show, table
from store import cutover as cutovers
from store import lookup, pausing

Revision = Annotated[int, typer.Argument(min=1, help="The number of a registered revision.", metavar="REVISION")]
FirstCycle = Annotated[
    str | None,
    typer.Option(
        "--first-cycle", help="The new revision's first cycle: 2026-01-03, 2026-01-03T02:00, 2026-W02, 2026-01."
    ),
]
Note = Annotated[str, typer.Option("--note", help="Why, for whoever reads it at night.")]
PlanFile = Annotated[
    Path | None,
    typer.Option("--plan", exists=True, dir_okay=False, help="A plan as JSON, as `cutover --json` proposes it."),
]


def add_to(app: typer.Typer) -> None:
    """Register this module's commands."""
    for command in (cutover, activate, whose, pause, resume):
        app.command()(command)


def cutover(
    name: Name,
    revision: Revision,
    first_cycle: FirstCycle = None,
    plan: PlanFile = None,
    home: HomeFolder = None,
    as_json: AsJson = False,
) -> None:
    """Propose a cutover to a revision, or verify one: every firing around the cut, and whose it is. Changes nothing; ends
    with 3 where the plan would be refused."""
    schedule = read_name(name)
    asked = read_plan(revision, first_cycle, plan)
    with store_of(home) as (_, pool):
        verdict = cutovers.examine(pool, schedule, RevisionNumber(revision), asked, DecisionId(uuid4()))
    show(as_json, shown(schedule, revision, verdict), lambda console: tell(console, schedule, revision, verdict))
    if not verdict.complete:
        raise typer.Exit(REFUSED)


def activate(
    name: Name,
    revision: Revision,
    first_cycle: FirstCycle = None,
    plan: PlanFile = None,
    home: HomeFolder = None,
    as_json: AsJson = False,
) -> None:
    """Pin a cutover plan and make a revision the active one. A plan is needed wherever a calendar changes: `cutover`
    proposes one."""
    schedule = read_name(name)
    asked = read_plan(revision, first_cycle, plan)
    with store_of(home) as (settings, pool):
        activated = cutovers.activate(pool, schedule, RevisionNumber(revision), asked, DecisionId(uuid4()))
    ring(settings, [schedule])
    said = f"{schedule}: revision {activated.revision} is active since {cell('', activated.activated_at)}."
    show(as_json, activated, lambda console: console.print(said))


def read_plan(revision: int, first_cycle: str | None, plan: Path | None) -> FirstCyclePlan | ExplicitPlan | None:
    """The plan that was given, in either form. Raises BadInput."""
    if first_cycle is not None and plan is not None:
        raise BadInput(field="plan", reason="stands beside --first-cycle; give one of them")
    if plan is None:
        return read_activation({"revision": revision, "first_cycle": first_cycle})[1]
    try:
        content = json.loads(plan.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as problem:
        raise BadInput(field=str(plan), reason=f"is not JSON: {problem}") from problem
    if isinstance(content, dict) and isinstance(content.get("plan"), dict):
        content = content["plan"]  # the whole document of `cutover --json` is as good
    if not isinstance(content, dict):
        raise BadInput(field=str(plan), reason="is not a JSON object")
    return check_plan(content)


def shown(schedule: ScheduleName, revision: int, verdict: Verdict) -> dict[str, Any]:
    """The document of `cutover`."""
    return {
        "schedule": schedule,
        "revision": revision,
        "complete": verdict.complete,
        "plan": verdict.plan.model_dump() if verdict.plan is not None else None,
        "candidates": [one.plain() for one in verdict.candidates],
        "problems": [one.plain() for one in verdict.problems],
    }


def tell(console: Console, schedule: ScheduleName, revision: int, verdict: Verdict) -> None:
    """The same for a person: who rings what, what is wrong, and what to type next."""
    lines = [{**one.plain(), "same_as": one.same_as.key if one.same_as else None} for one in verdict.candidates]
    columns = {
        "at": "instant", "civil": "civil time", "zone": "zone", "revision": "as revision", "disposition": "is",
        "same_as": "the same as", "owner": "owned by revision",
    }  # fmt: skip
    table(sorted(lines, key=lambda line: (line["at"], line["revision"])), columns, "No firing is open.")(console)
    for one in verdict.problems:
        console.print(f"[red]{one.code}[/red]: ", end="")
        console.print(
            one.sentence, *(f"\n  revision {name.revision}: {name.key}" for name in one.candidates), markup=False
        )
    if verdict.complete:
        console.print(next_command(schedule, revision, verdict), markup=False)


def next_command(schedule: ScheduleName, revision: int, verdict: Verdict) -> str:
    """What to type to activate under this plan."""
    if isinstance(verdict.plan, FirstCyclePlan):
        return f"nightbell activate {schedule} {revision} --first-cycle '{verdict.plan.first_cycle}'"
    write = f"nightbell cutover {schedule} {revision} --json > plan.json"
    return f"{write}\nnightbell activate {schedule} {revision} --plan plan.json"


def whose(
    name: Name,
    key: Annotated[str, typer.Argument(help="A firing's key, such as civil_date:2026-01-02.", metavar="KEY")],
    revision: Annotated[
        int | None, typer.Option(min=1, help="As this revision has it (default: as any has it).")
    ] = None,
    home: HomeFolder = None,
    as_json: AsJson = False,
) -> None:
    """Which revision owns a firing, and what became of it: also one that was skipped in a long stretch, or is yet to come."""
    schedule = read_name(name)
    with store_of(home) as (_, pool):
        found = lookup.whose(pool, schedule, SourceKey(key), RevisionNumber(revision) if revision else None)
    show(as_json, found, lambda console: console.print(told(found), markup=False))


def told(found: lookup.Whose) -> str:
    """The answer in a sentence."""
    name = found.key if found.key == found.asked else f"{found.asked} is {found.key}, which"
    owned = f"{name} belongs to revision {found.revision}"
    match found.standing:
        case "occurrence":
            return f"{owned}: {found.state}, {found.reason or 'not yet decided'}\n{found.trigger_occurrence_id}"
        case "range":
            return f"{owned}: {found.state} in a long stretch, {found.reason}"
        case "skip":
            return f"{owned}, which lets it go"
        case "unassigned":
            return f"{owned} and rings at {cell('', found.at)}"
        case "none":
            return f"{found.schedule} has no firing {found.asked}"


def pause(name: Name, note: Note = "", home: HomeFolder = None, as_json: AsJson = False) -> None:
    """Let a Schedule stand still: nothing of it is admitted, its windows go on closing, its events are kept."""
    schedule = read_name(name)
    with store_of(home) as (settings, pool):
        paused = pausing.pause(pool, schedule, note, DecisionId(uuid4()))
    ring(settings, [schedule])
    said = f"{schedule} is paused since {cell('', paused.paused_at)}."
    show(as_json, paused, lambda console: console.print(said))


def resume(name: Name, note: Note = "", home: HomeFolder = None, as_json: AsJson = False) -> None:
    """Let a paused Schedule ring again. What rang meanwhile is caught up with as its revision says: never in a burst."""
    schedule = read_name(name)
    with store_of(home) as (settings, pool):
        paused = pausing.resume(pool, schedule, note, DecisionId(uuid4()))
    ring(settings, [schedule])
    said = f"{schedule} rings{'' if paused.changed else '; it was not paused'}."
    show(as_json, paused, lambda console: console.print(said))
