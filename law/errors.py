"""Contradictions: what can never be decided, only reported.

A lawful no is a value (`law.verdict.Verdict`). What stands here is different: input that cannot be read, content that
changed under a known identity, rules that are gone. Each error names the field at fault, carries the covenant id it
keeps, and its docstring is the sentence a person reads.
"""

from typing import ClassVar


class Contradiction(Exception):
    """Nightbell met a contradiction and changed nothing."""

    obligation: ClassVar[str] = ""
    code: ClassVar[str] = "contradiction"

    def __init__(self, **fields: object) -> None:
        self.fields = fields
        super().__init__(self.sentence)

    @property
    def sentence(self) -> str:
        """The docstring with its fields filled in: one sentence for a person."""
        return (type(self).__doc__ or "").format_map(self.fields)


class BadInput(Contradiction):
    """{field}: {reason}"""

    code = "bad_input"


class UnknownZone(BadInput):
    """{field}: {reason}"""

    obligation = "CAL-1"
    code = "unknown_zone"


class BadZoneRules(Contradiction):
    """The retained rules of zone {zone} cannot be used: {reason}. Nothing falls back to other rules."""

    obligation = "CAL-4"
    code = "bad_zone_rules"


class CycleCollision(Contradiction):
    """The firings {first} and {second} of {schedule} share the cycle key {key}; a cycle may hold one firing only."""

    obligation = "OCC-1"
    code = "cycle_collision"


class ContentChanged(Contradiction):
    """The firing {key} of {schedule} is known with content {known}; the same firing arrived with content {offered}."""

    obligation = "OCC-4"
    code = "content_changed"


class UnknownSchedule(Contradiction):
    """There is no Schedule {schedule}."""

    code = "unknown_schedule"


class UnknownRevision(Contradiction):
    """There is no revision {revision} of {schedule}; `nightbell apply` registers one."""

    obligation = "CUT-3"
    code = "unknown_revision"


class StillServing(Contradiction):
    """Revision {revision} of {schedule} rings already, so it cannot begin another line."""

    obligation = "CUT-3"
    code = "still_serving"


class PlanRefused(Contradiction):
    """The cutover of {schedule} to revision {revision} is refused, and nothing was changed: {problems}"""

    obligation = "CUT-3"
    code = "plan_refused"


class NotRecoverable(Contradiction):
    """{run_id} cannot be recovered: {reason}"""

    obligation = "IDN-4"
    code = "not_recoverable"


class UnknownRun(Contradiction):
    """There is no Run {run_id}."""

    code = "unknown_run"


class UnknownOccurrence(Contradiction):
    """There is no Occurrence {trigger_occurrence_id}."""

    code = "unknown_occurrence"


class PatternChanged(Contradiction):
    """The Pattern {pattern} revision {pattern_revision} is known as {known}, and what is installed is {installed}; a changed source needs a new revision."""

    obligation = "AUT-1"
    code = "pattern_changed"


class UnknownPattern(Contradiction):
    """work.pattern: there is no installed Pattern {pattern} revision {pattern_revision}."""

    obligation = "AUT-1"
    code = "unknown_pattern"
