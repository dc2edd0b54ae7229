"""Recorded histories of every path, replayed against today's code; and what a careless change would have said."""

import base64
import json
import re
from pathlib import Path
from typing import Any

import pytest

from law.errors import BadInput
from nightbell.plugin import WORKFLOWS
from nightbell.replay import read_history, replay_folder, replay_one
from tests.timers import changed

HISTORIES = Path(__file__).parent.parent / "histories"
PATHS = {
    "admitted-and-duplicate", "missed", "suppressed", "crash-after-persist", "crash-after-admit", "activated-and-refused",
    "continued-as-new-before", "continued-as-new-after", "hop-done", "hop-lost-and-returned", "relay",
    "yielded", "hop-yielded",
}  # fmt: skip


def events(name: str) -> list[dict[str, Any]]:
    """The events of one history."""
    return json.loads((HISTORIES / f"{name}.json").read_text(encoding="utf-8"))["events"]


def activities(name: str) -> list[str]:
    """The names of the activities it asked, in order."""
    scheduled = (event.get("activityTaskScheduledEventAttributes") for event in events(name))
    return [one["activityType"]["name"] for one in scheduled if one]


def with_other_workflow(other: type) -> tuple[type, ...]:
    """Our workflows with one of them changed."""
    name = other.__mro__[1].__name__
    return (*(one for one in WORKFLOWS if one.__name__ != name), other)


@pytest.mark.obligation("EVD-1", boundary="restart")
async def test_every_recorded_path_is_replayed_by_todays_code() -> None:
    """Every history, in the production sandbox: the same commands, the same questions, the same timers."""
    found = await replay_folder(HISTORIES)
    assert {one.workflow_id for one in found} == PATHS
    assert {one.workflow_id: one.problems for one in found if one.problems} == {}


def test_the_histories_are_of_what_their_names_say() -> None:
    """A crash left an attempt that was tried again; a duplicate was asked twice; the one begins where the other ended."""
    for name in ("crash-after-persist", "crash-after-admit"):
        started = [
            event["activityTaskStartedEventAttributes"]
            for event in events(name)
            if "activityTaskStartedEventAttributes" in event
        ]
        assert max(one["attempt"] for one in started) > 1, name
    assert activities("admitted-and-duplicate").count("offer") == 2
    assert activities("activated-and-refused").count("activate") == 3
    assert "activityTaskFailedEventAttributes" in json.dumps(events("activated-and-refused"))
    assert activities("hop-done") == activities("hop-yielded") == ["claim", "perform", "settle"]
    assert base64.b64encode(b'"parked: yielded"').decode() in json.dumps(events("hop-yielded"))
    assert activities("yielded").count("publish") >= 2, "two slices, handed over one by one"
    assert "timeout" in json.dumps(events("hop-lost-and-returned")).lower()
    last, first = events("continued-as-new-before")[-1], events("continued-as-new-after")[0]
    continued = last["workflowExecutionContinuedAsNewEventAttributes"]
    started = first["workflowExecutionStartedEventAttributes"]
    assert started["originalExecutionRunId"] == continued["newExecutionRunId"]


def test_no_history_names_a_machine_or_carries_an_input() -> None:
    """Ids, digests and instants only: no process, no folder, and nothing of what an event said."""
    for file in HISTORIES.glob("*.json"):
        text = file.read_text(encoding="utf-8")
        assert not re.search(r'"\d+@', text), file.name
        assert not re.search(r'"/(?:tmp|home|root|work)/', text), file.name
        assert "NiAqIDc" not in text, f"{file.name} carries the message of a Bridge turn"  # base64 of "6 * 7"


@pytest.mark.parametrize(
    ("other", "history", "says"),
    [
        (changed.DecidesFirst, "admitted-and-duplicate", "differ"),
        (changed.AsksAboutAnotherRevision, "admitted-and-duplicate", "asks decide"),
        (changed.SleepsLonger, "continued-as-new-before", "timer"),
        (changed.SettlesWithoutPerforming, "hop-done", "differ"),
        (changed.LooksOnceMore, "relay", "differ"),
    ],
    ids=lambda value: getattr(value, "__name__", value),
)
async def test_a_careless_change_is_noticed(other: type, history: str, says: str) -> None:
    """Commands in another order, left out or added; an activity asked something else; a timer for another time."""
    replayed = await replay_one(read_history(HISTORIES / f"{history}.json"), with_other_workflow(other))
    assert replayed.problems
    assert says in " ".join(replayed.problems)


async def test_what_temporals_own_replayer_overlooks_is_what_we_compare() -> None:
    """The changed question and the changed timer pass Temporal's replayer: without the comparison they would be deployed."""
    from temporalio.worker import Replayer

    from nightbell.plugin import sandbox

    for other, history in (
        (changed.AsksAboutAnotherRevision, "admitted-and-duplicate"),
        (changed.SleepsLonger, "continued-as-new-before"),
    ):
        replayer = Replayer(workflows=with_other_workflow(other), workflow_runner=sandbox())
        result = await replayer.replay_workflow(
            read_history(HISTORIES / f"{history}.json"), raise_on_replay_failure=False
        )
        assert result.replay_failure is None, other.__name__


@pytest.mark.parametrize("content", ["", "[]", "{", '{"events": 7}', '{"events": [{"eventId": "x"}]}', "\x00"])
async def test_a_file_that_is_no_history_is_named(tmp_path: Path, content: str) -> None:
    """The file's name and the reason, and no traceback."""
    (file := tmp_path / "broken.json").write_text(content, encoding="utf-8")
    with pytest.raises(BadInput, match=r"broken\.json"):
        await replay_folder(tmp_path)
    assert file.exists()


async def test_an_empty_folder_is_no_proof(tmp_path: Path) -> None:
    """Nothing replayed is not the same as nothing differing."""
    with pytest.raises(BadInput, match="holds no histories"):
        await replay_folder(tmp_path)
