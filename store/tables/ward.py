"""The Ward's own tables: Sigils, budgets, and what Runs have reserved and spent of them."""

from sqlalchemy import (
    CheckConstraint,
    Column,
    Double,
    ForeignKeyConstraint,
    Index,
    Integer,
    PrimaryKeyConstraint,
    Table,
    Uuid,
    text,
)
from sqlalchemy.dialects.postgresql import JSONB

from store.tables.base import SCHEMA, instant, metadata, words

sigil = Table(
    "sigil",
    metadata,
    words("name"),
    words("owner"),
    words("standing"),
    Column("scopes", JSONB, nullable=False),
    instant("expires_at", null=True),
    Column("generation", Integer, nullable=False),
    instant("changed_at"),
    PrimaryKeyConstraint("name", name="sigil_pkey"),
    ForeignKeyConstraint(["owner"], [f"{SCHEMA}.principal.name"], name="sigil_owner_fkey"),
    CheckConstraint("standing IN ('active', 'revoked') AND jsonb_typeof(scopes) = 'array'", name="sigil_law"),
)

budget = Table(
    "budget",
    metadata,
    words("holder_kind"),
    words("holder"),
    words("unit"),
    Column("period_seconds", Integer, nullable=False),
    Column("ceiling", Double, nullable=False),
    Column("generation", Integer, nullable=False),
    instant("changed_at"),
    PrimaryKeyConstraint("holder_kind", "holder", "unit", "period_seconds", name="budget_pkey"),
    CheckConstraint(
        "holder_kind IN ('owner', 'schedule') AND period_seconds >= 0 AND ceiling >= 0 AND unit <> ''",
        name="budget_law",
    ),
)

budget_use = Table(
    "budget_use",
    metadata,
    Column("run_id", Uuid, nullable=False),
    words("unit"),
    words("owner"),
    words("schedule"),
    Column("reserved", Double, nullable=False),
    Column("used", Double),
    instant("reserved_at"),
    PrimaryKeyConstraint("run_id", "unit", name="budget_use_pkey"),
    ForeignKeyConstraint(["run_id"], [f"{SCHEMA}.run.run_id"], name="budget_use_run_fkey"),
    CheckConstraint("reserved >= 0 AND (used IS NULL OR used >= 0)", name="budget_use_law"),
    Index("budget_use_owner", "owner", "unit", "reserved_at"),
    Index("budget_use_schedule", "schedule", "unit", "reserved_at"),
    Index("budget_use_open", "owner", "unit", postgresql_where=text("used IS NULL")),
)
