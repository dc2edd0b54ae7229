"""Documents lead somewhere: their links resolve, their commands exist, and `make help` names every target."""

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import typer.main

from nightbell.cli import app

ROOT = Path(__file__).resolve().parents[2]
DOCUMENTS = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
LINK = re.compile(r"(?<!\!)\[[^\]]+\]\(([^)\s]+)\)|!\[[^\]]*\]\(([^)\s]+)\)")
HEADING = re.compile(r"^#{1,6} +(.*)$", re.MULTILINE)
SPAN = re.compile(r"`[^`\n]+`")
FENCE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
COMMAND = re.compile(r"(?:^|[`\s/])nightbell ([a-z][a-z-]*)")
MAKE = re.compile(r"(?:^|`|\$ )make ([a-z]+)", re.MULTILINE)
DECISION = re.compile(r"^\d{4}-\d{2}-\d{2}-[a-z0-9-]+\.md$")


def links(text: str) -> Iterator[str]:
    """Where a document points to inside the repository; code is no pointer."""
    for plain, picture in LINK.findall(SPAN.sub("code", FENCE.sub("", text))):
        if "://" not in (target := plain or picture) and not target.startswith("mailto:"):
            yield target


def anchors(text: str) -> set[str]:
    """The anchors that a document's headings have, as they are made on the web."""
    headings = HEADING.findall(FENCE.sub("", text))
    return {re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}


def code(text: str) -> str:
    """What stands in a document as code: fenced blocks and spans."""
    return "\n".join([*FENCE.findall(text), *SPAN.findall(FENCE.sub("", text))])


def targets() -> set[str]:
    """Every target that the Makefile declares for people."""
    text = (ROOT / "Makefile").read_text(encoding="utf-8")
    (phony,) = re.findall(r"^\.PHONY: (.*)$", text, re.MULTILINE)
    return set(phony.split())


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_link_resolves(document: Path) -> None:
    """A link inside the repository points to a file that is there, and to a heading that is in it."""
    for link in links(document.read_text(encoding="utf-8")):
        file, _, anchor = link.partition("#")
        target = document.parent / file if file else document
        assert target.exists(), f"{document.name}: {link}"
        assert not anchor or anchor in anchors(target.read_text(encoding="utf-8")), f"{document.name}: {link}"


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_command_in_a_document_exists(document: Path) -> None:
    """What a document tells people to type is a command of ours and a target of the Makefile."""
    written = code(document.read_text(encoding="utf-8"))
    known = set(typer.main.get_group(app).commands)
    assert set(COMMAND.findall(written)) <= known
    assert set(MAKE.findall(written)) <= targets()


def test_make_help_lists_every_target() -> None:
    """`make help`, and `make` alone, name every target with what it does."""
    for arguments in (["help"], []):
        command = ["make", "--no-print-directory", *arguments]
        said = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=20, check=True).stdout
        listed = dict(re.findall(r"^\s*make (\w+)\s+(\S.*)$", said, re.MULTILINE))
        assert listed.keys() == targets()


def test_every_decision_is_dated_and_listed() -> None:
    """A decision is a page with its date in its name, and the list of decisions leads to it."""
    folder = ROOT / "docs" / "decisions"
    pages = {path.name for path in folder.glob("*.md")} - {"README.md"}
    assert pages
    assert not [name for name in pages if not DECISION.match(name)]
    assert pages <= set(links((folder / "README.md").read_text(encoding="utf-8")))


def test_every_page_is_reached_from_the_readme() -> None:
    """Following links from the README, a reader can get to every page of `docs/`."""
    reached, waiting = set[Path](), [ROOT / "README.md"]
    while waiting:
        page = waiting.pop().resolve()
        if page.suffix == ".md" and page not in reached:
            reached.add(page)
            waiting += [
                page.parent / link.partition("#")[0]
                for link in links(page.read_text(encoding="utf-8"))
                if link[0] != "#"
            ]
    assert not {document.resolve() for document in (ROOT / "docs").rglob("*.md")} - reached


def test_a_broken_link_and_a_missing_heading_are_seen() -> None:
    """The reader of links sees what is plain text, and not what is code."""
    written = "[a](b.md#c) ![d](e.png) `[f](g)`\n```\n[h](i)\n```\n[j](https://k.example)"
    assert list(links(written)) == ["b.md#c", "e.png"]
    assert anchors("# One, two\n```\n# no\n```\n## `Three` 4") == {"one-two", "three-4"}
