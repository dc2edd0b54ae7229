"""Recovery: a new Invocation of the same Occurrence, related to the one that failed (IDN-4).

Holds what a decision holds, and the Run that is to be taken up. It is judged in a full round beside everything that waits, so
that it takes nobody's place; only its own verdict is written. There is no waiting for it: an operator is told no, and why.

A crash before the commit leaves nothing; after it, repeating finds a later Invocation, and says so.
"""

from dataclasses import asdict, dataclass

from psycopg import sql

from law.errors import NotRecoverable, UnknownRun
from law.identity import DecisionId, RunId, ScheduleName, TriggerOccurrenceId, run_id
from law.merging import no_merge
from law.reasons import MEANINGS, OccurrenceState, Reason, RunState
from law.recovery import why_not
from law.selection import decide as judge_all
from store.admission import admit, ground
from store.cancelling import check_act
from store.connection import Pool, borrow
from store.eligible import Eligible, gone_of, read_eligible
from store.locks import (
    HeldRun,
    budgets_of_pending,
    budgets_of_run,
    capabilities_of,
    own_run,
    owner_of_run,
    owners_of_pending,
    pattern_of_run,
    patterns_of_pending,
    schedules_of_capabilities,
    sigil_of_run,
    sigils_of_pending,
)
from store.rows import insert_rows
from store.runs import EFFECTS_IN_DOUBT, the_run
from store.tables import decision
from store.turn import Turn, turn
from store.waiting import Evidence


@dataclass(frozen=True, slots=True)
class Recovered:
    """The new Run, and which it takes up."""

    run_id: str
    recovers: str
    schedule: ScheduleName
    trigger_occurrence_id: str
    ordinal: int


def recover(pool: Pool, taken_up: RunId, by: str, note: str, decision_id: DecisionId) -> Recovered:
    """Take up a Run that failed or was cancelled. Raises UnknownRun, BadInput, and NotRecoverable with what speaks against it;
    then nothing changed. The same `decision_id` gets the same answer."""
    check_act(by, note)
    schedule = schedule_of(pool, taken_up)
    locks = (
        capabilities_of(schedule),
        schedules_of_capabilities(schedule),
        budgets_of_pending(),
        budgets_of_run(taken_up),
        owners_of_pending(),
        owner_of_run(taken_up),
        sigils_of_pending(),
        sigil_of_run(taken_up),
        patterns_of_pending(),
        pattern_of_run(taken_up),
        own_run(taken_up),
    )
    with turn(pool, decision_id, *locks) as held:
        own = the_run(taken_up, held.locked[10])
        if held.earlier is not None:
            return Recovered(**held.earlier)
        one = recoverable(held, own)
        judge(held, one)
        insert_rows(held, decision, [decision_row(held, own, one, by, note)])
        new = str(run_id(one.trigger_occurrence_id, one.ordinal))
        recovered = Recovered(new, str(taken_up), schedule, str(one.trigger_occurrence_id), one.ordinal)
        held.record("recover", asdict(recovered))
        return recovered


def schedule_of(pool: Pool, taken_up: RunId) -> ScheduleName:
    """Whose Run it is. Raises UnknownRun."""
    with borrow(pool) as connection:
        row = connection.execute(SCHEDULE_OF, {"run_id": taken_up}).fetchone()
    if row is None:
        raise UnknownRun(run_id=taken_up)
    return ScheduleName(row[0])


def recoverable(held: Turn, own: HeldRun) -> Eligible:
    """The Occurrence, as a candidate for its next Invocation. Raises NotRecoverable."""
    found = held.records(Eligible, RECOVERABLE, {"run_id": own.run_id})
    [(in_doubt,)] = held.rows(EFFECTS_IN_DOUBT, {"run_id": own.run_id})
    patterns = held.locked[9]
    problem = why_not(RunState(own.state), bool(found), in_doubt, bool(patterns) and patterns[0].recovers)
    if problem:
        raise NotRecoverable(run_id=own.run_id, reason=problem)
    return found[0]


def judge(held: Turn, one: Eligible) -> None:
    """Judge it beside everything that waits, and admit it. Raises NotRecoverable with the reason of the verdict."""
    capabilities, schedules, *authority, _ = held.locked
    budgets, owners, sigils, patterns = ([*authority[place], *authority[place + 1]] for place in (0, 2, 4, 6))
    eligible = read_eligible(held, schedules, capabilities, [], gone_of(held, owners, sigils, patterns))
    beside: dict[TriggerOccurrenceId, Eligible] = {**eligible, one.trigger_occurrence_id: one}
    stands = Evidence(held, beside, schedules, owners, sigils, patterns, list(dict.fromkeys(budgets)))
    judgements = judge_all(stands.candidates(), ground(held, schedules, capabilities, beside, no_merge))
    [judged] = [found for found in judgements if found.candidate.trigger_occurrence_id == one.trigger_occurrence_id]
    if judged.verdict.state is not OccurrenceState.ADMITTED:
        raise NotRecoverable(run_id=one.trigger_occurrence_id, reason=judged.verdict.sentence)
    admit(held, [judged], beside)


def decision_row(held: Turn, own: HeldRun, one: Eligible, by: str, note: str) -> dict[str, object]:
    """The durable record: who took up what, and why (EVD-1)."""
    return {
        "decision_id": held.decision_id,
        "trigger_occurrence_id": one.trigger_occurrence_id,
        "act": "recover",
        "outcome": OccurrenceState.ADMITTED,
        "reason": Reason.RECOVERED,
        "obligations": list(MEANINGS[Reason.RECOVERED].obligations),
        "evidence": {"by": by, "note": note, "takes_up": str(own.run_id)},
        "sampled_at": held.at,
        "run_id": run_id(one.trigger_occurrence_id, one.ordinal),
        "enqueue_seq": 0,
    }


SCHEDULE_OF = sql.SQL(
    """
    SELECT s.authority || '/' || s.name FROM run n JOIN schedule s ON s.schedule_id = n.schedule_id
    WHERE n.run_id = %(run_id)s
    """
)

RECOVERABLE = sql.SQL(
    """
    SELECT o.trigger_occurrence_id, o.schedule_id, o.source_key, o.service_class, o.priority, o.rang_at,
           o.eligible_at, o.not_before, o.latest_start_at, o.finish_by,
           o.finish_proof, o.owner, o.sigil, o.origin, o.pattern, o.pattern_revision, o.pattern_digest,
           o.authority_generation, o.policy_generation, NULL::text AS waiting_reason,
           r.overlap_policy, r.aging_seconds, r.runs_per_day_max, r.document -> 'overlap' AS overlap,
           nullif(r.document -> 'capacity', 'null'::jsonb) AS capacity, r.document -> 'budget' -> 'reserve' AS reserve,
           true AS has_asked,
           NULL::jsonb AS catch_up, r.document, coalesce(i.input, o.input) AS input,
           i.ordinal + 1 AS ordinal, i.invocation_id AS recovers, i.input AS recovered_input,
           i.input_digest AS recovered_digest
    FROM run n
    JOIN invocation i ON i.invocation_id = n.invocation_id
    JOIN occurrence o ON o.trigger_occurrence_id = n.trigger_occurrence_id
    JOIN schedule_revision r ON r.schedule_id = o.schedule_id AND r.revision = o.revision
    WHERE n.run_id = %(run_id)s AND NOT EXISTS (
        SELECT FROM invocation later WHERE later.trigger_occurrence_id = i.trigger_occurrence_id AND later.ordinal > i.ordinal)
    """
)
