"""The Ward's facts, as operators change them: principals, Sigils, Pattern revisions (AUT-1, AUT-2).

A change updates the row that every act holds FOR SHARE: it waits for an act in flight, and whatever acts after it sees it. It
revokes nothing itself; it names the Schedules of which something waits under what was withdrawn, and their next decision, which
also looks at what waits for its hour, records each as revoked with the reason. A crash before the commit leaves the fact as it
was; after it, the relay finds what waits under an authority that is gone.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from psycopg import sql
from psycopg.rows import class_row

from law.authority import PatternStanding, PrincipalStanding
from law.errors import BadInput
from law.identity import ScheduleName
from store.connection import Pool, borrow
from store.jsonb import jsonb

NAME_LENGTH_MAX, SCOPES_MAX = 128, 100


@dataclass(frozen=True, slots=True)
class Principal:
    """Who may be accountable for work, and how they stand."""

    name: str
    standing: PrincipalStanding
    generation: int
    changed_at: datetime


@dataclass(frozen=True, slots=True)
class SigilLine:
    """A Sigil as a list shows it."""

    name: str
    owner: str
    standing: str
    scopes: list[str]
    expires_at: datetime | None
    generation: int
    changed_at: datetime


@dataclass(frozen=True, slots=True)
class PatternLine:
    """A Pattern revision as a list shows it, with what it declares of itself."""

    pattern: str
    pattern_revision: str
    standing: PatternStanding
    digest: str
    merges: bool
    returns: bool
    recovers: bool
    changed_at: datetime


def check_name(field: str, text: str) -> None:
    """A short, printable name. Raises BadInput."""
    if not text or len(text) > NAME_LENGTH_MAX or not text.isprintable():
        raise BadInput(field=field, reason=f"must be 1 to {NAME_LENGTH_MAX} printable characters")


def set_principal(pool: Pool, name: str, standing: PrincipalStanding) -> tuple[Principal, list[ScheduleName]]:
    """Enrol a principal, or change its standing; and the Schedules of which something waits under it. A revoked one stays
    revoked. Raises BadInput."""
    check_name("principal", name)
    with borrow(pool) as connection:
        rows = connection.cursor(row_factory=class_row(Principal))
        found = rows.execute(SET_PRINCIPAL, {"name": name, "standing": standing}).fetchone()
    if found is None:
        raise BadInput(field="principal", reason=f"{name!r} was revoked for good")
    return found, waiting_under(pool, owner=name)


def principals(pool: Pool) -> list[Principal]:
    """Every principal by name."""
    with borrow(pool) as connection:
        return connection.cursor(row_factory=class_row(Principal)).execute(PRINCIPALS).fetchall()


def grant_sigil(
    pool: Pool, name: str, owner: str, scopes: Sequence[str], expires_at: datetime | None
) -> tuple[SigilLine, list[ScheduleName]]:
    """State what a principal may do under this name; stated again, it replaces what it said. Raises BadInput for scopes that
    are none, an owner who is not known, another owner's Sigil, and one that was revoked."""
    check_name("sigil", name)
    if not scopes or len(scopes) > SCOPES_MAX:
        raise BadInput(field="scope", reason=f"must be 1 to {SCOPES_MAX} scopes")
    for scope in scopes:
        check_scope(scope)
    arguments = {"name": name, "owner": owner, "scopes": jsonb(sorted(set(scopes))), "expires_at": expires_at}
    with borrow(pool) as connection, connection.transaction():
        if connection.execute(IS_PRINCIPAL, {"name": owner}).fetchone() is None:
            raise BadInput(field="owner", reason=f"{owner[:NAME_LENGTH_MAX]!r} is not a known principal")
        found = connection.cursor(row_factory=class_row(SigilLine)).execute(GRANT, arguments).fetchone()
        if found is None:
            raise BadInput(field="sigil", reason=f"{name!r} is another owner's, or was revoked for good")
    return found, waiting_under(pool, sigil=name)


def check_scope(scope: str) -> None:
    """`*`, or a kind and a name: `pattern:nightly_rite`, `class:*`, `capability:gpu`, `effect:send`. Raises BadInput."""
    kind, colon, named = scope.partition(":")
    if scope != "*" and not (colon and named and kind in ("pattern", "class", "capability", "effect")):
        raise BadInput(
            field="scope",
            reason=f"{scope[:70]!r} is neither * nor pattern:, class:, capability: or effect: with a name",
        )
    check_name("scope", scope)


def revoke_sigil(pool: Pool, name: str) -> tuple[SigilLine, list[ScheduleName]]:
    """Revoke a Sigil for good. Raises BadInput for one that is not known."""
    with borrow(pool) as connection:
        found = connection.cursor(row_factory=class_row(SigilLine)).execute(REVOKE_SIGIL, {"name": name}).fetchone()
    if found is None:
        raise BadInput(field="sigil", reason=f"{name[:NAME_LENGTH_MAX]!r} is not known")
    return found, waiting_under(pool, sigil=name)


