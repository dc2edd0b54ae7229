"""JSON as it goes into PostgreSQL and out to people: instants as text with a `Z`, civil times without, ids as text."""

import json
from datetime import datetime, timedelta
from enum import Enum
from typing import Any
from uuid import UUID

from psycopg.types.json import Jsonb

from law.instants import instant_text


def jsonb(value: Any) -> Jsonb:
    """Wrap a plain value for a jsonb parameter."""
    return Jsonb(value, dumps=dumps)


def dumps(value: Any) -> str:
    """JSON text of a plain value."""
    return json.dumps(value, default=plain, separators=(",", ":"))


def plain_text(text: str) -> str:
    """Text from elsewhere (what a Pattern raised) as PostgreSQL can keep it: what it cannot is shown as U+FFFD."""
    return text.replace("\0", "\ufffd").encode("utf-8", "replace").decode("utf-8")


def plain(value: object) -> object:
    """What JSON has no word for, in ours."""
    if isinstance(value, datetime):
        return instant_text(value) if value.tzinfo else value.isoformat()
    if isinstance(value, timedelta):
        return value.total_seconds()
    if isinstance(value, UUID | Enum):
        return str(value)
    raise TypeError(f"{type(value).__name__} has no JSON form here")
