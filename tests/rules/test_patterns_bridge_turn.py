"""The Bridge turn: what it answers, what it leaves, and what a crash leaves of it."""

import hashlib
import json
import os
from pathlib import Path

import pytest
from pydantic import ValidationError

from law.pattern import Done, EffectRefused, Failed, Workplace
from patterns.bridge_turn import ANSWERED_BY, answer_to, pattern
from tests.carrying import Killed, Recorded

BRIDGE = pattern("sha256:0")


@pytest.fixture
def run(tmp_path: Path) -> Recorded:
    """A Run over an empty files folder."""
    return Recorded(Workplace(str(tmp_path), "", ""), schedule="home/bridge", nominal_civil="")


def outbox(run: Recorded) -> Path:
    return Path(run.workplace.files_folder) / "outbox"


@pytest.mark.parametrize(
    ("message", "answer"),
    [
        ("6 * 7", "6 * 7 = 42"),
        (" (3 + 4) * 2.5 ", "(3 + 4) * 2.5 = 17.5"),
        ("0.1 + 0.2", "0.1 + 0.2 = 0.3"),
        ("123456789 * 10", "123456789 * 10 = 1234567890"),
        ("1 - 0.99999999999999999999", "1 - 0.99999999999999999999 = 0.00000000000000000001"),
        ("1 / 3", "1 / 3 = about 0.333333333333"),
        ("-4 / +8", "-4 / +8 = -0.5"),
        ("2 / 0", "2 / 0 has no value: nothing can be divided by zero."),
        ("2 ** 9999", "You said 3 words: 2 ** 9999"),
        ("...", "You said 1 word: ..."),
        ("(" * 150, "You said 1 word: " + "(" * 150),
        ("1 (2)", "You said 2 words: 1 (2)"),
        ("__import__('os')", "You said 1 word: __import__('os')"),
        ("Good evening, bell", "Good evening. I do arithmetic; of anything else I count the words."),
        ("hidden things", "You said 2 words: hidden things"),
        ("Is anybody\nat the forge?", "You said 5 words: Is anybody\nat the forge?"),
        ("  ", "You said nothing."),
    ],
)
def test_the_responder_answers_what_it_can_and_counts_the_rest(message: str, answer: str) -> None:
    """Exact arithmetic, greetings, words counted; no text is ever executed."""
    assert answer_to(message) == answer


def test_an_answer_stands_in_the_outbox_and_can_be_checked(run: Recorded) -> None:
    """Question, answer, the answer's digest and who answered; the effect's result names the file's own digest."""
    ending = run.hop(BRIDGE, message="6 * 7", reply_to="magus", mood="ignored")
    [file] = outbox(run).iterdir()
    content = json.loads(file.read_bytes())
    assert ending == Done(note=f"answered in outbox/{run.trigger_occurrence_id}.json")
    assert (content["question"], content["answer"], content["reply_to"]) == ("6 * 7", "6 * 7 = 42", "magus")
    assert content["sha256"] == f"sha256:{hashlib.sha256(content['answer'].encode()).hexdigest()}"
    assert (content["answered_by"], content["run_id"]) == (ANSWERED_BY, run.run_id)
    result = run.effects["write_answer", "answer"]
    assert result is not None
    assert result["sha256"] == f"sha256:{hashlib.sha256(file.read_bytes()).hexdigest()}"
    assert (result["path"], result["bytes"]) == (f"outbox/{file.name}", file.stat().st_size)


@pytest.mark.obligation("IDN-3", boundary="restart")
@pytest.mark.parametrize("edge", ["before", "after"])
def test_idn_3_a_turn_that_comes_back_answers_once(run: Recorded, edge: str) -> None:
    """Killed before the effect it is performed by the next hop; killed after its record, it is answered from there."""
    run.kill_at = (edge, "write_answer")
    with pytest.raises(Killed):
        run.hop(BRIDGE, message="6 * 7")
    assert isinstance(run.hop(BRIDGE, message="6 * 7"), Done)
    assert run.kinds() == ["write_answer"]
    assert [file.name for file in outbox(run).iterdir()] == [f"{run.trigger_occurrence_id}.json"]


@pytest.mark.obligation("IDN-5", boundary="restart")
def test_idn_5_an_answer_in_doubt_is_not_written_again(run: Recorded) -> None:
    """Killed between the act and its record, a second hop is refused by the office, and the refusal passes through."""
    run.kill_at = ("within", "write_answer")
    with pytest.raises(Killed):
        run.hop(BRIDGE, message="6 * 7")
    with pytest.raises(EffectRefused, match="effect_in_doubt"):
        run.hop(BRIDGE, message="6 * 7")
    assert run.kinds() == ["write_answer"]


@pytest.mark.obligation("IDN-5", boundary="failure")
def test_idn_5_what_could_not_be_written_did_not_happen(run: Recorded) -> None:
    """A file in the way of the folder: a clear failure, nothing in doubt, nothing half written."""
    outbox(run).write_text("in the way")
    assert run.hop(BRIDGE, message="hello") == Failed(
        f"{run.trigger_occurrence_id}.json could not be written: File exists"
    )
    assert (run.effects, run.performed) == ({}, [])
    assert outbox(run).read_text() == "in the way"


@pytest.mark.obligation("IDN-5", boundary="failure")
def test_idn_5_a_failure_after_the_rename_leaves_the_effect_unknown(
    run: Recorded, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Once the file is in place nobody says that nothing happened: the operator is asked."""
    real = os.fsync

    def fsync(handle: int) -> None:
        if os.path.isdir(f"/proc/self/fd/{handle}"):
            raise OSError(5, "Input/output error")
        real(handle)

    monkeypatch.setattr("patterns.placing.os.fsync", fsync)
    with pytest.raises(OSError, match="Input/output error"):
        run.hop(BRIDGE, message="6 * 7")
    assert run.effects == {("write_answer", "answer"): None}
    assert len(list(outbox(run).iterdir())) == 1


def test_a_message_beyond_all_bounds_is_refused_before_anything_happens(run: Recorded) -> None:
    """The input model is the Pattern's border."""
    with pytest.raises(ValidationError, match="at most 10000 characters"):
        run.hop(BRIDGE, message="x" * 10_001)
    assert run.effects == {}
