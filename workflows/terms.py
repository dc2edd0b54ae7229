"""How patient a workflow is with its activities, and how it names what it does.

A commit activity ends within seconds or is tried again, for ever: the store answers a repeated `decision_id` from its
record. After a crash the server's defaults would cost ten to sixteen seconds; these cost one or two.
"""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from temporalio.common import RetryPolicy

AGAIN = RetryPolicy(
    initial_interval=timedelta(milliseconds=200), backoff_coefficient=1.6, maximum_interval=timedelta(seconds=5)
)

COMMIT: Mapping[str, Any] = {"start_to_close_timeout": timedelta(seconds=3), "retry_policy": AGAIN}
"""An activity that is one short commit. The store's own statement timeout is shorter, so that what was given up here is not
still running there."""

HAND_OVER: Mapping[str, Any] = {"start_to_close_timeout": timedelta(seconds=20), "retry_policy": AGAIN}
"""An activity that speaks to lanes in batches."""

PERFORM: Mapping[str, Any] = {
    "start_to_close_timeout": timedelta(days=7),
    "heartbeat_timeout": timedelta(seconds=5),
    "retry_policy": RetryPolicy(maximum_attempts=1),
}
"""Carrying a Pattern: it beats, and a beat that is missed for long means that its worker is gone. Never tried again as it
is: what became of the hop is decided first."""


def schedule_workflow_id(schedule: str) -> str:
    """The id of the one workflow of a Schedule."""
    return f"schedule:{schedule}"


RELAY_WORKFLOW_ID = "relay"
