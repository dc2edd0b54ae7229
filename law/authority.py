"""Authority at the moment of acting (AUT-1..4): a Schedule is intent, not stored authority.

Owner, Sigil, Pattern revision and ceilings are read again in the transaction that acts and judged here, at its sample. A
Sigil is the secret-free statement of what its owner may do: scopes such as `pattern:nightly_rite`, `class:foreground`,
`capability:gpu`, `effect:send`, or `*`. Neither priority nor lateness nor catch-up is an argument of these functions (AUT-3).
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from law.reasons import OccurrenceState, Reason
from law.verdict import Verdict

PrincipalStanding = Literal["active", "suspended", "revoked"]
SigilStanding = Literal["active", "revoked"]
PatternStanding = Literal["active", "retained", "revoked"]


@dataclass(frozen=True, slots=True)
class Sigil:
    """What a Sigil says at this sample. It expires at `expires_at`, and not a moment before."""

    name: str
    owner: str
    standing: SigilStanding
    scopes: frozenset[str]
    expires_at: datetime | None = None

    def reaches(self, scope: str) -> bool:
        """Whether one of its scopes covers this one: the same, everything of its kind, or everything."""
        kind, _, _ = scope.partition(":")
        return not self.scopes.isdisjoint(("*", f"{kind}:*", scope))


@dataclass(frozen=True, slots=True)
class Credentials:
    """What stands behind one Occurrence at this sample; None where no such row exists."""

    owner: str
    owner_standing: PrincipalStanding | None
    pattern: str
    pattern_standing: PatternStanding | None
    pattern_digest: str | None
    pinned_digest: str
    runs_per_day_max: int | None = None
    runs_in_last_day: int = 0
    sigil_named: str | None = None
    """The Sigil that its revision names; None where it names none, and the owner's standing is all there is."""
    sigil: Sigil | None = None
    needs: tuple[str, ...] = ()
    """The scopes that this act needs."""


def judge_authority(held: Credentials, at: datetime) -> Verdict | None:
    """None when everything still stands at the sample; otherwise the refusal (never was) or the revocation (is no longer)."""
    if held.owner_standing is None:
        return Verdict(OccurrenceState.REFUSED, Reason.OWNER_UNKNOWN, {"owner": held.owner})
    if held.owner_standing != "active":
        evidence = {"owner": held.owner, "standing": held.owner_standing}
        return Verdict(OccurrenceState.REVOKED, Reason.OWNER_REVOKED, evidence)
    return judge_sigil(held, at) or judge_pattern(held)


def judge_sigil(held: Credentials, at: datetime) -> Verdict | None:
    """None when no Sigil is named, or the named one is its owner's, stands, and reaches as far as this act."""
    if held.sigil_named is None:
        return None
    sigil = held.sigil
    if sigil is None or sigil.owner != held.owner:
        return Verdict(OccurrenceState.REFUSED, Reason.SIGIL_UNKNOWN, {"sigil": held.sigil_named, "owner": held.owner})
    if sigil.standing != "active":
        return Verdict(OccurrenceState.REVOKED, Reason.SIGIL_REVOKED, {"sigil": sigil.name})
    if sigil.expires_at is not None and at >= sigil.expires_at:
        return Verdict(
            OccurrenceState.REVOKED, Reason.SIGIL_EXPIRED, {"sigil": sigil.name, "expires_at": sigil.expires_at}
        )
    wanting = [scope for scope in held.needs if not sigil.reaches(scope)]
    if wanting:
        return Verdict(OccurrenceState.REFUSED, Reason.SIGIL_SCOPE, {"sigil": sigil.name, "wanting": wanting})
    return None


def judge_pattern(held: Credentials) -> Verdict | None:
    """None when the pinned Pattern revision may still be admitted: known, not revoked, of the pinned digest."""
    if held.pattern_standing is None:
        return Verdict(OccurrenceState.REFUSED, Reason.PATTERN_UNKNOWN, {"pattern": held.pattern})
    if held.pattern_standing == "revoked":
        return Verdict(OccurrenceState.REVOKED, Reason.PATTERN_REVOKED, {"pattern": held.pattern})
    if held.pattern_digest != held.pinned_digest:
        evidence = {"pattern": held.pattern, "pinned": held.pinned_digest, "known": held.pattern_digest}
        return Verdict(OccurrenceState.REFUSED, Reason.PATTERN_CHANGED, evidence)
    return None


def judge_ceiling(held: Credentials) -> Verdict | None:
    """None while the Schedule has admitted fewer Runs in the last 24 hours than its ceiling (AUT-4)."""
    if held.runs_per_day_max is None or held.runs_in_last_day < held.runs_per_day_max:
        return None
    evidence = {"runs_per_day": held.runs_per_day_max, "runs_in_last_day": held.runs_in_last_day}
    return Verdict(OccurrenceState.REFUSED, Reason.BUDGET_SPENT, evidence)


def scopes_of(pattern: str, service_class: str, capability: str | None) -> tuple[str, ...]:
    """The scopes that admitting or carrying this work needs of a Sigil."""
    named = (f"pattern:{pattern}", f"class:{service_class}")
    return named if capability is None else (*named, f"capability:{capability}")
