"""Decide: the authoritative conditional admission commit (WIN-1..7, OVL-1..7, SEL-1..6, YLD-3..5, AUT-1).

Locks, in the one order: the capabilities of the caller's Schedule, that Schedule with all that wait for one of them, other
Schedules with something new that can be had without waiting, the owners and Pattern revisions behind everything that waits,
and the Runs that wait between two slices. Then one sample, and everything eligible is judged at it by `law.selection`.
Whoever wakes first works for all; whatever changed (a capacity, a settled Run, a quiet window), this is how it is noticed.

A crash before the commit leaves every Occurrence pending, to be asked about again. The commit leaves outcome, Invocation,
Run, lease and initial delivery together; a crash after it loses nothing, since the delivery waits in the outbox.
"""

from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

from psycopg import sql

from law.candidates import Ground, Judgement
from law.errors import UnknownSchedule
from law.identity import DecisionId, EnqueueSeq, RunId, ScheduleName, TriggerOccurrenceId, invocation_id, run_id
from law.instants import read_instant
from law.merging import Merge, no_merge
from law.reasons import Disposition, OccurrenceState, RunState
from law.routing import lane_for
from law.selection import decide as judge_all
from store.connection import Pool
from store.eligible import CANDIDATES_MAX, Eligible, gone_of, live_runs, read_eligible
from store.locks import (
    HeldCapability,
    HeldRun,
    HeldSchedule,
    HeldSigil,
    budgets_of_pending,
    capabilities_of,
    other_schedules_waiting,
    owners_of_pending,
    patterns_of_pending,
    resumable_runs,
    schedules_of_capabilities,
    sigils_of_pending,
)
from store.rows import insert_rows
from store.run_rows import record_decision, withdraw
from store.supplies import quiet_windows, supplies
from store.tables import budget_use, decision, delivery, invocation, lease, readiness_request, run
from store.turn import Lock, Turn, turn
from store.waiting import Evidence


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


def decide(pool: Pool, schedule: ScheduleName, decision_id: DecisionId, merge: Merge = no_merge) -> Decided:
    """Judge everything that waits under the held authority. The same `decision_id` gets the same answer (WIN-4). `merge`:
    how inputs become one, by the Patterns that are installed where this runs (OVL-5).

    Raises UnknownSchedule, ServerUnreachable and StoreBusy; then nothing was decided.
    """
    with turn(pool, decision_id, *locks_of(schedule)) as held:
        capabilities, together, others, budgets, owners, sigils, patterns, runs = held.locked
        own = next((one for one in together if one.schedule == schedule), None)
        if own is None:
            raise UnknownSchedule(schedule=schedule)
        if held.earlier is not None:
            return remembered(schedule, held.earlier)
        schedules: list[HeldSchedule] = [*together, *others]
        eligible = read_eligible(held, schedules, capabilities, runs, gone_of(held, owners, sigils, patterns))
        stands = Evidence(held, eligible, schedules, owners, sigils, patterns, budgets)
        judgements = judge_all(stands.candidates(), ground(held, schedules, capabilities, eligible, merge))
        changed = write(held, judgements, eligible, runs)
        decided = answer(held, own, judgements, eligible, sigils)
        if eligible and capabilities:
            held.write(JUDGED, {"capabilities": [one.capability for one in capabilities], "at": held.at})
        if changed:
            held.record("decide", asdict(decided), latest_sample(schedules))
            held.write(SAMPLED, {"schedules": list({one.schedule_id for one in eligible.values()}), "at": held.at})
        return decided


def locks_of(schedule: ScheduleName) -> tuple[Lock, ...]:
    """Everything that a decision for this Schedule holds."""
    return (
        capabilities_of(schedule),
        schedules_of_capabilities(schedule),
        other_schedules_waiting(),
        budgets_of_pending(),
        owners_of_pending(),
        sigils_of_pending(),
        patterns_of_pending(),
        resumable_runs(schedule),
    )


def ground(
    held: Turn,
    schedules: list[HeldSchedule],
    capabilities: list[HeldCapability],
    eligible: dict[TriggerOccurrenceId, Eligible],
    merge: Merge,
) -> Ground:
    """What the round is judged on."""
    spare = any(one.service_class == "spare_capacity" for one in eligible.values())
    return Ground(
        at=held.at,
        live=live_runs(held, schedules) if eligible else {},
        supplies=supplies(held, capabilities),
        quiet_windows=quiet_windows(held) if spare else (),
        merge=merge,
    )


