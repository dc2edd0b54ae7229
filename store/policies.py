"""What an operator lets an origin ask for (CLS-2): one row for everybody of an origin, and one for a principal of it.

A change waits for offers in flight, which hold these rows FOR SHARE, and is seen by the next. It counts its generation up,
and every Occurrence keeps the generation that granted its class. A crash before the commit leaves the policy as it was.
"""

from psycopg import sql
from psycopg.rows import class_row

from law.origin import AboveCeiling, Origin, OriginPolicy, check_policy
from law.service_class import ServiceClass
from store.connection import Pool, borrow
from store.locks import HeldPolicy


def as_policy(one: HeldPolicy) -> OriginPolicy:
    """The row as the law knows it."""
    return OriginPolicy(one.origin, one.principal or None, one.ceiling, one.above, one.generation)


def set_policy(
    pool: Pool, origin: Origin, principal: str | None, ceiling: ServiceClass | None, above: AboveCeiling
) -> OriginPolicy:
    """Say what an origin, or one principal of it, may ask for; `ceiling` None: nothing. Raises BadInput."""
    policy = OriginPolicy(origin, principal, ceiling, above)
    check_policy(policy)
    arguments = {"origin": origin, "principal": principal or "", "ceiling": ceiling, "above": above}
    with borrow(pool) as connection:
        [(generation,)] = connection.execute(SET_POLICY, arguments).fetchall()
    return OriginPolicy(origin, principal, ceiling, above, generation)


def policies(pool: Pool) -> list[OriginPolicy]:
    """Every policy, by origin and principal."""
    with borrow(pool) as connection:
        rows = connection.cursor(row_factory=class_row(HeldPolicy)).execute(POLICIES).fetchall()
    return [as_policy(one) for one in rows]


SET_POLICY = sql.SQL(
    """
    INSERT INTO origin_policy (origin, principal, ceiling, above, generation, changed_at)
    VALUES (%(origin)s, %(principal)s, %(ceiling)s, %(above)s, 1, trusted_now())
    ON CONFLICT (origin, principal) DO UPDATE SET ceiling = excluded.ceiling, above = excluded.above,
        generation = origin_policy.generation + 1, changed_at = excluded.changed_at
    RETURNING generation
    """
)

POLICIES = sql.SQL("SELECT origin, principal, ceiling, above, generation FROM origin_policy ORDER BY origin, principal")
