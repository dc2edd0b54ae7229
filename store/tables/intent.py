"""What may ring, and who may act: Schedules, their revisions and lines, principals, Pattern revisions, zone rules."""

from sqlalchemy import (
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    ForeignKeyConstraint,
    Identity,
    Index,
    Integer,
    LargeBinary,
    PrimaryKeyConstraint,
    Table,
    UniqueConstraint,
    Uuid,
    text,
)
from sqlalchemy.dialects.postgresql import JSONB

from store.tables.base import SCHEMA, instant, metadata, words

zone_rules = Table(
    "zone_rules",
    metadata,
    words("digest"),
    words("zone"),
    words("release"),
    Column("tzif", LargeBinary, nullable=False),
    instant("retained_at"),
    PrimaryKeyConstraint("digest", "zone", name="zone_rules_pkey"),
    CheckConstraint("digest = 'sha256:' || encode(sha256(tzif), 'hex')", name="zone_rules_digest_law"),
)

principal = Table(
    "principal",
    metadata,
    words("name"),
    words("standing"),
    Column("generation", Integer, nullable=False),
    instant("changed_at"),
    PrimaryKeyConstraint("name", name="principal_pkey"),
    CheckConstraint("standing IN ('active', 'suspended', 'revoked')", name="principal_standing_law"),
)

pattern_revision = Table(
    "pattern_revision",
    metadata,
    words("pattern"),
    words("pattern_revision"),
    words("digest"),
    words("standing"),
    instant("changed_at"),
    Column("merges", Boolean, nullable=False, server_default=text("false")),
    Column("yields", JSONB),
    Column("returns", Boolean, nullable=False, server_default=text("false")),
    Column("recovers", Boolean, nullable=False, server_default=text("false")),
    PrimaryKeyConstraint("pattern", "pattern_revision", name="pattern_revision_pkey"),
    CheckConstraint("standing IN ('active', 'retained', 'revoked')", name="pattern_revision_standing_law"),
)

origin_policy = Table(
    "origin_policy",
    metadata,
    words("origin"),
    words("principal"),
    words("ceiling", null=True),
    words("above"),
    Column("generation", Integer, nullable=False),
    instant("changed_at"),
    PrimaryKeyConstraint("origin", "principal", name="origin_policy_pkey"),
    CheckConstraint(
        "origin IN ('operator', 'schedule', 'legionnaire', 'a2a_peer') AND above IN ('lower', 'refuse') AND (ceiling IS NULL "
        "OR ceiling IN ('foreground', 'deadline_windowed', 'spare_capacity'))",
        name="origin_policy_law",
    ),
)

schedule = Table(
    "schedule",
    metadata,
    Column("schedule_id", BigInteger, Identity(always=True)),
    words("authority"),
    words("name"),
    Column("active_revision", Integer),
    words("halted_reason", null=True),
    instant("registered_at"),
    instant("last_sampled_at", null=True),
    instant("paused_at", null=True),
    PrimaryKeyConstraint("schedule_id", name="schedule_pkey"),
    UniqueConstraint("authority", "name", name="schedule_name_key"),
    ForeignKeyConstraint(
        ["schedule_id", "active_revision"],
        [f"{SCHEMA}.schedule_revision.schedule_id", f"{SCHEMA}.schedule_revision.revision"],
        name="schedule_active_revision_fkey",
        use_alter=True,
    ),
)

schedule_revision = Table(
    "schedule_revision",
    metadata,
    Column("schedule_id", BigInteger, nullable=False),
    Column("revision", Integer, nullable=False),
    words("digest"),
    Column("document", JSONB, nullable=False),
    words("zone", null=True),
    words("zone_rules_digest", null=True),
    words("pattern"),
    words("pattern_revision"),
    words("pattern_digest"),
    words("overlap_policy"),
    Column("parallel_max", Integer, nullable=False),
    Column("aging_seconds", Integer),
    words("capability", null=True),
    Column("runs_per_day_max", Integer),
    instant("registered_at"),
    PrimaryKeyConstraint("schedule_id", "revision", name="schedule_revision_pkey"),
    ForeignKeyConstraint(["schedule_id"], [f"{SCHEMA}.schedule.schedule_id"], name="schedule_revision_schedule_fkey"),
    CheckConstraint("revision >= 1 AND parallel_max >= 1", name="schedule_revision_number_law"),
    CheckConstraint("(zone IS NULL) = (zone_rules_digest IS NULL)", name="schedule_revision_rules_law"),
)

