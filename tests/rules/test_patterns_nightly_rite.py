"""The nightly rite without a server: its proof, its names, what it keeps, what it takes for a leftover, and its secrets.

The dump itself is shown on a real PostgreSQL in `tests/decisions/test_nightly_rite.py`.
"""

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from law.pattern import DidNotHappen, Failed, Workplace
from patterns.dumping import environment, without_password
from patterns.nightly_rite import PROOF, back_up, beyond, held, leftovers, name_of, pattern, problem_with, remove
from tests.carrying import Recorded

RITE = pattern("sha256:0")
PROVEN: dict[str, Any] = {
    "path": "backups/home/nightly-rite/nightbell-2026-01-02T020000-0a1b2c3d.dump",
    "bytes": 4096,
    "sha256": "sha256:" + "0a" * 32,
    "tables": ["decision", "occurrence", "run"],
    "nominal_civil": "2026-01-02T02:00:00",
    "run_id": "0a1b2c3d-0000-5000-8000-000000000001",
    "verified_at": "2026-01-02T01:00:05.25Z",
}


def backup(folder: Path, name: str, verified_at: str = "2026-01-02T01:00:00Z") -> str:
    """A dump in place with its manifest, as far as keeping is concerned."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.dump").write_bytes(b"dump")
    manifest = {**PROVEN, "path": f"backups/home/nightly-rite/{name}.dump", "verified_at": verified_at}
    (folder / f"{name}.json").write_text(json.dumps(manifest))
    return f"{name}.dump"


@pytest.fixture
def run(tmp_path: Path) -> Recorded:
    """A Run where there is neither a server nor a tool."""
    return Recorded(Workplace(str(tmp_path), str(tmp_path / "no-tools"), "postgresql://nobody@127.0.0.1:1/none"))


@pytest.mark.obligation("FIN-1", boundary="ordinary")
def test_fin_1_a_verified_backup_is_a_proof() -> None:
    """The validator is declared under the proof's kind, and finds nothing wrong."""
    assert RITE.finish_proofs[PROOF](PROVEN) == ""


@pytest.mark.obligation("FIN-1", boundary="failure")
@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"path": "/var/nightbell-1.dump"}, "path"),
        ({"path": "backups/../../nightbell-1.dump"}, "path"),
        ({"path": "backups/home/nightly-rite/nightbell-1.dump.new"}, "path"),
        ({"bytes": 0}, "bytes"),
        ({"bytes": True}, "bytes"),
        ({"bytes": "4096"}, "bytes"),
        ({"sha256": "0a" * 32}, "sha256"),
        ({"sha256": "sha256:" + "0A" * 32}, "sha256"),
        ({"sha256": None}, "sha256"),
        ({"tables": []}, "tables"),
        ({"tables": ["occurrence", "run"]}, "tables"),
        ({"tables": "occurrence decision run"}, "tables"),
        ({"verified_at": "2026-01-02T01:00:05"}, "verified_at"),
        ({"verified_at": "yesterdayZ"}, "verified_at"),
        ({"run_id": ""}, "run_id"),
        ({"note": "trust me"}, "note"),
    ],
)
def test_fin_1_what_is_wrong_with_a_proof_is_named(change: dict[str, Any], field: str) -> None:
    """Each field that does not hold is named, and nothing is taken for nearly right."""
    assert problem_with({**PROVEN, **change}).startswith(f"{field}: ")


@pytest.mark.obligation("FIN-1", boundary="failure")
@pytest.mark.parametrize("field", sorted(PROVEN))
def test_fin_1_a_proof_without_one_of_its_fields_is_none(field: str) -> None:
    """Nothing in it may be left out."""
    assert problem_with({name: value for name, value in PROVEN.items() if name != field}) == f"{field}: Field required"
    assert problem_with({}).count("Field required") == len(PROVEN)


