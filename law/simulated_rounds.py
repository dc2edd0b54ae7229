"""A round of the simulation, asked of the law, or known since the law was asked the very same before.

The law knows no date. Its answers rest on how far away every instant is, on who asks for what, on what is held and for how much
longer, and on what is live: move all instants by the same length and the answers move with them (SEL-6). Calendars repeat
themselves, so a round in which everybody was admitted is remembered by all that; it is not judged by anything else. A round in
which somebody is told no, or waits, is always asked: its evidence has instants in it. So is one that rests on more: on a
ceiling of a day, on a quiet window, on inputs that are merged.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from law.candidates import Ground, Judgement
from law.capacity import Hold, Supply
from law.reasons import OccurrenceState
from law.selection import decide
from law.simulated_lines import Pool, Waiting

ASKED_TOGETHER_MAX = 8
"""Larger rounds are seldom the same again."""
REMEMBERED_MAX = 100_000

Answer = tuple[Waiting, Judgement | None, int]
"""Who was answered, the judgement, and the units of a lease; without a judgement it was admitted, as it was before."""


class Rounds:
    """Everything that was asked of the law, counted; and what was answered with nothing but admissions, remembered."""

    def __init__(self) -> None:
        self.count = self.judged_count = self.asked_count = 0
        self._known: dict[Any, tuple[tuple[int, int], ...]] = {}

    def answer(self, judged: Sequence[Waiting], pools: Sequence[Pool], ground: Ground) -> list[Answer]:
        """The answer of the law to all who are judged, in the order in which it judged them."""
        self.count += 1
        self.judged_count += len(judged)
        supplies = [Supply(pool.capability, pool.held_at(ground.at)) for pool in pools if pool.capability is not None]
        key = key_of(judged, supplies, ground.at)
        if key is not None and key in self._known:
            return [(judged[place], None, units) for place, units in self._known[key]]
        self.asked_count += 1
        places = {one.candidate.trigger_occurrence_id: place for place, one in enumerate(judged)}
        asking = [one.asking(ground.at) for one in judged]
        answers = decide(asking, Ground(ground.at, ground.live, supplies, ground.quiet_windows, ground.merge))
        found = [(places[one.candidate.trigger_occurrence_id], one) for one in answers]
        if key is not None and all(one.verdict.state is OccurrenceState.ADMITTED for one in answers):
            if len(self._known) >= REMEMBERED_MAX:
                self._known.clear()
            self._known[key] = tuple((place, one.units) for place, one in found)
        return [(judged[place], one, one.units) for place, one in found]


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
