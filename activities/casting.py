"""The Casting: what a Pattern sees, joined to the store (FIN-2, IDN-2, IDN-3).

Each call of a Pattern is one commit, before anything happens outside. When the fence has moved on, every further call is
refused, so that a worker that was taken for dead cannot act beside its successor.
"""

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, ParamSpec, TypeVar
from uuid import uuid4

from activities.border import patiently
from law.identity import ClaimId, DecisionId, StationAttemptId, digest_of
from law.pattern import (
    Answer,
    Awaits,
    ConsentDenied,
    DidNotHappen,
    EffectRefused,
    Json,
    Lease,
    Pattern,
    Workplace,
)
from law.reasons import Reason
from store import budgets, checkpoints, effects, parking
from store.connection import Pool
from store.errors import StoreProblem
from store.runs import Work

P = ParamSpec("P")
AnswerT = TypeVar("AnswerT")


class StoreCasting:
    """One hop of one Run, as its Pattern sees it. See `law.pattern.Casting`."""

    def __init__(self, pool: Pool, claim_id: ClaimId, work: Work, workplace: Workplace) -> None:
        self._pool = pool
        self.claim_id = claim_id
        self._work = work
        self._workplace = workplace
        self.fence_lost = False
        self.checkpoint_schema = ""
        """The shape of the checkpoints of whichever Pattern is carried."""
        self.store_problem: StoreProblem | None = None
        """Why the store could not be asked: whatever a Pattern makes of it, this hop has nothing to report."""

    @property
    def schedule(self) -> str:
        return self._work.schedule

    @property
    def run_id(self) -> str:
        return str(self._work.run_id)

    @property
    def trigger_occurrence_id(self) -> str:
        return self._work.trigger_occurrence_id

    @property
    def nominal_civil(self) -> str:
        return self._work.nominal_civil

    @property
    def workplace(self) -> Workplace:
        return self._workplace

    @property
    def checkpoint_state(self) -> Mapping[str, Json] | None:
        return self._work.checkpoint_state

    @property
    def finish_by(self) -> datetime | None:
        return self._work.finish_by

    @property
    def lease(self) -> Lease | None:
        work = self._work
        return Lease(work.capability, work.units) if work.capability is not None and work.units is not None else None

    @property
    def budget(self) -> Mapping[str, float]:
        return self.ask(budgets.left, self._pool, self._work.run_id)

    def effect(
        self,
        kind: str,
        key: str,
        act: Callable[[], Mapping[str, Json]],
        *,
        consent: str = "",
        cost: Mapping[str, float] | None = None,
    ) -> Mapping[str, Json]:
        """Admit, perform, record. What `act` raises is recorded first and then raised again; so is a result that JSON
        cannot carry (BadInput): what happened outside is then in doubt."""
        attempt = StationAttemptId(uuid4())
        answer = self.admit(attempt, kind, key, consent, cost)
        if isinstance(answer, effects.AlreadyDone):
            return answer.result
        if isinstance(answer, effects.Refused):
            raise EffectRefused(answer.reason)
        try:
            result = act()
            digest_of(dict(result), "result")
        except DidNotHappen as problem:
            self.ask(effects.record, self._pool, attempt, "failed", None, str(problem))
            raise
        except BaseException as problem:
            self.ask(effects.record, self._pool, attempt, "unknown", None, f"{type(problem).__name__}: {problem}")
            raise
        self.ask(effects.record, self._pool, attempt, "succeeded", result, "")
        return result

    def admit(
        self, attempt: StationAttemptId, kind: str, key: str, consent: str = "", cost: Mapping[str, float] | None = None
    ) -> effects.Begin | effects.AlreadyDone | effects.Refused:
        """Ask the office; a worker that knows its fence is lost need not ask."""
        if self.fence_lost:
            return effects.Refused(Reason.STALE_DELIVERY.value)
        asked = (self._pool, self._work.run_id, self.claim_id, attempt, kind, key, consent, cost)
        return self.ask(effects.admit, *asked)

    def await_consent(self, key: str, question: str) -> Answer:
        """The consent, if it was given; otherwise this hop ends here."""
        found = self.ask_somebody("consent", key, {"question": question}, None)
        if found.state == "denied":
            raise ConsentDenied(key, found.note or "")
        if found.state == "withdrawn":
            raise EffectRefused(Reason.CONSENT_WITHDRAWN.value)
        return answer_of(found)

    def delegate(self, key: str, to: str, request: Mapping[str, Json]) -> Answer:
        """The delegate's answer, if it came; otherwise this hop ends here."""
        return answer_of(self.ask_somebody("delegate", key, request, to))

    def ask_somebody(
        self, kind: parking.WaitKind, key: str, question: Mapping[str, Json], asked_of: str | None
    ) -> parking.Awaited:
        """Ask once. Raises Awaits while there is no answer."""
        work = self._work
        asked = (self._pool, work.run_id, self.claim_id, kind, key, question, asked_of, DecisionId(uuid4()))
        found = None if self.fence_lost else self.ask(parking.ask, *asked)
        if found is None:
            raise EffectRefused(Reason.STALE_DELIVERY.value)
        if found.state == "asked":
            raise Awaits(key)
        return found

    def checkpoint(self, state: Mapping[str, Json]) -> None:
        """Make `state` the point of return."""
        saved = (self._pool, self._work.run_id, self.claim_id, state, self.checkpoint_schema or None)
        if self.fence_lost or not self.ask(checkpoints.save, *saved):
            raise EffectRefused(Reason.STALE_DELIVERY.value)

    def ask(self, question: Callable[P, AnswerT], *arguments: P.args, **named: P.kwargs) -> AnswerT:
        """Ask the store patiently; remember that it could not be asked. Raises StoreProblem."""
        try:
            return patiently(question, *arguments, **named)
        except StoreProblem as problem:
            self.store_problem = problem
            raise


def answer_of(found: parking.Awaited) -> Answer:
    """An answer as a Pattern sees it."""
    assert found.answered_by is not None and found.answered_at is not None
    return Answer(found.answered_by, found.answered_at, found.note or "", found.answer or {})


def checkpoint_wanting(work: Work, pattern: Pattern[Any]) -> Reason | None:
    """Why this hop has nothing to return to, or None: its checkpoint was altered, has another shape, or is missing where its
    Pattern cannot begin again (IDN-3)."""
    if work.checkpoint_state is None:
        lost = work.enqueue_seq > 0 and not pattern.returns_to_checkpoint
        return Reason.CHECKPOINT_MISSING if lost else None
    altered = digest_of(work.checkpoint_state) != work.checkpoint_digest
    other = (work.checkpoint_schema or "") != pattern.checkpoint_schema
    return Reason.CHECKPOINT_STALE if altered or other else None