def test_a_backup_is_named_by_the_civil_time_that_rang_and_by_its_run(run: Recorded) -> None:
    """A repeated civil time rings twice under the same time; the Run tells them apart. An event has no civil time."""
    assert name_of(run) == "nightbell-2026-01-02T020000-0a1b2c3d.dump"
    run.nominal_civil = ""
    assert name_of(run) == "nightbell-undated-0a1b2c3d.dump"


def test_the_newest_stay_and_the_order_is_that_in_which_they_were_verified(tmp_path: Path) -> None:
    """Not the names decide but the instants; the oldest goes first."""
    for name, day in (("a", 3), ("b", 1), ("c", 2), ("d", 4)):
        backup(tmp_path, f"nightbell-{name}", f"2026-01-0{day}T01:00:00Z")
    assert beyond(tmp_path, "nightbell-d.dump", 2) == ["nightbell-b.dump", "nightbell-c.dump"]
    assert beyond(tmp_path, "nightbell-d.dump", 4) == []
    assert beyond(tmp_path, "nightbell-d.dump", 9) == []


def test_the_backup_just_made_stays_whatever_a_clock_says(tmp_path: Path) -> None:
    """A clock that was set back makes the newest look oldest."""
    backup(tmp_path, "nightbell-made", "2020-01-01T00:00:00Z")
    backup(tmp_path, "nightbell-old", "2026-01-01T00:00:00Z")
    assert beyond(tmp_path, "nightbell-made.dump", 1) == ["nightbell-old.dump"]


def test_a_dump_that_no_manifest_vouches_for_is_not_ours_to_remove(tmp_path: Path) -> None:
    """Without a manifest, or with one that cannot be read, it neither counts nor goes."""
    for name in ("one", "two", "made"):
        backup(tmp_path, f"nightbell-{name}")
    (tmp_path / "nightbell-one.json").unlink()
    (tmp_path / "nightbell-two.json").write_text('{"path": ')
    assert beyond(tmp_path, "nightbell-made.dump", 1) == []


