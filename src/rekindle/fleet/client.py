"""The agents of a fleet, for whoever commands them: what is known, what is said, and to whom."""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import timedelta
from typing import TypeVar

import msgspec
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
from temporalio.common import QueryRejectCondition, WorkflowIDConflictPolicy
from temporalio.exceptions import ApplicationError, WorkflowAlreadyStartedError
from temporalio.service import RPCError, RPCStatusCode

from rekindle.documents import event as events
from rekindle.documents.event import AnyEvent, Event
from rekindle.errors import EngineError, NotOnFleetError, OwnershipError, RekindleError
from rekindle.fleet.orders import QUEUE
from rekindle.fleet.updates import is_overlooked
from rekindle.fleet.workflow import CYCLE, HOST, POOL, REASON, STATE, AgentWorkflow
from rekindle.policy import register
from rekindle.policy.fold import Projection
from rekindle.policy.register import Definition, Kept
from rekindle.policy.settings import (
    FLEET_ANSWER_SECONDS,
    FLEET_RPC_SECONDS,
    FLEET_TASK_SECONDS,
)
from rekindle.system import clock
from rekindle.thresholds.fleet import FLEET_TRIES

_MOST = timedelta(seconds=FLEET_RPC_SECONDS)
_ANSWER = timedelta(seconds=FLEET_ANSWER_SECONDS)
ALL_AGENTS = 'WorkflowType="Agent" AND ExecutionStatus="Running"'
"""What the engine's list is asked for."""
T = TypeVar("T")


class Listed(msgspec.Struct, frozen=True):
    """An agent as the fleet's view has it: no word of what it does."""

    agent: str
    state: str
    host: str
    pool: str
    cycle: int
    why: str = ""
    """Reason of a run that is over or paused; empty: the list does not have it."""


