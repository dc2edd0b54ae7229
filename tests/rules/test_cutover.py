"""Changing a revision: whose is each firing around the cut, and what is refused."""

from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from law.cutover import Verdict, judge, propose, survey
from law.errors import BadInput
from law.firings import SHIFT_MAX
from law.identity import RevisionNumber, SourceKey
from law.partition import ENTRIES_MAX, Line, check_plan, position_of, read_cycle
from law.triggers import CalendarTrigger
from store.zone_rules import installed_rules

ONE, TWO = RevisionNumber(1), RevisionNumber(2)
BRATISLAVA, UTC_ZONE = "Europe/Bratislava", "UTC"
JANUARY = datetime(2026, 1, 1, 20, tzinfo=UTC)


def line(
    revision: RevisionNumber,
    cron: str,
    zone: str,
    cycle: Any = "civil_date",
    cursor_at: datetime = JANUARY,
    **changes: Any,
) -> Line:
    """A revision's line from its cursor on."""
    trigger = CalendarTrigger(kind="calendar", cron=cron, zone=zone, **changes)
    return Line(revision, cycle, cursor_at, trigger, installed_rules(zone))


def verdict(
    plan: dict[str, Any], old: Line, new: Line, at: datetime, assigned: dict[str, int] | None = None
) -> Verdict:
    """Judge a plan as a person would write it."""
    known = {SourceKey(key): RevisionNumber(owner) for key, owner in (assigned or {}).items()}
    return judge(survey(check_plan(plan), [old], new, at), known)


def codes(found: Verdict) -> set[str]:
    return {problem.code for problem in found.problems}


def rung(part: Line, start: datetime, end: datetime | None, excluded: set[str], past: datetime) -> list[str]:
    """What one line rings under a partition, up to `past`."""
    found = part.candidates(start, min(end or past, past))
    return [firing.key for firing in found if firing.key not in excluded]


OLD, NEW = line(ONE, "0 2 * * *", BRATISLAVA), line(TWO, "0 2 * * *", UTC_ZONE)
CUT_AT = datetime(2026, 1, 2, 1, 30, tzinfo=UTC)


@pytest.mark.obligation("CUT-5", boundary="ordinary")
@pytest.mark.obligation("CUT-3", boundary="ordinary")
def test_cut_5_the_worked_example_is_what_is_proposed() -> None:
    """Both January 2 candidates are one firing of revision 1, and revision 2 begins with the January 3 cycle."""
    plan = propose([OLD], NEW, CUT_AT)
    assert plan.model_dump() == {"form": "first_cycle", "first_cycle": "civil_date:2026-01-03"}
    found = verdict(plan.model_dump(), OLD, NEW, CUT_AT, {"civil_date:2026-01-02": 1})
    assert found.complete
    shown = {(one.revision, one.firing.key): (one.disposition, one.owner) for one in found.candidates}
    assert shown[TWO, "civil_date:2026-01-02"] == ("same_as", ONE)
    assert shown[TWO, "civil_date:2026-01-03"] == ("distinct", TWO)
    assert shown[ONE, "civil_date:2026-01-02"] == ("distinct", ONE)
    assert found.partition.ends == {ONE: datetime(2026, 1, 2, 23, tzinfo=UTC)}, "where January 3 begins in Bratislava"
    assert found.partition.first_at == datetime(2026, 1, 3, 2, tzinfo=UTC)
    assert found.partition.exclusions == ()


@pytest.mark.obligation("CUT-3", boundary="failure")
@pytest.mark.parametrize(
    ("plan", "assigned", "refusals"),
    [
        ({"form": "first_cycle", "first_cycle": "2026-01-02"}, {"civil_date:2026-01-02": 1}, {"would_move"}),
        ({"form": "first_cycle", "first_cycle": "2026-01-01"}, {}, {"retroactive"}),
        ({"form": "explicit", "old_through": "civil_date:2026-01-02", "new_from": "civil_date:2026-01-03"}, {}, {"missing"}),
        ({"form": "explicit", "old_through": "civil_date:2026-01-02", "new_from": "civil_date:1999-01-03"}, {},
         {"not_found", "missing"}),
    ],
)  # fmt: skip
def test_cut_3_a_plan_that_is_not_whole_is_refused_with_what_offends(
    plan: dict[str, Any], assigned: dict[str, int], refusals: set[str]
) -> None:
    """Refused, and the candidates are named; a plan that pins nothing pins nothing."""
    found = verdict(plan, OLD, NEW, CUT_AT, assigned)
    assert not found.complete
    assert refusals <= codes(found)
    assert all(problem.candidates for problem in found.problems if problem.code != "not_found")
    assert found.partition.first_at is None


