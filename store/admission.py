"""Decide: the authoritative conditional admission commit (WIN-1..7, OVL-1..4, SEL-1, SEL-6, AUT-1).

Locks, in the one order: the caller's Schedule, other Schedules with something new that can be had without waiting, the
owners and the Pattern revisions behind everything that waits. Then one sample, and every eligible Occurrence of the
Schedules that are held is judged at it by `law.selection`. Whoever wakes first works for all.

A crash before the commit leaves every Occurrence pending, to be asked about again. The commit leaves outcome, Invocation,
Run and initial delivery together; a crash after it loses nothing, since the delivery waits in the outbox.
"""

from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

from psycopg import sql

from law.errors import UnknownSchedule
from law.identity import DecisionId, ScheduleName, TriggerOccurrenceId, invocation_id, run_id
from law.instants import read_instant
from law.reasons import Disposition, OccurrenceState, RunState
from law.routing import lane_for
from law.selection import Judgement
from law.selection import decide as judge_all
from store.connection import Pool
from store.locks import (
    HeldSchedule,
    other_schedules_waiting,
    own_schedule,
    owners_of_pending,
    patterns_of_pending,
)
from store.rows import insert_rows
from store.tables import decision, delivery, invocation, run
from store.turn import Turn, turn
from store.waiting import CANDIDATES_MAX, Eligible, candidates, live_runs, read_eligible


@dataclass(frozen=True, slots=True)
class Outcome:
    """One Occurrence of the caller's Schedule and what this round decided. `run_id` is '' unless admitted."""

    trigger_occurrence_id: str
    key: str
    state: str
    reason: str
    run_id: str


@dataclass(frozen=True, slots=True)
class Decided:
    """The caller's answer. `wake_at`: the next instant at which anything can happen to its Schedule; `undelivered`: how
    many deliveries of anybody wait in the outbox."""

    schedule: ScheduleName
    outcomes: tuple[Outcome, ...]
    wake_at: datetime | None
    undelivered: int


def decide(pool: Pool, schedule: ScheduleName, decision_id: DecisionId) -> Decided:
    """Judge everything that waits under the held authority. The same `decision_id` gets the same answer (WIN-4).

    Raises UnknownSchedule, ServerUnreachable and StoreBusy; then nothing was decided.
    """
    locks = (own_schedule(schedule), other_schedules_waiting(), owners_of_pending(), patterns_of_pending())
    with turn(pool, decision_id, *locks) as held:
        own, others, owners, patterns = held.locked
        if not own:
            raise UnknownSchedule(schedule=schedule)
        if held.earlier is not None:
            return remembered(schedule, held.earlier)
        schedules: list[HeldSchedule] = [*own, *others]
        eligible = read_eligible(held, schedules)
        live = live_runs(held, schedules) if eligible else {}
        judgements = judge_all(candidates(held, eligible, schedules, owners, patterns), live, held.at)
        changed = write(held, judgements, eligible)
        decided = answer(held, own[0], judgements, eligible)
        if changed:
            held.record("decide", asdict(decided), latest_sample(schedules))
            held.write(SAMPLED, {"schedules": list({one.schedule_id for one in eligible.values()}), "at": held.at})
        return decided


def write(held: Turn, judgements: list[Judgement], eligible: dict[TriggerOccurrenceId, Eligible]) -> bool:
    """Write every verdict that says something new; whether there was one."""
    news = [one for one in judgements if says_something_new(one, eligible[one.candidate.trigger_occurrence_id])]
    if not news:
        return False
    insert_rows(held, decision, [decision_row(held, judgement) for judgement in news])
    verdicts = {
        "ids": [one.candidate.trigger_occurrence_id for one in news],
        "states": [one.verdict.state.value for one in news],
        "reasons": [one.verdict.reason.value for one in news],
    }
    held.write(DECIDE, {**verdicts, "at": held.at, "by": held.decision_id})
    admitted = [one for one in news if one.verdict.state is OccurrenceState.ADMITTED]
    admit(held, [eligible[one.candidate.trigger_occurrence_id] for one in admitted])
    return True


def says_something_new(judgement: Judgement, known: Eligible) -> bool:
    """A wait that was recorded already is not recorded again at every look."""
    return judgement.verdict.state is not OccurrenceState.PENDING or judgement.verdict.reason != known.waiting_reason


def decision_row(held: Turn, judgement: Judgement) -> dict[str, Any]:
    """The durable record of one verdict (EVD-1)."""
    verdict = judgement.verdict
    return {
        "decision_id": held.decision_id,
        "trigger_occurrence_id": judgement.candidate.trigger_occurrence_id,
        "act": "decide",
        "outcome": verdict.state,
        "reason": verdict.reason,
        "obligations": list(verdict.obligations),
        "evidence": dict(verdict.evidence),
        "sampled_at": held.at,
    }


def admit(held: Turn, admitted: list[Eligible]) -> None:
    """Invocation, Run and initial delivery, together with the outcome (IDN-1)."""
    insert_rows(held, invocation, [invocation_row(held, one) for one in admitted])
    insert_rows(held, run, [run_row(held, one) for one in admitted])
    insert_rows(held, delivery, [delivery_row(held, one) for one in admitted])


