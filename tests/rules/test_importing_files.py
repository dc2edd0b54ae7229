"""`nightbell import`: every file whole, checked and new, or none; what is printed is what was done. No server is needed."""

import io
import json
import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import typer
from pydantic import BaseModel

from law.errors import BadInput
from law.schedule import read_schedule
from nightbell import cli
from nightbell.commands import firings, importing
from nightbell.importing import folder
from nightbell.importing.crontab import read_crontab
from nightbell.importing.drafts import COMMENT_LENGTH_MAX, Terms, chosen_pattern, drafted
from nightbell.importing.source import FILE_LENGTH_MAX
from patterns.catalogue import installed

CRONTAB = """\
MAILTO=ops@example.org
30 2 * * 1-5 /usr/local/bin/backup.sh --all
*/15 * * * * /usr/bin/poll
@reboot /usr/bin/agent
"""
CRONJOB = """\
apiVersion: batch/v1
kind: CronJob
metadata: {name: report}
spec: {schedule: "0 3 * * *", timeZone: Europe/Bratislava, startingDeadlineSeconds: 600, jobTemplate: {}}
"""
DESCRIBED = (Path(__file__).parent / "cases" / "temporal_schedules.json").read_text(encoding="utf-8")
UNION = json.dumps(json.loads(DESCRIBED)["schedules"]["union"])

CONTRACT = {"source", "kind", "schedules", "not_imported", "not_carried_over", "passed_over"}
SCHEDULE = {"file", "schedule", "from", "original", "next_firings", "not_carried_over"}
LOSS = {"what", "because", "instead"}

Command = Callable[..., Any]


