"""PostgreSQL's own load program, from the same wheel, making the same decision statement by statement.

It is the yardstick: a client in C that computes nothing, in as many sessions as our side has callers, under the same
session law and with prepared statements.
"""

import os
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

from benchmarks.server import Server
from store.connection import SESSION_LAW

SCRIPT = Path(__file__).with_name("decision.sql")
LOCK_TIMEOUT_OFF = "-c lock_timeout=0 -c statement_timeout=0 -c transaction_timeout=0"


@dataclass(frozen=True, slots=True)
class Pgbench:
    """One run: transactions a second without the time to connect, and the mean of one transaction."""

    per_second: float
    mean_milliseconds: float


def pgbench(server: Server, database_url: str, clients: int, each: int, *, first: int, spread: bool = True) -> Pgbench:
    """`clients` sessions decide `each` times. `spread`: every decision in a Schedule of its own, from number `first` on;
    otherwise all of them in Schedule `first`."""
    per, step = (each, 1) if spread else (0, 0)
    numbers = {"n": -1, "first": first, "per": per, "step": step}
    command = [str(server.program("pgbench")), "-n", "-M", "prepared", "-f", str(SCRIPT)]
    command += ["-c", str(clients), "-j", str(min(clients, 2)), "-t", str(each)]
    command += [word for name, value in numbers.items() for word in ("-D", f"{name}={value}")]
    environment = {**os.environ, "PGOPTIONS": f"{SESSION_LAW} {LOCK_TIMEOUT_OFF}"}
    done = subprocess.run([*command, database_url], env=environment, capture_output=True, text=True, check=False)
    wanted = clients * each
    if done.returncode or f"actually processed: {wanted}/{wanted}" not in done.stdout:
        raise RuntimeError(f"pgbench failed: {done.stdout}{done.stderr}")
    return Pgbench(number(r"tps = ([0-9.]+)", done.stdout), number(r"latency average = ([0-9.]+) ms", done.stdout))


def number(pattern: str, text: str) -> float:
    """The one number that pgbench prints there."""
    found = re.search(pattern, text)
    if found is None:
        raise RuntimeError(f"pgbench printed no {pattern}: {text}")
    return float(found[1])
