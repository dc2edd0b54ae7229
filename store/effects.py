"""Effects: admitted in a transaction before they begin, recorded after they end, never repeated in doubt (FIN-2, IDN-5).

`admit` holds the Run's row after the owner and the Pattern revision behind it, samples, and checks fence, finish bound and
authority before anything happens outside. A crash before its commit leaves nothing begun. A crash after it, before
`record`, leaves an effect whose result nobody knows: it is in doubt, and holds its Run for the operator.

Who must not begin an effect is told so by value and not by exception, since an expiry that was noticed here is committed
here: every effect checks the bound itself, and no expiry callback is relied on.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from psycopg import sql

from law.budget import check_units, over
from law.finish import FinishTerms, disposition_at
from law.identity import ClaimId, DecisionId, RunId, StationAttemptId
from law.reasons import Disposition, Reason
from store.budgets import of_run
from store.connection import Pool, borrow
from store.jsonb import jsonb, plain_text
from store.locks import HeldRun
from store.rows import insert_rows
from store.runs import RUN_AT, locks_of_run, objection_now
from store.tables import effect
from store.turn import Turn, turn

EffectEnding = Literal["succeeded", "failed", "unknown"]


@dataclass(frozen=True, slots=True)
class Begin:
    """The effect is admitted: perform it, then record what became of it."""


@dataclass(frozen=True, slots=True)
class AlreadyDone:
    """This effect succeeded earlier in this Invocation; here is its recorded result."""

    result: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Refused:
    """The effect is not admitted, for this reason code."""

    reason: str


@dataclass(frozen=True, slots=True)
class KnownEffect:
    """An effect of this name that this Run has already begun."""

    station_attempt_id: StationAttemptId
    state: str
    result: dict[str, Any] | None
    finding: str | None
    """What an operator found out, where it was in doubt."""


def admit(
    pool: Pool,
    run_id: RunId,
    claim_id: ClaimId,
    station_attempt_id: StationAttemptId,
    kind: str,
    key: str,
    consent: str = "",
    cost: Mapping[str, float] | None = None,
) -> Begin | AlreadyDone | Refused:
    """Ask to begin one effect, named by `kind` and `key` within its Run; `consent` names the consent without which it may
    not begin, `cost` what it spends of what its Run has reserved. Asked again with the same `station_attempt_id` by
    one that has not begun, it gives the same answer, unless bound or authority have passed since: then it never begins."""
    with turn(pool, DecisionId(station_attempt_id), *locks_of_run(run_id)) as held:
        runs = held.locked[RUN_AT]
        if runs and runs[0].cancelling:
            return Refused(Reason.CANCEL_REQUESTED.value)
        if not runs or not held.rows(HOLDS_THE_FENCE, {"run_id": run_id, "claim_id": claim_id}):
            return Refused(Reason.STALE_DELIVERY.value)
        own: HeldRun = runs[0]
        known = held.records(KnownEffect, KNOWN, {"run_id": run_id, "kind": kind, "key": key})
        asks_again = any(one.station_attempt_id == station_attempt_id and one.state == "admitted" for one in known)
        if known and not asks_again:
            return answer_known(known[0])
        objection = (
            object_now(held, own, kind) or consent_wanting(held, own, consent) or budget_wanting(held, own, cost)
        )
        if objection is not None:
            held.write(
                NEVER_BEGUN, {"station_attempt_id": station_attempt_id, "reason": objection.reason, "at": held.at}
            )
            return objection
        if not asks_again:
            begin(
                held,
                own,
                claim_id,
                station_attempt_id,
                kind,
                key,
                {"consent_key": consent or None, "cost": cost or None},
            )
        return Begin()


def answer_known(known: KnownEffect) -> AlreadyDone | Refused:
    """An effect that was begun is begun once: its result, or the doubt about it, is the answer."""
    if known.state == "succeeded" or known.finding == "happened":
        return AlreadyDone(known.result or {})
    return Refused(Reason.EFFECT_IN_DOUBT.value)


def object_now(held: Turn, own: HeldRun, kind: str) -> Refused | None:
    """Why nothing may begin at this sample, or None: also for one whose admission was committed and its reply lost, since
    who asks again has not begun."""
    if disposition_at(FinishTerms(own.finish_by), Disposition(own.disposition), held.at) is Disposition.UNMET:
        held.write(BOUND_IS_UNMET, {"run_id": own.run_id})
        return Refused(Reason.FINISH_BOUND_PASSED.value)
    verdict = objection_now(held, own, f"effect:{kind}")
    return Refused(verdict.reason.value) if verdict is not None else None


def consent_wanting(held: Turn, own: HeldRun, consent: str) -> Refused | None:
    """Why the consent that this effect needs does not let it begin, or None (AUT-1)."""
    if not consent:
        return None
    rows = held.rows(CONSENT, {"run_id": own.run_id, "key": consent})
    state = rows[0][0] if rows else "never asked"
    if state == "approved":
        return None
    return Refused((Reason.CONSENT_WITHDRAWN if state == "withdrawn" else Reason.CONSENT_MISSING).value)


def budget_wanting(held: Turn, own: HeldRun, cost: Mapping[str, float] | None) -> Refused | None:
    """Why what is left of the Run's budget does not let it begin, or None (AUT-4)."""
    if not cost:
        return None
    check_units("cost", cost)
    reserved, spent = of_run(held, own.run_id)
    return Refused(Reason.BUDGET_SPENT.value) if over(reserved, spent, cost) else None