@pytest.mark.obligation("CUT-2", boundary="failure")
def test_cut_2_lines_of_two_zones_share_no_nominal_cycle() -> None:
    """Where each civil time is its own cycle, two zones have no common order: only an explicit plan divides them."""
    old, new = (line(one.revision, "0 2 * * *", one.trigger.zone, "nominal") for one in (OLD, NEW) if one.trigger)
    assert codes(verdict({"form": "first_cycle", "first_cycle": "2026-01-03T02:00"}, old, new, CUT_AT)) == {
        "no_shared_cycle"
    }
    assert propose([old], new, CUT_AT).form == "explicit"


@pytest.mark.obligation("CUT-2", boundary="ordinary")
@pytest.mark.obligation("CUT-3", boundary="ordinary")
def test_cut_2_an_explicit_plan_says_same_distinct_or_skipped_of_every_candidate() -> None:
    """A nightly line in one zone becomes an hourly one in another: what is proposed is whole, and can be rewritten by hand."""
    old = line(ONE, "0 2 * * *", BRATISLAVA, "nominal")
    new = line(TWO, "0 * * * *", UTC_ZONE, "nominal", CUT_AT)
    plan = propose([old], new, CUT_AT).model_dump()
    found = verdict(plan, old, new, CUT_AT)
    assert found.complete, found.problems
    assert plan["old_through"] == f"nominal:2026-01-02T02:00:00[{BRATISLAVA}]#0"
    assert plan["new_from"] == "nominal:2026-01-02T02:00:00[UTC]#0"
    dispositions = {(entry["revision"], entry["key"]): entry["disposition"] for entry in plan["entries"]}
    assert dispositions[2, "nominal:2026-01-01T20:00:00[UTC]#0"] == "skip"
    same = next(entry for entry in plan["entries"] if entry["key"] == "nominal:2026-01-02T01:00:00[UTC]#0")
    same |= {"disposition": "same_as", "owner": 1, "same_as": {"revision": 1, "key": plan["old_through"]}}
    assert verdict(plan, old, new, CUT_AT).complete


@pytest.mark.obligation("CUT-3", boundary="failure")
@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"owner": 2}, "owner_differs"),
        ({"disposition": "same_as", "owner": 2, "same_as": {"revision": 2, "key": "nowhere"}}, "no_such_firing"),
        ({"disposition": "skip"}, "end_not_distinct"),
        ({"key": "elsewhere"}, "unknown"),
        (None, "ambiguous"),
    ],
)
def test_cut_3_each_entry_is_held_to_what_it_says(change: dict[str, Any] | None, code: str) -> None:
    """An owner that is not the firing's, a name of nothing, an end that does not ring, a stranger, a double."""
    old, new = line(ONE, "0 2 * * *", BRATISLAVA, "nominal"), line(TWO, "0 3 * * *", BRATISLAVA, "nominal")
    plan = {"form": "explicit", "old_through": f"nominal:2026-01-02T02:00:00[{BRATISLAVA}]#0",
            "new_from": f"nominal:2026-01-03T03:00:00[{BRATISLAVA}]#0", "entries": [
                {"revision": 1, "key": f"nominal:2026-01-02T02:00:00[{BRATISLAVA}]#0", "disposition": "distinct", "owner": 1},
                {"revision": 1, "key": f"nominal:2026-01-03T02:00:00[{BRATISLAVA}]#0", "disposition": "skip", "owner": 1},
                {"revision": 2, "key": f"nominal:2026-01-02T03:00:00[{BRATISLAVA}]#0", "disposition": "skip", "owner": 2},
                {"revision": 2, "key": f"nominal:2026-01-03T03:00:00[{BRATISLAVA}]#0", "disposition": "distinct", "owner": 2},
            ]}  # fmt: skip
    assert verdict(plan, old, new, CUT_AT).complete
    if change is None:
        plan["entries"].append(plan["entries"][1])
    else:
        plan["entries"][0] = {**plan["entries"][0], **change}
    assert code in codes(verdict(plan, old, new, CUT_AT))


