"""Temporal Schedules are carried over exactly or not at all: what a real server says it would do next is the oracle."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from heapq import merge
from itertools import chain, islice, product
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from law.errors import BadInput
from law.firings import LAST_INSTANT, firings
from law.triggers import CalendarTrigger
from nightbell.importing.drafts import Terms, chosen_pattern, drafted
from nightbell.importing.entries import Entry, Found
from nightbell.importing.source import read_json
from nightbell.importing.temporal_schedules import read_schedules
from patterns.catalogue import installed
from store.zone_rules import installed_rules

A_DAY = timedelta(days=1)
TERMS = Terms("home", "home", chosen_pattern("nightly_rite", "", installed()))
CASES = json.loads((Path(__file__).parent / "cases" / "temporal_schedules.json").read_text(encoding="utf-8"))
DESCRIBED: dict[str, Any] = CASES["schedules"]
"""Made with a real server; its own next ten actions stand beside each Schedule."""

AS_CREATED: dict[str, dict[str, Any]] = {
    "weekdays": {
        "cronString": ["30 1 * * 1-5"],
        "timezoneName": "America/New_York",
        "startTime": "2027-03-01T05:00:00Z",
        "endTime": "2027-03-10T06:30:00Z",
    },
    "first-mondays": {
        "calendar": [{"dayOfMonth": "1-7", "dayOfWeek": "Mon", "hour": "3,15", "minute": "*/20", "year": "2027-2028"}]
    },
    "union": {
        "calendar": [{"hour": "*", "minute": "7"}],
        "interval": [{"interval": "90m", "phase": "5m"}, {"interval": "15m"}],
    },
    "friday-13": {"cron_string": ["0 12 13 * 5"]},
    "twenty-days": {"cronString": ["@every 480h/48h"]},
    "weekly": {"cronString": ["@weekly", "@monthly"]},
    "zone-in-cron": {"cronString": ["CRON_TZ=Europe/Bratislava 15 2 * * * # note"]},
    "seconds": {"cronString": ["*/20 0-30/10 6 * JAN-MAR MON,WED *"], "timezone": "Asia/Kolkata"},
    "six-fields": {"cronString": ["0 6 1 */3 * 2027-2029"]},
    "odd-interval": {"intervals": [{"every": "7h0m0s", "offset": "1h0m0s"}], "start_at": "2027-01-01T00:00:00+00:00"},
    "seven-seconds": {"interval": [{"interval": "7s"}]},
    "late-night": {"interval": [{"interval": "86400s", "phase": "61s"}]},
    "step-from": {"cronString": ["5/20 3 * * *"]},
    "sunday": {"cronString": ["0 0 * * 7"]},
    "terminated": {"cronString": ["0 0 29 2 *"]},
}
"""What some of them were created from, before the server compiled it into calendars and intervals."""


def read(document: Any, name: str = "") -> Found:
    return read_schedules(document, name, "from-file", 10)


def one(spec: dict[str, Any] | None = None, **rest: Any) -> Entry:
    """The one entry of a Schedule that is carried over."""
    found = read({"schedule": {"spec": spec or {"cronString": ["0 1 * * *"]}, **rest}})
    assert not found.refused
    [entry] = found.entries
    return entry


def refusal(spec: dict[str, Any]) -> str:
    """Why nothing of a spec is carried over."""
    found = read({"spec": spec})
    assert not found.entries
    return " ".join(refused.reason for refused in found.refused)


def lost(entry: Entry) -> dict[str, str]:
    return {loss.what: loss.sentence for loss in entry.losses}


def instants(text: str) -> datetime:
    """A server's instant, whose fraction is finer than ours."""
    return datetime.fromisoformat(text[:19] + "+00:00")


def next_of(found: Found, start: datetime, count: int) -> list[datetime]:
    """The next distinct instants of everything that was carried over, together."""
    lines = []
    for entry in found.entries:
        trigger = CalendarTrigger.model_validate(entry.tables["trigger"])
        rules = installed_rules(trigger.zone)
        rung = firings(trigger, "nominal", rules, start, LAST_INSTANT)
        lines.append(each.nominal_at for each in rung if each.nominal_at is not None)
    return list(islice(dict.fromkeys(islice(merge(*lines), 10 * count)), count))


