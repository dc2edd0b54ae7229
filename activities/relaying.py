"""The relay's look: what a crash left behind is asked about again, by the same commits as ever (OCC-6, IDN-1)."""

from collections.abc import Mapping
from concurrent.futures import Executor
from uuid import UUID, uuid5

from temporalio import activity
from temporalio.client import Client

from activities.border import ask
from activities.hops import Catalogue, settle_hop
from activities.lanes import Lane
from law.identity import ScheduleName
from store import delivery, relay
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
        for lost in look.lost:
            decision_id = uuid5(UUID(question.round_id), str(lost.claim_id))
            asked = asks.SettleAsk(
                str(lost.run_id), lost.enqueue_seq, str(lost.claim_id), str(decision_id), lost.pattern
            )
            await settle_hop(self._pool, self._threads, self._patterns, asked)
        stranded = await ask(self._threads, delivery.take, self._pool, relay.FOUND_MAX)
        for one in (*look.unclaimed, *stranded):
            await self._lanes[one.lane].publish(one)
        if look.unclaimed or stranded:
            await ask(self._threads, delivery.published, self._pool, [*look.unclaimed, *stranded])
        for schedule in look.overdue:
            await wake(self._client, self._task_queue, schedule)
        return asks.Swept(len(look.overdue), len(look.unclaimed) + len(stranded), len(look.lost))


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
