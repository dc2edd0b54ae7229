"""What is wrong with this machine or these servers, and what to do: a list of small checks, each one sentence.

A check looks and changes nothing. Those about the schema come from outside, so that this module knows no store. A
server that is away is said once; the other checks go on.
"""

import importlib.metadata
import importlib.util
import os
import platform
import shutil
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

import psycopg
from temporalio.api.operatorservice.v1 import ListSearchAttributesRequest
from temporalio.client import Client
from temporalio.envconfig import ClientConfig

from nightbell.home import Home, read_state
from nightbell.ports import by_whom, is_free
from nightbell.postgres_server import EMPTY_HOME_BYTES, RUNNING_HOME_BYTES
from nightbell.problems import StackProblem
from nightbell.settings import Settings
from nightbell.stack import attach, status
from nightbell.temporal_server import SEARCH_ATTRIBUTES
from nightbell.wheels import POSTGRES_WHEEL, TEMPORAL_WHEEL, Wheel, find_binary

PYTHON_MIN = (3, 11)
POSTGRES_MIN = 17
CLOCK_SKEW_SECONDS_MAX = 1.0
OUR_PACKAGES = ("law", "store", "activities", "workflows", "patterns", "nightbell")
TRUSTED_NOW_SOURCE = "SELECT clock_timestamp()"
REACH = "Start the stack with `nightbell up`, or set NIGHTBELL_DATABASE_URL and TEMPORAL_ADDRESS to servers that run."


@dataclass(frozen=True, slots=True)
class Check:
    """What was looked at, whether it is well, a sentence about what was found, and what to do if it is not."""

    name: str
    ok: bool
    sentence: str
    remedy: str = ""


@dataclass(frozen=True, slots=True)
class Patient:
    """What the checks look at: the settings, their home, and the addresses of the servers where there are any."""

    settings: Settings
    home: Home
    database_url: str | None
    temporal_address: str | None
    at_head: Callable[[str], bool] | None = None


async def doctor(settings: Settings, at_head: Callable[[str], bool] | None = None) -> list[Check]:
    """Run every check. `at_head` says whether a database (its URL) has this version's schema. Raises nothing: a check
    that cannot look says so."""
    patient = examine(settings, at_head)
    found = [checked(name, check, patient) for name, check in MACHINE_CHECKS]
    if found[-1].ok:
        found += [checked(name, check, patient) for name, check in DATABASE_CHECKS]
    return [*found, await temporal(patient)]


def examine(settings: Settings, at_head: Callable[[str], bool] | None) -> Patient:
    """The addresses that the settings name, else those of the home's running stack."""
    home = Home.at(settings.home)
    database_url = settings.database_url.get_secret_value() if settings.database_url else None
    temporal_address = settings.temporal_address
    with suppress(StackProblem):
        if database_url is None or temporal_address is None:
            found = attach(home).address
            database_url = database_url or found.database_url
            temporal_address = temporal_address or found.temporal_address
    return Patient(settings, home, database_url, temporal_address, at_head)


def checked(name: str, check: Callable[[Patient], Check], patient: Patient) -> Check:
    """One check; what it stumbles over is its finding, and only a finding needs a remedy."""
    try:
        found = check(patient)
        return replace(found, remedy="") if found.ok else found
    except StackProblem as problem:
        return Check(name, False, problem.sentence, REACH if problem.code == "not_running" else "")
    except psycopg.OperationalError as problem:
        return Check(name, False, f"PostgreSQL cannot be reached: {first_line(problem)}.", REACH)
    except Exception as problem:
        return Check(name, False, f"This could not be looked at: {type(problem).__name__}: {first_line(problem)}.")


def first_line(problem: BaseException) -> str:
    """The first line of what an error says."""
    return (str(problem).strip().splitlines() or [type(problem).__name__])[0].rstrip(".")


def python(_: Patient) -> Check:
    """The interpreter is new enough."""
    found = f"Python {platform.python_version()}"
    return Check("python", sys.version_info >= PYTHON_MIN, f"{found} runs this.", "Install Python 3.11 or newer.")


