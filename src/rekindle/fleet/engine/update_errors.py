"""Updates of a workflow, as whoever asks sees them."""

from temporalio.client import WorkflowUpdateFailedError
from temporalio.exceptions import ApplicationError

_OVERLOOKED = "UnprocessedUpdate"
"""What the engine itself calls it."""


def is_overlooked(refused: WorkflowUpdateFailedError) -> bool:
    """Refused by the engine, not by the workflow, which has not seen it: it can be asked again.

    A worker may finish what it was deciding just as the question comes, and never look at it.
    """
    return isinstance(refused.cause, ApplicationError) and refused.cause.type == _OVERLOOKED
