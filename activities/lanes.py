"""Lanes: where a delivery is carried. Publishing one twice is publishing it once (IDN-1)."""

from typing import Protocol

from temporalio.client import Client
from temporalio.common import WorkflowIDConflictPolicy, WorkflowIDReusePolicy

from law.identity import lane_message_id
from law.routing import TEMPORAL_LANE
from store.delivery import Delivery
from workflows.asks import HopAsk
from workflows.hop import HopWorkflow


class Lane(Protocol):
    """A physical delivery queue."""

    @property
    def name(self) -> str:
        """How routing names it."""
        ...

    async def publish(self, delivery: Delivery) -> None:
        """Hand one delivery over, at least once. Raises whatever the lane raises when it cannot be reached."""
        ...


class TemporalLane:
    """The built-in lane: a workflow a hop, on a task queue.

    A hop that still runs is joined. One that has ended is begun again, since a lane must not be the judge of what was
    done: the claim's fence refuses whatever is stale.
    """

    name = TEMPORAL_LANE

    def __init__(self, client: Client, task_queue: str) -> None:
        self._client = client
        self._task_queue = task_queue

    async def publish(self, delivery: Delivery) -> None:
        """Start the hop's workflow under the delivery's own name."""
        await self._client.start_workflow(
            HopWorkflow.run,
            HopAsk(str(delivery.run_id), delivery.enqueue_seq, delivery.schedule, delivery.pattern),
            id=lane_message_id(delivery.run_id, delivery.enqueue_seq),
            task_queue=self._task_queue,
            id_reuse_policy=WorkflowIDReusePolicy.ALLOW_DUPLICATE,
            id_conflict_policy=WorkflowIDConflictPolicy.USE_EXISTING,
            static_summary=f"{delivery.pattern} for {delivery.schedule}",
        )
