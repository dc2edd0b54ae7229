"""`python -m benchmarks [--quick] [row …]`: measure, side by side in one run, into `benchmarks/results.json`.

Absolute figures are the machine's; the ratios are ours. A run that names its rows prints them and keeps the file.
"""

import argparse
import json
import os
import platform
import time
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks.rows import ROWS, Row
from benchmarks.server import running_server

RESULTS = Path(__file__).with_name("results.json")


def main() -> None:
    """Measure what was asked for, print the table, and write the results of a whole run."""
    parser = argparse.ArgumentParser(prog="benchmarks", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer repetitions, under 90 seconds")
    parser.add_argument("rows", nargs="*", metavar="row", help=f"of {', '.join(row.name for row in ROWS)}; default all")
    asked = parser.parse_args()
    unknown = set(asked.rows) - {row.name for row in ROWS}
    if unknown:
        parser.error(f"no such row: {', '.join(sorted(unknown))}")
    rows = [row for row in ROWS if not asked.rows or row.name in asked.rows]
    results = run(rows, asked.quick)
    show(rows, results)
    if not asked.rows:
        if any("problem" in found for found in results["rows"].values()):
            raise SystemExit("A row could not be measured; the file is kept as it was.")
        RESULTS.write_text(json.dumps(results, indent=2) + "\n", encoding="utf-8")


def run(rows: list[Row], quick: bool) -> dict[str, Any]:
    """Measure the rows one after the other on one server."""
    results: dict[str, Any] = {"quick": quick, "machine": machine(), "rows": {}}
    began = time.monotonic()
    with running_server() as server:
        for row in rows:
            row_began = time.monotonic()
            try:
                found = row.measure(server, quick)
            except (AssertionError, RuntimeError, TimeoutError) as problem:
                found = {"ratio": float("nan"), "problem": str(problem)}
            words = {"what": row.what, "against": row.against, "target": row.target}
            bound = {"better": "more" if row.at_least else "less", "met": row.met(found["ratio"])}
            took = {"took_seconds": time.monotonic() - row_began}
            results["rows"][row.name] = rounded({**words, **bound, **found, **took})
            print(f"{row.name}: {results['rows'][row.name]}", flush=True)
    results["took_seconds"] = round(time.monotonic() - began, 1)
    return results


def machine() -> dict[str, Any]:
    """What the absolute figures depend on."""
    return {"cores": os.cpu_count(), "system": platform.system(), "python": platform.python_version(), "fsync": "on"}


def rounded(value: Any) -> Any:
    """Figures to four significant digits; more would be noise."""
    if isinstance(value, dict):
        return {name: rounded(one) for name, one in value.items()}
    return float(f"{value:.4g}") if isinstance(value, float) else value


def show(rows: list[Row], results: dict[str, Any]) -> None:
    """The table."""
    table = Table("what", "against", "target", "measured", "", title="What fast means here")
    for row in rows:
        found = results["rows"][row.name]
        sign = "≥" if row.at_least else "≤"
        verdict = "met" if found["met"] else "short"
        table.add_row(row.what, row.against, f"{sign} {row.target}", f"{found['ratio']:.3g}", verdict)
    Console().print(table)


if __name__ == "__main__":
    main()
