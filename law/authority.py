"""Authority at the moment of acting (AUT-1..4): a Schedule is intent, not stored authority.

Owner, Pattern revision and ceilings are read again in the transaction that acts and judged here. Neither priority nor
lateness nor catch-up is an argument of these functions (AUT-3).
"""

from dataclasses import dataclass
from typing import Literal

from law.reasons import OccurrenceState, Reason
from law.verdict import Verdict

PrincipalStanding = Literal["active", "suspended", "revoked"]
PatternStanding = Literal["active", "retained", "revoked"]


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


def judge_authority(held: Credentials) -> Verdict | None:
    """None when everything still stands; otherwise the refusal (never was) or the revocation (is no longer)."""
    if held.owner_standing is None:
        return Verdict(OccurrenceState.REFUSED, Reason.OWNER_UNKNOWN, {"owner": held.owner})
    if held.owner_standing != "active":
        evidence = {"owner": held.owner, "standing": held.owner_standing}
        return Verdict(OccurrenceState.REVOKED, Reason.OWNER_REVOKED, evidence)
    return judge_pattern(held) or judge_ceiling(held)


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
