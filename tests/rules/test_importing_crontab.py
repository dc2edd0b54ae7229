"""Crontabs are carried over as cron means them: fields, day rule, changes of the clocks; the rest of a line is said."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import islice, takewhile
from zoneinfo import ZoneInfo

import pytest
from croniter import croniter
from cronsim import CronSim
from hypothesis import given, settings
from hypothesis import strategies as st

from law.errors import BadInput, UnknownZone
from law.firings import Firing, FiringKind, firings
from law.triggers import CalendarTrigger
from nightbell.importing.crontab import is_system_crontab, read_crontab
from nightbell.importing.entries import ENTRIES_MAX, Entry, Found
from store.zone_rules import installed_rules

ZONE = "Europe/Bratislava"

USERS = """\
# m h  dom mon dow   command
SHELL=/bin/bash
MAILTO="ops@example.org"
PATH = /usr/local/bin:/usr/bin

# nightly
30 2 * * 1-5   /usr/local/bin/backup.sh --all >/var/log/backup.log 2>&1
*/15 * * * *   cd /srv/site && /usr/bin/php artisan schedule:run
@daily         echo "100\\% of it"%first line%second line
@reboot        /usr/bin/agent
0 4 1,15 JAN-MAR,dec Sun   LANG=C /usr/bin/env nice -n 10 /opt/report --month
-5 6 * * *     quiet
"""

DEBIANS = """\
# /etc/crontab: system-wide crontab
SHELL=/bin/sh
# *  *  *  *  * user-name command to be executed
17 *\t* * *\troot\tcd / && run-parts --report /etc/cron.hourly
25 6\t* * *\troot\ttest -x /usr/sbin/anacron || { cd / && run-parts --report /etc/cron.daily; }
52 6\t1 * *\twww-data\t/usr/bin/certbot -q renew
"""


def read(text: str, zone: str = ZONE, system: bool = False) -> Found:
    return read_crontab(text, zone, system, 10)


def one(line: str, **options: bool) -> Entry:
    """The one entry of a line that is carried over."""
    found = read(line, **options)
    assert not found.refused
    [entry] = found.entries
    return entry


def refusal(line: str) -> str:
    """Why a line is not carried over."""
    found = read(line)
    assert not found.entries
    [refused] = found.refused
    return refused.reason


def lost(entry: Entry) -> str:
    return " ".join(loss.sentence for loss in entry.losses)


def test_a_users_crontab_is_read_line_by_line() -> None:
    """Comments and blank lines are nothing, assignments are said, each entry has a name, its expression and its line."""
    found = read(USERS)
    assert [(entry.where, entry.name, entry.tables["trigger"]["cron"]) for entry in found.entries] == [
        ("line 7", "backup", "30 2 * * 1-5"),
        ("line 8", "site", "*/15 * * * *"),
        ("line 9", "echo", "@daily"),
        ("line 11", "report", "0 4 1,15 JAN-MAR,dec Sun"),
        ("line 12", "quiet", "5 6 * * *"),
    ]
    assert {entry.tables["trigger"]["zone"] for entry in found.entries} == {ZONE}
    assert found.entries[0].original == (USERS.splitlines()[6],)
    said = " ".join(loss.sentence for loss in found.losses)
    assert all(name in said for name in ("SHELL", "MAILTO", "PATH", "the commands"))
    [refused] = found.refused
    assert refused.where.startswith("line 10: @reboot")
    assert "no civil time" in refused.reason


def test_a_systems_crontab_has_users() -> None:
    """The sixth field is said to be lost, and the name is the command's."""
    assert is_system_crontab(DEBIANS, "crontab.txt")
    found = read(DEBIANS, system=True)
    assert [entry.name for entry in found.entries] == ["run-parts", "test", "certbot"]
    assert ["the user root" in lost(entry) for entry in found.entries] == [True, True, False]
    assert "the user www-data" in lost(found.entries[2])


@pytest.mark.parametrize(
    ("text", "path", "system"),
    [
        ("0 0 * * * me x", "/etc/crontab", True),
        ("0 0 * * * me x", "/etc/cron.d/site", True),
        ("0 0 * * * root x", "/home/me/tab", True),
        ("@daily root x", "/home/me/tab", True),
        ("0 0 * * * rooted x", "/home/me/tab", False),
        ("0 0 * * * /bin/su root x", "/home/me/tab", False),
        (USERS, "/home/me/tab", False),
        ("", "-", False),
    ],
)
def test_a_systems_crontab_is_found_out(text: str, path: str, system: bool) -> None:
    """By its place, its heading, or a line of root's."""
    assert is_system_crontab(text, path) is system


