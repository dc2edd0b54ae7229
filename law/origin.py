"""Where a request comes from, and which class it may have (CLS-1, CLS-2): orthogonal, and never raised by the sender."""

from typing import Literal, get_args

from law.errors import BadInput
from law.selection import ServiceClass

Origin = Literal["operator", "schedule", "legionnaire", "a2a_peer"]

PREFERENCE: dict[ServiceClass, int] = {"foreground": 2, "deadline_windowed": 1, "spare_capacity": 0}
"""How much of the office's attention a class asks for; a request above its ceiling is lowered to it."""


PRINCIPAL_LENGTH_MAX = 128


def granted_class(requested: ServiceClass, ceiling: ServiceClass) -> ServiceClass:
    """The requested class, or the ceiling that the revision sets where the sender asked for more."""
    return requested if PREFERENCE[requested] <= PREFERENCE[ceiling] else ceiling


def check_principal(text: str) -> None:
    """Who asks, by name; '' where nobody says so. Raises BadInput."""
    if len(text) > PRINCIPAL_LENGTH_MAX or not text.isprintable():
        raise BadInput(field="principal", reason=f"must be at most {PRINCIPAL_LENGTH_MAX} printable characters")


def read_class(text: str) -> ServiceClass | Literal[""]:
    """A class by name; '' asks for the Schedule's own. Raises BadInput."""
    for known in get_args(ServiceClass):
        if text == known:
            return known
    if text == "":
        return ""
    raise BadInput(field="class", reason=f"{text[:70]!r} is none of {', '.join(get_args(ServiceClass))}")


def read_origin(text: str) -> Origin:
    """Where an offer says it comes from. The calendar alone is a schedule. Raises BadInput."""
    for known in get_args(Origin):
        if text == known and known != "schedule":
            return known
    raise BadInput(field="origin", reason=f"{text[:70]!r} is none of operator, legionnaire, a2a_peer")
