"""Checkpoints: the points to which an Invocation may return (IDN-3). Append-only; the newest is the one that counts.

Held by the Run's row, so that a claim that lost its fence cannot move the point of return. A crash before the commit
leaves the earlier point.
"""

from collections.abc import Mapping
from typing import Any
from uuid import uuid4

from psycopg import sql

from law.identity import ClaimId, DecisionId, RunId, digest_of
from store.connection import Pool
from store.jsonb import jsonb
from store.locks import own_run
from store.turn import turn


def save(pool: Pool, run_id: RunId, claim_id: ClaimId, state: Mapping[str, Any], schema_id: str | None = None) -> bool:
    """Make `state` (JSON) the newest checkpoint, under the schema that its Pattern names. False when this claim no longer
    holds its hop; then nothing is saved."""
    saved = {"state": jsonb(state), "digest": digest_of(dict(state)), "schema_id": schema_id}
    arguments = {"run_id": run_id, "claim_id": claim_id, **saved}
    with turn(pool, DecisionId(uuid4()), own_run(run_id)) as held:
        return bool(held.rows(SAVE, {**arguments, "at": held.at}))


SAVE = sql.SQL(
    """
    INSERT INTO checkpoint (run_id, checkpoint_seq, enqueue_seq, digest, schema_id, state,
                            saved_at)
    SELECT c.run_id, 1 + (SELECT count(*) FROM checkpoint k WHERE k.run_id = c.run_id), c.enqueue_seq,
           %(digest)s, %(schema_id)s, %(state)s, %(at)s
    FROM claim c JOIN run r ON r.run_id = c.run_id AND r.enqueue_seq = c.enqueue_seq
    WHERE c.claim_id = %(claim_id)s AND c.run_id = %(run_id)s AND c.ended_at IS NULL AND r.state = 'running'
    RETURNING checkpoint_seq
    """
)