def write(
    held: Turn, judgements: list[Judgement], eligible: dict[TriggerOccurrenceId, Eligible], runs: list[HeldRun]
) -> bool:
    """Write every verdict that says something new; whether there was one."""
    news = [one for one in judgements if says_something_new(one, eligible[one.candidate.trigger_occurrence_id])]
    if not news:
        return False
    between_slices = {one.run_id: one for one in runs}
    resumed = [(one, between_slices[one.candidate.resumes]) for one in news if one.candidate.resumes is not None]
    fresh = [one for one in news if one.candidate.resumes is None]
    if fresh:
        insert_rows(held, decision, [decision_row(held, judgement) for judgement in fresh])
        held.write(DECIDE, {**verdicts(fresh), "at": held.at, "by": held.decision_id})
        asked = [request_row(held, one, eligible[one.candidate.trigger_occurrence_id]) for one in fresh if one.asks]
        insert_rows(held, readiness_request, asked)
        admit(held, [one for one in fresh if one.verdict.state is OccurrenceState.ADMITTED], eligible)
    resume(held, resumed)
    return True


def verdicts(fresh: list[Judgement]) -> dict[str, list[Any]]:
    """The verdicts as columns."""
    return {
        "ids": [one.candidate.trigger_occurrence_id for one in fresh],
        "states": [one.verdict.state.value for one in fresh],
        "reasons": [one.verdict.reason.value for one in fresh],
        "into": [one.coalesced_into for one in fresh],
        "digests": [one.merged.input_digest if one.merged else None for one in fresh],
    }


def says_something_new(judgement: Judgement, known: Eligible) -> bool:
    """A wait that was recorded already is not recorded again at every look; nor is that of a Run between two slices."""
    if judgement.verdict.state is not OccurrenceState.PENDING:
        return True
    return judgement.candidate.resumes is None and judgement.verdict.reason != known.waiting_reason


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


def request_row(held: Turn, judgement: Judgement, one: Eligible) -> dict[str, Any]:
    """What is asked of the Orchestrator: a capability, and the most that making it ready may take (YLD-4)."""
    assert judgement.asks is not None
    asked = {"trigger_occurrence_id": one.trigger_occurrence_id, "schedule_id": one.schedule_id, "state": "asked"}
    return {**asked, **asdict(judgement.asks), "asked_at": held.at}


def admit(held: Turn, admitted: list[Judgement], eligible: dict[TriggerOccurrenceId, Eligible]) -> None:
    """Invocation, Run, initial delivery and lease, together with the outcome (IDN-1)."""
    pairs = [(judgement, eligible[judgement.candidate.trigger_occurrence_id]) for judgement in admitted]
    insert_rows(held, invocation, [invocation_row(held, judgement, one) for judgement, one in pairs])
    insert_rows(held, run, [run_row(held, judgement, one) for judgement, one in pairs])
    insert_rows(held, delivery, [delivery_row(held, one) for _, one in pairs])
    leases = [
        lease_row(held, judgement, run_id(one.trigger_occurrence_id, one.ordinal), EnqueueSeq(0))
        for judgement, one in pairs
        if judgement.units
    ]
    insert_rows(held, lease, leases)
    insert_rows(held, budget_use, [row for judgement, one in pairs for row in reservations(held, judgement, one)])


def reservations(held: Turn, judgement: Judgement, one: Eligible) -> list[dict[str, Any]]:
    """What its effects may spend, unit by unit, until it is settled (AUT-4)."""
    whose = {"owner": one.owner, "schedule": judgement.candidate.schedule, "reserved_at": held.at}
    run = run_id(one.trigger_occurrence_id, one.ordinal)
    return [{"run_id": run, "unit": unit, "reserved": much, **whose} for unit, much in (one.reserve or {}).items()]


def invocation_row(held: Turn, judgement: Judgement, one: Eligible) -> dict[str, Any]:
    """The one Invocation that admission makes of an Occurrence; its own input only where it stands for several."""
    merged = judgement.merged
    return {
        "invocation_id": invocation_id(one.trigger_occurrence_id, one.ordinal),
        "trigger_occurrence_id": one.trigger_occurrence_id,
        "ordinal": one.ordinal,
        "admitted_at": held.at,
        "decision_id": held.decision_id,
        "input": merged.input if merged else one.recovered_input,
        "input_digest": merged.input_digest if merged else one.recovered_digest,
        "recovers": one.recovers,
    }


def run_row(held: Turn, judgement: Judgement, one: Eligible) -> dict[str, Any]:
    """Its Run, queued, the fence at 0, with what its slices will need."""
    return {
        "run_id": run_id(one.trigger_occurrence_id, one.ordinal),
        "invocation_id": invocation_id(one.trigger_occurrence_id, one.ordinal),
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
        "capability": judgement.candidate.need.capability,
        "units": judgement.candidate.need.units,
    }


