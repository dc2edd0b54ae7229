"""Cancelling, and what an operator finds out (OVL-1, FIN-4, FIN-5, IDN-5): nothing is killed, and nothing uncertain is repeated.

Both hold owner, Pattern revision and Run. A Run that nobody carries is cancelled at once, or stays contained while an effect
is in doubt; one that is being carried is `cancelling` until its hop has ended: no further effect begins, and what has begun
goes on to its end. An operator's finding settles one effect that was in doubt; with the last of them the Run is decided.

A crash before a commit leaves it as it was; after it, repeating answers from the record.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any, Literal

from psycopg import sql
from psycopg.rows import class_row

from law.errors import BadInput
from law.finish import FinishTerms, RunJudgement, closed, disposition_at, judge_containment
from law.identity import DecisionId, RunId, ScheduleName, StationAttemptId, digest_of
from law.reasons import TERMINAL, Disposition, Reason, RunState
from store.connection import Pool, borrow
from store.jsonb import jsonb, plain_text
from store.locks import HeldPattern, HeldRun, own_run
from store.parking import BY_LENGTH_MAX, NOTE_LENGTH_MAX, check_text
from store.run_rows import record_decision, return_or_end, withdraw, write_run
from store.runs import CLOSE_DELIVERY, EFFECTS_IN_DOUBT, RUN_AT, locks_of_run, objection_now, the_run
from store.turn import Turn, turn

Finding = Literal["happened", "did_not_happen", "compensated"]


@dataclass(frozen=True, slots=True)
class Acted:
    """Where a Run stands after an operator's act. `changed`: whether this call did it."""

    run_id: str
    schedule: ScheduleName
    state: str
    reason: str
    changed: bool


def cancel(pool: Pool, run_id: RunId, by: str, note: str, decision_id: DecisionId) -> Acted:
    """Ask that a Run end. Raises UnknownRun and BadInput; a settled Run stays what it is."""
    check_act(by, note)
    with turn(pool, decision_id, own_run(run_id)) as held:
        own = the_run(run_id, held.locked[0])
        if held.earlier is not None:
            return Acted(**held.earlier)
        if RunState(own.state) in TERMINAL or own.cancelling:
            return Acted(str(run_id), own.schedule, own.state, "", False)
        held.write(REQUEST_CANCEL, {"run_id": run_id, "by": by, "note": plain_text(note) or None, "at": held.at})
        [(in_doubt,)] = held.rows(EFFECTS_IN_DOUBT, {"run_id": run_id})
        judged = judge_cancel(own, in_doubt, held.at)
        write_run(held, own, judged)
        if judged.state is RunState.CANCELLED:
            held.write(CLOSE_DELIVERY, {"run_id": run_id, "enqueue_seq": own.enqueue_seq})
        record_decision(held, own, "cancel", judged.state, judged.reason, {"by": by, "note": note})
        acted = Acted(str(run_id), own.schedule, judged.state.value, judged.reason.value, True)
        held.record("cancel", asdict(acted))
        return acted


def check_act(by: str, note: str) -> None:
    """Who and why. Raises BadInput."""
    check_text("by", by, BY_LENGTH_MAX)
    if len(note) > NOTE_LENGTH_MAX:
        raise BadInput(field="note", reason=f"is longer than {NOTE_LENGTH_MAX} characters")


def judge_cancel(own: HeldRun, in_doubt: int, at: datetime) -> RunJudgement:
    """What a request to cancel makes of a Run that is not settled."""
    bound = disposition_at(FinishTerms(own.finish_by), Disposition(own.disposition), at)
    if own.state == RunState.RUNNING.value:
        return RunJudgement(RunState.CANCELLING, bound, Reason.CANCEL_REQUESTED)
    if in_doubt or own.state == RunState.CONTAINED.value:
        return RunJudgement(RunState.CONTAINED, bound, Reason.EFFECT_IN_DOUBT)
    return RunJudgement(RunState.CANCELLED, closed(bound), Reason.CANCELLED)


@dataclass(frozen=True, slots=True)
class Doubt:
    """An effect that was begun and of which nobody knows what became of it."""

    station_attempt_id: StationAttemptId
    kind: str
    effect_key: str
    state: str
    enqueue_seq: int
    admitted_at: datetime
    note: str | None


def in_doubt(pool: Pool, run_id: RunId) -> list[Doubt]:
    """What is uncertain about a Run, in the order in which it began."""
    with borrow(pool) as connection:
        return connection.cursor(row_factory=class_row(Doubt)).execute(DOUBTS, {"run_id": run_id}).fetchall()


