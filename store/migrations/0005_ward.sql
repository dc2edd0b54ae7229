-- The Ward: what principals may do, in which units, and until when (AUT-1..4).

CREATE TABLE sigil (
    name TEXT NOT NULL,
    owner TEXT NOT NULL,
    standing TEXT NOT NULL,
    scopes JSONB NOT NULL,
    expires_at timestamptz,
    generation INTEGER NOT NULL,
    changed_at timestamptz NOT NULL,
    CONSTRAINT sigil_pkey PRIMARY KEY (name),
    CONSTRAINT sigil_owner_fkey FOREIGN KEY(owner) REFERENCES principal (name),
    CONSTRAINT sigil_law CHECK (standing IN ('active', 'revoked') AND jsonb_typeof(scopes) = 'array')
);

CREATE TABLE budget (
    holder_kind TEXT NOT NULL,
    holder TEXT NOT NULL,
    unit TEXT NOT NULL,
    period_seconds INTEGER NOT NULL,
    ceiling DOUBLE PRECISION NOT NULL,
    generation INTEGER NOT NULL,
    changed_at timestamptz NOT NULL,
    CONSTRAINT budget_pkey PRIMARY KEY (holder_kind, holder, unit, period_seconds),
    CONSTRAINT budget_law CHECK (holder_kind IN ('owner', 'schedule') AND period_seconds >= 0 AND ceiling >= 0 AND unit <> '')
);

CREATE TABLE budget_use (
    run_id UUID NOT NULL,
    unit TEXT NOT NULL,
    owner TEXT NOT NULL,
    schedule TEXT NOT NULL,
    reserved DOUBLE PRECISION NOT NULL,
    used DOUBLE PRECISION,
    reserved_at timestamptz NOT NULL,
    CONSTRAINT budget_use_pkey PRIMARY KEY (run_id, unit),
    CONSTRAINT budget_use_run_fkey FOREIGN KEY(run_id) REFERENCES run (run_id),
    CONSTRAINT budget_use_law CHECK (reserved >= 0 AND (used IS NULL OR used >= 0))
);

CREATE INDEX budget_use_open ON budget_use (owner, unit) WHERE used IS NULL;
CREATE INDEX budget_use_owner ON budget_use (owner, unit, reserved_at);
CREATE INDEX budget_use_schedule ON budget_use (schedule, unit, reserved_at);

ALTER TABLE occurrence DROP CONSTRAINT occurrence_waiting_law;
ALTER TABLE occurrence ADD CONSTRAINT occurrence_waiting_law CHECK (waiting_reason IS NULL OR waiting_reason IN ('not_yet_eligible', 'overlap', 'capacity', 'readiness', 'quiet_window', 'paused', 'catch_up', 'budget')) NOT VALID;
ALTER TABLE occurrence VALIDATE CONSTRAINT occurrence_waiting_law;

-- A Sigil that a revision has named so far was never asked about: it goes on to reach everything until somebody says less.
INSERT INTO sigil (name, owner, standing, scopes, generation, changed_at)
SELECT DISTINCT ON (document -> 'work' ->> 'sigil')
       document -> 'work' ->> 'sigil', document -> 'work' ->> 'owner', 'active', '["*"]'::jsonb, 1, trusted_now()
FROM schedule_revision
WHERE document -> 'work' ->> 'sigil' IS NOT NULL
  AND EXISTS (SELECT FROM principal WHERE principal.name = document -> 'work' ->> 'owner')
ORDER BY document -> 'work' ->> 'sigil', registered_at DESC;

-- What a Run reserved is reserved once, and settled once (AUT-4).
CREATE FUNCTION budget_use_is_pinned() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF OLD.used IS NOT NULL OR (NEW.run_id, NEW.unit, NEW.owner, NEW.schedule, NEW.reserved, NEW.reserved_at) IS DISTINCT FROM
       (OLD.run_id, OLD.unit, OLD.owner, OLD.schedule, OLD.reserved, OLD.reserved_at) THEN
        RAISE EXCEPTION 'what run % reserved of % stays', OLD.run_id, OLD.unit USING ERRCODE = 'NB006';
    END IF;
    RETURN NEW;
END $$;

CREATE TRIGGER budget_use_is_pinned BEFORE UPDATE ON budget_use FOR EACH ROW EXECUTE FUNCTION budget_use_is_pinned();

DO $$
DECLARE
    kept text;
BEGIN
    FOREACH kept IN ARRAY ARRAY['sigil', 'budget', 'budget_use'] LOOP
        EXECUTE format('CREATE TRIGGER never_deleted BEFORE DELETE ON %I '
                       'FOR EACH ROW EXECUTE FUNCTION append_only()', kept);
        EXECUTE format('CREATE TRIGGER never_truncated BEFORE TRUNCATE ON %I '
                       'FOR EACH STATEMENT EXECUTE FUNCTION append_only()', kept);
    END LOOP;
END $$;
