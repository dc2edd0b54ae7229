"""What there is to give, said on the command line and felt at once by what waits: real servers, a real worker."""

import json
import shlex
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from nightbell.cli import run
from nightbell.home import Home
from nightbell.stack import down, up
from store.migrate import migrate

Nightbell = Callable[..., Any]
CAPABILITY = {
    "capability", "state", "admission", "sharing", "units", "protected_units", "foreground_units", "held", "leases",
    "waiting", "changed_at",
}  # fmt: skip


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Home]:
    """A whole stack with its worker, and texts for a backfill."""
    home = Home.at(tmp_path_factory.mktemp("capacity") / "home")
    up(home, migrate=migrate)
    texts = home.files_path / "texts"
    texts.mkdir(parents=True, exist_ok=True)
    for number in range(5):
        (texts / f"{number}.txt").write_text(f"the hammer fell {number} times", encoding="utf-8")
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
def apply(nightbell: Nightbell, tmp_path: Path) -> Callable[[str, str], str]:
    """Apply an external Schedule of this name, with more tables."""

    def applied(name: str, tables: str, pattern: str = 'pattern = "bridge_turn"\npattern_revision = "1"') -> str:
        file = tmp_path / f"{name}.toml"
        trigger = '[trigger]\nkind = "external"\nsource = "door"'
        work = f'[work]\n{pattern}\nowner = "magus"'
        file.write_text(f'authority = "home"\nname = "{name}"\n{trigger}\n{work}\n{tables}', encoding="utf-8")
        nightbell("apply", str(file))
        return f"home/{name}"

    return applied


def until(holds: Callable[[], Any], within_seconds: float = 20.0) -> Any:
    """Wait for it; what it found."""
    deadline = time.monotonic() + within_seconds
    while not (found := holds()):
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.2)
    return found


def state(nightbell: Nightbell, schedule: str) -> tuple[str, str, str | None]:
    """State, reason and Run of the newest Occurrence."""
    line = nightbell("occurrences", schedule)[0]
    return line["state"], line["reason"], line["run_state"]


def offer(nightbell: Nightbell, schedule: str, event: str, *more: str) -> Any:
    """Ring it once."""
    return nightbell("offer", schedule, "--source", "door", "--event-id", event, *more)


@pytest.mark.obligation("SEL-4", boundary="ordinary")
@pytest.mark.obligation("YLD-3", boundary="ordinary")
def test_a_change_of_capacity_is_felt_at_once(nightbell: Nightbell, apply: Any) -> None:
    """Work waits for a capability that nobody knows; said to be warm, it begins without being asked again."""
    schedule = apply("iron", '[class]\nservice_class = "foreground"\n[capacity]\ncapability = "iron"\nunits = 2')
    offer(nightbell, schedule, "one")
    until(lambda: state(nightbell, schedule)[:2] == ("pending", "capacity"))
    said = nightbell("capability", "set", "iron", "--units", "2", "--state", "COLD")
    assert set(said) == CAPABILITY
    assert (said["units"], said["state"], said["waiting"]) == (2, "COLD", 1)
    until(lambda: state(nightbell, schedule)[:2] == ("pending", "readiness"))
    nightbell("capability", "set", "iron", "--state", "WARM")
    until(lambda: state(nightbell, schedule) == ("admitted", "admitted", "done"))
    [line] = [one for one in nightbell("capability", "list") if one["capability"] == "iron"]
    assert (line["units"], line["held"], line["waiting"]) == (2, 0, 0)
    told = nightbell("explain", nightbell("occurrences", schedule)[0]["trigger_occurrence_id"])
    assert [one["reason"] for one in told["decisions"]][:3] == ["capacity", "readiness", "admitted"]
    [hop] = told["hops"]
    assert (hop["capability"], hop["units"]) == ("iron", 2) and hop["released_at"] is not None


@pytest.mark.obligation("YLD-2", boundary="ordinary")
@pytest.mark.obligation("YLD-5", boundary="ordinary")
@pytest.mark.obligation("OVL-5", boundary="ordinary")
def test_an_opened_quiet_window_lets_spare_work_begin_slice_by_slice(nightbell: Nightbell, apply: Any) -> None:
    """Unproven spare work waits for an operator's quiet window, then walks shard by shard; what rang meanwhile is one walk."""
    backfill = 'pattern = "embedding_backfill"\npattern_revision = "2"\ninput = { shard = 2 }'
    tables = (
        '[class]\nservice_class = "spare_capacity"\n[overlap]\npolicy = "coalesce"\n[capacity]\ncapability = "embed"'
    )
    schedule = apply("walk", tables, backfill)
    nightbell("capability", "set", "embed", "--units", "1", "--state", "WARM")
    offers = [offer(nightbell, schedule, event, "--content", '{"shard": 1}')["trigger_occurrence_id"] for event in "ab"]
    until(lambda: state(nightbell, schedule)[:2] == ("pending", "quiet_window"))
    quiet = ["quiet-window", "approve", "--capability", "embed", "--by", "magus", "--note", "nobody is awake"]
    approved = nightbell(*quiet, "--from", "2026-01-01T00:00:00Z", "--to", "2100-01-01T00:00:00Z")
    runs = until(lambda: [one for one in nightbell("runs", schedule) if one["state"] == "done"])
    assert runs[0]["enqueue_seq"] >= 4, "five texts, one a slice"
    told = [nightbell("explain", one)["occurrence"] for one in offers]
    head, member = sorted(told, key=lambda one: one["state"])
    assert (head["state"], member["state"], member["coalesced_into"]) == (
        "admitted", "coalesced", head["trigger_occurrence_id"],
    )  # fmt: skip
    assert [one["trigger_occurrence_id"] for one in head["members"]] == [member["trigger_occurrence_id"]]
    assert head["merged_input_digest"] == member["merged_input_digest"] is not None
    [line] = nightbell("quiet-window", "list")
    assert line["quiet_window_id"] == approved["quiet_window_id"]
    assert nightbell("quiet-window", "withdraw", approved["quiet_window_id"], "--by", "magus")["withdrawn_at"]
    nightbell("quiet-window", "withdraw", approved["quiet_window_id"], "--by", "magus", code=3)
    offer(nightbell, schedule, "c")
    (
        until(lambda: state(nightbell, schedule) == ("admitted", "admitted", "done")),
        "its slices have proven that it yields",
    )


