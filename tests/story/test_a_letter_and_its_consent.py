"""WIN-8, as it is told: admitted at 09:01 against 09:05, consented at 09:06, and 09:10 still bars. Through Temporal, with a
worker that dies between the question and the answer."""

from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import pytest
from pydantic import BaseModel

from law.identity import DecisionId, RunId, ScheduleName
from law.pattern import Casting, Done, Ending, Pattern
from nightbell import wiring
from store import ledger, offers, parking, registry
from store.authority import register_patterns
from tests.office import document
from tests.serving import until
from tests.story.conftest import House

LETTER: dict[str, Any] = {
    "authority": "home",
    "trigger": {"kind": "external", "source": "desk"},
    "class": {"service_class": "deadline_windowed"},
    "window": {"allowed_delay": "5m", "finish_within": "10m"},
    "work": {"pattern": "letter", "pattern_revision": "1", "owner": "magus"},
}


def at(minute: int) -> datetime:
    return datetime(2026, 1, 2, 9, minute, tzinfo=UTC)


class Letter(BaseModel):
    """To whom."""

    to: str = "the forge"


def write_and_send(casting: Casting, letter: Letter) -> Ending:
    """Draft, checkpoint, ask, send: the draft is not written again when the answer has come."""
    if casting.checkpoint_state is None:
        casting.effect("draft", "draft", lambda: appended(casting, "drafted"))
        casting.checkpoint({"draft": letter.to})
    consent = casting.await_consent("send", f"May the letter to {letter.to} go out?")
    casting.effect("send", "letter", lambda: appended(casting, "sent"), consent="send")
    return Done(note=f"sent, as {consent.answered_by} allowed")


def appended(casting: Casting, word: str) -> Mapping[str, Any]:
    """The file that judges how often something happened."""
    with (Path(casting.workplace.files_folder) / "letters.txt").open("a", encoding="utf-8") as file:
        file.write(f"{word} {casting.run_id}\n")
    return {"word": word}


@pytest.fixture
def letters(house: House, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A worker that carries letters; the file that they leave."""
    pattern = Pattern("letter", "1", Letter, write_and_send, f"sha256:{'0' * 64}")
    monkeypatch.setattr(wiring, "installed", lambda: (pattern,))
    register_patterns(house.office.pool, wiring.installed_patterns())
    return house.settings.files_folder / "letters.txt"


def offer(house: House, schedule: ScheduleName) -> None:
    offers.offer(house.office.pool, offers.Offer(schedule, "desk", str(uuid4())), DecisionId(uuid4()))


def run(house: House, schedule: ScheduleName) -> dict[str, Any]:
    """The Run, or nothing yet."""
    return next(iter(ledger.runs(house.office.pool, schedule)), {"state": None})


@pytest.mark.obligation("WIN-8", boundary="ordinary")
@pytest.mark.obligation("WIN-8", boundary="restart")
@pytest.mark.obligation("IDN-3", boundary="restart")
@pytest.mark.parametrize(("answered_at", "state"), [(6, ("done", "timely")), (10, ("failed", "unmet"))])
async def test_win_8_as_it_is_told(
    house: House, clock: Any, letters: Path, answered_at: int, state: tuple[str, str]
) -> None:
    """The worker that asked is gone when the answer comes; another carries the same Invocation on, from its checkpoint."""
    clock.set(at(0))
    tables = {**LETTER, "name": house.settings.task_queue}
    schedule = registry.register(house.office.pool, document(tables), DecisionId(uuid4())).schedule
    offer(house, schedule)
    clock.set(at(1))
    async with house.worker():
        await until("it is parked", lambda: run(house, schedule)["state"] == "parked")
    [waits] = parking.awaited(house.office.pool)
    assert waits.question == {"question": "May the letter to the forge go out?"}
    clock.set(at(answered_at))
    run_id = RunId(UUID(str(run(house, schedule)["run_id"])))
    parking.answer(
        house.office.pool, run_id, "consent", "send", "approved", "magus", "read it", None, DecisionId(uuid4())
    )
    async with house.worker():
        await until("it is settled", lambda: run(house, schedule)["state"] in ("done", "failed"))
    settled = run(house, schedule)
    assert (settled["state"], settled["disposition"], settled["enqueue_seq"]) == (*state, 1)
    assert settled["run_id"] == run_id, "the same Invocation"
    words = [line.split()[0] for line in letters.read_text(encoding="utf-8").splitlines()]
    assert words == (["drafted", "sent"] if answered_at < 10 else ["drafted"])
