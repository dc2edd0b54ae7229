"""Plans and partitions: what an activation pins, in words that a person can write and a transaction can verify (CUT-1..3).

A plan has one of two forms. `first_cycle`: both revisions share the Schedule's declared cycle; cycles before it belong to
the old revision, from it on to the new, and the two candidates of one cycle are one firing. `explicit`: where the old line
ends, where the new one begins, and for every candidate of either line in between whether it is a firing of its own
(`distinct`), another name of one (`same_as`), or let go (`skip`), each with the revision that owns it.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from typing import Annotated, Any, Literal, Self, cast

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError, model_validator

from law.errors import BadInput
from law.firings import JUST_AFTER, SHIFT_MAX, Firing, firings, newest_firings
from law.identity import Cycle, RevisionNumber, SourceKey
from law.triggers import CalendarTrigger
from law.zone_rules import Missing, Normal, Repeated, ZoneRules, resolve

ENTRIES_MAX = 10_000
"""An explicit plan names at most so many candidates; a longer backlog is caught up with first."""
SHOWN_MAX = 1_000
"""How many offending candidates a problem lists, and how many candidates `first_cycle` shows."""

Disposition = Literal["distinct", "same_as", "skip"]


class Named(BaseModel):
    """A candidate by name: a firing as one revision's line has it."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    revision: int = Field(ge=1, strict=True)
    key: str = Field(min_length=1, max_length=600)


class PlanEntry(Named):
    """What one candidate is, and whose."""

    disposition: Disposition
    owner: int = Field(ge=1, strict=True)
    same_as: Named | None = None

    @model_validator(mode="after")
    def only_same_as_points(self) -> Self:
        if (self.disposition == "same_as") != (self.same_as is not None):
            raise ValueError("same_as: names the firing that this candidate is, for the disposition same_as alone")
        return self


class FirstCyclePlan(BaseModel):
    """The line is cut between two cycles."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    form: Literal["first_cycle"] = "first_cycle"
    first_cycle: str = Field(min_length=1, max_length=600)


class ExplicitPlan(BaseModel):
    """Every candidate around the cut is named."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    form: Literal["explicit"] = "explicit"
    old_through: str | None = None
    new_from: str | None = None
    entries: tuple[PlanEntry, ...] = Field(default=(), max_length=ENTRIES_MAX)


CutoverPlan = Annotated[FirstCyclePlan | ExplicitPlan, Field(discriminator="form")]
PLAN: TypeAdapter[FirstCyclePlan | ExplicitPlan] = TypeAdapter(CutoverPlan)


def check_plan(tables: Mapping[str, Any]) -> FirstCyclePlan | ExplicitPlan:
    """Read a plan. Raises BadInput naming the field."""
    try:
        return PLAN.validate_python(dict(tables))
    except ValidationError as problem:
        first = problem.errors()[0]
        place = ".".join(str(part) for part in first["loc"][1:])  # behind the name of the form
        raise BadInput(
            field=f"plan.{place}".rstrip("."), reason=first["msg"].removeprefix("Value error, ")
        ) from problem


def read_activation(message: Mapping[str, Any]) -> tuple[RevisionNumber, FirstCyclePlan | ExplicitPlan | None]:
    """What a message asks to activate: `{"revision": 2, "first_cycle": "2026-01-03"}`, or `"plan": {…}` in its place, or
    neither. Raises BadInput naming the field."""
    for name in message:
        if name not in ("revision", "first_cycle", "plan"):
            raise BadInput(field=str(name)[:70], reason="is not known; revision, first_cycle and plan are")
    revision, first_cycle, plan = message.get("revision"), message.get("first_cycle"), message.get("plan")
    if not isinstance(revision, int) or isinstance(revision, bool) or not 1 <= revision < 2**31:
        raise BadInput(field="revision", reason="is not the number of a revision")
    if first_cycle is not None and plan is not None:
        raise BadInput(field="plan", reason="stands beside first_cycle; give one of them")
    if first_cycle is not None:
        return RevisionNumber(revision), check_plan({"form": "first_cycle", "first_cycle": first_cycle})
    if plan is not None and not isinstance(plan, Mapping):
        raise BadInput(field="plan", reason="is not an object")
    return RevisionNumber(revision), check_plan(cast("Mapping[str, Any]", plan)) if plan is not None else None


