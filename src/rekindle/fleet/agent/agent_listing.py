"""Show an agent in the engine's workflow list, which is not encrypted."""

from temporalio import workflow
from temporalio.common import SearchAttributeKey

with workflow.unsafe.imports_passed_through():
    from rekindle.policy.fleet.agent_registry import RegisteredAgent

STATE_ATTRIBUTE = SearchAttributeKey.for_keyword("RekindleState")
HOST_ATTRIBUTE = SearchAttributeKey.for_keyword("RekindleHost")
POOL_ATTRIBUTE = SearchAttributeKey.for_keyword("RekindlePool")
CYCLE_ATTRIBUTE = SearchAttributeKey.for_int("RekindleCycle")
REASON_MEMO = "rekindle_reason"
"""Memo key for the reason, as STATE:WHY. Valid only while RekindleState has the same state."""


class AgentListing:
    """One agent's attributes in the engine's list."""

    def __init__(self) -> None:
        self._shown: tuple[str, str, str] = ("", "", "")
        self._shown_reason = ""

    def show(self, registered: RegisteredAgent, state: str, host: str) -> None:
        """Update the search attributes, which are not encrypted and contain no agent text."""
        pool = registered.definition.pool
        if (state, host, pool) == self._shown:
            return
        self._shown = (state, host, pool)
        workflow.upsert_search_attributes(
            [
                STATE_ATTRIBUTE.value_set(state),
                HOST_ATTRIBUTE.value_set(host or "-"),
                POOL_ATTRIBUTE.value_set(pool),
                CYCLE_ATTRIBUTE.value_set(registered.projection.cycle),
            ]
        )

    def show_reason(self, registered: RegisteredAgent, state: str) -> None:
        """Show in the engine's list why a run finished or paused, without any agent text."""
        run = registered.projection.run
        why = {"over": run.ended.why, "safe": run.safe.why}.get(state, "")
        reason = f"{state}:{why}"
        if why and reason != self._shown_reason:
            self._shown_reason = reason
            workflow.upsert_memo({REASON_MEMO: reason})
