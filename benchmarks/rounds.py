"""A round of K Occurrences in one transaction, per Occurrence, beside one pgbench decision."""

import statistics
import time
from typing import Any

from benchmarks.callers import decide_in, warm_pool
from benchmarks.pgbench import pgbench
from benchmarks.seed import make_schedules, put_waiting
from benchmarks.server import Server

SCHEDULES = 400
DECISIONS = 50


def measure(server: Server, *, sizes: tuple[int, ...] = (1, 10, 100, 1000), rounds: int) -> dict[str, Any]:
    """One caller decides for everybody: K Occurrences, one a Schedule; beyond 400 the rest in its own. By turns with
    bursts of single pgbench decisions; medians on both sides."""
    url = server.database("rounds")
    make_schedules(url, SCHEDULES)
    singles: list[float] = []
    took: dict[int, list[float]] = {size: [] for size in sizes}
    with warm_pool(url, 1) as pool:
        for count in range(rounds + 2):
            put_waiting(url, 0, DECISIONS, alone=True)
            single = pgbench(server, url, 1, DECISIONS, first=0).mean_milliseconds
            seconds = {size: one_round(url, pool, size) for size in sizes}
            if count >= 2:  # two to prepare statements
                singles.append(single)
                for size in sizes:
                    took[size].append(seconds[size])
    yardstick = statistics.median(singles)
    each = {size: statistics.median(took[size]) * 1000 / size for size in sizes}
    found = {str(size): {"milliseconds_per_occurrence": each[size], "ratio": each[size] / yardstick} for size in sizes}
    return {"pgbench_decision_milliseconds": yardstick, "rounds": found, "ratio": each[100] / yardstick}


def one_round(database_url: str, pool: Any, size: int) -> float:
    """Seconds for one round of `size`; nothing may be left waiting."""
    schedules = min(size, SCHEDULES)
    put_waiting(database_url, 0, schedules)
    if size > schedules:
        put_waiting(database_url, 0, 1, each=size - schedules)
    began = time.perf_counter()
    decided = decide_in(pool, 0)
    seconds = time.perf_counter() - began
    with pool.connection() as connection:
        [(left,)] = connection.execute("SELECT count(*) FROM occurrence WHERE state = 'pending'").fetchall()
    if left or len(decided.outcomes) != size - schedules + 1:
        raise AssertionError(f"a round of {size} left {left} waiting")
    return seconds
