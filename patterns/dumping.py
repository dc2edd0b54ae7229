"""`pg_dump` and `pg_restore`, asked so that no secret is on a command line and nothing waits for a person.

The password travels in the environment. A failing tool, a missing one and one that takes too long have all made no backup:
DidNotHappen, with the tool's own last words.
"""

import os
import re
import subprocess
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import unquote

from law.pattern import DidNotHappen, Workplace

SCHEMA = "nightbell"
TOOL_WITHIN_SECONDS = 3600.0
URL = re.compile(r"(?P<scheme>postgres(?:ql)?://)(?P<authority>[^/?]*)(?P<path>[^?]*)(?:\?(?P<query>.*))?")
KEPT = re.compile(r"PG.*|PATH|HOME|LD_LIBRARY_PATH|TZ")
ROWS = re.compile(rf"^\d+; .* TABLE DATA {SCHEMA} (\S+) ", re.MULTILINE)


def dump(workplace: Workplace, into: Path, handle: int) -> None:
    """Write a custom-format dump of our schema into a file. The tool inherits `handle`, so that a lock on it lasts as long
    as the tool writes; it opens the file itself, since it appends to a standard output. Raises DidNotHappen."""
    url, password = without_password(workplace.database_url)
    arguments = [f"--schema={SCHEMA}", "--format=custom", "--no-owner", "--no-password", "--lock-wait-timeout=60s"]
    run_tool(workplace, "pg_dump", [*arguments, f"--file={into}", f"--dbname={url}"], password, (handle,))


def tables_read_back(workplace: Workplace, file: Path) -> list[str]:
    """The tables whose rows a dump holds, once every block of it has been read. Raises DidNotHappen."""
    listed = run_tool(workplace, "pg_restore", ["--list", str(file)])
    run_tool(workplace, "pg_restore", [f"--file={os.devnull}", str(file)])  # a list is at the head: it proves no row
    return sorted(ROWS.findall(listed))


def run_tool(
    workplace: Workplace, tool: str, arguments: list[str], password: str = "", handles: tuple[int, ...] = ()
) -> str:
    """Run one of PostgreSQL's tools to its end; what it said. Raises DidNotHappen."""
    command = [str(Path(workplace.postgres_tools_folder) / tool), *arguments]
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            pass_fds=handles,
            env=environment(password),
            timeout=TOOL_WITHIN_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired as problem:
        raise DidNotHappen(f"{tool} took longer than {TOOL_WITHIN_SECONDS:.0f} seconds") from problem
    except OSError as problem:
        raise DidNotHappen(f"{tool} could not be run: {problem.strerror}") from problem
    if done.returncode != 0:
        last = done.stderr.decode(errors="replace").strip().splitlines()[-1:]
        raise DidNotHappen(f"{tool} failed: {last[0] if last else f'exit code {done.returncode}'}")
    return done.stdout.decode(errors="replace")


def environment(password: str) -> Mapping[str, str]:
    """What a tool needs of our environment, its messages in English, and the password where there is one."""
    kept = {name: value for name, value in os.environ.items() if KEPT.fullmatch(name)}
    return {**kept, "LC_ALL": "C", **({"PGPASSWORD": password} if password else {})}


def without_password(url: str) -> tuple[str, str]:
    """A database URL as anybody may see it in a process list, and the password it held. Raises DidNotHappen for one
    that is no URL, or holds a secret that the environment cannot carry."""
    parts = URL.fullmatch(url)
    if parts is None:
        raise DidNotHappen("the database is not named by a URL such as postgresql://host/name")
    account, at, servers = parts["authority"].rpartition("@")
    user, _, password = account.partition(":")
    query = [pair.partition("=") for pair in (parts["query"] or "").split("&") if pair]
    secrets = [value for name, _, value in query if name == "password"]
    if any(name == "sslpassword" for name, _, _ in query):
        raise DidNotHappen("the database URL holds sslpassword, which a process list would show")
    shown = "&".join("".join(pair) for pair in query if pair[0] != "password")
    bare = f"{parts['scheme']}{user}{at}{servers}{parts['path']}{'?' if shown else ''}{shown}"
    return bare, unquote(secrets[-1] if secrets else password)
