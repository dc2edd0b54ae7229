"""32 callers under one authority: whoever wakes first works for all, beside 32 who each commit their own decision."""

import statistics
import time
from typing import Any

from benchmarks.callers import decide_in, together, warm_pool
from benchmarks.pgbench import pgbench
from benchmarks.seed import make_schedules, put_waiting
from benchmarks.server import Server

CALLERS = 32


def measure(server: Server, *, waves: int, each: int) -> dict[str, Any]:
    """Waves: Occurrences wait, and 32 callers ask at once, each until it has its answer. The row's ratio is the hardest
    case, one Occurrence a caller in one Schedule; beside it one a caller in 32 Schedules, and `each` a caller in one.
    pgbench: 32 sessions, one Occurrence a commit, one Schedule's row."""
    url = server.database("one_authority")
    make_schedules(url, CALLERS)
    found: dict[str, Any] = {}
    with warm_pool(url, CALLERS) as pool:
        for name, schedules, per_caller in (
            ("one_each", 1, 1),
            ("one_each_own_schedules", CALLERS, 1),
            (f"{each}_each", 1, each),
        ):
            rates = [wave(url, pool, schedules, per_caller) for _ in range(waves + 1)][1:]
            found[f"ours_per_second_{name}"] = statistics.median(rates)
        empty = statistics.median(timed(pool) for _ in range(100)) * 1000
    put_waiting(url, 0, 1, each=CALLERS * each)
    yardstick = pgbench(server, url, CALLERS, each, first=0, spread=False).per_second
    ratios = {name.replace("ours_per_second", "ratio"): rate / yardstick for name, rate in found.items()}
    found["ours_milliseconds_of_a_turn_that_finds_nothing"] = empty
    return {**found, "pgbench_per_second": yardstick, **ratios, "ratio": ratios["ratio_one_each"]}


def timed(pool: Any) -> float:
    """Seconds for one caller to be told that nothing waits."""
    began = time.perf_counter()
    decide_in(pool, 0)
    return time.perf_counter() - began


def wave(database_url: str, pool: Any, schedules: int, each: int) -> float:
    """Occurrences decided a second in one wave: from the first call until every caller has an answer and nothing waits."""
    put_waiting(database_url, 0, schedules, each=CALLERS * each // schedules)
    seconds = together(CALLERS, lambda caller: decide_in(pool, caller % schedules))
    with pool.connection() as connection:
        [(left,)] = connection.execute("SELECT count(*) FROM occurrence WHERE state = 'pending'").fetchall()
    if left:
        raise AssertionError(f"{left} Occurrences were left waiting")
    return CALLERS * each / seconds
