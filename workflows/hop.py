"""One workflow a delivery hop: claim it, carry its Pattern, settle it (DESIGN §8). It decides nothing.

A hop that is published twice is performed once: its id is the lane's message id, and the claim's fence stands behind it. A
hop whose worker died is never run again as it was: `settle` is asked what it left, and the store decides.
"""

from temporalio import workflow
from temporalio.common import SearchAttributeKey, VersioningBehavior
from temporalio.exceptions import ActivityError

from workflows import asks
from workflows.shown import NOT_CLAIMED, hop_details
from workflows.terms import COMMIT, PERFORM, schedule_workflow_id

SCHEDULE = SearchAttributeKey.for_keyword("NightbellSchedule")
STATE = SearchAttributeKey.for_keyword("NightbellState")


@workflow.defn(versioning_behavior=VersioningBehavior.PINNED)
class HopWorkflow:
    """One hop of one Run."""

    @workflow.run
    async def run(self, hop: asks.HopAsk) -> str:
        claim_id = str(workflow.uuid4())
        claimed = await workflow.execute_activity(
            asks.claim,
            asks.ClaimAsk(hop.run_id, hop.enqueue_seq, claim_id),
            summary=f"may hop {hop.enqueue_seq} of this Run of {hop.schedule} begin?",
            **COMMIT,
        )
        if not claimed.granted:
            self.show(hop, NOT_CLAIMED, claimed.reason)
            await self.tell(hop)
            return claimed.reason
        await self.perform(hop, claim_id)
        settled = await workflow.execute_activity(
            asks.settle,
            asks.SettleAsk(hop.run_id, hop.enqueue_seq, claim_id, str(workflow.uuid4()), hop.pattern),
            summary="what became of it?",
            **COMMIT,
        )
        self.show(hop, settled.state, settled.reason)
        await self.tell(hop)
        return f"{settled.state}: {settled.reason}"

    async def perform(self, hop: asks.HopAsk, claim_id: str) -> None:
        """Carry the Pattern. However this ends, what was reported or left is judged by the settle transaction."""
        try:
            await workflow.execute_activity(
                asks.perform,
                asks.PerformAsk(hop.run_id, hop.enqueue_seq, claim_id, hop.pattern),
                summary=f"carry {hop.pattern}",
                **PERFORM,
            )
        except ActivityError as problem:
            workflow.logger.warning("the hop was lost: %s", problem.cause or problem)

    async def tell(self, hop: asks.HopAsk) -> None:
        """Wake the Schedule: what waited for this Run may begin, or a next hop is to be handed over."""
        schedule = workflow.get_external_workflow_handle(schedule_workflow_id(hop.schedule))
        try:
            await schedule.signal("reconsider")
        except Exception as problem:  # the relay finds what nobody was told
            workflow.logger.warning("the Schedule could not be told: %s", problem)

    def show(self, hop: asks.HopAsk, state: str, reason: str) -> None:
        """Tell the UI."""
        updates = [SCHEDULE.value_set(hop.schedule), STATE.value_set(state)]
        workflow.upsert_search_attributes(updates)  # pyright: ignore[reportUnknownMemberType]: the SDK's own hint
        workflow.set_current_details(hop_details(hop, state, reason))
