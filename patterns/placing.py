"""Files that appear whole or not at all, so that an effect's result can be known (FIN-2, IDN-5).

A file is written beside its place, synced, renamed into it, and then its folder is synced. Whatever fails before the rename
provably left nothing in place and is raised as DidNotHappen; what fails after it is raised as it is, and leaves the effect
unknown. A kill before the rename leaves at most `<name>.new`, which the next attempt overwrites; after it, the whole file.
"""

import hashlib
import os
from contextlib import suppress
from pathlib import Path

from law.pattern import DidNotHappen

FRESH = ".new"
"""What the name of a file that is not yet in place ends with."""


def put_in_place(file: Path, content: bytes) -> None:
    """Make `file` hold `content`, whole. Raises DidNotHappen where it provably does not."""
    fresh = fresh_of(file)
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        with fresh.open("wb") as sink:
            sink.write(content)
            sink.flush()
            os.fsync(sink.fileno())
        fresh.replace(file)
    except OSError as problem:
        with suppress(OSError):
            fresh.unlink(missing_ok=True)
        raise DidNotHappen(f"{file.name} could not be written: {problem.strerror or problem}") from problem
    sync_folder(file.parent)


def fresh_of(file: Path) -> Path:
    """Where `file` is written before it is in place."""
    return file.with_name(f"{file.name}{FRESH}")


def sync_folder(folder: Path) -> None:
    """Make the names in a folder survive a loss of power."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def sha256_of(content: bytes) -> str:
    """`sha256:<hex>` of some bytes."""
    return f"sha256:{hashlib.sha256(content).hexdigest()}"
