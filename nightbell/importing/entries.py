"""What an importer finds in a foreign file: entries that become Schedule files, and everything that does not come along.

A foreign schedule is never carried over in silence. Whatever no Schedule can say is a Loss with its reason and with what
stands in its place; what cannot become a lawful Schedule at all is Refused with the reason. Values only: nothing here
reads a file or a clock.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

from law.errors import BadInput

ENTRIES_MAX = 1_000
"""More schedules than this in one file were not written by hand, and a person could not read the report."""

NAME_LENGTH_MAX = 58
NOT_IN_A_SLUG = re.compile(r"[^a-z0-9._-]+")
SLUG_EDGES = "._-"


@dataclass(frozen=True, slots=True)
class Loss:
    """What could not be carried over, why, and what stands there instead."""

    what: str
    because: str
    instead: str

    @property
    def sentence(self) -> str:
        """For a person."""
        return f"could not carry over {self.what}, because {self.because}; instead {self.instead}"


@dataclass(frozen=True, slots=True)
class Entry:
    """One foreign schedule that can be carried over. `tables` are those of a Schedule file without who and what."""

    where: str
    original: tuple[str, ...]
    name: str
    tables: Mapping[str, Any]
    losses: tuple[Loss, ...] = ()


@dataclass(frozen=True, slots=True)
class Refused:
    """One foreign schedule that no lawful Schedule can stand for."""

    where: str
    reason: str


@dataclass(frozen=True, slots=True)
class Found:
    """Everything in one foreign file. `losses` are the file's own, `passed_over` what was none of this importer's."""

    entries: tuple[Entry, ...] = ()
    refused: tuple[Refused, ...] = ()
    losses: tuple[Loss, ...] = ()
    passed_over: tuple[str, ...] = ()


def gathered(found: Iterable[Entry | Refused | Loss], passed_over: Sequence[str] = ()) -> Found:
    """Sort out what a reader yields. Names become distinct. Raises BadInput where there is too much."""
    everything = list(islice(found, ENTRIES_MAX + 1))
    if len(everything) > ENTRIES_MAX:
        raise BadInput(field="file", reason=f"holds more than {ENTRIES_MAX} entries")
    return Found(
        entries=tuple(distinct(one for one in everything if isinstance(one, Entry))),
        refused=tuple(one for one in everything if isinstance(one, Refused)),
        losses=tuple(dict.fromkeys(one for one in everything if isinstance(one, Loss))),
        passed_over=tuple(passed_over),
    )


def distinct(entries: Iterable[Entry]) -> Iterable[Entry]:
    """The entries, a name that came before with the next free number: `backup`, `backup-2`."""
    taken: set[str] = set()
    for entry in entries:
        name, number = entry.name, 1
        while name in taken:
            number += 1
            name = f"{entry.name}-{number}"
        taken.add(name)
        yield replace(entry, name=name)


def slug(text: str, otherwise: str) -> str:
    """A name that a Schedule may have, as near to `text` as can be."""
    found = NOT_IN_A_SLUG.sub("-", text.lower())[:NAME_LENGTH_MAX].strip(SLUG_EDGES)
    return found or otherwise
