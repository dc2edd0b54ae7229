"""What happened to people elsewhere when they changed a schedule, kind by kind (the numbers are those of the reports)."""

import threading
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import pytest

from law.errors import PlanRefused
from law.identity import DecisionId, RevisionNumber, ScheduleName
from law.partition import FirstCyclePlan
from store import cutover, ledger, registry
from tests.office import NIGHTLY, Office, document


def calendar(cron: str, **changes: Any) -> dict[str, Any]:
    """A Schedule by the clocks of one zone whose firings may be admitted for an hour."""
    trigger = {"kind": "calendar", "cron": cron, "zone": "UTC"}
    return {
        **NIGHTLY,
        "name": "report",
        "cycle": "nominal",
        "trigger": trigger,
        "window": {"allowed_delay": "1h"},
        **changes,
    }


def change(office: Office, schedule: ScheduleName, base: dict[str, Any]) -> RevisionNumber:
    """Register a revision and activate it by the plan that is proposed."""
    revision = registry.register(office.pool, document(base), DecisionId(uuid4())).revision
    plan = cutover.examine(office.pool, schedule, revision, None, DecisionId(uuid4())).plan
    cutover.activate(office.pool, schedule, revision, plan, DecisionId(uuid4()))
    return revision


def rang(office: Office, schedule: ScheduleName) -> list[tuple[str, int]]:
    """(civil time, revision) of every Occurrence, oldest first."""
    lines = ledger.occurrences(office.pool, schedule, limit=10_000)
    return [(f"{line['nominal_at']:%m-%d %H:%M}", line["revision"]) for line in reversed(lines)]


@pytest.mark.obligation("CUT-1", boundary="failure")
@pytest.mark.parametrize(
    ("before", "after", "edited_at", "last_of_the_old", "first_of_the_new"),
    [
        # B06: Thursday night, 11:30 on Fridays becomes 11:00; last week's 11:00 was run at once
        ("30 11 * * 5", "0 11 * * 5", datetime(2026, 1, 8, 23, 49), "01-02 11:30", "01-09 11:00"),
        # B07: moved to later in the day; a thousand mails went out for the past
        ("0 6 * * *", "0 22 * * *", datetime(2026, 1, 8, 12, 0), "01-08 06:00", "01-08 22:00"),
        # B17: 05:40 becomes 05:50, edited after both; yesterday's 05:50 was created
        ("40 5 * * *", "50 5 * * *", datetime(2026, 1, 8, 7, 14), "01-08 05:40", "01-09 05:50"),
        # and edited between the two: the day is rung once, by the old one
        ("40 5 * * *", "50 5 * * *", datetime(2026, 1, 8, 5, 45), "01-08 05:40", "01-08 05:50"),
    ],
    ids=["earlier on the same day", "later on the same day", "minutes apart, after both", "minutes apart, in between"],
)
def test_an_edit_rings_for_the_future_alone(
    office: Office, clock, before: str, after: str, edited_at: datetime, last_of_the_old: str, first_of_the_new: str
) -> None:
    """B06, B07, B17: nothing that lies behind the edit is rung under the new expression, and what was rung is not rung again."""
    edited_at = edited_at.replace(tzinfo=UTC)
    clock.set(edited_at - timedelta(days=8))
    schedule = office.register(document(calendar(before)))
    for hours in range(8 * 24):
        clock.set(edited_at - timedelta(days=8) + timedelta(hours=hours))
        office.materialize(schedule)
    clock.set(edited_at)
    office.materialize(schedule)
    assert change(office, schedule, calendar(after)) == 2
    office.materialize(schedule)
    assert {revision for _, revision in rang(office, schedule)} == {1}
    assert rang(office, schedule)[-1] == (last_of_the_old, 1)
    for hours in range(48):
        clock.set(edited_at + timedelta(hours=hours))
        office.materialize(schedule)
    assert next(one for one in rang(office, schedule) if one[1] == 2) == (first_of_the_new, 2)
    assert [one for one in rang(office, schedule) if one[1] == 1][-1] == (last_of_the_old, 1)