@dataclass(frozen=True, slots=True, order=True)
class Position:
    """A place in the one order that a shared cycle has. Never compared across cycles or, for `nominal`, across zones."""

    civil: datetime
    fold: int = 0


CYCLE_TEXT: dict[Cycle, re.Pattern[str]] = {
    "nominal": re.compile(r"(?:nominal:)?(\d{4}-\d\d-\d\dT\d\d:\d\d(?::\d\d)?)(?:\[[^\]]*\])?(?:#([01]))?"),
    "civil_date": re.compile(r"(?:civil_date:)?(\d{4}-\d\d-\d\d)"),
    "civil_hour": re.compile(r"(?:civil_hour:)?(\d{4}-\d\d-\d\dT\d\d)"),
    "iso_week": re.compile(r"(?:iso_week:)?(\d{4})-W(\d\d)"),
    "civil_month": re.compile(r"(?:civil_month:)?(\d{4}-\d\d)"),
}


def read_cycle(cycle: Cycle, text: str, field: str = "first_cycle") -> Position:
    """A cycle by its key or by what stands behind the colon: `2026-01-03`, `2026-01-03T02`, `2026-W01`, `2026-01`. Raises
    BadInput."""
    found = CYCLE_TEXT[cycle].fullmatch(text.strip())
    if found is None:
        raise BadInput(field=field, reason=f"{text[:70]!r} is no cycle of the kind {cycle}")
    try:
        if cycle == "iso_week":
            return Position(
                datetime.combine(date.fromisocalendar(int(found[1]), int(found[2]), 1), datetime.min.time())
            )
        if cycle == "civil_month":
            return Position(datetime.fromisoformat(f"{found[1]}-01"))
        if cycle == "civil_hour":
            return Position(datetime.fromisoformat(f"{found[1]}:00"))
        return Position(datetime.fromisoformat(found[1]), int(found[2] or 0) if cycle == "nominal" else 0)
    except ValueError as problem:
        raise BadInput(field=field, reason=f"{text[:70]!r} is no cycle: {problem}") from problem


def position_of(cycle: Cycle, firing: Firing) -> Position:
    """Where a firing stands: at the beginning of its cycle, or at its own civil time."""
    return Position(cycle_begin(cycle, firing.civil), firing.fold if cycle == "nominal" else 0)


def find_firing(trigger: CalendarTrigger, cycle: Cycle, rules: ZoneRules, key: str) -> Firing | None:
    """The firing of this key on a line, or None. Raises BadInput for a key that is none of this cycle."""
    position = read_cycle(cycle, key, "key")
    if cycle == "nominal":
        match resolve(rules, position.civil):
            case Normal(at):
                instants: tuple[datetime, ...] = (at,)
            case Repeated(earlier, later):
                instants = (earlier, later)
            case Missing(transition_at):
                instants = (transition_at,)
        found = (one for at in instants for one in firings(trigger, cycle, rules, at, at + JUST_AFTER))
    else:
        begin = position.civil.replace(tzinfo=UTC)
        past = cycle_end(cycle, position.civil).replace(tzinfo=UTC)
        found = firings(trigger, cycle, rules, begin - SHIFT_MAX, past + SHIFT_MAX)
    return next((firing for firing in found if firing.key == key), None)


def cycle_begin(cycle: Cycle, civil: datetime) -> datetime:
    """The first civil time of the cycle that `civil` lies in."""
    midnight = civil.replace(hour=0, minute=0, second=0, microsecond=0)
    match cycle:
        case "nominal":
            return civil
        case "civil_date":
            return midnight
        case "civil_hour":
            return civil.replace(minute=0, second=0, microsecond=0)
        case "iso_week":
            return midnight - timedelta(days=civil.weekday())
        case "civil_month":
            return midnight.replace(day=1)


def cycle_end(cycle: Cycle, begin: datetime) -> datetime:
    """The first civil time past the cycle that begins at `begin`."""
    match cycle:
        case "nominal":
            return begin + timedelta(seconds=1)
        case "civil_date":
            return begin + timedelta(days=1)
        case "civil_hour":
            return begin + timedelta(hours=1)
        case "iso_week":
            return begin + timedelta(days=7)
        case "civil_month":
            return (begin + timedelta(days=32)).replace(day=1)


