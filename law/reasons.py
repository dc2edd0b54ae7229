"""Every reason there is: one closed list, each with the obligations it keeps and the sentence a person reads (EVD-1).

A state without a reason from this list is a defect. Codes are stored and tested against; sentences may be improved.
"""

from dataclasses import dataclass
from enum import StrEnum


class OccurrenceState(StrEnum):
    """What became of a source firing. Everything but `pending` is final."""

    PENDING = "pending"
    ADMITTED = "admitted"
    MISSED = "missed"
    SUPPRESSED = "suppressed"
    SKIPPED = "skipped"
    REFUSED = "refused"
    REVOKED = "revoked"
    COALESCED = "coalesced"
    FAILED = "failed"


class RunState(StrEnum):
    """Where a Run stands. The last three are terminal; all others overlap (OVL-1)."""

    QUEUED = "queued"
    RUNNING = "running"
    PARKED = "parked"
    CANCELLING = "cancelling"
    CONTAINED = "contained"
    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"


TERMINAL = frozenset({RunState.DONE, RunState.FAILED, RunState.CANCELLED})


class Disposition(StrEnum):
    """What became of a Run's finish bound (FIN-1..6): a column of its own, beside the Run's state."""

    UNTIMED = "untimed"
    OPEN = "open"
    TIMELY = "timely"
    UNMET = "unmet"


class Reason(StrEnum):
    """Why. The name is the code that is stored, printed and tested."""

    # an Occurrence waits
    NOT_YET_ELIGIBLE = "not_yet_eligible"
    OVERLAP = "overlap"
    CAPACITY = "capacity"
    PAUSED = "paused"
    CATCH_UP = "catch_up"
    READINESS = "readiness"
    QUIET_WINDOW = "quiet_window"
    BUDGET = "budget"
    # an Occurrence is decided
    ADMITTED = "admitted"
    LATEST_START_PASSED = "latest_start_passed"
    FINISH_BOUND_PASSED = "finish_bound_passed"
    INFEASIBLE = "infeasible"
    OVERLAP_FORBIDDEN = "overlap_forbidden"
    GAP_SKIPPED = "gap_skipped"
    GAP_FAILED = "gap_failed"
    BEYOND_HORIZON = "beyond_horizon"
    NOT_NEWEST = "not_newest"
    OVER_AGE = "over_age"
    OVER_COUNT = "over_count"
    CATCH_UP_SPENT = "catch_up_spent"
    CUTOVER_SKIPPED = "cutover_skipped"
    COALESCED = "coalesced"
    COALESCE_PATTERN_REVISION = "coalesce_pattern_revision"
    COALESCE_OWNER = "coalesce_owner"
    COALESCE_AUTHORITY_GENERATION = "coalesce_authority_generation"
    COALESCE_POLICY = "coalesce_policy"
    COALESCE_BUDGET = "coalesce_budget"
    COALESCE_LABEL = "coalesce_label"
    COALESCE_INPUT = "coalesce_input"
    CLASS_ABOVE_CEILING = "class_above_ceiling"
    CLASS_REFUSED = "class_refused"
    WINDOW_UNDECLARED = "window_undeclared"
    OWNER_UNKNOWN = "owner_unknown"
    OWNER_REVOKED = "owner_revoked"
    SIGIL_UNKNOWN = "sigil_unknown"
    SIGIL_REVOKED = "sigil_revoked"
    SIGIL_EXPIRED = "sigil_expired"
    SIGIL_SCOPE = "sigil_scope"
    WARD_REFUSED = "ward_refused"
    PATTERN_UNKNOWN = "pattern_unknown"
    PATTERN_REVOKED = "pattern_revoked"
    PATTERN_CHANGED = "pattern_changed"
    BUDGET_SPENT = "budget_spent"
    # a delivery hop
    CLAIMED = "claimed"
    STALE_DELIVERY = "stale_delivery"
    DUPLICATE_DELIVERY = "duplicate_delivery"
    # a Run
    FINISHED = "finished"
    FINISHED_LATE = "finished_late"
    PATTERN_FAILED = "pattern_failed"
    PROOF_MISSING = "proof_missing"
    PROOF_INVALID = "proof_invalid"
    YIELDED = "yielded"
    RETURNED = "returned"
    RESUMED = "resumed"
    CONSENT_AWAITED = "consent_awaited"
    DELEGATE_AWAITED = "delegate_awaited"
    ANSWERED = "answered"
    CONSENT_MISSING = "consent_missing"
    CONSENT_WITHDRAWN = "consent_withdrawn"
    CHECKPOINT_MISSING = "checkpoint_missing"
    CHECKPOINT_STALE = "checkpoint_stale"
    CANCEL_REQUESTED = "cancel_requested"
    CANCELLED = "cancelled"
    EXPIRED = "expired"
    CONTAINMENT_SETTLED = "containment_settled"
    RECOVERED = "recovered"
    EFFECT_IN_DOUBT = "effect_in_doubt"
    LOST = "lost"


