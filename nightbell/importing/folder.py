"""Imported files come to lie in a folder all at once or not at all, and never in place of another file.

Each is written whole beside its place and then linked to its name, which fails where the name is taken, whoever took it
and when. A refusal takes back what was linked. A crash leaves whole files or a hidden folder of drafts, and no half one.
"""

import os
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path

from law.errors import BadInput
from nightbell.importing.drafts import Draft


def lay_out(drafts: Sequence[Draft], folder: Path) -> list[Path]:
    """Write every draft into the folder, which is made where it is missing. Raises BadInput that names the file that is
    there already, or what cannot be written; then nothing was."""
    if not drafts:
        return []
    try:
        folder.mkdir(parents=True, exist_ok=True)
        refuse_taken([folder / one.file_name for one in drafts])
        drafting = Path(tempfile.mkdtemp(prefix=".importing-", dir=folder))
    except OSError as problem:
        raise BadInput(field="out", reason=f"{folder} cannot be written: {problem}") from problem
    try:
        return link_all(drafts, drafting, folder)
    finally:
        shutil.rmtree(drafting, ignore_errors=True)


def refuse_taken(files: Sequence[Path]) -> None:
    """Raise BadInput for files that are there already."""
    if taken := [str(file) for file in files if os.path.lexists(file)]:
        reason = f"{', '.join(taken[:5])} is there already and is never overwritten; nothing was written"
        raise BadInput(field="out", reason=reason)


def link_all(drafts: Sequence[Draft], drafting: Path, folder: Path) -> list[Path]:
    """Give every draft its name, or none."""
    linked: list[Path] = []
    try:
        for one in drafts:
            (drafting / one.file_name).write_text(one.text, encoding="utf-8", newline="\n")
        for one in drafts:
            os.link(drafting / one.file_name, folder / one.file_name)
            linked.append(folder / one.file_name)
    except OSError as problem:
        for file in linked:
            file.unlink(missing_ok=True)
        raise BadInput(field="out", reason=f"{folder} cannot be written: {problem}; nothing was written") from problem
    return linked