@pytest.mark.obligation("YLD-4", boundary="ordinary")
def test_an_orchestrator_makes_ready_what_windowed_work_asked_for(nightbell: Nightbell, apply: Any) -> None:
    """One request within its budget; the example Orchestrator runs a command, and the work begins."""
    schedule = apply(
        "dusk",
        '[class]\nservice_class = "deadline_windowed"\n[window]\nallowed_delay = "1h"\n[capacity]\ncapability = "lamp"\n'
        "[capacity.transition]\nseconds = 30\ncost = 2.0",
    )
    nightbell("capability", "set", "lamp", "--units", "1", "--state", "COLD")
    offer(nightbell, schedule, "one")
    [asked] = until(lambda: [one for one in nightbell("readiness", "list") if one["capability"] == "lamp"])
    assert (asked["state"], asked["seconds_max"], asked["cost_max"]) == ("asked", 30, 2.0)
    lit = 'import os, json; print(json.dumps({"cost": 1.5, "note": os.environ["NIGHTBELL_CAPABILITY"] + " is lit"}))'
    command = f"{shlex.quote(sys.executable)} -c {shlex.quote(lit)}"
    [answered] = nightbell("readiness", "serve", "--once", "--command", command)
    assert (answered["state"], answered["cost_spent"], answered["note"]) == ("converged", 1.5, "lamp is lit")
    until(lambda: state(nightbell, schedule) == ("admitted", "admitted", "done"))
    assert nightbell("readiness", "serve", "--once", "--command", command) == []


@pytest.mark.obligation("CLS-2", boundary="ordinary")
@pytest.mark.obligation("CLS-2", boundary="failure")
def test_policy_lowers_or_refuses_and_never_raises(nightbell: Nightbell, apply: Any) -> None:
    """A peer above its ceiling is refused, one below it is lowered into the declared window, an operator is as before."""
    lowered = '[class]\nservice_class = "foreground"\nlowered_window = { allowed_delay = "1h" }'
    schedule = apply("gate", f'{lowered}\n[overlap]\npolicy = "bounded_parallel"\nmax = 9')
    nightbell("policy", "set", "a2a_peer", "--ceiling", "deadline_windowed")
    nightbell("policy", "set", "a2a_peer", "--principal", "stranger", "--ceiling", "none")
    [peer, stranger, own] = [
        offer(nightbell, schedule, event, "--origin", origin, "--principal", principal)["trigger_occurrence_id"]
        for event, origin, principal in (
            ("1", "a2a_peer", "friend"),
            ("2", "a2a_peer", "stranger"),
            ("3", "operator", ""),
        )
    ]
    told = [nightbell("explain", one)["occurrence"] for one in (peer, stranger, own)]
    assert [one["service_class"] for one in told] == ["deadline_windowed", "foreground", "foreground"]
    assert (told[1]["state"], told[1]["reason"], told[0]["policy_generation"]) == ("refused", "class_refused", 1)
    assert told[0]["latest_start_at"] is not None and told[0]["requested_class"] == "foreground"
    assert {one["principal"] for one in nightbell("policy", "list")} == {None, "stranger"}


@pytest.mark.parametrize(
    ("arguments", "field"),
    [
        (("capability", "set", "x", "--units", "1", "--protected", "2"), "protected_units"),
        (("capability", "set", "x", "--units", "-1"), "units"),
        (("capability", "set", "x", "--units", "1", "--state", "warm"), "state"),
        (("capability", "set", "", "--units", "1"), "capability"),
        (("quiet-window", "approve", "--from", "2099-01-01T00:00:00Z", "--to", "2098-01-01T00:00:00Z", "--by", "m"), "closes_at"),
        (("quiet-window", "approve", "--from", "2020-01-01T00:00:00Z", "--to", "2020-01-02T00:00:00Z", "--by", "m"), "closes_at"),
        (("quiet-window", "approve", "--from", "now", "--to", "2098-01-01T00:00:00Z", "--by", "m"), "from"),
        (("quiet-window", "withdraw", "nothing", "--by", "m"), "quiet_window"),
        (("policy", "set", "nobody", "--ceiling", "none"), "origin"),
        (("policy", "set", "operator", "--ceiling", "first"), "class"),
        (("policy", "set", "operator", "--ceiling", "foreground", "--above", "raise"), "above"),
    ],
)  # fmt: skip
def test_bad_input_is_refused_by_its_field_and_changes_nothing(
    nightbell: Nightbell, arguments: tuple[str, ...], field: str
) -> None:
    """Each ends with 3, names its field, and leaves the lists as they were."""
    before = [nightbell(*which) for which in (("capability", "list"), ("quiet-window", "list"), ("policy", "list"))]
    assert nightbell(*arguments, code=3)["error"]["field"] == field
    after = [nightbell(*which) for which in (("capability", "list"), ("quiet-window", "list"), ("policy", "list"))]
    assert after == before
