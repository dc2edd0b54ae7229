"""Where a request comes from, and which class it may have (CLS-1, CLS-2): orthogonal, and never raised by the sender."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, get_args

from law.errors import BadInput
from law.reasons import Reason
from law.service_class import PREFERENCE, ServiceClass

Origin = Literal["operator", "schedule", "legionnaire", "a2a_peer"]

PRINCIPAL_LENGTH_MAX = 128


AboveCeiling = Literal["lower", "refuse"]


@dataclass(frozen=True, slots=True)
class OriginPolicy:
    """What an operator lets an origin ask for; `principal` None: everybody of it. `ceiling` None: nothing at all. `above`
    says what becomes of a request for more."""

    origin: Origin
    principal: str | None
    ceiling: ServiceClass | None
    above: AboveCeiling = "lower"
    generation: int = 1


@dataclass(frozen=True, slots=True)
class Granted:
    """The class that was granted, or why none was. `generation` of the policy that said so; 0 where only the revision did."""

    service_class: ServiceClass
    refusal: Reason | None = None
    generation: int = 0


def granted_class(requested: ServiceClass, own: ServiceClass, policy: OriginPolicy | None) -> Granted:
    """What a sender gets: never more than the revision's own class, and never more than policy lets it (CLS-2). More than
    the revision's own is lowered to it; more than the policy's ceiling is lowered or refused, as the policy says."""
    within = lower_of(requested, own)
    if policy is None:
        return Granted(within)
    if policy.ceiling is None:
        return Granted(within, Reason.CLASS_REFUSED, policy.generation)
    above = PREFERENCE[requested] > PREFERENCE[policy.ceiling]
    if above and policy.above == "refuse":
        return Granted(lower_of(within, policy.ceiling), Reason.CLASS_ABOVE_CEILING, policy.generation)
    return Granted(lower_of(within, policy.ceiling), None, policy.generation)


def lower_of(one: ServiceClass, other: ServiceClass) -> ServiceClass:
    """The class that asks for less."""
    return min(one, other, key=lambda named: PREFERENCE[named])


def policy_for(policies: Iterable[OriginPolicy], origin: Origin, principal: str) -> OriginPolicy | None:
    """The policy of this very principal, or of its whole origin; None where an operator said nothing."""
    known = {one.principal: one for one in policies if one.origin == origin}
    return known.get(principal or None) or known.get(None)


def check_policy(policy: OriginPolicy) -> None:
    """Refuse a policy that names nobody. Raises BadInput."""
    if policy.principal is not None:
        check_principal(policy.principal)
        if not policy.principal:
            raise BadInput(field="principal", reason="is empty; leave it out for everybody of this origin")


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
