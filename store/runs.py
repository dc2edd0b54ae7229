"""Runs: claimed through a fence, performed elsewhere, settled here (IDN-1..3, IDN-5, FIN-1..4, AUT-1).

`claim` and `settle` hold the Run's row, after the owner and the Pattern revision behind it; each samples after its locks.

A crash before the claim commits leaves the delivery to be claimed; after it, the hop is this claim's until it is settled
or found lost. A crash before the settle commits leaves a claim that no longer beats: whoever settles the same hop then,
with a report or without one, judges what was left, and returns, contains or fails the Run. A settled Run is never touched
again, and a claim that lost its fence can neither act nor settle.
"""

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

from psycopg import sql
from psycopg.rows import class_row

from law.authority import Credentials, judge_authority, scopes_of
from law.errors import UnknownRun
from law.fence import judge_claim
from law.finish import (
    EndingName,
    FinishTerms,
    Report,
    RunJudgement,
    WaitOwner,
    judge_cancelling,
    judge_ending,
    judge_lost,
)
from law.identity import ClaimId, DecisionId, Digest, EnqueueSeq, RunId, ScheduleName
from law.reasons import Disposition, Reason, RunState
from law.verdict import Verdict
from law.yielding import after_hop
from store.connection import Pool, borrow
from store.jsonb import jsonb, plain_text
from store.locks import (
    HeldOwner,
    HeldPattern,
    HeldRun,
    HeldSigil,
    as_sigil,
    own_run,
    owner_of_run,
    pattern_of_run,
    sigil_of_run,
)
from store.rows import insert_rows
from store.run_rows import offer_next_hop, record_decision, withdraw, write_run
from store.slices import HeldClaim, open_claim, write_slice
from store.tables import claim as claim_table
from store.turn import Lock, Turn, turn

RUN_AT = 3
"""Where `locks_of_run` leaves the Run."""

ProofValidator = Callable[[str, Mapping[str, Any]], str]
"""(proof kind, content) → '' when the proof holds, otherwise what is wrong with it. Pure."""


@dataclass(frozen=True, slots=True)
class Claimed:
    """Whether the fence let this hop in, and why not."""

    granted: bool
    reason: str


@dataclass(frozen=True, slots=True)
class Settled:
    """Where the Run stands after this hop. `reason` is `stale_delivery` when the hop was no longer this claim's."""

    run_id: str
    schedule: ScheduleName
    state: str
    disposition: str
    reason: str


@dataclass(frozen=True, slots=True)
class Work:
    """What a claimed hop is to do."""

    schedule: ScheduleName
    trigger_occurrence_id: str
    run_id: RunId
    enqueue_seq: EnqueueSeq
    pattern: str
    pattern_revision: str
    pattern_digest: Digest
    input: dict[str, Any]
    checkpoint_state: dict[str, Any] | None
    checkpoint_digest: Digest | None
    checkpoint_schema: str | None
    nominal_civil: str
    finish_by: datetime | None
    capability: str | None
    units: int | None


def claim(pool: Pool, run_id: RunId, enqueue_seq: EnqueueSeq, claim_id: ClaimId, worker: str) -> Claimed:
    """Take one hop of a Run through its fence. The same `claim_id` gets the same answer. Raises UnknownRun.

    Authority is judged again: a Run whose owner or Pattern was revoked since admission is failed with that reason.
    """
    with turn(pool, DecisionId(claim_id), *locks_of_run(run_id)) as held:
        if held.earlier is not None:
            return Claimed(**held.earlier)
        own = the_run(run_id, held.locked[RUN_AT])
        earlier = held.rows(HOP_CLAIMED, {"run_id": run_id, "enqueue_seq": enqueue_seq})
        reason = judge_claim(RunState(own.state), own.enqueue_seq, enqueue_seq, bool(earlier))
        if reason is not Reason.CLAIMED:
            return Claimed(False, reason.value)
        objection = objection_now(held, own)
        if objection is not None:
            withdraw(held, own, objection, "claim")
            return remember(held, "claim", Claimed(False, objection.reason.value))
        take_hop(held, own, claim_id, worker)
        return remember(held, "claim", Claimed(True, reason.value))