activation = Table(
    "activation",
    metadata,
    Column("schedule_id", BigInteger, nullable=False),
    Column("activation_ordinal", Integer, nullable=False),
    Column("revision", Integer, nullable=False),
    Column("plan", JSONB, nullable=False),
    instant("activated_at"),
    Column("decision_id", Uuid, nullable=False),
    PrimaryKeyConstraint("schedule_id", "activation_ordinal", name="activation_pkey"),
    ForeignKeyConstraint(
        ["schedule_id", "revision"],
        [f"{SCHEMA}.schedule_revision.schedule_id", f"{SCHEMA}.schedule_revision.revision"],
        name="activation_revision_fkey",
    ),
)

segment = Table(
    "segment",
    metadata,
    Column("schedule_id", BigInteger, nullable=False),
    Column("segment_ordinal", Integer, nullable=False),
    Column("revision", Integer, nullable=False),
    instant("first_at"),
    instant("end_at", null=True),
    instant("cursor_at"),
    instant("next_nominal_at", null=True),
    PrimaryKeyConstraint("schedule_id", "segment_ordinal", name="segment_pkey"),
    ForeignKeyConstraint(
        ["schedule_id", "revision"],
        [f"{SCHEMA}.schedule_revision.schedule_id", f"{SCHEMA}.schedule_revision.revision"],
        name="segment_revision_fkey",
    ),
    Index("segment_due", "next_nominal_at", postgresql_where=text("next_nominal_at IS NOT NULL")),
)

cutover_exclusion = Table(
    "cutover_exclusion",
    metadata,
    Column("schedule_id", BigInteger, nullable=False),
    Column("segment_ordinal", Integer, nullable=False),
    words("source_key"),
    Column("revision", Integer, nullable=False),
    Column("activation_ordinal", Integer, nullable=False),
    instant("rings_at"),
    words("disposition"),
    Column("owner_revision", Integer, nullable=False),
    Column("same_as_revision", Integer),
    words("same_as_key", null=True),
    PrimaryKeyConstraint("schedule_id", "segment_ordinal", "source_key", name="cutover_exclusion_pkey"),
    ForeignKeyConstraint(
        ["schedule_id", "segment_ordinal"],
        [f"{SCHEMA}.segment.schedule_id", f"{SCHEMA}.segment.segment_ordinal"],
        name="cutover_exclusion_segment_fkey",
    ),
    ForeignKeyConstraint(
        ["schedule_id", "activation_ordinal"],
        [f"{SCHEMA}.activation.schedule_id", f"{SCHEMA}.activation.activation_ordinal"],
        name="cutover_exclusion_activation_fkey",
    ),
    CheckConstraint(
        "CASE disposition WHEN 'same_as' THEN same_as_revision IS NOT NULL AND same_as_key IS NOT NULL "
        "WHEN 'skip' THEN same_as_revision IS NULL AND same_as_key IS NULL ELSE false END",
        name="cutover_exclusion_law",
    ),
    Index("cutover_exclusion_time", "schedule_id", "segment_ordinal", "rings_at"),
)

pause_event = Table(
    "pause_event",
    metadata,
    Column("schedule_id", BigInteger, nullable=False),
    Column("event_ordinal", Integer, nullable=False),
    words("act"),
    instant("sampled_at"),
    words("note"),
    Column("decision_id", Uuid, nullable=False),
    PrimaryKeyConstraint("schedule_id", "event_ordinal", name="pause_event_pkey"),
    ForeignKeyConstraint(["schedule_id"], [f"{SCHEMA}.schedule.schedule_id"], name="pause_event_schedule_fkey"),
    CheckConstraint("act IN ('pause', 'resume')", name="pause_event_act_law"),
)
