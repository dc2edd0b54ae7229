"""The Schedule file: everything one immutable revision means, read from TOML and refused field by field.

The document is a contract: unknown keys are refused, every refusal names its field, and the same document always has
the same canonical form, hence the same digest (OCC-2, CUT-1). It holds intent only: whoever is named as owner is asked
again whenever the intent would become an act (AUT-1).
"""

import tomllib
from collections.abc import Mapping
from typing import Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from law.bounds import Jitter, Window
from law.catch_up import CatchUp
from law.durations import Duration
from law.errors import BadInput
from law.identity import Cycle, Digest, ScheduleName, digest_of, schedule_name
from law.overlap import OverlapPolicy, OverlapTerms
from law.selection import ServiceClass
from law.triggers import CalendarTrigger, Trigger

DOCUMENT_LENGTH_MAX = 65_536


class Table(BaseModel):
    """A table of the file: frozen, and closed to keys it does not know."""

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)


class ClassTable(Table):
    """`[class]`: the admission promise, and the order inside it (SEL-3)."""

    service_class: ServiceClass
    priority: int = Field(default=50, ge=0, le=100, strict=True)
    aging: Duration | None = None


class OverlapTable(Table):
    """`[overlap]`: forbid unless something else is pinned (OVL-2)."""

    policy: OverlapPolicy = "forbid"
    max: int | None = Field(default=None, ge=1, le=10_000, strict=True)

    @model_validator(mode="after")
    def only_bounded_parallel_counts(self) -> Self:
        if (self.policy == "bounded_parallel") != (self.max is not None):
            raise ValueError("max belongs to bounded_parallel, and bounded_parallel needs it")
        if self.policy == "coalesce":
            raise ValueError(
                "coalesce needs a typed merge declared by the Pattern, and no installed Pattern declares one"
            )
        return self

    @property
    def terms(self) -> OverlapTerms:
        """The policy as the law judges it."""
        return OverlapTerms(self.policy, self.max or 1)


class WorkTable(Table):
    """`[work]`: which exact Pattern revision, for whom, with what input."""

    pattern: str = Field(min_length=1, max_length=128)
    pattern_revision: str = Field(min_length=1, max_length=128)
    owner: str = Field(min_length=1, max_length=128)
    sigil: str | None = Field(default=None, min_length=1, max_length=128)
    input: dict[str, Any] = Field(default_factory=dict)


class EstimateTable(Table):
    """`[capacity] estimate`: counts only with its provenance and confidence (SEL-4)."""

    duration: Duration
    provenance: Literal["declared", "measured", "model"]
    confidence: float = Field(ge=0, le=1)


class CapacityTable(Table):
    """`[capacity]`: a capability by name, never a concrete machine (YLD-4)."""

    capability: str = Field(min_length=1, max_length=128)
    units: int = Field(default=1, ge=1, le=1_000_000, strict=True)
    estimate: EstimateTable | None = None


class BudgetTable(Table):
    """`[budget]`: ceilings, revalidated where work is admitted (AUT-4)."""

    runs_per_day: int | None = Field(default=None, ge=1, le=1_000_000, strict=True)


class ScheduleDocument(Table):
    """One Schedule revision as its file says it."""

    authority: str
    name: str
    cycle: Cycle = "nominal"
    trigger: Trigger = Field(discriminator="kind")
    class_: ClassTable = Field(alias="class")
    window: Window | None = None
    jitter: Jitter = Field(default_factory=Jitter)
    catch_up: CatchUp = Field(default_factory=CatchUp)
    overlap: OverlapTable = Field(default_factory=OverlapTable)
    work: WorkTable
    capacity: CapacityTable | None = None
    budget: BudgetTable = Field(default_factory=BudgetTable)

    @model_validator(mode="after")
    def window_belongs_to_deadline_windowed(self) -> Self:
        windowed = self.class_.service_class == "deadline_windowed"
        if windowed and self.window is None:
            raise ValueError("window: a deadline_windowed Schedule needs a [window] table with its latest start")
        if not windowed and self.window is not None:
            raise ValueError(
                f"window: a {self.class_.service_class} Schedule has no window; only deadline_windowed has (OCC-8)"
            )
        return self

    @model_validator(mode="after")
    def an_event_has_no_civil_time(self) -> Self:
        if isinstance(self.trigger, CalendarTrigger):
            return self
        if self.cycle != "nominal":
            raise ValueError("cycle: an external firing is known by its event id, not by a calendar cycle")
        if self.window is not None and (self.window.latest_start_civil or self.window.finish_by_civil):
            raise ValueError("window: an external trigger has no zone; use allowed_delay and finish_within")
        return self

    @model_validator(mode="after")
    def jitter_leaves_a_window(self) -> Self:
        if self.window is None or self.jitter.max is None:
            return self
        for bound in (self.window.allowed_delay, self.window.finish_within):
            if bound is not None and self.jitter.max > bound:
                raise ValueError("jitter: its max could use up the whole window")
        return self

    @property
    def schedule(self) -> ScheduleName:
        """The stable, authority-qualified name."""
        return schedule_name(self.authority, self.name)

    def canonical(self) -> dict[str, Any]:
        """The document as plain JSON, every default spelled out: what is stored, and what the digest is taken of."""
        return self.model_dump(mode="json", by_alias=True)


def revision_digest(document: ScheduleDocument, zone_rules_digest: str | None, pattern_digest: str) -> Digest:
    """The digest of everything a revision means: document, retained rules (CAL-4) and the exact Pattern."""
    return digest_of(
        {"document": document.canonical(), "rules": zone_rules_digest, "pattern": pattern_digest}, "work.input"
    )


def read_schedule(text: str) -> ScheduleDocument:
    """Read a Schedule file. Raises BadInput naming the field and the reason; nothing is ever half read."""
    if len(text) > DOCUMENT_LENGTH_MAX:
        raise BadInput(field="file", reason=f"is longer than {DOCUMENT_LENGTH_MAX} characters")
    try:
        tables = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as problem:
        raise BadInput(field="file", reason=f"is not TOML: {problem}") from problem
    return check_document(tables)


def check_document(tables: Mapping[str, Any]) -> ScheduleDocument:
    """Check plain tables. Raises BadInput with every offending field."""
    try:
        document = ScheduleDocument.model_validate(tables)
    except ValidationError as problem:
        raise bad_input(problem) from problem
    schedule_name(document.authority, document.name)
    digest_of(document.work.input)
    return document


def bad_input(problem: ValidationError) -> BadInput:
    """Turn a validation error into one refusal that names each field once, in the file's own spelling."""
    complaints = [(field_path(error["loc"]), error["msg"].removeprefix("Value error, ")) for error in problem.errors()]
    split = [(field, said) if field else tuple(said.partition(": ")[::2]) for field, said in complaints]
    first, rest = split[0], split[1:]
    more = "".join(f"; {field}: {said}" for field, said in rest)
    return BadInput(field=first[0] or "file", reason=f"{first[1]}{more}")


def field_path(location: tuple[int | str, ...]) -> str:
    """`('trigger', 'calendar', 'cron')` → `trigger.cron`: the union's tag is not a key of the file."""
    parts = [str(part) for part in location]
    if len(parts) > 1 and parts[0] == "trigger" and parts[1] in ("calendar", "external"):
        del parts[1]
    return ".".join("class" if part == "class_" else part for part in parts)
