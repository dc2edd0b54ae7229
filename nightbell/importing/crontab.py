"""Crontabs, user's and system's, as Debian's cron and cronie read them.

The five fields mean here what they mean there, the day rule included, so the expression is carried over as it stands. So
is what cron does when the clocks change: a job at fixed times is run once although its time comes twice, and at the jump
although its time does not come; a job with `*` in its minutes or hours follows the clocks as they read. And so is that cron
starts a command in its minute or never: that is the window. Everything else in a line is not a Schedule's, and is said.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from law.cron import ALIASES, MONTHS, WEEKDAYS, parse_cron
from law.errors import BadInput, UnknownZone
from nightbell.importing.entries import Entry, Found, Loss, Refused, gathered, slug
from store.zone_rules import installed_rules

FIELDS_COUNT = 5
ASSIGNMENT = re.compile(r"""\s*("[^"]*"|'[^']*'|[A-Za-z_]\w*)\s*=(.*)""", re.DOTALL)
FIELD = re.compile(r"[0-9*,/-]+")
NAMES = re.compile(rf"(?<![A-Z])({'|'.join((*WEEKDAYS, *MONTHS))})(?![A-Z])", re.IGNORECASE)
SYSTEM_HEADING = re.compile(r"^#.*\bdow\s+user(-name)?\b", re.IGNORECASE | re.MULTILINE)
STEP_OF_ONE = re.compile(r"(?:^|,)([0-9A-Za-z]+)/[0-9]+")
BARE_PERCENT = re.compile(r"(?<!\\)%")
WRAPPERS = frozenset(
    {"env", "exec", "nice", "ionice", "flock", "chronic", "sudo", "time", "timeout", "sh", "bash", "cd"}
)
ENDINGS = (".sh", ".py", ".pl", ".rb", ".php", ".js")

COMMANDS = Loss(
    "the commands and their environment",
    "a Schedule rings an installed Pattern and never a shell line",
    "each file has its line as a comment and rings the Pattern that was named",
)
MAIL = Loss("MAILTO", "nothing here sends mail", "`nightbell runs` and `nightbell explain` say how each Run ended")


@dataclass(frozen=True, slots=True)
class Standing:
    """What holds for the lines that follow: the zone, or why there is none."""

    zone: str
    zone_refused: str = ""


def read_crontab(text: str, zone: str, system: bool, parallel_max: int) -> Found:
    """Read a crontab whose host's clocks are those of `zone`. Raises UnknownZone for a zone that is none."""
    installed_rules(zone)
    found = gathered(read_lines(text, Standing(zone), system, parallel_max))
    return replace(found, losses=(COMMANDS, *found.losses)) if found.entries else found


def is_system_crontab(text: str, path: str) -> bool:
    """Whether the sixth field is a user: by where the file lies, by the heading that such files come with, or because a
    line names root, which no command is called."""
    if path == "/etc/crontab" or "/cron.d/" in path:
        return True
    return bool(SYSTEM_HEADING.search(text)) or any(map(is_roots, text.split("\n")))


def is_roots(line: str) -> bool:
    """Whether root stands where a system crontab has the user."""
    parts = line.split(None, FIELDS_COUNT + 1)
    place = 1 if line.lstrip().startswith("@") else FIELDS_COUNT
    return len(parts) > place + 1 and parts[place] == "root" and parts[0][0] in "@*0123456789"


def read_lines(text: str, standing: Standing, system: bool, parallel_max: int) -> Iterator[Entry | Refused | Loss]:
    """What each line is; blank lines and comments are nothing."""
    for number, written in enumerate(text.split("\n"), 1):
        line, where = written.strip(" \t\r"), f"line {number}"
        if not line or line.startswith("#"):
            continue
        if assignment := ASSIGNMENT.fullmatch(line):
            name, value = assignment[1].strip("\"'"), unquoted(assignment[2].strip())
            standing, loss = assigned(name, value, where, standing)
            if loss is not None:
                yield loss
            continue
        try:
            yield read_entry(line, where, standing, system, parallel_max)
        except BadInput as problem:
            yield Refused(f"{where}: {line}", str(problem.fields["reason"]))


def unquoted(value: str) -> str:
    """A value without the quotes around it."""
    return value[1:-1] if len(value) > 1 and value[0] == value[-1] and value[0] in "\"'" else value


def assigned(name: str, value: str, where: str, standing: Standing) -> tuple[Standing, Loss | None]:
    """What an assignment changes for the lines that follow, and what of it is lost."""
    if name == "CRON_TZ":
        try:
            installed_rules(value)
        except UnknownZone as problem:
            return replace(standing, zone_refused=f"CRON_TZ of {where}: {problem.fields['reason']}"), None
        return Standing(value), None
    if name == "MAILTO":
        return standing, MAIL
    if name == "TZ":
        because = "it sets the clocks of the command and not when it rings (that would be CRON_TZ)"
        return standing, Loss(f"TZ={value} ({where})", because, f"these lines ring by {standing.zone}")
    if name == "RANDOM_DELAY":
        because = "the daemon draws it once for itself, and the window of a minute has no room for it"
        return standing, Loss(
            f"RANDOM_DELAY={value} ({where})", because, "a [jitter] table can be added to a wider window"
        )
    because = "a Pattern has the worker's environment"
    return standing, Loss(
        f"{name} ({where})", because, "set it where the worker runs, or in the Pattern's [work] input"
    )


