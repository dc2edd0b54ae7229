"""The locking statements, in the order in which their ranks are taken; see `store.locks` for who takes which, and why.

Within a statement rows are locked in the order of their key. What a statement selects by may change while it waits: whoever
holds the rows then judges only what it holds.
"""

from psycopg import sql

CAPABILITIES_OF = sql.SQL(
    """
    SELECT capability, state, admission, sharing, units, protected_units, foreground_units FROM capability
    WHERE capability IN (
        SELECT r.capability FROM schedule_revision r JOIN schedule s ON s.schedule_id = r.schedule_id
        WHERE s.authority = %(authority)s AND s.name = %(name)s AND r.capability IS NOT NULL
    )
    ORDER BY capability
    FOR NO KEY UPDATE
    """
)

SCHEDULES_OF_CAPABILITIES = sql.SQL(
    """
    WITH own AS (SELECT schedule_id FROM schedule WHERE authority = %(authority)s AND name = %(name)s),
    needed AS (
        SELECT DISTINCT r.capability FROM schedule_revision r JOIN own ON own.schedule_id = r.schedule_id
        WHERE r.capability IS NOT NULL
    )
    SELECT schedule_id, authority, name, active_revision, last_sampled_at, halted_reason, paused_at
    FROM schedule
    WHERE schedule_id IN (
        SELECT schedule_id FROM own
        UNION
        SELECT o.schedule_id FROM needed JOIN occurrence o ON o.capability = needed.capability
        WHERE o.state = 'pending' AND o.capability IS NOT NULL
        UNION
        SELECT n.schedule_id FROM needed JOIN run n ON n.capability = needed.capability
        WHERE n.wait_owner = 'hardware'
    )
    ORDER BY schedule_id
    FOR NO KEY UPDATE
    """
)

RESUMABLE_RUNS = sql.SQL(
    """
    WITH own AS (SELECT schedule_id FROM schedule WHERE authority = %(authority)s AND name = %(name)s),
    needed AS (
        SELECT DISTINCT r.capability FROM schedule_revision r JOIN own ON own.schedule_id = r.schedule_id
        WHERE r.capability IS NOT NULL
    )
    SELECT r.run_id, r.trigger_occurrence_id, r.schedule_id, s.authority || '/' || s.name AS schedule, r.state,
           r.disposition, r.enqueue_seq, r.lost_hops, r.finish_by, r.finish_proof, o.pattern, o.pattern_revision,
           o.pattern_digest AS pinned_digest, r.capability, o.service_class, o.owner, o.sigil,
           r.wait_owner, r.cancel_requested_at
    FROM run r
    JOIN occurrence o ON o.trigger_occurrence_id = r.trigger_occurrence_id
    JOIN schedule s ON s.schedule_id = r.schedule_id
    WHERE r.wait_owner = 'hardware'
      AND (r.schedule_id IN (SELECT schedule_id FROM own) OR r.capability IN (SELECT capability FROM needed))
    ORDER BY r.run_id
    FOR NO KEY UPDATE OF r
    """
)

POLICIES_OF = sql.SQL(
    """
    SELECT origin, principal, ceiling, above, generation FROM origin_policy WHERE origin = %(origin)s
    ORDER BY principal FOR SHARE
    """
)

OWNER_NAMED = sql.SQL("SELECT name, standing, generation FROM principal WHERE name = %(name)s FOR SHARE")

OWN_SCHEDULE = sql.SQL(
    """
    SELECT schedule_id, authority, name, active_revision, last_sampled_at, halted_reason, paused_at
    FROM schedule
    WHERE authority = %(authority)s AND name = %(name)s
    FOR NO KEY UPDATE
    """
)

# The clock in these two is a hint of whom to take along, in a scalar subquery so that the index is used; what is due or
# eligible is judged after the locks, at the sample.
OTHER_SCHEDULES_DUE = sql.SQL(
    """
    SELECT schedule_id, authority, name, active_revision, last_sampled_at, halted_reason, paused_at
    FROM schedule
    WHERE schedule_id IN (
        SELECT schedule_id FROM segment
        WHERE next_nominal_at IS NOT NULL AND next_nominal_at <= (SELECT trusted_now())
        ORDER BY next_nominal_at LIMIT %(others_max)s
    ) AND paused_at IS NULL
    ORDER BY schedule_id
    FOR NO KEY UPDATE SKIP LOCKED
    """
)

OTHER_SCHEDULES_WAITING = sql.SQL(
    """
    SELECT schedule_id, authority, name, active_revision, last_sampled_at, halted_reason, paused_at
    FROM schedule
    WHERE schedule_id IN (
        SELECT schedule_id FROM occurrence
        WHERE state = 'pending' AND eligible_at <= (SELECT trusted_now())
          AND (waiting_reason IS NULL OR waiting_reason = 'not_yet_eligible')
        ORDER BY eligible_at LIMIT %(others_max)s
    )
    ORDER BY schedule_id
    FOR NO KEY UPDATE SKIP LOCKED
    """
)

