"""Recognize failed workflow updates that can be retried."""

from temporalio.client import WorkflowUpdateFailedError
from temporalio.exceptions import ApplicationError

_OVERLOOKED = "UnprocessedUpdate"
"""The engine's name for a dropped-update error."""


def is_overlooked(refused: WorkflowUpdateFailedError) -> bool:
    """Return whether the engine dropped an update before the workflow saw it.

    This happens if a worker completes its task just as the update arrives. The update can be sent
    again.
    """
    return isinstance(refused.cause, ApplicationError) and refused.cause.type == _OVERLOOKED
