"""A lawful no is a value, like a lawful yes: what was decided, why, and on what evidence (EVD-1)."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from law.reasons import MEANINGS, OccurrenceState, Reason


@dataclass(frozen=True, slots=True)
class Verdict:
    """The answer to one Occurrence. `state` pending means that it waits, and `reason` says for what."""

    state: OccurrenceState
    reason: Reason
    evidence: Mapping[str, Any] = field(default_factory=dict[str, Any])

    @property
    def obligations(self) -> tuple[str, ...]:
        """The covenant ids that this verdict keeps."""
        return MEANINGS[self.reason].obligations

    @property
    def sentence(self) -> str:
        """The reason in words."""
        return MEANINGS[self.reason].sentence
