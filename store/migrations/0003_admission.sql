-- Admission: what there is to give and who holds it (SEL-2, SEL-4, YLD-1..5), who may ask for what (CLS-2), and what was
-- merged into what (OVL-5).

CREATE TABLE capability (
    capability TEXT NOT NULL,
    state TEXT NOT NULL,
    admission TEXT NOT NULL,
    sharing TEXT NOT NULL,
    units INTEGER NOT NULL,
    protected_units INTEGER NOT NULL,
    foreground_units INTEGER NOT NULL,
    changed_at timestamptz NOT NULL,
    judged_at timestamptz,
    CONSTRAINT capability_pkey PRIMARY KEY (capability),
    CONSTRAINT capability_state_law CHECK (state IN ('WARM', 'COLD', 'CONVERGING', 'UNKNOWN') AND admission IN ('open', 'closed') AND sharing IN ('shared', 'exclusive')),
    CONSTRAINT capability_units_law CHECK (protected_units >= 0 AND foreground_units >= 0 AND protected_units + foreground_units <= units)
);

CREATE TABLE lease (
    run_id UUID NOT NULL,
    enqueue_seq INTEGER NOT NULL,
    capability TEXT NOT NULL,
    service_class TEXT NOT NULL,
    units INTEGER NOT NULL,
    granted_at timestamptz NOT NULL,
    expected_end_at timestamptz,
    released_at timestamptz,
    CONSTRAINT lease_pkey PRIMARY KEY (run_id, enqueue_seq),
    CONSTRAINT lease_delivery_fkey FOREIGN KEY(run_id, enqueue_seq) REFERENCES delivery (run_id, enqueue_seq),
    CONSTRAINT lease_capability_fkey FOREIGN KEY(capability) REFERENCES capability (capability),
    CONSTRAINT lease_law CHECK (units >= 1 AND service_class IN ('foreground', 'deadline_windowed', 'spare_capacity'))
);

CREATE INDEX lease_open ON lease (capability) WHERE released_at IS NULL;

CREATE UNIQUE INDEX lease_open_run ON lease (run_id) WHERE released_at IS NULL;

CREATE INDEX lease_released ON lease (capability, released_at);

CREATE TABLE slice (
    run_id UUID NOT NULL,
    enqueue_seq INTEGER NOT NULL,
    pattern TEXT NOT NULL,
    pattern_revision TEXT NOT NULL,
    capability TEXT,
    service_class TEXT NOT NULL,
    offered_at timestamptz NOT NULL,
    claimed_at timestamptz NOT NULL,
    ended_at timestamptz NOT NULL,
    reason TEXT NOT NULL,
    at_boundary BOOLEAN NOT NULL,
    effects_left INTEGER NOT NULL,
    run_seconds DOUBLE PRECISION,
    CONSTRAINT slice_pkey PRIMARY KEY (run_id, enqueue_seq),
    CONSTRAINT slice_delivery_fkey FOREIGN KEY(run_id, enqueue_seq) REFERENCES delivery (run_id, enqueue_seq)
);

CREATE INDEX slice_measured ON slice (pattern, pattern_revision, COALESCE(capability, ''::text), ended_at) WHERE run_seconds IS NOT NULL;

CREATE INDEX slice_shown ON slice (pattern, pattern_revision, ended_at);

CREATE TABLE quiet_window (
    quiet_window_id UUID NOT NULL,
    capability TEXT,
    opens_at timestamptz NOT NULL,
    closes_at timestamptz NOT NULL,
    approved_by TEXT NOT NULL,
    note TEXT NOT NULL,
    approved_at timestamptz NOT NULL,
    withdrawn_at timestamptz,
    withdrawn_by TEXT,
    CONSTRAINT quiet_window_pkey PRIMARY KEY (quiet_window_id),
    CONSTRAINT quiet_window_law CHECK (opens_at < closes_at AND approved_by <> ''),
    CONSTRAINT quiet_window_withdrawn_law CHECK ((withdrawn_at IS NULL) = (withdrawn_by IS NULL))
);

CREATE INDEX quiet_window_time ON quiet_window (closes_at) WHERE withdrawn_at IS NULL;

CREATE TABLE readiness_request (
    trigger_occurrence_id UUID NOT NULL,
    schedule_id BIGINT NOT NULL,
    capability TEXT NOT NULL,
    state TEXT NOT NULL,
    seconds_max INTEGER NOT NULL,
    cost_max DOUBLE PRECISION NOT NULL,
    asked_at timestamptz NOT NULL,
    taken_at timestamptz,
    taken_by TEXT,
    answered_at timestamptz,
    seconds_spent DOUBLE PRECISION,
    cost_spent DOUBLE PRECISION,
    note TEXT,
    CONSTRAINT readiness_request_pkey PRIMARY KEY (trigger_occurrence_id),
    CONSTRAINT readiness_request_occurrence_fkey FOREIGN KEY(trigger_occurrence_id) REFERENCES occurrence (trigger_occurrence_id),
    CONSTRAINT readiness_request_state_law CHECK (CASE state WHEN 'asked' THEN taken_at IS NULL AND answered_at IS NULL WHEN 'taken' THEN taken_at IS NOT NULL AND answered_at IS NULL WHEN 'converged' THEN answered_at IS NOT NULL WHEN 'failed' THEN answered_at IS NOT NULL ELSE false END),
    CONSTRAINT readiness_request_spent_law CHECK ((answered_at IS NULL) = (seconds_spent IS NULL) AND (answered_at IS NULL) = (cost_spent IS NULL))
);

