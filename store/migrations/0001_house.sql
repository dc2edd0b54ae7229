-- The house as it is first built. Frozen: later changes are later migrations.
--
-- One schedule rings; each ring is one occurrence; a round judges many occurrences at one sample and leaves one decision
-- a verdict; an admitted occurrence has an invocation, its run, and one delivery for every hop that was offered. A claim
-- is a hop that a worker holds; effects and checkpoints are what it did. Locks are taken in this order, and only so:
-- schedules by id, then principals by name, then pattern revisions, then runs by id.

-- The only source of decision time (WIN-2). `clock_timestamp()` and not `now()`: a sample must be taken when it is asked
-- for, after the locks are held, not when the transaction began. Tests replace this function in their own database.
CREATE FUNCTION trusted_now() RETURNS timestamptz LANGUAGE sql VOLATILE PARALLEL SAFE
AS 'SELECT clock_timestamp()';

CREATE TABLE zone_rules (
    digest TEXT NOT NULL,
    zone TEXT NOT NULL,
    release TEXT NOT NULL,
    tzif BYTEA NOT NULL,
    retained_at timestamptz NOT NULL,
    CONSTRAINT zone_rules_pkey PRIMARY KEY (digest, zone),
    CONSTRAINT zone_rules_digest_law CHECK (digest = 'sha256:' || encode(sha256(tzif), 'hex'))
);

CREATE TABLE principal (
    name TEXT NOT NULL,
    standing TEXT NOT NULL,
    generation INTEGER NOT NULL,
    changed_at timestamptz NOT NULL,
    CONSTRAINT principal_pkey PRIMARY KEY (name),
    CONSTRAINT principal_standing_law CHECK (standing IN ('active', 'suspended', 'revoked'))
);

CREATE TABLE pattern_revision (
    pattern TEXT NOT NULL,
    pattern_revision TEXT NOT NULL,
    digest TEXT NOT NULL,
    standing TEXT NOT NULL,
    changed_at timestamptz NOT NULL,
    CONSTRAINT pattern_revision_pkey PRIMARY KEY (pattern, pattern_revision),
    CONSTRAINT pattern_revision_standing_law CHECK (standing IN ('active', 'retained', 'revoked'))
);

CREATE TABLE schedule (
    schedule_id BIGINT GENERATED ALWAYS AS IDENTITY,
    authority TEXT NOT NULL,
    name TEXT NOT NULL,
    active_revision INTEGER,
    halted_reason TEXT,
    registered_at timestamptz NOT NULL,
    last_sampled_at timestamptz,
    CONSTRAINT schedule_pkey PRIMARY KEY (schedule_id),
    CONSTRAINT schedule_name_key UNIQUE (authority, name)
);

CREATE TABLE schedule_revision (
    schedule_id BIGINT NOT NULL,
    revision INTEGER NOT NULL,
    digest TEXT NOT NULL,
    document JSONB NOT NULL,
    zone TEXT,
    zone_rules_digest TEXT,
    pattern TEXT NOT NULL,
    pattern_revision TEXT NOT NULL,
    pattern_digest TEXT NOT NULL,
    overlap_policy TEXT NOT NULL,
    parallel_max INTEGER NOT NULL,
    aging_seconds INTEGER,
    capability TEXT,
    runs_per_day_max INTEGER,
    registered_at timestamptz NOT NULL,
    CONSTRAINT schedule_revision_pkey PRIMARY KEY (schedule_id, revision),
    CONSTRAINT schedule_revision_schedule_fkey FOREIGN KEY(schedule_id) REFERENCES schedule (schedule_id),
    CONSTRAINT schedule_revision_number_law CHECK (revision >= 1 AND parallel_max >= 1),
    CONSTRAINT schedule_revision_rules_law CHECK ((zone IS NULL) = (zone_rules_digest IS NULL))
);

CREATE TABLE activation (
    schedule_id BIGINT NOT NULL,
    activation_ordinal INTEGER NOT NULL,
    revision INTEGER NOT NULL,
    plan JSONB NOT NULL,
    activated_at timestamptz NOT NULL,
    decision_id UUID NOT NULL,
    CONSTRAINT activation_pkey PRIMARY KEY (schedule_id, activation_ordinal),
    CONSTRAINT activation_revision_fkey FOREIGN KEY(schedule_id, revision) REFERENCES schedule_revision (schedule_id, revision)
);