def find(
    pool: Pool,
    run_id: RunId,
    station_attempt_id: StationAttemptId,
    finding: Finding,
    by: str,
    note: str,
    result: Mapping[str, Any] | None,
    decision_id: DecisionId,
) -> Acted:
    """Record what an operator found out about one effect of a contained Run. `result`: what it answered, where it happened.

    Raises UnknownRun, and BadInput for a Run that is not contained or an effect that is not in doubt.
    """
    check_act(by, note)
    if result is not None:
        digest_of(dict(result), "result")
    with turn(pool, decision_id, *locks_of_run(run_id)) as held:
        own = the_run(run_id, held.locked[RUN_AT])
        if held.earlier is not None:
            return Acted(**held.earlier)
        if own.state != RunState.CONTAINED.value:
            raise BadInput(
                field="run", reason=f"{run_id} is {own.state}; only of a contained Run can something be found out"
            )
        found = {"finding": finding, "by": by, "note": plain_text(note) or None, "at": held.at}
        arguments = {"run_id": run_id, "station_attempt_id": station_attempt_id, **found}
        if not held.rows(FOUND, {**arguments, "result": jsonb(result) if result is not None else None}):
            raise BadInput(field="effect", reason=f"{station_attempt_id} is no effect of this Run that is in doubt")
        evidence = {"station_attempt_id": station_attempt_id, "finding": finding, "by": by, "note": note}
        acted = after_finding(held, own, evidence)
        held.record("contain", asdict(acted))
        return acted


def look_again(pool: Pool, run_id: RunId, decision_id: DecisionId) -> Acted:
    """Decide a contained Run about which nothing is in doubt any more: a worker that was taken for dead has said what became of
    its effects (FIN-4). Raises UnknownRun; a Run that is not contained, or still in doubt, stays what it is."""
    with turn(pool, decision_id, *locks_of_run(run_id)) as held:
        own = the_run(run_id, held.locked[RUN_AT])
        if held.earlier is not None:
            return Acted(**held.earlier)
        [(in_doubt,)] = held.rows(EFFECTS_IN_DOUBT, {"run_id": run_id})
        if own.state != RunState.CONTAINED.value or in_doubt:
            return Acted(str(run_id), own.schedule, own.state, "", False)
        acted = after_finding(held, own, {"finding": "a late result"})
        held.record("contain", asdict(acted))
        return acted


def after_finding(held: Turn, own: HeldRun, evidence: dict[str, Any]) -> Acted:
    """Decide the Run with what is known now. One that would return is asked for its authority again (AUT-1)."""
    [(left,)] = held.rows(EFFECTS_IN_DOUBT, {"run_id": own.run_id})
    [(undone,)] = held.rows(COMPENSATED, {"run_id": own.run_id})
    terms = FinishTerms(own.finish_by)
    judged = judge_containment(
        terms, Disposition(own.disposition), left, may_return(held.locked[2]) and not undone, own.cancelling, held.at
    )
    objection = objection_now(held, own) if judged.state is RunState.QUEUED else None
    if objection is not None:
        withdraw(held, own, objection, "contain")
        return Acted(str(own.run_id), own.schedule, RunState.FAILED.value, objection.reason.value, True)
    written = return_or_end(held, own, judged, "contain", evidence)
    return Acted(str(own.run_id), own.schedule, written.state.value, written.reason.value, True)


def may_return(patterns: list[HeldPattern]) -> bool:
    """Whether the Pattern declares that a hop may return to its checkpoint, or its start."""
    return bool(patterns) and patterns[0].returns


REQUEST_CANCEL = sql.SQL(
    """
    UPDATE run SET cancel_requested_at = %(at)s, cancel_requested_by = %(by)s, cancel_note = %(note)s
    WHERE run_id = %(run_id)s
    """
)

DOUBTS = sql.SQL(
    """
    SELECT station_attempt_id, kind, effect_key, state, enqueue_seq, admitted_at, note FROM effect
    WHERE run_id = %(run_id)s AND state IN ('admitted', 'unknown', 'contained')
    ORDER BY admitted_at, station_attempt_id
    """
)

FOUND = sql.SQL(
    """
    UPDATE effect SET state = 'settled', finding = %(finding)s, found_by = %(by)s, found_note = %(note)s, found_at = %(at)s,
        result = coalesce(%(result)s, result)
    WHERE run_id = %(run_id)s AND station_attempt_id = %(station_attempt_id)s AND state IN ('unknown', 'contained')
    RETURNING station_attempt_id
    """
)

COMPENSATED = sql.SQL("SELECT count(*) FROM effect WHERE run_id = %(run_id)s AND finding = 'compensated'")