@pytest.mark.obligation("CUT-3", boundary="failure")
def test_cut_3_a_new_firing_before_its_own_beginning_or_an_old_one_past_its_end_is_refused() -> None:
    """The two ends of an explicit plan mean what they say."""
    old, new = line(ONE, "0 2 * * *", BRATISLAVA, "nominal"), line(TWO, "0 3 * * *", BRATISLAVA, "nominal")
    keys = {(revision, day, hour): f"nominal:2026-01-0{day}T0{hour}:00:00[{BRATISLAVA}]#0"
            for revision, hour in ((1, 2), (2, 3)) for day in (2, 3)}  # fmt: skip
    entries = [
        {"revision": revision, "key": key, "disposition": "distinct", "owner": revision}
        for (revision, _, _), key in keys.items()
    ]
    plan = {"form": "explicit", "old_through": keys[1, 2, 2], "new_from": keys[2, 3, 3], "entries": entries}
    assert codes(verdict(plan, old, new, CUT_AT)) == {"beyond_old_through", "before_new_from"}


@pytest.mark.obligation("CUT-3", boundary="failure")
@pytest.mark.obligation("CUT-3", boundary="failure")
@pytest.mark.parametrize("other", ["skip", "distinct"])
def test_cut_3_two_candidates_of_one_key_are_one_firing(other: str) -> None:
    """Revision 1 has the cycle; revision 2's candidate of the same key can be nothing but the same: letting it go would let go
    of revision 1's."""
    old, new = line(ONE, "0 2 * * *", BRATISLAVA), line(TWO, "30 0 * * *", UTC_ZONE)
    key, next_key = "civil_date:2026-01-02", "civil_date:2026-01-03"
    entries = [
        {"revision": 1, "key": key, "disposition": "distinct", "owner": 1},
        {"revision": 2, "key": key, "disposition": other, "owner": 2},
        {"revision": 2, "key": next_key, "disposition": "distinct", "owner": 2},
    ]
    plan = {"form": "explicit", "old_through": key, "new_from": next_key, "entries": entries}
    assert "overlapping" in codes(verdict(plan, old, new, JANUARY))
    entries[1] |= {"disposition": "same_as", "owner": 1, "same_as": {"revision": 1, "key": key}}
    assert "overlapping" not in codes(verdict(plan, old, new, JANUARY))


@pytest.mark.obligation("CUT-3", boundary="failure")
def test_cut_3_a_plan_that_does_not_say_from_where_the_new_line_rings_is_refused() -> None:
    """An empty plan between two calendars, and one that only lets something go: the new revision rings on, so it must say from
    where; and what has come due since must be named."""
    at = datetime(2026, 1, 5, 12, tzinfo=UTC)
    found = verdict({"form": "explicit"}, OLD, NEW, at)
    assert codes(found) == {"missing"}
    named = {one.key for problem in found.problems for one in problem.candidates}
    assert {"civil_date:2026-01-02", "civil_date:2026-01-05", "civil_date:2026-01-06"} <= named


def test_what_is_proposed_in_the_repeated_hour_can_be_activated() -> None:
    """At 02:25 for the second time, under the policy that rings at the first: the proposal is whole."""
    begin, at = datetime(2026, 10, 24, 20, tzinfo=UTC), datetime(2026, 10, 25, 1, 25, tzinfo=UTC)
    for fold in ("earlier", "later", "both"):
        old = line(ONE, "*/10 * * * *", BRATISLAVA, "nominal", begin, fold=fold)
        new = line(TWO, "*/15 * * * *", BRATISLAVA, "nominal", begin, fold=fold)
        plan = propose([old], new, at)
        assert verdict(plan.model_dump(), old, new, at).complete, fold


def test_cut_3_more_open_candidates_than_a_plan_can_name_are_refused_as_a_number() -> None:
    """Every second for a week: the old line is to catch up first."""
    old = line(ONE, "* * * * * *", UTC_ZONE, "nominal")
    new = line(TWO, "0 0 * * *", UTC_ZONE, "nominal")
    plan = {"form": "explicit", "new_from": "nominal:2026-01-08T00:00:00[UTC]#0"}
    found = verdict(plan, old, new, CUT_AT)
    assert codes(found) == {"too_many"}
    assert str(ENTRIES_MAX) in found.problems[0].sentence


