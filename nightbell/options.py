"""The options that many commands share, and what they lead to."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from law.errors import BadInput
from law.identity import ScheduleName, schedule_name
from nightbell.attach import attached
from nightbell.settings import Settings
from store.connection import Pool, open_pool

AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON document and nothing else.")]
HomeFolder = Annotated[
    Path | None,
    typer.Option("--home", help="The home of the embedded stack (default: NIGHTBELL_HOME).", show_default=False),
]
Limit = Annotated[int, typer.Option("--limit", min=1, max=10_000, help="At most so many, the newest first.")]

logging.getLogger("psycopg.pool").addHandler(logging.NullHandler())
"""A command says in one sentence what cannot be reached; a worker's log has the pool's own lines too."""


def settings_for(home: Path | None) -> Settings:
    """The environment's settings, with the home that was named on the command line."""
    settings = Settings()
    return settings.model_copy(update={"home": home.expanduser().absolute()}) if home else settings


@contextmanager
def store_of(home: Path | None) -> Iterator[tuple[Settings, Pool]]:
    """The settings of a reachable stack and a pool of its store. Raises StackProblem."""
    settings = attached(settings_for(home))
    assert settings.database_url is not None
    pool = open_pool(settings.database_url.get_secret_value(), connections_max=2)
    try:
        yield settings, pool
    finally:
        pool.close(timeout=1.0)


def read_name(text: str) -> ScheduleName:
    """`authority/name`. Raises BadInput."""
    authority, slash, name = text.partition("/")
    if not slash:
        raise BadInput(field="schedule", reason=f"{text!r} is not authority/name, such as home/nightly-rite")
    return schedule_name(authority, name)
