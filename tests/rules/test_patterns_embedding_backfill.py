"""The embedding backfill: one bounded shard a hop, and vectors that belong to contents."""

import hashlib
import json
import math
from pathlib import Path

import pytest
from pydantic import ValidationError

from law.pattern import Done, EffectRefused, Ending, Failed, Workplace, Yielded
from patterns import embedding_backfill
from patterns.embedding_backfill import pattern, vector_of
from tests.carrying import Killed, Recorded

BACKFILL = pattern("sha256:0")
TEXTS = {f"{number}.txt": f"the bell rings {number} times" for number in range(1, 6)}


def new_run(files: Path) -> Recorded:
    return Recorded(Workplace(str(files), "", ""), schedule="home/embedding-backfill")


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """A files folder with five texts."""
    (tmp_path / "texts").mkdir()
    for name, text in TEXTS.items():
        (tmp_path / "texts" / name).write_text(text)
    return tmp_path


@pytest.fixture
def run(files: Path) -> Recorded:
    """A Run over the five texts."""
    return new_run(files)


def to_the_end(run: Recorded, **content: object) -> list[Ending]:
    """Hops until one does not yield."""
    endings = [run.hop(BACKFILL, **content)]
    while isinstance(endings[-1], Yielded):
        assert len(endings) < 50, "it never ends"
        endings.append(run.hop(BACKFILL, **content))
    return endings


def shards(files: Path) -> list[Path]:
    return sorted(files.glob("embeddings/*/*"))


def vectors(files: Path) -> dict[str, list[float]]:
    """Content digest → vector, over all shards."""
    lines = [json.loads(line) for shard in shards(files) for line in shard.read_text().splitlines()]
    return {line["sha256"]: line["vector"] for line in lines}


def digest(content: bytes) -> str:
    return f"sha256:{hashlib.sha256(content).hexdigest()}"


@pytest.mark.obligation("YLD-5", boundary="ordinary")
def test_yld_5_each_hop_is_one_bounded_shard_and_a_checkpoint(run: Recorded, files: Path) -> None:
    """Five texts by twos: two yields and an end; each hop wrote one shard and moved the checkpoint."""
    seen = []
    ending: Ending = Yielded()
    while isinstance(ending, Yielded):
        ending = run.hop(BACKFILL, shard=2)
        assert run.checkpoint_state is not None
        seen.append((type(ending), run.checkpoint_state["after"], len(shards(files))))
    assert seen == [(Yielded, "2.txt", 1), (Yielded, "4.txt", 2), (Done, "5.txt", 3)]
    assert ending == Done(note="texts embedded: 5, shards written: 3, had vectors: 0")
    assert set(vectors(files)) == {digest(text.encode()) for text in TEXTS.values()}


def test_a_shard_is_named_by_the_digest_of_its_lines(run: Recorded, files: Path) -> None:
    """File, name and the effect's recorded result agree; nothing unfinished stays."""
    to_the_end(run)
    named = {f"shard-{digest(shard.read_bytes()).removeprefix('sha256:')}.jsonl" for shard in shards(files)}
    assert named == {shard.name for shard in shards(files)}
    results = {(result["path"], result["sha256"], result["bytes"]) for result in run.effects.values() if result}
    assert results == {
        (str(shard.relative_to(files)), digest(shard.read_bytes()), shard.stat().st_size) for shard in shards(files)
    }


@pytest.mark.obligation("IDN-3", boundary="restart")
@pytest.mark.parametrize("edge", [("before", "write_shard"), ("after", "write_shard"), ("before", "checkpoint")])
def test_idn_3_a_lost_hop_returns_and_nothing_is_embedded_twice(
    run: Recorded, files: Path, edge: tuple[str, str]
) -> None:
    """Killed around the effect or before the checkpoint, the Run returns to it: the same vectors, each text in one line."""
    run.hop(BACKFILL, shard=2)
    run.kill_at = edge
    with pytest.raises(Killed):
        run.hop(BACKFILL, shard=2)
    assert isinstance(to_the_end(run, shard=2)[-1], Done)
    lines = [json.loads(line)["text"] for shard in shards(files) for line in shard.read_text().splitlines()]
    assert sorted(lines) == sorted(TEXTS)


@pytest.mark.obligation("IDN-5", boundary="restart")
def test_idn_5_a_shard_whose_files_are_gone_with_its_record_is_not_repeated(run: Recorded, files: Path) -> None:
    """Begun, never recorded, and not to be seen: the same shard is asked for again, and the office refuses it."""
    run.kill_at = ("within", "write_shard")
    with pytest.raises(Killed):
        run.hop(BACKFILL, shard=2)
    shards(files)[0].unlink()
    with pytest.raises(EffectRefused, match="effect_in_doubt"):
        run.hop(BACKFILL, shard=2)
    assert (run.kinds(), shards(files)) == (["write_shard"], [])


def test_texts_that_have_their_vectors_are_passed_over(run: Recorded, files: Path) -> None:
    """The next firing finds nothing to do, and begins no effect."""
    to_the_end(run)
    again = new_run(files)
    assert to_the_end(again) == [Done(note="texts embedded: 0, shards written: 0, had vectors: 5")]
    assert again.effects == {}