@pytest.fixture(autouse=True)
def commands(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The command line with nothing but what needs no server, in a folder of its own."""
    app = typer.Typer()
    importing.add_to(app)
    firings.add_to(app)
    monkeypatch.setattr(cli, "app", app)
    monkeypatch.setenv("NIGHTBELL_HOME", str(tmp_path / "nowhere"))
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def nightbell(capsys: pytest.CaptureFixture[str]) -> Command:
    """Run one command with `--json`; its document, after its exit code was as expected."""

    def command(*arguments: str, code: int = 0) -> Any:
        left_with = cli.run([*arguments, "--json"])
        printed = capsys.readouterr()
        assert left_with == code, printed
        return json.loads(printed.out)

    return command


def put(name: str, content: str | bytes) -> str:
    """A file to import."""
    Path(name).write_bytes(content if isinstance(content, bytes) else content.encode())
    return name


def crontab(name: str = "tab", content: str | bytes = CRONTAB, pattern: str = "nightly_rite") -> list[str]:
    return ["import", "crontab", put(name, content), "--zone", "Europe/Bratislava", "--pattern", pattern]


def written(out: str = "schedules-imported") -> list[str]:
    """Everything that lies in a folder, hidden files too."""
    return sorted(path.name for path in Path(out).iterdir()) if Path(out).exists() else []


def test_a_crontab_becomes_files_that_can_be_previewed(nightbell: Command) -> None:
    """The document has its fields; each file is lawful, carries its line as a comment, and rings as it was said to."""
    found = nightbell(*crontab())
    assert set(found) == CONTRACT
    assert [one["schedule"] for one in found["schedules"]] == ["home/backup", "home/poll"]
    assert written() == ["backup.toml", "poll.toml"]
    [refused] = found["not_imported"]
    assert "@reboot" in refused["where"]
    assert {"MAILTO", "the commands and their environment"} == {one["what"] for one in found["not_carried_over"]}
    for one in found["schedules"]:
        assert set(one) == SCHEDULE
        assert all(set(loss) == LOSS for loss in one["not_carried_over"])
        text = Path(one["file"]).read_text(encoding="utf-8")
        document = read_schedule(text)
        assert f"#     {one['original'][0]}" in text
        assert "# Could not carry over unbounded overlap, because" in text
        assert (document.schedule, document.work.owner, document.work.pattern) == (
            one["schedule"],
            "home",
            "nightly_rite",
        )
        rung = nightbell("preview", one["file"], "--from", one["next_firings"][0]["at"], "--limit", "3")["firings"]
        assert [firing["at"] for firing in rung] == [firing["at"] for firing in one["next_firings"]]


def test_cronjobs_and_temporal_schedules_become_files_too(nightbell: Command) -> None:
    """With an owner, an authority and a folder of their own."""
    options = ["--pattern", "nightly_rite", "--pattern-revision", "1", "--owner", "magus", "--authority", "office"]
    k8s = nightbell("import", "k8s", put("job.yaml", CRONJOB), *options, "--out", "deep/out")
    temporal = nightbell("import", "temporal", put("union.json", UNION), *options, "--out", "deep/out")
    assert written("deep/out") == ["report.toml", "union-2.toml", "union-3.toml", "union.toml"]
    for one in [*k8s["schedules"], *temporal["schedules"]]:
        document = read_schedule(Path(one["file"]).read_text(encoding="utf-8"))
        assert (document.authority, document.work.owner) == ("office", "magus")
        assert len(one["next_firings"]) == 3
    named = nightbell("import", "temporal", "union.json", *options, "--name", "other", "--out", "deep/out")
    assert named["schedules"][0]["schedule"] == "office/other"


def test_standard_input_is_a_file_too(nightbell: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    """`crontab -l | nightbell import crontab -`."""
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(CRONTAB.encode())))
    found = nightbell("import", "crontab", "-", "--zone", "UTC", "--pattern", "nightly_rite")
    assert (found["source"], len(found["schedules"])) == ("standard input", 2)


def test_a_file_that_is_there_is_never_overwritten(nightbell: Command) -> None:
    """It is named, and nothing beside it is written either."""
    Path("schedules-imported").mkdir()
    Path("schedules-imported/poll.toml").symlink_to("nowhere")
    error = nightbell(*crontab(), code=3)["error"]
    assert (error["code"], error["field"]) == ("bad_input", "out")
    assert "poll.toml" in error["sentence"]
    assert written() == ["poll.toml"]
    Path("schedules-imported/poll.toml").unlink()
    nightbell(*crontab())
    before = {name: Path("schedules-imported", name).read_bytes() for name in written()}
    nightbell(*crontab(content="0 9 * * * /usr/bin/poll\n0 9 * * * new\n"), code=3)
    assert {name: Path("schedules-imported", name).read_bytes() for name in written()} == before


def test_a_file_that_appears_meanwhile_is_not_overwritten_either(
    nightbell: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever comes second takes back what was linked before."""
    monkeypatch.setattr(folder, "refuse_taken", lambda files: files[1].write_text("theirs"))
    error = nightbell(*crontab(), code=3)["error"]
    assert "poll.toml" in error["sentence"]
    assert written() == ["poll.toml"]
    assert Path("schedules-imported/poll.toml").read_text() == "theirs"


def test_a_folder_that_cannot_be_is_named(nightbell: Command) -> None:
    """A file where a folder should be."""
    put("in-the-way", "x")
    error = nightbell(*crontab(), "--out", "in-the-way/out", code=3)["error"]
    assert (error["code"], error["field"]) == ("bad_input", "out")


def test_nothing_to_import_is_done_and_nothing_importable_is_refused(nightbell: Command) -> None:
    """Exit 0 for an empty file, 3 where something was there and nothing could be carried over; no folder is made."""
    for empty in ("", "# nothing\n\n", "MAILTO=x\n"):
        found = nightbell(*crontab(content=empty))
        assert (found["schedules"], found["not_imported"]) == ([], [])
    found = nightbell(*crontab(content="@reboot x\n61 * * * * y\n"), code=3)
    assert (found["schedules"], len(found["not_imported"])) == ([], 2)
    other = nightbell("import", "k8s", put("x.yaml", "kind: Secret\n"), "--pattern", "nightly_rite")
    assert other["passed_over"] == ["document 1, a Secret"]
    assert not Path("schedules-imported").exists()


def test_what_rings_no_more_is_not_imported(nightbell: Command) -> None:
    """A Schedule that is over has no next firing."""
    over = {"spec": {"cronString": ["0 1 * * *"], "endTime": "2020-01-01T00:00:00Z"}}
    arguments = ["import", "temporal", put("over.json", json.dumps(over)), "--pattern", "nightly_rite"]
    [refused] = nightbell(*arguments, code=3)["not_imported"]
    assert "nothing rings any more" in refused["reason"]


@pytest.mark.parametrize(
    ("options", "field", "names"),
    [
        ([], "pattern", "nightly_rite revision 1"),
        (["--pattern", "unheard"], "pattern", "nightly_rite revision 1"),
        (["--pattern", "nightly_rite", "--pattern-revision", "9"], "pattern", "'9'"),
        (["--pattern", "nightly_rite", "--authority", "No Slug"], "authority", "No Slug"),
    ],
)
def test_what_no_foreign_file_says_must_be_given(
    nightbell: Command, options: list[str], field: str, names: str
) -> None:
    """The Pattern is required and is one that is installed; a refusal lists them."""
    error = nightbell("import", "crontab", put("tab", CRONTAB), "--zone", "UTC", *options, code=3)["error"]
    assert (error["code"], error["field"]) == ("bad_input", field)
    assert names in error["sentence"]
    assert written() == []


@pytest.mark.parametrize(
    ("kind", "content", "names"),
    [
        ("crontab", b"0 1 * * * \xff\xfe", "UTF-8"),
        ("crontab", b"#" * (FILE_LENGTH_MAX + 1), "longer"),
        ("k8s", b"\xff\xfe\x00", "UTF-8"),
        ("k8s", b"a: [1", "YAML"),
        ("k8s", b"a: &a [*a]", "values"),
        ("k8s", b"- 1", "document 1"),
        ("temporal", b"not JSON", "JSON"),
        ("temporal", b"\x00", "JSON"),
        ("temporal", b"[7]", "schedule 1"),
    ],
)
def test_what_cannot_be_read_writes_nothing(nightbell: Command, kind: str, content: bytes, names: str) -> None:
    """One sentence that names the field."""
    zone = [] if kind == "temporal" else ["--zone", "UTC"]
    error = nightbell("import", kind, put("bad", content), *zone, "--pattern", "nightly_rite", code=3)["error"]
    assert error["code"] == "bad_input"
    assert names in error["sentence"]
    assert written() == []


@pytest.mark.parametrize(
    "arguments",
    [
        ["import"],
        ["import", "crontab", "tab"],
        ["import", "crontab", "no-such-file", "--zone", "UTC"],
        ["import", "crontab", ".", "--zone", "UTC"],
        ["import", "anacron", "tab"],
        ["import", "crontab", "tab", "--zone", "UTC", "--parallel-max", "0"],
    ],
)
def test_usage_ends_with_two(nightbell: Command, arguments: list[str]) -> None:
    """No zone, no file, no such source."""
    put("tab", CRONTAB)
    assert nightbell(*arguments, code=2)["error"]["code"] == "usage"


def test_control_characters_and_markup_reach_neither_file_nor_terminal(
    nightbell: Command, capsys: pytest.CaptureFixture[str]
) -> None:
    """A hostile comment cannot end its line, colour a terminal, or grow without bound."""
    line = "0 1 * * * /bin/a \x1b[31m[red]\u2028\u202e\rowner = 1" + "x" * 5_000
    assert cli.run(crontab(content=f"{line}\n61 * * * * \x1b[2J\n0 1 * * * b \x00\x07\n")) == 0
    printed = capsys.readouterr()
    assert "\x1b" not in printed.out
    assert "not imported: line 2" in printed.out
    for name in written():
        text = Path("schedules-imported", name).read_text(encoding="utf-8")
        read_schedule(text)
        assert all(one.isprintable() or one == "\n" for one in text)
        assert max(map(len, text.split("\n"))) <= 12 * COMMENT_LENGTH_MAX


def test_the_report_for_a_person_says_it_all(nightbell: Command, capsys: pytest.CaptureFixture[str]) -> None:
    """Each file with its next firings and losses, what was not imported, and what to do next."""
    assert cli.run(crontab()) == 0
    said = capsys.readouterr().out
    assert said.count("  rings ") == 6
    assert "home/backup  schedules-imported/backup.toml  (line 2)" in said
    assert "could not carry over unbounded overlap, because" in said
    assert "of the whole file: could not carry over MAILTO, because" in said
    assert "not imported: line 4: @reboot" in said
    assert "2 written, 1 not imported." in said
    assert cli.run(crontab(content="@reboot x")) == 3
    assert "Nothing could be imported." in capsys.readouterr().out


class Needy(BaseModel):
    """An input that must be given."""

    target: str


def terms(**changes: Any) -> Terms:
    pattern = chosen_pattern("nightly_rite", "", installed())
    return Terms("home", "home", replace(pattern, **changes))


def test_a_pattern_that_needs_input_is_said_to() -> None:
    """The file is written, since it is lawful; that it cannot work as it stands is said in it."""
    found = read_crontab("0 1 * * * x", "UTC", False, 10)
    [draft], _ = drafted(found, "tab", terms(input_model=Needy), datetime(2027, 1, 1, tzinfo=UTC))
    assert "fill in [work] input" in draft.text
    [draft], _ = drafted(found, "tab", terms(), datetime(2027, 1, 1, tzinfo=UTC))
    assert "[work] input" not in draft.text


def test_one_revision_is_chosen_and_several_must_be_told_apart() -> None:
    """The refusal lists them."""
    [rite] = [one for one in installed() if one.key == "nightly_rite"]
    later = replace(rite, revision="2")
    assert chosen_pattern("nightly_rite", "", [rite]) is rite
    assert chosen_pattern("nightly_rite", "2", [rite, later]) is later
    with pytest.raises(BadInput, match="revision 1, nightly_rite revision 2"):
        chosen_pattern("nightly_rite", "", [rite, later])


def test_what_the_law_refuses_is_not_imported() -> None:
    """Jitter that could use up a window, an owner with no name: the law's own reason stands in the report."""
    found = read_crontab("0 1 * * * x", "UTC", False, 10)
    tables: Mapping[str, Any] = {**found.entries[0].tables, "jitter": {"mode": "bounded", "max": "10m"}}
    hasty = replace(found, entries=(replace(found.entries[0], tables=tables),))
    drafts, rest = drafted(hasty, "tab", terms(), datetime(2027, 1, 1, tzinfo=UTC))
    assert not drafts
    assert "jitter" in rest.refused[0].reason


def test_the_example_in_the_documentation_is_what_is_written(
    nightbell: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    """docs/adopting.md: its crontab becomes its file."""
    page = (Path(__file__).parents[2] / "docs" / "adopting.md").read_text(encoding="utf-8")
    [before], [after] = (
        re.findall(rf"^```{name}\n(.*?)^```", page, re.MULTILINE | re.DOTALL) for name in ("crontab", "toml")
    )
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(before.encode())))
    nightbell("import", "crontab", "-", "--zone", "Europe/Bratislava", "--pattern", "nightly_rite")
    assert Path("schedules-imported/backup.toml").read_text(encoding="utf-8") == after