OWNERS_OF_PENDING = sql.SQL(
    """
    SELECT name, standing, generation FROM principal
    WHERE name IN (
        SELECT owner FROM occurrence WHERE state = 'pending'
        UNION
        SELECT o.owner FROM run n JOIN occurrence o ON o.trigger_occurrence_id = n.trigger_occurrence_id
        WHERE n.wait_owner = 'hardware'
    )
    ORDER BY name
    FOR SHARE
    """
)

SIGILS_OF_PENDING = sql.SQL(
    """
    SELECT name, owner, standing, scopes, expires_at FROM sigil
    WHERE name IN (
        SELECT sigil FROM occurrence WHERE state = 'pending' AND sigil IS NOT NULL
        UNION
        SELECT o.sigil FROM run n JOIN occurrence o ON o.trigger_occurrence_id = n.trigger_occurrence_id
        WHERE n.wait_owner = 'hardware' AND o.sigil IS NOT NULL
    )
    ORDER BY name
    FOR SHARE
    """
)

BUDGETS_OF_PENDING = sql.SQL(
    """
    SELECT holder_kind, holder, unit, period_seconds, ceiling FROM budget
    WHERE (holder_kind = 'owner' AND holder IN (SELECT owner FROM occurrence WHERE state = 'pending'))
       OR (holder_kind = 'schedule' AND holder IN (
            SELECT s.authority || '/' || s.name FROM schedule s
            WHERE s.schedule_id IN (SELECT schedule_id FROM occurrence WHERE state = 'pending')))
    ORDER BY holder_kind, holder, unit, period_seconds
    FOR NO KEY UPDATE
    """
)

BUDGETS_OF_RUN = sql.SQL(
    """
    SELECT b.holder_kind, b.holder, b.unit, b.period_seconds, b.ceiling FROM budget b
    JOIN run r ON r.run_id = %(run_id)s
    JOIN occurrence o ON o.trigger_occurrence_id = r.trigger_occurrence_id
    JOIN schedule s ON s.schedule_id = r.schedule_id
    WHERE CASE b.holder_kind WHEN 'owner' THEN o.owner ELSE s.authority || '/' || s.name END = b.holder
    ORDER BY b.holder_kind, b.holder, b.unit, b.period_seconds
    FOR NO KEY UPDATE OF b
    """
)

SIGIL_OF_RUN = sql.SQL(
    """
    SELECT g.name, g.owner, g.standing, g.scopes, g.expires_at FROM sigil g
    JOIN occurrence o ON o.sigil = g.name
    JOIN run r ON r.trigger_occurrence_id = o.trigger_occurrence_id
    WHERE r.run_id = %(run_id)s
    FOR SHARE OF g
    """
)

PATTERNS_OF_PENDING = sql.SQL(
    """
    SELECT pattern, pattern_revision, standing, digest, merges, yields, returns, recovers FROM pattern_revision
    WHERE (pattern, pattern_revision) IN (
        SELECT pattern, pattern_revision FROM occurrence WHERE state = 'pending'
        UNION
        SELECT o.pattern, o.pattern_revision FROM run n
        JOIN occurrence o ON o.trigger_occurrence_id = n.trigger_occurrence_id
        WHERE n.wait_owner = 'hardware'
    )
    ORDER BY pattern, pattern_revision
    FOR SHARE
    """
)

PATTERN_OF = sql.SQL(
    """
    SELECT pattern, pattern_revision, standing, digest, merges, yields, returns, recovers FROM pattern_revision
    WHERE pattern = %(pattern)s AND pattern_revision = %(pattern_revision)s
    FOR SHARE
    """
)

OWNER_OF_RUN = sql.SQL(
    """
    SELECT p.name, p.standing, p.generation FROM principal p
    JOIN occurrence o ON o.owner = p.name
    JOIN run r ON r.trigger_occurrence_id = o.trigger_occurrence_id
    WHERE r.run_id = %(run_id)s
    FOR SHARE OF p
    """
)

PATTERN_OF_RUN = sql.SQL(
    """
    SELECT p.pattern, p.pattern_revision, p.standing, p.digest, p.merges, p.yields, p.returns, p.recovers FROM pattern_revision p
    JOIN occurrence o ON o.pattern = p.pattern AND o.pattern_revision = p.pattern_revision
    JOIN run r ON r.trigger_occurrence_id = o.trigger_occurrence_id
    WHERE r.run_id = %(run_id)s
    FOR SHARE OF p
    """
)

OWN_RUN = sql.SQL(
    """
    SELECT r.run_id, r.trigger_occurrence_id, r.schedule_id, s.authority || '/' || s.name AS schedule, r.state,
           r.disposition, r.enqueue_seq, r.lost_hops, r.finish_by, r.finish_proof, o.pattern, o.pattern_revision,
           o.pattern_digest AS pinned_digest, r.capability, o.service_class, o.owner, o.sigil,
           r.wait_owner, r.cancel_requested_at
    FROM run r
    JOIN occurrence o ON o.trigger_occurrence_id = r.trigger_occurrence_id
    JOIN schedule s ON s.schedule_id = r.schedule_id
    WHERE r.run_id = %(run_id)s
    FOR NO KEY UPDATE OF r
    """
)
