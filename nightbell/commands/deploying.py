"""Deploying: `migrate`, `worker`, `replay`."""

import asyncio
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from nightbell.attach import attached
from nightbell.options import AsJson, HomeFolder, settings_for
from nightbell.problems import REFUSED
from nightbell.replay import Replayed, replay_folder, replay_namespace
from nightbell.search_attributes import register_search_attributes
from nightbell.settings import Settings
from nightbell.shown import show
from nightbell.worker_process import connect, serve
from store.migrate import migrate as migrate_store


def add_to(app: typer.Typer) -> None:
    """Register this module's commands."""
    app.command()(migrate)
    app.command()(worker)
    app.command()(replay)


def migrate(
    home: HomeFolder = None,
    temporal: Annotated[
        bool, typer.Option("--temporal", help="Register the search attributes with Temporal instead.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Bring the database to this version's schema; safe to repeat, and while others decide."""
    settings = attached(settings_for(home))
    if temporal:
        names = asyncio.run(register_search_attributes(settings))
        show(
            as_json,
            {"registered": names},
            lambda console: console.print(f"registered: {', '.join(names) or 'nothing new'}"),
        )
        return
    assert settings.database_url is not None
    applied = migrate_store(settings.database_url.get_secret_value())
    show(
        as_json,
        {"applied": applied},
        lambda console: console.print(f"applied: {', '.join(applied) or 'nothing, it is at head'}"),
    )


def worker(home: HomeFolder = None, as_json: AsJson = False) -> None:
    """Run a worker until it is told to stop: beside others, beside Spellweaver, or as the only one."""
    settings = attached(settings_for(home))
    serve(settings)
    ended = {"task_queue": settings.task_queue, "state": "stopped"}
    show(as_json, ended, lambda console: console.print(f"The worker of {settings.task_queue} has stopped."))


def replay(
    folder: Annotated[
        Path | None,
        typer.Argument(
            exists=True, file_okay=False, metavar="[DIR]", help="Recorded histories (*.json); the live ones without it."
        ),
    ] = None,
    limit: Annotated[
        int, typer.Option(min=1, max=10_000, help="At most so many live histories, the newest first.")
    ] = 50,
    home: HomeFolder = None,
    as_json: AsJson = False,
) -> None:
    """Replay histories against this very code, with what each activity was asked and how long each timer ran. Ends with
    3 where this code would do something else: do not deploy it."""
    found = asyncio.run(replay_folder(folder) if folder is not None else replay_live(settings_for(home), limit))
    same = not any(one.problems for one in found)
    show(as_json, {"same": same, "histories": found}, lambda console: say_replayed(console, found))
    if not same:
        raise typer.Exit(REFUSED)


async def replay_live(settings: Settings, limit: int) -> list[Replayed]:
    """Replay what the namespace holds. Raises StackProblem."""
    return await replay_namespace(await connect(attached(settings), attempts=1), limit)


def say_replayed(console: Console, found: list[Replayed]) -> None:
    """A line a history; under it what differs."""
    for one in found:
        console.print("[red]DIFFERS[/red] " if one.problems else "[green]same[/green]    ", end="")
        console.print(one.workflow_id, markup=False)
        for problem in one.problems:
            console.print(f"        {problem}", markup=False)
    if not found:
        console.print("There are no histories to replay.")
