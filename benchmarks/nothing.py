"""The workflow that does nothing, in a module that workers may load without the rest."""

from temporalio import workflow


@workflow.defn
class NothingWorkflow:
    """Begins and ends."""

    @workflow.run
    async def run(self) -> None:
        """Do nothing."""