@pytest.mark.obligation("CAL-1", boundary="ordinary")
def test_cal_1_cron_tz_is_the_zone_of_the_lines_that_follow() -> None:
    """TZ is not: it is the command's clock, and that is said."""
    found = read('0 1 * * * a\nCRON_TZ = "Asia/Tokyo"\n0 1 * * * b\nTZ=America/New_York\n0 1 * * * c\n')
    assert [entry.tables["trigger"]["zone"] for entry in found.entries] == [ZONE, "Asia/Tokyo", "Asia/Tokyo"]
    [said] = [loss.sentence for loss in found.losses if "TZ=" in loss.what]
    assert "America/New_York" in said
    assert "by Asia/Tokyo" in said


@pytest.mark.obligation("CAL-1", boundary="failure")
def test_cal_1_lines_after_an_unknown_zone_are_not_guessed() -> None:
    """They are refused by the name of the zone, until a known one follows."""
    found = read("CRON_TZ=Mars/Base\n0 1 * * * a\nCRON_TZ=localtime\n0 1 * * * b\nCRON_TZ=UTC\n0 1 * * * c\n")
    assert [entry.name for entry in found.entries] == ["c"]
    assert [refused.reason.partition(":")[0] for refused in found.refused] == ["CRON_TZ of line 1", "CRON_TZ of line 3"]
    with pytest.raises(UnknownZone):
        read("0 1 * * * a", zone="Mars/Base")


def test_a_percent_sign_ends_the_command() -> None:
    """What follows is its input, unless the sign is escaped."""
    assert "standard input" in lost(one("0 1 * * * mail me%hello%there"))
    assert "standard input" not in lost(one(r"0 1 * * * date +\%F"))
    assert one("0 1 * * * %only input").name == "job"


@pytest.mark.parametrize(
    ("line", "fold", "gap"),
    [
        ("30 2 * * * x", "earlier", "advance"),
        ("@daily x", "earlier", "advance"),
        ("0,30 1-3 * * * x", "earlier", "advance"),
        ("*/15 2 * * * x", "both", "skip"),
        ("30 * * * * x", "both", "skip"),
        ("30 */2 * * * x", "both", "skip"),
        ("@hourly x", "both", "skip"),
    ],
)
def test_changes_of_the_clocks_are_cronds(line: str, fold: str, gap: str) -> None:
    """A job at fixed times is run once and at the jump; one with a star follows the clocks."""
    trigger = one(line).tables["trigger"]
    assert (trigger["fold"], trigger["gap"]) == (fold, gap)


@pytest.mark.obligation("CAL-3", boundary="ordinary")
def test_cal_3_the_night_the_clocks_change_is_as_in_cron() -> None:
    """The fixed 02:30 of Bratislava rings at the jump in spring and once in autumn; every quarter of an hour rings on."""
    fixed, starred = one("30 2 * * * x"), one("*/15 * * * * x")
    spring, autumn = datetime(2027, 3, 28, tzinfo=UTC), datetime(2026, 10, 25, tzinfo=UTC)
    [advanced] = rung(fixed, spring, timedelta(hours=6))
    assert (advanced.kind, advanced.at) == (FiringKind.GAP_ADVANCED, datetime(2027, 3, 28, 1, tzinfo=UTC))
    [once] = rung(fixed, autumn, timedelta(hours=6))
    assert once.at == datetime(2026, 10, 25, 0, 30, tzinfo=UTC)
    for night in (spring, autumn):
        found = [each.nominal_at for each in rung(starred, night, timedelta(hours=6)) if each.nominal_at]
        assert found == [night + number * timedelta(minutes=15) for number in range(24)]


def rung(entry: Entry, start: datetime, length: timedelta) -> Iterator[Firing]:
    """What an imported line rings."""
    trigger = CalendarTrigger.model_validate(entry.tables["trigger"])
    return firings(trigger, "nominal", installed_rules(trigger.zone), start, start + length)


