"""How a Run's row changes, whoever judged it: a hop's end, an answer, an operator's finding, an authority that is gone.

Every change leaves its decision; every end of a hop releases what the hop held; every further hop is a new delivery behind a
fence that has moved on (IDN-3, YLD-1). Called under the Run's lock, at the sample of whoever holds it.
"""

from collections.abc import Mapping
from typing import Any

from psycopg import sql

from law.finish import RunJudgement
from law.identity import digest_of
from law.reasons import MEANINGS, TERMINAL, Disposition, Reason, RunState
from law.verdict import Verdict
from law.yielding import after_hop
from store.jsonb import jsonb
from store.locks import HeldRun
from store.rows import insert_rows
from store.tables import decision
from store.turn import Turn


def withdraw(held: Turn, own: HeldRun, objection: Verdict, act: str) -> None:
    """Fail a Run whose authority is gone before it was carried any further (AUT-2)."""
    bound = Disposition.UNTIMED if own.finish_by is None else Disposition.UNMET
    write_run(held, own, RunJudgement(RunState.FAILED, bound, objection.reason))
    record_decision(held, own, act, RunState.FAILED, objection.reason, dict(objection.evidence))


def write_run(held: Turn, own: HeldRun, judged: RunJudgement, proof: Mapping[str, Any] | None = None) -> None:
    """Write what was judged of a Run; its fence moves on when it offers another hop."""
    queued = judged.state is RunState.QUEUED
    lost_hops = own.lost_hops + 1 if judged.reason is Reason.RETURNED else 0
    arguments = {
        "run_id": own.run_id,
        "state": judged.state,
        "disposition": judged.disposition,
        "reason": judged.reason,
        "enqueue_seq": own.enqueue_seq + 1 if queued else own.enqueue_seq,
        "lost_hops": lost_hops,
        "proof": jsonb(proof) if proof is not None else None,
        "proof_digest": digest_of(proof) if proof is not None else None,
        "settled_at": held.at if judged.state in TERMINAL else None,
        "wait_owner": judged.wait_owner,
    }
    held.write(WRITE_RUN, arguments)
    if judged.state in TERMINAL:
        held.write(SETTLE_BUDGET, {"run_id": own.run_id})
    if own.capability is not None and judged.state is not RunState.CANCELLING:  # its hop goes on to its end
        held.write(RELEASE, {"run_id": own.run_id, "at": held.at})


def return_or_end(held: Turn, own: HeldRun, judged: RunJudgement, act: str, evidence: dict[str, Any]) -> RunJudgement:
    """Write what an answer, or an operator's finding, means for a Run that had no hop: it returns as the next one, at once or
    when its capability has room, or it ends."""
    written = after_hop(judged, own.capability, own.service_class)
    write_run(held, own, written)
    record_decision(held, own, act, written.state, written.reason, evidence)
    if written.state is RunState.QUEUED:
        offer_next_hop(held, own)
    return written


def offer_next_hop(held: Turn, own: HeldRun) -> None:
    """The same Invocation, a new fenced hop, through the outbox like the first (IDN-3)."""
    held.write(NEXT_DELIVERY, {"run_id": own.run_id, "enqueue_seq": own.enqueue_seq, "at": held.at})


def record_decision(
    held: Turn, own: HeldRun, act: str, outcome: RunState, reason: Reason, evidence: dict[str, Any]
) -> None:
    """The durable record of what was decided about one hop (EVD-1)."""
    row = {
        "decision_id": held.decision_id,
        "trigger_occurrence_id": own.trigger_occurrence_id,
        "act": act,
        "outcome": outcome,
        "reason": reason,
        "obligations": list(MEANINGS[reason].obligations),
        "evidence": evidence,
        "sampled_at": held.at,
        "run_id": own.run_id,
        "enqueue_seq": own.enqueue_seq,
    }
    insert_rows(held, decision, [row])


WRITE_RUN = sql.SQL(
    """
    UPDATE run SET state = %(state)s, disposition = %(disposition)s, reason = %(reason)s, enqueue_seq = %(enqueue_seq)s,
        lost_hops = %(lost_hops)s, proof = %(proof)s, proof_digest = %(proof_digest)s, settled_at = %(settled_at)s,
        wait_owner = %(wait_owner)s
    WHERE run_id = %(run_id)s
    """
)

SETTLE_BUDGET = sql.SQL(
    """
    UPDATE budget_use u SET used = CASE u.unit
        WHEN 'seconds' THEN coalesce((
            SELECT sum(greatest(extract(epoch FROM ended_at - claimed_at), 0)) FROM slice WHERE run_id = u.run_id), 0)
        ELSE coalesce((
            SELECT sum((e.cost ->> u.unit)::float8) FROM effect e
            WHERE e.run_id = u.run_id AND e.state <> 'failed' AND coalesce(e.finding, '') <> 'did_not_happen'), 0)
        END
    WHERE u.run_id = %(run_id)s AND u.used IS NULL
    """
)

RELEASE = sql.SQL("UPDATE lease SET released_at = %(at)s WHERE run_id = %(run_id)s AND released_at IS NULL")

NEXT_DELIVERY = sql.SQL(
    """
    INSERT INTO delivery (run_id, enqueue_seq, lane, pattern, state, created_at, publish_count)
    SELECT run_id, enqueue_seq + 1, lane, pattern, 'PENDING', %(at)s, 0 FROM delivery
    WHERE run_id = %(run_id)s AND enqueue_seq = %(enqueue_seq)s
    """
)
