"""The Patterns that are installed here, each known by the digest of the very source that performs (OCC-2, AUT-1).

The digest covers the Pattern's own module and those of ours it acts through: a change of any is another digest, which is
refused under a revision that is already known.
"""

import hashlib
from importlib import resources
from types import ModuleType
from typing import Any

from law.pattern import Pattern
from patterns import bridge_turn, dumping, embedding_backfill, nightly_rite, placing

SOURCES = (
    (bridge_turn, placing),
    (nightly_rite, dumping, placing),
    (embedding_backfill, placing),
)
"""Each Pattern's module, and what it acts through."""


def installed() -> tuple[Pattern[Any], ...]:
    """Every installed Pattern."""
    return tuple(sources[0].pattern(source_digest(*sources)) for sources in SOURCES)


def source_digest(*modules: ModuleType) -> str:
    """`sha256:` of the source files of these modules, each with its name and length, in this order."""
    digest = hashlib.sha256()
    for module in modules:
        name = module.__name__.rpartition(".")[2]
        source = resources.files("patterns").joinpath(f"{name}.py").read_bytes()
        digest.update(f"{name} {len(source)}\n".encode() + source)
    return f"sha256:{digest.hexdigest()}"
