"""The rows of the table: what is measured, against what, and the target that each must meet."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from benchmarks import beside_settled, calendar, one_authority, one_decision, ringing, rounds
from benchmarks.server import Server


@dataclass(frozen=True, slots=True)
class Row:
    """One measurement. `target`: the bound on its ratio; `at_least`: whether more is better."""

    name: str
    what: str
    against: str
    target: float
    at_least: bool
    measure: Callable[[Server, bool], dict[str, Any]]

    def met(self, ratio: float) -> bool:
        """Whether the ratio keeps the target."""
        return ratio >= self.target if self.at_least else ratio <= self.target


ROWS = (
    Row(
        "one_decision",
        "one decision, 8 callers, distinct Schedules: rate",
        "pgbench, the same statements",
        0.8,
        True,
        lambda server, quick: one_decision.measure(server, bursts=3 if quick else 7, each=50),
    ),
    Row(
        "rounds",
        "a round of 100 Occurrences: time of each",
        "one pgbench decision",
        0.15,
        False,
        lambda server, quick: rounds.measure(server, rounds=5 if quick else 15),
    ),
    Row(
        "one_authority",
        "32 callers under one authority: rate",
        "32 in separate commits (pgbench)",
        5.0,
        True,
        lambda server, quick: one_authority.measure(server, waves=5 if quick else 15, each=16),
    ),
    Row(
        "beside_settled",
        "a decision beside settled Occurrences: time",
        "beside none",
        1.1,
        False,
        lambda server, quick: beside_settled.measure(
            server, settled=100_000 if quick else 1_000_000, bursts=4 if quick else 8, each=100
        ),
    ),
    Row(
        "calendar",
        "firings listed with zones resolved: rate",
        "cronsim's naive iteration",
        0.66,
        True,
        lambda _, quick: calendar.measure(
            count=5_000 if quick else 20_000, rounds=1 if quick else 3, account=not quick
        ),
    ),
    Row(
        "ringing",
        "Schedules due in one second, nominal to committed admission: p95",
        "Temporal Schedules starting an empty workflow",
        0.25,
        False,
        lambda _, quick: ringing.measure(schedules=50 if quick else 500),
    ),
)
