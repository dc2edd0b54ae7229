"""receipt.json and receipt.html: the same receipt for a program and for a person (EVD-2).

The page is one file that asks nobody for anything: no script, no font, no picture. It is built as a tree of elements, so
whatever a test is called is text in it. Both files are written beside their places first and then moved there: killed
before the moves, the receipt that was there is whole.
"""

import json
import os
import tempfile
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from xml.etree.ElementTree import Element, SubElement, tostring

from law.errors import BadInput
from law.instants import instant_text
from law.obligations import BOUNDARIES, GROUPS, Obligation
from nightbell.receipt import FAILED, NOT_PROVEN, Finding, Receipt, Shown, document
from nightbell.shown import plain_value

STYLE = """
:root { color-scheme: light dark; --proven: #176b2c; --failed: #b3141d; --open: #8a5a00; --line: #d5d5d0; --soft: #f5f5f2; }
@media (prefers-color-scheme: dark) {
  :root { --proven: #6fce8b; --failed: #ff8a85; --open: #e8b44f; --line: #3c3c3a; --soft: #232322; }
}
body { font: 16px/1.5 system-ui, sans-serif; max-width: 76rem; margin: 2rem auto; padding: 0 1rem; }
h1 { line-height: 1.2; } h2 { margin-top: 2.5rem; }
table { border-collapse: collapse; width: 100%; }
th, td { text-align: left; vertical-align: top; padding: .5rem .75rem; border-bottom: 1px solid var(--line); }
thead th { background: var(--soft); }
tbody th { font-weight: 400; width: 34%; }
td { width: 22%; }
code { font: .8rem/1.4 ui-monospace, monospace; overflow-wrap: anywhere; }
ul { margin: 0; padding-left: 1.1rem; }
.proven { color: var(--proven); } .failed { color: var(--failed); } .open { color: var(--open); }
.state { font-weight: 600; }
summary { font-size: .85rem; cursor: pointer; }
@media (max-width: 50rem) { tr, th, td { display: block; width: auto; } thead { display: none; } }
"""
COLOURS = {NOT_PROVEN: "open"}


def require_writable(out: Path) -> None:
    """Raises BadInput where the folder could not be made or written into; makes nothing."""
    place = out.absolute()
    while not place.exists() and place != place.parent:
        place = place.parent
    if not place.is_dir():
        raise BadInput(field="out", reason=f"{place} is a file, and the receipt needs a folder")
    if not os.access(place, os.W_OK | os.X_OK):
        raise BadInput(field="out", reason=f"{place} cannot be written into")


def write_receipt(receipt: Receipt, out: Path) -> tuple[Path, Path]:
    """Both files, whole or not at all. Raises BadInput naming `out`."""
    texts = {"receipt.json": json_text(receipt), "receipt.html": page(receipt)}
    try:
        out.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=out, prefix=".receipt-") as beside:
            for name, text in texts.items():
                (Path(beside) / name).write_text(text, encoding="utf-8")
            for name in texts:
                (Path(beside) / name).replace(out / name)
    except OSError as problem:
        raise BadInput(field="out", reason=f"{out} cannot be written: {problem.strerror or problem}") from problem
    return out / "receipt.json", out / "receipt.html"


def json_text(receipt: Receipt) -> str:
    """receipt.json."""
    return json.dumps(document(receipt), default=plain_value, indent=2, ensure_ascii=False) + "\n"


def page(receipt: Receipt) -> str:
    """receipt.html."""
    html = Element("html", lang="en")
    head = SubElement(html, "head")
    SubElement(head, "meta", charset="utf-8")
    SubElement(head, "meta", name="viewport", content="width=device-width, initial-scale=1")
    SubElement(head, "title").text = "Nightbell: receipt"
    SubElement(head, "style").text = STYLE
    body = SubElement(html, "body")
    SubElement(body, "h1").text = "What Nightbell promises, and what of it is shown"
    for sentence in summary(receipt):
        SubElement(body, "p").text = sentence
    if receipt.broken:
        SubElement(body, "p", {"class": "failed state"}).text = "Tests that could not be read:"
        add_list(body, receipt.broken)
    for group, found in groupby(receipt.findings, key=lambda one: one[0].group):
        add_group(body, f"{group}: {GROUPS[group]}", list(found))
    return "<!DOCTYPE html>\n" + tostring(html, encoding="unicode", method="html") + "\n"


def summary(receipt: Receipt) -> Iterator[str]:
    """The receipt's head in sentences."""
    counted = ", ".join(f"{count} {state}" for state, count in receipt.totals.items())
    yield f"{len(receipt.findings)} obligations at {len(BOUNDARIES)} boundaries each: {counted}."
    if receipt.only:
        yield f"Only {', '.join(receipt.only)} was asked for."
    ran = f"{len(receipt.tests)} runs of marked tests in {receipt.duration_seconds} s"
    yield f"{ran}, begun {instant_text(receipt.started_at.replace(microsecond=0))}."
    known = ", ".join(f"{name} {version or 'unknown'}" for name, version in receipt.versions.items())
    commit = f"commit {receipt.commit.commit}" if receipt.commit else "no commit"
    yield f"{known}; {commit}{', with changes' if receipt.commit and receipt.commit.changed else ''}."


def add_group(body: Element, heading: str, found: list[tuple[Obligation, tuple[Finding, ...]]]) -> None:
    """One group of obligations as a table."""
    SubElement(body, "h2").text = heading
    table = SubElement(body, "table")
    head = SubElement(SubElement(table, "thead"), "tr")
    for title in ("obligation", *BOUNDARIES):
        SubElement(head, "th", scope="col").text = title
    rows = SubElement(table, "tbody")
    for obligation, boundaries in found:
        row = SubElement(rows, "tr", id=obligation.covenant_id)
        name = SubElement(row, "th", scope="row")
        number = SubElement(name, "strong")
        number.text, number.tail = obligation.covenant_id, f" {obligation.sentence}"
        for finding in boundaries:
            add_finding(row, finding)


def add_finding(row: Element, finding: Finding) -> None:
    """One cell: the boundary for narrow screens and readers, the state as a word, and the tests that say so, folded
    unless one failed."""
    cell = SubElement(row, "td", title=finding.boundary)
    state = SubElement(cell, "span", {"class": f"state {COLOURS.get(finding.state, finding.state)}"})
    state.text = finding.state
    if finding.tests:
        folded = SubElement(cell, "details", {"open": ""} if finding.state == FAILED else {})
        SubElement(folded, "summary").text = "1 test" if len(finding.tests) == 1 else f"{len(finding.tests)} tests"
        add_list(folded, tuple(told(one) for one in finding.tests))


def told(shown: Shown) -> str:
    """A test with what is not plainly one pass."""
    name = shown.test.rpartition("/")[2]
    plain = shown.outcomes == {"passed": 1}
    return name if plain else f"{name} ({', '.join(f'{count} {outcome}' for outcome, count in shown.outcomes.items())})"


def add_list(parent: Element, texts: tuple[str, ...]) -> None:
    """Names of tests, one a line."""
    listed = SubElement(parent, "ul")
    for text in texts:
        SubElement(SubElement(listed, "li"), "code").text = text
