"""The operator's acts on Runs: `run cancel`, `run consent`, `run answer`, `run contain`, `run recover`, `run awaited`."""

import dataclasses
from typing import Annotated, Any, get_args
from uuid import UUID, uuid4

import typer
from rich.console import Console

from law.errors import BadInput
from law.identity import DecisionId, RunId, StationAttemptId
from nightbell.commands.schedules import read_content, ring
from nightbell.options import AsJson, HomeFolder, store_of
from nightbell.shown import cell, show, table
from store import cancelling, parking, recovery

Run = Annotated[str, typer.Argument(help="A run_id, as `runs` prints it.", metavar="RUN")]
By = Annotated[str, typer.Option("--by", help="Who answers for it; recorded.")]
Note = Annotated[str, typer.Option("--note", help="Why, for whoever reads it at night.")]
AWAITED_COLUMNS = {
    "asked_at": "asked", "schedule": "Schedule", "kind": "waits for", "wait_key": "key", "question": "question",
    "state": "state", "asked_of": "of whom", "run_id": "Run",
}  # fmt: skip
DOUBT_COLUMNS = {
    "admitted_at": "began", "kind": "effect", "effect_key": "key", "state": "state", "note": "note",
    "station_attempt_id": "station attempt",
}  # fmt: skip


def add_to(app: typer.Typer) -> None:
    """Register this module's commands."""
    group = typer.Typer(name="run", help="What an operator may do about a Run.", no_args_is_help=True)
    for command in (cancel, consent, answer, contain, recover, awaited):
        group.command(command.__name__)(command)
    app.add_typer(group)


def cancel(run: Run, by: By, note: Note = "", home: HomeFolder = None, as_json: AsJson = False) -> None:
    """Ask that a Run end. Nothing is killed: no further effect begins, and what began goes on to its own end."""
    with store_of(home) as (settings, pool):
        acted = cancelling.cancel(pool, read_run(run), by, note, DecisionId(uuid4()))
    ring(settings, [acted.schedule])
    show(as_json, dataclasses.asdict(acted), lambda console: console.print(said(acted)))


def read_run(text: str) -> RunId:
    """A Run's id. Raises BadInput."""
    return RunId(read_id("run", text))


def read_id(field: str, text: str) -> UUID:
    """An id. Raises BadInput naming the field."""
    try:
        return UUID(text)
    except ValueError as problem:
        raise BadInput(field=field, reason=f"{text[:70]!r} is not an id") from problem


def said(acted: cancelling.Acted | parking.Answered) -> str:
    """Where the Run stands now, in a sentence."""
    how = "" if acted.changed else " already"
    return (
        f"Run {acted.run_id} of {acted.schedule} is{how} {acted.state}{f' ({acted.reason})' if acted.reason else ''}."
    )


def consent(
    run: Run,
    key: Annotated[str, typer.Argument(help="What is consented to, as `run awaited` prints it.", metavar="KEY")],
    approve: Annotated[bool, typer.Option("--approve", help="Say yes.")] = False,
    deny: Annotated[bool, typer.Option("--deny", help="Say no.")] = False,
    withdraw: Annotated[
        bool, typer.Option("--withdraw", help="Take a yes back: no effect begins under it any more.")
    ] = False,
    by: By = "",
    note: Note = "",
    home: HomeFolder = None,
    as_json: AsJson = False,
) -> None:
    """Approve, deny or withdraw what a Run asked for. No bound is moved by it."""
    answers: list[tuple[bool, parking.Said]] = [(approve, "approved"), (deny, "denied"), (withdraw, "withdrawn")]
    chosen: list[parking.Said] = [word for asked, word in answers if asked]
    if len(chosen) != 1:
        raise BadInput(field="consent", reason="say exactly one of --approve, --deny and --withdraw")
    with store_of(home) as (settings, pool):
        decision_id = DecisionId(uuid4())
        answered = parking.answer(pool, read_run(run), "consent", key, chosen[0], by, note, None, decision_id)
    ring(settings, [answered.schedule])
    show(as_json, dataclasses.asdict(answered), lambda console: console.print(said(answered)))