@pytest.mark.parametrize("name", DESCRIBED)
def test_what_was_described_rings_when_the_server_said(name: str) -> None:
    """The server's own next actions, less the jitter that it added; also after the last of them nothing else comes."""
    case = DESCRIBED[name]
    found = read(case)
    assert not found.refused
    expected = [instants(at) for at in case["info"]["futureActionTimes"]]
    rung = next_of(found, instants(case["info"]["createTime"]) + timedelta(seconds=1), 10)
    assert len(rung) == len(expected)
    jitter = timedelta(seconds=30 if case["schedule"]["spec"].get("jitter") == "30s" else 0)
    assert all(nominal <= at <= nominal + jitter for nominal, at in zip(rung, expected, strict=True))


@pytest.mark.parametrize("name", AS_CREATED)
def test_what_it_was_created_from_rings_the_same(name: str) -> None:
    """Cron strings with years and seconds, plain calendars, intervals; in the spellings of the protocol and the SDKs."""
    start = datetime(2026, 12, 1, tzinfo=UTC)
    created = read({"scheduleId": name, "spec": AS_CREATED[name]})
    assert not created.refused
    assert next_of(created, start, 20) == next_of(read(DESCRIBED[name]), start, 20)


@pytest.mark.obligation("CAL-3", boundary="ordinary")
def test_cal_3_changes_of_the_clocks_are_temporals() -> None:
    """As the server was seen to do: skipped where it does not come, twice where it comes twice."""
    trigger = one().tables["trigger"]
    assert (trigger["gap"], trigger["fold"]) == ("skip", "both")


def test_the_forms_are_the_most_readable_that_are_exact() -> None:
    """Cron where cron says it; a rule where both day fields count, or an interval does not divide the day."""
    form = {
        name: [entry.tables["trigger"].get("cron") or entry.tables["trigger"]["rrule"] for entry in read(case).entries]
        for name, case in DESCRIBED.items()
    }
    assert form["weekdays"] == ["30 1 * * 1-5"]
    assert form["union"] == ["7 * * * *", "FREQ=MINUTELY;INTERVAL=90", "*/15 * * * *"]
    assert form["friday-13"] == ["FREQ=DAILY;BYMONTHDAY=13;BYDAY=FR;BYHOUR=12;BYMINUTE=0;BYSECOND=0"]
    assert form["twenty-days"] == ["FREQ=DAILY;INTERVAL=20"]
    assert form["late-night"] == ["1 1 0 * * *"]
    assert form["seconds"] == ["*/20 0-30/10 6 * 1-3 1,3"]
    assert form["seven-seconds"] == ["FREQ=SECONDLY;INTERVAL=7"]


def test_start_and_end_are_bounds_on_the_zones_clocks() -> None:
    """Temporal's end is included, a trigger's is not; years are bounds too, and the narrower counts."""
    trigger = read(DESCRIBED["weekdays"]).entries[0].tables["trigger"]
    assert (trigger["from"], trigger["until"]) == ("2027-03-01T00:00:00", "2027-03-10T01:30:01")
    mondays = read(DESCRIBED["first-mondays"]).entries[0].tables["trigger"]
    assert (mondays["from"], mondays["until"]) == ("2027-01-01T00:00:00", "2029-01-01T00:00:00")
    ambiguous = one(
        {"cronString": ["0 1 * * *"], "timezoneName": "America/New_York", "endTime": "2027-11-07T06:10:00Z"}
    )
    assert "both readings" in lost(ambiguous)["endTime to the hour"]


@pytest.mark.parametrize(
    ("policy", "overlap"),
    [
        (None, {"policy": "forbid"}),
        ("SCHEDULE_OVERLAP_POLICY_UNSPECIFIED", {"policy": "forbid"}),
        ("SCHEDULE_OVERLAP_POLICY_SKIP", {"policy": "forbid"}),
        ("BufferOne", {"policy": "serialize"}),
        ("BUFFER_ALL", {"policy": "serialize"}),
        (4, {"policy": "forbid"}),
        ("TERMINATE_OTHER", {"policy": "forbid"}),
        ("ALLOW_ALL", {"policy": "bounded_parallel", "max": 10}),
    ],
)
def test_every_overlap_policy_has_its_nearest_lawful_one(policy: Any, overlap: dict[str, Any]) -> None:
    """Full names, bare names, SDK spellings and numbers."""
    assert one(policies={"overlapPolicy": policy} if policy else {}).tables["overlap"] == overlap


