"""Callers as the worker has them: threads of one process over one pool, each asking `store.admission.decide`."""

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from uuid import uuid4

from benchmarks.seed import schedule_named
from law.identity import DecisionId
from store.admission import Decided, decide
from store.connection import Pool, borrow, open_pool


@contextmanager
def warm_pool(database_url: str, connections: int) -> Iterator[Pool]:
    """A pool whose connections are open before the clock starts, as pgbench's are."""
    pool = open_pool(database_url, connections_max=connections)
    met = threading.Barrier(connections)

    def connect(_: int) -> None:
        with borrow(pool) as connection:
            connection.execute("SELECT 1")
            met.wait()

    try:
        with ThreadPoolExecutor(connections) as threads:
            list(threads.map(connect, range(connections)))
        yield pool
    finally:
        pool.close()


def decide_in(pool: Pool, number: int) -> Decided:
    """One decision for the Schedule with this number."""
    return decide(pool, schedule_named(number), DecisionId(uuid4()))


def decide_each(pool: Pool, numbers: Sequence[int]) -> list[float]:
    """Decide for these Schedules one after the other; the seconds each took. Every one of them must admit one."""
    took: list[float] = []
    for number in numbers:
        began = time.perf_counter()
        decided = decide_in(pool, number)
        took.append(time.perf_counter() - began)
        if [one.state for one in decided.outcomes] != ["admitted"]:
            raise AssertionError(f"a decision was not one admission: {decided}")
    return took


def together(callers: int, act: Callable[[int], object]) -> float:
    """Let `act(0)` … `act(callers - 1)` begin at once in threads of their own; the seconds until the last is back."""
    met = threading.Barrier(callers + 1)

    def call(caller: int) -> object:
        met.wait()
        return act(caller)

    with ThreadPoolExecutor(callers) as threads:
        calls = [threads.submit(call, caller) for caller in range(callers)]
        met.wait()
        began = time.perf_counter()
        for one in calls:
            one.result()
        return time.perf_counter() - began
