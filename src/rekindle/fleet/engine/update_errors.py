"""Recognize workflow updates that can be sent again."""

from temporalio.client import WorkflowUpdateFailedError
from temporalio.exceptions import ApplicationError

_OVERLOOKED = "UnprocessedUpdate"
"""The engine's own name for this error."""


def is_overlooked(refused: WorkflowUpdateFailedError) -> bool:
    """Return whether the engine dropped an update that the workflow has not seen.

    This happens if a worker completes its task just as the update arrives. Then the update can be
    sent again.
    """
    return isinstance(refused.cause, ApplicationError) and refused.cause.type == _OVERLOOKED