def test_a_text_that_changed_is_known_by_its_digest(run: Recorded, files: Path) -> None:
    """Ahead of the walk it is read as it is by then; behind it, the next firing embeds it and nothing else."""
    run.hop(BACKFILL, shard=2)
    (files / "texts" / "1.txt").write_text("changed behind the walk")
    (files / "texts" / "5.txt").write_text("changed ahead of it")
    to_the_end(run, shard=2)
    assert digest(b"changed ahead of it") in vectors(files)
    assert digest(b"changed behind the walk") not in vectors(files)
    assert to_the_end(new_run(files)) == [Done(note="texts embedded: 1, shards written: 1, had vectors: 4")]
    assert digest(b"changed behind the walk") in vectors(files)


def test_texts_that_come_and_go_during_the_walk_move_nothing(run: Recorded, files: Path) -> None:
    """A walk by name: what is removed behind it or added ahead of it makes it neither skip nor repeat a text."""
    run.hop(BACKFILL, shard=2)
    (files / "texts" / "1.txt").unlink()
    (files / "texts" / "2b.txt").write_text("a latecomer")
    (files / "texts" / "4.txt").unlink()
    to_the_end(run, shard=2)
    expected = {digest(text.encode()) for name, text in TEXTS.items() if name != "4.txt"} | {digest(b"a latecomer")}
    assert set(vectors(files)) == expected


def test_a_damaged_shard_counts_for_nothing(run: Recorded, files: Path) -> None:
    """Its texts are embedded again, into the same file."""
    to_the_end(run)
    whole = {shard: shard.read_bytes() for shard in shards(files)}
    shards(files)[0].write_bytes(b"{}\n")
    to_the_end(new_run(files))
    assert {shard: shard.read_bytes() for shard in shards(files)} == whole


@pytest.mark.obligation("YLD-1", boundary="failure")
def test_yld_1_a_slice_is_bounded_also_where_nothing_is_to_be_done(
    run: Recorded, files: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A hop that only finds vectors looks at a bounded number of texts, checkpoints and yields."""
    to_the_end(run)
    monkeypatch.setattr(embedding_backfill, "LOOKED_AT_MAX", 3)
    again = new_run(files)
    assert isinstance(again.hop(BACKFILL), Yielded)
    assert again.checkpoint_state == {"after": "3.txt", "embedded": 0, "had_vectors": 3, "shards": 0}
    assert again.hop(BACKFILL) == Done(note="texts embedded: 0, shards written: 0, had vectors: 5")


@pytest.mark.parametrize("folder", ["none", "empty"])
def test_without_texts_it_fails_and_says_which_folder_is_empty(tmp_path: Path, folder: str) -> None:
    """Missing or empty at the first start, and nothing was begun."""
    (tmp_path / "empty").mkdir()
    run = new_run(tmp_path)
    assert run.hop(BACKFILL, texts=folder) == Failed(
        f"there is no .txt file in the folder {folder!r} of the files folder"
    )
    assert run.effects == {}


def test_a_folder_that_was_emptied_during_the_walk_ends_it(run: Recorded, files: Path) -> None:
    """What was embedded is embedded."""
    run.hop(BACKFILL, shard=2)
    for text in (files / "texts").iterdir():
        text.unlink()
    assert run.hop(BACKFILL, shard=2) == Done(note="texts embedded: 2, shards written: 1, had vectors: 0")


@pytest.mark.parametrize("folder", ["..", "../beside", "/etc", "texts/../.."])
def test_a_folder_outside_the_files_folder_is_refused(files: Path, folder: str) -> None:
    """The input names a folder inside; nothing else is read."""
    (files.parent / "beside").mkdir(exist_ok=True)
    run = new_run(files)
    assert run.hop(BACKFILL, texts=folder) == Failed(f"the folder {folder!r} is not inside the files folder")


@pytest.mark.obligation("IDN-5", boundary="failure")
def test_idn_5_a_shard_that_could_not_be_written_did_not_happen(run: Recorded, files: Path) -> None:
    """A file in the way: failed, nothing in doubt, no checkpoint."""
    (files / "embeddings").write_text("in the way")
    ending = run.hop(BACKFILL)
    assert isinstance(ending, Failed) and ending.note.endswith("could not be written: Not a directory")
    assert (run.effects, run.checkpoint_state) == ({}, None)


def test_an_unknown_key_of_the_input_is_refused(run: Recorded) -> None:
    """A misspelt key is said, not ignored."""
    with pytest.raises(ValidationError, match="shards"):
        run.hop(BACKFILL, shards=2)


def test_vectors_are_deterministic_and_of_length_one() -> None:
    """The same words in any order and case give the same vector; other words give another; no word gives length zero."""
    bell = vector_of("The night bell", 64)
    assert bell == vector_of("bell NIGHT the", 64) != vector_of("the day bell", 64)
    assert math.isclose(math.hypot(*bell), 1.0, abs_tol=1e-5)
    assert vector_of(" ...", 8) == [0.0] * 8


def test_a_word_has_the_place_and_the_sign_that_blake2b_gives_it() -> None:
    """Pinned, so that vectors of different days can be compared."""
    drawn = int(hashlib.blake2b(b"bell", digest_size=8).hexdigest(), 16)
    assert (drawn % 8, drawn >> 63) == (2, 0)
    assert vector_of("bell", 8) == [0.0, 0.0, -1.0, 0.0, 0.0, 0.0, 0.0, 0.0]


def test_bytes_that_are_no_text_have_a_vector_too(files: Path) -> None:
    """A text that is not UTF-8 is known by its bytes, and stops nobody."""
    (files / "texts" / "0.txt").write_bytes(b"\xff\xfe bell")
    to_the_end(new_run(files))
    assert digest(b"\xff\xfe bell") in vectors(files)
