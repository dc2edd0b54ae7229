"""Capacity: what a capability has to give, to whom, and why not (SEL-2, SEL-4, YLD-3).

A capability is a named thing that work needs, in units. Unknown is never free: one that nobody registered, or whose state is
UNKNOWN, gives nothing. What is held is counted from leases and never kept as a number of its own.

Two floors are pinned by the operator. `protected_units` are kept for deadline-windowed work: neither foreground nor spare
capacity ever takes them. `foreground_units` are kept for foreground: deadlines never take them. Spare capacity stays beyond
both. What lies between the floors goes by the order of `law.selection`, and by the promises of `law.promises`.
"""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal

from law.errors import BadInput
from law.reasons import OccurrenceState, Reason
from law.service_class import ServiceClass
from law.verdict import Verdict

CapabilityState = Literal["WARM", "COLD", "CONVERGING", "UNKNOWN"]
CapabilityAdmission = Literal["open", "closed"]
Sharing = Literal["shared", "exclusive"]

UNITS_MAX = 1_000_000


@dataclass(frozen=True, slots=True)
class Hold:
    """An open lease as selection sees it. `ends_at`: when it is expected to end by a known estimate; None where nobody
    knows, or where that has passed."""

    service_class: ServiceClass
    units: int
    ends_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Capability:
    """What an operator, or the Orchestrator, last said of a capability."""

    name: str
    state: CapabilityState = "UNKNOWN"
    admission: CapabilityAdmission = "open"
    units: int = 0
    protected_units: int = 0
    foreground_units: int = 0
    sharing: Sharing = "shared"


@dataclass(frozen=True, slots=True)
class Supply:
    """A capability and who holds it at the sample. None of `held` is ever forgotten: a lease ends by a commit."""

    capability: Capability
    held: tuple[Hold, ...] = ()


def check_capability(one: Capability) -> None:
    """Refuse numbers that contradict each other. Raises BadInput."""
    if not one.name or len(one.name) > 128 or not one.name.isprintable():
        raise BadInput(field="capability", reason="must be 1 to 128 printable characters")
    for name in ("units", "protected_units", "foreground_units"):
        if not 0 <= getattr(one, name) <= UNITS_MAX:
            raise BadInput(field=name, reason=f"must be 0 to {UNITS_MAX}")
    if one.protected_units + one.foreground_units > one.units:
        reason = f"with foreground_units {one.foreground_units} it exceeds the {one.units} units there are"
        raise BadInput(field="protected_units", reason=reason)


@dataclass(slots=True)
class Room:
    """What is left of one capability while a round is judged. `version` counts what was taken, for those who remember."""

    capability: Capability
    held: list[Hold] = field(default_factory=list[Hold])
    version: int = 0

    def units_of(self, units: int) -> int:
        """What a lease takes: an exclusive capability is taken whole."""
        return max(units, self.capability.units) if self.capability.sharing == "exclusive" else units

    def held_by(self, service_class: ServiceClass) -> int:
        """Units that one class holds."""
        return sum(hold.units for hold in self.held if hold.service_class == service_class)

    @property
    def free(self) -> int:
        """Units that nobody holds. Negative where an operator took away what was held."""
        return self.capability.units - sum(hold.units for hold in self.held)

    def set_aside(self, service_class: ServiceClass) -> int:
        """Free units that are kept from this class: the unused part of the floors that are not its own."""
        floors: dict[ServiceClass, int] = {
            "deadline_windowed": self.capability.protected_units,
            "foreground": self.capability.foreground_units,
            "spare_capacity": 0,
        }
        return sum(max(0, floor - self.held_by(one)) for one, floor in floors.items() if one != service_class)

    def fits(self, units: int, service_class: ServiceClass) -> bool:
        """Whether so many units can be had by this class beside all floors that are not its own."""
        return self.units_of(units) <= self.free - self.set_aside(service_class)

    def take(self, units: int, service_class: ServiceClass, ends_at: datetime | None) -> None:
        """Count a lease that this round grants."""
        self.held.append(Hold(service_class, self.units_of(units), ends_at))
        self.version += 1


def judge_supply(room: Room | None, name: str, units: int, service_class: ServiceClass) -> Verdict | None:
    """None when the capability has so many units for this class at once; otherwise the wait, with the arithmetic."""
    if room is None:
        return Verdict(OccurrenceState.PENDING, Reason.CAPACITY, {"capability": name, "capability_state": "UNKNOWN"})
    has = room.capability
    evidence = {"capability": name, "capability_state": has.state, "admission": has.admission, "units": units}
    if has.state == "UNKNOWN" or (has.state == "WARM" and has.admission == "closed"):
        return Verdict(OccurrenceState.PENDING, Reason.CAPACITY, evidence)
    if has.state != "WARM":
        return Verdict(OccurrenceState.PENDING, Reason.READINESS, evidence)
    if room.fits(units, service_class):
        return None
    counted = {"units": room.units_of(units), "free": room.free, "set_aside": room.set_aside(service_class)}
    return Verdict(OccurrenceState.PENDING, Reason.CAPACITY, {**evidence, **counted})