@pytest.mark.parametrize(
    ("cycle", "text"),
    [("civil_date", "2026-13-01"), ("civil_date", "tomorrow"), ("iso_week", "2026-W54"), ("civil_month", "2026-01-01"),
     ("nominal", "2026-01-01"), ("civil_hour", "2026-01-01T25")],
)  # fmt: skip
def test_a_cycle_that_cannot_be_read_is_named(cycle: Any, text: str) -> None:
    """Whatever is no cycle of that kind is refused by its field."""
    with pytest.raises(BadInput, match="first_cycle"):
        read_cycle(cycle, text)


@pytest.mark.parametrize(
    ("plan", "field"),
    [({"form": "guess"}, "plan"), ({"form": "first_cycle"}, "plan.first_cycle"), ({}, "plan"),
     ({"form": "explicit", "entries": [{"revision": 1, "key": "x", "disposition": "same_as", "owner": 1}]}, "plan.entries.0")],
)  # fmt: skip
def test_a_plan_that_cannot_be_read_names_its_field(plan: dict[str, Any], field: str) -> None:
    """A plan is a contract: what is not in it is refused by name."""
    with pytest.raises(BadInput) as refused:
        check_plan(plan)
    assert str(refused.value.fields["field"]).startswith(field)


ZONES = [
    BRATISLAVA,
    UTC_ZONE,
    "America/Havana",
    "Australia/Lord_Howe",
    "Pacific/Apia",
    "Africa/Casablanca",
    "America/St_Johns",
]
CRONS = {
    "civil_date": ["0 2 * * *", "30 0 * * *", "0 23 * * *", "15 12 * * 1", "0 0 1 * *", "59 23 * * *", "30 1 * * *"],
    "nominal": ["0 2 * * *", "*/30 * * * *", "15 1,2,3 * * *", "0 0 * * 0"],
    "civil_hour": ["0 * * * *", "30 2 * * *", "59 0 * * *"],
    "civil_month": ["0 2 1 * *", "30 2 29 * *", "0 0 15 * *"],
}


@pytest.mark.obligation("CUT-1", boundary="ordinary")
@given(data=st.data())
@settings(max_examples=150, deadline=None)
def test_cut_1_the_partition_is_disjoint_and_complete(data: st.DataObject) -> None:
    """Around any change of the clocks, each cycle before the cut is rung by the old line alone, each from it on by the new."""
    cycle = data.draw(st.sampled_from(sorted(CRONS)))
    begin = data.draw(st.sampled_from([datetime(2026, 3, 28, tzinfo=UTC), datetime(2026, 10, 24, tzinfo=UTC),
                                       datetime(2011, 12, 28, tzinfo=UTC), datetime(2026, 4, 4, tzinfo=UTC)]))  # fmt: skip
    cursor_at = begin + timedelta(minutes=data.draw(st.integers(0, 5_000)))
    at = cursor_at + timedelta(minutes=data.draw(st.integers(0, 600)))
    old_zone = data.draw(st.sampled_from(ZONES))
    new_zone = old_zone if cycle == "nominal" else data.draw(st.sampled_from(ZONES))
    policies = {"fold": data.draw(st.sampled_from(["earlier", "later", "both"] if cycle == "nominal" else ["earlier", "later"])),
                "gap": data.draw(st.sampled_from(["skip", "advance", "fail"]))}  # fmt: skip
    old = line(ONE, data.draw(st.sampled_from(CRONS[cycle])), old_zone, cycle, cursor_at, **policies)
    new = line(TWO, data.draw(st.sampled_from(CRONS[cycle])), new_zone, cycle, cursor_at, **policies)
    plan = propose([old], new, at)
    if plan.form == "explicit":
        return
    known = {firing.key: ONE for firing in old.candidates(begin - SHIFT_MAX * 30, cursor_at)}
    found = judge(survey(plan, [old], new, at), known)
    assert found.complete, found.problems
    first = read_cycle(cycle, plan.first_cycle)
    past = at + timedelta(days=70)
    excluded = {RevisionNumber(one.revision): set[str]() for one in (old, new)}
    for one in found.partition.exclusions:
        excluded[one.revision].add(one.key)
    by_old = rung(old, cursor_at, found.partition.ends[ONE], excluded[ONE], past)
    by_new = rung(new, found.partition.first_at or past, None, excluded[TWO], past)
    assert by_old == [one.key for one in old.candidates(cursor_at, past) if position_of(cycle, one) < first]
    assert by_new == [one.key for one in new.candidates(cursor_at, past) if position_of(cycle, one) >= first]
    assert not set(by_old) & set(by_new)
    assert all(one.at > at for one in islice(new.candidates(found.partition.first_at or past, past), 1))
