"""Adoption in one command: `import crontab`, `import k8s`, `import temporal`. No server is needed.

Each reads the whole file, drafts every Schedule file and checks it, and only then writes them all. What does not come along
is said, entry by entry; what cannot come at all is named with the reason. Nothing is applied: the files are for a person
to read, and for `nightbell preview` and `nightbell apply`.
"""

from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from law.identity import schedule_name
from law.instants import instant_text
from nightbell.importing.cronjobs import read_cronjobs
from nightbell.importing.crontab import is_system_crontab, read_crontab
from nightbell.importing.drafts import Draft, Terms, chosen_pattern, drafted
from nightbell.importing.entries import Found
from nightbell.importing.folder import lay_out
from nightbell.importing.source import read_json, read_text, read_yaml
from nightbell.importing.temporal_schedules import read_schedules
from nightbell.options import AsJson
from nightbell.problems import DONE, REFUSED
from nightbell.shown import show
from patterns.catalogue import installed


def there(file: Path) -> Path:
    """A file that can be opened, or standard input. Raises BadParameter: usage, not law."""
    if str(file) != "-" and (not file.exists() or file.is_dir()):
        raise typer.BadParameter(f"{file} is {'a folder' if file.is_dir() else 'not there'}")
    return file


File = Annotated[Path, typer.Argument(callback=there, help="The file to import; - is standard input.")]
Out = Annotated[Path, typer.Option("--out", file_okay=False, help="The folder for the Schedule files.")]
Authority = Annotated[str, typer.Option("--authority", help="Who the Schedules belong to.")]
Owner = Annotated[str, typer.Option("--owner", help="For whom the work acts (default: the authority's name).")]
PatternName = Annotated[str, typer.Option("--pattern", help="The installed Pattern that each Schedule rings.")]
PatternRevision = Annotated[str, typer.Option("--pattern-revision", help="Its revision, where there are several.")]
ParallelMax = Annotated[
    int, typer.Option("--parallel-max", min=1, max=10_000, help="How many at once, where the source has no bound.")
]
FOLDER = Path("schedules-imported")


def add_to(app: typer.Typer) -> None:
    """Register this module's commands."""
    group = typer.Typer(
        name="import",
        help="Carry schedules over from cron, Kubernetes or Temporal, and say what does not come along.",
        no_args_is_help=True,
    )
    for name, command in (("crontab", crontab), ("k8s", k8s), ("temporal", temporal)):
        group.command(name)(command)
    app.add_typer(group)


def crontab(
    file: File,
    zone: Annotated[str, typer.Option("--zone", help="The zone of the clocks that cron went by.")],
    system: Annotated[
        bool | None,
        typer.Option("--system/--user", help="Whether a user stands before each command (default: found out)."),
    ] = None,
    out: Out = FOLDER,
    authority: Authority = "home",
    owner: Owner = "",
    pattern: PatternName = "",
    pattern_revision: PatternRevision = "",
    parallel_max: ParallelMax = 10,
    as_json: AsJson = False,
) -> int:
    """A crontab, a user's or the system's."""
    terms = terms_of(authority, owner, pattern, pattern_revision)
    text = read_text(file)
    with_users = is_system_crontab(text, str(file.absolute())) if system is None else system
    found = read_crontab(text, zone, with_users, parallel_max)
    return carry_over(found, "a system crontab" if with_users else "a user's crontab", file, terms, out, as_json)


def k8s(
    file: File,
    zone: Annotated[
        str | None, typer.Option("--zone", help="The zone of the cluster's controller, for jobs without timeZone.")
    ] = None,
    out: Out = FOLDER,
    authority: Authority = "home",
    owner: Owner = "",
    pattern: PatternName = "",
    pattern_revision: PatternRevision = "",
    parallel_max: ParallelMax = 10,
    as_json: AsJson = False,
) -> int:
    """Kubernetes CronJobs: manifests, or what `kubectl get cronjobs -o yaml` prints."""
    terms = terms_of(authority, owner, pattern, pattern_revision)
    found = read_cronjobs(read_yaml(read_text(file)), zone, parallel_max)
    return carry_over(found, "Kubernetes CronJobs", file, terms, out, as_json)


