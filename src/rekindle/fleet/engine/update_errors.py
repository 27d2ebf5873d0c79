"""Recognize failed workflow updates that can be retried."""

from temporalio.client import WorkflowUpdateFailedError
from temporalio.exceptions import ApplicationError
from temporalio.service import RPCError

_OVERLOOKED = "UnprocessedUpdate"
"""The engine's name for a dropped-update error."""
_NOT_READY = "/temporal.api.errordetails.v1.WorkflowNotReadyFailure"
"""Detail of the engine's error if a worker failed to process the task with an update."""


def is_overlooked(refused: WorkflowUpdateFailedError) -> bool:
    """Return whether the engine dropped an update before the workflow saw it.

    This happens if a worker completes its task just as the update arrives. The update can be sent
    again.
    """
    return isinstance(refused.cause, ApplicationError) and refused.cause.type == _OVERLOOKED


def is_unready(failed: RPCError) -> bool:
    """Return whether a worker failed before the workflow saw an update.

    A busy machine can make a worker exceed the engine's time for a task. The update can be sent
    again.
    """
    return any(detail.type_url.endswith(_NOT_READY) for detail in failed.grpc_status.details)
