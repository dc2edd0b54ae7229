"""The relay's look: what a crash left behind is asked about again, by the same commits as ever (OCC-6, IDN-1)."""

from collections.abc import Awaitable, Mapping
from concurrent.futures import Executor
from uuid import UUID, uuid5

from temporalio import activity
from temporalio.client import Client

from activities.border import ask
from activities.hops import Catalogue, settle_hop
from activities.lanes import Lane
from law.identity import DecisionId, RunId, ScheduleName
from store import cancelling, delivery, expiry, relay
from store.connection import Pool
from workflows import asks
from workflows.schedule import ScheduleWorkflow
from workflows.shown import Shown
from workflows.terms import schedule_workflow_id

OVERDUE_SECONDS = 3.0
UNCLAIMED_SECONDS = 15.0
LOST_SECONDS = 8.0
"""A worker beats every second; after this long its hop is brought to `settle`, which looks at what it left."""


class RelayActivities:
    """Answers the relay."""

    def __init__(
        self,
        pool: Pool,
        threads: Executor,
        client: Client,
        task_queue: str,
        lanes: Mapping[str, Lane],
        patterns: Catalogue,
    ) -> None:
        self._pool = pool
        self._threads = threads
        self._client = client
        self._task_queue = task_queue
        self._lanes = lanes
        self._patterns = patterns

    @activity.defn
    async def sweep(self, question: asks.SweepAsk) -> asks.Swept:
        """Relay whatever a crash left behind."""
        look = await ask(self._threads, relay.look, self._pool, OVERDUE_SECONDS, UNCLAIMED_SECONDS, LOST_SECONDS)
        await ask(self._threads, expiry.expire, self._pool, DecisionId(uuid5(UUID(question.round_id), "expire")))
        recovered = [one for one in look.lost if await went_well(self.recover(one, UUID(question.round_id)))]
        for run_id in look.out_of_doubt:
            await went_well(self.look_again(run_id, UUID(question.round_id)))
        stranded = await ask(self._threads, delivery.take, self._pool, relay.FOUND_MAX)
        published = [one for one in (*look.unclaimed, *stranded) if await went_well(self.publish(one))]
        if published:
            await ask(self._threads, delivery.published, self._pool, published)
        overdue = dict.fromkeys((*look.overdue, *(one.schedule for one in recovered)))
        woken = [one for one in overdue if await went_well(wake(self._client, self._task_queue, one))]
        return asks.Swept(len(woken), len(published), len(recovered))

    async def recover(self, lost: relay.LostClaim, round_id: UUID) -> None:
        """Bring a hop whose worker is gone to its settle commit."""
        decision_id = uuid5(round_id, str(lost.claim_id))
        asked = asks.SettleAsk(str(lost.run_id), lost.enqueue_seq, str(lost.claim_id), str(decision_id), lost.pattern)
        await settle_hop(self._pool, self._threads, self._patterns, asked)

    async def look_again(self, run_id: RunId, round_id: UUID) -> None:
        """Decide a contained Run about which nothing is in doubt any more."""
        await ask(self._threads, cancelling.look_again, self._pool, run_id, DecisionId(uuid5(round_id, str(run_id))))

    async def publish(self, one: delivery.Delivery) -> None:
        """Hand a delivery to its lane once more. Raises KeyError for a lane that this worker does not have."""
        await self._lanes[one.lane].publish(one)


async def went_well(attempt: Awaitable[None]) -> bool:
    """Whether one thing could be done; what could not is said, stands in nobody's way, and is found by the next sweep."""
    try:
        await attempt
    except Exception as problem:  # whatever one of them raises, the others are relayed
        activity.logger.error("the relay could not do one of its things: %s: %s", type(problem).__name__, problem)
        return False
    return True


async def wake(client: Client, task_queue: str, schedule: ScheduleName) -> None:
    """Ring a Schedule's workflow; one that is missing is started, and finds in the store whatever it missed."""
    await client.start_workflow(
        ScheduleWorkflow.run,
        Shown(schedule),
        id=schedule_workflow_id(schedule),
        task_queue=task_queue,
        start_signal="reconsider",
        static_summary=schedule,
    )
