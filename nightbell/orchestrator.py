"""An example Orchestrator (YLD-4): it makes a capability ready by running a command, within what the request allows.

The office asked for a capability by name; how it is made ready is this side's. The command is told in its environment:
NIGHTBELL_CAPABILITY, NIGHTBELL_SECONDS_MAX, NIGHTBELL_COST_MAX. It says that the capability is warm by ending with 0, in time;
its last line of output may be a JSON object with `cost` (a number, what it cost) and `note`. A command that fails, or is not
done in time, or cost more than was allowed, has made nothing warm.

A crash between taking a request and answering it leaves the capability CONVERGING; after the seconds it was allowed, the
request may be taken again.
"""

import json
import os
import shlex
import socket
import subprocess
import time
from dataclasses import dataclass
from uuid import uuid4

from law.errors import BadInput
from law.identity import DecisionId, ScheduleName
from law.readiness import Asked, Converged, Orchestrator
from store import readiness
from store.connection import Pool
from store.readiness import Request

NOTE_LENGTH_MAX = 200


def serve_once(pool: Pool, orchestrator: Orchestrator) -> tuple[list[Request], list[ScheduleName]]:
    """Take and answer every open request; those that were answered here, and the Schedules that may be judged again."""
    name = f"{socket.gethostname()}:{os.getpid()}"
    answered: list[Request] = []
    waiting: dict[ScheduleName, None] = {}
    for request in readiness.open_requests(pool):
        if not readiness.take(pool, request, name, DecisionId(uuid4())):
            continue
        converged = orchestrator.converge(Asked(request.capability, request.seconds_max, request.cost_max))
        waiting |= dict.fromkeys(readiness.answer(pool, request, name, converged, DecisionId(uuid4())))
        done = readiness.request_of(pool, request.trigger_occurrence_id)
        answered += [done] if done is not None else []
    return answered, list(waiting)


@dataclass(frozen=True, slots=True)
class CommandOrchestrator:
    """Makes capabilities ready by one command line, run without a shell."""

    command: str

    def converge(self, asked: Asked) -> Converged:
        """Run the command within the request's seconds. Raises BadInput for a command line that cannot be read."""
        told = {
            "NIGHTBELL_CAPABILITY": asked.capability,
            "NIGHTBELL_SECONDS_MAX": str(asked.seconds_max),
            "NIGHTBELL_COST_MAX": str(asked.cost_max),
        }
        began = time.monotonic()
        try:
            done = subprocess.run(
                words_of(self.command),
                env={**os.environ, **told},
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=asked.seconds_max,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return Converged(False, asked.seconds_max, 0.0, f"was not done within {asked.seconds_max} seconds")
        except OSError as problem:
            return Converged(False, time.monotonic() - began, 0.0, f"could not be run: {problem.strerror}")
        return judged(asked, done.returncode, time.monotonic() - began, done.stdout.decode(errors="replace"))


def words_of(command: str) -> list[str]:
    """The command line as words. Raises BadInput."""
    try:
        words = shlex.split(command)
    except ValueError as problem:
        raise BadInput(field="command", reason=f"cannot be read: {problem}") from problem
    if not words:
        raise BadInput(field="command", reason="is empty")
    return words


def judged(asked: Asked, exit_code: int, seconds: float, output: str) -> Converged:
    """What the command's end says: warm only if it ended well and within its cost."""
    cost, note = last_word(output)
    if exit_code != 0:
        return Converged(False, seconds, cost, note or f"ended with {exit_code}")
    if cost > asked.cost_max:
        return Converged(False, seconds, cost, f"cost {cost}, and {asked.cost_max} was allowed")
    return Converged(True, seconds, cost, note)


def last_word(output: str) -> tuple[float, str]:
    """Cost and note from the last line, where it is a JSON object that says them."""
    lines = output.strip().splitlines()
    try:
        said = json.loads(lines[-1]) if lines else {}
    except ValueError:
        return 0.0, lines[-1][:NOTE_LENGTH_MAX]
    if not isinstance(said, dict):
        return 0.0, ""
    cost = said.get("cost", 0.0)
    known = isinstance(cost, int | float) and not isinstance(cost, bool) and cost >= 0
    return float(cost) if known else 0.0, str(said.get("note", ""))[:NOTE_LENGTH_MAX]