CREATE TABLE segment (
    schedule_id BIGINT NOT NULL,
    segment_ordinal INTEGER NOT NULL,
    revision INTEGER NOT NULL,
    first_at timestamptz NOT NULL,
    end_at timestamptz,
    cursor_at timestamptz NOT NULL,
    next_nominal_at timestamptz,
    CONSTRAINT segment_pkey PRIMARY KEY (schedule_id, segment_ordinal),
    CONSTRAINT segment_revision_fkey FOREIGN KEY(schedule_id, revision) REFERENCES schedule_revision (schedule_id, revision)
);

CREATE INDEX segment_due ON segment (next_nominal_at) WHERE next_nominal_at IS NOT NULL;

CREATE TABLE occurrence (
    trigger_occurrence_id UUID NOT NULL,
    schedule_id BIGINT NOT NULL,
    revision INTEGER NOT NULL,
    source_key TEXT NOT NULL,
    source_kind TEXT NOT NULL,
    content_digest TEXT NOT NULL,
    rang_at timestamptz NOT NULL,
    nominal_at timestamptz,
    civil timestamp,
    zone TEXT,
    fold SMALLINT,
    civil_kind TEXT,
    event_source TEXT,
    event_id TEXT,
    pattern TEXT NOT NULL,
    pattern_revision TEXT NOT NULL,
    pattern_digest TEXT NOT NULL,
    input JSONB NOT NULL,
    input_digest TEXT NOT NULL,
    owner TEXT NOT NULL,
    sigil TEXT,
    origin TEXT NOT NULL,
    origin_principal TEXT,
    requested_class TEXT NOT NULL,
    service_class TEXT NOT NULL,
    priority SMALLINT NOT NULL,
    policy_generation INTEGER NOT NULL,
    jitter_milliseconds INTEGER NOT NULL,
    eligible_at timestamptz,
    not_before timestamptz,
    latest_start_at timestamptz,
    finish_by timestamptz,
    finish_proof TEXT,
    materialized_at timestamptz NOT NULL,
    materialized_by UUID NOT NULL,
    found_late BOOLEAN NOT NULL,
    state TEXT NOT NULL,
    waiting_reason TEXT,
    reason TEXT,
    decision_time timestamptz,
    decision_id UUID,
    CONSTRAINT occurrence_pkey PRIMARY KEY (trigger_occurrence_id),
    CONSTRAINT occurrence_firing_key UNIQUE (schedule_id, source_key),
    CONSTRAINT occurrence_revision_fkey FOREIGN KEY(schedule_id, revision) REFERENCES schedule_revision (schedule_id, revision),
    CONSTRAINT occurrence_source_law CHECK (CASE source_kind WHEN 'calendar' THEN civil IS NOT NULL AND zone IS NOT NULL AND fold IN (0, 1) AND civil_kind IS NOT NULL AND event_source IS NULL AND event_id IS NULL WHEN 'event' THEN civil IS NULL AND zone IS NULL AND fold IS NULL AND civil_kind IS NULL AND event_source IS NOT NULL AND event_id IS NOT NULL AND nominal_at IS NOT NULL ELSE false END),
    CONSTRAINT occurrence_class_law CHECK (service_class IN ('foreground', 'deadline_windowed', 'spare_capacity') AND requested_class IN ('foreground', 'deadline_windowed', 'spare_capacity') AND origin IN ('operator', 'schedule', 'legionnaire', 'a2a_peer')),
    CONSTRAINT occurrence_window_law CHECK (CASE WHEN service_class = 'deadline_windowed' AND nominal_at IS NOT NULL THEN not_before IS NOT NULL AND latest_start_at IS NOT NULL ELSE not_before IS NULL AND latest_start_at IS NULL AND finish_by IS NULL END),
    CONSTRAINT occurrence_finish_law CHECK ((finish_proof IS NULL) OR (finish_by IS NOT NULL)),
    CONSTRAINT occurrence_nominal_law CHECK ((nominal_at IS NULL) = (eligible_at IS NULL) AND (nominal_at IS NOT NULL OR state IN ('skipped', 'failed'))),
    CONSTRAINT occurrence_state_law CHECK (CASE WHEN state = 'pending' THEN reason IS NULL AND decision_time IS NULL AND decision_id IS NULL WHEN state IN ('admitted', 'missed', 'suppressed', 'skipped', 'refused', 'revoked', 'coalesced', 'failed') THEN reason IS NOT NULL AND waiting_reason IS NULL AND decision_time IS NOT NULL AND decision_id IS NOT NULL ELSE false END),
    CONSTRAINT occurrence_waiting_law CHECK (waiting_reason IS NULL OR waiting_reason IN ('not_yet_eligible', 'overlap', 'capacity', 'readiness', 'quiet_window'))
);

