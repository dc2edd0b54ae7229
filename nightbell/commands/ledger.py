"""The ledger: `occurrences`, `explain`, `runs`."""

from typing import Annotated, Any
from uuid import UUID

import typer
from rich.console import Console

from law.errors import BadInput
from law.identity import TriggerOccurrenceId
from law.reasons import OccurrenceState, RunState
from nightbell.options import AsJson, HomeFolder, Limit, read_name, store_of
from nightbell.shown import cell, show, table
from store import ledger

MaybeName = Annotated[
    str | None, typer.Argument(help="authority/name; all Schedules without it.", metavar="[SCHEDULE]")
]
States = Annotated[list[str] | None, typer.Option("--state", help="Only these states; may be repeated.")]


def add_to(app: typer.Typer) -> None:
    """Register this module's commands."""
    for command in (occurrences, explain, runs):
        app.command()(command)


def occurrences(
    name: MaybeName = None, state: States = None, limit: Limit = 50, home: HomeFolder = None, as_json: AsJson = False
) -> None:
    """What rang, and what became of it."""
    states = known(state, [one.value for one in OccurrenceState])
    with store_of(home) as (_, pool):
        lines = ledger.occurrences(pool, read_name(name) if name else None, states, limit)
    columns = {
        "rang_at": "rang", "schedule": "Schedule", "key": "firing", "state": "state", "reason": "reason",
        "latest_start_at": "latest start", "decision_time": "decided", "trigger_occurrence_id": "id",
    }  # fmt: skip
    show(as_json, lines, table(lines, columns, "No such Occurrences." if states else "Nothing rang yet."))


def known(asked: list[str] | None, states: list[str]) -> list[str]:
    """The asked states. Raises BadInput for one that there is not."""
    for one in asked or ():
        if one not in states:
            raise BadInput(field="state", reason=f"{one!r} is none of {', '.join(states)}")
    return asked or []


def explain(
    trigger_occurrence_id: Annotated[
        str, typer.Argument(help="A trigger_occurrence_id, as `occurrences` prints it.", metavar="ID")
    ],
    home: HomeFolder = None,
    as_json: AsJson = False,
) -> None:
    """Every decision about one Occurrence, in order, in words."""
    try:
        wanted = TriggerOccurrenceId(UUID(trigger_occurrence_id))
    except ValueError as problem:
        raise BadInput(field="id", reason=f"{trigger_occurrence_id!r} is not a trigger_occurrence_id") from problem
    with store_of(home) as (_, pool):
        found = ledger.explain(pool, wanted)
    show(as_json, found, lambda console: tell(console, found))


def tell(console: Console, found: dict[str, Any]) -> None:
    """The story of one Occurrence."""
    occurrence = found["occurrence"]
    console.print(f"{occurrence['schedule']} revision {occurrence['revision']}: {occurrence['key']}")
    console.print(f"  rang {cell('', occurrence['rang_at'])}, {occurrence['service_class']}, made durable "
                  f"{cell('', occurrence['materialized_at'])}{', found late' if occurrence['found_late'] else ''}")  # fmt: skip
    for field in ("not_before", "latest_start_at", "finish_by"):
        if occurrence[field] is not None:
            console.print(f"  {field:<16} {cell('', occurrence[field])}")
    console.print(f"  now {occurrence['state']}{waits(occurrence)}")
    for decision in found["decisions"]:
        console.print(f"  {cell('', decision['sampled_at'])}  {decision['act']}: {decision['outcome']}, {decision['sentence']} "
                      f"({', '.join(decision['obligations'])})")  # fmt: skip
        if decision["evidence"]:
            console.print(f"      {arithmetic(decision['evidence'])}")
    for member in occurrence["members"]:
        console.print(f"  stands for {member['key']} too ({member['trigger_occurrence_id']})")
    if occurrence["readiness"] is not None:
        asked = occurrence["readiness"]
        console.print(f"  asked that {asked['capability']} be made ready: {asked['state']}, {asked['note'] or '–'}")
    for hop in found["hops"]:
        held = f", held {hop['units']} of {hop['capability']}" if hop["units"] else ""
        console.print(
            f"  hop {hop['enqueue_seq']}: {hop['state']}, published {hop['publish_count']}×{held}, {hop['note'] or '–'}"
        )
    for effect in found["effects"]:
        console.print(f"  effect {effect['kind']} {effect['effect_key']}: {effect['state']}")
    if found["run"] is not None:
        console.print(f"  Run {found['run']['run_id']}: {found['run']['state']}, {found['run']['reason'] or '–'}, "
                      f"finish {found['run']['disposition']}")  # fmt: skip


def arithmetic(evidence: dict[str, Any]) -> str:
    """What a decision rests on, in one line."""
    return ", ".join(f"{name} {said}" for name, said in evidence.items())


def waits(occurrence: dict[str, Any]) -> str:
    """What a pending Occurrence waits for."""
    return f", waiting: {occurrence['reason']}" if occurrence["state"] == "pending" and occurrence["reason"] else ""


def runs(
    name: MaybeName = None, state: States = None, limit: Limit = 50, home: HomeFolder = None, as_json: AsJson = False
) -> None:
    """The Run ledger: what was admitted, and how far it came."""
    states = known(state, [one.value for one in RunState])
    with store_of(home) as (_, pool):
        lines = ledger.runs(pool, read_name(name) if name else None, states, limit)
    columns = {
        "admitted_at": "admitted", "schedule": "Schedule", "key": "firing", "state": "state", "reason": "reason",
        "disposition": "finish", "enqueue_seq": "hop", "run_id": "Run",
    }  # fmt: skip
    show(as_json, lines, table(lines, columns, "No such Runs." if states else "Nothing was admitted yet."))