def packages(_: Patient) -> Check:
    """`store` and the others are ours, not somebody else's of the same name."""
    root = Path(__file__).resolve().parents[1]
    strangers = [name for name in OUR_PACKAGES if (found := folder_of(name)) is not None and found.parent != root]
    if strangers:
        return Check(
            "packages",
            False,
            f"These names belong to another package here: {', '.join(strangers)}.",
            "Use a virtual environment of its own for Nightbell.",
        )
    return Check("packages", True, f"All six packages are ours, from {root}.")


def folder_of(name: str) -> Path | None:
    """The folder that an import of this package would read."""
    spec = importlib.util.find_spec(name)
    return Path(spec.origin).resolve().parent if spec and spec.origin else None


def wheel(which: Wheel) -> Callable[[Patient], Check]:
    """The wheel is installed and carries its server, or is not needed since the settings name servers."""

    def check(patient: Patient) -> Check:
        if names_servers(patient.settings):
            return Check(which.package, True, f"{which.package} is not needed: the settings name servers.")
        path = find_binary(which)
        return Check(which.package, True, f"{which.package} {importlib.metadata.version(which.package)}: {path}.")

    return check


def names_servers(settings: Settings) -> bool:
    """Whether the settings name both servers, so that nothing of an embedded stack is needed here."""
    return settings.database_url is not None and settings.temporal_address is not None


def home(patient: Patient) -> Check:
    """The home is ours, private and writable; one that does not exist yet can be made, or is not needed."""
    path, remedy = patient.home.path, "Choose a folder of your own with --home or NIGHTBELL_HOME."
    if not path.exists() and names_servers(patient.settings):
        return Check("home", True, "No home is needed: the settings name servers.")
    if not path.exists():
        above = next(folder for folder in path.parents if folder.exists())
        return Check("home", os.access(above, os.W_OK), f"The home {path} does not exist yet.", remedy)
    mode = path.stat().st_mode
    if path.stat().st_uid != os.geteuid() or not os.access(path, os.W_OK):
        return Check("home", False, f"The home {path} is not yours to write.", remedy)
    read_state(patient.home)
    private = f"Make it private: chmod 700 {path}"
    return Check("home", not mode & 0o067, f"The home {path} has mode {mode & 0o777:o}.", private)


def disk(patient: Patient) -> Check:
    """There is room to start and to work."""
    path = next(folder for folder in (patient.home.path, *patient.home.path.parents) if folder.exists())
    needed = RUNNING_HOME_BYTES if patient.home.postgres_path.exists() else EMPTY_HOME_BYTES
    free = shutil.disk_usage(path).free
    return Check(
        "disk",
        free >= needed,
        f"{free // 2**20} MB are free at {path}; {needed // 2**20} MB are needed.",
        "Free some space.",
    )


def ports(patient: Patient) -> Check:
    """The ports that were asked for are free, or are those of the stack that runs."""
    if status(patient.home)["state"] != "stopped":
        used = read_state(patient.home).ports
        return Check("ports", True, f"The stack uses {used.postgres}, {used.temporal} and {used.ui}.")
    settings = patient.settings
    asked = [port for port in (settings.postgres_port, settings.temporal_port, settings.ui_port) if port]
    busy = [f"{port}{by_whom(port)}" for port in asked if not is_free(port)]
    free = (
        f"Asked for: {', '.join(map(str, asked))}; all free."
        if asked
        else "None is asked for: any free ones are taken."
    )
    return Check("ports", not busy, f"In use: {'; '.join(busy)}." if busy else free, "Ask for others, or for none.")


def stack(patient: Patient) -> Check:
    """The home's stack runs whole, or is stopped as a whole."""
    found = status(patient.home)["state"]
    problem = read_state(patient.home).problem if found == "stopped" else None
    sentence = f"The stack of {patient.home.path} is {found}." + (f" Last time: {problem}" if problem else "")
    return Check("stack", found != "degraded", sentence, f"Its logs are in {patient.home.logs_path}.")


def postgres(patient: Patient) -> Check:
    """PostgreSQL answers and is new enough."""
    with connect(patient) as connection:
        version = connection.info.server_version // 10_000
    newer = f"Use PostgreSQL {POSTGRES_MIN} or newer."
    return Check("postgres", version >= POSTGRES_MIN, f"PostgreSQL {version} answers.", newer)


