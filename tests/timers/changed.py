"""Workflows as a careless change would leave them: each under the name of ours, each with one thing changed."""

from datetime import timedelta

from temporalio import workflow
from temporalio.common import VersioningBehavior

from workflows import asks
from workflows.hop import HopWorkflow
from workflows.relay import RelayTerms, RelayWorkflow
from workflows.schedule import ScheduleWorkflow
from workflows.shown import Shown
from workflows.terms import COMMIT

PINNED = VersioningBehavior.PINNED


@workflow.defn(name="ScheduleWorkflow", versioning_behavior=PINNED)
class DecidesFirst(ScheduleWorkflow):
    """Another order of commands."""

    @workflow.init
    def __init__(self, shown: Shown) -> None:
        super().__init__(shown)

    @workflow.run
    async def run(self, shown: Shown) -> None:
        await self.decide()
        await super().run(shown)


@workflow.defn(name="ScheduleWorkflow", versioning_behavior=PINNED)
class AsksAboutAnotherRevision(ScheduleWorkflow):
    """The same activity with another argument."""

    @workflow.init
    def __init__(self, shown: Shown) -> None:
        super().__init__(shown)

    @workflow.run
    async def run(self, shown: Shown) -> None:
        await super().run(shown)

    async def decide(self) -> None:
        self.shown.revision = (self.shown.revision or 0) + 1
        await super().decide()


@workflow.defn(name="ScheduleWorkflow", versioning_behavior=PINNED)
class SleepsLonger(ScheduleWorkflow):
    """The same timer for another time."""

    @workflow.init
    def __init__(self, shown: Shown) -> None:
        super().__init__(shown)

    @workflow.run
    async def run(self, shown: Shown) -> None:
        await super().run(shown)

    async def sleep(self) -> None:
        if self.shown.wake_at is not None:
            self.shown.wake_at += timedelta(seconds=5)
        await super().sleep()


@workflow.defn(name="HopWorkflow", versioning_behavior=PINNED)
class SettlesWithoutPerforming(HopWorkflow):
    """A command is left out."""

    @workflow.run
    async def run(self, hop: asks.HopAsk) -> str:
        return await super().run(hop)

    async def perform(self, hop: asks.HopAsk, claim_id: str) -> None:
        return None


@workflow.defn(name="RelayWorkflow", versioning_behavior=PINNED)
class LooksOnceMore(RelayWorkflow):
    """A command is added."""

    @workflow.run
    async def run(self, terms: RelayTerms) -> None:
        await workflow.execute_activity(asks.sweep, asks.SweepAsk(str(workflow.uuid4())), **COMMIT)
        await super().run(terms)
