"""One hop: claimed, carried, settled. The claim and the settle are one commit each; carrying is the Pattern's own work."""

import asyncio
from collections.abc import Mapping
from concurrent.futures import Executor
from typing import Any
from uuid import UUID

from pydantic import ValidationError
from temporalio import activity

from activities.border import ask
from activities.casting import StoreCasting
from law.finish import EndingName
from law.identity import ClaimId, DecisionId, EnqueueSeq, RunId
from law.pattern import Casting, Done, EffectRefused, Ending, Failed, Pattern, Proof, Workplace, Yielded
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
        work = await ask(self._threads, runs.work, self._pool, claim_id)
        casting = StoreCasting(self._pool, claim_id, work, self._workplace)
        carried = asyncio.get_running_loop().run_in_executor(self._carriers, self.carry, casting, work)
        while not carried.done():
            activity.heartbeat()
            casting.fence_lost = not await ask(self._threads, runs.heartbeat, self._pool, claim_id)
            await asyncio.wait({carried}, timeout=BEAT_SECONDS)
        ending, proof, note = carried.result()
        kind, content = (proof.kind, dict(proof.content)) if proof else (None, None)
        await ask(self._threads, runs.report, self._pool, claim_id, ending, kind, content, note[:NOTE_LENGTH_MAX])
        return asks.Performed(ending)

    def carry(self, casting: StoreCasting, work: runs.Work) -> tuple[EndingName, Proof | None, str]:
        """Run the Pattern's code and name its ending. A Pattern that raises has failed; what it began is in the rows."""
        pattern = self._patterns.get((work.pattern, work.pattern_revision))
        if pattern is None or pattern.digest != work.pattern_digest:
            return "failed", None, f"{work.pattern} {work.pattern_revision} of the pinned digest is not installed here"
        try:
            return named(perform(pattern, casting, work.input))
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


async def settle_hop(pool: Pool, threads: Executor, patterns: Catalogue, question: asks.SettleAsk) -> asks.Settled:
    """Bring one hop to the settle commit, with what its Pattern declares about returns and proofs."""
    declared = [pattern for (key, _), pattern in patterns.items() if key == question.pattern]

    def validate(kind: str, content: Mapping[str, Any]) -> str:
        for pattern in declared:
            if kind in pattern.finish_proofs:
                return pattern.finish_proofs[kind](content)
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
