"""Timer that wakes an agent's workflow when its daily brief is due."""

import contextlib
from collections.abc import Callable

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from rekindle.policy.fleet import brief_times
    from rekindle.policy.fleet.agent_registry import RegisteredAgent

_ReadAgent = Callable[[], RegisteredAgent]


async def ask_for_briefs(read: _ReadAgent, ask: Callable[[], None]) -> None:
    """Call `ask` whenever a brief is due, until the workflow's run ends."""
    name, asked = workflow.info().workflow_id, ""
    while True:
        registered, now = read(), workflow.now()
        morning = brief_times.find_due_morning(registered, name, now)
        if morning > asked:
            asked = morning
            ask()
        moment = brief_times.find_next_time(registered, name, now)
        # An agent that has not worked since its last brief needs no timer.
        with contextlib.suppress(TimeoutError):
            await workflow.wait_condition(
                lambda: _has_new_time(registered, read(), is_idle=moment is None),  # noqa: B023 - awaited here
                timeout=moment - now if moment else None,
            )


def _has_new_time(before: RegisteredAgent, now: RegisteredAgent, *, is_idle: bool) -> bool:
    """Return whether the time of the next brief may have changed.

    A timer is not set again for each new event, because the engine would store each timer.
    """
    if is_idle and now.projection.seq != before.projection.seq:
        return True
    return now.definition.limits.runtime.brief != before.definition.limits.runtime.brief
