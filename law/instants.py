"""Absolute instants as text: ISO 8601 in UTC with a `Z`, and nothing else, wherever one leaves the program."""

from datetime import UTC, datetime

from law.errors import BadInput


def instant_text(at: datetime) -> str:
    """`2026-01-02T01:00:00Z`, with a fraction only where there is one. `at` is aware."""
    return at.astimezone(UTC).isoformat().removesuffix("+00:00") + "Z"


def read_instant(text: str, field: str) -> datetime:
    """Read an ISO 8601 instant with an offset or a `Z`. Raises BadInput naming `field`; a civil time is refused."""
    try:
        at = datetime.fromisoformat(text)
    except ValueError as problem:
        raise BadInput(field=field, reason=f"{text!r} is not an ISO 8601 instant") from problem
    if at.tzinfo is None:
        raise BadInput(field=field, reason=f"{text!r} has no offset; an instant needs one, such as Z")
    return at.astimezone(UTC)
