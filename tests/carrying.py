"""A Casting for tests without a database: it admits by the rules of `law.pattern`, and really performs what it admits.

One `Recorded` is one Run. Hops share it, as they share the rows; a hop can be killed at the edges of an effect or of a
checkpoint, and then what it had begun is in doubt.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from law.pattern import Answer, Awaits, DidNotHappen, EffectRefused, Ending, Json, Lease, Pattern, Workplace


class Killed(BaseException):
    """The worker is gone. No code of a Pattern may catch this."""


@dataclass(slots=True)
class Recorded:
    """One Run with what its hops recorded. `kill_at` is 'before', 'within' or 'after' and an effect's kind, or
    'checkpoint'."""

    workplace: Workplace
    run_id: str = "0a1b2c3d-0000-5000-8000-000000000001"
    trigger_occurrence_id: str = "9f8e7d6c-0000-5000-8000-000000000001"
    schedule: str = "home/nightly-rite"
    nominal_civil: str = "2026-01-02T02:00:00"
    checkpoint_state: Mapping[str, Json] | None = None
    effects: dict[tuple[str, str], Mapping[str, Json] | None] = field(default_factory=dict)
    performed: list[tuple[str, str]] = field(default_factory=list)
    kill_at: tuple[str, str] | None = None

    finish_by: datetime | None = None
    lease: Lease | None = None
    budget: dict[str, float] = field(default_factory=dict)
    answers: dict[str, Answer] = field(default_factory=dict)

    def await_consent(self, key: str, question: str) -> Answer:
        """The consent, if a test gave it."""
        return self.delegate(key, "", {"question": question})

    def delegate(self, key: str, to: str, request: Mapping[str, Json]) -> Answer:
        """The answer, if a test gave it."""
        if key not in self.answers:
            raise Awaits(key)
        return self.answers[key]

    def effect(
        self,
        kind: str,
        key: str,
        act: Callable[[], Mapping[str, Json]],
        *,
        consent: str = "",
        cost: Mapping[str, float] | None = None,
    ) -> Mapping[str, Json]:
        """Admit, perform, record."""
        if consent and consent not in self.answers:
            raise EffectRefused("consent_missing")
        if (kind, key) in self.effects:
            known = self.effects[kind, key]
            if known is None:
                raise EffectRefused("effect_in_doubt")
            return known
        self.die("before", kind)
        self.effects[kind, key] = None
        try:
            result = act()
        except DidNotHappen:
            del self.effects[kind, key]
            raise
        self.performed.append((kind, key))
        self.die("within", kind)
        self.effects[kind, key] = result
        self.die("after", kind)
        return result

    def checkpoint(self, state: Mapping[str, Json]) -> None:
        """Make `state` the point of return."""
        self.die("before", "checkpoint")
        self.checkpoint_state = state

    def die(self, edge: str, kind: str) -> None:
        """Be killed here if that was asked for, once."""
        if self.kill_at == (edge, kind):
            self.kill_at = None
            raise Killed

    def hop(self, pattern: Pattern[Any], **content: Json) -> Ending:
        """Carry one hop."""
        return pattern.perform(self, pattern.input_model.model_validate(content))

    def kinds(self) -> list[str]:
        """The kinds of what was really performed, in order."""
        return [kind for kind, _ in self.performed]