CREATE INDEX readiness_request_open ON readiness_request (asked_at) WHERE state IN ('asked', 'taken');

CREATE INDEX readiness_request_spent ON readiness_request (schedule_id, asked_at);

CREATE TABLE origin_policy (
    origin TEXT NOT NULL,
    principal TEXT NOT NULL,
    ceiling TEXT,
    above TEXT NOT NULL,
    generation INTEGER NOT NULL,
    changed_at timestamptz NOT NULL,
    CONSTRAINT origin_policy_pkey PRIMARY KEY (origin, principal),
    CONSTRAINT origin_policy_law CHECK (origin IN ('operator', 'schedule', 'legionnaire', 'a2a_peer') AND above IN ('lower', 'refuse') AND (ceiling IS NULL OR ceiling IN ('foreground', 'deadline_windowed', 'spare_capacity')))
);


ALTER TABLE pattern_revision ADD COLUMN merges BOOLEAN NOT NULL DEFAULT false, ADD COLUMN yields JSONB;

ALTER TABLE invocation ADD COLUMN input JSONB, ADD COLUMN input_digest TEXT;
ALTER TABLE invocation ADD CONSTRAINT invocation_input_law CHECK ((input IS NULL) = (input_digest IS NULL)) NOT VALID;
ALTER TABLE invocation VALIDATE CONSTRAINT invocation_input_law;

ALTER TABLE run ADD COLUMN capability TEXT, ADD COLUMN units INTEGER NOT NULL DEFAULT 0, ADD COLUMN wait_owner TEXT;
ALTER TABLE run ADD CONSTRAINT run_parked_law CHECK ((state = 'parked') = (wait_owner IS NOT NULL) AND (wait_owner IS NULL OR wait_owner IN ('consent', 'delegate', 'hardware'))) NOT VALID;
ALTER TABLE run VALIDATE CONSTRAINT run_parked_law;
ALTER TABLE run ADD CONSTRAINT run_units_law CHECK (units >= 0 AND (capability IS NOT NULL OR units = 0)) NOT VALID;
ALTER TABLE run VALIDATE CONSTRAINT run_units_law;
CREATE INDEX run_resumable ON run (capability, run_id) WHERE wait_owner = 'hardware';

ALTER TABLE occurrence ADD COLUMN authority_generation INTEGER NOT NULL DEFAULT 1, ADD COLUMN capability TEXT,
    ADD COLUMN coalesced_into UUID, ADD COLUMN merged_input_digest TEXT;
ALTER TABLE occurrence ADD CONSTRAINT occurrence_coalesced_law CHECK ((state = 'coalesced') = (coalesced_into IS NOT NULL) AND (coalesced_into IS NULL OR merged_input_digest IS NOT NULL) AND (coalesced_into IS NULL OR coalesced_into <> trigger_occurrence_id)) NOT VALID;
ALTER TABLE occurrence VALIDATE CONSTRAINT occurrence_coalesced_law;
ALTER TABLE occurrence ADD CONSTRAINT occurrence_coalesced_fkey FOREIGN KEY(coalesced_into) REFERENCES occurrence (trigger_occurrence_id) NOT VALID;
ALTER TABLE occurrence VALIDATE CONSTRAINT occurrence_coalesced_fkey;
CREATE INDEX occurrence_members ON occurrence (coalesced_into) WHERE coalesced_into IS NOT NULL;
CREATE INDEX occurrence_needs ON occurrence (capability) WHERE state = 'pending' AND capability IS NOT NULL;

-- What waits already needs what its revision says; what is decided stays as it was.
ALTER TABLE occurrence DISABLE TRIGGER occurrence_is_pinned;
UPDATE occurrence o SET capability = r.capability FROM schedule_revision r
WHERE r.schedule_id = o.schedule_id AND r.revision = o.revision AND o.state = 'pending' AND r.capability IS NOT NULL;
ALTER TABLE occurrence ENABLE TRIGGER occurrence_is_pinned;

-- A decision may also say into what an Occurrence was merged; nothing else about it changes (OCC-2, CAL-9, OVL-5).
CREATE OR REPLACE FUNCTION occurrence_is_pinned() RETURNS trigger LANGUAGE plpgsql AS $$
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
    pinned.coalesced_into := OLD.coalesced_into;
    pinned.merged_input_digest := OLD.merged_input_digest;
    IF pinned IS DISTINCT FROM OLD THEN
        RAISE EXCEPTION 'occurrence % is pinned: only its state may change', OLD.trigger_occurrence_id
            USING ERRCODE = 'NB002';
    END IF;
    RETURN NEW;
END $$;