def test_what_a_policy_loses_is_said() -> None:
    """Each by its name; a policy that is carried over whole is not in the list."""
    for policy in ("BUFFER_ONE", "CANCEL_OTHER", "TERMINATE_OTHER", "ALLOW_ALL"):
        assert policy in lost(one(policies={"overlapPolicy": policy}))
    assert set(lost(one(policies={"overlapPolicy": "SKIP"}))) == {"an unbounded catch-up"}
    assert "pauseOnFailure" in lost(one(policies={"pauseOnFailure": True}))


def test_what_the_state_loses_is_said() -> None:
    """A paused Schedule, and one that counts down."""
    entry = one(state={"paused": True, "limitedActions": True, "remainingActions": "12", "notes": "why"})
    assert {"state.paused", "remainingActions (12)"} <= set(lost(entry))
    assert "notes: why" in entry.original


def test_the_catchup_window_is_a_bounded_catch_up() -> None:
    """Ten seconds to a year; a year where it says nothing."""
    ten = one(policies={"catchupWindow": "10s"}).tables["catch_up"]
    assert (ten["misfire_threshold"], ten["horizon"], ten["max_age"], ten["mode"]) == ("10s", "10s", "10s", "bounded")
    year = one().tables["catch_up"]
    assert (year["misfire_threshold"], year["horizon"], year["max_concurrency"]) == ("1m", "365d", 1)
    assert one(policies={"overlapPolicy": "ALLOW_ALL"}).tables["catch_up"]["max_concurrency"] == 10


def test_jitter_is_drawn_once() -> None:
    """From the same span."""
    entry = read(DESCRIBED["jittered"]).entries[0]
    assert entry.tables["jitter"] == {"mode": "bounded", "max": "30s"}
    assert "the very delays of the jitter" in lost(entry)


def test_several_times_are_several_files_and_that_is_said() -> None:
    """Names are numbered; the one overlap policy over all of them is lost."""
    found = read(DESCRIBED["union"], name="Nightly Union")
    assert [entry.name for entry in found.entries] == ["nightly-union", "nightly-union-2", "nightly-union-3"]
    assert all("one overlap policy over all times" in lost(entry) for entry in found.entries)
    assert "one overlap policy over all times" not in lost(one())


def test_a_schedule_is_named_by_its_id_or_its_file() -> None:
    """protojson has no id; a list of descriptions has several names."""
    plain = {"spec": {"cronString": ["0 1 * * *"]}}
    assert [entry.name for entry in read(plain).entries] == ["from-file"]
    both = read([{"scheduleId": "One", "schedule": plain}, {"schedule": {"id": "two", **plain}}])
    assert [entry.name for entry in both.entries] == ["one", "two"]


def test_excluded_times_ring_and_that_is_said() -> None:
    """There is no trigger that leaves out another calendar's times."""
    entry = one({"cronString": ["0 1 * * *"], "excludeStructuredCalendar": [{"month": [{"start": 12}]}]})
    assert "those times ring too" in lost(entry)["excludeStructuredCalendar"]


