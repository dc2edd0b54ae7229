"""A round of the simulation, asked of the law, or known since the law was asked the very same before.

The law knows no date. Its answers rest on how far away every instant is, on who asks for what, on what is held and for how much
longer, and on what is live: move all instants by the same length and the answers move with them (SEL-6). Calendars repeat
themselves, so a round in which everybody is admitted or waits is remembered by all that; it is not judged by anything else. A
round in which somebody is told no for good is always asked: its evidence has instants in it. So is one that rests on more: on
a ceiling of a day, on a quiet window, on inputs that are merged.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from law.candidates import Ground, Judgement
from law.capacity import Hold, Supply
from law.reasons import OccurrenceState, Reason
from law.selection import decide
from law.simulated_lines import Pool, Waiting

ASKED_TOGETHER_MAX = 8
"""Larger rounds are seldom the same again."""
REMEMBERED_MAX = 20_000
"""Of a flood, in which nothing is the same twice, no more is kept than this."""


class Answer(NamedTuple):
    """What one who was judged is told. `reason` of a wait, and when time alone may change it; `units` of a lease, where it is
    admitted; `refusal` where it is told no for good."""

    who: Waiting
    reason: Reason | None = None
    changes_at: datetime | None = None
    units: int = 0
    refusal: Judgement | None = None


Known = tuple[int, Reason | None, timedelta | None, int]
"""The place of who was judged, and an answer without instants."""


class Rounds:
    """Everything that was asked of the law, counted; and what was answered without a no, remembered."""

    def __init__(self) -> None:
        self.count = self.judged_count = self.asked_count = 0
        self._known: dict[Any, tuple[Known, ...]] = {}

    def answer(self, judged: Sequence[Waiting], pools: Sequence[Pool], ground: Ground) -> list[Answer]:
        """The answer of the law to all who are judged, in the order in which it judged them."""
        self.count += 1
        self.judged_count += len(judged)
        supplies = [Supply(pool.capability, pool.held_at(ground.at)) for pool in pools if pool.capability is not None]
        key = key_of(judged, supplies, ground.at)
        if key is not None and key in self._known:
            return [recalled(judged, ground.at, known) for known in self._known[key]]
        found = self.asked(judged, Ground(ground.at, ground.live, supplies, ground.quiet_windows, ground.merge))
        if key is not None and not any(one.refusal for _, one in found):
            if len(self._known) >= REMEMBERED_MAX:
                self._known.clear()
            self._known[key] = tuple(
                (place, one.reason, away(one.changes_at, ground.at), one.units) for place, one in found
            )
        return [one for _, one in found]

    def asked(self, judged: Sequence[Waiting], ground: Ground) -> list[tuple[int, Answer]]:
        """Ask the law; each answer with the place of who was judged."""
        self.asked_count += 1
        places = {one.candidate.trigger_occurrence_id: place for place, one in enumerate(judged)}
        answers = decide([one.asking(ground.at) for one in judged], ground)
        found = ((places[one.candidate.trigger_occurrence_id], one) for one in answers)
        return [(place, answer(judged[place], one)) for place, one in found]


def answer(who: Waiting, one: Judgement) -> Answer:
    """What a judgement means for whoever it is about."""
    if one.verdict.state is OccurrenceState.ADMITTED:
        return Answer(who, units=one.units)
    if one.verdict.state is OccurrenceState.PENDING:
        return Answer(who, one.verdict.reason, one.changes_at)
    return Answer(who, refusal=one)


def recalled(judged: Sequence[Waiting], at: datetime, known: Known) -> Answer:
    """An answer that was given before, at this sample."""
    place, reason, changes_after, units = known
    return Answer(judged[place], reason, at + changes_after if changes_after is not None else None, units)


def key_of(judged: Sequence[Waiting], supplies: Sequence[Supply], at: datetime) -> Any:
    """Everything that the answers can rest on, with every instant as its distance; None where they rest on more."""
    if len(judged) > ASKED_TOGETHER_MAX or not all(one.line.is_timeless for one in judged):
        return None
    by_id = sorted(range(len(judged)), key=lambda place: judged[place].tie) if len(judged) > 1 else ()
    asked = tuple(asking(one, at) for one in judged)
    held = tuple((one.capability.name, tuple(holding(hold, at) for hold in one.held)) for one in supplies)
    return tuple(by_id), asked, held


def asking(one: Waiting, at: datetime) -> tuple[object, ...]:
    """Who asks, how far its bounds are, and what is live of its Schedule."""
    line, bounds = one.line, one.bounds
    return (
        line.place,
        one.resumes,
        line.live.count,
        line.live.units,
        at - bounds.eligible_at,
        away(bounds.latest_start_at, at),
        away(bounds.finish_by, at),
        at - one.arrival.rang_at,
    )


def holding(hold: Hold, at: datetime) -> tuple[object, ...]:
    """What is held, and for how much longer."""
    return hold.service_class, hold.units, away(hold.ends_at, at)


def away(instant: datetime | None, at: datetime) -> timedelta | None:
    """How far ahead an instant is."""
    return instant - at if instant is not None else None
