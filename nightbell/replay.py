"""Replay: recorded or live histories against the code that is about to be deployed (DESIGN §9).

Temporal's own replayer notices commands that were added, dropped or reordered. It does not notice that an activity is asked
something else, or that a timer runs for another time. The arguments carry what matters here (Schedule, revision, nominal
instant, wake hint), so an interceptor compares each of them, and each timer's length, with the history.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from google.protobuf.json_format import ParseError
from temporalio import workflow
from temporalio.api.common.v1 import Payload
from temporalio.client import Client, WorkflowHistory
from temporalio.converter import DataConverter
from temporalio.worker import (
    ExecuteWorkflowInput,
    Interceptor,
    Replayer,
    StartActivityInput,
    WorkflowInboundInterceptor,
    WorkflowInterceptorClassInput,
    WorkflowOutboundInterceptor,
)

from law.errors import BadInput
from nightbell.plugin import WORKFLOWS, sandbox

COMPARE = "nightbell_compare"
TIMER_TOLERANCE_SECONDS = 0.002


@dataclass(slots=True)
class Replayed:
    """One history and what replaying it found; `problems` is empty when the code still does what was recorded."""

    workflow_id: str
    problems: list[str] = field(default_factory=list[str])


async def replay_folder(folder: Path, workflows: tuple[type, ...] = WORKFLOWS) -> list[Replayed]:
    """Replay every `*.json` history of a folder. Raises BadInput when there is none, or one cannot be read."""
    files = sorted(folder.glob("*.json"))
    if not files:
        raise BadInput(field=str(folder), reason="holds no histories (*.json)")
    return [await replay_one(read_history(file), workflows) for file in files]


def read_history(file: Path) -> WorkflowHistory:
    """A recorded history; its name is the file's. Raises BadInput."""
    try:
        return WorkflowHistory.from_json(file.stem, file.read_text(encoding="utf-8"))
    except (OSError, ValueError, KeyError, TypeError, AttributeError, ParseError) as problem:
        raise BadInput(field=str(file), reason=f"is not a history: {problem}") from problem


async def replay_namespace(client: Client, limit: int) -> list[Replayed]:
    """Replay the newest histories of our workflows in a live namespace."""
    return [await replay_one(history, WORKFLOWS) async for history in live_histories(client, limit)]


async def live_histories(client: Client, limit: int) -> AsyncIterator[WorkflowHistory]:
    """Histories of our workflows, the newest first."""
    kinds = " OR ".join(f"WorkflowType = '{one.__name__}'" for one in WORKFLOWS)
    async for found in client.list_workflows(kinds, limit=limit):
        yield await client.get_workflow_handle(found.id, run_id=found.run_id).fetch_history()


async def replay_one(history: WorkflowHistory, workflows: tuple[type, ...]) -> Replayed:
    """Replay one history in the production sandbox and compare."""
    replayed = Replayed(history.workflow_id)
    comparison = Comparison(history, replayed.problems.append)
    replayer = Replayer(workflows=workflows, workflow_runner=sandbox(), interceptors=[ComparingInterceptor(comparison)])
    result = await replayer.replay_workflow(history, raise_on_replay_failure=False)
    if result.replay_failure is not None:
        replayed.problems.append(f"the commands differ: {result.replay_failure}")
    return replayed


class Comparison:
    """What a history says was asked, by the sequence number that both sides give it."""

    def __init__(self, history: WorkflowHistory, say: Callable[[str], None]) -> None:
        self._say = say
        self._activities: dict[str, tuple[str, list[bytes]]] = {}
        self._timers: dict[str, float] = {}
        for event in history.events:
            if event.HasField("activity_task_scheduled_event_attributes"):
                asked = event.activity_task_scheduled_event_attributes
                payloads = [payload.data for payload in asked.input.payloads]
                self._activities[asked.activity_id] = (asked.activity_type.name, payloads)
            elif event.HasField("timer_started_event_attributes"):
                timer = event.timer_started_event_attributes
                self._timers[timer.timer_id] = timer.start_to_fire_timeout.ToNanoseconds() / 1e9

    def activity(self, sequence: int, name: str, payloads: list[bytes]) -> None:
        """Compare one question with the recorded one; a question beyond the end of the history has none."""
        recorded = self._activities.get(str(sequence))
        if recorded is not None and recorded != (name, payloads):
            self._say(f"activity {sequence} asks {name}{payloads}, and asked {recorded[0]}{recorded[1]}")

    def timer(self, sequence: int, seconds: float) -> None:
        """Compare one timer with the recorded one."""
        recorded = self._timers.get(str(sequence))
        if recorded is not None and abs(recorded - seconds) > TIMER_TOLERANCE_SECONDS:
            self._say(f"timer {sequence} runs {seconds} s, and ran {recorded} s")


class ComparingInterceptor(Interceptor):
    """Puts the comparison between a workflow and what it asks."""

    def __init__(self, comparison: Comparison) -> None:
        self._comparison = comparison

    def workflow_interceptor_class(self, input: WorkflowInterceptorClassInput) -> type[WorkflowInboundInterceptor]:
        input.unsafe_extern_functions[COMPARE] = self.compare
        return ComparingInbound

    def compare(self, kind: str, sequence: int, *said: Any) -> None:
        """Called from inside the sandbox."""
        getattr(self._comparison, kind)(sequence, *said)


class ComparingInbound(WorkflowInboundInterceptor):
    """Stands before the workflow."""

    def init(self, outbound: WorkflowOutboundInterceptor) -> None:
        super().init(ComparingOutbound(outbound))

    async def execute_workflow(self, input: ExecuteWorkflowInput) -> Any:
        watch_timers()
        return await super().execute_workflow(input)


class ComparingOutbound(WorkflowOutboundInterceptor):
    """Stands behind the workflow."""

    def start_activity(self, input: StartActivityInput) -> workflow.ActivityHandle[Any]:
        handle = super().start_activity(input)
        payloads: list[Payload] = list(DataConverter.default.payload_converter.to_payloads(input.args))
        compare = workflow.extern_functions()[COMPARE]
        compare("activity", handle._seq, input.activity, [payload.data for payload in payloads])  # type: ignore[attr-defined]
        return handle


def watch_timers() -> None:
    """Compare the length of every timer. There is no interceptor for timers: the running loop is the workflow's own, and the
    one place where it makes them is wrapped. A test shows that a changed timer is noticed, should that place move."""
    loop: Any = asyncio.get_running_loop()
    make, compare = loop._timer_impl, workflow.extern_functions()[COMPARE]

    def watched(delay: float, *arguments: Any, **named: Any) -> Any:
        handle = make(delay, *arguments, **named)
        compare("timer", handle._seq, delay)
        return handle

    loop._timer_impl = watched