def sigils(pool: Pool) -> list[SigilLine]:
    """Every Sigil by name."""
    with borrow(pool) as connection:
        return connection.cursor(row_factory=class_row(SigilLine)).execute(SIGILS).fetchall()


def set_pattern(
    pool: Pool, pattern: str, pattern_revision: str, standing: PatternStanding
) -> tuple[PatternLine, list[ScheduleName]]:
    """Change a Pattern revision's standing; a revoked one stays revoked. Raises BadInput."""
    arguments = {"pattern": pattern, "pattern_revision": pattern_revision, "standing": standing}
    with borrow(pool) as connection:
        found = connection.cursor(row_factory=class_row(PatternLine)).execute(SET_PATTERN, arguments).fetchone()
    if found is None:
        raise BadInput(
            field="pattern", reason=f"{pattern!r} {pattern_revision!r} is not known, or was revoked for good"
        )
    return found, waiting_under(pool, pattern=pattern, pattern_revision=pattern_revision)


def patterns(pool: Pool) -> list[PatternLine]:
    """Every Pattern revision."""
    with borrow(pool) as connection:
        return connection.cursor(row_factory=class_row(PatternLine)).execute(PATTERNS).fetchall()


def waiting_under(pool: Pool, **named: str) -> list[ScheduleName]:
    """The Schedules of which something waits under an owner, a Sigil, or a Pattern revision."""
    nobody: dict[str, str | None] = {"owner": None, "sigil": None, "pattern": None, "pattern_revision": None}
    with borrow(pool) as connection:
        return [ScheduleName(name) for (name,) in connection.execute(WAITING_UNDER, {**nobody, **named}).fetchall()]


SET_PRINCIPAL = sql.SQL(
    """
    INSERT INTO principal (name, standing, generation, changed_at) VALUES (%(name)s, %(standing)s, 1, trusted_now())
    ON CONFLICT (name) DO UPDATE SET standing = excluded.standing, changed_at = excluded.changed_at,
        generation = principal.generation + 1
    WHERE principal.standing <> 'revoked'
    RETURNING name, standing, generation, changed_at
    """
)

PRINCIPALS = sql.SQL("SELECT name, standing, generation, changed_at FROM principal ORDER BY name")

IS_PRINCIPAL = sql.SQL("SELECT 1 FROM principal WHERE name = %(name)s")

GRANT = sql.SQL(
    """
    INSERT INTO sigil (name, owner, standing, scopes, expires_at, generation, changed_at)
    VALUES (%(name)s, %(owner)s, 'active', %(scopes)s, %(expires_at)s, 1, trusted_now())
    ON CONFLICT (name) DO UPDATE SET scopes = excluded.scopes, expires_at = excluded.expires_at,
        generation = sigil.generation + 1, changed_at = excluded.changed_at
    WHERE sigil.standing = 'active' AND sigil.owner = excluded.owner
    RETURNING name, owner, standing, scopes, expires_at, generation, changed_at
    """
)

REVOKE_SIGIL = sql.SQL(
    """
    UPDATE sigil SET standing = 'revoked', generation = generation + 1, changed_at = trusted_now() WHERE name = %(name)s
    RETURNING name, owner, standing, scopes, expires_at, generation, changed_at
    """
)

SIGILS = sql.SQL("SELECT name, owner, standing, scopes, expires_at, generation, changed_at FROM sigil ORDER BY name")

SET_PATTERN = sql.SQL(
    """
    UPDATE pattern_revision SET standing = %(standing)s, changed_at = trusted_now()
    WHERE pattern = %(pattern)s AND pattern_revision = %(pattern_revision)s AND standing <> 'revoked'
    RETURNING pattern, pattern_revision, standing, digest, merges, returns, recovers, changed_at
    """
)

PATTERNS = sql.SQL(
    """
    SELECT pattern, pattern_revision, standing, digest, merges, returns, recovers, changed_at FROM pattern_revision
    ORDER BY pattern, pattern_revision
    """
)

WAITING_UNDER = sql.SQL(
    """
    SELECT s.authority || '/' || s.name FROM schedule s WHERE s.schedule_id IN (
        SELECT o.schedule_id FROM occurrence o
        WHERE o.state = 'pending' AND (o.owner = %(owner)s OR o.sigil = %(sigil)s
              OR (o.pattern = %(pattern)s AND o.pattern_revision = %(pattern_revision)s))
        UNION
        SELECT n.schedule_id FROM run n JOIN occurrence o ON o.trigger_occurrence_id = n.trigger_occurrence_id
        WHERE n.wait_owner = 'hardware' AND (o.owner = %(owner)s OR o.sigil = %(sigil)s
              OR (o.pattern = %(pattern)s AND o.pattern_revision = %(pattern_revision)s))
    )
    ORDER BY s.schedule_id
    """
)
