"""Who may act, and which exact scores there are: the rows that every acting transaction reads again (AUT-1, AUT-2).

A change of standing updates the row that acts lock FOR SHARE, so it waits for an act in flight and is seen by the next.
A crash before the commit leaves the standing as it was.
"""

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

from psycopg import sql

from law.errors import BadInput, PatternChanged
from law.identity import Digest
from store.connection import Pool, borrow
from store.jsonb import jsonb


@dataclass(frozen=True, slots=True)
class InstalledPattern:
    """One Pattern revision as a worker or operator has it installed."""

    pattern: str
    pattern_revision: str
    digest: Digest
    merges: bool = False
    yields: dict[str, Any] | None = None
    """Its yield contract as plain JSON; None where it declares none."""
    returns: bool = False
    recovers: bool = False


def register_patterns(pool: Pool, installed: Iterable[InstalledPattern]) -> None:
    """Make installed Pattern revisions known. Raises PatternChanged when a known revision has another digest: what a
    Schedule pinned must stay what it was, so a changed source needs a new revision (AUT-1)."""
    with borrow(pool) as connection, connection.transaction():
        for one in installed:
            row = connection.execute(
                REGISTER_PATTERN,
                {**asdict(one), "yields": jsonb(one.yields) if one.yields is not None else None},
            ).fetchone()
            known = row[0] if row else one.digest
            if known != one.digest:
                raise PatternChanged(
                    pattern=one.pattern, pattern_revision=one.pattern_revision, known=known, installed=one.digest
                )


def change_owner(pool: Pool, name: str, standing: str) -> None:
    """Set a principal's standing (`active`, `suspended`, `revoked`) and count its generation up. A revoked principal
    stays revoked. Raises BadInput for an unknown principal or a standing that cannot follow."""
    with borrow(pool) as connection:
        changed = connection.execute(CHANGE_OWNER, {"name": name, "standing": standing}).fetchone()
    if changed is None:
        raise BadInput(field="principal", reason=f"{name!r} is not known, or was revoked for good")


REGISTER_PATTERN = sql.SQL(
    """
    WITH known AS (
        SELECT digest FROM pattern_revision
        WHERE pattern = %(pattern)s AND pattern_revision = %(pattern_revision)s
    ), told AS (  -- what the same source declares, to a store that was made before it kept declarations
        UPDATE pattern_revision SET returns = %(returns)s, recovers = %(recovers)s
        WHERE pattern = %(pattern)s AND pattern_revision = %(pattern_revision)s AND digest = %(digest)s
          AND (returns, recovers) IS DISTINCT FROM (%(returns)s, %(recovers)s)
    ), added AS (
        INSERT INTO pattern_revision (pattern, pattern_revision, digest, standing, changed_at, merges, yields,
                                      returns, recovers)
        SELECT %(pattern)s, %(pattern_revision)s, %(digest)s, 'active', trusted_now(), %(merges)s, %(yields)s,
               %(returns)s, %(recovers)s
        WHERE NOT EXISTS (SELECT FROM known)
        ON CONFLICT (pattern, pattern_revision) DO NOTHING
    )
    SELECT digest FROM known
    """
)

CHANGE_OWNER = sql.SQL(
    """
    UPDATE principal SET standing = %(standing)s, generation = generation + 1, changed_at = trusted_now()
    WHERE name = %(name)s AND standing <> 'revoked'
    RETURNING name
    """
)
