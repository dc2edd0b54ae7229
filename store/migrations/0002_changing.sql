-- Changing a Schedule: who does not ring around a cut (CUT-1..4), and when it was paused.

CREATE TABLE cutover_exclusion (
    schedule_id BIGINT NOT NULL,
    segment_ordinal INTEGER NOT NULL,
    source_key TEXT NOT NULL,
    revision INTEGER NOT NULL,
    activation_ordinal INTEGER NOT NULL,
    rings_at timestamptz NOT NULL,
    disposition TEXT NOT NULL,
    owner_revision INTEGER NOT NULL,
    same_as_revision INTEGER,
    same_as_key TEXT,
    CONSTRAINT cutover_exclusion_pkey PRIMARY KEY (schedule_id, segment_ordinal, source_key),
    CONSTRAINT cutover_exclusion_segment_fkey FOREIGN KEY(schedule_id, segment_ordinal) REFERENCES segment (schedule_id, segment_ordinal),
    CONSTRAINT cutover_exclusion_activation_fkey FOREIGN KEY(schedule_id, activation_ordinal) REFERENCES activation (schedule_id, activation_ordinal),
    CONSTRAINT cutover_exclusion_law CHECK (CASE disposition WHEN 'same_as' THEN same_as_revision IS NOT NULL AND same_as_key IS NOT NULL WHEN 'skip' THEN same_as_revision IS NULL AND same_as_key IS NULL ELSE false END)
);

CREATE INDEX cutover_exclusion_time ON cutover_exclusion (schedule_id, segment_ordinal, rings_at);

CREATE TABLE pause_event (
    schedule_id BIGINT NOT NULL,
    event_ordinal INTEGER NOT NULL,
    act TEXT NOT NULL,
    sampled_at timestamptz NOT NULL,
    note TEXT NOT NULL,
    decision_id UUID NOT NULL,
    CONSTRAINT pause_event_pkey PRIMARY KEY (schedule_id, event_ordinal),
    CONSTRAINT pause_event_schedule_fkey FOREIGN KEY(schedule_id) REFERENCES schedule (schedule_id),
    CONSTRAINT pause_event_act_law CHECK (act IN ('pause', 'resume'))
);

ALTER TABLE schedule ADD COLUMN paused_at timestamptz;

ALTER TABLE occurrence DROP CONSTRAINT occurrence_waiting_law;
ALTER TABLE occurrence ADD CONSTRAINT occurrence_waiting_law CHECK (waiting_reason IS NULL OR waiting_reason IN ('not_yet_eligible', 'overlap', 'capacity', 'readiness', 'quiet_window', 'paused', 'catch_up')) NOT VALID;
ALTER TABLE occurrence VALIDATE CONSTRAINT occurrence_waiting_law;

DO $$
DECLARE
    kept text;
BEGIN
    FOREACH kept IN ARRAY ARRAY['cutover_exclusion', 'pause_event'] LOOP
        EXECUTE format('CREATE TRIGGER append_only BEFORE UPDATE OR DELETE ON %I '
                       'FOR EACH ROW EXECUTE FUNCTION append_only()', kept);
        EXECUTE format('CREATE TRIGGER never_truncated BEFORE TRUNCATE ON %I '
                       'FOR EACH STATEMENT EXECUTE FUNCTION append_only()', kept);
    END LOOP;
END $$;