def temporal(
    file: File,
    name: Annotated[
        str, typer.Option("--name", help="The Schedule's name (default: its id, or the file's name).")
    ] = "",
    out: Out = FOLDER,
    authority: Authority = "home",
    owner: Owner = "",
    pattern: PatternName = "",
    pattern_revision: PatternRevision = "",
    parallel_max: ParallelMax = 10,
    as_json: AsJson = False,
) -> int:
    """A Temporal Schedule, as `temporal schedule describe -o json` prints it."""
    terms = terms_of(authority, owner, pattern, pattern_revision)
    found = read_schedules(read_json(read_text(file)), name, file.stem, parallel_max)
    return carry_over(found, "a described Temporal Schedule", file, terms, out, as_json)


def terms_of(authority: str, owner: str, pattern: str, pattern_revision: str) -> Terms:
    """What no foreign file says. Raises BadInput before the file is even read."""
    schedule_name(authority, "any")
    return Terms(authority, owner or authority, chosen_pattern(pattern, pattern_revision, installed()))


def carry_over(found: Found, kind: str, file: Path, terms: Terms, out: Path, as_json: bool) -> int:
    """Draft everything, write it, and tell; refused (3) where there was something and nothing could be carried over."""
    source = "standard input" if str(file) == "-" else file.name
    drafts, found = drafted(found, source, terms, datetime.now(UTC).replace(microsecond=0))
    files = lay_out(drafts, out)
    value = {
        "source": source,
        "kind": kind,
        "schedules": [line(*one) for one in zip(drafts, files, strict=True)],
        "not_imported": [asdict(one) for one in found.refused],
        "not_carried_over": [asdict(one) for one in found.losses],
        "passed_over": found.passed_over,
    }
    show(as_json, value, lambda console: tell(console, value, drafts, files, found))
    return REFUSED if found.refused and not drafts else DONE


def line(draft: Draft, file: Path) -> dict[str, Any]:
    """One Schedule file as the command line's contract has it."""
    return {
        "file": str(file),
        "schedule": draft.document.schedule,
        "from": draft.entry.where,
        "original": list(draft.entry.original),
        "next_firings": [
            {"civil": one.civil.isoformat(), "at": one.at, "kind": one.kind.value} for one in draft.next_firings
        ],
        "not_carried_over": [asdict(one) for one in draft.entry.losses],
    }


def tell(console: Console, value: dict[str, Any], drafts: Sequence[Draft], files: Sequence[Path], found: Found) -> None:
    """The report for a person."""

    def say(text: str) -> None:
        console.print("".join(one if one.isprintable() else "?" for one in text), markup=False)

    say(f"{value['source']}, read as {value['kind']}:")
    for one, file in zip(drafts, files, strict=True):
        say("")
        say(f"{one.document.schedule}  {file}  ({one.entry.where})")
        for firing in one.next_firings:
            kind = "" if firing.kind.value == "normal" else f"  {firing.kind.value}"
            say(f"  rings {firing.civil.isoformat()} in {firing.zone}, {instant_text(firing.at)}{kind}")
        for loss in one.entry.losses:
            say(f"  {loss.sentence}")
    if found.losses:
        say("")
    for loss in found.losses:
        say(f"of the whole file: {loss.sentence}")
    for refused in found.refused:
        say(f"not imported: {refused.where}: {refused.reason}")
    for other in found.passed_over:
        say(f"passed over: {other}")
    say("")
    say(ending(files, found))


def ending(files: Sequence[Path], found: Found) -> str:
    """What was done, and what to do next."""
    if files:
        next_step = "Read them, `nightbell preview` each, then `nightbell apply`."
        return f"{len(files)} written, {len(found.refused)} not imported. {next_step}"
    return "Nothing could be imported." if found.refused else "There was nothing to import."