def delivery_row(held: Turn, one: Eligible) -> dict[str, Any]:
    """The initial delivery, routed by Pattern and origin and never by class (CLS-3)."""
    return {
        "run_id": run_id(one.trigger_occurrence_id, one.ordinal),
        "enqueue_seq": 0,
        "lane": lane_for(one.pattern, one.origin),
        "pattern": one.pattern,
        "state": "PENDING",
        "created_at": held.at,
        "publish_count": 0,
    }


def lease_row(held: Turn, judgement: Judgement, run: RunId, enqueue_seq: EnqueueSeq) -> dict[str, Any]:
    """What this hop holds until it ends, by whatever end (YLD-1)."""
    need = judgement.candidate.need
    return {
        "run_id": run,
        "enqueue_seq": enqueue_seq,
        "capability": need.capability,
        "service_class": judgement.candidate.service_class,
        "units": judgement.units,
        "granted_at": held.at,
        "expected_end_at": held.at + need.estimate.duration if need.estimate is not None else None,
    }


def resume(held: Turn, resumed: list[tuple[Judgement, HeldRun]]) -> None:
    """The next slice of Runs that waited for capacity: a new fenced hop with a lease of its own (YLD-5, IDN-3). One whose
    authority is gone is failed with that reason instead (AUT-1)."""
    for judgement, own in resumed:
        if judgement.verdict.state is not OccurrenceState.ADMITTED:
            withdraw(held, own, judgement.verdict, "resume")
    granted = [pair for pair in resumed if pair[0].verdict.state is OccurrenceState.ADMITTED]
    for judgement, own in granted:
        evidence = dict(judgement.verdict.evidence)
        record_decision(held, own, "resume", RunState.QUEUED, judgement.verdict.reason, evidence)
    if granted:
        held.write(NEXT_DELIVERIES, {"runs": [own.run_id for _, own in granted], "at": held.at})
    leases = [
        lease_row(held, judgement, own.run_id, EnqueueSeq(own.enqueue_seq + 1))
        for judgement, own in granted
        if judgement.units
    ]
    insert_rows(held, lease, leases)


def latest_sample(schedules: list[HeldSchedule]) -> datetime | None:
    """The latest instant at which anything was decided under this authority before."""
    return max((one.last_sampled_at for one in schedules if one.last_sampled_at is not None), default=None)


def answer(
    held: Turn,
    own: HeldSchedule,
    judgements: list[Judgement],
    eligible: dict[TriggerOccurrenceId, Eligible],
    sigils: list[HeldSigil],
) -> Decided:
    """What the caller's own Schedule is told, with the hint of when to ask again."""
    mine = [one for one in judgements if one.candidate.schedule == own.schedule]
    told = [one for one in mine if one.candidate.resumes is None]
    [(opens_at, rings_at, undelivered)] = held.rows(OUTLOOK, {"schedule_id": own.schedule_id, "at": held.at})
    stands_still = own.paused_at is not None or own.halted_reason is not None
    hints = [opens_at, None if stands_still else rings_at, *(one.changes_at for one in mine)]
    hints += [one.expires_at for one in sigils if one.expires_at is not None and one.expires_at > held.at]
    if len(eligible) == CANDIDATES_MAX:
        hints.append(held.at)
    return Decided(
        schedule=own.schedule,
        outcomes=tuple(outcome(one, eligible[one.candidate.trigger_occurrence_id].source_key) for one in told),
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
        decision_id = CASE WHEN v.state <> 'pending' THEN %(by)s::uuid END,
        coalesced_into = v.coalesced_into,
        merged_input_digest = v.merged_input_digest
    FROM unnest(%(ids)s::uuid[], %(states)s::text[], %(reasons)s::text[], %(into)s::uuid[], %(digests)s::text[])
         AS v (trigger_occurrence_id, state, reason, coalesced_into, merged_input_digest)
    WHERE o.trigger_occurrence_id = v.trigger_occurrence_id
    """
)

NEXT_DELIVERIES = sql.SQL(
    """
    WITH resumed AS (
        UPDATE run SET state = 'queued', wait_owner = NULL, reason = NULL, enqueue_seq = enqueue_seq + 1
        WHERE run_id = ANY(%(runs)s)
        RETURNING run_id, enqueue_seq
    )
    INSERT INTO delivery (run_id, enqueue_seq, lane, pattern, state, created_at, publish_count)
    SELECT r.run_id, r.enqueue_seq, d.lane, d.pattern, 'PENDING', %(at)s, 0
    FROM resumed r JOIN delivery d ON d.run_id = r.run_id AND d.enqueue_seq = r.enqueue_seq - 1
    """
)

JUDGED = sql.SQL("UPDATE capability SET judged_at = %(at)s WHERE capability = ANY(%(capabilities)s)")

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
