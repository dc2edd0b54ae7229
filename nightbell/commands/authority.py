"""Who may do what, and how much of it: `principal`, `sigil`, `pattern`, `budget`."""

import dataclasses
from typing import Annotated, Any, get_args

import typer

from law.authority import PrincipalStanding
from law.durations import parse_duration
from law.errors import BadInput
from law.identity import ScheduleName
from law.instants import read_instant
from nightbell.commands.schedules import ring
from nightbell.options import AsJson, HomeFolder, read_name, store_of
from nightbell.settings import Settings
from nightbell.shown import show, table
from store import budgets, registry, ward

Name = Annotated[str, typer.Argument(help="The principal's name.", metavar="NAME")]
SigilName = Annotated[str, typer.Argument(help="The Sigil's name, as Schedules use it.", metavar="SIGIL")]
PRINCIPAL_COLUMNS = {"name": "principal", "standing": "standing", "generation": "generation", "changed_at": "changed"}
SIGIL_COLUMNS = {
    "name": "Sigil", "owner": "owner", "standing": "standing", "scopes": "scopes", "expires_at": "expires",
    "generation": "generation",
}  # fmt: skip
PATTERN_COLUMNS = {
    "pattern": "Pattern", "pattern_revision": "revision", "standing": "standing", "merges": "merges",
    "returns": "returns", "recovers": "recovers", "digest": "digest",
}  # fmt: skip
BUDGET_COLUMNS = {
    "holder_kind": "of", "holder": "whom", "unit": "unit", "period_seconds": "period in seconds", "ceiling": "ceiling",
    "spent": "spent", "generation": "generation",
}  # fmt: skip


def add_to(app: typer.Typer) -> None:
    """Register this module's commands."""
    groups = (
        ("principal", "Who is accountable for work.", {"list": list_principals, "set": set_principal, "revoke": revoke_principal}),
        ("sigil", "What a principal may do.", {"list": list_sigils, "grant": grant_sigil, "revoke": revoke_sigil}),
        ("pattern", "Which Pattern revisions may be carried.", {"list": list_patterns, "revoke": revoke_pattern}),
        ("budget", "Ceilings of owners and Schedules.", {"list": list_budgets, "set": set_budget}),
    )  # fmt: skip
    for name, help_text, commands in groups:
        group = typer.Typer(name=name, help=help_text, no_args_is_help=True)
        for word, command in commands.items():
            group.command(word)(command)
        app.add_typer(group)


def told(settings: Settings, as_json: bool, changed: Any, waiting: list[ScheduleName], columns: dict[str, str]) -> None:
    """Wake whatever waits under what was changed, and show how it stands."""
    ring(settings, waiting)
    line = dataclasses.asdict(changed)
    show(as_json, line, table([line], columns, ""))


def list_principals(home: HomeFolder = None, as_json: AsJson = False) -> None:
    """Every principal and how it stands."""
    with store_of(home) as (_, pool):
        lines = [dataclasses.asdict(one) for one in ward.principals(pool)]
    show(
        as_json, lines, table(lines, PRINCIPAL_COLUMNS, "Nobody is known; `apply` enrols the owner that a file names.")
    )


def set_principal(
    name: Name,
    standing: Annotated[str, typer.Option(help="active or suspended; `principal revoke` is for good.")],
    home: HomeFolder = None,
    as_json: AsJson = False,
) -> None:
    """Enrol a principal, suspend it, or let it act again. What waits under a suspended one is revoked."""
    for known in get_args(PrincipalStanding):
        if standing == known and known != "revoked":
            with store_of(home) as (settings, pool):
                changed, waiting = ward.set_principal(pool, name, known)
            return told(settings, as_json, changed, waiting, PRINCIPAL_COLUMNS)
    raise BadInput(field="standing", reason=f"{standing[:70]!r} is neither active nor suspended")


def revoke_principal(name: Name, home: HomeFolder = None, as_json: AsJson = False) -> None:
    """Revoke a principal for good: nothing newer of it is admitted, claimed, resumed or effected."""
    with store_of(home) as (settings, pool):
        if all(one.name != name for one in ward.principals(pool)):
            raise BadInput(field="principal", reason=f"{name[:70]!r} is not known")
        changed, waiting = ward.set_principal(pool, name, "revoked")
    told(settings, as_json, changed, waiting, PRINCIPAL_COLUMNS)