@pytest.mark.parametrize(
    ("spec", "names"),
    [
        ({}, "names no time"),
        ({"structuredCalendar": [{"year": [{"start": 2027}, {"start": 2029}]}]}, "year"),
        ({"structuredCalendar": [{"hour": [{"start": 24}]}]}, "hour"),
        ({"structuredCalendar": [{"month": []}]}, "month"),
        ({"cronString": ["0 1 * * * * * *"]}, "fields"),
        ({"cronString": ["0 1 * * FUNDAY"]}, "FUNDAY"),
        ({"cronString": ["@every soon"]}, "soon"),
        ({"cronString": ["CRON_TZ=UTC 0 1 * * *"], "timezoneName": "Asia/Tokyo"}, "Asia/Tokyo"),
        ({"cronString": ["0 1 * * *"], "timezoneName": "Mars/Base"}, "Mars/Base"),
        ({"calendar": [{"hour": 3}]}, "hour"),
        ({"calendar": [{"hour": "0," * 200 + "0"}]}, "more than"),
        ({"calendar": [{"hour": "5-3"}]}, "5-3"),
        ({"interval": [{"interval": "0s"}]}, "interval"),
        ({"interval": [{"interval": "1.5s"}]}, "interval"),
        ({"interval": [{"interval": "1000001s"}]}, "interval"),
    ],
    ids=str,
)
def test_times_that_no_schedule_says_are_named(spec: dict[str, Any], names: str) -> None:
    """With the reason, and the rest of the spec is still carried over."""
    assert names in refusal(spec)


@pytest.mark.parametrize(
    ("document", "names"),
    [
        ("text", "file"),
        (7, "file"),
        ([{"spec": {}}, None], "schedule 2"),
        ({}, "file.spec"),
        ({"schedule": None}, "file.schedule"),
        ({"schedule": {"spec": []}}, "file.schedule.spec"),
        ({"spec": {"structuredCalendar": [{"hour": "3"}]}}, "file.spec"),
        ({"spec": {"structuredCalendar": [{"hour": [{"start": "x"}]}]}}, "file.spec"),
        ({"spec": {"structuredCalendar": [{"hour": [{"start": 10**30}]}]}}, "file.spec"),
        ({"spec": {"structuredCalendar": [{"hour": [{}] * 1000}]}}, "file.spec"),
        ({"spec": {"cronString": "0 1 * * *"}}, "file.spec"),
        ({"spec": {"cronString": ["0" * 10_000]}}, "file.spec"),
        ({"spec": {"jitter": 30}}, "file.spec.jitter"),
        ({"spec": {"jitter": "99999999999999h"}}, "file.spec.jitter"),
        ({"spec": {"startTime": "yesterday"}}, "file.spec"),
        ({"spec": {"startTime": "2027-01-01T00:00:00"}}, "file.spec"),
        ({"spec": {"endTime": 7}}, "file.spec"),
        ({"spec": {"timezoneName": 7}}, "file.spec"),
        ({"spec": {}, "policies": {"overlapPolicy": "SOMETIMES"}}, "file.policies"),
        ({"spec": {}, "policies": {"overlapPolicy": True}}, "file.policies"),
        ({"spec": {}, "policies": {"catchupWindow": "long"}}, "file.policies"),
        ({"spec": {}, "state": {"paused": "no"}}, "file.state.paused"),
        ({"spec": {}, "state": {"remainingActions": "many"}}, "file.state"),
    ],
    ids=lambda value: str(value)[:60],
)
def test_a_wrong_shape_is_refused_by_the_name_of_its_field(document: Any, names: str) -> None:
    """Nothing of the file is read any further."""
    with pytest.raises(BadInput) as refused:
        read(document)
    assert str(refused.value.fields["field"]).startswith(names)
    assert len(refused.value.sentence) < 2_000


@pytest.mark.parametrize(
    "text", ["", "{", "[" * 100_000, '{"a":' * 100_000, "1" * 5_000, "\x00"], ids=lambda text: text[:9]
)
def test_hostile_json_is_refused(text: str) -> None:
    """One sentence that is not long."""
    with pytest.raises(BadInput) as refused:
        read(read_json(text))
    assert len(refused.value.sentence) < 600


def ranges(low: int, high: int) -> st.SearchStrategy[list[dict[str, int]]]:
    """A field of a structured calendar; often the whole."""
    number = st.integers(low, high)
    found = st.builds(
        lambda start, end, step: {"start": start, "end": end, "step": step}, number, number, st.integers(0, 9)
    )
    return st.one_of(st.just([{"start": low, "end": high, "step": 1}]), st.lists(found, min_size=1, max_size=3))