@pytest.mark.parametrize(
    ("line", "names"),
    [
        ("61 * * * * x", "61"),
        ("* * * * x", "five fields"),
        ("* * * * *", "five fields"),
        ("nonsense", "five fields"),
        ("@fortnightly x", "@fortnightly"),
        ("@REBOOT x", "no civil time"),
        ("@daily", "no command"),
        ("0 0 L * * x", "L"),
        ("0 0 * * 5#3 x", "5#3"),
        ("0 0 ? * * x", "?"),
        ("0~30 * * * * x", "at random"),
        ("0 0 30 2 * x", "day-of-month"),
        ("0 0 * * MONDAY x", "MONDAY"),
        ("0 0 * * 1/2 x", "two ways"),
        ("0 10-10/6 * * * x", "two ways"),
        (f"{'0,' * 200}1 * * * * x", "longer"),
    ],
)
def test_what_cron_cannot_read_never_begins_to_ring(line: str, names: str) -> None:
    """What cron drops, and what only other dialects know, is named with its reason."""
    assert names in refusal(line)


def test_a_step_after_one_number_is_said_to_be_doubtful() -> None:
    """Crons differ about 5/20."""
    entry = one("5/20 * * * * x")
    assert "5/20" in lost(entry)
    assert [each.civil.minute for each in rung(entry, datetime(2027, 1, 1, tzinfo=UTC), timedelta(hours=1))] == [
        5,
        25,
        45,
    ]


def test_cron_starts_in_its_minute_or_never_and_beside_itself() -> None:
    """The window is a minute; overlap is bounded and that is said."""
    tables = one("0 1 * * * x").tables
    assert (tables["class"], tables["window"]) == ({"service_class": "deadline_windowed"}, {"allowed_delay": "1m"})
    assert tables["overlap"] == {"policy": "bounded_parallel", "max": 10}
    assert "at most 10 at once" in lost(one("0 1 * * * x"))


def test_names_are_distinct_and_lawful() -> None:
    """The same command twice is numbered; what has no name is a job."""
    found = read("0 1 * * * /a/Dump_DB.sh\n0 2 * * * dump_db\n0 3 * * * 'ümlaut'\n0 4 * * * ./--x\n0 5 * * * $(x)\n")
    assert [entry.name for entry in found.entries] == ["dump_db", "dump_db-2", "mlaut", "job", "x"]


def test_too_many_lines_are_refused_whole() -> None:
    """Nobody reads such a report."""
    with pytest.raises(BadInput, match=str(ENTRIES_MAX)):
        read("* * * * * x\n" * (ENTRIES_MAX + 1))


def values(low: int, high: int) -> st.SearchStrategy[str]:
    """A field: a star, a value, a list, a range, a step."""
    value = st.integers(low, high)
    span = st.tuples(value, value).filter(lambda pair: pair[0] < pair[1])
    step = st.integers(1, 9)
    return st.one_of(
        st.just("*"),
        value.map(str),
        st.lists(value, min_size=2, max_size=4).map(lambda some: ",".join(map(str, some))),
        span.map(lambda pair: f"{pair[0]}-{pair[1]}"),
        st.tuples(span, step).map(lambda both: f"{both[0][0]}-{both[0][1]}/{both[1]}"),
        step.map(lambda number: f"*/{number}"),
    )


LINES = st.tuples(values(0, 59), values(0, 23), values(1, 28), st.just("*"), values(0, 6)).map(" ".join)
WINTER = datetime(2027, 1, 10, tzinfo=UTC)
A_FORTNIGHT = timedelta(days=14)
COMPARED = 200


@given(LINES, st.sampled_from(["Europe/Bratislava", "America/New_York", "Asia/Kolkata", "Australia/Lord_Howe", "UTC"]))
@settings(max_examples=200, deadline=None)
def test_on_ordinary_days_an_imported_line_rings_as_the_libraries_read_it(line: str, zone: str) -> None:
    """cronsim (Debian's day rule) always; croniter too where no day field is a stepped star, which it joins by OR."""
    found = [
        each.nominal_at for each in islice(rung(read(f"{line} x", zone).entries[0], WINTER, A_FORTNIGHT), COMPARED)
    ]
    before = WINTER.astimezone(ZoneInfo(zone)) - timedelta(seconds=1)
    readings: list[Iterator[datetime]] = [CronSim(line, before)]
    days, weekdays = line.split()[2], line.split()[4]
    if "*/" not in days + weekdays:
        readings.append(croniter(line, before).all_next(datetime))
    for times in readings:
        on_ordinary_days = takewhile(lambda at: at < WINTER + A_FORTNIGHT, times)
        assert found == [at.astimezone(UTC) for at in islice(on_ordinary_days, COMPARED)]
