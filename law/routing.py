"""Which lane carries a Run: chosen by Pattern and origin, never by class (CLS-3)."""

from law.origin import Origin

TEMPORAL_LANE = "temporal"
"""The built-in lane: a Temporal task queue."""


def lane_for(pattern: str, origin: Origin) -> str:
    """The lane for a Pattern and an origin. There is one lane; the class is not even an argument."""
    del pattern, origin
    return TEMPORAL_LANE
