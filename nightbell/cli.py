"""`nightbell`: the command line (DESIGN §11). Every command takes `--json`.

Exit codes: 0 done, 2 usage, 3 refused by law, 4 a server cannot be reached. A refusal is a code and a sentence on standard
error, or `error` in the JSON.
"""

import json
import sys
from typing import Any

import typer
import typer.exceptions

from law.errors import Contradiction
from nightbell.commands import (
    authority,
    capacity,
    changing,
    deploying,
    firings,
    importing,
    ledger,
    receipt,
    running,
    schedules,
    simulating,
    stacks,
    zones,
)
from nightbell.problems import DONE, INTERRUPTED, REFUSED, UNREACHABLE, USAGE, StackProblem
from nightbell.worker_process import leave
from store.errors import StoreProblem

app = typer.Typer(
    name="nightbell",
    help="A scheduler that tells the truth about time: one ring, one durable Occurrence, one recorded decision.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
)
for commands in (
    stacks,
    firings,
    simulating,
    schedules,
    changing,
    capacity,
    authority,
    running,
    zones,
    importing,
    ledger,
    deploying,
    receipt,
):
    commands.add_to(app)


def main() -> None:
    """The console script: run one command and leave with its exit code."""
    leave(run(sys.argv[1:]))


def run(arguments: list[str]) -> int:
    """Run one command; every refusal becomes its sentence and exit code."""
    as_json = "--json" in arguments
    try:
        answered = app(arguments, standalone_mode=False, prog_name="nightbell")
        return answered if isinstance(answered, int) else DONE
    except typer.exceptions.Exit as ended:
        return ended.exit_code
    except typer.exceptions.TyperException as problem:
        return refuse(as_json, USAGE, "usage", problem.format_message())
    except Contradiction as problem:
        return refuse(as_json, REFUSED, problem.code, problem.sentence, problem.fields, problem.obligation)
    except StackProblem as problem:
        return refuse(as_json, UNREACHABLE, problem.code, problem.sentence)
    except StoreProblem as problem:
        return refuse(as_json, UNREACHABLE, "store_unreachable", str(problem))
    except (KeyboardInterrupt, typer.exceptions.Abort):
        return INTERRUPTED


def refuse(
    as_json: bool, code: int, reason: str, sentence: str, fields: dict[str, Any] | None = None, obligation: str = ""
) -> int:
    """Say no: the reason code and a sentence, for a person or for a program."""
    if as_json:
        named = {name: str(value) for name, value in (fields or {}).items()}
        error = {"code": reason, "sentence": sentence, "obligation": obligation or None, **named}
        sys.stdout.write(json.dumps({"error": error}, indent=2) + "\n")
    else:
        sys.stderr.write(f"{reason}: {sentence}{f' ({obligation})' if obligation else ''}\n")
    return code
