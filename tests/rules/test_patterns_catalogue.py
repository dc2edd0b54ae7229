"""What is installed, and that its digest is that of the source which performs."""

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

from patterns import catalogue, nightly_rite, placing
from patterns.catalogue import installed, source_digest


def test_three_patterns_are_installed_each_under_its_own_digest() -> None:
    """Key, revision and digest are what a Schedule pins."""
    found = installed()
    assert [(one.key, one.revision) for one in found] == [
        ("bridge_turn", "1"),
        ("nightly_rite", "1"),
        ("embedding_backfill", "2"),
    ]
    assert len({one.digest for one in found}) == 3
    assert all(one.digest.startswith("sha256:") and len(one.digest) == 71 for one in found)
    assert [one.digest for one in installed()] == [one.digest for one in found]


def test_only_the_rite_can_prove_a_finish() -> None:
    """What can prove nothing declares no proof."""
    assert {one.key: list(one.finish_proofs) for one in installed() if one.finish_proofs} == {
        "nightly_rite": ["backup_verified"]
    }


@pytest.mark.obligation("AUT-1", boundary="failure")
@pytest.mark.parametrize("changed", ["nightly_rite", "placing"])
def test_aut_1_a_changed_source_is_another_digest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, changed: str
) -> None:
    """One more byte in the Pattern's module, or in one that it acts through."""
    before = source_digest(nightly_rite, placing)
    folder = Path(nightly_rite.__file__).parent
    for name in ("nightly_rite", "placing"):
        (tmp_path / f"{name}.py").write_bytes((folder / f"{name}.py").read_bytes())
    monkeypatch.setattr(catalogue.resources, "files", lambda _: tmp_path)
    assert source_digest(nightly_rite, placing) == before
    with (tmp_path / f"{changed}.py").open("a") as source:
        source.write("\n")
    assert source_digest(nightly_rite, placing) != before


@pytest.mark.obligation("AUT-1", boundary="ordinary")
def test_aut_1_the_digest_covers_every_module_of_ours_that_a_pattern_acts_through() -> None:
    """Whatever of `patterns` a Pattern's sources import is among its sources."""
    for sources in catalogue.SOURCES:
        names = {module.__name__ for module in sources}
        assert {found for module in sources for found in patterns_used(module)} <= names


def patterns_used(module: ModuleType) -> set[str]:
    """The modules of `patterns` whose functions or values a module holds by `from … import`."""
    spec = importlib.util.find_spec(module.__name__)
    assert spec is not None and spec.origin is not None
    lines = Path(spec.origin).read_text(encoding="utf-8").splitlines()
    assert not [line for line in lines if line.startswith("import patterns")]
    return {line.split()[1] for line in lines if line.startswith("from patterns")}
