"""A drawing comes to lie in its place whole or not at all: it is written beside it and then renamed.

Only a name that ends in `.svg` is taken, so that a slip of the hand replaces an older drawing and never a Schedule file.
A crash leaves the old file, and at most a hidden draft beside it.
"""

import os
import tempfile
from contextlib import suppress
from pathlib import Path

from law.errors import BadInput

PERMISSIONS = 0o666
"""What a new file is offered; the process's mask takes from it."""


def check_place(file: Path) -> None:
    """Raise BadInput naming `svg` for a place that can never hold a drawing."""
    try:
        problem = problem_of(file)
    except OSError as found:
        problem = f"{file} cannot be used: {found}"
    if problem:
        raise BadInput(field="svg", reason=f"{problem}; nothing was written")


def problem_of(file: Path) -> str:
    """What is wrong with a place, or ''."""
    if file.suffix.lower() != ".svg":
        return f"{file} does not end in .svg"
    if file.exists() and not file.is_file():
        return f"{file} is there already and is no file"
    return "" if file.parent.is_dir() else f"{file.parent} is not a folder"


def write_whole(file: Path, text: str) -> None:
    """Put `text` in its place. Raises BadInput naming `svg` where that cannot be done; then nothing was."""
    try:
        descriptor, name = tempfile.mkstemp(prefix=".drawing-", suffix=".svg", dir=file.parent)
    except OSError as problem:
        raise BadInput(field="svg", reason=f"{file} cannot be written: {problem}") from problem
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8", newline="\n") as draft:
            draft.write(text)
            draft.flush()
            os.fsync(draft.fileno())
        os.chmod(name, PERMISSIONS & ~mask())
        os.replace(name, file)
    except OSError as problem:
        with suppress(OSError):
            os.unlink(name)
        raise BadInput(field="svg", reason=f"{file} cannot be written: {problem}") from problem


def mask() -> int:
    """The process's mask, which can only be read by setting it."""
    known = os.umask(0o077)
    os.umask(known)
    return known