def invocation_row(held: Turn, one: Eligible) -> dict[str, Any]:
    """The one Invocation that admission makes of an Occurrence."""
    return {
        "invocation_id": invocation_id(one.trigger_occurrence_id, 0),
        "trigger_occurrence_id": one.trigger_occurrence_id,
        "ordinal": 0,
        "admitted_at": held.at,
        "decision_id": held.decision_id,
    }


def run_row(held: Turn, one: Eligible) -> dict[str, Any]:
    """Its Run, queued, the fence at 0."""
    return {
        "run_id": run_id(one.trigger_occurrence_id, 0),
        "invocation_id": invocation_id(one.trigger_occurrence_id, 0),
        "trigger_occurrence_id": one.trigger_occurrence_id,
        "schedule_id": one.schedule_id,
        "overlap_policy": one.overlap_policy,
        "state": RunState.QUEUED,
        "disposition": Disposition.UNTIMED if one.finish_by is None else Disposition.OPEN,
        "enqueue_seq": 0,
        "lost_hops": 0,
        "finish_by": one.finish_by,
        "finish_proof": one.finish_proof,
        "admitted_at": held.at,
    }


def delivery_row(held: Turn, one: Eligible) -> dict[str, Any]:
    """The initial delivery, routed by Pattern and origin and never by class (CLS-3)."""
    return {
        "run_id": run_id(one.trigger_occurrence_id, 0),
        "enqueue_seq": 0,
        "lane": lane_for(one.pattern, one.origin),
        "pattern": one.pattern,
        "state": "PENDING",
        "created_at": held.at,
        "publish_count": 0,
    }


def latest_sample(schedules: list[HeldSchedule]) -> datetime | None:
    """The latest instant at which anything was decided under this authority before."""
    return max((one.last_sampled_at for one in schedules if one.last_sampled_at is not None), default=None)


def answer(
    held: Turn, own: HeldSchedule, judgements: list[Judgement], eligible: dict[TriggerOccurrenceId, Eligible]
) -> Decided:
    """What the caller's own Schedule is told, with the hint of when to ask again."""
    mine = [one for one in judgements if one.candidate.schedule == own.schedule]
    [(opens_at, rings_at, undelivered)] = held.rows(OUTLOOK, {"schedule_id": own.schedule_id, "at": held.at})
    stands_still = own.paused_at is not None or own.halted_reason is not None
    hints = [opens_at, None if stands_still else rings_at, *(one.changes_at for one in mine)]
    if len(eligible) == CANDIDATES_MAX:
        hints.append(held.at)
    return Decided(
        schedule=own.schedule,
        outcomes=tuple(outcome(one, eligible[one.candidate.trigger_occurrence_id].source_key) for one in mine),
        wake_at=min((hint for hint in hints if hint is not None), default=None),
        undelivered=undelivered,
    )


def outcome(judgement: Judgement, key: str) -> Outcome:
    known_as, verdict = judgement.candidate.trigger_occurrence_id, judgement.verdict
    admitted = verdict.state is OccurrenceState.ADMITTED
    started = str(run_id(known_as, 0)) if admitted else ""
    return Outcome(str(known_as), key, verdict.state.value, verdict.reason.value, started)


def remembered(schedule: ScheduleName, earlier: dict[str, Any]) -> Decided:
    """The answer that this decision id was given before its acknowledgement was lost."""
    wake_at = earlier["wake_at"]
    return Decided(
        schedule=schedule,
        outcomes=tuple(Outcome(**line) for line in earlier["outcomes"]),
        wake_at=read_instant(wake_at, "wake_at") if wake_at else None,
        undelivered=earlier["undelivered"],
    )


DECIDE = sql.SQL(
    """
    UPDATE occurrence o SET
        state = v.state,
        waiting_reason = CASE WHEN v.state = 'pending' THEN v.reason END,
        reason = CASE WHEN v.state <> 'pending' THEN v.reason END,
        decision_time = CASE WHEN v.state <> 'pending' THEN %(at)s::timestamptz END,
        decision_id = CASE WHEN v.state <> 'pending' THEN %(by)s::uuid END
    FROM unnest(%(ids)s::uuid[], %(states)s::text[], %(reasons)s::text[]) AS v (trigger_occurrence_id, state, reason)
    WHERE o.trigger_occurrence_id = v.trigger_occurrence_id
    """
)

SAMPLED = sql.SQL(
    "UPDATE schedule SET last_sampled_at = greatest(last_sampled_at, %(at)s) WHERE schedule_id = ANY(%(schedules)s)"
)

OUTLOOK = sql.SQL(
    """
    SELECT
        (SELECT min(eligible_at) FROM occurrence
         WHERE state = 'pending' AND schedule_id = %(schedule_id)s AND eligible_at > %(at)s),
        (SELECT min(next_nominal_at) FROM segment WHERE schedule_id = %(schedule_id)s),
        (SELECT count(*) FROM (SELECT FROM delivery WHERE state = 'PENDING' LIMIT 1000) AS outbox)
    """
)
