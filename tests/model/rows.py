"""What is asked of the rows after every step of the model test, and how a process dies at its commit in it."""

DEADLY = """
CREATE TABLE nightbell_test.deadly (named text);
CREATE FUNCTION nightbell_test.die() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    IF EXISTS (SELECT FROM nightbell_test.deadly WHERE named = TG_TABLE_NAME) THEN
        PERFORM pg_terminate_backend(pg_backend_pid());
    END IF;
    RETURN NULL;
END $$;
CREATE CONSTRAINT TRIGGER die AFTER INSERT ON nightbell.occurrence DEFERRABLE INITIALLY DEFERRED
    FOR EACH ROW EXECUTE FUNCTION nightbell_test.die();
CREATE CONSTRAINT TRIGGER die AFTER INSERT ON nightbell.decision DEFERRABLE INITIALLY DEFERRED
    FOR EACH ROW EXECUTE FUNCTION nightbell_test.die();
CREATE CONSTRAINT TRIGGER die AFTER INSERT ON nightbell.slice DEFERRABLE INITIALLY DEFERRED
    FOR EACH ROW EXECUTE FUNCTION nightbell_test.die();
"""
"""Whoever writes into a table named here dies at its commit."""

EVERYTHING = """
SELECT json_build_object(
    'occurrences', (SELECT coalesce(json_object_agg(trigger_occurrence_id,
        json_build_array(state, coalesce(reason, waiting_reason), coalesced_into)), '{}') FROM nightbell.occurrence),
    'runs', (SELECT coalesce(json_object_agg(run_id, json_build_array(state, enqueue_seq, disposition, wait_owner)), '{}')
             FROM nightbell.run),
    'leases', (SELECT coalesce(json_object_agg(run_id, units), '{}') FROM nightbell.lease WHERE released_at IS NULL),
    'broken', (SELECT coalesce(json_agg(broken), '[]') FROM (
        SELECT 'WIN-1 ' || source_key AS broken FROM nightbell.occurrence
        WHERE state = 'admitted' AND (decision_time < not_before OR decision_time >= latest_start_at
                                      OR decision_time >= finish_by)
        UNION ALL
        SELECT 'OVL ' || r.schedule_id FROM nightbell.run r
        WHERE r.overlap_policy IN ('forbid', 'serialize', 'coalesce')
          AND r.state IN ('queued', 'running', 'parked', 'cancelling', 'contained')
        GROUP BY r.schedule_id HAVING count(*) > 1
        UNION ALL
        SELECT 'YLD-1 a lease outlives its hop: ' || l.run_id FROM nightbell.lease l JOIN nightbell.run r USING (run_id)
        WHERE l.released_at IS NULL AND (r.state NOT IN ('queued', 'running', 'cancelling') OR r.enqueue_seq <> l.enqueue_seq)
        UNION ALL
        SELECT 'YLD-1 a hop without its lease: ' || r.run_id FROM nightbell.run r
        WHERE r.capability IS NOT NULL AND r.state IN ('queued', 'running', 'cancelling') AND NOT EXISTS (
            SELECT FROM nightbell.lease l WHERE l.run_id = r.run_id AND l.released_at IS NULL)
        UNION ALL
        SELECT 'OVL-5 ' || m.source_key FROM nightbell.occurrence m
        JOIN nightbell.occurrence h ON h.trigger_occurrence_id = m.coalesced_into
        WHERE h.state <> 'admitted' OR m.merged_input_digest IS NULL
        UNION ALL
        SELECT 'OCC-8 ' || source_key FROM nightbell.occurrence
        WHERE service_class <> 'deadline_windowed' AND coalesce(latest_start_at, finish_by, not_before) IS NOT NULL
        UNION ALL
        SELECT 'EVD-1 ' || o.source_key FROM nightbell.occurrence o
        WHERE o.state NOT IN ('pending', 'revoked', 'skipped') AND NOT EXISTS (
            SELECT FROM nightbell.decision d
            WHERE d.trigger_occurrence_id = o.trigger_occurrence_id AND d.outcome = o.state)
    ) AS found))
"""
