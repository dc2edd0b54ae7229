"""A bounded catch-up: age, count, concurrency and an aggregate budget, over one outage and over many (CAL-8)."""

from collections import Counter
from datetime import timedelta
from typing import Any

import pytest

from law.identity import ScheduleName
from store import ledger, relay
from tests.office import NIGHTLY, Office, document

MINUTELY: dict[str, Any] = {
    **NIGHTLY, "name": "minutely", "cycle": "nominal", "window": {"allowed_delay": "12h"},
    "trigger": {"kind": "calendar", "cron": "* * * * *", "zone": "UTC"},
    "overlap": {"policy": "bounded_parallel", "max": 50},
}  # fmt: skip
HOURS = timedelta(hours=1)


def bounded(**terms: Any) -> Any:
    return document(MINUTELY, catch_up={"mode": "bounded", "max_age": "2h", "max_count": 5, **terms})


def late(office: Office, schedule: ScheduleName) -> Counter[tuple[str, str | None]]:
    """(state, reason) of everything that was found late."""
    lines = office.row(
        "SELECT jsonb_agg(jsonb_build_array(state, coalesce(reason, waiting_reason))) FROM nightbell.occurrence WHERE found_late"
    )
    assert lines is not None
    return Counter((state, reason) for state, reason in lines[0])


@pytest.mark.obligation("CAL-8", boundary="ordinary")
def test_cal_8_caught_up_runs_go_one_after_the_other_unless_more_are_pinned(office: Office, evening, clock) -> None:
    """Five of a long outage are taken; one runs, four wait for it, and each settled Run lets the next in."""
    schedule = office.register(bounded())
    clock.advance(5 * HOURS)
    office.ring(schedule)
    found = late(office, schedule)
    assert (found["admitted", "admitted"], found["pending", "catch_up"]) == (1, 4)
    assert found["skipped", "over_count"] > 0
    for run in ledger.runs(office.pool, schedule, ("queued",)):
        if run["key"] >= "nominal:2026-01-02T00:59":
            office.done(run["run_id"])  # rang in time, beside the others
    for waiting in (3, 2, 1, 0):
        [run] = ledger.runs(office.pool, schedule, ("queued",))
        assert relay.look(office.pool, 3, 3, 3).overdue == ()
        office.done(run["run_id"])
        assert relay.look(office.pool, 3, 3, 3).overdue == (schedule,)
        office.decide(schedule)
        assert late(office, schedule)["pending", "catch_up"] == waiting
    assert late(office, schedule)["admitted", "admitted"] == 5


@pytest.mark.obligation("CAL-8", boundary="ordinary")
def test_cal_8_two_at_once_where_two_are_pinned_and_the_newest_bell_is_not_held_up(
    office: Office, evening, clock
) -> None:
    """The ceiling is for what was missed; what rings in time is admitted beside it."""
    schedule = office.register(bounded(max_concurrency=2))
    clock.advance(5 * HOURS)
    office.ring(schedule)
    assert late(office, schedule)["admitted", "admitted"] == 2
    states = {line["key"]: line["state"] for line in ledger.occurrences(office.pool, schedule, limit=3)}
    assert states["nominal:2026-01-02T01:00:00[UTC]#0"] == "admitted"


@pytest.mark.obligation("CAL-8", boundary="failure")
def test_cal_8_many_outages_spend_one_budget(office: Office, evening, clock) -> None:
    """Six runs within the horizon, however many outages there are: the seventh missed firing is let go with the reason."""
    schedule = office.register(bounded(max_concurrency=50, budget=6))
    for _ in range(4):
        clock.advance(2 * HOURS)
        office.ring(schedule)
        for run in ledger.runs(office.pool, schedule, ("queued",)):
            office.done(run["run_id"])
    found = late(office, schedule)
    assert found["admitted", "admitted"] == 6
    assert found["skipped", "catch_up_spent"] == 14
    clock.advance(25 * HOURS)
    office.ring(schedule)
    assert late(office, schedule)["admitted", "admitted"] == 11


@pytest.mark.obligation("CAL-8", boundary="restart")
def test_cal_8_the_budget_is_counted_from_the_rows(office: Office, evening, clock) -> None:
    """Asked by a process that has just begun, in rounds of its own: the same five, and no sixth."""
    schedule = office.register(bounded(max_concurrency=50))
    clock.advance(2 * HOURS)
    office.materialize(schedule)
    office.pool.close()
    from store.connection import open_pool

    again = Office(open_pool(office.database_url), office.database_url)
    again.decide(schedule)
    again.decide(schedule)
    again.pool.close()
    assert late(office, schedule)["admitted", "admitted"] == 5