CALENDARS = st.fixed_dictionaries(
    {
        "second": st.sampled_from([[{}], [{"start": 30, "end": 30, "step": 1}], [{"end": 59, "step": 20}]]),
        "minute": ranges(0, 59),
        "hour": ranges(0, 23),
        "dayOfMonth": ranges(1, 31),
        "month": ranges(1, 12),
        "dayOfWeek": ranges(0, 6),
    }
)


def values(field: list[dict[str, int]]) -> set[int]:
    """A field by Temporal's own words: an end before the start is the start, a step of zero is one."""
    found: set[int] = set()
    for part in field:
        start = part.get("start", 0)
        found.update(range(start, max(start, part.get("end", 0)) + 1, part.get("step", 1) or 1))
    return found


def matching_times(fields: dict[str, set[int]], day: datetime) -> Iterator[datetime]:
    """The times of one day, by Temporal's own sentence: every field must match."""
    if day.month in fields["month"] and day.day in fields["dayOfMonth"] and day.isoweekday() % 7 in fields["dayOfWeek"]:
        for hour, minute, second in product(*(sorted(fields[name]) for name in ("hour", "minute", "second"))):
            yield day + timedelta(hours=hour, minutes=minute, seconds=second)


@given(CALENDARS)
@settings(max_examples=150, deadline=None)
def test_a_structured_calendar_rings_where_every_field_matches(calendar: dict[str, Any]) -> None:
    """Against a slow reading: the first two hundred times one by one, and how many on each day of two years. What is refused
    rings on no day of the 28 years after which days and weekdays come again."""
    found = read({"spec": {"structuredCalendar": [calendar]}})
    fields, start = {name: values(field) for name, field in calendar.items()}, datetime(2027, 1, 1)
    days = [start + number * A_DAY for number in range(731)]
    if not found.entries:
        ever = (start + number * A_DAY for number in range(28 * 366))
        assert not any(next(matching_times(fields, day), None) for day in ever)
        return
    trigger = CalendarTrigger.model_validate(found.entries[0].tables["trigger"])
    first = list(islice(chain.from_iterable(matching_times(fields, day) for day in days), 200))
    assert list(islice(trigger.from_civil(start), len(first))) == first
    a_day = len(fields["hour"]) * len(fields["minute"]) * len(fields["second"])
    for day in days:
        assert trigger.count(day, day + A_DAY) == (a_day if next(matching_times(fields, day), None) else 0)


def leaves(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The way to everything in a document, the containers too."""
    if path:
        yield path
    for key, inside in (
        value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    ):
        yield from leaves(inside, (*path, key))


def replaced(document: Any, path: tuple[Any, ...], value: Any) -> Any:
    """A copy of the document with another value at one place."""
    copy = json.loads(json.dumps(document))
    place = copy
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    return copy


SEEDS = [{"schedule": DESCRIBED[name]["schedule"]} for name in ("weekdays", "first-mondays", "union")] + [
    {"spec": spec} for spec in AS_CREATED.values()
]
ODD = st.one_of(
    st.sampled_from(
        [None, True, -1, 0, 10**9, 2**80, 1.5, float("nan"), "", "*", "-1s", "999999999h", "\ud800", [], {}]
    ),
    st.sampled_from(["9989-12-31T23:59:59Z", "1801-01-01T00:00:00+14:00", "1000000d", "@every 999999d/1s", "0," * 200]),
    st.text(max_size=8),
    st.lists(st.integers(-5, 70), max_size=3),
)


@given(st.data())
@settings(max_examples=400, deadline=None)
def test_whatever_stands_anywhere_is_read_or_refused(data: st.DataObject) -> None:
    """A real description with one or two values replaced: a report or BadInput, never anything else."""
    document = data.draw(st.sampled_from(SEEDS))
    for _ in range(data.draw(st.integers(1, 2))):
        document = replaced(document, data.draw(st.sampled_from(sorted(leaves(document), key=str))), data.draw(ODD))
    try:
        found = read(document)
    except BadInput:
        return
    drafts, rest = drafted(found, "x.json", TERMS, datetime(2027, 1, 1, tzinfo=UTC))
    assert len(drafts) + len(rest.refused) == len(found.entries) + len(found.refused)
    assert all(draft.text.encode() for draft in drafts)
