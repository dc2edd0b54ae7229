"""The nightly rite on a real PostgreSQL: a backup that can be restored, the proof that finishes its Run, and what a kill
leaves."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit
from uuid import UUID, uuid4

import psycopg
import pytest
from psycopg import sql

from activities.casting import StoreCasting
from activities.hops import perform
from law.identity import DecisionId, EnqueueSeq, RunId, StationAttemptId
from law.pattern import Done, EffectRefused, Failed, Json, Workplace
from nightbell.postgres_server import PostgresServer, address
from patterns import nightly_rite
from patterns.catalogue import installed
from patterns.dumping import without_password
from patterns.nightly_rite import leftovers, problem_with
from store import effects, runs
from tests.carrying import Killed, Recorded
from tests.office import NIGHTLY, Office, document

RINGS = datetime(2026, 1, 2, 1, 0, tzinfo=UTC)
PROVEN = {"latest_start_civil": "05:00", "finish_within": "2h", "finish_proof": "backup_verified"}
[RITE] = [one for one in installed() if one.key == "nightly_rite"]
WAITING = """
import sys
from law.pattern import Workplace
from patterns.nightly_rite import pattern
from tests.carrying import Recorded
run = Recorded(Workplace(*sys.argv[1:]))
run.hop(pattern(""))
"""


@pytest.fixture
def workplace(postgres_server: PostgresServer, database_url: str, tmp_path: Path) -> Workplace:
    """The real tools, the test's own database, an empty files folder."""
    return Workplace(str(tmp_path), str(postgres_server.postgres.parent), database_url)


@pytest.fixture
def empty_database(postgres_server: PostgresServer) -> Iterator[str]:
    """A database with nothing in it, to restore into."""
    name = f"restored_{uuid4().hex}"
    with psycopg.connect(address(postgres_server.home, postgres_server.port, "postgres"), autocommit=True) as admin:
        admin.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
        yield address(postgres_server.home, postgres_server.port, name)
        admin.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))


def folder(workplace: Workplace) -> Path:
    return Path(workplace.files_folder) / "backups" / "home" / "nightly-rite"


def names(workplace: Workplace) -> list[str]:
    return sorted(file.name for file in folder(workplace).iterdir())


def rung(office: Office, clock: Any) -> RunId:
    """A Run of the nightly rite that must be finished, with its proof, within two hours."""
    schedule = office.register(document(NIGHTLY, window=PROVEN))
    clock.set(RINGS)
    return RunId(UUID(office.ring(schedule).outcomes[0].run_id))


def restored(workplace: Workplace, dump: Path, database_url: str) -> None:
    """Restore a dump into an empty database, stopping at the first error."""
    url, _ = without_password(database_url)
    command = [f"{workplace.postgres_tools_folder}/pg_restore", "--no-owner", "--exit-on-error", f"--dbname={url}"]
    subprocess.run([*command, str(dump)], check=True, capture_output=True, timeout=60)


@pytest.mark.obligation("FIN-1", boundary="ordinary")
def test_fin_1_a_backup_that_was_read_back_finishes_its_run_in_time(
    office: Office, evening, clock, workplace: Workplace
) -> None:
    """Claimed, carried through the store's own Casting, settled by the registered validator: done, and timely."""
    run_id = rung(office, clock)
    claim_id = office.claim(run_id)
    work = runs.work(office.pool, claim_id)
    ending = perform(RITE, StoreCasting(office.pool, claim_id, work, workplace), {"keep": 3})
    assert isinstance(ending, Done) and ending.proof is not None
    dump = Path(workplace.files_folder) / str(ending.proof.content["path"])
    assert dump.name == f"nightbell-2026-01-02T020000-{str(run_id)[:8]}.dump"
    runs.report(office.pool, claim_id, "done", ending.proof.kind, dict(ending.proof.content), ending.note)
    settled = runs.settle(
        office.pool,
        run_id,
        EnqueueSeq(0),
        claim_id,
        DecisionId(uuid4()),
        lambda kind, content: RITE.finish_proofs[kind](content),
        RITE.returns_to_checkpoint,
    )
    assert (settled.state, settled.disposition, settled.reason) == ("done", "timely", "finished")
    assert [json.loads(file.read_bytes()) for file in dump.parent.glob("*.json")] == [dict(ending.proof.content)]


@pytest.mark.obligation("FIN-1", boundary="restart")
def test_fin_1_what_was_proven_can_be_restored(
    office: Office, evening, clock, workplace: Workplace, empty_database: str
) -> None:
    """Into an empty database: the same Occurrences, decisions and Runs; only our schema, and private to its owner."""
    rung(office, clock)
    run = Recorded(workplace)
    run.hop(RITE)
    [dump] = folder(workplace).glob("*.dump")
    restored(workplace, dump, empty_database)
    there = Office(office.pool, empty_database)
    for table in ("occurrence", "decision", "run", "delivery"):
        assert there.count(table) == office.count(table) > 0
    assert dump.stat().st_mode & 0o777 == 0o600
    result = run.effects["back_up", "backup"]
    assert result is not None and {"occurrence", "decision", "run"} <= set(result["tables"])


