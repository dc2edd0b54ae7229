"""What rang and what was decided of it: Occurrences, stretches that were let go whole, rounds and decisions."""

from sqlalchemy import (
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    DateTime,
    ForeignKeyConstraint,
    Identity,
    Index,
    Integer,
    PrimaryKeyConstraint,
    SmallInteger,
    Table,
    Text,
    UniqueConstraint,
    Uuid,
    text,
)
from sqlalchemy.dialects.postgresql import ARRAY, JSONB

from store.tables.base import SCHEMA, instant, metadata, words

occurrence = Table(
    "occurrence",
    metadata,
    Column("trigger_occurrence_id", Uuid, nullable=False),
    Column("schedule_id", BigInteger, nullable=False),
    Column("revision", Integer, nullable=False),
    # the source firing
    words("source_key"),
    words("source_kind"),
    words("content_digest"),
    instant("rang_at"),
    instant("nominal_at", null=True),
    Column("civil", DateTime(timezone=False)),
    words("zone", null=True),
    Column("fold", SmallInteger),
    words("civil_kind", null=True),
    words("event_source", null=True),
    words("event_id", null=True),
    # what it asks for
    words("pattern"),
    words("pattern_revision"),
    words("pattern_digest"),
    Column("input", JSONB, nullable=False),
    words("input_digest"),
    words("owner"),
    words("sigil", null=True),
    words("origin"),
    words("origin_principal", null=True),
    words("requested_class"),
    words("service_class"),
    Column("priority", SmallInteger, nullable=False),
    Column("policy_generation", Integer, nullable=False),
    Column("authority_generation", Integer, nullable=False, server_default=text("1")),
    words("capability", null=True),
    # when
    Column("jitter_milliseconds", Integer, nullable=False),
    instant("eligible_at", null=True),
    instant("not_before", null=True),
    instant("latest_start_at", null=True),
    instant("finish_by", null=True),
    words("finish_proof", null=True),
    instant("materialized_at"),
    Column("materialized_by", Uuid, nullable=False),
    Column("found_late", Boolean, nullable=False),
    # what became of it
    words("state"),
    words("waiting_reason", null=True),
    words("reason", null=True),
    instant("decision_time", null=True),
    Column("decision_id", Uuid),
    Column("coalesced_into", Uuid),
    words("merged_input_digest", null=True),
    PrimaryKeyConstraint("trigger_occurrence_id", name="occurrence_pkey"),
    UniqueConstraint("schedule_id", "source_key", name="occurrence_firing_key"),
    ForeignKeyConstraint(
        ["schedule_id", "revision"],
        [f"{SCHEMA}.schedule_revision.schedule_id", f"{SCHEMA}.schedule_revision.revision"],
        name="occurrence_revision_fkey",
    ),
    CheckConstraint(
        "CASE source_kind WHEN 'calendar' THEN civil IS NOT NULL AND zone IS NOT NULL AND fold IN (0, 1) "
        "AND civil_kind IS NOT NULL AND event_source IS NULL AND event_id IS NULL "
        "WHEN 'event' THEN civil IS NULL AND zone IS NULL AND fold IS NULL AND civil_kind IS NULL "
        "AND event_source IS NOT NULL AND event_id IS NOT NULL AND nominal_at IS NOT NULL ELSE false END",
        name="occurrence_source_law",
    ),
    CheckConstraint(
        "service_class IN ('foreground', 'deadline_windowed', 'spare_capacity') "
        "AND requested_class IN ('foreground', 'deadline_windowed', 'spare_capacity') "
        "AND origin IN ('operator', 'schedule', 'legionnaire', 'a2a_peer')",
        name="occurrence_class_law",
    ),
    CheckConstraint(
        "CASE WHEN service_class = 'deadline_windowed' AND nominal_at IS NOT NULL "
        "THEN not_before IS NOT NULL AND latest_start_at IS NOT NULL "
        "ELSE not_before IS NULL AND latest_start_at IS NULL AND finish_by IS NULL END",
        name="occurrence_window_law",
    ),
    CheckConstraint("(finish_proof IS NULL) OR (finish_by IS NOT NULL)", name="occurrence_finish_law"),
    CheckConstraint(
        "(nominal_at IS NULL) = (eligible_at IS NULL) AND (nominal_at IS NOT NULL OR state IN ('skipped', 'failed'))",
        name="occurrence_nominal_law",
    ),
    CheckConstraint(
        "CASE WHEN state = 'pending' THEN reason IS NULL AND decision_time IS NULL AND decision_id IS NULL "
        "WHEN state IN ('admitted', 'missed', 'suppressed', 'skipped', 'refused', 'revoked', 'coalesced', 'failed') "
        "THEN reason IS NOT NULL AND waiting_reason IS NULL AND decision_time IS NOT NULL AND decision_id IS NOT NULL "
        "ELSE false END",
        name="occurrence_state_law",
    ),
    CheckConstraint(
        "waiting_reason IS NULL OR waiting_reason IN "
        "('not_yet_eligible', 'overlap', 'capacity', 'readiness', 'quiet_window', 'paused', 'catch_up', 'budget')",
        name="occurrence_waiting_law",
    ),
    CheckConstraint(
        "(state = 'coalesced') = (coalesced_into IS NOT NULL) AND (coalesced_into IS NULL OR merged_input_digest IS NOT NULL) "
        "AND (coalesced_into IS NULL OR coalesced_into <> trigger_occurrence_id)",
        name="occurrence_coalesced_law",
    ),
    ForeignKeyConstraint(
        ["coalesced_into"], [f"{SCHEMA}.occurrence.trigger_occurrence_id"], name="occurrence_coalesced_fkey"
    ),
    Index(
        "occurrence_needs",
        "capability",
        postgresql_where=text("state = 'pending' AND capability IS NOT NULL"),
    ),
    Index("occurrence_members", "coalesced_into", postgresql_where=text("coalesced_into IS NOT NULL")),
    Index("occurrence_pending", "schedule_id", "eligible_at", postgresql_where=text("state = 'pending'")),
    Index("occurrence_opening", "eligible_at", postgresql_where=text("state = 'pending'")),
    Index("occurrence_ledger", "schedule_id", "rang_at"),
    Index("occurrence_time", "rang_at"),
)