@pytest.mark.obligation("OCC-2", boundary="failure")
@pytest.mark.parametrize("times", [30])
def test_a_minutely_schedule_that_is_redeployed_often_rings_each_minute_once(office: Office, clock, times: int) -> None:
    """B18, B66: applied and activated again and again, in the middle of a look: each minute has one Occurrence, its identity
    the Schedule's and not the deployment's."""
    start = datetime(2026, 1, 8, 12, 0, tzinfo=UTC)
    clock.set(start)
    schedule = office.register(document(calendar("* * * * *")))
    for number in range(1, times + 1):
        clock.set(start + timedelta(seconds=40 * number))
        again = calendar("* * * * *", window={"allowed_delay": f"{60 + number}m"})
        looks = [threading.Thread(target=office.materialize, args=(schedule,)) for _ in range(2)]
        for look in looks:
            look.start()
        change(office, schedule, again)
        for look in looks:
            look.join()
    end = start + timedelta(seconds=40 * times)
    clock.set(end)
    office.materialize(schedule)
    minutes = [
        f"{start + timedelta(minutes=number):%m-%d %H:%M}"
        for number in range(int((end - start).total_seconds()) // 60 + 1)
    ]
    assert [minute for minute, _ in rang(office, schedule)] == minutes
    revisions = [revision for _, revision in rang(office, schedule)]
    assert revisions == sorted(revisions)
    assert len(set(revisions)) > times // 2


@pytest.mark.obligation("OCC-2", boundary="ordinary")
def test_what_waited_under_the_old_revision_is_neither_lost_nor_rung_beside_the_new(office: Office, clock) -> None:
    """B19, B65: late Occurrences were deleted without a trace, or run next to new ones. Here they keep their revision, are
    decided under its own window, and the new revision has none at their time."""
    start = datetime(2026, 1, 8, 12, 0, tzinfo=UTC)
    clock.set(start)
    base = calendar("* * * * *", overlap={"policy": "serialize"}, window={"allowed_delay": "90s"})
    schedule = office.register(document(base))
    for minute in (0, 1, 2):
        clock.set(start + timedelta(minutes=minute))
        office.ring(schedule)
    assert [state for _, state, _ in office.states(schedule)] == ["admitted", "pending", "pending"]
    change(office, schedule, {**base, "window": {"allowed_delay": "10s"}})
    clock.set(start + timedelta(minutes=4))
    office.ring(schedule)
    lines = {line["key"][19:24]: (line["revision"], line["state"], line["reason"])
             for line in ledger.occurrences(office.pool, schedule)}  # fmt: skip
    assert lines["12:01"] == (1, "missed", "latest_start_passed")
    assert lines["12:02"] == (1, "missed", "latest_start_passed")
    assert lines["12:03"] == (2, "missed", "latest_start_passed")
    assert lines["12:04"] == (2, "pending", "overlap")
    assert len(lines) == 5


@pytest.mark.obligation("CUT-3", boundary="failure")
def test_an_edit_that_would_ring_for_the_past_is_refused_and_not_done_quietly(office: Office, clock) -> None:
    """B06, B07: asked for outright, a cut behind the present is refused by the firings that it would bring back."""
    clock.set(datetime(2026, 1, 8, 12, 0, tzinfo=UTC))
    schedule = office.register(document(calendar("30 11 * * *")))
    revision = registry.register(office.pool, document(calendar("0 11 * * *")), DecisionId(uuid4())).revision
    with pytest.raises(PlanRefused, match=r"retroactive.*2:nominal:2026-01-08T11:00:00\[UTC\]#0"):
        cutover.activate(
            office.pool, schedule, revision, FirstCyclePlan(first_cycle="2026-01-08T00:00"), DecisionId(uuid4())
        )
    assert rang(office, schedule) == []
