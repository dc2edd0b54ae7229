"""Which unprivileged account PostgreSQL runs under when we are root, and how it reaches its files.

PostgreSQL refuses to run as root. As root its cluster belongs to a lesser account, and only inside the home are owners
changed. Where a folder above (a 0700 /root, say) keeps that account out, the server gets one ambient capability that
lets it pass through, rather than any change to a folder that is not ours.
"""

import ctypes
import os
import pwd
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from nightbell.home import Home
from nightbell.problems import StackProblem

ACCOUNTS = ("nightbell", "postgres", "nobody")

CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH = 1, 2
PR_SET_SECUREBITS, SECBIT_NO_SETUID_FIXUP = 28, 4
PR_SET_PDEATHSIG, PR_SET_KEEPCAPS, PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE = 1, 8, 47, 2
CAPABILITY_VERSION_3 = 0x20080522


@dataclass(frozen=True, slots=True)
class Account:
    """Who a server runs as; `capability` is the one power it keeps to pass folders it may not enter, or None."""

    name: str
    uid: int
    gid: int
    capability: int | None = None


def account_for(home: Home, needs: Iterable[Path]) -> Account | None:
    """The account for PostgreSQL: None (ourselves) unless we are root. Raises StackProblem when there is no way."""
    if os.geteuid() != 0:
        return None
    found = owner_of(home.postgres_path) or first_account()
    if found is None:
        raise StackProblem(
            "no_account",
            f"PostgreSQL refuses to run as root and none of the accounts {', '.join(ACCOUNTS)} exists. "
            "Add one (`useradd --system nightbell`) or run as another user.",
        )
    barred = [path for path in needs if not can_enter(path, found, home)]
    return Account(found.name, found.uid, found.gid, passing_capability(found, barred[0]) if barred else None)


def owner_of(folder: Path) -> Account | None:
    """The account that already owns the cluster's folder, unless that is root."""
    try:
        entry = pwd.getpwuid(folder.stat().st_uid)
    except (FileNotFoundError, KeyError):
        return None
    return Account(entry.pw_name, entry.pw_uid, entry.pw_gid) if entry.pw_uid != 0 else None


def first_account() -> Account | None:
    """The first of the known unprivileged accounts that this machine has."""
    for name in ACCOUNTS:
        try:
            entry = pwd.getpwnam(name)
        except KeyError:
            continue
        return Account(name, entry.pw_uid, entry.pw_gid)
    return None


def can_enter(path: Path, account: Account, home: Home) -> bool:
    """Whether the account may pass every folder above `path`, by owner, group and mode. The home itself is opened to
    it by `give_cluster`."""
    above = [folder for folder in path.resolve().parents if folder != home.path.resolve()]
    return all(may_search(folder, account) for folder in above)


def may_search(folder: Path, account: Account) -> bool:
    """Whether owner, group and mode let the account pass this folder."""
    status = folder.stat()
    if status.st_uid == account.uid:
        return bool(status.st_mode & 0o100)
    if status.st_gid == account.gid:
        return bool(status.st_mode & 0o010)
    return bool(status.st_mode & 0o001)


def passing_capability(account: Account, barred: Path) -> int:
    """The smallest capability we hold that lets the account pass. Raises StackProblem when we hold none."""
    held = permitted_capabilities()
    for capability in (CAP_DAC_READ_SEARCH, CAP_DAC_OVERRIDE):
        if held >> capability & 1:
            return capability
    raise StackProblem(
        "home_not_reachable",
        f"PostgreSQL refuses to run as root and the account {account.name} may not enter the folders above {barred}. "
        "Use a home and an installation that others may pass through, or run as another user.",
    )


def permitted_capabilities() -> int:
    """This process's permitted capabilities as a bit set; 0 where there are none to read."""
    try:
        lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1], 16) for line in lines if line.startswith("CapPrm:")), 0)


def give_cluster(home: Home, account: Account | None) -> None:
    """Let the account into the home and give it the cluster's folder; nothing else changes hands."""
    if account is None:
        return
    os.chown(home.path, -1, account.gid)
    home.path.chmod(0o710)
    os.chown(home.postgres_path, account.uid, account.gid)


def descent(account: Account | None, death_signal: int) -> Callable[[], None]:
    """What a child does between fork and exec: become the account, and ask to be told when its parent dies."""
    libc = ctypes.CDLL(None, use_errno=True)
    parent = os.getpid()

    def descend() -> None:
        if account is not None:
            become(libc, account)
        if hasattr(libc, "prctl"):
            libc.prctl(PR_SET_PDEATHSIG, death_signal, 0, 0, 0)
            if os.getppid() != parent:  # it died before we could ask
                os._exit(1)

    return descend


def become(libc: ctypes.CDLL, account: Account) -> None:
    """Drop to the account for good, keeping one ambient capability if it needs one to pass folders above its own.

    The secure bit makes access(2), by which PostgreSQL looks for its own programs, heed that capability; where we may
    not set it, only the home may lie behind closed doors and the programs may not.
    """
    if account.capability is not None and libc.prctl(PR_SET_SECUREBITS, SECBIT_NO_SETUID_FIXUP, 0, 0, 0):
        libc.prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0)
    os.setgroups([account.gid])
    os.setgid(account.gid)
    os.setuid(account.uid)
    if account.capability is not None:
        keep_capability(libc, account.capability)


def keep_capability(libc: ctypes.CDLL, capability: int) -> None:
    """Hold exactly this capability, and pass it on through exec."""
    header = (ctypes.c_uint32 * 2)(CAPABILITY_VERSION_3, 0)
    bit = 1 << capability
    sets = (ctypes.c_uint32 * 6)(bit, bit, bit, 0, 0, 0)
    if libc.capset(header, sets) or libc.prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, capability, 0, 0):
        os._exit(1)
