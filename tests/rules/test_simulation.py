"""What would run, wait and miss: a walk through time that has not happened, judged by the law of admission itself."""

import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from law.capacity import Capability, Sharing
from law.errors import BadInput, CycleCollision
from law.merging import Mergeable
from law.pattern import YieldContract
from law.reasons import Disposition, OccurrenceState, Reason
from law.schedule import check_document
from law.simulated import Evenly, Event, Outcome, Simulated, simulated
from law.simulated_lines import Pool, Waiting
from law.simulation import Simulation, Stage
from law.tally import BINS, Meter, Tally
from law.yielding import QuietWindow
from store.zone_rules import installed_rules

SINCE = datetime(2026, 1, 1, tzinfo=UTC)
ADMITTED, MISSED, SUPPRESSED, PENDING = (
    OccurrenceState.ADMITTED,
    OccurrenceState.MISSED,
    OccurrenceState.SUPPRESSED,
    OccurrenceState.PENDING,
)
TWO_UNITS = Capability("io", "WARM", "open", 2)


def minutes(count: float) -> timedelta:
    return timedelta(minutes=count)


def hours(count: float) -> datetime:
    """So many hours after the beginning."""
    return SINCE + timedelta(hours=count)


def schedule(
    name: str,
    service_class: str = "foreground",
    at: Sequence[float] = (0,),
    takes: float = 30,
    units: int = 1,
    capability: str | None = "io",
    contract: YieldContract | None = None,
    is_proven: bool = False,
    **tables: Any,
) -> Simulated:
    """A Schedule that rings at these hours and whose work takes so many minutes."""
    document = {
        "authority": "home",
        "name": name,
        "trigger": {"kind": "external", "source": "bell"},
        "class": {"service_class": service_class},
        "work": {"pattern": "p", "pattern_revision": "1", "owner": "magus"},
        "overlap": {"policy": "bounded_parallel", "max": 100},
        **tables,
    }
    if capability is not None:
        document["capacity"] = {"capability": capability, "units": units}
    events = tuple(Event(hours(one), str(place)) for place, one in enumerate(at))
    said = minutes(takes)
    return simulated(check_document(document), None, said, contract=contract, is_proven=is_proven, events=events)


def calendar(name: str, cron: str, zone: str = "UTC", **tables: Any) -> Simulated:
    """A Schedule that rings by its calendar and whose work takes a minute."""
    tables = {"class": {"service_class": "foreground"}, **tables}
    document = {
        "authority": "home",
        "name": name,
        "trigger": {"kind": "calendar", "cron": cron, "zone": zone},
        "work": {"pattern": "p", "pattern_revision": "1", "owner": "magus"},
        **tables,
    }
    return simulated(check_document(document), installed_rules(zone), minutes(1))


def walk(
    *schedules: Simulated, days: float = 1, supply: Sequence[Capability] = (TWO_UNITS,), **more: Any
) -> list[Outcome]:
    """Every outcome, in the order in which firings rang."""
    stage = Stage(schedules, SINCE, SINCE + timedelta(days=days), supply, **more)
    return sorted(Simulation(stage).outcomes(), key=lambda one: one.ordinal)


def fates(outcomes: Sequence[Outcome]) -> list[tuple[str, OccurrenceState, float | None]]:
    """Who, what, and after how many minutes since the beginning it was decided."""
    return [
        (one.schedule, one.state, (one.decided_at - SINCE) / minutes(1) if one.decided_at else None) for one in outcomes
    ]


@pytest.mark.obligation("SEL-2", boundary="ordinary")
def test_sel_2_a_deadline_takes_its_units_before_a_foreground_flood_would_make_it_miss() -> None:
    """Foreground at twice capacity all day long: the deadline that can be kept is kept, and foreground's wait is told."""
    flood = schedule("flood", at=[one / 4 for one in range(96)], takes=30, units=2)
    rite = schedule("rite", "deadline_windowed", at=[2.1], takes=30, window={"allowed_delay": "45m"})
    found = walk(flood, rite)
    [kept] = [one for one in found if one.schedule == "home/rite"]
    assert kept.state is ADMITTED
    assert kept.decided_at is not None and kept.decided_at < hours(2.1) + minutes(45)
    tally = Tally.of([flood.name, rite.name])
    assert len(list(tally.counting(found))) == 97
    assert tally.longest_foreground_wait > timedelta(hours=6)


