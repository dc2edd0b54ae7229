"""What there is to give, and who may ask for what: `capability`, `quiet-window`, `policy`, `readiness`."""

import dataclasses
import time
from typing import Annotated, get_args
from uuid import UUID, uuid4

import typer

from law.capacity import Capability, CapabilityAdmission, CapabilityState
from law.errors import BadInput
from law.identity import DecisionId
from law.instants import read_instant
from law.origin import AboveCeiling, Origin, read_class
from nightbell.commands.schedules import ring
from nightbell.options import AsJson, HomeFolder, Limit, store_of
from nightbell.orchestrator import CommandOrchestrator, serve_once
from nightbell.shown import cell, show, table
from store import capacity, policies, readiness

CapabilityName = Annotated[str, typer.Argument(help="The name that Schedules use.", metavar="CAPABILITY")]
By = Annotated[str, typer.Option("--by", help="Who answers for it; recorded.")]
Units = Annotated[int | None, typer.Option(help="How many units there are.")]
CAPABILITY_COLUMNS = {
    "capability": "capability", "state": "state", "admission": "admission", "sharing": "sharing", "units": "units",
    "protected_units": "protected", "foreground_units": "for foreground", "held": "held", "leases": "leases",
    "waiting": "waiting",
}  # fmt: skip
WINDOW_COLUMNS = {
    "capability": "capability", "opens_at": "opens", "closes_at": "closes", "approved_by": "approved by", "note": "note",
    "withdrawn_at": "withdrawn", "quiet_window_id": "id",
}  # fmt: skip
POLICY_COLUMNS = {
    "origin": "origin", "principal": "principal", "ceiling": "ceiling", "above": "above it", "generation": "generation"
}  # fmt: skip
REQUEST_COLUMNS = {
    "asked_at": "asked", "schedule": "Schedule", "capability": "capability", "state": "state",
    "seconds_max": "seconds at most", "cost_max": "cost at most", "seconds_spent": "seconds", "cost_spent": "cost",
    "note": "note",
}  # fmt: skip


def add_to(app: typer.Typer) -> None:
    """Register this module's commands."""
    groups = (
        ("capability", "What there is to give: units, floors, and whether it is warm.", (set_one, list_all)),
        ("quiet-window", "When work that cannot yield may use spare capacity.", (approve, windows, withdraw)),
        ("policy", "What an origin, or a principal of it, may ask for.", (set_policy, list_policies)),
        ("readiness", "What windowed work asked of the Orchestrator, and an Orchestrator to answer it.", (requests, serve)),
    )  # fmt: skip
    for name, help_text, commands in groups:
        group = typer.Typer(name=name, help=help_text, no_args_is_help=True)
        for command in commands:
            group.command(NAMES[command.__name__])(command)
        app.add_typer(group)


NAMES = {
    "set_one": "set",
    "list_all": "list",
    "approve": "approve",
    "windows": "list",
    "withdraw": "withdraw",
    "set_policy": "set",
    "list_policies": "list",
    "requests": "list",
    "serve": "serve",
}


def set_one(
    name: CapabilityName,
    units: Units = None,
    state: Annotated[str | None, typer.Option(help="WARM, COLD, CONVERGING or UNKNOWN.")] = None,
    admission: Annotated[str | None, typer.Option(help="open or closed.")] = None,
    protected: Annotated[int | None, typer.Option(help="Units kept for deadline_windowed work.")] = None,
    foreground: Annotated[int | None, typer.Option(help="Units kept for foreground work.")] = None,
    exclusive: Annotated[
        bool | None, typer.Option("--exclusive/--shared", help="Whether a lease takes it whole.")
    ] = None,
    home: HomeFolder = None,
    as_json: AsJson = False,
) -> None:
    """Register a capability, or change what is said here and nothing else. Whoever waits for it is judged again at once."""
    sharing = None if exclusive is None else "exclusive" if exclusive else "shared"
    said = {
        "units": units,
        "state": read_one_of("state", state, get_args(CapabilityState)),
        "admission": read_one_of("admission", admission, get_args(CapabilityAdmission)),
        "protected_units": protected,
        "foreground_units": foreground,
        "sharing": sharing,
    }
    with store_of(home) as (settings, pool):
        known = capacity.capability(pool, name) or Capability(name)
        changes = {field: value for field, value in said.items() if value is not None}
        waiting = capacity.set_capability(pool, dataclasses.replace(known, **changes), DecisionId(uuid4()))
        [line] = [one for one in capacity.capabilities(pool) if one.capability == name]
    ring(settings, list(waiting))
    lines = [dataclasses.asdict(line)]
    show(as_json, lines[0], table(lines, CAPABILITY_COLUMNS, ""))


def read_one_of(field: str, text: str | None, known: tuple[str, ...]) -> str | None:
    """One of a closed list, or None where nothing was said. Raises BadInput."""
    if text is not None and text not in known:
        raise BadInput(field=field, reason=f"{text[:70]!r} is none of {', '.join(known)}")
    return text


def list_all(home: HomeFolder = None, as_json: AsJson = False) -> None:
    """Every registered capability, what is held of it, and how much waits for it."""
    with store_of(home) as (_, pool):
        lines = [dataclasses.asdict(one) for one in capacity.capabilities(pool)]
    show(as_json, lines, table(lines, CAPABILITY_COLUMNS, "No capability is registered; work that names one waits."))


