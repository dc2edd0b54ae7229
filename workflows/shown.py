"""What a person reads in the Temporal UI about a Schedule, a hop and the relay, at two in the morning too: in words.

Metadata only: nothing here becomes a command or an argument but `Shown` itself, which outlives a history. Flat Markdown
lists, since the UI draws neither tables nor lists within lists.
"""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from law.reasons import MEANINGS, Reason
from workflows import asks

SUMMARY_CHARACTERS_MAX = 200
NAME_CHARACTERS_MAX = 80
NOT_CLAIMED = "not claimed"


@dataclass(slots=True)
class Shown:
    """All that survives continue-as-new: what the UI shows, and what is asked next."""

    schedule: str
    revision: int | None = None
    service_class: str = ""
    next_nominal_at: datetime | None = None
    next_civil: str = ""
    halted: str = ""
    wake_at: datetime | None = None
    wake_civil: str = ""
    rounds: int = 0
    undelivered: int = 0
    pending: int = 0
    running: int = 0
    held: int = 0
    paused: bool = False
    outcomes: list[asks.OutcomeLine] = field(default_factory=list[asks.OutcomeLine])
    """The newest first."""
    activations: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    """Signalled and not yet asked of the store."""
    refused: str = ""
    """Why the last activation was refused; empty when it was not."""
    rung: bool = True
    """Somebody rang, or the workflow has just begun: ask now, do not sleep."""


def what_is_asked(shown: Shown) -> str:
    """The summary of the question what rang."""
    if shown.revision is None:
        return "what rang? the first look"
    expected = f", expected {shown.next_civil}" if shown.next_civil else ""
    return f"what rang? revision {shown.revision}{expected}"


def until(shown: Shown) -> str:
    """The summary of the timer: `until 2026-12-01T01:00:00Z (2026-12-01 02:00 Europe/Bratislava), the next bell`."""
    if shown.wake_at is None:
        return "until somebody rings, looking again once a day"
    why = "the next bell" if shown.wake_at == shown.next_nominal_at else "something that waits may change"
    return f"until {moment(shown.wake_at, shown.wake_civil)}, {why}"[:SUMMARY_CHARACTERS_MAX]


def state_word(shown: Shown) -> str:
    """The Schedule in one word, for lists: whoever must act looks for `halted` and `held`."""
    words = {
        "halted": bool(shown.halted) and not shown.paused,
        "held": shown.held > 0,
        "paused": shown.paused,
        "waiting": bool(shown.wake_at),
    }
    return next((word for word, applies in words.items() if applies), "idle")


def details(shown: Shown, at: datetime) -> str:
    """The page of a Schedule: what it is, what wants somebody's hand, what it waits for, and what rang last."""
    head = f"**{shown.schedule}**, revision {shown.revision}, {shown.service_class}"
    rang = "Rang last, the newest first:" if shown.outcomes else "Nothing rang yet."
    looked = f"- This was so at {instant(at)}. Ids and more: `nightbell occurrences {shown.schedule}`."
    lists = [[*trouble(shown), *waiting(shown), looked], [f"- {in_words(one)}" for one in shown.outcomes]]
    return "\n\n".join([head, "\n".join(lists[0]), rang, "\n".join(lists[1])]).rstrip()


def trouble(shown: Shown) -> list[str]:
    """What wants somebody's hand, and which."""
    lines: list[str] = []
    if shown.paused:
        since = plain(shown.halted.removeprefix("paused "), SUMMARY_CHARACTERS_MAX)
        lines.append(
            f"- **Paused** {since}. Nothing of it is admitted, its windows go on closing, its events are kept. "
            f"`nightbell resume {shown.schedule}` ends it."
        )
    elif shown.halted:
        lines.append(
            f"- **Halted**: {plain(shown.halted, len(shown.halted))} It rings on from where it stood when that is mended."
        )
    if shown.held:
        lines.append(
            f"- **Held**: {counted(shown.held, 'Run')} parked or contained. Look: "
            f"`nightbell runs {shown.schedule} --state contained --state parked`, then `nightbell explain` with its id."
        )
    if shown.refused:
        lines.append(f"- **Activation refused**: {plain(shown.refused, len(shown.refused))}")
    return lines


