"""32 callers under one authority: whoever wakes first works for all, beside 32 who each commit their own decision."""

import statistics
from typing import Any

from benchmarks.callers import decide_in, together, warm_pool
from benchmarks.pgbench import pgbench
from benchmarks.seed import make_schedules, put_waiting
from benchmarks.server import Server

CALLERS = 32


def measure(server: Server, *, waves: int, each: int) -> dict[str, Any]:
    """Each wave: 32 × `each` Occurrences wait in one Schedule and 32 callers ask at once, every one until all of it is
    answered. pgbench: 32 sessions, one Occurrence a commit, the same Schedule's row."""
    url = server.database("one_authority")
    make_schedules(url, 1)
    found: dict[str, Any] = {}
    with warm_pool(url, CALLERS) as pool:
        for per_caller in (1, each):
            rates = [wave(url, pool, per_caller) for _ in range(waves + 1)][1:]
            found[f"ours_per_second_{per_caller}_each"] = statistics.median(rates)
    put_waiting(url, 0, 1, each=CALLERS * each)
    yardstick = pgbench(server, url, CALLERS, each, first=0, spread=False).per_second
    found["pgbench_per_second"] = yardstick
    found["ratio_1_each"] = found["ours_per_second_1_each"] / yardstick
    found["ratio"] = found[f"ours_per_second_{each}_each"] / yardstick
    return found


def wave(database_url: str, pool: Any, each: int) -> float:
    """Occurrences decided a second in one wave: from the first call until every caller has an answer and nothing waits."""
    put_waiting(database_url, 0, 1, each=CALLERS * each)
    seconds = together(CALLERS, lambda _: decide_in(pool, 0))
    with pool.connection() as connection:
        [(left,)] = connection.execute("SELECT count(*) FROM occurrence WHERE state = 'pending'").fetchall()
    if left:
        raise AssertionError(f"{left} Occurrences were left waiting")
    return CALLERS * each / seconds