-- A settled Run never changes, and no Run changes whose it is, what it needs, or its bound (FIN-3, FIN-4, IDN-1).
CREATE OR REPLACE FUNCTION run_is_pinned() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF OLD.settled_at IS NOT NULL THEN
        RAISE EXCEPTION 'run % is settled: % stays', OLD.run_id, OLD.state USING ERRCODE = 'NB003';
    END IF;
    IF (NEW.run_id, NEW.invocation_id, NEW.trigger_occurrence_id, NEW.schedule_id, NEW.overlap_policy, NEW.admitted_at)
        IS DISTINCT FROM
       (OLD.run_id, OLD.invocation_id, OLD.trigger_occurrence_id, OLD.schedule_id, OLD.overlap_policy, OLD.admitted_at)
        OR NEW.finish_by IS DISTINCT FROM OLD.finish_by OR NEW.finish_proof IS DISTINCT FROM OLD.finish_proof
        OR (NEW.capability, NEW.units) IS DISTINCT FROM (OLD.capability, OLD.units)
        OR NEW.enqueue_seq < OLD.enqueue_seq
        OR (OLD.disposition = 'unmet' AND NEW.disposition <> 'unmet') THEN
        RAISE EXCEPTION 'run % is pinned: identity, bound and fence never go back', OLD.run_id USING ERRCODE = 'NB003';
    END IF;
    RETURN NEW;
END $$;

-- A lease is granted once and released once (YLD-1).
CREATE FUNCTION lease_is_pinned() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF OLD.released_at IS NOT NULL OR (NEW.run_id, NEW.enqueue_seq, NEW.capability, NEW.service_class, NEW.units,
                                       NEW.granted_at, NEW.expected_end_at) IS DISTINCT FROM
       (OLD.run_id, OLD.enqueue_seq, OLD.capability, OLD.service_class, OLD.units, OLD.granted_at, OLD.expected_end_at) THEN
        RAISE EXCEPTION 'lease of run % hop % is pinned: it is released once', OLD.run_id, OLD.enqueue_seq
            USING ERRCODE = 'NB004';
    END IF;
    RETURN NEW;
END $$;

CREATE TRIGGER lease_is_pinned BEFORE UPDATE ON lease FOR EACH ROW EXECUTE FUNCTION lease_is_pinned();

-- Nobody grants what is not there: whoever grants holds the capability's row, so the sum cannot race (SEL-4).
CREATE FUNCTION lease_within_units() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    over text;
BEGIN
    SELECT c.capability INTO over FROM capability c
    WHERE c.capability IN (SELECT capability FROM granted)
      AND (c.state <> 'WARM' OR c.admission <> 'open'
           OR c.units < (SELECT sum(l.units) FROM lease l WHERE l.capability = c.capability AND l.released_at IS NULL))
    LIMIT 1;
    IF over IS NOT NULL THEN
        RAISE EXCEPTION 'capability % does not have what was granted', over USING ERRCODE = 'NB004';
    END IF;
    RETURN NULL;
END $$;

CREATE TRIGGER lease_within_units AFTER INSERT ON lease REFERENCING NEW TABLE AS granted
    FOR EACH STATEMENT EXECUTE FUNCTION lease_within_units();

-- No lease outlives its hop: at the commit, a Run holds one for the hop it is on, or none (YLD-1, OVL-1).
CREATE FUNCTION run_leaves_no_lease() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF EXISTS (
        SELECT FROM lease l JOIN run n ON n.run_id = l.run_id
        WHERE l.run_id = NEW.run_id AND l.released_at IS NULL
          AND (l.enqueue_seq <> n.enqueue_seq OR n.state NOT IN ('queued', 'running', 'cancelling'))
    ) THEN
        RAISE EXCEPTION 'run % would leave a lease behind', NEW.run_id USING ERRCODE = 'NB004';
    END IF;
    RETURN NULL;
END $$;

CREATE CONSTRAINT TRIGGER run_leaves_no_lease AFTER UPDATE ON run DEFERRABLE INITIALLY DEFERRED
    FOR EACH ROW WHEN (NEW.capability IS NOT NULL) EXECUTE FUNCTION run_leaves_no_lease();

DO $$
DECLARE
    kept text;
BEGIN
    CREATE TRIGGER append_only BEFORE UPDATE OR DELETE ON slice FOR EACH ROW EXECUTE FUNCTION append_only();
    FOREACH kept IN ARRAY ARRAY['capability', 'lease', 'quiet_window', 'readiness_request', 'origin_policy'] LOOP
        EXECUTE format('CREATE TRIGGER never_deleted BEFORE DELETE ON %I '
                       'FOR EACH ROW EXECUTE FUNCTION append_only()', kept);
    END LOOP;
    FOREACH kept IN ARRAY ARRAY['capability', 'lease', 'slice', 'quiet_window', 'readiness_request', 'origin_policy'] LOOP
        EXECUTE format('CREATE TRIGGER never_truncated BEFORE TRUNCATE ON %I '
                       'FOR EACH STATEMENT EXECUTE FUNCTION append_only()', kept);
    END LOOP;
END $$;
