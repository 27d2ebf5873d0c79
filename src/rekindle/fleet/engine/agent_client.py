"""Client for a fleet's agents: start and read them, and send them commands."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import timedelta
from typing import TypeVar

from temporalio.client import (
    Client,
    WorkflowExecutionStatus,
    WorkflowFailureError,
    WorkflowHandle,
    WorkflowQueryFailedError,
    WorkflowQueryRejectedError,
    WorkflowUpdateFailedError,
    WorkflowUpdateRPCTimeoutOrCancelledError,
)
from temporalio.common import (
    QueryRejectCondition,
    TypedSearchAttributes,
    WorkflowIDConflictPolicy,
)
from temporalio.exceptions import ApplicationError, WorkflowAlreadyStartedError
from temporalio.service import RPCError, RPCStatusCode

from rekindle.documents import events
from rekindle.documents.events import AnyEvent, Event
from rekindle.errors import EngineError, NotOnFleetError, OwnershipError
from rekindle.fleet.agent.host_orders import DECISION_QUEUE
from rekindle.fleet.agent.workflow import AgentWorkflow
from rekindle.fleet.engine.agent_list import (
    AgentFilter,
    ListedAgent,
    list_agents,
    render_filter,
)
from rekindle.fleet.engine.update_errors import is_overlooked, is_unready
from rekindle.policy.fleet import agent_registry
from rekindle.policy.fleet.agent_registry import AgentDefinition, RegisteredAgent
from rekindle.policy.projection.projection import Projection
from rekindle.policy.settings.runtime_settings import (
    FLEET_ANSWER_SECONDS,
    FLEET_RPC_SECONDS,
    FLEET_TASK_SECONDS,
)
from rekindle.system import clock
from rekindle.thresholds.fleet_limits import FLEET_READY_SECONDS, FLEET_TRIES

_MOST = timedelta(seconds=FLEET_RPC_SECONDS)
_CONTINUED = WorkflowExecutionStatus.CONTINUED_AS_NEW
_ANSWER = timedelta(seconds=FLEET_ANSWER_SECONDS)
T = TypeVar("T")


class AgentClient:
    def __init__(
        self, client: Client, patience: timedelta = _MOST, *, missing_hint: str = ""
    ) -> None:
        """Use a client. An agent's workflow may take `patience` to answer a command.

        `missing_hint` replaces the usual hint for an agent that is not on the fleet.
        """
        self.client, self._patience, self._missing_hint = client, patience, missing_hint

    async def is_there(self, agent: str) -> bool:
        """Return whether the agent is on the fleet. This needs the engine, but no worker."""
        try:
            described = await self._get_handle(agent).describe(rpc_timeout=_MOST)
        except RPCError as failed:
            if failed.status == RPCStatusCode.NOT_FOUND:
                return False
            raise self._translate_error(agent, failed) from failed
        return described.status == WorkflowExecutionStatus.RUNNING

    async def begin(
        self,
        agent: str,
        definition: AgentDefinition,
        *,
        projection: Projection | None = None,
        documents: Mapping[str, str] | None = None,
        new_events: Sequence[AnyEvent] = (),
        generation: int = 0,
        attributes: TypedSearchAttributes = TypedSearchAttributes.empty,
    ) -> None:
        """Register an agent on the fleet, starting from `projection` and `new_events`.

        No worker has to be running. The engine must know the search `attributes`. Lease numbers
        start above both the projection's generation and `generation`, so that a lease from an
        earlier registration never becomes valid again.

        Raises:
            OwnershipError: The agent is already on the fleet; nothing was changed.
            EngineError: If the cause is `refused`, nothing was changed; otherwise this is unknown.
        """
        registered = RegisteredAgent(
            agent=agent,
            definition=definition,
            projection=projection or Projection(agent=agent),
            documents=dict(documents or {}),
            generation=max(projection.gen if projection else 0, generation),
        )
        if not registered.projection.seq:
            registered = agent_registry.append_events(
                registered, events.AgentCreated(ts=clock.read_clock(), agent=agent)
            )
        registered = agent_registry.append_events(registered, *new_events)
        try:
            await self.client.start_workflow(
                AgentWorkflow.run,
                registered,
                id=self.workflow(agent),
                task_queue=DECISION_QUEUE,
                # A frozen worker must not make the agent wait.
                task_timeout=timedelta(seconds=FLEET_TASK_SECONDS),
                id_conflict_policy=WorkflowIDConflictPolicy.FAIL,
                search_attributes=attributes,
                rpc_timeout=self._patience,
            )
        except WorkflowAlreadyStartedError as there:
            raise OwnershipError(
                f"agent {agent} is already on the fleet",
                hint=f"`rekindle status {agent}` shows its state",
            ) from there
        except RPCError as failed:
            raise self._translate_error(agent, failed) from failed

    async def kept(self, agent: str) -> RegisteredAgent:
        """Return an agent's state."""
        handle = self._get_handle(agent)
        for tries_left in reversed(range(FLEET_TRIES)):
            with self._translate_errors(agent):
                try:
                    return await handle.query(
                        AgentWorkflow.kept,
                        reject_condition=QueryRejectCondition.NOT_OPEN,
                        rpc_timeout=_ANSWER,
                    )
                except WorkflowQueryRejectedError as closed:
                    # The query reached the old run while the workflow continued as a new one.
                    if not (tries_left and closed.status == _CONTINUED):
                        raise
        raise _make_unanswered_error(agent)

    async def read_last(self, agent: str) -> RegisteredAgent:
        """Return an agent's state, or its last state if it was removed from the fleet."""
        try:
            return await self.kept(agent)
        except NotOnFleetError:
            with self._translate_errors(agent):
                return await self._get_handle(agent).result()

    async def say(self, agent: str, *records: Event) -> int:
        """Send the operator's commands, and return the event number of the last one."""
        lines = [events.render(record).decode() for record in records]
        handle = self._get_handle(agent)
        return await self._send_update(
            agent,
            lambda: handle.execute_update(AgentWorkflow.say, lines, rpc_timeout=self._patience),
        )

    async def define(self, agent: str, definition: AgentDefinition) -> None:
        handle = self._get_handle(agent)
        await self._send_update(
            agent,
            lambda: handle.execute_update(
                AgentWorkflow.define, definition, rpc_timeout=self._patience
            ),
        )

    async def ask_for_brief(self, agent: str) -> None:
        with self._translate_errors(agent):
            await self._get_handle(agent).signal(AgentWorkflow.brief_due, rpc_timeout=_MOST)

    async def discard(self, agent: str) -> None:
        """Remove an agent from the fleet, without its state.

        Raises:
            NotOnFleetError: The agent is not on the fleet.
        """
        handle = self._get_handle(agent)
        await self._send_update(
            agent, lambda: handle.execute_update(AgentWorkflow.remove, rpc_timeout=self._patience)
        )

    async def remove(self, agent: str) -> RegisteredAgent:
        """Remove an agent from the fleet, and return its state.

        If the agent was already removed, return its state at that time, so that an interrupted
        command can be repeated.
        """
        handle = self._get_handle(agent)
        if await self.is_there(agent):
            await self._send_update(
                agent,
                lambda: handle.execute_update(AgentWorkflow.remove, rpc_timeout=self._patience),
            )
        with self._translate_errors(agent):
            return await handle.result()

    async def listed(self, only: Sequence[str] = ()) -> AsyncIterator[ListedAgent]:
        """Yield all agents, or `only` the named ones. The list may be a second out of date."""
        query = render_filter(self.client, AgentFilter(names=only))
        async for listed in list_agents(self.client, query, self._patience):
            yield listed

    def workflow(self, agent: str) -> str:
        return f"{self.client.namespace}/{agent}"

    def _get_handle(self, agent: str) -> WorkflowHandle[AgentWorkflow, RegisteredAgent]:
        return self.client.get_workflow_handle_for(AgentWorkflow.run, self.workflow(agent))

    async def _send_update(self, agent: str, ask: Callable[[], Awaitable[T]]) -> T:
        """Send an update and return the workflow's answer. Resend it if the engine dropped it."""
        with self._translate_errors(agent):
            # The engine may end a request before its timeout, and the SDK then sends another one.
            async with asyncio.timeout(self._patience.total_seconds()):
                for tries_left in reversed(range(FLEET_TRIES)):
                    try:
                        return await ask()
                    except WorkflowUpdateFailedError as refused:
                        if not (tries_left and is_overlooked(refused)):
                            raise
                    except RPCError as failed:
                        if not (tries_left and is_unready(failed)):
                            raise
                        await asyncio.sleep(FLEET_READY_SECONDS)
        raise _make_unanswered_error(agent)

    @contextmanager
    def _translate_errors(self, agent: str) -> Iterator[None]:
        """Translate the engine client's errors into Rekindle's errors."""
        try:
            yield
        except RPCError as failed:
            raise self._translate_error(agent, failed) from failed
        except WorkflowQueryRejectedError as ended:
            raise NotOnFleetError(agent, hint=self._missing_hint) from ended
        except WorkflowQueryFailedError as failed:
            raise EngineError(
                "refused",
                f"no worker can continue agent {agent}: {failed.message}",
                hint="run workers with the version of Rekindle that started the agent, or a newer "
                "one",
            ) from failed
        except (WorkflowUpdateRPCTimeoutOrCancelledError, TimeoutError) as late:
            raise _make_unanswered_error(agent) from late
        except WorkflowFailureError as ended:
            raise EngineError(
                "ended",
                f"agent {agent} was terminated in the engine: {ended.cause}",
                hint=f"`rekindle run {agent}` starts a new one; its old files are on its hosts",
            ) from ended
        except WorkflowUpdateFailedError as refused:
            cause = refused.cause
            words = cause.message if isinstance(cause, ApplicationError) else str(cause)
            raise EngineError("refused", words, hint="upgrade Rekindle on all hosts") from refused

    def _translate_error(self, agent: str, failed: RPCError) -> Exception:
        if failed.status == RPCStatusCode.NOT_FOUND:
            return NotOnFleetError(agent, hint=self._missing_hint)
        if failed.status == RPCStatusCode.INVALID_ARGUMENT:
            return EngineError(
                "refused",
                f"the engine refused agent {agent}: {failed.message}",
                hint="if the agent is too large, resolve loops and shorten its relay",
            )
        if failed.status in {RPCStatusCode.CANCELLED, RPCStatusCode.DEADLINE_EXCEEDED}:
            return _make_unanswered_error(agent)
        return EngineError(
            "engine",
            f"the engine cannot answer for agent {agent}: {failed.message}",
            hint="`rekindle doctor` checks the workers; the engine's web UI has details",
        )


def _make_unanswered_error(agent: str) -> EngineError:
    return EngineError(
        "unanswered",
        f"no worker answered for agent {agent} in time",
        hint="start a worker on this host with `rekindle fleet worker`",
    )
