"""Entries become Schedule files: text that a person can read, checked by the very law that will read it.

A draft is what `apply` would take: the law has read its text, the zone is installed, no window is used up by jitter, and
something still rings. Whatever fails that is Refused with the law's own reason.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import islice
from typing import Any

import tomlkit
from pydantic import BaseModel, ValidationError
from tomlkit.items import Table

from law.errors import BadInput, Contradiction
from law.firings import LAST_INSTANT, Firing, firings
from law.pattern import Pattern
from law.schedule import ScheduleDocument, read_schedule
from law.triggers import CalendarTrigger
from nightbell.importing.entries import Entry, Found, Loss, Refused
from store.registry import rules_of

SHOWN_FIRINGS_COUNT = 3
COMMENT_LENGTH_MAX = 400
COMMENTS_MAX = 60


@dataclass(frozen=True, slots=True)
class Terms:
    """What no foreign file says: who a Schedule belongs to, which installed Pattern it rings, and for whom."""

    authority: str
    owner: str
    pattern: Pattern[Any]


@dataclass(frozen=True, slots=True)
class Draft:
    """One Schedule file to be written."""

    entry: Entry
    document: ScheduleDocument
    text: str
    next_firings: tuple[Firing, ...]

    @property
    def file_name(self) -> str:
        """Named for its Schedule."""
        return f"{self.document.name}.toml"


def chosen_pattern(key: str, revision: str, installed: Iterable[Pattern[Any]]) -> Pattern[Any]:
    """The installed Pattern that was named; the revision may be left out where there is one. Raises BadInput with the list."""
    patterns = list(installed)
    named = [one for one in patterns if one.key == key and revision in ("", one.revision)]
    if len(named) == 1:
        return named[0]
    known = ", ".join(f"{one.key} revision {one.revision}" for one in patterns)
    if not key:
        reason = "an imported Schedule must ring an installed Pattern; name one"
    elif named:
        raise BadInput(field="pattern-revision", reason=f"{key} is installed in several revisions: {known}")
    else:
        reason = f"{key!r}{f' revision {revision!r}' if revision else ''} is not installed"
    raise BadInput(field="pattern", reason=f"{reason}: {known}")


def drafted(found: Found, source: str, terms: Terms, at: datetime) -> tuple[list[Draft], Found]:
    """Everything that becomes a file, and what was found with the rest of the refusals."""
    drafts: list[Draft] = []
    refused = list(found.refused)
    for entry in found.entries:
        try:
            drafts.append(draft(entry, source, terms, at))
        except Contradiction as problem:
            refused.append(Refused(f"{entry.where}: {entry.original[0] if entry.original else ''}", problem.sentence))
    return drafts, replace(found, entries=tuple(one.entry for one in drafts), refused=tuple(refused))


def draft(entry: Entry, source: str, terms: Terms, at: datetime) -> Draft:
    """One Schedule file. Raises a Contradiction with the reason why no lawful one can stand for the entry."""
    entry = replace(entry, losses=(*entry.losses, *input_losses(terms.pattern.input_model, terms.pattern.key)))
    text = written(entry, source, terms)
    document = read_schedule(text)
    trigger, rules = document.trigger, rules_of(document)
    if not isinstance(trigger, CalendarTrigger) or rules is None:
        raise BadInput(field="trigger.kind", reason="is not a calendar")
    found = tuple(islice(firings(trigger, document.cycle, rules, at, LAST_INSTANT), SHOWN_FIRINGS_COUNT))
    if not found:
        raise BadInput(field="trigger", reason="nothing rings any more")
    return Draft(entry, document, text, found)


def input_losses(model: type[BaseModel], pattern: str) -> tuple[Loss, ...]:
    """Whether the Pattern can work with what an imported Schedule gives it, which is nothing."""
    try:
        model.model_validate({})
    except ValidationError:
        because = f"the Pattern {pattern} cannot work without"
        return (Loss("the input of the work", because, "fill in [work] input before the file is applied"),)
    return ()


def written(entry: Entry, source: str, terms: Terms) -> str:
    """The text of a Schedule file: what it came from and what was lost as comments, then the tables."""
    document = tomlkit.document()
    for line in heading(entry, source):
        document.add(tomlkit.comment(plain_line(line)) if line else tomlkit.nl())
    document["authority"] = terms.authority
    document["name"] = entry.name
    for name, content in entry.tables.items():
        document[name] = table(content)
    document["work"] = table(
        {"pattern": terms.pattern.key, "pattern_revision": terms.pattern.revision, "owner": terms.owner}
    )
    return tomlkit.dumps(document)


def heading(entry: Entry, source: str) -> list[str]:
    """The comment above a file."""
    lines = [f"Imported from {source}, {entry.where}:", *(f"    {line}" for line in entry.original[:COMMENTS_MAX])]
    losses = [one.sentence for one in entry.losses]
    return [*lines, *(f"{one[0].upper()}{one[1:]}." for one in losses)]


def plain_line(text: str) -> str:
    """Text that may stand in a comment: one line, printable, not for ever."""
    spelled = "".join(
        one if one.isprintable() else one.encode("unicode_escape", "backslashreplace").decode("ascii")
        for one in text.replace("\t", "    ")[: COMMENT_LENGTH_MAX + 1]
    )
    return spelled if len(spelled) <= COMMENT_LENGTH_MAX else f"{spelled[:COMMENT_LENGTH_MAX]}…"


def table(content: Mapping[str, Any]) -> Table:
    """A table of plain values."""
    found = tomlkit.table()
    for name, value in content.items():
        found.add(name, value)
    return found