@pytest.mark.obligation("SEL-2", boundary="ordinary")
def test_sel_2_foreground_goes_before_spare_capacity_that_waited_longer() -> None:
    """One unit: when it is free again the foreground firing has it, though the spare one rang first."""
    one_unit = [replace(TWO_UNITS, units=1)]
    spare = schedule("spare", "spare_capacity", at=[0.1], contract=YieldContract(minutes(60)), is_proven=True)
    found = walk(schedule("first", at=[0]), spare, schedule("late", at=[0.4]), supply=one_unit)
    assert fates(found) == [
        ("home/first", ADMITTED, 0),
        ("home/spare", ADMITTED, 60),
        ("home/late", ADMITTED, 30),
    ]
    assert found[1].waited_for == (Reason.CAPACITY,)


@pytest.mark.obligation("SEL-5", boundary="failure")
def test_sel_5_what_cannot_be_finished_any_more_is_refused_with_the_arithmetic_before_its_bound() -> None:
    """It waits for units until its estimate says that it would end too late; the refusal shows the sum."""
    busy = schedule("busy", at=[0], takes=120, units=2)
    rite = schedule(
        "rite", "deadline_windowed", at=[0.1], takes=30, window={"allowed_delay": "3h", "finish_within": "1h"}
    )
    [_, refused] = walk(busy, rite)
    assert (refused.state, refused.reason) == (OccurrenceState.REFUSED, Reason.INFEASIBLE)
    assert refused.decided_at == hours(0.1) + minutes(30)
    assert refused.evidence["would_end_at"] == refused.evidence["finish_by"] == hours(1.1)


@pytest.mark.obligation("OVL-2", boundary="ordinary")
def test_ovl_2_a_bell_beside_a_run_that_goes_on_is_suppressed_and_one_at_its_end_is_not() -> None:
    """Forbid: an hour of work that is rung for every half hour."""
    found = walk(schedule("rite", at=[0, 0.5, 1, 1.5], takes=60, overlap={"policy": "forbid"}))
    assert [one.state for one in found] == [ADMITTED, SUPPRESSED, ADMITTED, SUPPRESSED]
    assert found[1].reason is Reason.OVERLAP_FORBIDDEN


@pytest.mark.obligation("OVL-3", boundary="ordinary")
def test_ovl_3_a_serialized_line_keeps_its_order_and_misses_whose_window_closes() -> None:
    """An hour of work each; the third would begin after its window of ninety minutes."""
    window = {"allowed_delay": "90m"}
    found = walk(
        schedule(
            "rite", "deadline_windowed", at=[0, 0.1, 0.2], takes=60, overlap={"policy": "serialize"}, window=window
        )
    )
    assert fates(found) == [
        ("home/rite", ADMITTED, 0),
        ("home/rite", ADMITTED, 60),
        ("home/rite", MISSED, 102),
    ]
    assert found[1].waited_for == (Reason.OVERLAP,)


@pytest.mark.obligation("OVL-4", boundary="ordinary")
def test_ovl_4_no_more_run_at_once_than_the_policy_counts() -> None:
    """Two at once, though there are units for ten: the third waits for the first."""
    overlap = {"policy": "bounded_parallel", "max": 2}
    found = walk(schedule("rite", at=[0, 0.1, 0.2], takes=60, overlap=overlap), supply=[replace(TWO_UNITS, units=10)])
    assert [one.decided_at for one in found] == [hours(0), hours(0.1), hours(1)]


@pytest.mark.obligation("OVL-5", boundary="ordinary")
def test_ovl_5_what_waited_together_is_coalesced_into_one_run_and_each_keeps_its_own_outcome() -> None:
    """Three wait behind a Run; one is admitted for all, and the others say into which."""

    def merge(whose: Mergeable, inputs: Sequence[Any]) -> dict[str, Any]:
        return {"count": len(inputs)}

    found = walk(schedule("rite", at=[0, 0.1, 0.2, 0.3], takes=60, overlap={"policy": "coalesce"}), merge=merge)
    assert [one.state for one in found] == [ADMITTED, ADMITTED, OccurrenceState.COALESCED, OccurrenceState.COALESCED]
    assert {one.coalesced_into for one in found[2:]} == {found[1].key}
    assert {one.decided_at for one in found[1:]} == {hours(1)}


