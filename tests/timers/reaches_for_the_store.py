"""Workflows that reach for what they must not have: one when it is loaded, one when it runs."""

from temporalio import workflow


@workflow.defn
class ImportsTheStoreWhenItRuns:
    """Looks harmless until its first task."""

    @workflow.run
    async def run(self) -> str:
        import store.admission

        return store.admission.__name__


@workflow.defn
class ImportsADriverWhenItRuns:
    """The same with the database's driver."""

    @workflow.run
    async def run(self) -> str:
        import psycopg

        return psycopg.__name__