def waiting(shown: Shown) -> list[str]:
    """What it waits for and until when, and how much is under way."""
    lines = [f"- Looks again at {moment(shown.wake_at, shown.wake_civil)}."] if shown.wake_at else []
    if shown.next_nominal_at:
        bell = f"- Rings next at {moment(shown.next_nominal_at, shown.next_civil)}."
        lines = [bell] if shown.wake_at == shown.next_nominal_at else [bell, *lines]
    counts = f"- Waiting to be admitted: {shown.pending}. Runs under way: {shown.running}, held: {shown.held}."
    late = [f"- On their way to a lane: {shown.undelivered}."] if shown.undelivered else []
    alone = [] if shown.paused else ["- Waits until somebody rings."]
    return [*(lines or alone), counts, *late]


def in_words(one: asks.OutcomeLine) -> str:
    """One Occurrence: what rang, what was decided and why, and how to learn more where that is not simply done."""
    name = f"`{plain(one.rang or one.key, NAME_CHARACTERS_MAX)}`"
    if one.state == "pending":
        return f"{name} waits{because(one.reason)}"
    if one.state != "admitted":
        return f"{name} **{one.state}**{because(one.reason)}{more(one)}"
    if one.run_state in ("queued", "running", "") or one.run_reason == Reason.FINISHED:
        return f"{name} admitted, its Run {one.run_state or 'begins'}"
    return f"{name} admitted, its Run **{one.run_state}**{because(one.run_reason)}{more(one)}"


def hop_details(hop: asks.HopAsk, state: str, reason: str) -> str:
    """The page of a hop: whose it is, how it ended and why."""
    lines = [
        f"**{hop.pattern}** for **{hop.schedule}**, hop {hop.enqueue_seq}",
        f"- {'Not begun' if state == NOT_CLAIMED else f'Its Run is {state}'}{because(reason)}.",
        f"- Run `{hop.run_id}`. `nightbell runs {hop.schedule}` lists it beside what rang.",
    ]
    return "\n\n".join([lines[0], "\n".join(lines[1:])])


def relay_details(swept: asks.Swept, every_seconds: float, at: datetime) -> str:
    """The page of the relay: nothing to do is the good news."""
    found = [
        f"- Schedules woken, whose bell or bound had passed: {swept.woken}",
        f"- Deliveries handed over again: {swept.republished}",
        f"- Runs whose worker was lost, and which were decided about: {swept.recovered}",
    ]
    idle = swept == asks.Swept()
    head = (
        f"The safety net: looks every {every_seconds:g} seconds for what a crash left behind. Looked at {instant(at)}."
    )
    return "\n\n".join([head, "- Nothing was left behind." if idle else "\n".join(found)])


def because(reason: str) -> str:
    """A reason as a sentence's end; nothing where none was recorded."""
    return f": {meaning(reason)}" if reason else ""


def meaning(reason: str) -> str:
    """A reason code in words; what is no code is said as it is."""
    return MEANINGS[Reason(reason)].sentence if reason in MEANINGS else reason


def more(one: asks.OutcomeLine) -> str:
    return f". `nightbell explain {one.trigger_occurrence_id}`"


def moment(at: datetime, civil: str) -> str:
    """`2026-12-01T01:00:00Z (2026-12-01 02:00 Europe/Bratislava)`."""
    return f"{instant(at)} ({civil})" if civil else instant(at)


def instant(at: datetime) -> str:
    """UTC, to the second."""
    return f"{at:%Y-%m-%dT%H:%M:%SZ}"


def counted(count: int, noun: str) -> str:
    return f"{count} {noun} is" if count == 1 else f"{count} {noun}s are"


def plain(text: str, characters_max: int) -> str:
    """Text from outside, so that it cannot draw on the page: one line, no code mark, not longer than is readable."""
    line = " ".join(text.replace("`", "'").split())
    return line if len(line) <= characters_max else f"{line[: characters_max - 1]}…"