@pytest.mark.obligation("WIN-5", boundary="failure")
def test_win_5_what_waits_for_capacity_is_missed_at_its_latest_start_and_not_admitted_late() -> None:
    """A window of 54 minutes behind work of an hour that ends at that very instant."""
    busy = schedule("busy", at=[0], takes=60, units=2)
    found = walk(busy, schedule("rite", "deadline_windowed", at=[0.1], window={"allowed_delay": "54m"}))
    assert fates(found) == [("home/busy", ADMITTED, 0), ("home/rite", MISSED, 60)]


@pytest.mark.obligation("YLD-5", boundary="ordinary")
def test_yld_5_spare_work_gives_way_between_two_slices_and_foreground_waits_one_at_most() -> None:
    """An hour of spare work in slices of ten minutes; foreground comes in the middle of the first."""
    one_unit = [replace(TWO_UNITS, units=1)]
    spare = schedule("spare", "spare_capacity", takes=60, contract=YieldContract(minutes(10)), is_proven=True)
    [slow, quick] = walk(spare, schedule("quick", at=[0.05]), supply=one_unit)
    assert quick.decided_at == SINCE + minutes(10)
    assert quick.waited == minutes(7)
    assert (slow.slices, slow.run_from, slow.run_to) == (6, SINCE, SINCE + minutes(90))


@pytest.mark.obligation("YLD-2", boundary="ordinary")
def test_yld_2_spare_work_that_has_not_shown_that_it_yields_waits_for_a_quiet_window() -> None:
    """It rings at midnight; an operator's window opens at three, another is too short for it."""
    windows = [
        QuietWindow(hours(1), hours(1.2), "io"),
        QuietWindow(hours(2), hours(4), "other"),
        QuietWindow(hours(3), hours(5), "io"),
    ]
    [found] = walk(schedule("spare", "spare_capacity", takes=30), quiet_windows=windows)
    assert (found.decided_at, found.waited_for) == (hours(3), (Reason.QUIET_WINDOW,))


@pytest.mark.obligation("YLD-3", boundary="failure")
def test_yld_3_what_nobody_said_anything_of_is_unknown_and_never_free() -> None:
    """A capability that is not given, and one that is cold: nothing is admitted, and deadlines are missed."""
    rite = schedule("rite", "deadline_windowed", window={"allowed_delay": "1h"})
    assert fates(walk(rite, supply=[])) == [("home/rite", MISSED, 60)]
    [cold] = walk(rite, supply=[replace(TWO_UNITS, state="COLD")])
    assert (cold.state, cold.waited_for) == (MISSED, (Reason.READINESS,))


@pytest.mark.obligation("AUT-4", boundary="failure")
def test_aut_4_a_ceiling_of_runs_a_day_counts_any_twenty_four_hours() -> None:
    """Two a day: of four bells in a row two are refused, and a day after the first the next is let in."""
    found = walk(schedule("rite", at=[20, 21, 22, 23, 44.5], takes=1, budget={"runs_per_day": 2}), days=2)
    assert [one.state for one in found] == [
        ADMITTED,
        ADMITTED,
        OccurrenceState.REFUSED,
        OccurrenceState.REFUSED,
        ADMITTED,
    ]
    assert found[2].reason is Reason.BUDGET_SPENT


def test_a_run_that_ends_at_its_finish_bound_has_not_kept_it() -> None:
    """Strictly before is timely, at the bound is not; without an estimate that could have said so it is admitted (FIN-2)."""
    window = {"allowed_delay": "5m", "finish_within": "30m"}
    unsure = {"capability": "io", "estimate": {"duration": "1m", "provenance": "declared", "confidence": 0.9}}
    for takes, disposition in ((29, Disposition.TIMELY), (30, Disposition.UNMET)):
        rite = schedule("rite", "deadline_windowed", takes=takes, window=window, capability=None, capacity=unsure)
        [found] = walk(rite)
        assert found.disposition is disposition


@pytest.mark.obligation("CAL-3", boundary="ordinary")
def test_cal_3_a_civil_time_that_never_comes_is_skipped_where_the_clocks_jump() -> None:
    """02:30 in Bratislava in the night the clocks go forward."""
    stage = Stage(
        [calendar("rite", "30 2 * * *", "Europe/Bratislava")],
        datetime(2026, 3, 28, tzinfo=UTC),
        datetime(2026, 3, 31, tzinfo=UTC),
    )
    assert [one.reason for one in Simulation(stage).outcomes()] == [
        Reason.ADMITTED,
        Reason.GAP_SKIPPED,
        Reason.ADMITTED,
    ]