@dataclass(frozen=True, slots=True)
class Candidate:
    """One firing as one line has it, with what a plan makes of it."""

    revision: RevisionNumber
    firing: Firing
    disposition: Disposition
    owner: RevisionNumber
    same_as: Named | None = None

    def plain(self) -> dict[str, Any]:
        """As `cutover` shows it."""
        return {
            "revision": self.revision,
            "key": self.firing.key,
            "civil": self.firing.civil,
            "zone": self.firing.zone,
            "kind": self.firing.kind.value,
            "at": self.firing.at,
            "disposition": self.disposition,
            "owner": self.owner,
            "same_as": self.same_as.model_dump() if self.same_as else None,
        }


@dataclass(frozen=True, slots=True)
class Problem:
    """Why a plan is refused, with every candidate that offends (CUT-3)."""

    code: str
    sentence: str
    candidates: tuple[Named, ...] = ()

    def plain(self) -> dict[str, Any]:
        """As `cutover` shows it."""
        named = [one.model_dump() for one in self.candidates]
        return {"code": self.code, "sentence": self.sentence, "candidates": named}


@dataclass(frozen=True, slots=True)
class Exclusion:
    """A candidate that its own line does not ring: another name of a firing, or let go."""

    revision: RevisionNumber
    key: SourceKey
    at: datetime
    disposition: Literal["same_as", "skip"]
    owner: RevisionNumber
    same_as: Named | None


@dataclass(frozen=True, slots=True)
class Partition:
    """What is pinned: where each old line ends, where the new one begins (None: it has no calendar, or nothing rings), and
    who does not ring in between."""

    ends: Mapping[RevisionNumber, datetime] = field(default_factory=dict[RevisionNumber, datetime])
    first_at: datetime | None = None
    exclusions: tuple[Exclusion, ...] = ()


@dataclass(frozen=True, slots=True)
class Line:
    """One revision's firings in [cursor_at, end_at) that it owns so far; an external one has no calendar and no firings."""

    revision: RevisionNumber
    cycle: Cycle
    cursor_at: datetime
    trigger: CalendarTrigger | None = None
    rules: ZoneRules | None = None
    end_at: datetime | None = None
    excluded: frozenset[SourceKey] = frozenset()

    def candidates(self, start: datetime, end: datetime) -> Iterator[Firing]:
        """What it rings in [start, end), oldest first, assigned or not."""
        if self.trigger is None or self.rules is None:
            return iter(())
        past = end if self.end_at is None else min(end, self.end_at)
        found = firings(self.trigger, self.cycle, self.rules, start, past)
        return (firing for firing in found if firing.key not in self.excluded)

    def newest(self, start: datetime, end: datetime) -> Iterator[Firing]:
        """The same, newest first."""
        if self.trigger is None or self.rules is None:
            return iter(())
        past = end if self.end_at is None else min(end, self.end_at)
        found = newest_firings(self.trigger, self.cycle, self.rules, start, past)
        return (firing for firing in found if firing.key not in self.excluded)


@dataclass(frozen=True, slots=True)
class Survey:
    """Everything that a plan is judged by, before it is known what is assigned."""

    plan: FirstCyclePlan | ExplicitPlan
    old: tuple[Line, ...]
    new: Line
    at: datetime
    candidates: tuple[Candidate, ...]
    problems: tuple[Problem, ...]
    assigned_from: datetime | None = None
    """`first_cycle`: whatever of this Schedule is assigned from this civil time on must be known to the judgement."""


def problem(code: str, sentence: str, candidates: Sequence[Candidate]) -> Problem:
    """A problem with its candidates by name."""
    named = tuple(Named(revision=one.revision, key=one.firing.key) for one in candidates[:SHOWN_MAX])
    more = f" ({len(candidates)} in all)" if len(candidates) > SHOWN_MAX else ""
    return Problem(code, f"{sentence}{more}", named)


def pinned(one: Candidate) -> Exclusion:
    """A candidate that does not ring, as it is kept."""
    assert one.disposition != "distinct"
    return Exclusion(one.revision, one.firing.key, one.firing.at, one.disposition, one.owner, one.same_as)