def read_entry(line: str, where: str, standing: Standing, system: bool, parallel_max: int) -> Entry:
    """One line that rings something. Raises BadInput with the reason why it cannot be carried over."""
    quiet, line_itself = line.startswith("-"), line.removeprefix("-")
    expression, rest = split_times(line_itself)
    user, command = [*rest.split(None, 1), "", ""][:2] if system else ("", rest)
    if not command:
        raise BadInput(field=where, reason="has no command after " + ("its user" if system else "its times"))
    if standing.zone_refused:
        raise BadInput(field=where, reason=standing.zone_refused)
    refuse_what_cron_refuses(expression, where)
    parse_cron(expression, where)
    losses = [*command_losses(command, user), *step_losses(expression)]
    if quiet:
        losses.append(Loss("the leading -", "there is no system log to be kept out of", "every decision is recorded"))
    because = "cron starts a command beside itself without any bound"
    losses.append(Loss("unbounded overlap", because, f"at most {parallel_max} at once"))
    return Entry(where, (line,), name_of(command), tables_of(expression, standing.zone, parallel_max), tuple(losses))


def split_times(line: str) -> tuple[str, str]:
    """The expression and what follows it. Raises BadInput for what is no entry."""
    if line.startswith("@"):
        nickname, _, rest = line.partition(" ") if " " in line else line.partition("\t")
        if nickname.lower() == "@reboot":
            reason = "@reboot rings when a host starts, which is no civil time; offer an external event from the host's start"
            raise BadInput(field="times", reason=reason)
        if nickname.lower() not in ALIASES:
            raise BadInput(field="times", reason=f"{nickname} is none of {', '.join(ALIASES)}")
        return nickname.lower(), rest.strip()
    parts = line.split(None, FIELDS_COUNT)
    if len(parts) <= FIELDS_COUNT:
        raise BadInput(field="times", reason="is neither an assignment nor five fields and a command")
    return " ".join(parts[:FIELDS_COUNT]), parts[FIELDS_COUNT]


def refuse_what_cron_refuses(expression: str, where: str) -> None:
    """Cron drops a line that it cannot read; what only other dialects know never rang, and must not begin to."""
    if expression.startswith("@"):
        return
    for field in expression.split():
        if "~" in field:
            reason = f"{field}: the daemon draws this time at random; write one time, and [jitter] if it should move"
            raise BadInput(field=where, reason=reason)
        if not FIELD.fullmatch(NAMES.sub("0", field)):
            raise BadInput(field=where, reason=f"{field} is not a field that cron can read")


def command_losses(command: str, user: str) -> Iterator[Loss]:
    """What of the command's own reading is lost."""
    if user:
        because = "a Pattern acts for its owner under the worker's account"
        yield Loss(f"the user {user}", because, "[work] owner and sigil say for whom it acts")
    if BARE_PERCENT.search(command):
        because = "what follows an unescaped % was the command's standard input"
        yield Loss("the standard input after %", because, "put it into the Pattern's [work] input")


def step_losses(expression: str) -> Iterator[Loss]:
    """Steps after a single number: some crons refuse them."""
    if found := STEP_OF_ONE.search(expression):
        term = found[0].lstrip(",")
        because = "crons read a step after a single number in two ways, or refuse it"
        yield Loss(term, because, f"it rings from {found[1]} to the end of the field, as in cronie")


def name_of(command: str) -> str:
    """A name for a command: the first word that says what is done, without its folder and ending."""
    for word in BARE_PERCENT.split(command)[0].split():
        base = word.strip("\"'();&|{}[]").rpartition("/")[2]
        if not base or base in WRAPPERS or "=" in base or base.startswith("-") or base.isdigit():
            continue
        for ending in ENDINGS:
            base = base.removesuffix(ending)
        return slug(base, "job")
    return "job"


def tables_of(expression: str, zone: str, parallel_max: int) -> dict[str, Any]:
    """The Schedule's tables."""
    by_the_clocks = follows_the_clocks(expression)
    trigger = {
        "kind": "calendar",
        "cron": expression,
        "zone": zone,
        "fold": "both" if by_the_clocks else "earlier",
        "gap": "skip" if by_the_clocks else "advance",
    }
    return {
        "trigger": trigger,
        "class": {"service_class": "deadline_windowed"},
        "window": {"allowed_delay": "1m"},
        "overlap": {"policy": "bounded_parallel", "max": parallel_max},
    }


def follows_the_clocks(expression: str) -> bool:
    """Whether a job has `*` in its minutes or hours: only a job at fixed times is protected from changes of the clocks."""
    minutes, hours = ALIASES.get(expression, expression).split()[:2]
    return minutes.startswith("*") or hours.startswith("*")
