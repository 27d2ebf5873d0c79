"""Show an agent in the engine's workflow list, which is not encrypted."""

from datetime import datetime, timedelta

from temporalio import workflow
from temporalio.common import SearchAttributeKey, SearchAttributePair, TypedSearchAttributes

with workflow.unsafe.imports_passed_through():
    import msgspec

    from rekindle.policy.fleet import agent_registry
    from rekindle.policy.fleet.agent_registry import AgentDefinition, RegisteredAgent
    from rekindle.policy.operator.questions import list_open_questions
    from rekindle.thresholds.control_limits import FLEET_LISTING_SECONDS

STATE_ATTRIBUTE = SearchAttributeKey.for_keyword("RekindleState")
HOST_ATTRIBUTE = SearchAttributeKey.for_keyword("RekindleHost")
POOL_ATTRIBUTE = SearchAttributeKey.for_keyword("RekindlePool")
CYCLE_ATTRIBUTE = SearchAttributeKey.for_int("RekindleCycle")
TEAM_ATTRIBUTE = SearchAttributeKey.for_keyword("RekindleTeam")
ASKS_ATTRIBUTE = SearchAttributeKey.for_bool("RekindleAsks")
CHANGED_ATTRIBUTE = SearchAttributeKey.for_datetime("RekindleChanged")
DEFINITION_ATTRIBUTE = SearchAttributeKey.for_keyword("RekindleDefinition")
USD_ATTRIBUTE = SearchAttributeKey.for_float("RekindleUsd")
TOKENS_ATTRIBUTE = SearchAttributeKey.for_int("RekindleTokens")
RUN_ATTRIBUTE = SearchAttributeKey.for_keyword("RekindleRun")
REASON_MEMO = "rekindle_reason"
"""Memo key for the reason, as STATE:WHY. Valid only while RekindleState has the same state."""
EMPTY = "-"
"""Value of an attribute without a name, which a query can ask for."""
_USAGE = timedelta(seconds=FLEET_LISTING_SECONDS)
_PATCH = "listing-within-a-state"
"""Name of the change that lets an agent be listed again while its state, host and pool stay the
same. Runs that began before it do not have these commands in their histories."""


class _Standing(msgspec.Struct, frozen=True):
    """The facts about an agent that are shown as soon as they change."""

    state: str
    host: str
    pool: str
    team: str
    definition: str
    asks: bool
    run: int
    """Number of the event that asked for the run which has this state."""


class _Usage(msgspec.Struct, frozen=True):
    """The figures of an agent, which are shown with other changes, or after a while."""

    cycle: int
    usd: float
    tokens: int


def make_first_attributes(definition: AgentDefinition) -> TypedSearchAttributes:
    """Return the attributes of a new agent, which the list shows before any worker decides."""
    return TypedSearchAttributes(
        [
            SearchAttributePair(STATE_ATTRIBUTE, "new"),
            SearchAttributePair(POOL_ATTRIBUTE, definition.pool),
            SearchAttributePair(TEAM_ATTRIBUTE, definition.team or EMPTY),
            SearchAttributePair(DEFINITION_ATTRIBUTE, agent_registry.hash_definition(definition)),
        ]
    )


class AgentListing:
    """One agent's attributes in the engine's list."""

    def __init__(self) -> None:
        self._standing: _Standing | None = None
        self._usage = _Usage(0, 0.0, 0)
        self._shown_at: datetime | None = None
        self._shown_reason = ""
        self._hashed: tuple[AgentDefinition, str] | None = None

    def show(self, registered: RegisteredAgent, state: str, host: str) -> None:
        """Update the search attributes, which are not encrypted and contain no agent text."""
        host, shown = host or EMPTY, self._standing
        is_moved = shown is None or (state, host, registered.definition.pool) != (
            shown.state,
            shown.host,
            shown.pool,
        )
        run = registered.projection.run.wanted
        self._show(registered, state, host, run, is_moved=is_moved)

    def refresh(self, registered: RegisteredAgent) -> None:
        """Show a new question or definition at once, and new figures if the shown ones are old."""
        if shown := self._standing:
            # The state may still be that of the run before.
            self._show(registered, shown.state, shown.host, shown.run, is_moved=False)

    def _show(
        self, registered: RegisteredAgent, state: str, host: str, run: int, *, is_moved: bool
    ) -> None:
        now, definition = workflow.now(), registered.definition
        standing = _Standing(
            state,
            host,
            definition.pool,
            definition.team or EMPTY,
            self._hash_definition(definition),
            bool(list_open_questions(registered.projection, now)),
            run,
        )
        spent = agent_registry.sum_spending(registered)
        usage = _Usage(registered.projection.cycle, round(spent.usd, 4), spent.tokens)
        is_old = self._shown_at is not None and now - self._shown_at >= _USAGE
        if standing == self._standing and not (is_old and usage != self._usage):
            return
        if not is_moved and not workflow.patched(_PATCH):
            return
        self._standing, self._usage, self._shown_at = standing, usage, now
        workflow.upsert_search_attributes(
            [
                STATE_ATTRIBUTE.value_set(standing.state),
                HOST_ATTRIBUTE.value_set(standing.host),
                POOL_ATTRIBUTE.value_set(standing.pool),
                CYCLE_ATTRIBUTE.value_set(usage.cycle),
                TEAM_ATTRIBUTE.value_set(standing.team),
                ASKS_ATTRIBUTE.value_set(standing.asks),
                CHANGED_ATTRIBUTE.value_set(now),
                DEFINITION_ATTRIBUTE.value_set(standing.definition),
                USD_ATTRIBUTE.value_set(usage.usd),
                TOKENS_ATTRIBUTE.value_set(usage.tokens),
                RUN_ATTRIBUTE.value_set(str(standing.run)),
            ]
        )

    def _hash_definition(self, definition: AgentDefinition) -> str:
        if self._hashed is None or self._hashed[0] is not definition:
            self._hashed = definition, agent_registry.hash_definition(definition)
        return self._hashed[1]

    def show_reason(self, registered: RegisteredAgent, state: str) -> None:
        """Show in the engine's list why a run finished or paused, without any agent text."""
        run = registered.projection.run
        why = {"over": run.ended.why, "safe": run.safe.why}.get(state, "")
        reason = f"{state}:{why}"
        if why and reason != self._shown_reason:
            self._shown_reason = reason
            workflow.upsert_memo({REASON_MEMO: reason})
