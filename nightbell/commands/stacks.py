"""The embedded stack: `up`, `down`, `status`, `demo`, `doctor`."""

import asyncio
import dataclasses
from typing import Annotated, Any

import typer
from rich.console import Console

from nightbell import stack
from nightbell.demo import demonstrate
from nightbell.doctor import Check
from nightbell.doctor import doctor as examine
from nightbell.home import Home, Ports
from nightbell.options import AsJson, HomeFolder, settings_for
from nightbell.problems import UNREACHABLE
from nightbell.shown import show
from store.migrate import at_head, migrate

Port = Annotated[int | None, typer.Option(min=1, max=65_535, help="Use this port (default: any free one, kept).")]


def add_to(app: typer.Typer) -> None:
    """Register this module's commands."""
    for command in (up, down, status, demo, doctor):
        app.command()(command)


def up(
    home: HomeFolder = None,
    detach: Annotated[bool, typer.Option("--detach", help="Return once it serves, and leave it running.")] = False,
    postgres_port: Port = None,
    temporal_port: Port = None,
    ui_port: Port = None,
    as_json: AsJson = False,
) -> None:
    """Start PostgreSQL, Temporal with its UI, and a worker, in one home folder on loopback."""
    settings = settings_for(home)
    place = Home.at(settings.home)
    ports = Ports(postgres=postgres_port, temporal=temporal_port, ui=ui_port)
    common = {"migrate": migrate, "task_queue": settings.task_queue, "namespace": settings.temporal_namespace}
    if detach:
        stack.up(place, ports, **common)  # type: ignore[arg-type]
        show(as_json, stack.status(place), say_status(stack.status(place)))
        return

    def ready(_: stack.StackAddress) -> None:
        show(as_json, stack.status(place), say_status(stack.status(place)))
        if not as_json:
            Console().print("Ctrl-C stops it.")

    stack.run_in_foreground(place, ready, ports, **common)  # type: ignore[arg-type]


def down(home: HomeFolder = None, as_json: AsJson = False) -> None:
    """Stop the stack of this home, in order. Stopping it twice is fine."""
    place = Home.at(settings_for(home).home)
    stack.down(place)
    show(as_json, stack.status(place), say_status(stack.status(place)))


def status(home: HomeFolder = None, as_json: AsJson = False) -> None:
    """Where the stack of this home is, and how it is: running, degraded or stopped."""
    place = Home.at(settings_for(home).home)
    found = stack.status(place)
    show(as_json, found, say_status(found))


def say_status(found: dict[str, Any]) -> Any:
    """The status, a line a fact."""

    def render(console: Console) -> None:
        console.print(f"state      {found['state']}")
        for name in ("ui_url", "temporal_address", "database_url", "pid"):
            if found[name] is not None:
                console.print(f"{name.removesuffix('_url').removesuffix('_address'):<10} {found[name]}")

    return render


def demo(
    home: HomeFolder = None,
    seconds: Annotated[
        int, typer.Option(min=10, max=3600, help="End by itself after so long where nobody watches.")
    ] = 60,
    as_json: AsJson = False,
) -> None:
    """Ring three example Schedules on real servers and watch: persisted, admitted or not, carried, settled."""
    settings = settings_for(home)
    place = Home.at(settings.home if home else settings.home / "demo")
    told = demonstrate(place, seconds, as_json)
    show(as_json, dataclasses.asdict(told), lambda console: console.print(told.summary))


def doctor(home: HomeFolder = None, as_json: AsJson = False) -> None:
    """Look at this machine, the home and the servers; say what is wrong and what to do. Changes nothing; ends with 4
    where something is."""
    checks = asyncio.run(examine(settings_for(home), at_head))
    well = all(check.ok for check in checks)
    show(as_json, {"ok": well, "checks": checks}, lambda console: say_checks(console, checks))
    if not well:
        raise typer.Exit(UNREACHABLE)


def say_checks(console: Console, checks: list[Check]) -> None:
    """A line a check, and under it what to do."""
    width = max(len(check.name) for check in checks)
    for check in checks:
        mark = "[green]ok[/green]  " if check.ok else "[red]FAIL[/red]"
        console.print(f"{mark} {check.name:<{width}}  ", end="")
        console.print(check.sentence, markup=False)
        if check.remedy:
            console.print(f"     {'':<{width}}  {check.remedy}", markup=False)