def the_run(run_id: RunId, runs: list[HeldRun]) -> HeldRun:
    """The Run that was locked, or UnknownRun."""
    if not runs:
        raise UnknownRun(run_id=run_id)
    return runs[0]


def locks_of_run(run_id: RunId) -> tuple[Lock, ...]:
    """What every act on a Run holds that needs its authority: owner, Sigil, Pattern revision, and the Run itself."""
    return owner_of_run(run_id), sigil_of_run(run_id), pattern_of_run(run_id), own_run(run_id)


def objection_now(held: Turn, own: HeldRun, *scopes: str) -> Verdict | None:
    """Why a Run's authority does not let it go on at this sample, or None; `scopes` are what this very act needs beside what
    the Run needs (AUT-1). Its ceilings were reserved at admission and are not asked again."""
    owners: list[HeldOwner] = held.locked[0]
    sigils: list[HeldSigil] = held.locked[1]
    patterns: list[HeldPattern] = held.locked[2]
    stands = Credentials(
        owner=own.owner,
        owner_standing=owners[0].standing if owners else None,
        pattern=own.pattern,
        pattern_standing=patterns[0].standing if patterns else None,
        pattern_digest=patterns[0].digest if patterns else None,
        pinned_digest=own.pinned_digest,
        sigil_named=own.sigil,
        sigil=as_sigil(sigils[0]) if sigils else None,
        needs=(*scopes_of(own.pattern, own.service_class, own.capability), *scopes),
    )
    return judge_authority(stands, held.at)


def take_hop(held: Turn, own: HeldRun, claim_id: ClaimId, worker: str) -> None:
    """Write the claim: the hop is this worker's until it is settled or found lost."""
    hop = {"run_id": own.run_id, "enqueue_seq": own.enqueue_seq}
    row = {"claim_id": claim_id, **hop, "worker": worker, "claimed_at": held.at, "heartbeat_at": held.at}
    insert_rows(held, claim_table, [row])
    held.write(RUN_IS_RUNNING, {"run_id": own.run_id})
    held.write(HOP_IS_CLAIMED, hop)
    record_decision(held, own, "claim", RunState.RUNNING, Reason.CLAIMED, {"worker": worker, "claim_id": claim_id})


def remember(held: Turn, act: str, claimed: Claimed) -> Claimed:
    """Leave the answer under the claim's id."""
    held.record(act, asdict(claimed))
    return claimed


def work(pool: Pool, claim_id: ClaimId) -> Work:
    """What this claim's hop is to do, read from the rows. Raises UnknownRun when there is no such claim."""
    with borrow(pool) as connection:
        row = connection.cursor(row_factory=class_row(Work)).execute(WORK, {"claim_id": claim_id}).fetchone()
    if row is None:
        raise UnknownRun(run_id=f"claimed as {claim_id}")
    return row


def heartbeat(pool: Pool, claim_id: ClaimId) -> bool:
    """Say that this claim's worker lives. False: the fence has moved on and the worker should stop."""
    with borrow(pool) as connection:
        return connection.execute(HEARTBEAT, {"claim_id": claim_id}).fetchone() is not None


def report(
    pool: Pool,
    claim_id: ClaimId,
    ending: EndingName,
    proof_kind: str | None,
    proof: Mapping[str, Any] | None,
    note: str,
) -> bool:
    """Keep how the Pattern says it ended, to be judged by `settle`. It proves nothing (FIN-1). The first report stands;
    False when this claim no longer holds its hop."""
    arguments = {"claim_id": claim_id, "ending": ending, "proof_kind": proof_kind, "note": plain_text(note)}
    with borrow(pool) as connection:
        reported = connection.execute(REPORT, {**arguments, "proof": jsonb(proof) if proof is not None else None})
        return reported.fetchone() is not None


