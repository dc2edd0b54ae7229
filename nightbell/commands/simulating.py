"""`simulate`: what would run, wait and miss if these Schedules met over a stretch of time. It needs no server."""

from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from law.identity import ScheduleName
from law.instants import read_instant
from law.reasons import MEANINGS, OccurrenceState
from law.simulated import Outcome
from law.simulation import Simulation
from law.tally import Account, Meter, Tally
from nightbell.commands.simulated_stage import Measured, Said, stage_of
from nightbell.drawing.files import check_place, write_whole
from nightbell.drawing.months import TEXT_WIDTH
from nightbell.drawing.simulated import Lanes, lane_lines
from nightbell.drawing.simulated_svg import svg_text
from nightbell.drawing.words import say_for
from nightbell.options import AsJson, HomeFolder, store_of
from nightbell.shown import show, table
from store.supplies import measured_durations

WORST_MAX = 10
"""So many firings that were lost are listed for a person; the rest are in the JSON."""
LOST = {
    OccurrenceState.MISSED,
    OccurrenceState.REFUSED,
    OccurrenceState.REVOKED,
    OccurrenceState.FAILED,
}


Capacities = Annotated[
    list[str] | None,
    typer.Option(
        "--capacity",
        metavar="NAME=UNITS[:…]",
        help="A capability; then :protected=P :foreground=F :state=COLD :closed :exclusive. May be repeated.",
    ),
]
Durations = Annotated[
    list[str] | None,
    typer.Option("--duration", metavar="SCHEDULE=4m", help="How long its work takes. May be repeated."),
]
Events = Annotated[
    list[str] | None,
    typer.Option("--event", metavar="SCHEDULE=12/h|FILE", help="When an external source rings. May be repeated."),
]
QuietWindows = Annotated[
    list[str] | None,
    typer.Option("--quiet", metavar="FROM/TO[=NAME]", help="A quiet window, of a capability. May be repeated."),
]
Proven = Annotated[
    list[str] | None,
    typer.Option("--proven", metavar="PATTERN[/REVISION]", help="Taken to have shown that it yields."),
]


def add_to(app: typer.Typer) -> None:
    """Register this module's command."""
    app.command()(simulate)


def simulate(
    files: Annotated[list[Path], typer.Argument(exists=True, help="Schedule files (TOML), or folders of them.")],
    start: Annotated[str, typer.Option("--from", help="The first instant, ISO 8601 with Z.")],
    end: Annotated[str, typer.Option("--to", help="The first instant past the end.")],
    capacity: Capacities = None,
    duration: Durations = None,
    event: Events = None,
    quiet: QuietWindows = None,
    proven: Proven = None,
    measured: Annotated[
        bool,
        typer.Option(
            "--measured", help="Durations that nobody says are taken from the store, which has to be reachable."
        ),
    ] = False,
    home: HomeFolder = None,
    svg: Annotated[Path | None, typer.Option("--svg", help="Draw it into this SVG file too.")] = None,
    limit: Annotated[int, typer.Option(min=0, max=1_000_000, help="List at most so many firings.")] = 1000,
    as_json: AsJson = False,
) -> None:
    """Show what would run, wait, miss and be suppressed: the same law over a stretch of time, without any server."""
    kept = what_was_measured(home) if measured else {}
    said = Said(capacity or (), duration or (), event or (), quiet or (), proven or (), kept)
    walk = Walk(files, read_instant(start, "from"), read_instant(end, "to"), said)
    if svg is not None:
        check_place(svg)
    value = walk.walked(limit)
    if svg is not None:
        write_whole(svg, svg_text(walk.lanes, walk.meters))
    show(as_json, value, partial(say, walk=walk))
    if svg is not None and not as_json:
        typer.echo(f"Drawn into {svg}.")


def what_was_measured(home: Path | None) -> Measured:
    """What settled Runs say of how long the next will take. Raises StackProblem."""
    with store_of(home) as (_, pool):
        return measured_durations(pool)


