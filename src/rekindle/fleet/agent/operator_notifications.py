"""Notify the operator from an agent's workflow, through a host in the pool."""

import asyncio
from datetime import timedelta

from temporalio import workflow
from temporalio.exceptions import ActivityError

from rekindle.fleet.agent.start_activities import make_order

with workflow.unsafe.imports_passed_through():
    from rekindle.fleet.agent.host_orders import make_pool_queue
    from rekindle.policy.exits.stop_reasons import StopReason
    from rekindle.policy.fleet.agent_registry import RegisteredAgent
    from rekindle.policy.operator import questions
    from rekindle.policy.operator.build_row import RowInputs, build_row
    from rekindle.policy.operator.notification_kinds import NotificationKind
    from rekindle.policy.settings.runtime_settings import (
        FLEET_NOTIFY_SECONDS,
        FLEET_NOTIFY_WAIT_SECONDS,
    )


class OperatorNotices:
    def __init__(self) -> None:
        self._sending: set[asyncio.Task[None]] = set()

    @property
    def is_sending(self) -> bool:
        return bool(self._sending)

    def notify_state(
        self,
        registered: RegisteredAgent,
        what: StopReason | NotificationKind,
        *,
        is_supervised: bool = False,
    ) -> None:
        """Notify the operator of the agent's state, using the text of its status row."""
        projection, now = registered.projection, workflow.now()
        row = build_row(projection, RowInputs(now=now, is_supervised=is_supervised))
        is_asked = questions.find_blocking_question(projection, now) is not None
        self.notify(
            registered, what, f"{row.reason}\n→ {row.next_step}" if is_asked else row.reason
        )

    def notify(
        self, registered: RegisteredAgent, what: StopReason | NotificationKind, words: str
    ) -> None:
        """Let a host in the pool notify the operator if the manifest contains an address.

        The workflow does not wait for the result, because the notification service may be down.
        """
        if registered.definition.notifies:
            sending = asyncio.create_task(_send_notification(registered, what, words))
            self._sending.add(sending)
            sending.add_done_callback(self._sending.discard)


async def _send_notification(
    registered: RegisteredAgent, what: StopReason | NotificationKind, words: str
) -> None:
    try:
        await workflow.execute_activity(
            "notify",
            args=[make_order(registered), what, words],
            task_queue=make_pool_queue(registered.definition.pool),
            start_to_close_timeout=timedelta(seconds=FLEET_NOTIFY_SECONDS),
            schedule_to_close_timeout=timedelta(seconds=FLEET_NOTIFY_WAIT_SECONDS),
        )
    except ActivityError as error:
        workflow.logger.warning("the notification could not be sent: %s", error.cause)