def settle(
    pool: Pool,
    run_id: RunId,
    enqueue_seq: EnqueueSeq,
    claim_id: ClaimId,
    decision_id: DecisionId,
    validate: ProofValidator,
    may_return: bool,
) -> Settled:
    """Judge one hop's end and write it: terminal, contained, queued again behind a new fence, or parked until its capability
    has room for the next slice. Whatever it is, the hop's lease is released with it (YLD-1, YLD-5).

    With a report its ending is judged, and its proof by `validate` at the sample; without one the worker is lost, and
    `may_return` says whether the Pattern permits a return. The same `decision_id` gets the same answer. Raises UnknownRun.
    """
    with turn(pool, decision_id, own_run(run_id)) as held:
        own = the_run(run_id, held.locked[0])
        if held.earlier is not None:
            return Settled(**held.earlier)
        hop = open_claim(held, run_id, claim_id)
        if hop is None or hop.enqueue_seq != enqueue_seq or own.enqueue_seq != enqueue_seq:
            return Settled(str(run_id), own.schedule, own.state, own.disposition, Reason.STALE_DELIVERY.value)
        [(in_doubt,)] = held.rows(EFFECTS_IN_DOUBT, {"run_id": run_id})
        ended = judge_hop(held, own, hop, in_doubt, validate, may_return)
        judged = after_hop(judge_cancelling(ended) if own.cancelling else ended, own.capability, own.service_class)
        write_slice(held, own, hop, judged, in_doubt)
        end_claim(held, own, hop, judged)
        settled = Settled(str(run_id), own.schedule, judged.state.value, judged.disposition.value, judged.reason.value)
        held.record("settle", asdict(settled))
        return settled


def judge_hop(
    held: Turn, own: HeldRun, held_claim: HeldClaim, in_doubt: int, validate: ProofValidator, may_return: bool
) -> RunJudgement:
    """Ask the law what this hop's end means."""
    terms = FinishTerms(own.finish_by, own.finish_proof)
    earlier = Disposition(own.disposition)
    if held_claim.ending is None:
        return judge_lost(terms, earlier, in_doubt, may_return, own.lost_hops, held.at)
    problem = ""
    if held_claim.proof_kind is not None and held_claim.proof is not None:
        problem = validate(held_claim.proof_kind, held_claim.proof)
    refusal = (held_claim.note or "") if held_claim.ending == "refused" else ""
    waits_for = first_awaited(held, own) if held_claim.ending == "parked" else None
    brought = Report(held_claim.ending, held_claim.proof_kind, problem, refusal, waits_for)
    return judge_ending(brought, terms, earlier, in_doubt, held.at)


def first_awaited(held: Turn, own: HeldRun) -> WaitOwner | None:
    """Who has not answered this Run yet; None where everybody has, between its asking and its hop's end."""
    rows = held.rows(FIRST_AWAITED, {"run_id": own.run_id})
    return rows[0][0] if rows else None


def end_claim(held: Turn, own: HeldRun, held_claim: HeldClaim, judged: RunJudgement) -> None:
    """Write the judgement: the claim ends, the delivery closes, and the Run settles, is held, or offers its next hop."""
    hop = {"run_id": own.run_id, "enqueue_seq": own.enqueue_seq}
    held.write(END_CLAIM, {"claim_id": held_claim.claim_id, "at": held.at})
    held.write(CLOSE_DELIVERY, hop)
    held.write(EFFECTS_UNKNOWN, {"run_id": own.run_id, "at": held.at})
    if judged.state is RunState.CONTAINED:
        held.write(EFFECTS_CONTAINED, {"run_id": own.run_id})
    proof = held_claim.proof if judged.state is RunState.DONE else None
    write_run(held, own, judged, proof)
    evidence = {
        "claim_id": held_claim.claim_id,
        "ending": held_claim.ending,
        "note": held_claim.note,
        "finish_by": own.finish_by,
        "disposition": judged.disposition,
    }
    known = {name: value for name, value in evidence.items() if value not in (None, "")}
    record_decision(held, own, "settle", judged.state, judged.reason, known)
    if judged.state is RunState.QUEUED:
        offer_next_hop(held, own)


