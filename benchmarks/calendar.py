"""Firings listed with their zone resolved, beside the cron library's own naive iteration; and ten million missed seconds."""

import time
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import Any

from cronsim import CronSim

from law.bounds import Bounds, Jitter, calendar_bounds
from law.catch_up import CatchUp, sort_out
from law.firings import Firing, firings, newest_firings
from law.identity import ScheduleName
from law.triggers import CalendarTrigger
from law.zone_rules import ZoneRules
from store.zone_rules import installed_rules

ZONE = "Europe/Bratislava"
START = datetime(2026, 1, 1, tzinfo=UTC)
EVERY_SECOND = CalendarTrigger(kind="calendar", cron="* * * * * *", zone=ZONE)
TEN_MILLION_SECONDS = timedelta(seconds=10_000_000)
EXPRESSIONS = ("*/5 * * * *", "0 2 * * *", "30 8-18/2 * * 1-5")


def measure(*, count: int, rounds: int, account: bool) -> dict[str, Any]:
    """The first `count` firings of three expressions, by turns; the best of the rounds on either side. `account`: also
    sort out ten million missed seconds, which takes long."""
    rules = installed_rules(ZONE)
    found: dict[str, Any] = {"expressions": {}}
    for cron in EXPRESSIONS:
        pairs = [(listed(cron, rules, count), iterated(cron, count)) for _ in range(rounds)]
        ours, theirs = count / min(one for one, _ in pairs), count / min(two for _, two in pairs)
        found["expressions"][cron] = {"ours_per_second": ours, "cronsim_per_second": theirs, "ratio": ours / theirs}
    found["ratio"] = min(one["ratio"] for one in found["expressions"].values())
    found["newest_of_ten_million_missed_seconds_cpu_milliseconds"] = min(newest(rules) for _ in range(rounds))
    if account:
        found["ten_million_missed_seconds_accounted_cpu_milliseconds"] = ten_million(rules)
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


def newest(rules: ZoneRules) -> float:
    """CPU milliseconds to find the newest of ten million missed firings, one a second."""
    until = START + TEN_MILLION_SECONDS
    began = time.process_time()
    found = next(newest_firings(EVERY_SECOND, "nominal", rules, START, until))
    milliseconds = (time.process_time() - began) * 1000
    if found.at != until - timedelta(seconds=1):
        raise AssertionError(f"{found} is not the newest")
    return milliseconds


def ten_million(rules: ZoneRules) -> float:
    """CPU milliseconds until ten million missed firings, one a second, are sorted out by the catch-up policy."""
    at = START + TEN_MILLION_SECONDS

    def bounds(firing: Firing) -> Bounds:
        return calendar_bounds(None, Jitter(), firing, rules, ScheduleName("bench/seconds"))

    began = time.process_time()
    backlog = sort_out(EVERY_SECOND, "nominal", rules, START, at, bounds, at, CatchUp())
    milliseconds = (time.process_time() - began) * 1000
    accounted = len(backlog.entries) + sum(one.firing_count for one in backlog.ranges)
    if accounted != 10_000_000 + 3_600:  # the hour in March that never came was swallowed second by second
        raise AssertionError(f"{accounted} firings were accounted for")
    return milliseconds
