"""A round of K Occurrences in one transaction, per Occurrence, beside one pgbench decision."""

import statistics
import time
from typing import Any

from benchmarks.callers import decide_in, warm_pool
from benchmarks.pgbench import pgbench
from benchmarks.seed import make_schedules, put_waiting
from benchmarks.server import Server

SCHEDULES = 400
DECISIONS = 200


def measure(server: Server, *, sizes: tuple[int, ...] = (1, 10, 100, 1000), rounds: int) -> dict[str, Any]:
    """One caller decides for everybody: K Occurrences, one a Schedule; beyond 400 the rest in its own."""
    url = server.database("rounds")
    make_schedules(url, SCHEDULES)
    put_waiting(url, 0, DECISIONS, alone=True)
    yardstick = pgbench(server, url, 1, DECISIONS, first=0).mean_milliseconds
    found: dict[str, Any] = {"pgbench_decision_milliseconds": yardstick, "rounds": {}}
    with warm_pool(url, 1) as pool:
        for size in sizes:
            took = [one_round(url, pool, size) for _ in range(rounds + 2)][2:]  # two to prepare statements
            each = statistics.median(took) * 1000 / size
            found["rounds"][str(size)] = {"milliseconds_per_occurrence": each, "ratio": each / yardstick}
    put_waiting(url, 0, DECISIONS, alone=True)
    again = pgbench(server, url, 1, DECISIONS, first=0).mean_milliseconds
    found["pgbench_decision_milliseconds_after"] = again
    found["ratio"] = found["rounds"]["100"]["ratio"]
    return found


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
