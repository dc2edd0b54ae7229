"""How long work takes, and how far that may be believed (SEL-4).

An estimate counts only with its provenance and a confidence that reaches what the revision pinned; below it the duration is
unknown, and unknown is neither feasible nor infeasible. `declared` and `model` carry the confidence that the revision says.

`measured` comes from settled Runs of the same Pattern revision and capability. It is an upper bound that nine of ten Runs
stay under: the lowest of the measured durations for which the order statistics say so with the pinned confidence, without any
assumption about how durations are spread. With n of them even the longest says it only with confidence 1 - 0.9^n: seven are
needed for an even chance, twenty-two for nine in ten.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from math import comb
from typing import Literal

Provenance = Literal["declared", "measured", "model"]

COVERED = 0.9
"""The share of Runs that a measured estimate stays above."""
SAMPLES_MAX = 200
"""The newest measured durations that an estimate rests on."""
CONFIDENCE_MIN = 0.5
"""What a revision pins where it does not say: at least an even chance."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """How long work takes, who says so, and with what confidence (0 to 1). `sample_count` where it was measured."""

    duration: timedelta
    provenance: Provenance
    confidence: float
    sample_count: int | None = None

    def evidence(self) -> dict[str, object]:
        """The estimate as a record of a decision shows it."""
        said = {"duration_seconds": self.duration.total_seconds(), "provenance": self.provenance}
        counted = {} if self.sample_count is None else {"sample_count": self.sample_count}
        return {**said, "confidence": round(self.confidence, 4), **counted}


def known(estimate: Estimate | None, confidence_min: float) -> Estimate | None:
    """The estimate, where its confidence reaches what was pinned; otherwise None, which means unknown."""
    return estimate if estimate is not None and estimate.confidence >= confidence_min else None


def measured(durations: Sequence[timedelta], confidence_min: float) -> Estimate | None:
    """The lowest measured duration that covers nine Runs of ten with the pinned confidence; the longest, with what
    confidence it has, where none does; None where nothing was measured."""
    if not durations:
        return None
    ordered = sorted(durations)
    rank, confidence = covering_rank(len(ordered), confidence_min)
    return Estimate(ordered[rank - 1], "measured", confidence, len(ordered))


def covering_rank(count: int, confidence_min: float) -> tuple[int, float]:
    """The first rank, counted from 1, whose value lies above the covered quantile with this confidence, and how sure that
    is: P(Binomial(count, COVERED) < rank)."""
    below = 0.0
    for rank in range(1, count + 1):
        below += comb(count, rank - 1) * COVERED ** (rank - 1) * (1 - COVERED) ** (count - rank + 1)
        if below >= confidence_min:
            return rank, min(below, 1.0)
    return count, min(below, 1.0)