CREATE INDEX occurrence_ledger ON occurrence (schedule_id, rang_at);
CREATE INDEX occurrence_opening ON occurrence (eligible_at) WHERE state = 'pending';
CREATE INDEX occurrence_pending ON occurrence (schedule_id, eligible_at) WHERE state = 'pending';
CREATE INDEX occurrence_time ON occurrence (rang_at);

CREATE TABLE skipped_range (
    skipped_range_id BIGINT GENERATED ALWAYS AS IDENTITY,
    schedule_id BIGINT NOT NULL,
    revision INTEGER NOT NULL,
    first_at timestamptz NOT NULL,
    last_at timestamptz NOT NULL,
    firing_count BIGINT NOT NULL,
    reason TEXT NOT NULL,
    decision_time timestamptz NOT NULL,
    decision_id UUID NOT NULL,
    CONSTRAINT skipped_range_pkey PRIMARY KEY (skipped_range_id),
    CONSTRAINT skipped_range_revision_fkey FOREIGN KEY(schedule_id, revision) REFERENCES schedule_revision (schedule_id, revision),
    CONSTRAINT skipped_range_law CHECK (first_at <= last_at AND firing_count >= 1)
);

CREATE INDEX skipped_range_ledger ON skipped_range (schedule_id, first_at);

CREATE TABLE round (
    decision_id UUID NOT NULL,
    act TEXT NOT NULL,
    sampled_at timestamptz NOT NULL,
    clock_regressed BOOLEAN NOT NULL,
    answer JSONB NOT NULL,
    CONSTRAINT round_pkey PRIMARY KEY (decision_id)
);

CREATE TABLE decision (
    decision_seq BIGINT GENERATED ALWAYS AS IDENTITY,
    decision_id UUID NOT NULL,
    trigger_occurrence_id UUID NOT NULL,
    act TEXT NOT NULL,
    outcome TEXT NOT NULL,
    reason TEXT NOT NULL,
    obligations TEXT[] NOT NULL,
    evidence JSONB NOT NULL,
    sampled_at timestamptz NOT NULL,
    run_id UUID,
    enqueue_seq INTEGER,
    CONSTRAINT decision_pkey PRIMARY KEY (decision_seq),
    CONSTRAINT decision_occurrence_fkey FOREIGN KEY(trigger_occurrence_id) REFERENCES occurrence (trigger_occurrence_id),
    CONSTRAINT decision_once_key UNIQUE (trigger_occurrence_id, decision_id)
);

CREATE TABLE invocation (
    invocation_id UUID NOT NULL,
    trigger_occurrence_id UUID NOT NULL,
    ordinal INTEGER NOT NULL,
    admitted_at timestamptz NOT NULL,
    decision_id UUID NOT NULL,
    CONSTRAINT invocation_pkey PRIMARY KEY (invocation_id),
    CONSTRAINT invocation_once_key UNIQUE (trigger_occurrence_id, ordinal),
    CONSTRAINT invocation_occurrence_fkey FOREIGN KEY(trigger_occurrence_id) REFERENCES occurrence (trigger_occurrence_id),
    CONSTRAINT invocation_ordinal_law CHECK (ordinal >= 0)
);

CREATE TABLE run (
    run_id UUID NOT NULL,
    invocation_id UUID NOT NULL,
    trigger_occurrence_id UUID NOT NULL,
    schedule_id BIGINT NOT NULL,
    overlap_policy TEXT NOT NULL,
    state TEXT NOT NULL,
    disposition TEXT NOT NULL,
    reason TEXT,
    enqueue_seq INTEGER NOT NULL,
    lost_hops INTEGER NOT NULL,
    finish_by timestamptz,
    finish_proof TEXT,
    proof JSONB,
    proof_digest TEXT,
    admitted_at timestamptz NOT NULL,
    settled_at timestamptz,
    CONSTRAINT run_pkey PRIMARY KEY (run_id),
    CONSTRAINT run_invocation_key UNIQUE (invocation_id),
    CONSTRAINT run_invocation_fkey FOREIGN KEY(invocation_id) REFERENCES invocation (invocation_id),
    CONSTRAINT run_occurrence_fkey FOREIGN KEY(trigger_occurrence_id) REFERENCES occurrence (trigger_occurrence_id),
    CONSTRAINT run_state_law CHECK (state IN ('queued', 'running', 'parked', 'cancelling', 'contained', 'done', 'failed', 'cancelled')),
    CONSTRAINT run_disposition_law CHECK (disposition IN ('untimed', 'open', 'timely', 'unmet') AND (disposition = 'untimed') = (finish_by IS NULL)),
    CONSTRAINT run_settled_law CHECK ((settled_at IS NOT NULL) = (state IN ('done', 'failed', 'cancelled')) AND (settled_at IS NULL OR (reason IS NOT NULL AND disposition <> 'open')) AND (disposition <> 'timely' OR state = 'done'))
);

