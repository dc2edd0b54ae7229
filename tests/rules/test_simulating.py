"""`simulate`: its JSON, its pictures, its refusals. It reaches no server."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from nightbell.cli import run
from nightbell.drawing.simulated import Sign

SCHEDULES = Path(__file__).parents[2] / "schedules"
A_DAY = ["--from", "2026-01-01T00:00:00Z", "--to", "2026-01-02T00:00:00Z"]
DURATIONS = [
    "--duration",
    "home/nightly-rite=20m",
    "--duration",
    "home/embedding-backfill=1h",
    "--duration",
    "home/bridge=2m",
]
EXAMPLE = ["simulate", str(SCHEDULES), *A_DAY, *DURATIONS, "--event", "home/bridge=4/h", "--capacity", "embedder=1"]
PAGE = Path(__file__).parents[2] / "docs" / "simulating.md"
SVG = "{http://www.w3.org/2000/svg}"

FILE = """
authority = "home"
name = "{name}"
[trigger]
kind = "calendar"
cron = "{cron}"
zone = "UTC"
[class]
service_class = "{service_class}"
{window}
[work]
pattern = "p"
pattern_revision = "1"
owner = "magus"
[capacity]
capability = "io"
estimate = {{ duration = "{takes}", provenance = "declared", confidence = 0.9 }}
"""

Simulate = Callable[..., Any]


@pytest.fixture
def simulate(capsys: pytest.CaptureFixture[str]) -> Simulate:
    """Run `nightbell` with `--json`; its document, after its exit code was as expected."""

    def command(*arguments: str, code: int = 0) -> Any:
        left_with = run([*arguments, "--json"])
        printed = capsys.readouterr()
        assert left_with == code, printed
        return json.loads(printed.out)

    return command


@pytest.fixture
def house(tmp_path: Path) -> Path:
    """A folder in which an hourly foreground Schedule and an hourly deadline want one unit, and something else lies."""
    folder = tmp_path / "house"
    folder.mkdir()
    windowed = '[window]\nallowed_delay = "30m"'
    write(folder, "busy", "0 * * * *", "foreground", "", "50m")
    write(folder, "rite", "10 * * * *", "deadline_windowed", windowed, "5m")
    (folder / "demo.toml").write_text("[rite]\ncycle = 'nominal'\n", encoding="utf-8")
    return folder


def write(folder: Path, name: str, cron: str, service_class: str, window: str, takes: str) -> None:
    """A Schedule file."""
    text = FILE.format(name=name, cron=cron, service_class=service_class, window=window, takes=takes)
    (folder / f"{name}.toml").write_text(text, encoding="utf-8")


def test_the_document_names_what_it_promises(simulate: Simulate) -> None:
    """The example Schedules through one day, with everything that no file says said."""
    found = simulate(*EXAMPLE, "--proven", "embedding_backfill")
    assert set(found) >= {"from", "to", "totals", "schedules", "capabilities", "firings", "firings_left_out"}
    assert found["totals"] == {"admitted": 98}
    assert [one["schedule"] for one in found["schedules"]] == [
        "home/bridge",
        "home/embedding-backfill",
        "home/nightly-rite",
    ]
    assert found["schedules"][0]["longest_wait_seconds"] == 0
    [embedder] = found["capabilities"]
    assert (embedder["capability"], embedder["units"], embedder["peak_units"]) == ("embedder", 1, 1)
    assert embedder["busy_share"] == pytest.approx(1 / 24, abs=1e-6)
    backfill = next(one for one in found["firings"] if one["schedule"] == "home/embedding-backfill")
    assert backfill["run_from"] == "2026-01-01T00:15:00Z"
    assert backfill["slices"] == 120
    assert found["firings_left_out"] == 0


def test_deadlines_behind_what_is_busy_are_missed_and_both_pictures_show_it(
    simulate: Simulate, house: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Fifty minutes of every hour are taken: a window of thirty is missed every time."""
    found = simulate("simulate", str(house), *A_DAY, "--capacity", "io=1")
    assert found["totals"] == {"admitted": 24, "missed": 24}
    drawing = tmp_path / "drawn.svg"
    assert run(["simulate", str(house), *A_DAY, "--capacity", "io=1", "--svg", str(drawing)]) == 0
    lines = capsys.readouterr().out.splitlines()
    lane = next(line for line in lines if line.startswith("home/rite"))
    assert Sign.MISSED.character in lane
    assert any(line.startswith("missed: home/rite nominal:2026-01-01T00:10:00") for line in lines)
    root = ET.fromstring(drawing.read_text(encoding="utf-8"))
    described = root.find(f"{SVG}desc")
    assert described is not None
    assert "24 missed" in (described.text or "")
    missed = [one for one in root.iter(f"{SVG}rect") if one.get("class") == "missed"]
    assert len(missed) == 24 + 1, "and one in the legend"
    assert "prefers-color-scheme: dark" in drawing.read_text(encoding="utf-8")


