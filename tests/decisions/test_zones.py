"""Newer zone data is installed: what rings goes on ringing by what was retained, and the operator sees what would differ."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import uuid4

import pytest

from law.identity import DecisionId
from law.zone_rules import ZoneRules, rules_from
from store import cutover, ledger, pinned, registry, zones
from tests.office import NIGHTLY, Office, document

KEPT = Path(__file__).parents[1] / "rules" / "cases" / "zones"
AMMAN = {**NIGHTLY, "trigger": {"kind": "calendar", "cron": "0 2 * * *", "zone": "Asia/Amman"}}
CHANGE = datetime(2022, 10, 28, tzinfo=UTC)


def amman(release: str) -> ZoneRules:
    return rules_from("Asia/Amman", release, (KEPT / release / "Asia__Amman").read_bytes())


@pytest.mark.obligation("CAL-4", boundary="ordinary")
@pytest.mark.obligation("CAL-4", boundary="restart")
def test_cal_4_a_newer_release_changes_nothing_until_a_revision_pins_it(
    office: Office, clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """B60: dates are named, a draft is registered, the cutover moves no night and doubles none; until then 02:00 is 00:00Z."""
    clock.set(CHANGE - timedelta(days=17))
    monkeypatch.setattr(registry, "installed_rules", lambda _: amman("2022d"))
    schedule = office.register(document(AMMAN))
    monkeypatch.setattr(registry, "installed_rules", lambda _: amman("2022e"))
    [found] = zones.outdated(office.pool, lambda _: amman("2022e"))
    assert (found.schedule, found.revision, found.retained_release, found.installed_release) == (
        schedule,
        1,
        "2022d",
        "2022e",
    )
    assert found.differences[0].civil == datetime(2022, 10, 28, 2)
    for nights in (1, 2):
        clock.set(CHANGE + timedelta(days=nights, hours=0))
        office.ring(schedule)
    assert [line["nominal_at"].hour for line in ledger.occurrences(office.pool, schedule)][:2] == [0, 0]
    drafted = zones.draft(office.pool, schedule)
    assert (drafted.revision, drafted.created, drafted.active) == (2, True, False)
    assert zones.draft(office.pool, schedule).created is False
    plan = cutover.examine(office.pool, schedule, drafted.revision, None, DecisionId(uuid4())).plan
    cutover.activate(office.pool, schedule, drafted.revision, plan, DecisionId(uuid4()))
    for nights in (2, 3, 4):
        clock.set(CHANGE + timedelta(days=nights, hours=0))
        office.ring(schedule)
    lines = ledger.occurrences(office.pool, schedule)
    by_key = {
        line["key"].removeprefix("civil_date:2022-10-"): (line["revision"], line["nominal_at"].hour) for line in lines
    }
    assert {day: by_key[day] for day in ("29", "30", "31")} == {"29": (1, 0), "30": (1, 0), "31": (2, 23)}
    assert len(by_key) == len(lines)
    assert zones.outdated(office.pool, lambda _: amman("2022e")) == []


def test_rules_that_are_gone_are_named_and_stop_nobody_elses_report(office: Office, evening) -> None:
    """A Schedule whose rules cannot be read is in the report with the reason, beside the others."""
    office.register(document(AMMAN))
    office.register(document(NIGHTLY))
    office.execute("ALTER TABLE nightbell.zone_rules DISABLE TRIGGER USER",
                   "DELETE FROM nightbell.zone_rules WHERE zone = 'Asia/Amman'")  # fmt: skip
    pinned.forget()
    [found] = zones.outdated(office.pool)
    assert (found.zone, found.differences) == ("Asia/Amman", ())
    assert "gone" in found.problem