def list_sigils(home: HomeFolder = None, as_json: AsJson = False) -> None:
    """Every Sigil: whose, how far it reaches, and until when."""
    with store_of(home) as (_, pool):
        lines = [dataclasses.asdict(one) for one in ward.sigils(pool)]
    show(as_json, lines, table(lines, SIGIL_COLUMNS, "No Sigil is known; `apply` enrols the one that a file names."))


def grant_sigil(
    name: SigilName,
    owner: Annotated[str, typer.Option(help="The principal whom it speaks of.")],
    scope: Annotated[
        list[str], typer.Option(help="pattern:, class:, capability: or effect: with a name, or *; repeatable.")
    ],
    expires: Annotated[
        str | None, typer.Option(help="The instant from which it counts no more, ISO 8601 with Z.")
    ] = None,
    home: HomeFolder = None,
    as_json: AsJson = False,
) -> None:
    """State what a principal may do. Stated again, it replaces what was said before."""
    expires_at = read_instant(expires, "expires") if expires else None
    with store_of(home) as (settings, pool):
        granted, waiting = ward.grant_sigil(pool, name, owner, scope, expires_at)
    told(settings, as_json, granted, waiting, SIGIL_COLUMNS)


def revoke_sigil(name: SigilName, home: HomeFolder = None, as_json: AsJson = False) -> None:
    """Revoke a Sigil for good."""
    with store_of(home) as (settings, pool):
        revoked, waiting = ward.revoke_sigil(pool, name)
    told(settings, as_json, revoked, waiting, SIGIL_COLUMNS)


def list_patterns(home: HomeFolder = None, as_json: AsJson = False) -> None:
    """Every Pattern revision that the store knows, and what it declares of itself."""
    with store_of(home) as (_, pool):
        lines = [dataclasses.asdict(one) for one in ward.patterns(pool)]
    show(as_json, lines, table(lines, PATTERN_COLUMNS, "No Pattern is known; a worker or `apply` registers its own."))


def revoke_pattern(
    pattern: Annotated[str, typer.Argument(help="The Pattern.", metavar="PATTERN")],
    revision: Annotated[str, typer.Argument(help="Its revision.", metavar="REVISION")],
    home: HomeFolder = None,
    as_json: AsJson = False,
) -> None:
    """Revoke a Pattern revision for good: nothing of it is admitted, claimed or effected any more."""
    with store_of(home) as (settings, pool):
        revoked, waiting = ward.set_pattern(pool, pattern, revision, "revoked")
    told(settings, as_json, revoked, waiting, PATTERN_COLUMNS)


def set_budget(
    holder: Annotated[str, typer.Argument(help="owner:NAME or schedule:authority/name.", metavar="HOLDER")],
    unit: Annotated[
        str, typer.Argument(help="runs, concurrency, seconds, tokens, spend, or any name.", metavar="UNIT")
    ],
    ceiling: Annotated[float, typer.Option(min=0, help="The most that may be spent or reserved of it.")],
    period: Annotated[str | None, typer.Option(help="Within any such span, such as 1d; without it for ever.")] = None,
    home: HomeFolder = None,
    as_json: AsJson = False,
) -> None:
    """Set a ceiling. It is asked again wherever work is admitted, and never widened by anything else."""
    kind, _, name = holder.partition(":")
    seconds = int(parse_duration(period, "period").total_seconds()) if period else 0
    if kind == "schedule":
        read_name(name)
    with store_of(home) as (settings, pool):
        line = budgets.set_budget(pool, kind, name, unit, seconds, ceiling)
        waiting = ward.waiting_under(pool, owner=name) if kind == "owner" else [ScheduleName(name)]
        known = {one.schedule for one in registry.schedules(pool)}
    told(settings, as_json, line, [one for one in waiting if one in known], BUDGET_COLUMNS)


def list_budgets(home: HomeFolder = None, as_json: AsJson = False) -> None:
    """Every ceiling, with what is spent and reserved of it now."""
    with store_of(home) as (_, pool):
        lines = [dataclasses.asdict(one) for one in budgets.budgets(pool)]
    show(as_json, lines, table(lines, BUDGET_COLUMNS, "No budget: nothing limits what may be spent."))
