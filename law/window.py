"""The admission window (WIN-1, WIN-5, WIN-6): when an Occurrence may become an Invocation, judged at one sample.

`not_before <= decision_time < latest_start_at`, and where there is a finish bound `decision_time < finish_by`. Equality
with an upper bound is late. There is no admitted-late outcome. What is not yet eligible waits as a row.
"""

from datetime import datetime

from law.bounds import Bounds
from law.reasons import OccurrenceState, Reason
from law.verdict import Verdict


def judge_window(bounds: Bounds, decision_time: datetime) -> Verdict | None:
    """None inside the window; otherwise the wait, or the miss, with both instants as evidence."""
    for bound, reason in (
        (bounds.latest_start_at, Reason.LATEST_START_PASSED),
        (bounds.finish_by, Reason.FINISH_BOUND_PASSED),
    ):
        if bound is not None and decision_time >= bound:
            return Verdict(OccurrenceState.MISSED, reason, {"bound": bound, "decision_time": decision_time})
    opens_at = bounds.not_before or bounds.eligible_at
    if decision_time < opens_at:
        return Verdict(OccurrenceState.PENDING, Reason.NOT_YET_ELIGIBLE, {"opens_at": opens_at})
    return None


def changes_at(bounds: Bounds, decision_time: datetime) -> datetime | None:
    """The next instant after `decision_time` at which `judge_window` may answer differently; None when it never will."""
    later = (bounds.not_before or bounds.eligible_at, bounds.latest_start_at, bounds.finish_by)
    return min((at for at in later if at is not None and at > decision_time), default=None)