def test_bounded_jitter_is_drawn_from_the_identity_of_the_firing_and_stays_below_its_maximum() -> None:
    """A hundred firings wait below ten minutes for their eligibility, not all the same, and the same again."""
    jittered = calendar("rite", "0 * * * *", jitter={"mode": "bounded", "max": "10m"})
    first, again = (walk(jittered, days=100 / 24) for _ in range(2))
    waits = [one.eligible_at - one.rang_at for one in first if one.eligible_at is not None]
    assert len(waits) == 100
    assert all(timedelta(0) <= wait < minutes(10) for wait in waits)
    assert len(set(waits)) > 90
    assert first == again


@pytest.mark.obligation("OCC-1", boundary="failure")
def test_occ_1_two_firings_of_one_cycle_end_the_simulation() -> None:
    """Twice a day under a cycle of a day is a contradiction, and not two runs."""
    with pytest.raises(CycleCollision):
        walk(calendar("rite", "0 2,3 * * *", cycle="civil_date"))


def test_a_duration_that_nobody_knows_is_refused_by_the_name_of_its_schedule() -> None:
    """Said, then declared, then measured; nothing else, since a simulation cannot invent it."""
    document = schedule("rite").document
    with pytest.raises(BadInput, match="home/rite"):
        simulated(document, None, None)
    assert simulated(document, None, None, measured=minutes(3)).takes == minutes(3)
    capacity = {"capability": "io", "estimate": {"duration": "4m", "provenance": "model", "confidence": 0.2}}
    declared = check_document({**document.model_dump(by_alias=True, exclude_none=True), "capacity": capacity})
    assert simulated(declared, None, None, measured=minutes(3)).takes == minutes(4)
    assert simulated(declared, None, minutes(9)).takes == minutes(9)
    assert simulated(declared, None, minutes(9)).estimate is None, "too unsure to be believed"


def test_two_schedules_of_one_name_and_a_stretch_without_length_are_refused() -> None:
    """Each by the name of what is wrong."""
    rite = schedule("rite")
    with pytest.raises(BadInput, match="home/rite is there twice"):
        Simulation(Stage([rite, rite], SINCE, hours(1)))
    with pytest.raises(BadInput, match="to: is not later than from"):
        Simulation(Stage([rite], SINCE, SINCE))


def test_what_waits_and_what_runs_when_the_stretch_ends_is_told() -> None:
    """One runs beyond the end and says until when; one still waits and says for what."""
    [running, waiting] = walk(schedule("a", at=[23.9], units=2), schedule("b", at=[23.95]))
    assert (running.state, running.run_to) == (ADMITTED, hours(24.4))
    assert (waiting.state, waiting.reason, waiting.decided_at) == (PENDING, Reason.CAPACITY, None)
    assert waiting.waited == timedelta(hours=24) - timedelta(hours=23.95)


