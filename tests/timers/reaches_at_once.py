"""A workflow whose module imports the store."""

from temporalio import workflow

from store import admission


@workflow.defn
class ImportsTheStore:
    """Never begins."""

    @workflow.run
    async def run(self) -> str:
        return admission.__name__
