"""Firings listed with key, instant and zone, beside what two cron libraries name without any of them; in one run.

`python -c "from benchmarks.firings import measure; print(measure())"`. Rates are of CPU time, the best of the rounds on either
side. The ratio is ours to the faster library's, for the expression that does worst.
"""

import time
from itertools import islice
from typing import Any

from croniter import croniter

from benchmarks.calendar import EXPRESSIONS, START, ZONE, iterated, listed, newest, ten_million
from store.zone_rules import installed_rules


def measure(*, count: int = 5_000, rounds: int = 3) -> dict[str, Any]:
    """Three expressions by turns, then ten million missed seconds: the newest of them, and all of them accounted for."""
    rules = installed_rules(ZONE)
    found: dict[str, Any] = {"expressions": {}}
    for cron in EXPRESSIONS:
        turns = [(listed(cron, rules, count), iterated(cron, count), by_croniter(cron, count)) for _ in range(rounds)]
        ours, cronsims, croniters = (count / min(side) for side in zip(*turns, strict=True))
        rates = {"ours_per_second": ours, "cronsim_per_second": cronsims, "croniter_per_second": croniters}
        found["expressions"][cron] = {**rates, "ratio": ours / max(cronsims, croniters)}
    found["ratio"] = min(one["ratio"] for one in found["expressions"].values())
    found["newest_of_ten_million_missed_seconds_cpu_milliseconds"] = min(newest(rules) for _ in range(rounds))
    found["ten_million_missed_seconds_accounted_cpu_milliseconds"] = min(ten_million(rules) for _ in range(rounds))
    return found


def by_croniter(cron: str, count: int) -> float:
    """CPU seconds for croniter to name as many civil times."""
    civil = START.replace(tzinfo=None)
    began = time.process_time()
    found = sum(1 for _ in islice(croniter(cron, civil, ret_type=type(civil)), count))
    seconds = time.process_time() - began
    if found != count:
        raise AssertionError(f"{cron} rang {found} times")
    return seconds
