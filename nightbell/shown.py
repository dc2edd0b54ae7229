"""What a command prints: one JSON document with `--json`, otherwise tables and sentences for a person."""

import dataclasses
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any

from rich.console import Console
from rich.table import Table

from law.instants import instant_text
from store.jsonb import plain

PIPED_WIDTH = 200
"""Wide enough that a line in a log or a pipe is one line."""
LIVELY = {
    "admitted": "green",
    "done": "green",
    "missed": "red",
    "failed": "red",
    "pending": "yellow",
    "running": "cyan",
}


def show(as_json: bool, value: Any, for_people: Callable[[Console], None]) -> None:
    """Print a value once, in the form that was asked for."""
    if as_json:
        sys.stdout.write(json.dumps(value, default=plain_value, indent=2) + "\n")
    else:
        for_people(Console(highlight=False, soft_wrap=True, width=None if sys.stdout.isatty() else PIPED_WIDTH))


def plain_value(value: object) -> object:
    """What JSON has no word for, dataclasses included."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return dataclasses.asdict(value)
    return plain(value)


def table(lines: Sequence[Mapping[str, Any]], columns: Mapping[str, str], nothing: str) -> Callable[[Console], None]:
    """A table of `columns` (field → heading), or one sentence where there are no lines."""

    def render(console: Console) -> None:
        if not lines:
            console.print(nothing)
            return
        console.print(grid(lines, columns))

    return render


def grid(lines: Sequence[Mapping[str, Any]], columns: Mapping[str, str]) -> Table:
    """The table itself."""
    found = Table(box=None, header_style="bold", pad_edge=False)
    for heading in columns.values():
        found.add_column(heading, overflow="fold")
    for line in lines:
        found.add_row(*(cell(field, line.get(field)) for field in columns))
    return found


def cell(field: str, value: Any) -> str:
    """One cell: instants to the second, states in colour, nothing as a dash."""
    if value is None or value == "":
        return "–"
    if isinstance(value, datetime):
        return instant_text(value.replace(microsecond=0))
    text = str(value)
    colour = LIVELY.get(text) if field.endswith("state") else None
    return f"[{colour}]{text}[/{colour}]" if colour else text