def answer(
    run: Run,
    key: Annotated[str, typer.Argument(help="What was delegated, as `run awaited` prints it.", metavar="KEY")],
    by: By,
    content: Annotated[str, typer.Option(help="A JSON object: what the delegate answers.")] = "{}",
    note: Note = "",
    home: HomeFolder = None,
    as_json: AsJson = False,
) -> None:
    """Bring a delegate's answer."""
    with store_of(home) as (settings, pool):
        decision_id, said_by = DecisionId(uuid4()), read_content(content)
        answered = parking.answer(pool, read_run(run), "delegate", key, "answered", by, note, said_by, decision_id)
    ring(settings, [answered.schedule])
    show(as_json, dataclasses.asdict(answered), lambda console: console.print(said(answered)))


def contain(
    run: Run,
    effect: Annotated[str, typer.Option(help="The station attempt that something was found out about.")] = "",
    finding: Annotated[str, typer.Option(help="happened, did_not_happen or compensated.")] = "",
    by: By = "",
    note: Note = "",
    result: Annotated[
        str | None, typer.Option(help="A JSON object: what the effect answered, where it happened.")
    ] = None,
    home: HomeFolder = None,
    as_json: AsJson = False,
) -> None:
    """Show what is uncertain about a Run; or record what you found out about one of its effects, and why you know."""
    run_id = read_run(run)
    if not effect and not finding:
        with store_of(home) as (_, pool):
            parking_lines = [dataclasses.asdict(one) for one in cancelling.in_doubt(pool, run_id)]
            recovery.schedule_of(pool, run_id)
        return show(as_json, parking_lines, table(parking_lines, DOUBT_COLUMNS, "Nothing about this Run is in doubt."))
    known = read_finding(finding)
    found = read_content(result) if result is not None else None
    attempt = StationAttemptId(read_id("effect", effect))
    with store_of(home) as (settings, pool):
        acted = cancelling.find(pool, run_id, attempt, known, by, note, found, DecisionId(uuid4()))
    ring(settings, [acted.schedule])
    return show(as_json, dataclasses.asdict(acted), lambda console: console.print(said(acted)))


def read_finding(text: str) -> cancelling.Finding:
    """A finding by name. Raises BadInput."""
    for known in get_args(cancelling.Finding):
        if text == known:
            return known
    raise BadInput(field="finding", reason=f"{text[:70]!r} is none of {', '.join(get_args(cancelling.Finding))}")


def recover(run: Run, by: By, note: Note = "", home: HomeFolder = None, as_json: AsJson = False) -> None:
    """Take up a Run that failed or was cancelled: a new, related Invocation of the same Occurrence, judged afresh."""
    with store_of(home) as (settings, pool):
        recovered = recovery.recover(pool, read_run(run), by, note, DecisionId(uuid4()))
    ring(settings, [recovered.schedule])
    told = f"Run {recovered.run_id} takes up {recovered.recovers}."
    show(as_json, dataclasses.asdict(recovered), lambda console: console.print(told))


def awaited(
    run: Annotated[str | None, typer.Argument(help="Only of this Run, answered ones too.", metavar="[RUN]")] = None,
    home: HomeFolder = None,
    as_json: AsJson = False,
) -> None:
    """What Runs wait for: consents and delegates."""
    run_id = read_run(run) if run else None
    with store_of(home) as (_, pool):
        lines: list[dict[str, Any]] = [
            dataclasses.asdict(one) for one in parking.awaited(pool, run_id, only_open=run_id is None)
        ]

    def render(console: Console) -> None:
        shown = [
            {**line, "question": cell("question", line["question"].get("question", line["question"]))} for line in lines
        ]
        table(shown, AWAITED_COLUMNS, "Nobody is waited for.")(console)

    show(as_json, lines, render)
