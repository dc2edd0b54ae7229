"""A decision beside a million settled Occurrences, beside the same decision beside none."""

import statistics
from typing import Any

from benchmarks.callers import decide_each, warm_pool
from benchmarks.seed import make_schedules, put_waiting
from benchmarks.server import Server


def measure(server: Server, *, settled: int, bursts: int, each: int) -> dict[str, Any]:
    """One caller; bursts by turns in two databases that are alike but for the settled ones, all of them the history of
    the very Schedules that are decided. The times are medians over all decisions."""
    full, empty = server.database("beside_many"), server.database("beside_none")
    make_schedules(full, each, history=settled)
    make_schedules(empty, each, history=0)
    took: dict[str, list[float]] = {full: [], empty: []}
    for burst in range(bursts + 1):
        for url in (full, empty):
            put_waiting(url, 0, each, alone=True)
            with warm_pool(url, 1) as pool:
                seconds = decide_each(pool, range(each))
            if burst:  # the first meets cold caches
                took[url] += seconds
    beside, alone = (statistics.median(took[url]) * 1000 for url in (full, empty))
    return {"settled": settled, "beside_milliseconds": beside, "alone_milliseconds": alone, "ratio": beside / alone}
