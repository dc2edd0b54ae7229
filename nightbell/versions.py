"""Which version of the code serves: the newest becomes current, and takes over what no worker is left to serve.

A workflow stays on the version that began it, and moves to the current one when it begins its history anew. That needs a
worker of its version to take the last step. Where none is left (an upgrade that stops everything first, as on one machine)
its tasks would wait for ever: they are sent to the current version, once, and the workflow is pinned there from then on.
`nightbell replay` says beforehand whether this code can carry on those histories.
"""

import hashlib
import logging
from datetime import UTC, datetime, timedelta
from importlib import resources
from importlib.metadata import version

from google.protobuf.field_mask_pb2 import FieldMask
from temporalio.api.common.v1 import WorkflowExecution
from temporalio.api.deployment.v1 import WorkerDeploymentInfo, WorkerDeploymentVersion
from temporalio.api.enums.v1 import PendingActivityState, PendingWorkflowTaskState, TaskQueueType
from temporalio.api.taskqueue.v1 import PollerInfo, TaskQueue
from temporalio.api.workflow.v1 import VersioningOverride, WorkflowExecutionOptions
from temporalio.api.workflowservice.v1 import (
    DescribeTaskQueueRequest,
    DescribeWorkerDeploymentRequest,
    DescribeWorkflowExecutionResponse,
    SetWorkerDeploymentCurrentVersionRequest,
    UpdateWorkflowExecutionOptionsRequest,
)
from temporalio.client import Client
from temporalio.common import WorkerDeploymentVersion as Version

DEPLOYMENT = "nightbell"
GONE_AFTER = timedelta(seconds=70)
"""A worker's poll lasts a minute; one that was not renewed has nobody behind it."""
WAITING_AFTER = timedelta(seconds=10)
"""A worker that is not busy takes a task within milliseconds."""

logger = logging.getLogger(__name__)


def deployment_version() -> Version:
    """This code's version: the package's, and a digest of the workflows' own sources."""
    sources = sorted(resources.files("workflows").iterdir(), key=lambda source: source.name)
    digest = hashlib.sha256(b"".join(one.read_bytes() for one in sources if one.name.endswith(".py")))
    return Version(DEPLOYMENT, f"{version('nightbell')}-{digest.hexdigest()[:12]}")


async def make_current(client: Client, task_queue: str, ours: Version) -> bool:
    """Send new work to `ours` if no version is current, the current one is older, or nobody is left to serve it. Whether
    ours is current then. Raises RPCError, also while the server has not yet met a worker of ours."""
    asked = DescribeWorkerDeploymentRequest(namespace=client.namespace, deployment_name=ours.deployment_name)
    described = (await client.workflow_service.describe_worker_deployment(asked)).worker_deployment_info
    current = described.routing_config.current_deployment_version
    if current.build_id == ours.build_id:
        return True
    if current.build_id and not is_older(described, current, ours) and await is_served(client, task_queue, current):
        return False
    await client.workflow_service.set_worker_deployment_current_version(
        SetWorkerDeploymentCurrentVersionRequest(
            namespace=client.namespace,
            deployment_name=ours.deployment_name,
            build_id=ours.build_id,
            ignore_missing_task_queues=True,
        )
    )
    logger.info("version %s serves from now on", ours.build_id)
    return True


def is_older(described: WorkerDeploymentInfo, current: WorkerDeploymentVersion, ours: Version) -> bool:
    """Whether the current version was first seen before ours. A version gone from the list is older than any in it."""
    seen = {one.deployment_version.build_id: one.create_time.ToDatetime(UTC) for one in described.version_summaries}
    first = datetime.min.replace(tzinfo=UTC)
    return seen.get(current.build_id, first) < seen.get(ours.build_id, first)


async def is_served(client: Client, task_queue: str, served: WorkerDeploymentVersion) -> bool:
    """Whether a worker of that version asked for work lately."""
    asked = DescribeTaskQueueRequest(
        namespace=client.namespace,
        task_queue=TaskQueue(name=task_queue),
        task_queue_type=TaskQueueType.TASK_QUEUE_TYPE_WORKFLOW,
    )
    pollers = (await client.workflow_service.describe_task_queue(asked)).pollers
    return any(one.deployment_options.build_id == served.build_id and is_recent(one) for one in pollers)


def is_recent(poller: PollerInfo) -> bool:
    """Whether its poll may still be open."""
    return datetime.now(UTC) - poller.last_access_time.ToDatetime(UTC) < GONE_AFTER


async def move_stranded(client: Client, task_queue: str, ours: Version) -> int:
    """Send the tasks of every workflow that waits in vain for an older version to ours; how many were moved. Raises
    RPCError."""
    moved = 0
    named, queue = f"{ours.deployment_name}:{ours.build_id}", task_queue.replace("'", "''")
    elsewhere = (
        f"TaskQueue = '{queue}' AND ExecutionStatus = 'Running' AND TemporalWorkerDeploymentVersion != '{named}'"
    )
    async for found in client.list_workflows(elsewhere):
        described = (await client.get_workflow_handle(found.id, run_id=found.run_id).describe()).raw_description
        if not is_waiting(described, ours):
            continue
        pinned = described.workflow_execution_info.versioning_info.deployment_version
        if not await is_served(client, task_queue, pinned):
            await move(client, found.id, found.run_id, ours)
            moved += 1
    return moved


def is_waiting(described: DescribeWorkflowExecutionResponse, ours: Version) -> bool:
    """Whether it is pinned to another version and has waited for long; busy workers of that version look the same."""
    pinned = described.workflow_execution_info.versioning_info
    if not pinned.deployment_version.build_id or pinned.deployment_version.build_id == ours.build_id:
        return False
    if pinned.HasField("versioning_override"):
        return False
    waiting = [
        one.scheduled_time.ToDatetime(UTC)
        for one in described.pending_activities
        if one.state == PendingActivityState.PENDING_ACTIVITY_STATE_SCHEDULED
    ]
    task = described.pending_workflow_task
    if described.HasField("pending_workflow_task") and (
        task.state == PendingWorkflowTaskState.PENDING_WORKFLOW_TASK_STATE_SCHEDULED
    ):
        waiting.append(task.original_scheduled_time.ToDatetime(UTC))
    return any(datetime.now(UTC) - since > WAITING_AFTER for since in waiting)


async def move(client: Client, workflow_id: str, run_id: str, ours: Version) -> None:
    """Let ours take the next task of this workflow, which pins it there."""
    target = WorkerDeploymentVersion(deployment_name=ours.deployment_name, build_id=ours.build_id)
    once = VersioningOverride(one_time=VersioningOverride.OneTimeOverride(target_deployment_version=target))
    await client.workflow_service.update_workflow_execution_options(
        UpdateWorkflowExecutionOptionsRequest(
            namespace=client.namespace,
            workflow_execution=WorkflowExecution(workflow_id=workflow_id, run_id=run_id),
            workflow_execution_options=WorkflowExecutionOptions(versioning_override=once),
            update_mask=FieldMask(paths=["versioning_override"]),
        )
    )
    logger.info("%s waited for a version that nobody serves, and is served by %s", workflow_id, ours.build_id)