CREATE INDEX run_admitted ON run (schedule_id, admitted_at);
CREATE UNIQUE INDEX run_forbid_live ON run (schedule_id) WHERE overlap_policy = 'forbid' AND state IN ('queued', 'running', 'parked', 'cancelling', 'contained');
CREATE INDEX run_live ON run (schedule_id) WHERE state IN ('queued', 'running', 'parked', 'cancelling', 'contained');
CREATE INDEX run_occurrence ON run (trigger_occurrence_id);
CREATE INDEX run_time ON run (admitted_at);

CREATE TABLE delivery (
    run_id UUID NOT NULL,
    enqueue_seq INTEGER NOT NULL,
    lane TEXT NOT NULL,
    pattern TEXT NOT NULL,
    state TEXT NOT NULL,
    created_at timestamptz NOT NULL,
    picked_at timestamptz,
    published_at timestamptz,
    publish_count INTEGER NOT NULL,
    CONSTRAINT delivery_pkey PRIMARY KEY (run_id, enqueue_seq),
    CONSTRAINT delivery_run_fkey FOREIGN KEY(run_id) REFERENCES run (run_id),
    CONSTRAINT delivery_state_law CHECK (CASE state WHEN 'PENDING' THEN published_at IS NULL WHEN 'PUBLISHED' THEN published_at IS NOT NULL WHEN 'CLAIMED' THEN true WHEN 'CLOSED' THEN true ELSE false END AND enqueue_seq >= 0)
);

CREATE INDEX delivery_pending ON delivery (created_at) WHERE state = 'PENDING';
CREATE INDEX delivery_unclaimed ON delivery (published_at) WHERE state = 'PUBLISHED';

CREATE TABLE claim (
    claim_id UUID NOT NULL,
    run_id UUID NOT NULL,
    enqueue_seq INTEGER NOT NULL,
    worker TEXT NOT NULL,
    claimed_at timestamptz NOT NULL,
    heartbeat_at timestamptz NOT NULL,
    ending TEXT,
    proof_kind TEXT,
    proof JSONB,
    note TEXT,
    reported_at timestamptz,
    ended_at timestamptz,
    CONSTRAINT claim_pkey PRIMARY KEY (claim_id),
    CONSTRAINT claim_delivery_fkey FOREIGN KEY(run_id, enqueue_seq) REFERENCES delivery (run_id, enqueue_seq),
    CONSTRAINT claim_hop_key UNIQUE (run_id, enqueue_seq),
    CONSTRAINT claim_ending_law CHECK (ending IS NULL OR ending IN ('done', 'yielded', 'failed', 'refused'))
);

CREATE INDEX claim_heartbeat ON claim (heartbeat_at) WHERE ended_at IS NULL;
CREATE UNIQUE INDEX claim_open ON claim (run_id) WHERE ended_at IS NULL;

CREATE TABLE checkpoint (
    run_id UUID NOT NULL,
    checkpoint_seq INTEGER NOT NULL,
    enqueue_seq INTEGER NOT NULL,
    digest TEXT NOT NULL,
    state JSONB NOT NULL,
    saved_at timestamptz NOT NULL,
    CONSTRAINT checkpoint_pkey PRIMARY KEY (run_id, checkpoint_seq),
    CONSTRAINT checkpoint_run_fkey FOREIGN KEY(run_id) REFERENCES run (run_id)
);

CREATE TABLE effect (
    station_attempt_id UUID NOT NULL,
    run_id UUID NOT NULL,
    enqueue_seq INTEGER NOT NULL,
    claim_id UUID NOT NULL,
    kind TEXT NOT NULL,
    effect_key TEXT NOT NULL,
    state TEXT NOT NULL,
    result JSONB,
    note TEXT,
    admitted_at timestamptz NOT NULL,
    recorded_at timestamptz,
    CONSTRAINT effect_pkey PRIMARY KEY (station_attempt_id),
    CONSTRAINT effect_claim_fkey FOREIGN KEY(claim_id) REFERENCES claim (claim_id),
    CONSTRAINT effect_state_law CHECK (state IN ('admitted', 'succeeded', 'failed', 'unknown', 'contained', 'settled') AND (state = 'admitted') = (recorded_at IS NULL))
);

