"""The embedding backfill: hashed vectors of a folder of texts, one bounded shard a hop (YLD-1, YLD-5, IDN-3).

The vectors are real feature hashes: deterministic, of length one, no model. A vector belongs to a content, known by its
digest, and a shard to the digest of its own lines. So a text that has its vector is passed over, one that changed has none
yet, a damaged shard counts for nothing, and a shard written twice is the same file.

A Run walks the texts by name, once. A crash before a shard's effect leaves the earlier checkpoint, from which the same shard
follows; after the effect and before the checkpoint, its texts are found to have their vectors. A text that changes behind
the walk is found by the next firing.
"""

import hashlib
import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field

from law.pattern import (
    CannotMerge,
    Casting,
    DidNotHappen,
    Done,
    Ending,
    Failed,
    Json,
    Pattern,
    YieldContract,
    Yielded,
)
from patterns.placing import put_in_place, sha256_of

WORD = re.compile(r"\w+")
LOOKED_AT_MAX = 10_000
"""How many texts one hop looks at, also where all of them have their vectors: a slice is bounded."""


MAX_SLICE = timedelta(seconds=30)
"""What one shard is promised to take at most, claim to checkpoint."""


class Backfill(BaseModel):
    """Which texts (a folder under the files folder), how many a shard, how wide a vector."""

    model_config = ConfigDict(extra="forbid")

    texts: str = Field(default="texts", min_length=1, max_length=4096)
    shard: int = Field(default=2, ge=1, le=10_000)
    dimensions: int = Field(default=64, ge=8, le=4096)


class Walk(BaseModel):
    """How far a Run has come: its checkpoint. `after` is the name of the last text it looked at."""

    model_config = ConfigDict(frozen=True)

    after: str = ""
    embedded: int = 0
    had_vectors: int = 0
    shards: int = 0

    @property
    def told(self) -> str:
        """For the Run's note."""
        return f"texts embedded: {self.embedded}, shards written: {self.shards}, had vectors: {self.had_vectors}"


@dataclass(frozen=True, slots=True)
class Slice:
    """One hop's work: contents by name and digest, and where the walk stands after it."""

    texts: tuple[tuple[str, str, bytes], ...]
    had_vectors: int
    last: str


def perform(casting: Casting, backfill: Backfill) -> Ending:
    """Embed the next shard behind the checkpoint, and yield until no text is left."""
    files = Path(casting.workplace.files_folder)
    try:
        names = names_in(files, backfill.texts)
    except ValueError as problem:
        return Failed(str(problem))
    if not names and casting.checkpoint_state is None:
        return Failed(f"there is no .txt file in the folder {backfill.texts!r} of the files folder")
    walk = Walk.model_validate(casting.checkpoint_state or {})
    ahead = [name for name in names if name > walk.after]
    if not ahead:
        return Done(note=walk.told)
    try:
        walk = embed_slice(casting, backfill, walk, ahead)
    except DidNotHappen as problem:
        return Failed(str(problem))
    return Yielded(note=walk.told) if walk.after < ahead[-1] else Done(note=walk.told)


def names_in(files: Path, folder: str) -> list[str]:
    """The texts by name, in the one order every hop walks. Raises ValueError for a folder outside the files folder."""
    place = (files / folder).resolve()
    if not place.is_relative_to(files.resolve()):
        raise ValueError(f"the folder {folder!r} is not inside the files folder")
    return sorted(text.name for text in place.glob("*.txt") if text.is_file())


def embed_slice(casting: Casting, backfill: Backfill, walk: Walk, ahead: list[str]) -> Walk:
    """One slice: read, write its shard if there is anything to write, and make the new place durable."""
    files = Path(casting.workplace.files_folder)
    folder = f"embeddings/hashed-{backfill.dimensions}"
    found = next_slice(files / backfill.texts, ahead, vectors_in(files / folder), backfill.shard)
    if found.texts:
        lines = b"".join(line_of(*text, backfill.dimensions) for text in found.texts)
        digest = sha256_of(lines)
        casting.effect("write_shard", digest, lambda: write_shard(files, folder, lines, len(found.texts)))
    walk = Walk(
        after=found.last,
        embedded=walk.embedded + len(found.texts),
        had_vectors=walk.had_vectors + found.had_vectors,
        shards=walk.shards + bool(found.texts),
    )
    casting.checkpoint(walk.model_dump())
    return walk


def next_slice(folder: Path, ahead: list[str], known: set[str], shard: int) -> Slice:
    """The next `shard` texts whose content has no vector; one that vanished since it was listed is passed over."""
    texts: dict[str, tuple[str, str, bytes]] = {}
    had_vectors, last = 0, ""
    for name in ahead[:LOOKED_AT_MAX]:
        last = name
        try:
            content = (folder / name).read_bytes()
        except FileNotFoundError:
            continue
        digest = sha256_of(content)
        if digest in known or digest in texts:
            had_vectors += 1
        else:
            texts[digest] = (name, digest, content)
        if len(texts) == shard:
            break
    return Slice(tuple(texts.values()), had_vectors, last)


def vectors_in(folder: Path) -> set[str]:
    """The digests of the contents that have a vector, by the shards that are what their names say."""
    contents = [(shard.stem.removeprefix("shard-"), shard.read_bytes()) for shard in folder.glob("shard-*.jsonl")]
    whole = [content for digest, content in contents if sha256_of(content) == f"sha256:{digest}"]
    return {json.loads(line)["sha256"] for content in whole for line in content.splitlines()}


def write_shard(files: Path, folder: str, lines: bytes, texts: int) -> Mapping[str, Json]:
    """Write one shard under its own digest, whole or not at all."""
    digest = sha256_of(lines)
    path = f"{folder}/shard-{digest.removeprefix('sha256:')}.jsonl"
    put_in_place(files / path, lines)
    return {"path": path, "texts": texts, "bytes": len(lines), "sha256": digest}


def line_of(name: str, digest: str, content: bytes, dimensions: int) -> bytes:
    """One content's digest and vector, and the name it was met under, as a line of JSON."""
    vector = vector_of(content.decode(errors="replace"), dimensions)
    return json.dumps({"text": name, "sha256": digest, "vector": vector}).encode() + b"\n"


def vector_of(text: str, dimensions: int) -> list[float]:
    """The hashed bag of words, of length one; of length zero where there is no word."""
    vector = [0.0] * dimensions
    for word in WORD.findall(text.casefold()):
        drawn = int.from_bytes(hashlib.blake2b(word.encode(), digest_size=8).digest(), "big")
        vector[drawn % dimensions] += 1.0 if drawn >> 63 else -1.0
    length = math.sqrt(sum(value * value for value in vector)) or 1.0
    return [round(value / length, 6) for value in vector]


def merged(backfills: Sequence[Backfill]) -> Backfill:
    """One walk for several firings that waited: over the same texts, in the smallest shards that were asked for (OVL-5)."""
    first = backfills[0]
    for other in backfills[1:]:
        if (other.texts, other.dimensions) != (first.texts, first.dimensions):
            raise CannotMerge("one walk goes over one folder and makes vectors of one width")
    return first.model_copy(update={"shard": min(one.shard for one in backfills)})


def pattern(digest: str) -> Pattern[Backfill]:
    """The Pattern, with the digest of its source. One shard is one slice, checkpointed, with its only effect ended."""
    return Pattern(
        "embedding_backfill",
        "2",
        Backfill,
        perform,
        digest,
        returns_to_checkpoint=True,
        merge=merged,
        yields=YieldContract(MAX_SLICE),
    )
