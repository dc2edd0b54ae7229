"""Who PostgreSQL runs as, and how it reaches a folder behind closed doors without anyone opening them."""

import os
from pathlib import Path

import psutil
import pytest

from nightbell import accounts
from nightbell.accounts import (
    CAP_DAC_OVERRIDE,
    CAP_DAC_READ_SEARCH,
    Account,
    account_for,
    can_enter,
    passing_capability,
)
from nightbell.home import Home, read_state
from nightbell.problems import StackProblem
from nightbell.stack import down, up

LESSER = Account("lesser", 54_321, 54_321)


def test_a_home_behind_a_private_folder_works_and_the_folder_stays_private(tmp_path: Path) -> None:
    """Under a 0700 folder PostgreSQL runs as somebody lesser than root, and no mode outside the home changes."""
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o700)
    home = Home.at(closed / "home")
    up(home, worker_command=None)
    try:
        server = psutil.Process(read_state(home).children["postgres"].pid)
        assert server.uids().effective != 0
        assert (server.uids().effective == os.geteuid()) == (os.geteuid() != 0)
        assert closed.stat().st_mode & 0o777 == 0o700
        assert closed.stat().st_uid == os.geteuid()
    finally:
        down(home)


def test_owner_group_and_mode_decide_whether_a_folder_is_passed(tmp_path: Path) -> None:
    """A folder above that is closed to others bars the account; the home itself does not, it is opened to it."""
    home = Home.at(tmp_path / "home")
    home.path.mkdir(mode=0o700)
    tmp_path.chmod(0o700)
    assert not can_enter(home.postgres_path, LESSER, home)
    assert can_enter(home.postgres_path, Account("owner", os.geteuid(), os.getegid()), home)
    assert can_enter(Path("/usr/bin/env"), LESSER, home)


def test_the_smallest_capability_that_is_held_is_passed_on(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Reading past folders is enough; where a container has only the larger power, that; where none, a sentence."""
    monkeypatch.setattr(accounts, "permitted_capabilities", lambda: 1 << CAP_DAC_READ_SEARCH | 1 << CAP_DAC_OVERRIDE)
    assert passing_capability(LESSER, tmp_path) == CAP_DAC_READ_SEARCH
    monkeypatch.setattr(accounts, "permitted_capabilities", lambda: 1 << CAP_DAC_OVERRIDE)
    assert passing_capability(LESSER, tmp_path) == CAP_DAC_OVERRIDE
    monkeypatch.setattr(accounts, "permitted_capabilities", lambda: 0)
    with pytest.raises(StackProblem, match="account lesser may not enter the folders above") as caught:
        passing_capability(LESSER, tmp_path)
    assert caught.value.code == "home_not_reachable"


def test_whoever_is_not_root_runs_postgresql_as_themselves(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No account is looked for when none is needed."""
    monkeypatch.setattr(os, "geteuid", lambda: 1_000)
    assert account_for(Home.at(tmp_path), ()) is None


def test_root_without_any_lesser_account_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """PostgreSQL refuses root; without an account to become there is only a sentence."""
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(accounts, "ACCOUNTS", ("nobody-of-that-name",))
    with pytest.raises(StackProblem, match="refuses to run as root and none of the accounts"):
        account_for(Home.at(tmp_path / "home"), ())
