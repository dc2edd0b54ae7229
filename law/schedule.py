"""The Schedule file: everything one immutable revision means, read from TOML and refused field by field.

The document is a contract: unknown keys are refused, every refusal names its field, and the same document always has
the same canonical form, hence the same digest (OCC-2, CUT-1). It holds intent only: whoever is named as owner is asked
again whenever the intent would become an act (AUT-1).
"""

import tomllib
from collections.abc import Mapping
from typing import Any, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from law.bounds import Jitter, Window
from law.budget import CONCURRENCY, RUNS, UNIT_LENGTH_MAX
from law.catch_up import CatchUp
from law.durations import Duration
from law.errors import BadInput
from law.estimates import Estimate, Provenance
from law.identity import Cycle, Digest, ScheduleName, digest_of, schedule_name
from law.origin import Granted, OriginPolicy, granted_class
from law.overlap import OverlapPolicy, OverlapTerms
from law.readiness import TransitionBudget
from law.reasons import Reason
from law.service_class import ServiceClass
from law.triggers import CalendarTrigger, Trigger

DOCUMENT_LENGTH_MAX = 65_536
CAME_LATER = (
    ("class", "lowered_window"),
    ("overlap", "max_units"),
    ("work", "label"),
    ("budget", "reserve"),
    ("capacity", "min_confidence"),
    ("capacity", "transition"),
)


class Table(BaseModel):
    """A table of the file: frozen, and closed to keys it does not know."""

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)


class ClassTable(Table):
    """`[class]`: the admission promise, and the order inside it (SEL-3)."""

    service_class: ServiceClass
    priority: int = Field(default=50, ge=0, le=100, strict=True)
    aging: Duration | None = None
    lowered_window: Window | None = None
    """The window of a firing that policy lowers from foreground to deadline_windowed; without one it is refused (CLS-2)."""

    @model_validator(mode="after")
    def only_foreground_is_lowered_to_a_window(self) -> Self:
        if self.lowered_window is not None and self.service_class != "foreground":
            raise ValueError("lowered_window: only a foreground Schedule can be lowered to deadline_windowed")
        return self


class OverlapTable(Table):
    """`[overlap]`: forbid unless something else is pinned (OVL-2)."""

    policy: OverlapPolicy = "forbid"
    max: int | None = Field(default=None, ge=1, le=10_000, strict=True)
    max_units: int | None = Field(default=None, ge=1, le=1_000_000, strict=True)
    """The most units of their capabilities that its Invocations may ask for together."""

    @model_validator(mode="after")
    def only_bounded_parallel_counts(self) -> Self:
        if (self.policy == "bounded_parallel") != (self.max is not None):
            raise ValueError("max belongs to bounded_parallel, and bounded_parallel needs it")
        if self.max_units is not None and self.policy != "bounded_parallel":
            raise ValueError("max_units belongs to bounded_parallel")
        return self

    @property
    def terms(self) -> OverlapTerms:
        """The policy as the law judges it."""
        return OverlapTerms(self.policy, self.max or 1, self.max_units)


class WorkTable(Table):
    """`[work]`: which exact Pattern revision, for whom, with what input."""

    pattern: str = Field(min_length=1, max_length=128)
    pattern_revision: str = Field(min_length=1, max_length=128)
    owner: str = Field(min_length=1, max_length=128)
    sigil: str | None = Field(default=None, min_length=1, max_length=128)
    input: dict[str, Any] = Field(default_factory=dict)
    label: str | None = Field(default=None, min_length=1, max_length=128)
    """How its content is labelled; work of different labels is never coalesced (OVL-6)."""


class EstimateTable(Table):
    """`[capacity] estimate`: counts only with its provenance and confidence (SEL-4). A measured one is kept by the store."""

    duration: Duration | None = None
    provenance: Provenance
    confidence: float | None = Field(default=None, ge=0, le=1)

    @model_validator(mode="after")
    def a_claim_says_how_long_and_how_sure(self) -> Self:
        if self.provenance != "measured" and (self.duration is None or self.confidence is None):
            raise ValueError(f"a {self.provenance} estimate says its duration and its confidence")
        return self

    @property
    def claim(self) -> Estimate | None:
        """What the revision itself says; None where it leaves it to what is measured."""
        if self.provenance == "measured" or self.duration is None or self.confidence is None:
            return None
        return Estimate(self.duration, self.provenance, self.confidence)