def begin(
    held: Turn,
    own: HeldRun,
    claim_id: ClaimId,
    station_attempt_id: StationAttemptId,
    kind: str,
    key: str,
    terms: Mapping[str, Any],
) -> None:
    """Write that it begins."""
    row = {
        "station_attempt_id": station_attempt_id,
        "run_id": own.run_id,
        "enqueue_seq": own.enqueue_seq,
        "claim_id": claim_id,
        "kind": kind,
        "effect_key": key,
        "state": "admitted",
        "admitted_at": held.at,
        **terms,
    }
    insert_rows(held, effect, [row])


def record(
    pool: Pool, station_attempt_id: StationAttemptId, ending: EffectEnding, result: Mapping[str, Any] | None, note: str
) -> None:
    """Record what became of an effect that was begun. The first record stands. A late one, from a worker that was taken for
    dead, ends the doubt about its effect and nothing else: no Run is settled by it, and none is reopened (FIN-4)."""
    arguments = {"station_attempt_id": station_attempt_id, "ending": ending, "note": plain_text(note) or None}
    with borrow(pool) as connection:
        connection.execute(RECORD, {**arguments, "result": jsonb(result) if result is not None else None})


HOLDS_THE_FENCE = sql.SQL(
    """
    SELECT c.claim_id FROM claim c JOIN run r ON r.run_id = c.run_id AND r.enqueue_seq = c.enqueue_seq
    WHERE c.claim_id = %(claim_id)s AND c.run_id = %(run_id)s AND c.ended_at IS NULL AND r.state = 'running'
    """
)

KNOWN = sql.SQL(
    """
    SELECT station_attempt_id, state, result, finding FROM effect
    WHERE run_id = %(run_id)s AND kind = %(kind)s AND effect_key = %(key)s
      AND (state IN ('admitted', 'succeeded', 'unknown', 'contained') OR finding IN ('happened', 'compensated'))
    """
)

CONSENT = sql.SQL("SELECT state FROM awaited WHERE run_id = %(run_id)s AND kind = 'consent' AND wait_key = %(key)s")

BOUND_IS_UNMET = sql.SQL("UPDATE run SET disposition = 'unmet' WHERE run_id = %(run_id)s AND disposition = 'open'")

NEVER_BEGUN = sql.SQL(
    """
    UPDATE effect SET state = 'failed', note = 'never begun: ' || %(reason)s, recorded_at = %(at)s
    WHERE station_attempt_id = %(station_attempt_id)s AND state = 'admitted'
    """
)

RECORD = sql.SQL(
    """
    UPDATE effect SET state = %(ending)s, result = %(result)s, note = %(note)s, recorded_at = trusted_now()
    WHERE station_attempt_id = %(station_attempt_id)s
      AND (state = 'admitted' OR (state IN ('unknown', 'contained')
                                  AND %(ending)s IN ('succeeded', 'failed')))
    """
)
