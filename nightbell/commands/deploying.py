"""Deploying: `migrate`, `worker`."""

import asyncio
from typing import Annotated

import typer

from nightbell.attach import attached
from nightbell.options import AsJson, HomeFolder, settings_for
from nightbell.search_attributes import register_search_attributes
from nightbell.shown import show
from nightbell.worker_process import serve
from store.migrate import migrate as migrate_store


def add_to(app: typer.Typer) -> None:
    """Register this module's commands."""
    app.command()(migrate)
    app.command()(worker)


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


def worker(home: HomeFolder = None) -> None:
    """Run a worker until it is told to stop: beside others, beside Spellweaver, or as the only one."""
    serve(attached(settings_for(home)))
