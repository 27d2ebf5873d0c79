"""Continue a workflow as a new run, on the fleet's current build.

A run keeps the build that it started with, so a build never replays a history that another build
made. The next run starts on the build that is current by then.
"""

from typing import Any, NoReturn

from temporalio import workflow
from temporalio.workflow import ContinueAsNewVersioningBehavior


def must_continue(most_events: int) -> bool:
    """Return whether the history is too long, or the fleet's current build is another one.

    Both come from the history, so a replay gets the same answer.
    """
    info = workflow.info()
    return (
        info.get_current_history_length() > most_events
        or info.is_continue_as_new_suggested()
        or info.is_target_worker_deployment_version_changed()
    )


def continue_run(argument: Any, queue: str | None = None) -> NoReturn:
    """Start the next run on the current build, and end this one."""
    workflow.continue_as_new(
        argument,
        task_queue=queue,
        initial_versioning_behavior=ContinueAsNewVersioningBehavior.AUTO_UPGRADE,
    )