HOP_CLAIMED = sql.SQL("SELECT claim_id FROM claim WHERE run_id = %(run_id)s AND enqueue_seq = %(enqueue_seq)s")

RUN_IS_RUNNING = sql.SQL("UPDATE run SET state = 'running' WHERE run_id = %(run_id)s")

HOP_IS_CLAIMED = sql.SQL(
    "UPDATE delivery SET state = 'CLAIMED' WHERE run_id = %(run_id)s AND enqueue_seq = %(enqueue_seq)s"
)

WORK = sql.SQL(
    """
    SELECT s.authority || '/' || s.name AS schedule, o.trigger_occurrence_id::text AS trigger_occurrence_id,
           c.run_id, c.enqueue_seq, o.pattern, o.pattern_revision, o.pattern_digest, coalesce(i.input, o.input) AS input,
           k.state AS checkpoint_state, k.digest AS checkpoint_digest, k.schema_id AS checkpoint_schema,
           l.capability, l.units,
           coalesce(to_char(o.civil, 'YYYY-MM-DD"T"HH24:MI:SS'), '') AS nominal_civil, o.finish_by
    FROM claim c
    JOIN run r ON r.run_id = c.run_id
    JOIN occurrence o ON o.trigger_occurrence_id = r.trigger_occurrence_id
    JOIN invocation i ON i.invocation_id = r.invocation_id
    JOIN schedule s ON s.schedule_id = r.schedule_id
    LEFT JOIN LATERAL (
        SELECT state, digest, schema_id FROM checkpoint k WHERE k.run_id = c.run_id ORDER BY checkpoint_seq DESC LIMIT 1
    ) k ON true
    LEFT JOIN lease l ON l.run_id = c.run_id AND l.enqueue_seq = c.enqueue_seq
    WHERE c.claim_id = %(claim_id)s
    """
)

HEARTBEAT = sql.SQL(
    """
    UPDATE claim SET heartbeat_at = trusted_now()
    WHERE claim_id = %(claim_id)s AND ended_at IS NULL
    RETURNING claim_id
    """
)

REPORT = sql.SQL(
    """
    UPDATE claim SET
        ending = coalesce(ending, %(ending)s), reported_at = coalesce(reported_at, trusted_now()),
        proof_kind = CASE WHEN ending IS NULL THEN %(proof_kind)s ELSE proof_kind END,
        proof = CASE WHEN ending IS NULL THEN %(proof)s ELSE proof END,
        note = CASE WHEN ending IS NULL THEN %(note)s ELSE note END
    WHERE claim_id = %(claim_id)s AND ended_at IS NULL
    RETURNING claim_id
    """
)

EFFECTS_IN_DOUBT = sql.SQL(
    "SELECT count(*) FROM effect WHERE run_id = %(run_id)s AND state IN ('admitted', 'unknown', 'contained')"
)

END_CLAIM = sql.SQL("UPDATE claim SET ended_at = %(at)s WHERE claim_id = %(claim_id)s")

CLOSE_DELIVERY = sql.SQL(
    "UPDATE delivery SET state = 'CLOSED' WHERE run_id = %(run_id)s AND enqueue_seq = %(enqueue_seq)s"
)

EFFECTS_UNKNOWN = sql.SQL(
    """
    UPDATE effect SET state = 'unknown', recorded_at = %(at)s, note = 'its worker never reported a result'
    WHERE run_id = %(run_id)s AND state = 'admitted'
    """
)

EFFECTS_CONTAINED = sql.SQL("UPDATE effect SET state = 'contained' WHERE run_id = %(run_id)s AND state = 'unknown'")

FIRST_AWAITED = sql.SQL(
    "SELECT kind FROM awaited WHERE run_id = %(run_id)s AND state = 'asked' ORDER BY asked_at, wait_key LIMIT 1"
)
