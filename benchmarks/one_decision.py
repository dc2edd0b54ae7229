"""One decision, 8 callers, every decision in a Schedule of its own, beside pgbench with the same statements."""

import statistics
from typing import Any

from benchmarks.callers import decide_each, together, warm_pool
from benchmarks.pgbench import pgbench
from benchmarks.seed import make_schedules, put_waiting
from benchmarks.server import Server

CALLERS = 8


def measure(server: Server, *, bursts: int, each: int) -> dict[str, Any]:
    """Bursts by turns, ours and pgbench's, each of 8 × `each` decisions; the rates are medians of the bursts."""
    url = server.database("one_decision")
    size = CALLERS * each
    make_schedules(url, size)
    ours: list[float] = []
    theirs: list[float] = []
    with warm_pool(url, CALLERS) as pool:  # one pool for all bursts, as a worker has; the first burst counts for nobody
        for _ in range(bursts + 1):
            put_waiting(url, 0, size, alone=True)
            ours.append(size / together(CALLERS, lambda caller: decide_each(pool, my_share(caller, each))))
            put_waiting(url, 0, size, alone=True)
            theirs.append(pgbench(server, url, CALLERS, each, first=0).per_second)
    rate, yardstick = statistics.median(ours[1:]), statistics.median(theirs[1:])
    return {"ours_per_second": rate, "pgbench_per_second": yardstick, "ratio": rate / yardstick}


def my_share(caller: int, each: int) -> range:
    """The Schedules of one caller."""
    return range(caller * each, (caller + 1) * each)
