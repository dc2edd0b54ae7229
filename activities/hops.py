"""One hop: claimed, carried, settled. The claim and the settle are one commit each; carrying is the Pattern's own work."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from concurrent.futures import Executor
from contextlib import asynccontextmanager, suppress
from typing import Any
from uuid import UUID

from pydantic import ValidationError
from temporalio import activity
from temporalio.exceptions import ApplicationError

from activities.border import ask, patiently
from activities.casting import StoreCasting, checkpoint_wanting
from law.finish import EndingName
from law.identity import ClaimId, DecisionId, EnqueueSeq, RunId
from law.pattern import Awaits, Casting, Done, EffectRefused, Ending, Failed, Pattern, Proof, Workplace, Yielded
from store import runs
from store.connection import Pool
from workflows import asks

BEAT_SECONDS = 1.0
NOTE_LENGTH_MAX = 2_000

Catalogue = Mapping[tuple[str, str], Pattern[Any]]
"""Installed Patterns by key and revision."""


class HopActivities:
    """Answers for one delivery hop."""

    def __init__(
        self, pool: Pool, threads: Executor, carriers: Executor, patterns: Catalogue, workplace: Workplace, worker: str
    ) -> None:
        self._pool = pool
        self._threads = threads
        self._carriers = carriers
        self._patterns = patterns
        self._workplace = workplace
        self._worker = worker

    @activity.defn
    async def claim(self, question: asks.ClaimAsk) -> asks.Claimed:
        """Take a Run's hop through its fence."""
        claimed = await ask(
            self._threads,
            runs.claim,
            self._pool,
            RunId(UUID(question.run_id)),
            EnqueueSeq(question.enqueue_seq),
            ClaimId(UUID(question.claim_id)),
            self._worker,
        )
        return asks.Claimed(claimed.granted, claimed.reason)

    @activity.defn
    async def perform(self, question: asks.PerformAsk) -> asks.Performed:
        """Carry the Pattern for one hop, beating while it works."""
        claim_id = ClaimId(UUID(question.claim_id))
        work = await ask(self._threads, patiently, runs.work, self._pool, claim_id)
        casting = StoreCasting(self._pool, claim_id, work, self._workplace)
        async with self.beating(casting, claim_id):
            carried = asyncio.get_running_loop().run_in_executor(self._carriers, self.carry, casting, work)
            ending, proof, note = await carried
            kind, content = (proof.kind, dict(proof.content)) if proof else (None, None)
            report = (runs.report, self._pool, claim_id, ending, kind, content, note[:NOTE_LENGTH_MAX])
            await ask(self._threads, patiently, *report)
        return asks.Performed(ending)

    @asynccontextmanager
    async def beating(self, casting: StoreCasting, claim_id: ClaimId) -> AsyncIterator[None]:
        """Meanwhile Temporal and the store hear that this worker lives, each for itself: one may be away for a while."""
        beats = [asyncio.create_task(beat) for beat in (beat_temporal(), self.beat_store(casting, claim_id))]
        try:
            yield
        finally:
            for beat in beats:
                beat.cancel()
            await asyncio.gather(*beats, return_exceptions=True)

    async def beat_store(self, casting: StoreCasting, claim_id: ClaimId) -> None:
        """Renew the claim, and notice that its fence has moved on."""
        while True:
            with suppress(ApplicationError):
                casting.fence_lost = not await ask(self._threads, runs.heartbeat, self._pool, claim_id)
            await asyncio.sleep(BEAT_SECONDS)

    def carry(self, casting: StoreCasting, work: runs.Work) -> tuple[EndingName, Proof | None, str]:
        """Run the Pattern's code and name its ending. A Pattern that raises has failed; what it began is in the rows. When
        the store was away for too long, there is nobody to report to: the hop is lost, and judged by what it left."""
        ending = self.carry_out(casting, work)
        if casting.store_problem is not None:
            raise casting.store_problem
        return ending

    def carry_out(self, casting: StoreCasting, work: runs.Work) -> tuple[EndingName, Proof | None, str]:
        """The Pattern of the pinned digest, or a refusal to carry another."""
        pattern = self._patterns.get((work.pattern, work.pattern_revision))
        if pattern is None or pattern.digest != work.pattern_digest:
            return "failed", None, f"{work.pattern} {work.pattern_revision} of the pinned digest is not installed here"
        casting.checkpoint_schema = pattern.checkpoint_schema
        wanting = checkpoint_wanting(work, pattern)
        if wanting is not None:
            return "refused", None, wanting.value
        try:
            return named(perform(pattern, casting, work.input))
        except Awaits as waiting:
            return "parked", None, str(waiting)
        except EffectRefused as refusal:
            return "refused", None, refusal.reason
        except ValidationError as problem:
            fields = ", ".join(".".join(map(str, error["loc"])) for error in problem.errors())
            return "failed", None, f"the input does not fit the Pattern: {fields}"
        except Exception as problem:  # whatever a Pattern raises is its failure, and not the worker's
            return "failed", None, f"{type(problem).__name__}: {problem}"

    @activity.defn
    async def settle(self, question: asks.SettleAsk) -> asks.Settled:
        """The terminal Run decision, or the offer of a next hop."""
        return await settle_hop(self._pool, self._threads, self._patterns, question)


async def beat_temporal() -> None:
    """Heartbeat the activity that this task was begun in."""
    while True:
        activity.heartbeat()
        await asyncio.sleep(BEAT_SECONDS)


async def settle_hop(pool: Pool, threads: Executor, patterns: Catalogue, question: asks.SettleAsk) -> asks.Settled:
    """Bring one hop to the settle commit, with what its Pattern declares about returns and proofs."""
    declared = [pattern for (key, _), pattern in patterns.items() if key == question.pattern]

    def validate(kind: str, content: Mapping[str, Any]) -> str:
        for pattern in declared:
            if kind in pattern.finish_proofs:
                try:
                    return pattern.finish_proofs[kind](content)
                except Exception as problem:  # a proof that its validator cannot read proves nothing
                    return f"the validator of {kind} could not read it: {type(problem).__name__}: {problem}"
        return f"nobody here can judge a proof of kind {kind!r}"

    settled = await ask(
        threads,
        runs.settle,
        pool,
        RunId(UUID(question.run_id)),
        EnqueueSeq(question.enqueue_seq),
        ClaimId(UUID(question.claim_id)),
        DecisionId(UUID(question.decision_id)),
        validate,
        any(pattern.returns_to_checkpoint for pattern in declared),
    )
    return asks.Settled(settled.run_id, settled.state, settled.disposition, settled.reason)


def perform(pattern: Pattern[Any], casting: Casting, content: dict[str, Any]) -> Ending:
    """The Pattern's own code, with its input checked against its own model."""
    return pattern.perform(casting, pattern.input_model.model_validate(content))


def named(ending: Ending) -> tuple[EndingName, Proof | None, str]:
    """An ending by name."""
    match ending:
        case Done(proof, note):
            return "done", proof, note
        case Yielded(note):
            return "yielded", None, note
        case Failed(note):
            return "failed", None, note
