"""A Pattern beside a store that cannot be had for a while: what it did is recorded once, and nothing is called its failure."""

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest

from activities import border
from activities.casting import StoreCasting
from activities.hops import HopActivities
from law.errors import BadInput
from law.identity import RunId
from law.pattern import DidNotHappen, Workplace
from patterns.catalogue import installed
from store import runs
from store.errors import StoreProblem
from tests.office import BRIDGE, Office, document


@contextmanager
def held_elsewhere(office: Office, run_id: RunId, seconds: float) -> Iterator[None]:
    """Somebody else holds the Run's row and its effects for so long, then lets go."""
    done = threading.Event()
    with psycopg.connect(office.database_url) as connection:
        connection.execute("SELECT FROM nightbell.run WHERE run_id = %s FOR UPDATE", (run_id,))
        connection.execute("SELECT FROM nightbell.effect WHERE run_id = %s FOR UPDATE", (run_id,))
        timer = threading.Timer(seconds, lambda: (connection.rollback(), done.set()))
        timer.start()
        yield
        timer.join()
        assert done.is_set()


def casting_of(office: Office, folder: Path) -> tuple[StoreCasting, runs.Work, RunId]:
    """A claimed Bridge turn, as its Pattern sees it."""
    run_id = office.admitted_run(
        office.register(document(BRIDGE, work={**BRIDGE["work"], "input": {"message": "6 * 7"}}))
    )
    claim_id = office.claim(run_id)
    work = runs.work(office.pool, claim_id)
    return StoreCasting(office.pool, claim_id, work, Workplace(str(folder), "", "")), work, run_id


def carry(office: Office, casting: StoreCasting, work: runs.Work) -> None:
    """What the worker's thread does with it."""
    catalogue = {(one.key, one.revision): one for one in installed()}
    with ThreadPoolExecutor(1) as threads:
        HopActivities(office.pool, threads, threads, catalogue, casting.workplace, "a test").carry(casting, work)


@pytest.mark.obligation("IDN-2", boundary="failure")
def test_idn_2_an_effect_is_recorded_as_soon_as_the_store_can_be_had(office: Office, evening, tmp_path: Path) -> None:
    """The effect was performed while the store could not be asked: it is asked again, and the first answer is the only one."""
    casting, _, run_id = casting_of(office, tmp_path)
    performed: list[int] = []
    with held_elsewhere(office, run_id, 2.5):
        assert casting.effect("file", "one", lambda: performed.append(1) or {"done": True}) == {"done": True}
    assert performed == [1]
    assert office.row("SELECT state, result FROM nightbell.effect") == ("succeeded", {"done": True})


@pytest.mark.obligation("IDN-5", boundary="failure")
def test_idn_5_a_store_that_stays_away_is_no_failure_of_the_pattern(
    office: Office, evening, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is reported: the hop is lost, and the settle judges what it left, here nothing begun, hence a return."""
    monkeypatch.setattr(border, "PATIENCE_SECONDS", 0.0)
    casting, work, run_id = casting_of(office, tmp_path)
    with held_elsewhere(office, run_id, 3.0), pytest.raises(StoreProblem):
        carry(office, casting, work)
    settled = office.settle(run_id, casting.claim_id, may_return=True)
    assert (settled.state, settled.reason) == ("queued", "returned")


@pytest.mark.obligation("IDN-3", boundary="failure")
def test_idn_3_a_pattern_that_swallows_the_stores_absence_reports_nothing(
    office: Office, evening, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever a Pattern makes of an answer that it never had is not believed."""
    monkeypatch.setattr(border, "PATIENCE_SECONDS", 0.0)
    casting, work, run_id = casting_of(office, tmp_path)
    with held_elsewhere(office, run_id, 3.0), pytest.raises(StoreProblem):
        casting.checkpoint({"shard": 1})
    with pytest.raises(StoreProblem):
        carry(office, casting, work)


@pytest.mark.obligation("IDN-5", boundary="failure")
@pytest.mark.parametrize(
    "result", [{"text": "a\0b"}, {"number": float("nan")}, {"object": object()}, {"text": "\ud800"}]
)
def test_a_result_that_cannot_be_kept_is_in_doubt(
    office: Office, evening, tmp_path: Path, result: dict[str, Any]
) -> None:
    """It happened, and what came of it cannot be recorded: the effect is unknown, not succeeded, and not forgotten."""
    casting, _, _ = casting_of(office, tmp_path)
    with pytest.raises(BadInput, match="result"):
        casting.effect("file", "one", lambda: result)
    assert office.value("SELECT state FROM nightbell.effect") == "unknown"


def test_whatever_a_pattern_raises_can_be_kept_as_a_note(office: Office, evening, tmp_path: Path) -> None:
    """A NUL and half a surrogate pair in an error's text are shown as replaced, and lose nothing else."""
    casting, _, _ = casting_of(office, tmp_path)

    def act() -> dict[str, Any]:
        raise DidNotHappen("before\0after \ud800")

    with pytest.raises(DidNotHappen):
        casting.effect("file", "one", act)
    assert office.row("SELECT state, note FROM nightbell.effect") == ("failed", "before\ufffdafter ?")
