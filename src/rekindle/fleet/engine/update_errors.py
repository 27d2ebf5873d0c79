"""Recognize workflow updates that can be sent again."""

from temporalio.client import WorkflowUpdateFailedError
from temporalio.exceptions import ApplicationError

_OVERLOOKED = "UnprocessedUpdate"
"""Name that the engine gives to the error of a dropped update."""


def is_overlooked(refused: WorkflowUpdateFailedError) -> bool:
    """Return whether the engine dropped an update before the workflow saw it.

    This happens if a worker completes its task just as the update arrives. The update can then be
    sent again.
    """
    return isinstance(refused.cause, ApplicationError) and refused.cause.type == _OVERLOOKED