@dataclass(frozen=True, slots=True)
class Meaning:
    """The obligations a reason keeps, and its sentence."""

    obligations: tuple[str, ...]
    sentence: str


MEANINGS: dict[Reason, Meaning] = {
    Reason.NOT_YET_ELIGIBLE: Meaning(("WIN-6",), "its eligibility instant has not come"),
    Reason.OVERLAP: Meaning(("OVL-1", "OVL-3", "OVL-4"), "an earlier Invocation of this Schedule is not settled"),
    Reason.CAPACITY: Meaning(
        ("SEL-2", "SEL-4", "YLD-3"), "no capacity is known to be free for it, and unknown is not free"
    ),
    Reason.READINESS: Meaning(("YLD-3", "YLD-4"), "the capability it needs is not warm"),
    Reason.QUIET_WINDOW: Meaning(
        ("YLD-1", "YLD-2"), "its yielding is not proven, so it waits for a quiet window that an operator approved"
    ),
    Reason.PAUSED: Meaning(("CAL-8", "EVD-1"), "its Schedule is paused; it is considered again when that is over"),
    Reason.CATCH_UP: Meaning(("CAL-8",), "as many caught-up Runs are on their way as its policy allows"),
    Reason.BUDGET: Meaning(("AUT-4",), "its budget has no room for it beside what is not settled"),
    Reason.ADMITTED: Meaning(("WIN-1", "WIN-2"), "the law of its class admitted it at this sample"),
    Reason.LATEST_START_PASSED: Meaning(("WIN-1", "WIN-5"), "the decision came at or after its latest start"),
    Reason.FINISH_BOUND_PASSED: Meaning(("WIN-1", "FIN-2"), "the decision came at or after its finish bound"),
    Reason.INFEASIBLE: Meaning(("SEL-5", "SEL-4"), "by its estimate it cannot be finished before its bound any more"),
    Reason.COALESCED: Meaning(("OVL-5",), "its input was merged into an Invocation that stands for all of them"),
    Reason.COALESCE_PATTERN_REVISION: Meaning(("OVL-6",), "another Pattern revision was to be coalesced"),
    Reason.COALESCE_OWNER: Meaning(("OVL-6",), "another owner's work was to be coalesced"),
    Reason.COALESCE_AUTHORITY_GENERATION: Meaning(("OVL-6",), "its owner's authority has changed between the two"),
    Reason.COALESCE_POLICY: Meaning(("OVL-6",), "it stands under another policy than what it was to be merged into"),
    Reason.COALESCE_BUDGET: Meaning(("OVL-6",), "it stands under another budget than what it was to be merged into"),
    Reason.COALESCE_LABEL: Meaning(("OVL-6",), "it carries another label than what it was to be merged into"),
    Reason.COALESCE_INPUT: Meaning(("OVL-6",), "its Pattern cannot merge its input with that of the others"),
    Reason.OVERLAP_FORBIDDEN: Meaning(
        ("OVL-1", "OVL-2"), "an earlier Invocation is not settled and overlap is forbidden"
    ),
    Reason.GAP_SKIPPED: Meaning(("CAL-3",), "its civil time did not exist and the gap policy is skip"),
    Reason.GAP_FAILED: Meaning(("CAL-3",), "its civil time did not exist and the gap policy is fail"),
    Reason.BEYOND_HORIZON: Meaning(("CAL-5",), "it was found later than the misfire horizon reaches"),
    Reason.NOT_NEWEST: Meaning(("CAL-8",), "a newer missed firing of the same Schedule was considered instead"),
    Reason.OVER_AGE: Meaning(("CAL-8",), "it is older than the catch-up policy reaches"),
    Reason.OVER_COUNT: Meaning(("CAL-8",), "the catch-up policy had taken its full count of newer firings"),
    Reason.CATCH_UP_SPENT: Meaning(("CAL-8",), "the catch-up policy's aggregate budget is spent"),
    Reason.CUTOVER_SKIPPED: Meaning(("CUT-2",), "the plan of a cutover let it go under its own revision"),
    Reason.CLASS_ABOVE_CEILING: Meaning(("CLS-2",), "the sender asked for a class above its ceiling"),
    Reason.CLASS_REFUSED: Meaning(("CLS-2",), "policy lets this origin and principal ask for nothing"),
    Reason.WINDOW_UNDECLARED: Meaning(
        ("CLS-2", "OCC-8"), "policy lowered it to deadline_windowed, and its revision declares no window for that"
    ),
    Reason.OWNER_UNKNOWN: Meaning(("AUT-1",), "its owner is not a known principal"),
    Reason.OWNER_REVOKED: Meaning(("AUT-1", "AUT-2"), "its owner's authority was withdrawn"),
    Reason.SIGIL_UNKNOWN: Meaning(("AUT-1",), "the Sigil it acts under is not known, or is another owner's"),
    Reason.SIGIL_REVOKED: Meaning(("AUT-1", "AUT-2"), "the Sigil it acts under was revoked"),
    Reason.SIGIL_EXPIRED: Meaning(("AUT-1", "AUT-3"), "the Sigil it acts under has expired"),
    Reason.SIGIL_SCOPE: Meaning(("AUT-1",), "the Sigil it acts under does not reach so far"),
    Reason.WARD_REFUSED: Meaning(("AUT-1",), "another Ward, which was asked, refused it"),
    Reason.PATTERN_UNKNOWN: Meaning(("AUT-1",), "its Pattern revision is not known"),
    Reason.PATTERN_REVOKED: Meaning(("AUT-1", "AUT-2"), "its Pattern revision was revoked"),
    Reason.PATTERN_CHANGED: Meaning(("AUT-1",), "the Pattern's digest is not the one its revision pinned"),
    Reason.BUDGET_SPENT: Meaning(("AUT-4",), "its Schedule has spent its ceiling of Runs in a day"),
    Reason.CLAIMED: Meaning(("IDN-2",), "the fence let this hop in"),
    Reason.STALE_DELIVERY: Meaning(("IDN-2",), "a newer hop of this Run exists, or it is settled"),
    Reason.DUPLICATE_DELIVERY: Meaning(("IDN-2",), "another worker holds this very hop"),
    Reason.FINISHED: Meaning(("FIN-1", "FIN-6"), "the Pattern completed and everything required of it was there"),
    Reason.FINISHED_LATE: Meaning(("FIN-2", "FIN-4"), "the Pattern completed at or after its finish bound"),
    Reason.PATTERN_FAILED: Meaning(("IDN-2",), "the Pattern said that it cannot do the work"),
    Reason.PROOF_MISSING: Meaning(("FIN-1",), "the required finish proof was not offered"),
    Reason.PROOF_INVALID: Meaning(("FIN-1",), "the finish proof that was offered does not hold"),
    Reason.YIELDED: Meaning(("YLD-5", "IDN-3"), "one slice was checkpointed and the rest waits as a new hop"),
    Reason.RETURNED: Meaning(
        ("IDN-3",), "its worker was lost with nothing in doubt; it returns to its checkpoint as a new hop"
    ),
    Reason.RESUMED: Meaning(("YLD-5", "IDN-3"), "capacity was free again, and the next slice was offered as a new hop"),
    Reason.CONSENT_AWAITED: Meaning(("WIN-8", "OVL-1"), "it is parked until somebody consents, or does not"),
    Reason.DELEGATE_AWAITED: Meaning(("WIN-8", "OVL-1"), "it is parked until its delegate answers"),
    Reason.ANSWERED: Meaning(("WIN-8", "IDN-3"), "what it was parked for is answered; it returns as a new hop"),
    Reason.CONSENT_MISSING: Meaning(("AUT-1",), "nobody has consented to this effect"),
    Reason.CONSENT_WITHDRAWN: Meaning(("AUT-1", "AUT-2"), "the consent to this effect was withdrawn"),
    Reason.CHECKPOINT_MISSING: Meaning(("IDN-3",), "it returned without a checkpoint to return to"),
    Reason.CHECKPOINT_STALE: Meaning(("IDN-3",), "its checkpoint is not what was saved, or of another schema"),
    Reason.CANCEL_REQUESTED: Meaning(("OVL-1", "FIN-5"), "it is to be cancelled, once what it began has ended"),
    Reason.CANCELLED: Meaning(("OVL-1",), "it was cancelled, and nothing that it began is in doubt"),
    Reason.EXPIRED: Meaning(("FIN-2", "FIN-3"), "its finish bound passed without a timely finish"),
    Reason.CONTAINMENT_SETTLED: Meaning(("IDN-5", "FIN-4"), "an operator found out what became of what was in doubt"),
    Reason.RECOVERED: Meaning(("IDN-4",), "a new Invocation of the same Occurrence takes it up again"),
    Reason.EFFECT_IN_DOUBT: Meaning(
        ("IDN-5", "FIN-3"), "an effect that was begun has no known result; it is held for the operator"
    ),
    Reason.LOST: Meaning(("IDN-5",), "its worker was lost and its Pattern does not permit a return"),
}
