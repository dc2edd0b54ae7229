"""The nightly rite: a dated backup of the store that was read back before it counts, and the N newest kept (FIN-1).

`pg_dump` writes beside the place; `pg_restore` must list our tables in it and read every block of it; its manifest is put in
place, and then the dump is renamed beside it. That rename is the effect: whatever fails before it left no backup, and a dump
in place always has its manifest and is never written again. Removing is an effect too, one for each file.

While a dump is written its file is locked, by this process and by the `pg_dump` that writes it. So a leftover is known for
certain: an unfinished file that nobody holds. A kill before the rename leaves one, for a later rite to remove; the Run itself
is held for the operator, since what it began is in doubt (IDN-5).
"""

import fcntl
import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from law.pattern import Casting, DidNotHappen, Done, Ending, Failed, Json, Pattern, Proof
from patterns.dumping import dump, tables_read_back
from patterns.placing import FRESH, fresh_of, put_in_place, sync_folder

PROOF = "backup_verified"
TABLES_THAT_MUST_BE_THERE = frozenset({"occurrence", "decision", "run"})
FOLDER = "backups"


class Rite(BaseModel):
    """How many backups stay."""

    model_config = ConfigDict(extra="forbid")

    keep: int = Field(default=7, ge=1, le=10_000)


def check_instant(text: str) -> str:
    """An ISO 8601 instant with a `Z`."""
    if not text.endswith("Z"):
        raise ValueError("an instant ends with Z")
    datetime.fromisoformat(text)
    return text


def check_tables(names: list[str]) -> list[str]:
    """Without these it is no backup of our store."""
    if missing := sorted(TABLES_THAT_MUST_BE_THERE - set(names)):
        raise ValueError(f"lacks the rows of {', '.join(missing)}")
    return names


class BackupVerified(BaseModel):
    """The proof `backup_verified`, and the manifest beside each dump. `path` is relative to the files folder."""

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid")

    path: str = Field(pattern=rf"^{FOLDER}/([a-z0-9_-][a-z0-9._-]*/)+nightbell-[A-Za-z0-9-]+\.dump$")
    bytes: int = Field(gt=0)
    sha256: str = Field(pattern=r"^sha256:[0-9a-f]{64}$")
    tables: Annotated[list[str], AfterValidator(check_tables)]
    nominal_civil: str
    run_id: str = Field(min_length=1)
    verified_at: Annotated[str, AfterValidator(check_instant)]


def perform(casting: Casting, rite: Rite) -> Ending:
    """Dump, verify, put in place; then let leftovers and the oldest go."""
    folder = Path(casting.workplace.files_folder) / FOLDER / casting.schedule
    said = ""
    try:
        made = casting.effect("back_up", "backup", lambda: back_up(casting, folder))
        said = f"{made['path']}, {made['bytes']} bytes, {len(made['tables'])} tables"
        for name in leftovers(folder):
            casting.effect("remove_leftover", name, lambda name=name: remove(folder, name))
        for name in beyond(folder, Path(made["path"]).name, rite.keep):
            casting.effect("remove_backup", name, lambda name=name: remove(folder, name, manifest_of(name)))
    except DidNotHappen as problem:
        return Failed(f"{problem}; in place: {said}" if said else str(problem))
    return Done(Proof(PROOF, made), note=said)


def back_up(casting: Casting, folder: Path) -> Mapping[str, Json]:
    """Put one verified backup in place. Raises DidNotHappen as long as none is."""
    file = folder / name_of(casting)
    if file.exists():
        return found_in_place(file)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with held(fresh_of(file)) as handle:
            dump(casting.workplace, fresh_of(file), handle)
            made = read_back(casting, file)
            put_in_place(file.with_name(manifest_of(file.name)), json.dumps(made, indent=1).encode())
            fresh_of(file).replace(file)
    except (OSError, DidNotHappen) as problem:
        raise DidNotHappen(f"no backup was made: {problem}") from problem
    sync_folder(folder)
    return made


def name_of(casting: Casting) -> str:
    """Named by the civil time that rang, and by the Run."""
    rang = casting.nominal_civil.replace(":", "") or "undated"
    return f"nightbell-{rang}-{casting.run_id.partition('-')[0]}.dump"


def manifest_of(name: str) -> str:
    """The name of a dump's manifest."""
    return f"{name.removesuffix('.dump')}.json"


