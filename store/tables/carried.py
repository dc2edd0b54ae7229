"""What was admitted and how far it came: Invocations, Runs, deliveries, claims, checkpoints, effects."""

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    Column,
    ForeignKeyConstraint,
    Index,
    Integer,
    PrimaryKeyConstraint,
    Table,
    UniqueConstraint,
    Uuid,
    text,
)
from sqlalchemy.dialects.postgresql import JSONB

from store.tables.base import SCHEMA, instant, metadata, words

NONTERMINAL = "state IN ('queued', 'running', 'parked', 'cancelling', 'contained')"
"""As SQL: what counts as overlap (OVL-1). Literals, so that partial indexes are used."""


invocation = Table(
    "invocation",
    metadata,
    Column("invocation_id", Uuid, nullable=False),
    Column("trigger_occurrence_id", Uuid, nullable=False),
    Column("ordinal", Integer, nullable=False),
    instant("admitted_at"),
    Column("decision_id", Uuid, nullable=False),
    Column("input", JSONB),
    words("input_digest", null=True),
    Column("recovers", Uuid),
    PrimaryKeyConstraint("invocation_id", name="invocation_pkey"),
    UniqueConstraint("trigger_occurrence_id", "ordinal", name="invocation_once_key"),
    ForeignKeyConstraint(
        ["trigger_occurrence_id"],
        [f"{SCHEMA}.occurrence.trigger_occurrence_id"],
        name="invocation_occurrence_fkey",
    ),
    CheckConstraint("ordinal >= 0", name="invocation_ordinal_law"),
    CheckConstraint("(input IS NULL) = (input_digest IS NULL)", name="invocation_input_law"),
    CheckConstraint("(ordinal = 0) = (recovers IS NULL)", name="invocation_recovers_law"),
    ForeignKeyConstraint(["recovers"], [f"{SCHEMA}.invocation.invocation_id"], name="invocation_recovers_fkey"),
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
    words("capability", null=True),
    Column("units", Integer, nullable=False, server_default=text("0")),
    words("wait_owner", null=True),
    instant("cancel_requested_at", null=True),
    words("cancel_requested_by", null=True),
    words("cancel_note", null=True),
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
    CheckConstraint(
        "(state = 'parked') = (wait_owner IS NOT NULL) "
        "AND (wait_owner IS NULL OR wait_owner IN ('consent', 'delegate', 'hardware'))",
        name="run_parked_law",
    ),
    CheckConstraint(
        "(cancel_requested_at IS NULL) = (cancel_requested_by IS NULL) "
        "AND (cancel_requested_at IS NOT NULL OR state NOT IN ('cancelling', 'cancelled'))",
        name="run_cancel_law",
    ),
    CheckConstraint("units >= 0 AND (capability IS NOT NULL OR units = 0)", name="run_units_law"),
    Index("run_resumable", "capability", "run_id", postgresql_where=text("wait_owner = 'hardware'")),
    Index("run_expiring", "finish_by", postgresql_where=text("disposition = 'open'")),
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
        "ending IS NULL OR ending IN ('done', 'yielded', 'parked', 'failed', 'refused')",
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
    words("schema_id", null=True),
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
    words("consent_key", null=True),
    Column("cost", JSONB),
    words("finding", null=True),
    words("found_by", null=True),
    words("found_note", null=True),
    instant("found_at", null=True),
    PrimaryKeyConstraint("station_attempt_id", name="effect_pkey"),
    ForeignKeyConstraint(["claim_id"], [f"{SCHEMA}.claim.claim_id"], name="effect_claim_fkey"),
    CheckConstraint(
        "state IN ('admitted', 'succeeded', 'failed', 'unknown', 'contained', 'settled') "
        "AND (state = 'admitted') = (recorded_at IS NULL)",
        name="effect_state_law",
    ),
    CheckConstraint(
        "(state = 'settled') = (finding IS NOT NULL) AND (finding IS NULL) = (found_by IS NULL) "
        "AND (finding IS NULL) = (found_at IS NULL) "
        "AND (finding IS NULL OR finding IN ('happened', 'did_not_happen', 'compensated'))",
        name="effect_finding_law",
    ),
    Index(
        "effect_once",
        "run_id",
        "kind",
        "effect_key",
        unique=True,
        postgresql_where=text(
            "state IN ('admitted', 'succeeded', 'unknown', 'contained') OR finding IN ('happened', 'compensated')"
        ),
    ),
    Index("effect_in_doubt", "run_id", postgresql_where=text("state IN ('admitted', 'unknown', 'contained')")),
)

awaited = Table(
    "awaited",
    metadata,
    Column("run_id", Uuid, nullable=False),
    words("kind"),
    words("wait_key"),
    Column("enqueue_seq", Integer, nullable=False),
    words("asked_of", null=True),
    Column("question", JSONB, nullable=False),
    words("state"),
    instant("asked_at"),
    Column("answer", JSONB),
    instant("answered_at", null=True),
    words("answered_by", null=True),
    words("note", null=True),
    instant("withdrawn_at", null=True),
    words("withdrawn_by", null=True),
    PrimaryKeyConstraint("run_id", "kind", "wait_key", name="awaited_pkey"),
    ForeignKeyConstraint(["run_id"], [f"{SCHEMA}.run.run_id"], name="awaited_run_fkey"),
    CheckConstraint(
        "CASE kind WHEN 'consent' THEN state IN ('asked', 'approved', 'denied', 'withdrawn') "
        "WHEN 'delegate' THEN state IN ('asked', 'answered') ELSE false END "
        "AND (state = 'asked') = (answered_at IS NULL) AND (answered_at IS NULL) = (answered_by IS NULL) "
        "AND (state = 'withdrawn') = (withdrawn_at IS NOT NULL) AND (withdrawn_at IS NULL) = (withdrawn_by IS NULL)",
        name="awaited_state_law",
    ),
    Index("awaited_open", "asked_at", postgresql_where=text("state = 'asked'")),
)