@pytest.mark.obligation("FIN-1", boundary="failure")
@pytest.mark.parametrize("damage", ["cut", "flipped"])
def test_fin_1_a_dump_whose_rows_are_damaged_is_no_backup(
    office: Office, evening, clock, workplace: Workplace, monkeypatch: pytest.MonkeyPatch, damage: str
) -> None:
    """Its list is at its head and still whole; reading every block finds the damage, and nothing is put in place."""
    rung(office, clock)
    real = nightly_rite.dump

    def dump_and_damage(where: Workplace, into: Path, handle: int) -> None:
        real(where, into, handle)
        size = into.stat().st_size
        if damage == "cut":
            os.truncate(into, size - 1)
        else:
            os.pwrite(handle, b"\xff" * 40, size - 200)

    monkeypatch.setattr(nightly_rite, "dump", dump_and_damage)
    run = Recorded(workplace)
    ending = run.hop(RITE)
    assert isinstance(ending, Failed) and ending.note.startswith("no backup was made: pg_restore failed: ")
    assert (run.effects, names(workplace)) == ({}, [])


@pytest.mark.obligation("FIN-1", boundary="failure")
def test_fin_1_a_store_without_its_tables_is_not_backed_up(database_url: str, workplace: Workplace) -> None:
    """A dump that lacks the rows that matter proves nothing."""
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute("DROP TABLE nightbell.run CASCADE")
    assert Recorded(workplace).hop(RITE) == Failed("no backup was made: tables: lacks the rows of run")
    assert names(workplace) == []


def test_a_wrong_password_is_said_without_the_password(workplace: Workplace, database_url: str) -> None:
    """The password goes by the environment; the tool's last words are the note."""
    parts = urlsplit(database_url)
    wrong = f"postgresql://{parts.username}:seventeen@{parts.hostname}:{parts.port}{parts.path}"
    run = Recorded(Workplace(workplace.files_folder, workplace.postgres_tools_folder, wrong))
    ending = run.hop(RITE)
    assert isinstance(ending, Failed)
    assert "password authentication failed" in ending.note and "seventeen" not in ending.note
    assert run.effects == {}


def test_a_password_in_the_url_lets_the_dump_in(workplace: Workplace, database_url: str) -> None:
    """As a production address holds it."""
    parts = urlsplit(database_url)
    line = Path(parse_qs(parts.query)["passfile"][0]).read_text().strip()
    right = f"postgresql://{parts.username}:{line.rpartition(':')[2]}@{parts.hostname}:{parts.port}{parts.path}"
    ending = Recorded(Workplace(workplace.files_folder, workplace.postgres_tools_folder, right)).hop(RITE)
    assert isinstance(ending, Done)


def test_only_the_newest_stay_and_each_removal_is_an_effect(workplace: Workplace) -> None:
    """Three nights, two kept: the first goes with its manifest, under its own name."""
    for night in (1, 2, 3):
        run = Recorded(workplace, run_id=f"{night}{night}-1", nominal_civil=f"2026-01-0{night}T02:00:00")
        assert isinstance(run.hop(RITE, keep=2), Done)
    assert run.performed == [("back_up", "backup"), ("remove_backup", "nightbell-2026-01-01T020000-11.dump")]
    kept = [f"nightbell-2026-01-0{night}T020000-{night}{night}" for night in (2, 3)]
    assert names(workplace) == [name + end for name in kept for end in (".dump", ".json")]


@pytest.mark.obligation("IDN-3", boundary="restart")
def test_idn_3_a_rite_that_comes_back_dumps_once(workplace: Workplace) -> None:
    """Killed after the backup was recorded: the next hop is answered from the record and does the rest."""
    run = Recorded(workplace, kill_at=("after", "back_up"))
    with pytest.raises(Killed):
        run.hop(RITE)
    ending = run.hop(RITE)
    assert isinstance(ending, Done) and ending.proof is not None
    assert (run.kinds(), problem_with(ending.proof.content)) == (["back_up"], "")


@pytest.mark.obligation("IDN-5", boundary="restart")
def test_idn_5_a_backup_in_doubt_holds_its_run_and_is_not_made_again(
    office: Office, evening, clock, workplace: Workplace
) -> None:
    """Killed between the backup and its record, the lost hop is contained, though its backup is whole and in place."""
    run_id = rung(office, clock)
    claim_id = office.claim(run_id)
    casting = KilledInTheEffect(office.pool, claim_id, runs.work(office.pool, claim_id), workplace)
    with pytest.raises(Killed):
        perform(RITE, casting, {})
    [dump] = (folder(workplace).parent / "nightly").glob("*.dump")
    written = dump.stat().st_mtime_ns
    with pytest.raises(EffectRefused, match="effect_in_doubt"):
        perform(RITE, StoreCasting(office.pool, claim_id, runs.work(office.pool, claim_id), workplace), {})
    settled = office.settle(run_id, claim_id, may_return=RITE.returns_to_checkpoint)
    assert (settled.state, settled.reason) == ("contained", "effect_in_doubt")
    assert dump.stat().st_mtime_ns == written


