"""The zone data that is installed: the bytes that a new revision will retain (CAL-1, CAL-4).

Read from the `tzdata` package and from nowhere else: neither the host's zone nor its zone files are ever consulted.
"""

import re
from functools import cache
from importlib import resources

import tzdata

from law.errors import BadZoneRules, UnknownZone
from law.zone_rules import ZoneRules, rules_from

ZONE_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_+\-]*(?:/[A-Za-z0-9_+\-]+)*")
NOT_A_ZONE = frozenset({"localtime", "posixrules", "Factory"})
"""Names that zone packages carry and that mean no particular place."""


def installed_rules(zone: str) -> ZoneRules:
    """The installed rules of an IANA zone. Raises UnknownZone for a name that is unknown or host-local, BadZoneRules for
    bytes that cannot be trusted."""
    if zone not in installed_zones():
        raise UnknownZone(field="trigger.zone", reason=f"{zone!r} is not an IANA zone of the installed zone data")
    try:
        tzif = resources.files("tzdata").joinpath("zoneinfo", *zone.split("/")).read_bytes()
    except OSError as problem:
        raise BadZoneRules(zone=zone, reason=f"the installed zone data cannot be read: {problem}") from problem
    return rules_from(zone, tzdata.IANA_VERSION, tzif)


@cache
def installed_zones() -> frozenset[str]:
    """Every zone name of the installed zone data, spelled exactly."""
    names = resources.files("tzdata").joinpath("zones").read_text(encoding="utf-8").split("\n")
    return frozenset(name for name in names if ZONE_NAME.fullmatch(name) and name not in NOT_A_ZONE)
