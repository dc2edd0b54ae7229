"""Alembic's entry: `store.migrate` hands it a connection; it is never run from alembic's own command line."""

from alembic import context

from store.tables import SCHEMA, metadata

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=metadata,
    version_table_schema=SCHEMA,
    transaction_per_migration=True,
)
with context.begin_transaction():
    context.run_migrations()