class KilledInTheEffect(StoreCasting):
    """Admitted and performed, and then the worker is gone."""

    def effect(self, kind: str, key: str, act: Callable[[], Mapping[str, Json]]) -> Mapping[str, Json]:
        assert isinstance(self.admit(StationAttemptId(uuid4()), kind, key), effects.Begin)
        act()
        raise Killed


@pytest.mark.obligation("IDN-5", boundary="failure")
def test_idn_5_what_is_in_place_is_never_written_again(workplace: Workplace) -> None:
    """The same Run again, its record lost: the backup that is there is the answer, as long as it is what its manifest says."""
    first = Recorded(workplace).hop(RITE)
    [dump] = folder(workplace).glob("*.dump")
    written = dump.stat().st_mtime_ns
    assert Recorded(workplace).hop(RITE) == first
    assert dump.stat().st_mtime_ns == written
    with dump.open("ab") as sink:
        sink.write(b"more")
    ending = Recorded(workplace).hop(RITE)
    assert ending == Failed(f"{dump.name} is in place already and is not what its manifest says")


@pytest.mark.obligation("IDN-5", boundary="restart")
def test_idn_5_a_process_killed_while_it_dumps_leaves_a_leftover_that_a_later_rite_removes(
    workplace: Workplace, database_url: str
) -> None:
    """A real process with a real `pg_dump` that waits for a lock: killed, its orphan still holds the file; when that ends
    too, the next night's rite removes what is left and keeps its own."""
    arguments = [workplace.files_folder, workplace.postgres_tools_folder, database_url]
    with psycopg.connect(database_url) as blocker:
        blocker.execute("LOCK TABLE nightbell.run IN ACCESS EXCLUSIVE MODE")
        process = subprocess.Popen(
            [sys.executable, "-c", WAITING, *arguments], env={**os.environ, "PYTHONPATH": os.getcwd()}
        )
        dumping = seen_waiting(database_url)
        process.send_signal(signal.SIGKILL)
        process.wait(timeout=30)
        assert len(names(workplace)) == 1
        assert leftovers(folder(workplace)) == []
        blocker.execute("SELECT pg_terminate_backend(%s)", (dumping,))
        await_leftover(workplace)
    left = names(workplace)
    run = Recorded(workplace, run_id="22222222-1", nominal_civil="2026-01-03T02:00:00")
    assert isinstance(run.hop(RITE), Done)
    assert run.performed == [("back_up", "backup"), ("remove_leftover", left[0])]
    assert names(workplace) == [f"nightbell-2026-01-03T020000-22222222.{end}" for end in ("dump", "json")]


def seen_waiting(database_url: str) -> int:
    """The backend of the `pg_dump` that is seen waiting for a lock."""
    waiting = "SELECT pid FROM pg_stat_activity WHERE application_name = 'pg_dump' AND wait_event_type = 'Lock'"
    limit = time.monotonic() + 30
    with psycopg.connect(database_url, autocommit=True) as connection:
        while (row := connection.execute(waiting).fetchone()) is None:
            assert time.monotonic() < limit, "pg_dump was never seen waiting"
            time.sleep(0.02)
    return row[0]


def await_leftover(workplace: Workplace) -> None:
    """Wait until nobody holds the unfinished dump any more."""
    limit = time.monotonic() + 30
    while not leftovers(folder(workplace)):
        assert time.monotonic() < limit, "the orphan never let go"
        time.sleep(0.02)


def test_a_full_disk_leaves_nothing_in_place(workplace: Workplace, monkeypatch: pytest.MonkeyPatch) -> None:
    """The tool that cannot write says so; what it wrote is taken away, and nothing is in doubt."""
    real = nightly_rite.dump
    monkeypatch.setattr(nightly_rite, "dump", lambda where, into, handle: real(where, Path("/dev/full"), handle))
    run = Recorded(workplace)
    ending = run.hop(RITE)
    assert isinstance(ending, Failed) and ending.note.endswith("No space left on device")
    assert (run.effects, names(workplace)) == ({}, [])


@pytest.mark.obligation("FIN-2", boundary="failure")
def test_fin_2_no_dump_begins_at_or_after_the_finish_bound(
    office: Office, evening, clock, workplace: Workplace
) -> None:
    """At equality the office refuses the effect, the refusal passes through the Pattern, and no file was touched."""
    run_id = rung(office, clock)
    claim_id = office.claim(run_id)
    casting = StoreCasting(office.pool, claim_id, runs.work(office.pool, claim_id), workplace)
    clock.set(RINGS + timedelta(hours=2))
    with pytest.raises(EffectRefused, match="finish_bound_passed"):
        perform(RITE, casting, {})
    assert list(Path(workplace.files_folder).iterdir()) == []
