"""Expiry: a finish bound that passed without a timely finish, recorded once (FIN-2, FIN-3). The timer's side of it.

An effect and a settlement check the bound themselves, and whoever comes first records it; this finds Runs that nobody touches,
such as parked ones. It holds the Runs that it can have without waiting, and samples after: a settlement that holds a Run is
left to judge the bound at its own sample. It ends nothing: a Run whose bound has passed goes on, and no effect of it begins.

A crash before the commit leaves the bound open, to be found again; after it, nothing is found.
"""

from dataclasses import dataclass
from datetime import datetime

from psycopg import sql

from law.finish import FinishTerms, disposition_at
from law.identity import DecisionId, RunId, TriggerOccurrenceId
from law.reasons import MEANINGS, Disposition, Reason
from store.connection import Pool
from store.locks import RUN
from store.rows import insert_rows
from store.tables import decision
from store.turn import Lock, Turn, turn

EXPIRED_MAX = 500


@dataclass(frozen=True, slots=True)
class HeldBound:
    """A Run whose finish bound seems to have passed."""

    run_id: RunId
    trigger_occurrence_id: TriggerOccurrenceId
    enqueue_seq: int
    state: str
    disposition: Disposition
    finish_by: datetime


def expire(pool: Pool, decision_id: DecisionId) -> int:
    """Record every bound that has passed unmet; how many there were. Repeating finds none twice."""
    with turn(pool, decision_id, Lock(RUN, OVERDUE, {"expired_max": EXPIRED_MAX}, HeldBound)) as held:
        passed = [one for one in held.locked[0] if has_passed(one, held)]
        if passed:
            held.write(UNMET, {"runs": [one.run_id for one in passed]})
            insert_rows(held, decision, [decision_row(held, one) for one in passed])
            held.record("expire", {"runs": [str(one.run_id) for one in passed]})
        return len(passed)


def has_passed(one: HeldBound, held: Turn) -> bool:
    """Whether the bound has passed at the sample: asked again under the lock."""
    return disposition_at(FinishTerms(one.finish_by), Disposition(one.disposition), held.at) is Disposition.UNMET


def decision_row(held: Turn, one: HeldBound) -> dict[str, object]:
    """The durable record: the bound, the sample, and that the Run itself goes on (EVD-1)."""
    return {
        "decision_id": held.decision_id,
        "trigger_occurrence_id": one.trigger_occurrence_id,
        "act": "expire",
        "outcome": one.state,
        "reason": Reason.EXPIRED,
        "obligations": list(MEANINGS[Reason.EXPIRED].obligations),
        "evidence": {"finish_by": one.finish_by, "decision_time": held.at},
        "sampled_at": held.at,
        "run_id": one.run_id,
        "enqueue_seq": one.enqueue_seq,
    }


OVERDUE = sql.SQL(
    """
    SELECT run_id, trigger_occurrence_id, enqueue_seq, state, disposition, finish_by FROM run
    WHERE disposition = 'open' AND finish_by <= (SELECT trusted_now())
    ORDER BY run_id LIMIT %(expired_max)s
    FOR NO KEY UPDATE SKIP LOCKED
    """
)

UNMET = sql.SQL("UPDATE run SET disposition = 'unmet' WHERE run_id = ANY(%(runs)s) AND disposition = 'open'")
