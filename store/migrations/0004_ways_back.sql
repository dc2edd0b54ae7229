-- Ways back: who is waited for and what they said (WIN-8), what was cancelled (OVL-1, FIN-5), what an operator found out about
-- effects in doubt (IDN-5), and which Invocation takes up which (IDN-4).

CREATE TABLE awaited (
    run_id UUID NOT NULL,
    kind TEXT NOT NULL,
    wait_key TEXT NOT NULL,
    enqueue_seq INTEGER NOT NULL,
    asked_of TEXT,
    question JSONB NOT NULL,
    state TEXT NOT NULL,
    asked_at timestamptz NOT NULL,
    answer JSONB,
    answered_at timestamptz,
    answered_by TEXT,
    note TEXT,
    withdrawn_at timestamptz,
    withdrawn_by TEXT,
    CONSTRAINT awaited_pkey PRIMARY KEY (run_id, kind, wait_key),
    CONSTRAINT awaited_run_fkey FOREIGN KEY(run_id) REFERENCES run (run_id),
    CONSTRAINT awaited_state_law CHECK (CASE kind WHEN 'consent' THEN state IN ('asked', 'approved', 'denied', 'withdrawn') WHEN 'delegate' THEN state IN ('asked', 'answered') ELSE false END AND (state = 'asked') = (answered_at IS NULL) AND (answered_at IS NULL) = (answered_by IS NULL) AND (state = 'withdrawn') = (withdrawn_at IS NOT NULL) AND (withdrawn_at IS NULL) = (withdrawn_by IS NULL))
);

CREATE INDEX awaited_open ON awaited (asked_at) WHERE state = 'asked';

ALTER TABLE pattern_revision ADD COLUMN returns BOOLEAN NOT NULL DEFAULT false, ADD COLUMN recovers BOOLEAN NOT NULL DEFAULT false;

ALTER TABLE invocation ADD COLUMN recovers UUID;
ALTER TABLE invocation ADD CONSTRAINT invocation_recovers_law CHECK ((ordinal = 0) = (recovers IS NULL)) NOT VALID;
ALTER TABLE invocation VALIDATE CONSTRAINT invocation_recovers_law;
ALTER TABLE invocation ADD CONSTRAINT invocation_recovers_fkey FOREIGN KEY(recovers) REFERENCES invocation (invocation_id) NOT VALID;
ALTER TABLE invocation VALIDATE CONSTRAINT invocation_recovers_fkey;

ALTER TABLE run ADD COLUMN cancel_requested_at timestamptz, ADD COLUMN cancel_requested_by TEXT, ADD COLUMN cancel_note TEXT;
ALTER TABLE run ADD CONSTRAINT run_cancel_law CHECK ((cancel_requested_at IS NULL) = (cancel_requested_by IS NULL) AND (cancel_requested_at IS NOT NULL OR state NOT IN ('cancelling', 'cancelled'))) NOT VALID;
ALTER TABLE run VALIDATE CONSTRAINT run_cancel_law;
CREATE INDEX run_expiring ON run (finish_by) WHERE disposition = 'open';

ALTER TABLE claim DROP CONSTRAINT claim_ending_law;
ALTER TABLE claim ADD CONSTRAINT claim_ending_law CHECK (ending IS NULL OR ending IN ('done', 'yielded', 'parked', 'failed', 'refused')) NOT VALID;
ALTER TABLE claim VALIDATE CONSTRAINT claim_ending_law;

ALTER TABLE checkpoint ADD COLUMN schema_id TEXT;

ALTER TABLE effect ADD COLUMN consent_key TEXT, ADD COLUMN cost JSONB, ADD COLUMN finding TEXT, ADD COLUMN found_by TEXT,
    ADD COLUMN found_note TEXT, ADD COLUMN found_at timestamptz;
ALTER TABLE effect ADD CONSTRAINT effect_finding_law CHECK ((state = 'settled') = (finding IS NOT NULL) AND (finding IS NULL) = (found_by IS NULL) AND (finding IS NULL) = (found_at IS NULL) AND (finding IS NULL OR finding IN ('happened', 'did_not_happen', 'compensated'))) NOT VALID;
ALTER TABLE effect VALIDATE CONSTRAINT effect_finding_law;
DROP INDEX effect_once;
CREATE UNIQUE INDEX effect_once ON effect (run_id, kind, effect_key) WHERE state IN ('admitted', 'succeeded', 'unknown', 'contained') OR finding IN ('happened', 'compensated');

-- What was asked stays as it was asked; an answer is given once, and only a given consent can be taken back.
CREATE FUNCTION awaited_is_pinned() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF (NEW.run_id, NEW.kind, NEW.wait_key, NEW.enqueue_seq, NEW.asked_of, NEW.question, NEW.asked_at) IS DISTINCT FROM
       (OLD.run_id, OLD.kind, OLD.wait_key, OLD.enqueue_seq, OLD.asked_of, OLD.question, OLD.asked_at)
       OR NOT (OLD.state = 'asked' OR (OLD.state = 'approved' AND NEW.state = 'withdrawn')) THEN
        RAISE EXCEPTION 'what run % awaits as % is answered once', OLD.run_id, OLD.wait_key USING ERRCODE = 'NB005';
    END IF;
    RETURN NEW;
END $$;

CREATE TRIGGER awaited_is_pinned BEFORE UPDATE ON awaited FOR EACH ROW EXECUTE FUNCTION awaited_is_pinned();
CREATE TRIGGER never_deleted BEFORE DELETE ON awaited FOR EACH ROW EXECUTE FUNCTION append_only();
CREATE TRIGGER never_truncated BEFORE TRUNCATE ON awaited FOR EACH STATEMENT EXECUTE FUNCTION append_only();