def found_in_place(file: Path) -> Mapping[str, Json]:
    """The manifest of this Run's own backup, from an attempt whose record was lost."""
    made = manifest_in(file)
    if made is None or made.sha256 != digest_of_file(file):
        raise DidNotHappen(f"{file.name} is in place already and is not what its manifest says")
    return made.model_dump()


@contextmanager
def held(fresh: Path) -> Iterator[int]:
    """An empty private file, locked while anybody writes it: the lock goes with the handle to the child. What fails
    takes it away again. Raises BlockingIOError while another process holds it."""
    fresh.touch(mode=0o600)
    with fresh.open("r+b") as sink:
        fcntl.flock(sink, fcntl.LOCK_EX | fcntl.LOCK_NB)
        sink.truncate(0)
        try:
            yield sink.fileno()
        except Exception:
            with suppress(OSError):
                fresh.unlink(missing_ok=True)
            raise


def read_back(casting: Casting, file: Path) -> dict[str, Json]:
    """What is really in the fresh dump, once it is synced. Raises DidNotHappen when it is no backup of our store."""
    fresh = fresh_of(file)
    with fresh.open("rb") as dumped:
        os.fsync(dumped.fileno())
    content = {
        "path": str(file.relative_to(casting.workplace.files_folder)),
        "bytes": fresh.stat().st_size,
        "sha256": digest_of_file(fresh),
        "tables": tables_read_back(casting.workplace, fresh),
        "nominal_civil": casting.nominal_civil,
        "run_id": casting.run_id,
        "verified_at": datetime.now(UTC).isoformat().replace("+00:00", "Z"),
    }
    if problem := problem_with(content):
        raise DidNotHappen(problem)
    return content


def digest_of_file(file: Path) -> str:
    """`sha256:` of a file, however large."""
    with file.open("rb") as content:
        return f"sha256:{hashlib.file_digest(content, 'sha256').hexdigest()}"


def problem_with(content: Mapping[str, Json]) -> str:
    """The validator of `backup_verified`, pure: '' when the proof holds, else what is wrong with it."""
    try:
        BackupVerified.model_validate(content)
    except ValidationError as problem:
        found = [(".".join(map(str, error["loc"])), error["msg"]) for error in problem.errors()]
        return "; ".join(f"{field}: {said.removeprefix('Value error, ')}" for field, said in found)
    return ""


def leftovers(folder: Path) -> list[str]:
    """Unfinished files that nobody holds, and manifests whose dump never came. What is being written is held until the
    very rename, so that is looked at first."""
    found: list[str] = []
    for file in folder.glob("nightbell-*"):
        dumped = folder / f"{file.name.partition('.')[0]}.dump"
        if is_held(fresh_of(dumped)):
            continue
        if file.suffix == FRESH or (file.suffix == ".json" and not dumped.exists()):
            found.append(file.name)
    return sorted(found)


def is_held(fresh: Path) -> bool:
    """Whether a living process writes this file."""
    try:
        with fresh.open("rb") as found:
            fcntl.flock(found, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except FileNotFoundError:
        return False
    except BlockingIOError:
        return True
    return False


def beyond(folder: Path, made: str, keep: int) -> list[str]:
    """The dumps that are older than the `keep` newest, oldest first. The one just made always stays, whatever a clock
    that was set back may say; a dump without a manifest is not ours to remove."""
    found = [
        (manifest.verified_at, file.name) for file in folder.glob("nightbell-*.dump") if (manifest := manifest_in(file))
    ]
    others = [name for _, name in sorted(found) if name != made]
    return others[: max(0, len(others) - keep + 1)]


def manifest_in(file: Path) -> BackupVerified | None:
    """A dump's manifest, or None where there is none that can be read."""
    try:
        return BackupVerified.model_validate_json(file.with_name(manifest_of(file.name)).read_bytes())
    except (OSError, ValidationError):
        return None


def remove(folder: Path, *names: str) -> Mapping[str, Json]:
    """Remove files; one that is gone already is gone. Raises DidNotHappen where the first cannot be removed."""
    for number, name in enumerate(names):
        try:
            (folder / name).unlink(missing_ok=True)
        except OSError as problem:
            if number:
                raise
            raise DidNotHappen(f"{name} could not be removed: {problem.strerror}") from problem
    sync_folder(folder)
    return {"removed": names[0]}


def pattern(digest: str) -> Pattern[Rite]:
    """The Pattern, with the digest of its source."""
    proofs = {PROOF: problem_with}
    return Pattern("nightly_rite", "1", Rite, perform, digest, returns_to_checkpoint=True, finish_proofs=proofs)
