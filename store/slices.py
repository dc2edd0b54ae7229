"""One hop, looked at when it ends: its claim with what was reported, and what its slice showed (YLD-1, SEL-4).

Written in the settle commit and never changed: a slice is evidence. What a Pattern promises of its slices is judged by these
rows, and so is how long its Runs take.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from psycopg import sql

from law.finish import EndingName, RunJudgement
from law.identity import ClaimId, EnqueueSeq, RunId
from law.reasons import TERMINAL, Reason, RunState
from store.locks import HeldRun
from store.rows import insert_rows
from store.tables import slice_
from store.turn import Turn


@dataclass(frozen=True, slots=True)
class HeldClaim:
    """A hop's claim and its report, read under the Run's lock."""

    claim_id: ClaimId
    enqueue_seq: EnqueueSeq
    ending: EndingName | None
    proof_kind: str | None
    proof: dict[str, Any] | None
    note: str | None
    offered_at: datetime
    claimed_at: datetime
    checkpointed: bool
    """Whether this very hop saved a checkpoint."""
    earlier_seconds: float
    """How long the earlier hops of this Run took together."""


def open_claim(held: Turn, run_id: RunId, claim_id: ClaimId) -> HeldClaim | None:
    """The claim that still holds its hop, with its report; None where it has ended, or was never this Run's."""
    claims = held.records(HeldClaim, OPEN_CLAIM, {"run_id": run_id, "claim_id": claim_id})
    return claims[0] if claims else None


def write_slice(held: Turn, own: HeldRun, held_claim: HeldClaim, judged: RunJudgement, in_doubt: int) -> None:
    """Record what this hop showed of its Pattern's yielding, and at the end of a Run how long its hops took together (YLD-1)."""
    row = {
        "run_id": own.run_id,
        "enqueue_seq": own.enqueue_seq,
        "pattern": own.pattern,
        "pattern_revision": own.pattern_revision,
        "capability": own.capability,
        "service_class": own.service_class,
        "offered_at": held_claim.offered_at,
        "claimed_at": held_claim.claimed_at,
        "ended_at": held.at,
        "reason": judged.reason,
        "at_boundary": judged.reason is not Reason.LOST and (judged.state in TERMINAL or held_claim.checkpointed),
        "effects_left": in_doubt,
        "run_seconds": held_claim.earlier_seconds + (held.at - held_claim.offered_at).total_seconds()
        if judged.state is RunState.DONE
        else None,
    }
    insert_rows(held, slice_, [row])


OPEN_CLAIM = sql.SQL(
    """
    SELECT c.claim_id, c.enqueue_seq, c.ending, c.proof_kind, c.proof, c.note, d.created_at AS offered_at, c.claimed_at,
           EXISTS (
               SELECT FROM checkpoint k WHERE k.run_id = c.run_id AND k.enqueue_seq = c.enqueue_seq) AS checkpointed,
           coalesce((SELECT extract(epoch FROM sum(p.ended_at - p.offered_at)) FROM slice p
                     WHERE p.run_id = c.run_id), 0)::float8 AS earlier_seconds
    FROM claim c
    JOIN delivery d ON d.run_id = c.run_id AND d.enqueue_seq = c.enqueue_seq
    WHERE c.run_id = %(run_id)s AND c.claim_id = %(claim_id)s AND c.ended_at IS NULL
    """
)