def approve(
    opens_at: Annotated[str, typer.Option("--from", help="When it opens, ISO 8601 with Z.")],
    closes_at: Annotated[str, typer.Option("--to", help="The first instant at which it is closed again.")],
    by: By,
    capability: Annotated[
        str | None, typer.Option(help="Only for this capability; without it for any, and for work that names none.")
    ] = None,
    note: Annotated[str, typer.Option(help="Why, for whoever reads it at night.")] = "",
    home: HomeFolder = None,
    as_json: AsJson = False,
) -> None:
    """Approve a quiet window: spare work that has not proven that it yields may begin in it."""
    start, end = read_instant(opens_at, "from"), read_instant(closes_at, "to")
    with store_of(home) as (settings, pool):
        approved, waiting = capacity.approve_quiet_window(pool, uuid4(), capability, start, end, by, note)
    ring(settings, list(waiting))
    lines = [dataclasses.asdict(approved)]
    show(as_json, lines[0], table(lines, WINDOW_COLUMNS, ""))


def windows(home: HomeFolder = None, as_json: AsJson = False) -> None:
    """Every quiet window that is open or to come; withdrawn ones too."""
    with store_of(home) as (_, pool):
        lines = [dataclasses.asdict(one) for one in capacity.approved_quiet_windows(pool)]
    show(as_json, lines, table(lines, WINDOW_COLUMNS, "No quiet window is approved."))


def withdraw(
    quiet_window_id: Annotated[str, typer.Argument(help="As `quiet-window list` prints it.", metavar="ID")],
    by: By,
    home: HomeFolder = None,
    as_json: AsJson = False,
) -> None:
    """Take an approval back. Nothing more begins in it; what began goes on."""
    try:
        wanted = UUID(quiet_window_id)
    except ValueError as problem:
        raise BadInput(field="quiet_window", reason=f"{quiet_window_id[:70]!r} is not an id") from problem
    with store_of(home) as (_, pool):
        withdrawn = capacity.withdraw_quiet_window(pool, wanted, by)
    said = f"Withdrawn at {cell('', withdrawn.withdrawn_at)}: {withdrawn.quiet_window_id}"
    show(as_json, dataclasses.asdict(withdrawn), lambda console: console.print(said))


def set_policy(
    origin: Annotated[str, typer.Argument(help="operator, schedule, legionnaire or a2a_peer.", metavar="ORIGIN")],
    ceiling: Annotated[str, typer.Option(help="The highest class that is granted, or `none`.")],
    principal: Annotated[
        str | None, typer.Option(help="Only for this principal; without it for everybody of this origin.")
    ] = None,
    above: Annotated[str, typer.Option(help="What becomes of a request for more: lower or refuse.")] = "lower",
    home: HomeFolder = None,
    as_json: AsJson = False,
) -> None:
    """Say what an origin may ask for. It never raises anything: the Schedule's own class stays the most there is."""
    known_origin, known_above = origin_named(origin), above_named(above)
    limit = None if ceiling == "none" else read_class(ceiling) or None
    if limit is None and ceiling != "none":
        raise BadInput(field="ceiling", reason="is empty; `none` lets it ask for nothing")
    with store_of(home) as (_, pool):
        policy = policies.set_policy(pool, known_origin, principal, limit, known_above)
    lines = [dataclasses.asdict(policy)]
    show(as_json, lines[0], table(lines, POLICY_COLUMNS, ""))


def origin_named(text: str) -> Origin:
    """An origin by name. Raises BadInput."""
    for known in get_args(Origin):
        if text == known:
            return known
    raise BadInput(field="origin", reason=f"{text[:70]!r} is none of {', '.join(get_args(Origin))}")


def above_named(text: str) -> AboveCeiling:
    """What becomes of a request above its ceiling. Raises BadInput."""
    for known in get_args(AboveCeiling):
        if text == known:
            return known
    raise BadInput(field="above", reason=f"{text[:70]!r} is none of {', '.join(get_args(AboveCeiling))}")


def list_policies(home: HomeFolder = None, as_json: AsJson = False) -> None:
    """Every policy, by origin and principal."""
    with store_of(home) as (_, pool):
        lines = [dataclasses.asdict(one) for one in policies.policies(pool)]
    show(as_json, lines, table(lines, POLICY_COLUMNS, "No policy: every origin may ask for the Schedule's own class."))


def requests(limit: Limit = 50, home: HomeFolder = None, as_json: AsJson = False) -> None:
    """What was asked of the Orchestrator, the newest first, and what became of it."""
    with store_of(home) as (_, pool):
        lines = [dataclasses.asdict(one) for one in readiness.requests(pool, limit)]
    show(as_json, lines, table(lines, REQUEST_COLUMNS, "Nothing was asked of the Orchestrator."))


def serve(
    command: Annotated[str, typer.Option(help="Run for each request; see docs/capacity.md for what it is told.")],
    once: Annotated[bool, typer.Option("--once", help="Answer what is open now, and end.")] = False,
    every_seconds: Annotated[float, typer.Option("--every", min=0.1, help="How often to look, in seconds.")] = 2.0,
    home: HomeFolder = None,
    as_json: AsJson = False,
) -> None:
    """An example Orchestrator: make cold capabilities ready by a command of yours, within what each request allows."""
    orchestrator = CommandOrchestrator(command)
    with store_of(home) as (settings, pool):
        while True:
            answered, waiting = serve_once(pool, orchestrator)
            ring(settings, waiting)
            if once:
                lines = [dataclasses.asdict(one) for one in answered]
                return show(as_json, lines, table(lines, REQUEST_COLUMNS, "Nothing was open."))
            time.sleep(every_seconds)
