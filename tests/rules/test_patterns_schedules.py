"""The example Schedules: lawful, as the law text has them, watchable, and explained key by key."""

import json
import re
import tomllib
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from types import UnionType
from typing import Any, Union, get_args, get_origin

import pytest
from pydantic import BaseModel
from pydantic.fields import FieldInfo

from law.durations import format_duration
from law.schedule import ScheduleDocument, read_schedule
from nightbell.demo import watchable
from patterns.catalogue import installed

FOLDER = Path(__file__).resolve().parents[2] / "schedules"
FILES = sorted(file for file in FOLDER.glob("*.toml") if file.name != "watch.toml")
README = (FOLDER / "README.md").read_text(encoding="utf-8")
ROW = re.compile(r"^\| `([\w.]+)` \| (?:`(.*?)`|(none|\*\*required\*\*)) \|", re.MULTILINE)
SHORT = {
    "jitter": '{ mode = "none" }',
    "catch_up": '{ mode = "newest" }',
    "overlap": '{ policy = "forbid" }',
    "budget": "{}",
}


@pytest.fixture
def documents() -> dict[str, ScheduleDocument]:
    """The files, read."""
    return {file.stem: read_schedule(file.read_text(encoding="utf-8")) for file in FILES}


def test_the_files_are_lawful_and_their_patterns_are_installed(documents: dict[str, ScheduleDocument]) -> None:
    """Each is named like its file, and its input fits the Pattern revision that is installed."""
    patterns = {(one.key, one.revision): one for one in installed()}
    assert set(documents) == {"bridge", "nightly-rite", "embedding-backfill"}
    for name, document in documents.items():
        assert (document.authority, document.name) == ("home", name)
        pattern = patterns[document.work.pattern, document.work.pattern_revision]
        pattern.input_model.model_validate(document.work.input)


@pytest.mark.obligation("WIN-1", boundary="ordinary")
def test_win_1_the_nightly_rite_is_what_the_law_text_says(documents: dict[str, ScheduleDocument]) -> None:
    """02:00 in Bratislava, admitted strictly before 05:00 civil, forbid, older than a day skipped; no word about its end."""
    rite = documents["nightly-rite"].canonical()
    assert (rite["cycle"], rite["class"]["service_class"]) == ("civil_date", "deadline_windowed")
    assert (rite["trigger"]["cron"], rite["trigger"]["zone"]) == ("0 2 * * *", "Europe/Bratislava")
    assert (rite["trigger"]["fold"], rite["trigger"]["gap"]) == ("earlier", "skip")
    bounds = {name: bound for name, bound in rite["window"].items() if bound is not None}
    assert bounds == {"latest_start_civil": "05:00"}
    assert (rite["overlap"]["policy"], rite["catch_up"]["horizon"], rite["catch_up"]["mode"]) == (
        "forbid",
        "1d",
        "newest",
    )


def test_bridge_and_backfill_keep_their_tempo(documents: dict[str, ScheduleDocument]) -> None:
    """One rings from outside and is foreground; the other borrows a capability by name, and can return to a checkpoint."""
    bridge, backfill = documents["bridge"], documents["embedding-backfill"]
    assert (bridge.trigger.kind, bridge.class_.service_class, bridge.capacity) == ("external", "foreground", None)
    assert backfill.class_.service_class == "spare_capacity"
    assert backfill.capacity is not None and backfill.capacity.capability == "embedder"
    assert [one.returns_to_checkpoint for one in installed() if one.key == "embedding_backfill"] == [True]


def test_what_is_watched_differs_only_in_cadence_and_amount(documents: dict[str, ScheduleDocument]) -> None:
    """`watch.toml` names Schedules that exist, and changes when they ring, how long their windows are, and how much is
    kept or sliced; the promises stay."""
    watched = {document.name: document for document in watchable()}
    assert set(watched) == set(documents)
    assert set(tomllib.loads((FOLDER / "watch.toml").read_text(encoding="utf-8"))) <= set(documents)
    for name, document in documents.items():
        changed = set(differing(document.canonical(), watched[name].canonical()))
        assert changed <= {
            "cycle",
            "trigger.cron",
            "window.latest_start_civil",
            "window.allowed_delay",
            "catch_up.horizon",
            "work.input.keep",
            "work.input.shard",
        }
    rite = watched["nightly-rite"]
    assert rite.window is not None and rite.window.allowed_delay == timedelta(seconds=10)
    assert watched["bridge"] == documents["bridge"]


def differing(one: Any, other: Any, path: str = "") -> Iterator[str]:
    """The keys whose values differ."""
    if isinstance(one, dict) and isinstance(other, dict):
        for name in sorted(one.keys() | other.keys()):
            yield from differing(one.get(name), other.get(name), f"{path}.{name}" if path else name)
    elif one != other:
        yield path


def test_the_sample_texts_are_texts() -> None:
    """Enough for several hops, each with something to embed."""
    texts = [file.read_text(encoding="utf-8") for file in (FOLDER / "texts").glob("*.txt")]
    assert len(texts) >= 3 and all(text.strip() for text in texts) and len(set(texts)) == len(texts)


def test_every_key_is_explained_with_its_default() -> None:
    """The tables of the README are exactly the keys that are accepted, each with the default it really has."""
    told = {key: (default or word) for key, default, word in ROW.findall(README)}
    inputs = {f"{one.key}.{key}": default for one in installed() for key, default in keys_of(one.input_model)}
    assert told == {**dict(keys_of(ScheduleDocument)), **inputs}


def keys_of(model: type[BaseModel], path: str = "") -> Iterator[tuple[str, str]]:
    """Every key of a table and of the tables inside it, with its default as it would be written."""
    for name, found in model.model_fields.items():
        key = f"{path}{found.alias or name}"
        yield key, SHORT.get(key) or written_default(found)
        for table in tables_in(found.annotation):
            yield from keys_of(table, f"{key}.")


def tables_in(annotation: Any) -> list[type[BaseModel]]:
    """The tables that a field may hold."""
    if get_origin(annotation) in (Union, UnionType):
        return [table for part in get_args(annotation) for table in tables_in(part)]
    return [annotation] if isinstance(annotation, type) and issubclass(annotation, BaseModel) else []


def written_default(found: FieldInfo) -> str:
    """A default as TOML would write it."""
    if found.is_required():
        return "**required**"
    default = found.get_default(call_default_factory=True)
    if default is None:
        return "none"
    return json.dumps(format_duration(default) if isinstance(default, timedelta) else default)
