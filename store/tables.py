"""The tables, as the ledger's readers and the migration test see them; `migrations/` is what made them.

Illegal states are refused here too, not only by code. The constraints that carry a promise:

- one row per source firing of a Schedule, under an id computed from both            `occurrence` unique key (OCC-1)
- no window columns unless `deadline_windowed`                                       `occurrence_window_law` (OCC-8)
- the assigned revision, bounds, jitter and identity never change; final is final    trigger `occurrence_is_pinned` (OCC-2, CAL-9)
- one admission Invocation per Occurrence, one live Run per Schedule under `forbid`  unique indexes (OCC-6, OVL-2)
- one open claim per Run; a settled Run never changes                                unique index, trigger (IDN-2, FIN-4)
- decisions, rounds, revisions, rules and activations are append-only                trigger `append_only` (EVD-1, CAL-4)

A CHECK that yields NULL passes, so every CHECK below is written to be true or false.
"""

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
    LargeBinary,
    MetaData,
    PrimaryKeyConstraint,
    SmallInteger,
    Table,
    Text,
    UniqueConstraint,
    Uuid,
    text,
)
from sqlalchemy.dialects.postgresql import ARRAY, JSONB

SCHEMA = "nightbell"

metadata = MetaData(schema=SCHEMA)

NONTERMINAL = "state IN ('queued', 'running', 'parked', 'cancelling', 'contained')"
"""As SQL: what counts as overlap (OVL-1). Literals, so that partial indexes are used."""


def instant(name: str, *, null: bool = False) -> Column[object]:
    """An absolute instant."""
    return Column(name, DateTime(timezone=True), nullable=null)


def words(name: str, *, null: bool = False) -> Column[str]:
    """A text."""
    return Column(name, Text, nullable=null)


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
    PrimaryKeyConstraint("pattern", "pattern_revision", name="pattern_revision_pkey"),
    CheckConstraint("standing IN ('active', 'retained', 'revoked')", name="pattern_revision_standing_law"),
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
        "('not_yet_eligible', 'overlap', 'capacity', 'readiness', 'quiet_window', 'paused', 'catch_up')",
        name="occurrence_waiting_law",
    ),
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

invocation = Table(
    "invocation",
    metadata,
    Column("invocation_id", Uuid, nullable=False),
    Column("trigger_occurrence_id", Uuid, nullable=False),
    Column("ordinal", Integer, nullable=False),
    instant("admitted_at"),
    Column("decision_id", Uuid, nullable=False),
    PrimaryKeyConstraint("invocation_id", name="invocation_pkey"),
    UniqueConstraint("trigger_occurrence_id", "ordinal", name="invocation_once_key"),
    ForeignKeyConstraint(
        ["trigger_occurrence_id"],
        [f"{SCHEMA}.occurrence.trigger_occurrence_id"],
        name="invocation_occurrence_fkey",
    ),
    CheckConstraint("ordinal >= 0", name="invocation_ordinal_law"),
)

run = Table(
    "run",
    metadata,
    Column("run_id", Uuid, nullable=False),
    Column("invocation_id", Uuid, nullable=False),
    Column("trigger_occurrence_id", Uuid, nullable=False),
    Column("schedule_id", BigInteger, nullable=False),
    words("overlap_policy"),
    words("state"),
    words("disposition"),
    words("reason", null=True),
    Column("enqueue_seq", Integer, nullable=False),
    Column("lost_hops", Integer, nullable=False),
    instant("finish_by", null=True),
    words("finish_proof", null=True),
    Column("proof", JSONB),
    words("proof_digest", null=True),
    instant("admitted_at"),
    instant("settled_at", null=True),
    PrimaryKeyConstraint("run_id", name="run_pkey"),
    UniqueConstraint("invocation_id", name="run_invocation_key"),
    ForeignKeyConstraint(["invocation_id"], [f"{SCHEMA}.invocation.invocation_id"], name="run_invocation_fkey"),
    ForeignKeyConstraint(
        ["trigger_occurrence_id"],
        [f"{SCHEMA}.occurrence.trigger_occurrence_id"],
        name="run_occurrence_fkey",
    ),
    CheckConstraint(
        "state IN ('queued', 'running', 'parked', 'cancelling', 'contained', 'done', 'failed', 'cancelled')",
        name="run_state_law",
    ),
    CheckConstraint(
        "disposition IN ('untimed', 'open', 'timely', 'unmet') AND (disposition = 'untimed') = (finish_by IS NULL)",
        name="run_disposition_law",
    ),
    CheckConstraint(
        "(settled_at IS NOT NULL) = (state IN ('done', 'failed', 'cancelled')) "
        "AND (settled_at IS NULL OR (reason IS NOT NULL AND disposition <> 'open')) "
        "AND (disposition <> 'timely' OR state = 'done')",
        name="run_settled_law",
    ),
    Index("run_live", "schedule_id", postgresql_where=text(NONTERMINAL)),
    Index(
        "run_forbid_live",
        "schedule_id",
        unique=True,
        postgresql_where=text(f"overlap_policy = 'forbid' AND {NONTERMINAL}"),
    ),
    Index("run_admitted", "schedule_id", "admitted_at"),
    Index("run_time", "admitted_at"),
    Index("run_occurrence", "trigger_occurrence_id"),
)