def connect(patient: Patient) -> "psycopg.Connection[tuple[object, ...]]":
    """A short connection to the database. Raises StackProblem when none is known."""
    if patient.database_url is None:
        raise StackProblem("not_running", "No PostgreSQL is known.")
    return psycopg.connect(patient.database_url, connect_timeout=3)


def schema(patient: Patient) -> Check:
    """The database has exactly this version's schema."""
    if patient.at_head is None or patient.database_url is None:
        return Check("schema", True, "The schema was not asked about.")
    ok = patient.at_head(patient.database_url)
    found = "is this version's" if ok else "is not this version's"
    return Check("schema", ok, f"The schema {found}.", "Run `nightbell migrate`.")


def trusted_now(patient: Patient) -> Check:
    """The one source of decision time is untouched (WIN-2)."""
    statement = (
        "SELECT l.lanname, p.provolatile::text, p.prosrc FROM pg_proc p JOIN pg_language l ON l.oid = p.prolang"
        " WHERE p.oid = to_regprocedure('nightbell.trusted_now()')"
    )
    with connect(patient) as connection:
        row = connection.execute(statement).fetchone()
    if row is None:
        return Check("trusted_now", False, "nightbell.trusted_now() does not exist.", "Run `nightbell migrate`.")
    ok = row == ("sql", "v", TRUSTED_NOW_SOURCE)
    found = "is the server's clock" if ok else f"was replaced: {first_line(Exception(row[2]))}"
    return Check("trusted_now", ok, f"nightbell.trusted_now() {found}.", "No decision of this database can be trusted.")


def clock(patient: Patient) -> Check:
    """PostgreSQL's clock, which decides, and this host's, which shows, agree."""
    with connect(patient) as connection:
        connection.execute("SELECT 1")
        before = time.time()
        row = connection.execute("SELECT extract(epoch FROM clock_timestamp())::float8").fetchone()
        after = time.time()
    assert row is not None
    skew = float(str(row[0])) - (before + after) / 2
    at = datetime.fromtimestamp(after, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return Check(
        "clock",
        abs(skew) <= CLOCK_SKEW_SECONDS_MAX,
        f"PostgreSQL's clock is {skew:+.3f} s from this host's ({at}).",
        "Synchronize both hosts; decisions follow PostgreSQL's clock.",
    )


async def temporal(patient: Patient) -> Check:
    """Temporal answers and knows our search attributes."""
    if patient.temporal_address is None:
        return Check("temporal", False, "No Temporal is known.", REACH)
    try:
        profile = ClientConfig.load_client_connect_config(override_env_vars=patient.settings.temporal_environment())
        profile["target_host"] = patient.temporal_address
        profile["namespace"] = patient.settings.temporal_namespace
        client = await Client.connect(**profile)
        asked = ListSearchAttributesRequest(namespace=patient.settings.temporal_namespace)
        found = await client.operator_service.list_search_attributes(asked)
    except (Exception, StackProblem) as problem:
        return Check("temporal", False, f"Temporal at {patient.temporal_address}: {first_line(problem)}.", REACH)
    return search_attributes(patient, set(found.custom_attributes))


def search_attributes(patient: Patient, known: set[str]) -> Check:
    """Every search attribute of ours is registered."""
    absent = [name for name in SEARCH_ATTRIBUTES if name not in known]
    if not absent:
        return Check("temporal", True, f"Temporal at {patient.temporal_address} answers and has our search attributes.")
    options = " ".join(f"--name {name} --type {SEARCH_ATTRIBUTES[name]}" for name in absent)
    return Check(
        "temporal",
        False,
        f"Temporal at {patient.temporal_address} lacks the search attributes {', '.join(absent)}.",
        f"temporal operator search-attribute create {options} --address {patient.temporal_address}",
    )


MACHINE_CHECKS: Sequence[tuple[str, Callable[[Patient], Check]]] = (
    ("python", python),
    ("packages", packages),
    (POSTGRES_WHEEL.package, wheel(POSTGRES_WHEEL)),
    (TEMPORAL_WHEEL.package, wheel(TEMPORAL_WHEEL)),
    ("home", home),
    ("disk", disk),
    ("ports", ports),
    ("stack", stack),
    ("postgres", postgres),
)

DATABASE_CHECKS: Sequence[tuple[str, Callable[[Patient], Check]]] = (
    ("schema", schema),
    ("trusted_now", trusted_now),
    ("clock", clock),
)