class TransitionTable(Table):
    """`[capacity.transition]`: what may be spent in 24 hours on making a cold capability ready (YLD-4)."""

    count: int = Field(default=1, ge=1, le=10_000, strict=True)
    seconds: int = Field(ge=1, le=86_400, strict=True)
    cost: float = Field(default=0.0, ge=0)

    @property
    def budget(self) -> TransitionBudget:
        """The budget as the law counts it."""
        return TransitionBudget(self.count, self.seconds, self.cost)


class CapacityTable(Table):
    """`[capacity]`: a capability by name, never a concrete machine (YLD-4), and how long the work takes."""

    capability: str | None = Field(default=None, min_length=1, max_length=128)
    units: int = Field(default=1, ge=1, le=1_000_000, strict=True)
    estimate: EstimateTable | None = None
    min_confidence: float | None = Field(default=None, ge=0, le=1)
    """An estimate below this is unknown."""
    transition: TransitionTable | None = None

    @model_validator(mode="after")
    def names_a_capability_or_only_an_estimate(self) -> Self:
        if self.capability is None and (self.units != 1 or self.transition is not None or self.estimate is None):
            raise ValueError(
                "without a capability there is nothing to count and nothing to make ready, only an estimate"
            )
        return self


class BudgetTable(Table):
    """`[budget]`: ceilings, revalidated where work is admitted (AUT-4)."""

    runs_per_day: int | None = Field(default=None, ge=1, le=1_000_000, strict=True)
    reserve: dict[str, float] | None = None
    """What each Run reserves, unit by unit, and its effects may spend."""

    @model_validator(mode="after")
    def reserves_amounts(self) -> Self:
        for unit, amount in (self.reserve or {}).items():
            if not unit or len(unit) > UNIT_LENGTH_MAX or not 0 <= amount < float("inf"):
                raise ValueError(f"reserve: {unit!r} = {amount} is not an amount of a unit")
            if unit in (RUNS, CONCURRENCY):
                raise ValueError(f"reserve: every Run counts as one of {unit!r} already")
        return self


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
    def only_deadlines_ask_for_readiness(self) -> Self:
        asks = self.capacity is not None and self.capacity.transition is not None
        if asks and self.class_.service_class != "deadline_windowed":
            raise ValueError("capacity.transition: only deadline_windowed work may ask that a capability be made ready")
        return self

    @model_validator(mode="after")
    def an_event_has_no_civil_time(self) -> Self:
        if isinstance(self.trigger, CalendarTrigger):
            return self
        if self.cycle != "nominal":
            raise ValueError("cycle: an external firing is known by its event id, not by a calendar cycle")
        for field, window in (("window", self.window), ("class.lowered_window", self.class_.lowered_window)):
            if window is not None and (window.latest_start_civil or window.finish_by_civil):
                raise ValueError(f"{field}: an external trigger has no zone; use allowed_delay and finish_within")
        return self

    @model_validator(mode="after")
    def jitter_leaves_a_window(self) -> Self:
        for window in (self.window, self.class_.lowered_window):
            for bound in (window.allowed_delay, window.finish_within) if window is not None else ():
                if bound is not None and self.jitter.max is not None and self.jitter.max > bound:
                    raise ValueError("jitter: its max could use up the whole window")
        return self

    @property
    def schedule(self) -> ScheduleName:
        """The stable, authority-qualified name."""
        return schedule_name(self.authority, self.name)

    def window_for(self, granted: ServiceClass) -> Window | None:
        """The window of a firing that was granted this class; None where it has none, or where none is declared."""
        if granted != "deadline_windowed":
            return None
        return self.window if self.class_.service_class == "deadline_windowed" else self.class_.lowered_window

    def grant(self, requested: ServiceClass, policy: OriginPolicy | None) -> Granted:
        """The class of a firing that asks for this one, by what policy lets its sender ask for (CLS-2). One that policy lowers
        to deadline_windowed needs the window that this revision declares for that, or is refused. A refused firing keeps the
        revision's own class and bounds."""
        own = self.class_.service_class
        granted = granted_class(requested, own, policy)
        refusal = granted.refusal
        lowered = policy is not None and granted.service_class != requested
        if lowered and granted.service_class == "deadline_windowed" and self.window_for("deadline_windowed") is None:
            refusal = refusal or Reason.WINDOW_UNDECLARED
        return granted if refusal is None else Granted(own, refusal, granted.generation)

    def canonical(self) -> dict[str, Any]:
        """The document as plain JSON, every default spelled out: what is stored, and what the digest is taken of. Keys that
        came later are spelled only where they are used, so that a file that was registered before them stays its revision."""
        tables = self.model_dump(mode="json", by_alias=True)
        for table, key in CAME_LATER:
            if tables[table] is not None and tables[table][key] is None:
                del tables[table][key]
        return tables


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