skipped_range = Table(
    "skipped_range",
    metadata,
    Column("skipped_range_id", BigInteger, Identity(always=True)),
    Column("schedule_id", BigInteger, nullable=False),
    Column("revision", Integer, nullable=False),
    instant("first_at"),
    instant("last_at"),
    Column("firing_count", BigInteger, nullable=False),
    words("reason"),
    instant("decision_time"),
    Column("decision_id", Uuid, nullable=False),
    PrimaryKeyConstraint("skipped_range_id", name="skipped_range_pkey"),
    ForeignKeyConstraint(
        ["schedule_id", "revision"],
        [f"{SCHEMA}.schedule_revision.schedule_id", f"{SCHEMA}.schedule_revision.revision"],
        name="skipped_range_revision_fkey",
    ),
    CheckConstraint("first_at <= last_at AND firing_count >= 1", name="skipped_range_law"),
    Index("skipped_range_ledger", "schedule_id", "first_at"),
)

round_ = Table(
    "round",
    metadata,
    Column("decision_id", Uuid, nullable=False),
    words("act"),
    instant("sampled_at"),
    Column("clock_regressed", Boolean, nullable=False),
    Column("answer", JSONB, nullable=False),
    PrimaryKeyConstraint("decision_id", name="round_pkey"),
)

decision = Table(
    "decision",
    metadata,
    Column("decision_seq", BigInteger, Identity(always=True)),
    Column("decision_id", Uuid, nullable=False),
    Column("trigger_occurrence_id", Uuid, nullable=False),
    words("act"),
    words("outcome"),
    words("reason"),
    Column("obligations", ARRAY(Text), nullable=False),
    Column("evidence", JSONB, nullable=False),
    instant("sampled_at"),
    Column("run_id", Uuid),
    Column("enqueue_seq", Integer),
    PrimaryKeyConstraint("decision_seq", name="decision_pkey"),
    ForeignKeyConstraint(
        ["trigger_occurrence_id"],
        [f"{SCHEMA}.occurrence.trigger_occurrence_id"],
        name="decision_occurrence_fkey",
    ),
    UniqueConstraint("trigger_occurrence_id", "decision_id", name="decision_once_key"),
)
