"""The nightly rite: a dated backup of the store that was read back before it counts, and the N newest kept.

`pg_dump` writes to a file of the Run's own; `pg_restore` must be able to list our tables in it; only then is it renamed into
place beside a manifest. What is in place is never written again.
"""

import hashlib
import json
import os
import subprocess
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import unquote, urlsplit, urlunsplit

from pydantic import BaseModel, ConfigDict, Field

from law.pattern import Casting, DidNotHappen, Done, Ending, Failed, Json, Pattern, Proof

PROOF = "backup_verified"
TABLES_THAT_MUST_BE_THERE = ("occurrence", "decision", "run")
DUMP_WITHIN_SECONDS = 3600


class Rite(BaseModel):
    """How many backups stay."""

    model_config = ConfigDict(extra="ignore")

    keep: int = Field(default=7, ge=1, le=10_000)


def perform(casting: Casting, rite: Rite) -> Ending:
    """Dump, verify, put in place; then let the oldest go."""
    made = casting.effect("back_up", "backup", lambda: back_up(casting))
    for name in beyond(folder_of(casting), rite.keep):
        casting.effect("remove_backup", name, lambda name=name: remove(folder_of(casting), name))
    problem = problem_with(made)
    if problem:
        return Failed(problem)
    return Done(Proof(PROOF, made), note=f"{made['file']}, {made['bytes']} bytes, {made['tables']} tables")


def folder_of(casting: Casting) -> Path:
    """Where backups stand."""
    folder = Path(casting.workplace.files_folder) / "backups"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def back_up(casting: Casting) -> Mapping[str, Json]:
    """Write, read back, fsync and rename one backup; leftovers of a dead attempt of this Run are dropped first."""
    folder = folder_of(casting)
    day = (casting.nominal_civil or "undated").replace(":", "").replace("T", "-")
    file = folder / f"nightbell-{day}-{casting.run_id[:8]}.dump"
    fresh = file.with_suffix(".new")
    fresh.unlink(missing_ok=True)
    dump(casting, fresh)
    tables = tables_in(casting, fresh)
    missing = [name for name in TABLES_THAT_MUST_BE_THERE if name not in tables]
    if missing:
        fresh.unlink()
        raise DidNotHappen(f"the dump lacks the tables {', '.join(missing)}")
    content = fresh.read_bytes()
    made = {
        "file": file.name,
        "bytes": len(content),
        "sha256": hashlib.sha256(content).hexdigest(),
        "tables": len(tables),
    }
    with fresh.open("rb") as handle:
        os.fsync(handle.fileno())
    fresh.replace(file)
    file.with_suffix(".json").write_text(json.dumps(made, indent=1))
    return made


def dump(casting: Casting, into: Path) -> None:
    """Run `pg_dump`; the password travels in the environment, never on the command line."""
    tool = str(Path(casting.workplace.postgres_tools_folder) / "pg_dump")
    url, password = without_password(casting.workplace.database_url)
    command = [tool, "--format=custom", "--schema=nightbell", "--no-owner", "--file", str(into), "--dbname", url]
    environment = {"PATH": os.environ.get("PATH", ""), "LC_ALL": "C", **({"PGPASSWORD": password} if password else {})}
    done = subprocess.run(
        command, capture_output=True, text=True, env=environment, timeout=DUMP_WITHIN_SECONDS, check=False
    )
    if done.returncode != 0:
        into.unlink(missing_ok=True)
        raise DidNotHappen(f"pg_dump failed: {done.stderr.strip().splitlines()[-1:] or done.returncode}")


def without_password(url: str) -> tuple[str, str]:
    """A database URL as anybody may see it in a process list, and the password that it held."""
    parts = urlsplit(url)
    if parts.password is None:
        return url, ""
    account, _, server = parts.netloc.rpartition("@")
    return urlunsplit(parts._replace(netloc=f"{account.partition(':')[0]}@{server}")), unquote(parts.password)


def tables_in(casting: Casting, file: Path) -> set[str]:
    """The tables whose rows the dump holds, as `pg_restore` reads them back."""
    tool = str(Path(casting.workplace.postgres_tools_folder) / "pg_restore")
    done = subprocess.run([tool, "--list", str(file)], capture_output=True, text=True, timeout=600, check=False)
    if done.returncode != 0:
        raise DidNotHappen(f"pg_restore cannot read the dump back: {done.stderr.strip()[:200]}")
    return {line.split(" TABLE DATA ")[1].split()[1] for line in done.stdout.splitlines() if " TABLE DATA " in line}


def beyond(folder: Path, keep: int) -> list[str]:
    """The names of the backups older than the `keep` newest, oldest first."""
    names = sorted(file.name for file in folder.glob("nightbell-*.dump"))
    return names[:-keep]


def remove(folder: Path, name: str) -> Mapping[str, Json]:
    """Remove one backup and its manifest; one that is gone already is gone."""
    (folder / name).unlink(missing_ok=True)
    (folder / name).with_suffix(".json").unlink(missing_ok=True)
    return {"removed": name}


def problem_with(content: Mapping[str, Json]) -> str:
    """The validator of `backup_verified`, pure: '' when the proof holds, else what is wrong."""
    digest = content.get("sha256")
    if not isinstance(content.get("file"), str) or not str(content["file"]).endswith(".dump"):
        return "the proof names no backup"
    if not isinstance(digest, str) or len(digest) != 64:
        return "the proof has no SHA-256"
    if not isinstance(content.get("bytes"), int) or content["bytes"] <= 0:
        return "the backup is empty"
    if not isinstance(content.get("tables"), int) or content["tables"] < len(TABLES_THAT_MUST_BE_THERE):
        return "the backup holds too few tables"
    return ""


def pattern(digest: str) -> Pattern[Rite]:
    """The Pattern, with the digest of this source."""
    return Pattern(
        "nightly_rite", "1", Rite, perform, digest, returns_to_checkpoint=True, finish_proofs={PROOF: problem_with}
    )
