"""What is on its way: the outbox drained into the lanes, in batches, whoever's it is."""

import asyncio
from collections.abc import Mapping
from concurrent.futures import Executor

from temporalio import activity

from activities.border import ask
from activities.lanes import Lane
from store import delivery
from store.connection import Pool
from workflows import asks

BATCH = 100
BATCHES_MAX = 20


class PublishActivities:
    """Hands deliveries to their lanes."""

    def __init__(self, pool: Pool, threads: Executor, lanes: Mapping[str, Lane]) -> None:
        self._pool = pool
        self._threads = threads
        self._lanes = lanes

    @activity.defn
    async def publish(self, question: asks.PublishAsk) -> asks.Published:
        """Hand what was admitted to its lane."""
        handed_over = 0
        for _ in range(BATCHES_MAX):
            batch = await ask(self._threads, delivery.take, self._pool, BATCH)
            if not batch:
                break
            await self.hand_over(batch)
            handed_over += len(batch)
        return asks.Published(handed_over, await ask(self._threads, delivery.undelivered, self._pool))

    async def hand_over(self, batch: list[delivery.Delivery]) -> None:
        """Publish a batch, then say so. A crash in between publishes the same names again."""
        await asyncio.gather(*(self._lanes[one.lane].publish(one) for one in batch))
        await ask(self._threads, delivery.published, self._pool, batch)
