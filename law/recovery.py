"""Recovery (IDN-4): a Run that failed or was cancelled may be taken up again by a new, related Invocation of its Occurrence.

Only where its Pattern's effect law permits it, only for the newest Invocation, and never while anything that it began is in
doubt. Whether it may be admitted now is then asked like of any other work: authority, window, overlap and capacity, afresh.
"""

from law.reasons import RunState

RECOVERABLE = frozenset({RunState.FAILED, RunState.CANCELLED})


def why_not(state: RunState, is_newest: bool, in_doubt: int, pattern_recovers: bool) -> str:
    """What speaks against taking it up again, or ''."""
    if state not in RECOVERABLE:
        return f"it is {state.value}; only what failed or was cancelled is taken up again"
    if not is_newest:
        return "a later Invocation has taken it up already"
    if in_doubt:
        return f"{in_doubt} of its effects are in doubt, and an operator has to find out what became of them"
    if not pattern_recovers:
        return "its Pattern does not declare that its effects may be done again"
    return ""
