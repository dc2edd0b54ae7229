"""What there is to give, who holds it, and what slices have shown: capabilities, leases, slices, quiet windows, requests."""

from sqlalchemy import (
    BigInteger,
    Boolean,
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

from store.tables.base import SCHEMA, instant, metadata, words

capability = Table(
    "capability",
    metadata,
    words("capability"),
    words("state"),
    words("admission"),
    words("sharing"),
    Column("units", Integer, nullable=False),
    Column("protected_units", Integer, nullable=False),
    Column("foreground_units", Integer, nullable=False),
    instant("changed_at"),
    instant("judged_at", null=True),
    PrimaryKeyConstraint("capability", name="capability_pkey"),
    CheckConstraint(
        "state IN ('WARM', 'COLD', 'CONVERGING', 'UNKNOWN') AND admission IN ('open', 'closed') "
        "AND sharing IN ('shared', 'exclusive')",
        name="capability_state_law",
    ),
    CheckConstraint(
        "protected_units >= 0 AND foreground_units >= 0 AND protected_units + foreground_units <= units",
        name="capability_units_law",
    ),
)

lease = Table(
    "lease",
    metadata,
    Column("run_id", Uuid, nullable=False),
    Column("enqueue_seq", Integer, nullable=False),
    words("capability"),
    words("service_class"),
    Column("units", Integer, nullable=False),
    instant("granted_at"),
    instant("expected_end_at", null=True),
    instant("released_at", null=True),
    PrimaryKeyConstraint("run_id", "enqueue_seq", name="lease_pkey"),
    ForeignKeyConstraint(
        ["run_id", "enqueue_seq"],
        [f"{SCHEMA}.delivery.run_id", f"{SCHEMA}.delivery.enqueue_seq"],
        name="lease_delivery_fkey",
    ),
    ForeignKeyConstraint(["capability"], [f"{SCHEMA}.capability.capability"], name="lease_capability_fkey"),
    CheckConstraint(
        "units >= 1 AND service_class IN ('foreground', 'deadline_windowed', 'spare_capacity')", name="lease_law"
    ),
    Index("lease_open", "capability", postgresql_where=text("released_at IS NULL")),
    Index("lease_open_run", "run_id", unique=True, postgresql_where=text("released_at IS NULL")),
    Index("lease_released", "capability", "released_at"),
)

slice_ = Table(
    "slice",
    metadata,
    Column("run_id", Uuid, nullable=False),
    Column("enqueue_seq", Integer, nullable=False),
    words("pattern"),
    words("pattern_revision"),
    words("capability", null=True),
    words("service_class"),
    instant("offered_at"),
    instant("claimed_at"),
    instant("ended_at"),
    words("reason"),
    Column("at_boundary", Boolean, nullable=False),
    Column("effects_left", Integer, nullable=False),
    Column("run_seconds", Double),
    PrimaryKeyConstraint("run_id", "enqueue_seq", name="slice_pkey"),
    ForeignKeyConstraint(
        ["run_id", "enqueue_seq"],
        [f"{SCHEMA}.delivery.run_id", f"{SCHEMA}.delivery.enqueue_seq"],
        name="slice_delivery_fkey",
    ),
    Index("slice_shown", "pattern", "pattern_revision", "ended_at"),
    Index(
        "slice_measured",
        "pattern",
        "pattern_revision",
        text("COALESCE(capability, ''::text)"),
        "ended_at",
        postgresql_where=text("run_seconds IS NOT NULL"),
    ),
)

quiet_window = Table(
    "quiet_window",
    metadata,
    Column("quiet_window_id", Uuid, nullable=False),
    words("capability", null=True),
    instant("opens_at"),
    instant("closes_at"),
    words("approved_by"),
    words("note"),
    instant("approved_at"),
    instant("withdrawn_at", null=True),
    words("withdrawn_by", null=True),
    PrimaryKeyConstraint("quiet_window_id", name="quiet_window_pkey"),
    CheckConstraint("opens_at < closes_at AND approved_by <> ''", name="quiet_window_law"),
    CheckConstraint("(withdrawn_at IS NULL) = (withdrawn_by IS NULL)", name="quiet_window_withdrawn_law"),
    Index("quiet_window_time", "closes_at", postgresql_where=text("withdrawn_at IS NULL")),
)

readiness_request = Table(
    "readiness_request",
    metadata,
    Column("trigger_occurrence_id", Uuid, nullable=False),
    Column("schedule_id", BigInteger, nullable=False),
    words("capability"),
    words("state"),
    Column("seconds_max", Integer, nullable=False),
    Column("cost_max", Double, nullable=False),
    instant("asked_at"),
    instant("taken_at", null=True),
    words("taken_by", null=True),
    instant("answered_at", null=True),
    Column("seconds_spent", Double),
    Column("cost_spent", Double),
    words("note", null=True),
    PrimaryKeyConstraint("trigger_occurrence_id", name="readiness_request_pkey"),
    ForeignKeyConstraint(
        ["trigger_occurrence_id"],
        [f"{SCHEMA}.occurrence.trigger_occurrence_id"],
        name="readiness_request_occurrence_fkey",
    ),
    CheckConstraint(
        "CASE state WHEN 'asked' THEN taken_at IS NULL AND answered_at IS NULL "
        "WHEN 'taken' THEN taken_at IS NOT NULL AND answered_at IS NULL "
        "WHEN 'converged' THEN answered_at IS NOT NULL WHEN 'failed' THEN answered_at IS NOT NULL ELSE false END",
        name="readiness_request_state_law",
    ),
    CheckConstraint(
        "(answered_at IS NULL) = (seconds_spent IS NULL) AND (answered_at IS NULL) = (cost_spent IS NULL)",
        name="readiness_request_spent_law",
    ),
    Index("readiness_request_open", "asked_at", postgresql_where=text("state IN ('asked', 'taken')")),
    Index("readiness_request_spent", "schedule_id", "asked_at"),
)
