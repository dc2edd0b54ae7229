"""One store a test."""

from collections.abc import Iterator
from datetime import datetime
from typing import Any

import pytest

from nightbell.wiring import installed_patterns
from store.authority import register_patterns
from store.connection import open_pool
from tests.office import EVENING, Office


@pytest.fixture
def office(database_url: str) -> Iterator[Office]:
    """A store that knows the installed Patterns."""
    pool = open_pool(database_url, connections_max=12)
    register_patterns(pool, installed_patterns())
    yield Office(pool, database_url)
    pool.close()


@pytest.fixture
def evening(clock: Any) -> datetime:
    """The clock stands in the evening before the first night."""
    clock.set(EVENING)
    return EVENING
