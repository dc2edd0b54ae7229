"""The safety net: one workflow that looks, every few seconds, for what a crash left behind (OCC-6, IDN-1).

It is never needed while nothing fails. It finds by the rows alone, and whatever it does goes through the same commits.
"""

from dataclasses import dataclass
from datetime import timedelta

from temporalio import workflow
from temporalio.common import VersioningBehavior
from temporalio.workflow import ContinueAsNewVersioningBehavior

from workflows import asks
from workflows.shown import relay_details
from workflows.terms import HAND_OVER

HISTORY_EVENTS_MAX = 500


@dataclass(frozen=True, slots=True)
class RelayTerms:
    """How often it looks, in seconds."""

    every_seconds: float = 3.0


@workflow.defn(versioning_behavior=VersioningBehavior.PINNED)
class RelayWorkflow:
    """The one relay."""

    @workflow.run
    async def run(self, terms: RelayTerms) -> None:
        while True:
            swept = await workflow.execute_activity(
                asks.sweep, asks.SweepAsk(str(workflow.uuid4())), summary="what was left behind?", **HAND_OVER
            )
            workflow.set_current_details(relay_details(swept, terms.every_seconds, workflow.now()))
            if self.is_long():
                workflow.continue_as_new(
                    terms, initial_versioning_behavior=ContinueAsNewVersioningBehavior.AUTO_UPGRADE
                )
            await workflow.sleep(timedelta(seconds=terms.every_seconds), summary="until the next look")

    def is_long(self) -> bool:
        """Whether this history has grown enough to begin another, or a newer version waits for it."""
        info = workflow.info()
        return (
            info.is_continue_as_new_suggested()
            or info.get_current_history_length() >= HISTORY_EVENTS_MAX
            or info.is_target_worker_deployment_version_changed()
        )