@pytest.mark.obligation("SEL-6", boundary="ordinary")
@pytest.mark.parametrize("seed", range(12))
def test_sel_6_judging_only_whom_an_event_concerns_answers_as_judging_all_who_wait(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Random houses under load: who is left out of a round would have been told to wait, every time."""
    stage = random_stage(random.Random(seed))
    few = Simulation(stage)
    told = sorted(map(comparable, few.outcomes()), key=lambda one: one.ordinal)
    monkeypatch.setattr(Pool, "to_judge", everybody)
    monkeypatch.setattr("law.simulated_rounds.key_of", lambda *_: None)
    all_ = Simulation(stage)
    assert told == sorted(map(comparable, all_.outcomes()), key=lambda one: one.ordinal)
    assert few.rounds.judged_count <= all_.rounds.judged_count


def comparable(one: Outcome) -> Outcome:
    """An outcome without what it waited for, which is only told to whoever is judged."""
    reason = Reason.CAPACITY if one.state is PENDING else one.reason
    return replace(one, waited_for=(), reason=reason)


def everybody(self: Any, at: datetime, open_now: Sequence[QuietWindow]) -> list[Waiting]:
    """Everybody who waits in a pool."""
    fresh, self.fresh = self.fresh, []
    lines = list(self._waited_in)
    return fresh + [one for line in lines for one in (*line.parked.values(), *line.waiting.values())]


def random_stage(draw: random.Random) -> Stage:
    """A few Schedules of every class and policy that want more than there is."""
    units = draw.randint(1, 4)
    floor = draw.randint(0, units)
    sharing: Sharing = draw.choice(("shared", "shared", "exclusive"))
    supply = [
        Capability("io", "WARM", "open", units, floor, draw.randint(0, units - floor), sharing),
        replace(TWO_UNITS, name="cpu"),
    ]
    schedules = [random_schedule(draw, f"s{place}") for place in range(draw.randint(3, 7))]
    return Stage(
        schedules, SINCE, hours(24), supply, [QuietWindow(hours(2), hours(5)), QuietWindow(hours(12), hours(13), "io")]
    )


def random_schedule(draw: random.Random, name: str) -> Simulated:
    """One of them."""
    service_class = draw.choice(["foreground", "deadline_windowed", "spare_capacity"])
    policy = draw.choice(["forbid", "serialize", "bounded_parallel"])
    tables: dict[str, Any] = {"overlap": {"policy": policy}, "class": {"service_class": service_class}}
    if draw.random() < 0.3:
        tables["class"]["aging"] = "10m"
    if policy == "bounded_parallel":
        tables["overlap"]["max"] = draw.randint(1, 3)
    if service_class == "deadline_windowed":
        tables["window"] = {"allowed_delay": f"{draw.randint(5, 200)}m"}
        if draw.random() < 0.5:
            tables["window"]["finish_within"] = f"{draw.randint(205, 300)}m"
    if draw.random() < 0.2:
        tables["budget"] = {"runs_per_day": draw.randint(1, 20)}
    at = sorted(draw.randint(0, 1439) / 60 for _ in range(draw.randint(1, 20)))
    contract, is_proven = draw.choice([None, YieldContract(minutes(7))]), draw.random() < 0.5
    capability, units = draw.choice(["io", "io", "cpu", None]), draw.randint(1, 3)
    takes = draw.randint(1, 50)
    return schedule(name, service_class, at, takes, units, capability, contract, is_proven, **tables)


@pytest.mark.obligation("SEL-6", boundary="ordinary")
def test_sel_6_the_order_of_the_files_means_nothing() -> None:
    """The same Schedules in another order are the same stage."""
    schedules = [schedule(name, at=[0, 0.25, 0.5], units=2) for name in ("c", "a", "b")]
    assert walk(*schedules) == walk(*reversed(schedules))


def test_a_hundred_schedules_cost_what_rings_and_not_what_waits() -> None:
    """A week of a hundred Schedules at more than capacity: thousands wait at the end, and no firing is judged often."""
    at = [one / 2 for one in range(7 * 48)]
    flood = [schedule(f"s{place:03}", at=at, takes=30, overlap={"policy": "serialize"}) for place in range(100)]
    simulation = Simulation(Stage(flood, SINCE, hours(7 * 24), [replace(TWO_UNITS, units=10)]))
    totals = Counter(one.state for one in simulation.outcomes())
    assert totals.total() == 100 * len(at)
    assert totals[PENDING] > 30_000
    assert simulation.rounds.count <= 3 * len(at)
    assert simulation.rounds.judged_count <= 3 * totals.total()


def test_an_event_rate_is_even_and_ends_where_it_is_asked_to() -> None:
    """Seven an hour: as many in a day as that makes, without drift."""
    rated = replace(schedule("rite", takes=1), events=Evenly(SINCE, 7, timedelta(hours=1)))
    found = walk(rated)
    assert len(found) == 7 * 24
    assert found[7].rang_at == hours(1)


def test_a_meter_spreads_what_is_held_over_the_parts_it_touches() -> None:
    """Half of it held for a quarter of a day: a share of an eighth, in a quarter of the parts."""
    meter = Meter(TWO_UNITS, SINCE, hours(24))
    meter.move(hours(6), 1)
    meter.move(hours(12), 0)
    meter.move(hours(24), 0)
    assert (meter.peak_units, meter.busy_share) == (1, pytest.approx(0.125))
    assert [share for share in meter.shares if share] == pytest.approx([0.5] * (BINS // 4))
