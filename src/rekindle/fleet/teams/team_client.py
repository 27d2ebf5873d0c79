"""Client for a fleet's teams: read them, and set their caps."""

from datetime import timedelta

from temporalio.client import (
    Client,
    WorkflowQueryRejectedError,
    WorkflowUpdateFailedError,
    WorkflowUpdateRPCTimeoutOrCancelledError,
)
from temporalio.common import QueryRejectCondition, WorkflowIDConflictPolicy
from temporalio.service import RPCError, RPCStatusCode

from rekindle.errors import EngineError, UsageError
from rekindle.fleet.agent.host_orders import DECISION_QUEUE
from rekindle.fleet.agent.team_permit import make_team_id
from rekindle.fleet.teams.team_workflow import TeamWorkflow
from rekindle.policy.fleet.team_permits import TeamCaps, TeamState
from rekindle.policy.settings.runtime_settings import (
    FLEET_ANSWER_SECONDS,
    FLEET_RPC_SECONDS,
    FLEET_TASK_SECONDS,
)

_MOST = timedelta(seconds=FLEET_RPC_SECONDS)
_ANSWER = timedelta(seconds=FLEET_ANSWER_SECONDS)
_ALL_TEAMS = 'WorkflowType="Team" AND ExecutionStatus="Running"'


class TeamClient:
    def __init__(self, client: Client) -> None:
        self._client = client

    async def set_caps(self, team: str, caps: TeamCaps) -> None:
        """Set the caps of a team. Agents that run without a permit need one for their next cycle.

        Raises:
            EngineError: No worker answered.
        """
        handle = await self._client.start_workflow(
            TeamWorkflow.run,
            TeamState(name=team, caps=caps),
            id=make_team_id(self._client.namespace, team),
            task_queue=DECISION_QUEUE,
            task_timeout=timedelta(seconds=FLEET_TASK_SECONDS),
            id_conflict_policy=WorkflowIDConflictPolicy.USE_EXISTING,
            rpc_timeout=_MOST,
        )
        try:
            await handle.execute_update(TeamWorkflow.set_caps, caps, rpc_timeout=_MOST)
        except (WorkflowUpdateFailedError, WorkflowUpdateRPCTimeoutOrCancelledError) as late:
            raise _make_unanswered_error(team) from late

    async def read(self, team: str) -> TeamState:
        """Return the state of a team with caps.

        Raises:
            UsageError: The team has no caps.
        """
        found = await self.find(team)
        if found is None:
            raise UsageError(
                f"team {team} has no caps",
                hint=f"`rekindle fleet team {team} --agents NUMBER` sets one",
            )
        return found

    async def find(self, team: str) -> TeamState | None:
        """Return the state of a team, or None if it never had caps."""
        handle = self._client.get_workflow_handle_for(
            TeamWorkflow.run, make_team_id(self._client.namespace, team)
        )
        try:
            return await handle.query(
                TeamWorkflow.state,
                reject_condition=QueryRejectCondition.NOT_OPEN,
                rpc_timeout=_ANSWER,
            )
        except WorkflowQueryRejectedError:
            return None
        except RPCError as failed:
            if failed.status == RPCStatusCode.NOT_FOUND:
                return None
            if failed.status in {RPCStatusCode.CANCELLED, RPCStatusCode.DEADLINE_EXCEEDED}:
                raise _make_unanswered_error(team) from failed
            raise

    async def list_teams(self) -> list[TeamState]:
        """Return all teams that have or had caps, by name."""
        prefix = make_team_id(self._client.namespace, "")
        listed = self._client.list_workflows(_ALL_TEAMS)
        names = sorted([found.id.removeprefix(prefix) async for found in listed])
        return [await self.read(name) for name in names]


def _make_unanswered_error(team: str) -> EngineError:
    return EngineError(
        "unanswered",
        f"no worker answered for team {team} in time",
        hint="start a worker on this host with `rekindle fleet worker`, and repeat the command",
    )