class Walk:
    """One simulation, counted and drawn as it passes."""

    def __init__(self, files: list[Path], since: datetime, until: datetime, said: Said) -> None:
        self.simulation = Simulation(stage := stage_of(files, since, until, said))
        self.since, self.until = since, until
        self.tally = Tally.of(one.name for one in stage.schedules)
        self.lanes = Lanes(since, until, list(self.tally.schedules))
        self.takes = {one.name: one.takes for one in stage.schedules}
        self.meters: Mapping[str, Meter] = self.simulation.meters
        self.lost: list[Outcome] = []

    def walked(self, limit: int) -> dict[str, Any]:
        """The whole of it as the command line's contract has it; at most so many firings, the first to ring."""
        listed = list[Outcome]()
        for one in self.tally.counting(self.simulation.outcomes()):
            self.lanes.add(one)
            if one.ordinal < limit:
                listed.append(one)
            if one.state in LOST and len(self.lost) < WORST_MAX:
                self.lost.append(one)
        listed.sort(key=lambda one: one.ordinal)
        totals = self.tally.totals
        return {
            "from": self.since,
            "to": self.until,
            "totals": {state.value: totals[state] for state in OccurrenceState if totals[state]},
            "longest_foreground_wait_seconds": self.tally.longest_foreground_wait.total_seconds(),
            "schedules": [self.schedule(name, account) for name, account in self.tally.schedules.items()],
            "capabilities": [capability(meter) for meter in self.meters.values()],
            "firings": [firing(one) for one in listed],
            "firings_left_out": totals.total() - len(listed),
        }

    def schedule(self, name: ScheduleName, account: Account) -> dict[str, Any]:
        """One Schedule: how many ended how, and the longest wait of one of them."""
        return {
            "schedule": name,
            "totals": {state.value: account.totals[state] for state in OccurrenceState if account.totals[state]},
            "delayed": account.delayed_count,
            "finish_unmet": account.unmet_count,
            "longest_wait_seconds": account.longest_wait.total_seconds(),
            "takes_seconds": self.takes[name].total_seconds(),
        }


def capability(meter: Meter) -> dict[str, Any]:
    """One capability and how much of it was at work."""
    has = meter.capability
    return {
        "capability": has.name,
        "state": has.state,
        "units": has.units,
        "peak_units": meter.peak_units,
        "busy_unit_seconds": round(meter.busy_unit_seconds, 3),
        "busy_share": round(meter.busy_share, 6),
    }


def firing(one: Outcome) -> dict[str, Any]:
    """One firing and what became of it."""
    return {
        "schedule": one.schedule,
        "key": one.key,
        "service_class": one.service_class,
        "rang_at": one.rang_at,
        "eligible_at": one.eligible_at,
        "state": one.state,
        "reason": one.reason,
        "decided_at": one.decided_at,
        "waited_seconds": one.waited.total_seconds(),
        "waited_for": one.waited_for,
        "run_from": one.run_from,
        "run_to": one.run_to,
        "units": one.units,
        "slices": one.slices,
        "disposition": one.disposition,
        "coalesced_into": one.coalesced_into,
        "evidence": one.evidence,
    }


def say(console: Console, walk: Walk) -> None:
    """The picture, and under it the totals and the first firings that were lost, with their reasons."""
    for line in lane_lines(walk.lanes, walk.meters, console.width if console.is_terminal else TEXT_WIDTH):
        console.print(line)
    console.print()
    columns = {state.value: state.value for state in OccurrenceState if walk.tally.totals[state]}
    heads = {
        "schedule": "Schedule",
        **columns,
        "delayed": "of them late",
        "unmet": "finished late",
        "wait": "longest wait",
    }
    table(list(totals_of(walk)), heads, "")(console)
    for meter in walk.meters.values():
        console.print(say_load(meter), markup=False)
    for one in walk.lost:
        sentence = MEANINGS[one.reason].sentence
        console.print(f"{one.state}: {one.schedule} {one.key}: {sentence}", markup=False)
    if (more := sum(walk.tally.totals[state] for state in LOST) - len(walk.lost)) > 0:
        console.print(f"and {more} more that were lost; --json lists them.")


def totals_of(walk: Walk) -> Iterator[dict[str, Any]]:
    """A line for every Schedule; nothing is a dash."""
    for name, account in walk.tally.schedules.items():
        counted = {state.value: count or None for state, count in account.totals.items()}
        wait = say_wait(account.longest_wait) if account.longest_wait else None
        late = {"delayed": account.delayed_count or None, "unmet": account.unmet_count or None}
        yield {"schedule": name, **counted, **late, "wait": wait}


def say_wait(waited: timedelta) -> str:
    """A wait in words."""
    return say_for(int(waited.total_seconds())) if waited >= timedelta(seconds=1) else "under 1 s"


def say_load(meter: Meter) -> str:
    """`store-io: 4 of 4 units at once at most, 12.5 % of them at work`."""
    has = meter.capability
    if has.state == "UNKNOWN":
        return f"{has.name}: its state is unknown, and unknown is not free; say --capacity {has.name}=UNITS"
    state = "" if has.state == "WARM" else f", {has.state}"
    share = f"{100 * meter.busy_share:.1f} % of them at work"
    return f"{has.name}{state}: {meter.peak_units} of {has.units} units at once at most, {share} on average"
