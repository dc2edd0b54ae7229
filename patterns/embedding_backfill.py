"""The embedding backfill: hashed vectors of a folder of texts, one bounded shard a hop (YLD-5, IDN-3).

Each shard is written whole under its own name, checkpointed, and then the worker is given back; the rest is offered as a new
hop. The vectors are real feature hashes: deterministic, normalized, no model.
"""

import hashlib
import json
import math
import os
import re
from collections.abc import Mapping
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field

from law.pattern import Casting, Done, Ending, Failed, Json, Pattern, Yielded

WORD = re.compile(r"\w+")


class Backfill(BaseModel):
    """Which texts, how many a shard, how wide a vector."""

    model_config = ConfigDict(extra="ignore")

    texts: str = Field(default="texts", min_length=1, max_length=4096)
    shard: int = Field(default=2, ge=1, le=10_000)
    dimensions: int = Field(default=64, ge=8, le=4096)


def perform(casting: Casting, backfill: Backfill) -> Ending:
    """Embed the next shard after the checkpoint, and yield until nothing is left."""
    texts = texts_in(Path(casting.workplace.files_folder) / backfill.texts)
    if not texts:
        return Failed(f"there are no .txt files in {backfill.texts}")
    done: int = int((casting.checkpoint_state or {}).get("done", 0))
    shard = texts[done : done + backfill.shard]
    if shard:
        casting.effect("write_shard", f"{done:08d}", lambda: write_shard(casting, shard, done, backfill.dimensions))
        done += len(shard)
        casting.checkpoint({"done": done, "of": len(texts)})
    if done < len(texts):
        return Yielded(note=f"{done} of {len(texts)} texts")
    return Done(note=f"{len(texts)} texts embedded")


def texts_in(folder: Path) -> list[Path]:
    """The texts in a fixed order, so that every hop sees the same line."""
    return sorted(folder.glob("*.txt")) if folder.is_dir() else []


def write_shard(casting: Casting, texts: list[Path], first: int, dimensions: int) -> Mapping[str, Json]:
    """Write one shard's vectors, whole or not at all."""
    folder = Path(casting.workplace.files_folder) / "embeddings" / casting.run_id
    folder.mkdir(parents=True, exist_ok=True)
    lines = [line_of(text, dimensions) for text in texts]
    content = "".join(f"{line}\n" for line in lines)
    file = folder / f"shard-{first:08d}.jsonl"
    fresh = file.with_suffix(".new")
    with fresh.open("w", encoding="utf-8") as sink:
        sink.write(content)
        sink.flush()
        os.fsync(sink.fileno())
    fresh.replace(file)
    return {"file": file.name, "texts": len(lines), "sha256": hashlib.sha256(content.encode()).hexdigest()}


def line_of(text: Path, dimensions: int) -> str:
    """One text's name, digest and vector as a line of JSON."""
    content = text.read_text(encoding="utf-8")
    digest = hashlib.sha256(content.encode()).hexdigest()
    return json.dumps({"text": text.name, "sha256": digest, "vector": vector_of(content, dimensions)})


def vector_of(content: str, dimensions: int) -> list[float]:
    """The hashed bag of words, of length one."""
    vector = [0.0] * dimensions
    for word in WORD.findall(content.lower()):
        drawn = int.from_bytes(hashlib.blake2b(word.encode(), digest_size=8).digest(), "big")
        vector[drawn % dimensions] += 1.0 if drawn >> 63 else -1.0
    length = math.sqrt(sum(value * value for value in vector)) or 1.0
    return [round(value / length, 6) for value in vector]


def pattern(digest: str) -> Pattern[Backfill]:
    """The Pattern, with the digest of this source."""
    return Pattern("embedding_backfill", "1", Backfill, perform, digest, returns_to_checkpoint=True)
