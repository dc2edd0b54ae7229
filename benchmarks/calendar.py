"""Firings listed with their zone resolved, beside the cron library's own naive iteration; and ten million missed seconds."""

import time
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import Any

from cronsim import CronSim

from law.bounds import Bounds, Jitter, calendar_bounds
from law.catch_up import CatchUp, sort_out
from law.firings import Firing, firings
from law.identity import ScheduleName
from law.triggers import CalendarTrigger
from law.zone_rules import ZoneRules
from store.zone_rules import installed_rules

ZONE = "Europe/Bratislava"
START = datetime(2026, 1, 1, tzinfo=UTC)
EXPRESSIONS = ("*/5 * * * *", "0 2 * * *", "30 8-18/2 * * 1-5")


def measure(*, count: int, rounds: int) -> dict[str, Any]:
    """The first `count` firings of three expressions, by turns; the best of the rounds on either side."""
    rules = installed_rules(ZONE)
    found: dict[str, Any] = {"expressions": {}}
    for cron in EXPRESSIONS:
        pairs = [(listed(cron, rules, count), iterated(cron, count)) for _ in range(rounds)]
        ours, theirs = count / min(one for one, _ in pairs), count / min(two for _, two in pairs)
        found["expressions"][cron] = {"ours_per_second": ours, "cronsim_per_second": theirs, "ratio": ours / theirs}
    found["ratio"] = min(one["ratio"] for one in found["expressions"].values())
    found["ten_million_missed_seconds_cpu_milliseconds"] = min(ten_million(rules) for _ in range(rounds))
    return found


def listed(cron: str, rules: ZoneRules, count: int) -> float:
    """CPU seconds to list `count` firings with identity and instant."""
    trigger = CalendarTrigger(kind="calendar", cron=cron, zone=ZONE)
    began = time.process_time()
    found = sum(1 for _ in islice(firings(trigger, "nominal", rules, START, datetime(9000, 1, 1, tzinfo=UTC)), count))
    seconds = time.process_time() - began
    if found != count:
        raise AssertionError(f"{cron} rang {found} times")
    return seconds


def iterated(cron: str, count: int) -> float:
    """CPU seconds for cronsim to name as many civil times, without zone or identity."""
    began = time.process_time()
    found = sum(1 for _ in islice(CronSim(cron, START.replace(tzinfo=None)), count))
    seconds = time.process_time() - began
    if found != count:
        raise AssertionError(f"{cron} rang {found} times")
    return seconds


def ten_million(rules: ZoneRules) -> float:
    """CPU milliseconds until ten million missed firings, one a second, are sorted out by the catch-up policy."""
    trigger = CalendarTrigger(kind="calendar", cron="* * * * * *", zone=ZONE)
    at = START + timedelta(seconds=10_000_000)

    def bounds(firing: Firing) -> Bounds:
        return calendar_bounds(None, Jitter(), firing, rules, ScheduleName("bench/seconds"))

    began = time.process_time()
    backlog = sort_out(trigger, "nominal", rules, START, at, bounds, at, CatchUp())
    milliseconds = (time.process_time() - began) * 1000
    accounted = len(backlog.entries) + sum(one.firing_count for one in backlog.ranges)
    if accounted != 10_000_000:
        raise AssertionError(f"{accounted} firings were accounted for")
    return milliseconds