delivery = Table(
    "delivery",
    metadata,
    Column("run_id", Uuid, nullable=False),
    Column("enqueue_seq", Integer, nullable=False),
    words("lane"),
    words("pattern"),
    words("state"),
    instant("created_at"),
    instant("picked_at", null=True),
    instant("published_at", null=True),
    Column("publish_count", Integer, nullable=False),
    PrimaryKeyConstraint("run_id", "enqueue_seq", name="delivery_pkey"),
    ForeignKeyConstraint(["run_id"], [f"{SCHEMA}.run.run_id"], name="delivery_run_fkey"),
    CheckConstraint(
        "CASE state WHEN 'PENDING' THEN published_at IS NULL WHEN 'PUBLISHED' THEN published_at IS NOT NULL "
        "WHEN 'CLAIMED' THEN true WHEN 'CLOSED' THEN true ELSE false END AND enqueue_seq >= 0",
        name="delivery_state_law",
    ),
    Index("delivery_pending", "created_at", postgresql_where=text("state = 'PENDING'")),
    Index("delivery_unclaimed", "published_at", postgresql_where=text("state = 'PUBLISHED'")),
)

claim = Table(
    "claim",
    metadata,
    Column("claim_id", Uuid, nullable=False),
    Column("run_id", Uuid, nullable=False),
    Column("enqueue_seq", Integer, nullable=False),
    words("worker"),
    instant("claimed_at"),
    instant("heartbeat_at"),
    words("ending", null=True),
    words("proof_kind", null=True),
    Column("proof", JSONB),
    words("note", null=True),
    instant("reported_at", null=True),
    instant("ended_at", null=True),
    PrimaryKeyConstraint("claim_id", name="claim_pkey"),
    ForeignKeyConstraint(
        ["run_id", "enqueue_seq"],
        [f"{SCHEMA}.delivery.run_id", f"{SCHEMA}.delivery.enqueue_seq"],
        name="claim_delivery_fkey",
    ),
    UniqueConstraint("run_id", "enqueue_seq", name="claim_hop_key"),
    CheckConstraint(
        "ending IS NULL OR ending IN ('done', 'yielded', 'failed', 'refused')",
        name="claim_ending_law",
    ),
    Index("claim_open", "run_id", unique=True, postgresql_where=text("ended_at IS NULL")),
    Index("claim_heartbeat", "heartbeat_at", postgresql_where=text("ended_at IS NULL")),
)

checkpoint = Table(
    "checkpoint",
    metadata,
    Column("run_id", Uuid, nullable=False),
    Column("checkpoint_seq", Integer, nullable=False),
    Column("enqueue_seq", Integer, nullable=False),
    words("digest"),
    Column("state", JSONB, nullable=False),
    instant("saved_at"),
    PrimaryKeyConstraint("run_id", "checkpoint_seq", name="checkpoint_pkey"),
    ForeignKeyConstraint(["run_id"], [f"{SCHEMA}.run.run_id"], name="checkpoint_run_fkey"),
)

effect = Table(
    "effect",
    metadata,
    Column("station_attempt_id", Uuid, nullable=False),
    Column("run_id", Uuid, nullable=False),
    Column("enqueue_seq", Integer, nullable=False),
    Column("claim_id", Uuid, nullable=False),
    words("kind"),
    words("effect_key"),
    words("state"),
    Column("result", JSONB),
    words("note", null=True),
    instant("admitted_at"),
    instant("recorded_at", null=True),
    PrimaryKeyConstraint("station_attempt_id", name="effect_pkey"),
    ForeignKeyConstraint(["claim_id"], [f"{SCHEMA}.claim.claim_id"], name="effect_claim_fkey"),
    CheckConstraint(
        "state IN ('admitted', 'succeeded', 'failed', 'unknown', 'contained', 'settled') "
        "AND (state = 'admitted') = (recorded_at IS NULL)",
        name="effect_state_law",
    ),
    Index(
        "effect_once",
        "run_id",
        "kind",
        "effect_key",
        unique=True,
        postgresql_where=text("state IN ('admitted', 'succeeded', 'unknown', 'contained')"),
    ),
    Index("effect_in_doubt", "run_id", postgresql_where=text("state IN ('admitted', 'unknown', 'contained')")),
)