def test_protected_units_keep_the_deadlines_and_a_second_unit_keeps_both(simulate: Simulate, house: Path) -> None:
    """The question that it is for: what would it take?"""
    protected = simulate("simulate", str(house), *A_DAY, "--capacity", "io=2:protected=1")
    assert protected["totals"] == {"admitted": 48}
    assert protected["longest_foreground_wait_seconds"] == 0
    starved = simulate("simulate", str(house), *A_DAY, "--capacity", "io=1:protected=1")
    assert starved["totals"] == {"pending": 24, "admitted": 24}


@pytest.mark.obligation("SEL-6", boundary="ordinary")
def test_sel_6_the_same_inputs_give_the_same_bytes(
    house: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """JSON, terminal and SVG, also with the files in another order."""
    printed = list[str]()
    for order in (["busy", "rite"], ["rite", "busy"]):
        files = [str(house / f"{name}.toml") for name in order]
        drawing = tmp_path / f"{order[0]}.svg"
        assert run(["simulate", *files, *A_DAY, "--capacity", "io=1", "--svg", str(drawing), "--json"]) == 0
        assert run(["simulate", *files, *A_DAY, "--capacity", "io=1"]) == 0
        printed.append(capsys.readouterr().out + drawing.read_text(encoding="utf-8"))
    assert printed[0] == printed[1]


def test_at_most_so_many_firings_are_listed_and_the_totals_are_whole(simulate: Simulate, house: Path) -> None:
    """The first to ring are listed, and it is said how many are not."""
    found = simulate("simulate", str(house), *A_DAY, "--capacity", "io=2", "--limit", "3")
    assert [one["schedule"] for one in found["firings"]] == ["home/busy", "home/rite", "home/busy"]
    assert found["firings_left_out"] == 45
    assert sum(found["totals"].values()) == 48


def test_events_come_from_a_file_or_at_a_rate(simulate: Simulate, tmp_path: Path) -> None:
    """One instant a line with its event id; what lies outside of the stretch does not ring in it."""
    (events := tmp_path / "events").write_text(
        "# turns\n2026-01-01T08:00:00Z turn-1\n\n2026-01-01T07:00:00+00:00\n2027-01-01T00:00:00Z later\n",
        encoding="utf-8",
    )
    bridge = ["simulate", str(SCHEDULES / "bridge.toml"), *A_DAY, "--duration", "home/bridge=1m"]
    found = simulate(*bridge, "--event", f"home/bridge={events}")
    assert [one["key"] for one in found["firings"]] == ["event:bridge:line-4", "event:bridge:turn-1"]
    assert simulate(*bridge, "--event", "home/bridge=2/h")["totals"] == {"admitted": 48}


def test_unproven_spare_work_begins_in_the_quiet_window_that_is_said(simulate: Simulate) -> None:
    """Without a word nothing of the backfill begins; in a window of its capability it does."""
    assert simulate(*EXAMPLE)["schedules"][1]["totals"] == {"pending": 1}
    quiet = "2026-01-01T20:00:00Z/2026-01-01T23:00:00Z=embedder"
    found = simulate(*EXAMPLE, "--quiet", quiet)
    backfill = next(one for one in found["firings"] if one["schedule"] == "home/embedding-backfill")
    assert (backfill["run_from"], backfill["waited_for"]) == ("2026-01-01T20:00:00Z", ["quiet_window"])


@pytest.mark.parametrize(
    ("more", "field"),
    [
        (["--capacity", "io"], "capacity"),
        (["--capacity", "io=many"], "capacity"),
        (["--capacity", "=4"], "capability"),
        (["--capacity", "io=4:protected=5"], "protected_units"),
        (["--capacity", "io=4:state=HOT"], "capacity"),
        (["--capacity", "io=4", "--capacity", "io=5"], "capacity"),
        (["--duration", "home/nobody=4m"], "duration"),
        (["--duration", "home/rite=soon"], "duration of home/rite"),
        (["--event", "home/rite=12/h"], "event"),
        (["--quiet", "2026-01-01T00:00:00Z"], "quiet"),
        (["--quiet", "2026-01-02T00:00:00Z/2026-01-01T00:00:00Z"], "quiet"),
        (["--proven", "nothing"], "proven"),
        (["--proven", "p"], "proven"),
        (["--svg", "drawing.png"], "svg"),
    ],
)
def test_what_cannot_be_meant_is_refused_by_its_field(
    simulate: Simulate, house: Path, more: list[str], field: str
) -> None:
    """Exit code 3, the field and the reason."""
    error = simulate("simulate", str(house), *A_DAY, *more, code=3)["error"]
    assert (error["code"], error["field"]) == ("bad_input", field)


def test_what_nobody_said_is_asked_for_by_name(simulate: Simulate) -> None:
    """A duration that no file declares, and the events of an external source."""
    nobody = simulate("simulate", str(SCHEDULES / "nightly-rite.toml"), *A_DAY, code=3)["error"]
    assert "home/nightly-rite" in nobody["reason"]
    bridge = ["simulate", str(SCHEDULES / "bridge.toml"), *A_DAY, "--duration", "home/bridge=1m"]
    assert simulate(*bridge, code=3)["error"]["field"] == "event"


def test_a_file_that_cannot_be_read_is_refused_by_its_name(simulate: Simulate, house: Path) -> None:
    """One of a folder that is no TOML, one that is twice there, a folder without any."""
    (house / "broken.toml").write_text("name = [", encoding="utf-8")
    assert "broken.toml" in simulate("simulate", str(house), *A_DAY, code=3)["error"]["field"]
    (house / "broken.toml").write_text((house / "rite.toml").read_text(encoding="utf-8"), encoding="utf-8")
    assert "home/rite is in" in simulate("simulate", str(house), *A_DAY, code=3)["error"]["reason"]
    (empty := house / "empty").mkdir()
    assert simulate("simulate", str(empty), *A_DAY, code=3)["error"]["field"] == "files"
    assert simulate("simulate", str(house / "none.toml"), *A_DAY, code=2)["error"]["code"] == "usage"
    backwards = ["--from", "2026-01-02T00:00:00Z", "--to", "2026-01-01T00:00:00Z"]
    assert simulate("simulate", str(house / "rite.toml"), *backwards, code=3)["error"]["field"] == "to"


def test_the_page_about_it_shows_what_it_prints_and_draws(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its command, run anew, prints its first block; one unit more prints the second; the picture beside it is the drawing."""
    monkeypatch.chdir(PAGE.parents[1])
    written, drawing = PAGE.read_text(encoding="utf-8"), tmp_path / "simulated.svg"
    [typed] = re.findall(r"```sh\n(.*?)```", written, re.DOTALL)
    first, second = re.findall(r"```text\n(.*?)```", written, re.DOTALL)
    arguments = typed.replace("\\\n", " ").split()[1:]
    arguments[-1] = str(drawing)
    assert run(arguments) == 0
    assert [line.rstrip() for line in capsys.readouterr().out.splitlines()][:-1] == first.splitlines()
    assert drawing.read_text(encoding="utf-8") == (PAGE.parent / "simulated.svg").read_text(encoding="utf-8")
    assert run([one.replace("store-io=3", "store-io=4") for one in arguments]) == 0
    assert second in "".join(f"{line.rstrip()}\n" for line in capsys.readouterr().out.splitlines())
