"""Where a request comes from, and which class it may have (CLS-1, CLS-2): orthogonal, and never raised by the sender."""

from typing import Literal

from law.selection import ServiceClass

Origin = Literal["operator", "schedule", "legionnaire", "a2a_peer"]

PREFERENCE: dict[ServiceClass, int] = {"foreground": 2, "deadline_windowed": 1, "spare_capacity": 0}
"""How much of the office's attention a class asks for; a request above its ceiling is lowered to it."""


def granted_class(requested: ServiceClass, ceiling: ServiceClass) -> ServiceClass:
    """The requested class, or the ceiling that the revision sets where the sender asked for more."""
    return requested if PREFERENCE[requested] <= PREFERENCE[ceiling] else ceiling
