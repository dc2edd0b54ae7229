"""The command line's contract: its JSON, its exit codes, its sentences, and what hostile input does to it (nothing)."""

import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import pytest
import typer.main

from nightbell.cli import app, run
from nightbell.home import Home
from nightbell.stack import down, up
from store.migrate import migrate

SCHEDULES = Path(__file__).parents[2] / "schedules"
FIRING = {
    "key", "civil", "fold", "kind", "at", "nominal_at", "eligible_at", "not_before", "latest_start_at", "finish_by",
}  # fmt: skip
OCCURRENCE = {
    "trigger_occurrence_id", "schedule", "revision", "key", "service_class", "nominal_at", "not_before", "latest_start_at",
    "finish_by", "state", "reason", "decision_time", "invocation_id", "run_id",
}  # fmt: skip
UNREADABLE = {
    "nothing at all": b"",
    "no TOML": b"name = [",
    "no text": b"\xff\xfe\x00",
    "no trigger": b'name = "x"\n',
    "another spelling of a key": b'name = "x"\nwindwo = 1\n',
}

Nightbell = Callable[..., Any]


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Home]:
    """A whole stack with its worker."""
    home = Home.at(tmp_path_factory.mktemp("commands") / "home")
    up(home, migrate=migrate)
    yield home
    down(home)