@contextmanager
def another_process_holding(file: Path) -> Iterator[None]:
    """A living process that holds a file, as one that writes a dump does."""
    code = "import fcntl, sys; f = open(sys.argv[1], 'a'); fcntl.flock(f, fcntl.LOCK_EX); print('held', flush=True); input()"
    command = [sys.executable, "-c", code, str(file)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"held\n"
        yield
        process.kill()


@pytest.mark.obligation("IDN-5", boundary="restart")
def test_idn_5_a_leftover_is_an_unfinished_file_that_nobody_holds(tmp_path: Path) -> None:
    """Of two unfinished dumps the one whose writer lives is let be, with its manifest; it is a leftover once its writer is
    killed."""
    backup(tmp_path, "nightbell-whole")
    for name in ("dead", "living"):
        (tmp_path / f"nightbell-{name}.dump.new").write_bytes(b"half")
        (tmp_path / f"nightbell-{name}.json").write_text("{}")
    dead, living = (["nightbell-" + name + end for end in (".dump.new", ".json")] for name in ("dead", "living"))
    (tmp_path / "somebody-elses.new").touch()
    with another_process_holding(tmp_path / living[0]):
        assert leftovers(tmp_path) == dead
    assert leftovers(tmp_path) == [*dead, *living]


@pytest.mark.obligation("IDN-5", boundary="failure")
def test_idn_5_a_file_that_a_living_writer_holds_is_not_taken_from_it(run: Recorded, tmp_path: Path) -> None:
    """A second attempt beside a living one makes nothing and harms nothing."""
    folder = tmp_path / "backups"
    folder.mkdir()
    fresh = folder / f"{name_of(run)}.new"
    fresh.write_bytes(b"half a dump")
    with another_process_holding(fresh), pytest.raises(DidNotHappen, match="no backup was made"):
        back_up(run, folder)
    assert fresh.read_bytes() == b"half a dump"


@pytest.mark.obligation("IDN-5", boundary="failure")
def test_idn_5_without_its_tools_it_fails_and_says_so(run: Recorded, tmp_path: Path) -> None:
    """Nothing was begun that could be in doubt, and nothing stays behind."""
    assert run.hop(RITE) == Failed("no backup was made: pg_dump could not be run: No such file or directory")
    assert (run.effects, run.performed) == ({}, [])
    assert [file for file in tmp_path.rglob("*") if file.is_file()] == []


def test_what_cannot_be_removed_is_said_and_not_in_doubt(tmp_path: Path) -> None:
    """A folder where a file should be: it did not happen. What is gone already is gone."""
    (tmp_path / "nightbell-a.dump").mkdir()
    with pytest.raises(DidNotHappen, match=r"nightbell-a\.dump could not be removed"):
        remove(tmp_path, "nightbell-a.dump")
    assert remove(tmp_path, "nightbell-b.dump", "nightbell-b.json") == {"removed": "nightbell-b.dump"}


@pytest.mark.parametrize(
    ("url", "shown", "password"),
    [
        ("postgresql://magus:p%40ss@db:5432/n?sslmode=require", "postgresql://magus@db:5432/n?sslmode=require", "p@ss"),
        ("postgres://magus@db/n", "postgres://magus@db/n", ""),
        ("postgresql:///n?host=/run/pg&password=a+b&user=x", "postgresql:///n?host=/run/pg&user=x", "a+b"),
        ("postgresql://u:one@a,b:2/n?password=two", "postgresql://u@a,b:2/n", "two"),
        ("postgresql://:secret@db/n", "postgresql://@db/n", "secret"),
        ("postgresql://u:@[::1]:5/n", "postgresql://u@[::1]:5/n", ""),
        ("postgresql://db", "postgresql://db", ""),
    ],
)
def test_a_password_is_taken_out_of_what_a_process_list_shows(url: str, shown: str, password: str) -> None:
    """In the account or in the query; everything else stays as it was written."""
    assert without_password(url) == (shown, password)


@pytest.mark.parametrize(
    "url", ["", "host=db password=secret", "mysql://u:secret@db/n", "postgresql://db/n?sslpassword=secret"]
)
def test_what_cannot_be_shown_safely_is_not_shown_at_all(url: str) -> None:
    """Refused without repeating the secret."""
    with pytest.raises(DidNotHappen) as refused:
        without_password(url)
    assert "secret" not in str(refused.value)


def test_the_tools_get_the_password_and_none_of_our_other_secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    """What they need of the environment, and the password only where the URL held one."""
    monkeypatch.setenv("NIGHTBELL_DATABASE_URL", "postgresql://u:secret@db/n")
    monkeypatch.setenv("TEMPORAL_API_KEY", "secret")
    monkeypatch.setenv("PGSSLROOTCERT", "ca.pem")
    monkeypatch.setenv("PGPASSWORD", "outer")
    assert environment("inner") == {**environment(""), "PGPASSWORD": "inner"}
    assert environment("")["PGPASSWORD"] == "outer"
    assert environment("")["PGSSLROOTCERT"] == "ca.pem"
    assert "secret" not in " ".join(environment("").values())


def test_an_unknown_key_of_the_input_is_refused(run: Recorded) -> None:
    """A misspelt `keep` would keep seven."""
    with pytest.raises(ValidationError, match="kept"):
        run.hop(RITE, kept=3)


def test_a_lock_is_shared_with_the_child_that_inherits_the_file(tmp_path: Path) -> None:
    """The parent lets go, the child lives on: still held. It is why `pg_dump` inherits the handle."""
    file = tmp_path / "nightbell-x.dump.new"
    with held(file) as handle:
        child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE, pass_fds=(handle,))
    try:
        assert leftovers(tmp_path) == []
    finally:
        child.communicate(b"\n")
    assert leftovers(tmp_path) == [file.name]
