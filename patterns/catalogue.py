"""The Patterns that are installed here, each known by the digest of the very source that performs."""

import hashlib
from importlib import resources
from types import ModuleType
from typing import Any

from law.pattern import Pattern
from patterns import bridge_turn, embedding_backfill, nightly_rite

MODULES = (bridge_turn, nightly_rite, embedding_backfill)


def installed() -> tuple[Pattern[Any], ...]:
    """Every installed Pattern."""
    return tuple(module.pattern(source_digest(module)) for module in MODULES)


def source_digest(module: ModuleType) -> str:
    """SHA-256 of a Pattern's source file: changed source is another digest."""
    name = module.__name__.rpartition(".")[2]
    return f"sha256:{hashlib.sha256(resources.files('patterns').joinpath(f'{name}.py').read_bytes()).hexdigest()}"
