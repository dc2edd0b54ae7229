"""`receipt`: run the covenant and say, obligation by obligation, what is shown (EVD-2). It starts servers of its own."""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from law.errors import BadInput
from nightbell.options import AsJson
from nightbell.problems import DONE, REFUSED
from nightbell.receipt import FAILED, NOT_PROVEN, Receipt, document, take_receipt, tests_beside
from nightbell.receipt_page import require_writable, summary, write_receipt
from nightbell.shown import show


def add_to(app: typer.Typer) -> None:
    """Register this module's command."""
    app.command()(receipt)


def receipt(
    out: Annotated[Path, typer.Option("--out", file_okay=False, help="The folder for receipt.json and receipt.html.")],
    only: Annotated[
        list[str] | None,
        typer.Option("--only", metavar="WIN|WIN-1", help="Only this group or obligation; may be repeated."),
    ] = None,
    tests: Annotated[
        Path | None,
        typer.Option("--tests", exists=True, file_okay=False, help="The marked tests (default: this checkout's)."),
    ] = None,
    as_json: AsJson = False,
) -> int:
    """Run the tests that show the covenant, and write what is proven, what failed and what is not proven. Ends with 3
    where a test failed; what is not proven is listed, and is no failure."""
    try:
        require_writable(out)
        taken = take_receipt(tests or tests_beside(), only or [])
        written = write_receipt(taken, out)
    except BadInput as problem:
        raise typer.BadParameter(str(problem.fields["reason"]), param_hint=f"--{problem.fields['field']}") from problem
    show(as_json, document(taken), lambda console: tell(console, taken, written))
    return DONE if taken.is_clean else REFUSED


def tell(console: Console, taken: Receipt, written: tuple[Path, Path]) -> None:
    """What failed and what is not proven, each by name; then the numbers and where the rest stands."""
    for name in taken.broken:
        console.print(f"could not be read: {name}", style="red", markup=False)
    for one in taken.tests:
        if one.outcome != "passed":
            console.print(f"{one.outcome}: {one.nodeid}", style="red", markup=False)
    for state in (FAILED, NOT_PROVEN):
        for obligation, found in taken.findings:
            if at := [finding.boundary for finding in found if finding.state == state]:
                console.print(f"{state}: {obligation.covenant_id} {', '.join(at)}", markup=False)
    for sentence in summary(taken):
        console.print(sentence, markup=False)
    console.print(" ".join(str(file) for file in written), markup=False)
