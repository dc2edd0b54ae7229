"""The border: what the store raises, as Temporal should see it.

A contradiction will not go away by asking again: it is non-retryable and carries its code and sentence. Everything else
(a server that is away, a lock that was not had) is worth another try, and the store answers a repeated question from its
record.
"""

import asyncio
import contextvars
import time
from collections.abc import Callable
from concurrent.futures import Executor
from typing import ParamSpec, TypeVar

from temporalio.exceptions import ApplicationError

from law.errors import Contradiction
from store.errors import StoreProblem

P = ParamSpec("P")
AnswerT = TypeVar("AnswerT")

PATIENCE_SECONDS, PAUSE_SECONDS = 60.0, 0.2


async def ask(threads: Executor, question: Callable[P, AnswerT], *arguments: P.args, **named: P.kwargs) -> AnswerT:
    """Ask the store one question in a thread, and translate its no."""
    context = contextvars.copy_context()

    def carried() -> AnswerT:
        return context.run(question, *arguments, **named)

    try:
        return await asyncio.get_running_loop().run_in_executor(threads, carried)
    except Contradiction as problem:
        raise ApplicationError(problem.sentence, type=problem.code, non_retryable=True) from problem
    except StoreProblem as problem:
        raise ApplicationError(str(problem), type=type(problem).__name__) from problem


def patiently(question: Callable[P, AnswerT], *arguments: P.args, **named: P.kwargs) -> AnswerT:
    """Ask again while the store is away, for a minute: for a question whose repeat is answered like the first. A server
    that restarts costs a hop nothing. Raises StoreProblem when it stays away."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while True:
        try:
            return question(*arguments, **named)
        except StoreProblem:
            if time.monotonic() >= deadline:
                raise
            time.sleep(PAUSE_SECONDS)