class Agents:
    def __init__(self, client: Client) -> None:
        self.client = client

    async def is_there(self, agent: str) -> bool:
        """Whether the fleet has it: asks the engine alone, whether or not a worker is up."""
        try:
            found = await self._handle(agent).describe(rpc_timeout=_MOST)
        except RPCError as failed:
            if failed.status == RPCStatusCode.NOT_FOUND:
                return False
            raise self._error(agent, failed) from failed
        return found.status == WorkflowExecutionStatus.RUNNING

    async def begin(
        self,
        agent: str,
        definition: Definition,
        *,
        known: Projection | None = None,
        documents: Mapping[str, str] | None = None,
        said: Sequence[AnyEvent] = (),
        generation: int = 0,
    ) -> None:
        """Have the fleet keep an agent, from what is known of it on, and from what is `said`.

        No worker needs to be up for it. Leases are counted from its generation on, or from
        `generation`: none of an earlier life here may count again.

        Raises:
            OwnershipError: It is there already; nothing was changed.
            EngineError: Whose cause is `refused`, nothing was changed; else nobody knows.
        """
        kept = Kept(
            agent=agent,
            definition=definition,
            projection=known or Projection(agent=agent),
            documents=dict(documents or {}),
            generation=max(known.gen if known else 0, generation),
        )
        if not kept.projection.seq:
            kept = register.append(kept, events.AgentCreated(ts=clock.now(), agent=agent))
        kept = register.append(kept, *said)
        try:
            await self.client.start_workflow(
                AgentWorkflow.run,
                kept,
                id=self.workflow(agent),
                task_queue=QUEUE,
                # A worker that is frozen with it must not keep the agent waiting.
                task_timeout=timedelta(seconds=FLEET_TASK_SECONDS),
                id_conflict_policy=WorkflowIDConflictPolicy.FAIL,
                rpc_timeout=_MOST,
            )
        except WorkflowAlreadyStartedError as there:
            raise OwnershipError(
                f"agent {agent} is on the fleet already",
                hint=f"`rekindle status {agent}` tells how it is",
            ) from there
        except RPCError as failed:
            raise self._error(agent, failed) from failed

    async def kept(self, agent: str) -> Kept:
        with self._answering(agent):
            return await self._handle(agent).query(
                AgentWorkflow.kept,
                reject_condition=QueryRejectCondition.NOT_OPEN,
                rpc_timeout=_ANSWER,
            )

    async def say(self, agent: str, *records: Event) -> int:
        """Have the operator's words counted; returns the place of the last one in the log."""
        lines = [events.render(one).decode() for one in records]
        handle = self._handle(agent)
        return await self._updated(
            agent, lambda: handle.execute_update(AgentWorkflow.say, lines, rpc_timeout=_MOST)
        )

    async def define(self, agent: str, definition: Definition) -> None:
        handle = self._handle(agent)
        await self._updated(
            agent,
            lambda: handle.execute_update(AgentWorkflow.define, definition, rpc_timeout=_MOST),
        )

    async def ask_for_brief(self, agent: str) -> None:
        with self._answering(agent):
            await self._handle(agent).signal(AgentWorkflow.brief_due, rpc_timeout=_MOST)

    async def remove(self, agent: str) -> Kept:
        """End an agent's life on the fleet; returns what is known of it.

        Of one that was removed before, what was known then: whoever was killed on the way home
        asks again.
        """
        handle = self._handle(agent)
        if await self.is_there(agent):
            await self._updated(
                agent, lambda: handle.execute_update(AgentWorkflow.remove, rpc_timeout=_MOST)
            )
        with self._answering(agent):
            return await handle.result()

    async def listed(self, only: Sequence[str] = ()) -> AsyncIterator[Listed]:
        """All of them, or `only` these, as the engine's list has them: it may lag a second."""
        wanted = ALL_AGENTS
        if only:
            ids = ", ".join(f'"{self.workflow(agent)}"' for agent in only)
            wanted += f" AND WorkflowId IN ({ids})"
        async for one in self.client.list_workflows(wanted):
            found = one.typed_search_attributes
            state: str = found.get(STATE, "new")
            reason = ""
            with suppress(RekindleError):  # the list must not need the key of every agent
                reason = await one.memo_value(REASON, "", type_hint=str)
            yield Listed(
                agent=one.id.removeprefix(f"{self.client.namespace}/"),
                state=state,
                host=found.get(HOST, "-"),
                pool=found.get(POOL, "-"),
                cycle=found.get(CYCLE, 0),
                why=reason.removeprefix(f"{state}:") if reason.startswith(f"{state}:") else "",
            )

    def workflow(self, agent: str) -> str:
        return f"{self.client.namespace}/{agent}"

    def _handle(self, agent: str) -> WorkflowHandle[AgentWorkflow, Kept]:
        return self.client.get_workflow_handle_for(AgentWorkflow.run, self.workflow(agent))

    async def _updated(self, agent: str, ask: Callable[[], Awaitable[T]]) -> T:
        """What its workflow answers; one that has overlooked the question is asked again."""
        for tries_left in reversed(range(FLEET_TRIES)):
            with self._answering(agent):
                try:
                    return await ask()
                except WorkflowUpdateFailedError as refused:
                    if not (tries_left and is_overlooked(refused)):
                        raise
        raise _unanswered(agent, "no answer in time")

    @contextmanager
    def _answering(self, agent: str) -> Iterator[None]:
        """What goes wrong when its workflow is asked, in our words."""
        try:
            yield
        except RPCError as failed:
            raise self._error(agent, failed) from failed
        except WorkflowQueryRejectedError as ended:
            raise NotOnFleetError(agent) from ended
        except WorkflowQueryFailedError as failed:
            raise EngineError(
                "refused",
                f"no worker can go on with agent {agent}: {failed.message}",
                hint="have workers of the version of Rekindle that it was begun with, or a newer",
            ) from failed
        except WorkflowUpdateRPCTimeoutOrCancelledError as late:
            raise _unanswered(agent, "no answer in time") from late
        except WorkflowFailureError as ended:
            raise EngineError(
                "ended",
                f"agent {agent} was ended in the engine by hand: {ended.cause}",
                hint=f"`rekindle run {agent}` begins it anew; what was known is on its hosts",
            ) from ended
        except WorkflowUpdateFailedError as refused:
            cause = refused.cause
            words = cause.message if isinstance(cause, ApplicationError) else str(cause)
            raise EngineError("refused", words, hint="upgrade Rekindle on all hosts") from refused

    def _error(self, agent: str, failed: RPCError) -> Exception:
        if failed.status == RPCStatusCode.NOT_FOUND:
            return NotOnFleetError(agent)
        if failed.status == RPCStatusCode.INVALID_ARGUMENT:
            return EngineError(
                "refused",
                f"the engine refuses agent {agent}: {failed.message}",
                hint="if it is too large, resolve loops and shorten its relay",
            )
        if failed.status in {RPCStatusCode.CANCELLED, RPCStatusCode.DEADLINE_EXCEEDED}:
            return _unanswered(agent, "no answer in time")
        return EngineError(
            "engine",
            f"the engine has no answer for agent {agent}: {failed.message}",
            hint="`rekindle doctor` says whether workers are up; the engine's UI says more",
        )


def _unanswered(agent: str, why: str) -> EngineError:
    return EngineError(
        "unanswered",
        f"nobody answers for agent {agent}: {why}",
        hint="is a worker up? `rekindle fleet worker` starts one on this host",
    )
