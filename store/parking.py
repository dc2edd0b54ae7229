"""Who is waited for: consent and delegates (WIN-8, IDN-3, AUT-1). The Run keeps its Invocation; its worker is released.

`ask` holds the Run's row and writes the question; the hop then ends as `parked`, and `settle` parks the Run while anybody it
asked has not answered. `answer` holds owner, Pattern revision and Run: it writes the answer, and a Run that waits for nobody
any more returns as a new fenced hop, if its authority still stands. Whichever of settle and answer comes first, the other sees
it under the same row. Nothing here moves a bound: an approval at 09:06 does not renew a finish bound of 09:10.

A crash before either commit leaves it unasked, or unanswered; after it, the row is the answer to whoever repeats.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any, Literal

from psycopg import sql
from psycopg.rows import class_row

from law.errors import BadInput
from law.finish import FinishTerms, RunJudgement, disposition_at
from law.identity import ClaimId, DecisionId, RunId, ScheduleName, digest_of
from law.reasons import Disposition, Reason, RunState
from store.connection import Pool, borrow
from store.jsonb import jsonb, plain_text
from store.locks import HeldRun, own_run
from store.run_rows import return_or_end, withdraw
from store.runs import RUN_AT, locks_of_run, objection_now, the_run
from store.turn import Turn, turn

WaitKind = Literal["consent", "delegate"]
Said = Literal["approved", "denied", "withdrawn", "answered"]

KEY_LENGTH_MAX, BY_LENGTH_MAX, NOTE_LENGTH_MAX = 200, 128, 1_000


@dataclass(frozen=True, slots=True)
class Awaited:
    """One question of a Run and its answer, if there is one. `state`: asked, approved, denied, withdrawn or answered."""

    run_id: RunId
    schedule: ScheduleName
    kind: WaitKind
    wait_key: str
    asked_of: str | None
    question: dict[str, Any]
    state: str
    asked_at: datetime
    answer: dict[str, Any] | None
    answered_at: datetime | None
    answered_by: str | None
    note: str | None


@dataclass(frozen=True, slots=True)
class Answered:
    """Where the Run stands after an answer. `changed`: whether this call gave it."""

    run_id: str
    schedule: ScheduleName
    state: str
    reason: str
    changed: bool


def ask(
    pool: Pool,
    run_id: RunId,
    claim_id: ClaimId,
    kind: WaitKind,
    key: str,
    question: Mapping[str, Any],
    asked_of: str | None,
    decision_id: DecisionId,
) -> Awaited | None:
    """Ask once, by the hop that holds the fence; asked again, it is the same question. None: the fence has moved on.

    Raises BadInput for a key that is empty or long, and UnknownRun.
    """
    check_text("key", key, KEY_LENGTH_MAX)
    digest_of(dict(question), "question")
    with turn(pool, decision_id, own_run(run_id)) as held:
        the_run(run_id, held.locked[0])
        arguments = {"run_id": run_id, "claim_id": claim_id, "kind": kind, "key": key, "at": held.at}
        known = held.rows(ASK, {**arguments, "question": jsonb(question), "asked_of": asked_of})
        if not known:
            return None
        [found] = held.records(Awaited, ONE, {"run_id": run_id, "kind": kind, "key": key})
        return found


def check_text(field: str, text: str, length_max: int) -> None:
    """A short, printable text. Raises BadInput."""
    if not text or len(text) > length_max or not text.isprintable():
        raise BadInput(field=field, reason=f"must be 1 to {length_max} printable characters")


def answer(
    pool: Pool,
    run_id: RunId,
    kind: WaitKind,
    key: str,
    said: Said,
    answered_by: str,
    note: str,
    content: Mapping[str, Any] | None,
    decision_id: DecisionId,
) -> Answered:
    """Approve, deny or withdraw a consent, or bring a delegate's answer. The same answer twice changes nothing.

    Raises UnknownRun, and BadInput for what was never asked, was answered otherwise, or cannot be taken back.
    """
    check_text("by", answered_by, BY_LENGTH_MAX)
    if len(note) > NOTE_LENGTH_MAX:
        raise BadInput(field="note", reason=f"is longer than {NOTE_LENGTH_MAX} characters")
    if content is not None:
        digest_of(dict(content), "content")
    with turn(pool, decision_id, *locks_of_run(run_id)) as held:
        own = the_run(run_id, held.locked[RUN_AT])
        if held.earlier is not None:
            return Answered(**held.earlier)
        known = held.records(Awaited, ONE, {"run_id": run_id, "kind": kind, "key": key})
        if not known:
            raise BadInput(field="key", reason=f"this Run has not asked for the {kind} {key!r}")
        if known[0].state == said:
            return Answered(str(run_id), own.schedule, own.state, "", False)
        check_follows(known[0], said)
        given = {"said": said, "by": answered_by, "note": plain_text(note) or None, "at": held.at}
        content_said = jsonb(content) if content is not None else None
        statement = WITHDRAW if said == "withdrawn" else ANSWER
        held.write(statement, {"run_id": run_id, "kind": kind, "key": key, "answer": content_said, **given})
        answered = after_answer(held, own, {"kind": kind, "key": key, "said": said, "by": answered_by})
        held.record("answer", asdict(answered))
        return answered


def check_follows(known: Awaited, said: Said) -> None:
    """An answer is given once; only an approval can be taken back. Raises BadInput."""
    lawful: dict[str, tuple[Said, ...]] = {
        "asked": ("approved", "denied") if known.kind == "consent" else ("answered",),
        "approved": ("withdrawn",),
    }
    if said not in lawful.get(known.state, ()):
        raise BadInput(field="key", reason=f"{known.kind} {known.wait_key!r} is {known.state} and cannot be {said}")


def after_answer(held: Turn, own: HeldRun, evidence: dict[str, Any]) -> Answered:
    """A Run that was parked for its answers, and has them all, returns; one whose authority is gone has failed instead."""
    if own.state != RunState.PARKED.value or own.wait_owner == "hardware" or still_waits(held, own):
        return Answered(str(own.run_id), own.schedule, own.state, "", True)
    objection = objection_now(held, own)
    if objection is not None:
        withdraw(held, own, objection, "answer")
        return Answered(str(own.run_id), own.schedule, RunState.FAILED.value, objection.reason.value, True)
    bound = disposition_at(FinishTerms(own.finish_by), Disposition(own.disposition), held.at)
    returned = RunJudgement(RunState.QUEUED, bound, Reason.ANSWERED)
    written = return_or_end(held, own, returned, "answer", evidence)
    return Answered(str(own.run_id), own.schedule, written.state.value, written.reason.value, True)


def still_waits(held: Turn, own: HeldRun) -> bool:
    """Whether somebody else has not answered yet. What this turn wrote counts."""
    [(open_questions,)] = held.rows(OPEN_QUESTIONS, {"run_id": own.run_id})
    return open_questions > 0


def awaited(pool: Pool, run_id: RunId | None = None, only_open: bool = True) -> list[Awaited]:
    """What Runs wait for, oldest first; of one Run, or of all. Raises nothing."""
    arguments = {"run_id": run_id, "only_open": only_open}
    with borrow(pool) as connection:
        return connection.cursor(row_factory=class_row(Awaited)).execute(ALL, arguments).fetchall()


ASK = sql.SQL(
    """
    WITH hop AS (
        SELECT c.enqueue_seq FROM claim c JOIN run r ON r.run_id = c.run_id AND r.enqueue_seq = c.enqueue_seq
        WHERE c.claim_id = %(claim_id)s AND c.run_id = %(run_id)s AND c.ended_at IS NULL AND r.state = 'running'
    ), asked AS (
        INSERT INTO awaited (run_id, kind, wait_key, enqueue_seq, asked_of, question, state, asked_at)
        SELECT %(run_id)s, %(kind)s, %(key)s, enqueue_seq, %(asked_of)s, %(question)s, 'asked', %(at)s FROM hop
        ON CONFLICT (run_id, kind, wait_key) DO NOTHING
    )
    SELECT enqueue_seq FROM hop
    """
)

ONE = sql.SQL(
    """
    SELECT a.run_id, s.authority || '/' || s.name AS schedule, a.kind, a.wait_key, a.asked_of, a.question, a.state,
           a.asked_at, a.answer, a.answered_at, a.answered_by, a.note
    FROM awaited a JOIN run n ON n.run_id = a.run_id JOIN schedule s ON s.schedule_id = n.schedule_id
    WHERE a.run_id = %(run_id)s AND a.kind = %(kind)s AND a.wait_key = %(key)s
    """
)

ALL = sql.SQL(
    """
    SELECT a.run_id, s.authority || '/' || s.name AS schedule, a.kind, a.wait_key, a.asked_of, a.question, a.state,
           a.asked_at, a.answer, a.answered_at, a.answered_by, a.note
    FROM awaited a JOIN run n ON n.run_id = a.run_id JOIN schedule s ON s.schedule_id = n.schedule_id
    WHERE (%(run_id)s::uuid IS NULL OR a.run_id = %(run_id)s) AND (NOT %(only_open)s OR a.state = 'asked')
    ORDER BY a.asked_at, a.run_id, a.wait_key
    """
)

ANSWER = sql.SQL(
    """
    UPDATE awaited SET state = %(said)s, answer = %(answer)s, answered_at = %(at)s, answered_by = %(by)s, note = %(note)s
    WHERE run_id = %(run_id)s AND kind = %(kind)s AND wait_key = %(key)s AND state = 'asked'
    """
)

WITHDRAW = sql.SQL(
    """
    UPDATE awaited SET state = 'withdrawn', withdrawn_at = %(at)s, withdrawn_by = %(by)s, note = coalesce(%(note)s, note)
    WHERE run_id = %(run_id)s AND kind = %(kind)s AND wait_key = %(key)s AND state = 'approved'
    """
)

OPEN_QUESTIONS = sql.SQL("SELECT count(*) FROM awaited WHERE run_id = %(run_id)s AND state = 'asked'")
