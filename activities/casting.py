"""The Casting: what a Pattern sees, joined to the store (FIN-2, IDN-2, IDN-3).

Each call of a Pattern is one commit, before anything happens outside. When the fence has moved on, every further call is
refused, so that a worker that was taken for dead cannot act beside its successor.
"""

from collections.abc import Callable, Mapping
from typing import ParamSpec, TypeVar
from uuid import uuid4

from activities.border import patiently
from law.identity import ClaimId, StationAttemptId, digest_of
from law.pattern import DidNotHappen, EffectRefused, Json, Workplace
from law.reasons import Reason
from store import checkpoints, effects
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

    def effect(self, kind: str, key: str, act: Callable[[], Mapping[str, Json]]) -> Mapping[str, Json]:
        """Admit, perform, record. What `act` raises is recorded first and then raised again; so is a result that JSON
        cannot carry (BadInput): what happened outside is then in doubt."""
        attempt = StationAttemptId(uuid4())
        answer = self.admit(attempt, kind, key)
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
        self, attempt: StationAttemptId, kind: str, key: str
    ) -> effects.Begin | effects.AlreadyDone | effects.Refused:
        """Ask the office; a worker that knows its fence is lost need not ask."""
        if self.fence_lost:
            return effects.Refused(Reason.STALE_DELIVERY.value)
        return self.ask(effects.admit, self._pool, self._work.run_id, self.claim_id, attempt, kind, key)

    def checkpoint(self, state: Mapping[str, Json]) -> None:
        """Make `state` the point of return."""
        if self.fence_lost or not self.ask(checkpoints.save, self._pool, self._work.run_id, self.claim_id, state):
            raise EffectRefused(Reason.STALE_DELIVERY.value)

    def ask(self, question: Callable[P, AnswerT], *arguments: P.args, **named: P.kwargs) -> AnswerT:
        """Ask the store patiently; remember that it could not be asked. Raises StoreProblem."""
        try:
            return patiently(question, *arguments, **named)
        except StoreProblem as problem:
            self.store_problem = problem
            raise
