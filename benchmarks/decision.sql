-- One decision as `store.admission.decide` makes it, statement by statement: the same locks, sample, reads and writes.
-- Two liberties, both in pgbench's favour: rows are plain VALUES instead of JSON, and the answers are literals.
\set n :n + 1
\set k :first + :client_id * :per + :n * :step
BEGIN;
SELECT schedule_id, authority, name, active_revision, last_sampled_at, halted_reason, gen_random_uuid() AS by FROM schedule WHERE authority = 'bench' AND name = 'd' || :k FOR NO KEY UPDATE \gset
SELECT schedule_id, authority, name, active_revision, last_sampled_at, halted_reason FROM schedule WHERE schedule_id IN (SELECT schedule_id FROM occurrence WHERE state = 'pending' AND eligible_at <= (SELECT trusted_now()) AND (waiting_reason IS NULL OR waiting_reason = 'not_yet_eligible') ORDER BY eligible_at LIMIT 500) ORDER BY schedule_id FOR NO KEY UPDATE SKIP LOCKED;
SELECT name, standing FROM principal WHERE name IN (SELECT owner FROM occurrence WHERE state = 'pending') ORDER BY name FOR SHARE;
SELECT pattern, pattern_revision, standing, digest FROM pattern_revision WHERE (pattern, pattern_revision) IN (SELECT pattern, pattern_revision FROM occurrence WHERE state = 'pending') ORDER BY pattern, pattern_revision FOR SHARE;
SELECT trusted_now() AS at, (SELECT answer FROM round WHERE decision_id = :by) AS earlier \gset
SELECT o.trigger_occurrence_id AS id, o.schedule_id, o.source_key, o.service_class, o.priority, o.eligible_at, o.not_before, o.latest_start_at, o.finish_by, o.finish_proof, o.owner, o.origin, o.pattern, o.pattern_revision, o.pattern_digest, o.waiting_reason, r.overlap_policy, r.parallel_max, r.aging_seconds, r.capability, r.runs_per_day_max FROM occurrence o JOIN schedule_revision r ON r.schedule_id = o.schedule_id AND r.revision = o.revision WHERE o.state = 'pending' AND o.schedule_id = ANY(ARRAY[:schedule_id]::bigint[]) AND o.eligible_at <= :at ORDER BY o.eligible_at LIMIT 1 \gset
SELECT schedule_id, count(*) FROM run WHERE schedule_id = ANY(ARRAY[:schedule_id]::bigint[]) AND state IN ('queued', 'running', 'parked', 'cancelling', 'contained') GROUP BY schedule_id;
INSERT INTO decision (decision_id, trigger_occurrence_id, act, outcome, reason, obligations, evidence, sampled_at) VALUES (:by, :id, 'decide', 'admitted', 'admitted', '{WIN-1,AUT-1}', '{"decision_time": "2026-01-01T00Z"}', :at);
UPDATE occurrence o SET state = v.state, waiting_reason = CASE WHEN v.state = 'pending' THEN v.reason END, reason = CASE WHEN v.state <> 'pending' THEN v.reason END, decision_time = CASE WHEN v.state <> 'pending' THEN :at::timestamptz END, decision_id = CASE WHEN v.state <> 'pending' THEN :by::uuid END FROM unnest(ARRAY[:id]::uuid[], ARRAY['admitted'], ARRAY['admitted']) AS v (trigger_occurrence_id, state, reason) WHERE o.trigger_occurrence_id = v.trigger_occurrence_id;
INSERT INTO invocation (invocation_id, trigger_occurrence_id, ordinal, admitted_at, decision_id) VALUES (:id, :id, 0, :at, :by);
INSERT INTO run (run_id, invocation_id, trigger_occurrence_id, schedule_id, overlap_policy, state, disposition, enqueue_seq, lost_hops, admitted_at) VALUES (:id, :id, :id, :schedule_id, 'bounded_parallel', 'queued', 'untimed', 0, 0, :at);
INSERT INTO delivery (run_id, enqueue_seq, lane, pattern, state, created_at, publish_count) VALUES (:id, 0, 'temporal', 'bridge_turn', 'PENDING', :at, 0);
SELECT (SELECT min(eligible_at) FROM occurrence WHERE state = 'pending' AND schedule_id = :schedule_id AND eligible_at > :at), (SELECT min(next_nominal_at) FROM segment WHERE schedule_id = :schedule_id), (SELECT count(*) FROM (SELECT FROM delivery WHERE state = 'PENDING' LIMIT 1000) AS outbox);
INSERT INTO round (decision_id, act, sampled_at, clock_regressed, answer) VALUES (:by, 'decide', :at, false, '{"schedule": "bench/d0", "outcomes": [{"trigger_occurrence_id": "0", "key": "event", "state": "admitted", "reason": "admitted", "run_id": "0"}], "wake_at": null, "undelivered": 1}');
UPDATE schedule SET last_sampled_at = :at WHERE schedule_id = ANY(ARRAY[:schedule_id]::bigint[]);
COMMIT;