CREATE INDEX effect_in_doubt ON effect (run_id) WHERE state IN ('admitted', 'unknown', 'contained');
CREATE UNIQUE INDEX effect_once ON effect (run_id, kind, effect_key) WHERE state IN ('admitted', 'succeeded', 'unknown', 'contained');

ALTER TABLE schedule ADD CONSTRAINT schedule_active_revision_fkey
    FOREIGN KEY (schedule_id, active_revision) REFERENCES schedule_revision (schedule_id, revision);

-- What is written once stays as it was written (EVD-1, CAL-4).
CREATE FUNCTION append_only() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION '% is append-only: % is refused', TG_TABLE_NAME, TG_OP USING ERRCODE = 'NB001';
END $$;

-- An Occurrence's identity, assigned revision, bounds and jitter never change, and a final state is final (OCC-2, CAL-9).
-- Only state, waiting_reason, reason, decision_time and decision_id may differ, and only while the row is pending.
CREATE FUNCTION occurrence_is_pinned() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    pinned occurrence;
BEGIN
    IF OLD.state <> 'pending' THEN
        RAISE EXCEPTION 'occurrence % is decided: % stays', OLD.trigger_occurrence_id, OLD.state USING ERRCODE = 'NB002';
    END IF;
    pinned := NEW;
    pinned.state := OLD.state;
    pinned.waiting_reason := OLD.waiting_reason;
    pinned.reason := OLD.reason;
    pinned.decision_time := OLD.decision_time;
    pinned.decision_id := OLD.decision_id;
    IF pinned IS DISTINCT FROM OLD THEN
        RAISE EXCEPTION 'occurrence % is pinned: only its state may change', OLD.trigger_occurrence_id
            USING ERRCODE = 'NB002';
    END IF;
    RETURN NEW;
END $$;

-- A settled Run never changes, and no Run changes whose it is (FIN-4, IDN-1). An unmet bound stays unmet (FIN-3).
CREATE FUNCTION run_is_pinned() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF OLD.settled_at IS NOT NULL THEN
        RAISE EXCEPTION 'run % is settled: % stays', OLD.run_id, OLD.state USING ERRCODE = 'NB003';
    END IF;
    IF (NEW.run_id, NEW.invocation_id, NEW.trigger_occurrence_id, NEW.schedule_id, NEW.overlap_policy, NEW.admitted_at)
        IS DISTINCT FROM
       (OLD.run_id, OLD.invocation_id, OLD.trigger_occurrence_id, OLD.schedule_id, OLD.overlap_policy, OLD.admitted_at)
        OR NEW.finish_by IS DISTINCT FROM OLD.finish_by OR NEW.finish_proof IS DISTINCT FROM OLD.finish_proof
        OR NEW.enqueue_seq < OLD.enqueue_seq
        OR (OLD.disposition = 'unmet' AND NEW.disposition <> 'unmet') THEN
        RAISE EXCEPTION 'run % is pinned: identity, bound and fence never go back', OLD.run_id USING ERRCODE = 'NB003';
    END IF;
    RETURN NEW;
END $$;

CREATE TRIGGER occurrence_is_pinned BEFORE UPDATE ON occurrence FOR EACH ROW EXECUTE FUNCTION occurrence_is_pinned();
CREATE TRIGGER run_is_pinned BEFORE UPDATE ON run FOR EACH ROW EXECUTE FUNCTION run_is_pinned();

DO $$
DECLARE
    kept text;
BEGIN
    FOREACH kept IN ARRAY ARRAY['zone_rules', 'schedule_revision', 'activation', 'skipped_range', 'round', 'decision',
                                'invocation', 'checkpoint'] LOOP
        EXECUTE format('CREATE TRIGGER append_only BEFORE UPDATE OR DELETE ON %I '
                       'FOR EACH ROW EXECUTE FUNCTION append_only()', kept);
    END LOOP;
    FOREACH kept IN ARRAY ARRAY['schedule', 'segment', 'occurrence', 'run', 'delivery', 'claim', 'effect', 'principal',
                                'pattern_revision'] LOOP
        EXECUTE format('CREATE TRIGGER never_deleted BEFORE DELETE ON %I '
                       'FOR EACH ROW EXECUTE FUNCTION append_only()', kept);
    END LOOP;
    FOR kept IN SELECT tablename FROM pg_tables WHERE schemaname = current_schema() LOOP
        IF kept <> 'alembic_version' THEN
            EXECUTE format('CREATE TRIGGER never_truncated BEFORE TRUNCATE ON %I '
                           'FOR EACH STATEMENT EXECUTE FUNCTION append_only()', kept);
        END IF;
    END LOOP;
END $$;