@pytest.fixture
def nightbell(home: Home, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Nightbell:
    """Run one command with `--json` against the stack; its document, after its exit code was as expected."""
    monkeypatch.setenv("NIGHTBELL_HOME", str(home.path))

    def command(*arguments: str, code: int = 0) -> Any:
        left_with = run([*arguments, "--json"])
        printed = capsys.readouterr()
        assert left_with == code, printed
        return json.loads(printed.out)

    return command


@pytest.fixture
def refused(nightbell: Nightbell) -> Nightbell:
    """Run one command that is refused by law (3); its error."""
    return lambda *arguments, code=3: nightbell(*arguments, code=code)["error"]


def bridge(folder: Path, name: str, **changes: str) -> Path:
    """A Schedule file of its own that listens to the Bridge."""
    text = (SCHEDULES / "bridge.toml").read_text(encoding="utf-8")
    for old, new in {'name = "bridge"': f'name = "{name}"', **changes}.items():
        assert old in text
        text = text.replace(old, new)
    (file := folder / f"{name}.toml").write_text(text, encoding="utf-8")
    return file


def offer(name: str, event_id: str, content: str = '{"message": "6 * 7"}', source: str = "bridge") -> list[str]:
    return ["offer", f"home/{name}", "--source", source, "--event-id", event_id, "--content", content]


def until(holds: Callable[[], Any]) -> Any:
    """Wait until it holds."""
    deadline = time.monotonic() + 30
    while not (found := holds()):
        assert time.monotonic() < deadline
        time.sleep(0.1)
    return found


def test_preview_needs_no_server_and_names_what_it_promises(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The nightly rite through the night the clocks go back, exactly as the contract has it."""
    monkeypatch.setenv("NIGHTBELL_HOME", str(tmp_path / "nowhere"))
    stretch = ["--from", "2026-10-25T00:00:00Z", "--to", "2026-10-26T00:00:00Z"]
    assert run(["preview", str(SCHEDULES / "nightly-rite.toml"), *stretch, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert set(found) >= {"schedule", "rules", "firings"}
    assert set(found["rules"]) == {"zone", "release", "digest"}
    [firing] = found["firings"]
    assert set(firing) == FIRING
    assert (firing["at"], firing["latest_start_at"]) == ("2026-10-25T00:00:00Z", "2026-10-25T04:00:00Z")
    assert (firing["civil"], firing["fold"], firing["kind"]) == ("2026-10-25T02:00:00", 0, "fold")


def commands(group: Any, prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Every command with its full name, those of groups included."""
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from commands(command, f"{prefix}{name} ")
        else:
            yield f"{prefix}{name}", command


def test_every_command_takes_json_and_says_what_it_does() -> None:
    """The contract's first line, for each command that there is."""
    found = dict(commands(typer.main.get_group(app)))
    assert {"up", "cutover", "import k8s", "receipt", "worker"} <= found.keys()
    assert [
        name for name, one in found.items() if "--json" not in {option for each in one.params for option in each.opts}
    ] == []
    assert [name for name, one in found.items() if len(one.help or "") < 20] == []


def test_a_firing_from_its_file_to_its_explanation(nightbell: Nightbell, tmp_path: Path) -> None:
    """apply, schedules, show, offer twice, occurrences, runs, explain, reconsider: the documents and their fields."""
    file = bridge(tmp_path, "whole")
    [applied] = nightbell("apply", str(file))
    assert (applied["schedule"], applied["revision"], applied["created"], applied["active"]) == (
        "home/whole",
        1,
        True,
        True,
    )
    [again] = nightbell("apply", str(file))
    assert again == {**applied, "created": False}
    offered = nightbell(*offer("whole", "one"))
    assert set(offered) == {"trigger_occurrence_id", "key", "revision", "state", "reason", "created"}
    repeated = nightbell(*offer("whole", "one"))
    assert (repeated["trigger_occurrence_id"], repeated["created"]) == (offered["trigger_occurrence_id"], False)
    [ran] = until(lambda: [line for line in nightbell("runs", "home/whole") if line["state"] == "done"])
    [line] = nightbell("occurrences", "home/whole", "--state", "admitted")
    assert set(line) >= OCCURRENCE
    assert (line["run_id"], line["trigger_occurrence_id"]) == (ran["run_id"], offered["trigger_occurrence_id"])
    told = nightbell("explain", line["trigger_occurrence_id"])
    assert set(told) == {"occurrence", "decisions", "run", "hops", "effects"}
    assert [decision["act"] for decision in told["decisions"]] == ["decide", "claim", "settle"]
    assert "home/whole" in [one["schedule"] for one in nightbell("schedules")]
    assert nightbell("show", "home/whole")["document"]["trigger"]["source"] == "bridge"
    assert nightbell("reconsider", "home/whole") == {"schedule": "home/whole", "rung": True}


def test_a_later_revision_waits_for_its_activation(nightbell: Nightbell, tmp_path: Path) -> None:
    """The first revision is activated; a changed file is the second, and serves nothing yet."""
    nightbell("apply", str(bridge(tmp_path, "revised")))
    [second] = nightbell("apply", str(bridge(tmp_path, "revised", **{"priority = 80": "priority = 70"})))
    assert (second["revision"], second["created"], second["active"]) == (2, True, False)
    assert nightbell(*offer("revised", "one"))["revision"] == 1


def nightly(folder: Path, name: str, zone: str, bound: str) -> Path:
    """A nightly Schedule file of its own."""
    text = (SCHEDULES / "nightly-rite.toml").read_text(encoding="utf-8")
    for old, new in {
        '"nightly-rite"': f'"{name}"',
        "Europe/Bratislava": zone,
        'latest_start_civil = "05:00"': bound,
    }.items():
        assert old in text
        text = text.replace(old, new)
    (file := folder / f"{name}.toml").write_text(text, encoding="utf-8")
    return file


def test_a_revision_is_proposed_shown_refused_and_activated(
    nightbell: Nightbell, refused: Nightbell, tmp_path: Path
) -> None:
    """cutover proposes a plan and shows every candidate; activate without one, or with one that is not whole, is refused."""
    nightbell("apply", str(nightly(tmp_path, "moved", "Europe/Bratislava", 'latest_start_civil = "05:00"')))
    nightbell("apply", str(nightly(tmp_path, "moved", "Asia/Tokyo", 'latest_start_civil = "05:00"')))
    found = nightbell("cutover", "home/moved", "2")
    assert set(found) == {"schedule", "revision", "complete", "plan", "candidates", "problems"}
    assert (found["complete"], found["plan"]["form"], found["problems"]) == (True, "first_cycle", [])
    first = found["plan"]["first_cycle"]
    assert {one["revision"] for one in found["candidates"]} == {1, 2}
    assert all(one["owner"] in (1, 2) for one in found["candidates"])
    assert refused("activate", "home/moved", "2")["code"] == "plan_refused"
    bad = nightbell("cutover", "home/moved", "2", "--first-cycle", "2020-01-01", code=3)
    assert (bad["complete"], "retroactive" in {one["code"] for one in bad["problems"]}) == (False, True)
    error = refused("activate", "home/moved", "2", "--first-cycle", "2020-01-01")
    assert (error["code"], error["obligation"]) == ("plan_refused", "CUT-3")
    assert refused("activate", "home/moved", "2", "--first-cycle", "tomorrow")["code"] == "bad_input"
    assert refused("activate", "home/moved", "9", "--first-cycle", first)["code"] == "unknown_revision"
    (plan := tmp_path / "plan.json").write_text(json.dumps(found), encoding="utf-8")
    activated = nightbell("activate", "home/moved", "2", "--plan", str(plan))
    assert set(activated) == {"schedule", "revision", "activated_at"}
    assert nightbell("activate", "home/moved", "2", "--plan", str(plan)) == activated
    assert nightbell("show", "home/moved")["active_revision"] == 2
    assert nightbell("whose", "home/moved", first, "--revision", "1")["revision"] == 2
    assert nightbell("whose", "home/moved", "civil_date:1999-01-01")["standing"] == "none"


@pytest.mark.parametrize(
    "content", ["[]", "not JSON", '{"form": "guess"}', '{"form": "explicit", "entries": 7}', "[" * 9_000]
)
def test_a_plan_file_that_cannot_be_read_is_refused(refused: Nightbell, tmp_path: Path, content: str) -> None:
    """A sentence that names the file or the field."""
    (plan := tmp_path / "plan.json").write_text(content, encoding="utf-8")
    error = refused("cutover", "home/nobody", "2", "--plan", str(plan))
    assert error["code"] == "bad_input"
    assert "plan" in error["sentence"]


def test_what_was_imported_is_previewed_and_applied(nightbell: Nightbell, refused: Nightbell, tmp_path: Path) -> None:
    """One command from a crontab to files, and the files ring: on the command line as it is installed."""
    (crontab := tmp_path / "crontab").write_text(
        "30 2 * * * /usr/bin/backup\n@reboot /usr/bin/hello\n", encoding="utf-8"
    )
    out, zone = str(tmp_path / "out"), "Europe/Bratislava"
    command = [
        "import",
        "crontab",
        str(crontab),
        "--zone",
        zone,
        "--out",
        out,
        "--pattern",
        "bridge_turn",
    ]
    nightbell(*command)
    [file] = (tmp_path / "out").glob("*.toml")
    assert nightbell("preview", str(file), "--limit", "2")["rules"]["zone"] == zone
    [applied] = nightbell("apply", str(file))
    assert applied["active"] is True
    assert refused(*command)["code"] == "bad_input"


def test_status_doctor_migrate_and_replay_have_their_documents(nightbell: Nightbell, home: Home) -> None:
    """The stack's own commands."""
    found = nightbell("status")
    assert set(found) == {"database_url", "temporal_address", "ui_url", "pid", "state"}
    assert found["state"] == "running"
    assert nightbell("doctor")["ok"] is True
    assert nightbell("migrate") == {"applied": []}
    assert nightbell("zones") == []
    assert nightbell("migrate", "--temporal") == {"registered": []}
    assert nightbell("replay")["same"] is True


def test_changed_content_is_refused_with_its_obligation(
    nightbell: Nightbell, refused: Nightbell, tmp_path: Path
) -> None:
    """One event id, two contents: the code, the sentence and the covenant's number."""
    nightbell("apply", str(bridge(tmp_path, "changed")))
    nightbell(*offer("changed", "one"))
    error = refused(*offer("changed", "one", '{"message": "6 * 8"}'))
    assert (error["code"], error["obligation"]) == ("content_changed", "OCC-4")
    assert "home/changed" in error["sentence"]


@pytest.mark.parametrize(
    ("arguments", "code", "names"),
    [
        (["show", "home/nobody"], "unknown_schedule", "home/nobody"),
        (["show", "nobody"], "bad_input", "nobody"),
        (["show", "home/no body"], "bad_input", "no body"),
        (["explain", str(UUID(int=0))], "unknown_occurrence", str(UUID(int=0))),
        (["explain", "'; DROP TABLE run; --"], "bad_input", "trigger_occurrence_id"),
        (["occurrences", "--state", "lost"], "bad_input", "lost"),
        (["reconsider", "home/nobody"], "unknown_schedule", "home/nobody"),
        (["preview", str(SCHEDULES / "bridge.toml"), "--from", "2026-01-01"], "bad_input", "from"),
        (["preview", str(SCHEDULES / "bridge.toml"), "--from", "2027-01-01T00:00:00Z", "--to", "2026-01-01T00:00:00Z"],
         "bad_input", "to"),
    ],
)  # fmt: skip
def test_what_the_law_refuses_ends_with_three(refused: Nightbell, arguments: list[str], code: str, names: str) -> None:
    """A code and a sentence that names what was wrong."""
    error = refused(*arguments)
    assert error["code"] == code
    assert names in error["sentence"]


@pytest.mark.parametrize(
    "arguments",
    [
        ["nothing"],
        ["show"],
        ["offer", "home/bridge"],
        ["occurrences", "--limit", "0"],
        ["occurrences", "--limit", "many"],
        ["apply", "no-such-file.toml"],
        ["up", "--ui-port", "70000"],
        ["replay", "no-such-folder"],
    ],
)
def test_what_cannot_be_understood_ends_with_two(refused: Nightbell, arguments: list[str]) -> None:
    """Usage: a sentence, never a traceback."""
    error = refused(*arguments, code=2)
    assert error["code"] == "usage"
    assert error["sentence"]


@pytest.mark.parametrize(
    ("event_id", "content", "source", "names"),
    [
        ("one", "not JSON", "bridge", "content"),
        ("one", "[1]", "bridge", "content"),
        ("one", '{"a": NaN}', "bridge", "content"),
        ("one", '{"a": 1e999}', "bridge", "content"),
        ("one", '{"a": "\\u0000"}', "bridge", "content"),
        ("one", '{"a": "\\ud800"}', "bridge", "content"),
        ("one", "[" * 100_000, "bridge", "content"),
        ("one", '{"a":' * 5_000 + "1" + "}" * 5_000, "bridge", "content"),
        ("one", json.dumps({"a": "x" * 3_000_000}), "bridge", "content"),
        ("", "{}", "bridge", "event_id"),
        ("x" * 100_000, "{}", "bridge", "event_id"),
        ("a\x00b", "{}", "bridge", "event_id"),
        ("one", "{}", "elsewhere", "source"),
        ("one", "{}", "", "source"),
        ("one", "{}", "x" * 100_000, "source"),
    ],
    ids=lambda value: repr(value)[:30],
)
def test_hostile_events_are_refused_by_the_name_of_their_field(
    nightbell: Nightbell, refused: Nightbell, tmp_path: Path, event_id: str, content: str, source: str, names: str
) -> None:
    """Whatever is offered, nothing is made of it but a sentence."""
    name = f"hostile-{uuid4().hex[:8]}"
    nightbell("apply", str(bridge(tmp_path, name)))
    error = refused(*offer(name, event_id, content, source))
    assert error["code"] == "bad_input"
    assert names in error["sentence"]
    assert len(error["sentence"]) < 2_000
    assert nightbell("occurrences", f"home/{name}") == []


@pytest.mark.parametrize("what", UNREADABLE)
def test_a_file_that_cannot_be_read_registers_nothing(
    nightbell: Nightbell, refused: Nightbell, tmp_path: Path, what: str
) -> None:
    """Beside a good file a bad one: neither is registered, and the sentence names the bad one or its field."""
    name = f"beside-{uuid4().hex[:8]}"
    (bad := tmp_path / "bad.toml").write_bytes(UNREADABLE[what])
    error = refused("apply", str(bridge(tmp_path, name)), str(bad))
    assert error["code"] == "bad_input"
    assert f"home/{name}" not in [one["schedule"] for one in nightbell("schedules")]


def test_a_refusal_for_a_person_is_one_line_on_standard_error(
    nightbell: Nightbell, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without --json nothing is printed on standard output when the answer is no."""
    assert run(["show", "home/nobody"]) == 3
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err == "unknown_schedule: There is no Schedule home/nobody.\n"


@pytest.mark.parametrize("command", [["schedules"], ["runs"], ["show", "home/x"], ["reconsider", "home/x"], ["replay"]])
def test_without_servers_every_command_ends_with_four(
    command: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """No stack, no settings: the sentence says what to do."""
    monkeypatch.setenv("NIGHTBELL_HOME", str(tmp_path / "nowhere"))
    assert run([*command, "--json"]) == 4
    assert json.loads(capsys.readouterr().out)["error"]["code"] == "not_running"
    assert not (tmp_path / "nowhere").exists()


@pytest.mark.parametrize("command", ["schedules", "occurrences", "runs", "status", "doctor"])
def test_tables_for_people(nightbell: Nightbell, capsys: pytest.CaptureFixture[str], command: str) -> None:
    """Without --json there is a table or a line, and no JSON."""
    assert run([command]) == 0
    printed = capsys.readouterr()
    assert printed.out.strip()
    assert not printed.out.startswith(("[", "{"))
