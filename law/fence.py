"""The fence (IDN-2): which delivery of a Run may be claimed. Stale and duplicate deliveries do nothing."""

from law.reasons import Reason, RunState


def judge_claim(state: RunState, enqueue_seq: int, offered_seq: int, claimed: bool) -> Reason:
    """CLAIMED when the hop that was delivered is the one the Run offers and nobody has taken it; otherwise why not.

    `enqueue_seq` is the Run's current hop, `offered_seq` the delivery's, `claimed` whether that hop was ever claimed.
    """
    if claimed and offered_seq == enqueue_seq:
        return Reason.DUPLICATE_DELIVERY
    if offered_seq != enqueue_seq or state is not RunState.QUEUED:
        return Reason.STALE_DELIVERY
    return Reason.CLAIMED
