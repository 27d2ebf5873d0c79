"""Ask an agent's team for a permit before each cycle.

The permit is part of the agent's state, because a workflow may continue as a new run while the
agent has one. An agent waits for its permit outside the queue of its pool, so a team at its cap
delays no other team.
"""

from datetime import timedelta

from temporalio import workflow
from temporalio.exceptions import FailureError, is_cancelled_exception

from rekindle.fleet.agent.agent_listing import AgentListing

with workflow.unsafe.imports_passed_through():
    import msgspec

    from rekindle.policy.fleet.agent_registry import RegisteredAgent
    from rekindle.policy.fleet.team_permits import AgentPermit, PermitRequest
    from rekindle.policy.settings.runtime_settings import (
        FLEET_PERMIT_ASK_SECONDS,
        FLEET_PERMIT_SHOW_SECONDS,
    )

GRANT_SIGNAL = "grant_permit"
"""Signal from a team to an agent that may run."""
CHECK_SIGNAL = "check_permit"
"""Signal from a team to an agent that has had a permit for a while."""


def make_team_id(namespace: str, team: str) -> str:
    """Return the id of a team's workflow. No agent can have this name."""
    return f"{namespace}/~team/{team}"


class TeamPermits:
    """Adds permits to the workflow of an agent."""

    _registered: RegisteredAgent
    _listing: AgentListing
    _messages: int
    _decided_messages: int

    async def _get_permit(self) -> bool:
        """Return whether the agent may look for a host, or False if a message arrived first."""
        team = self._registered.definition.team
        if self._registered.permit.team != team:
            await self._release_permit()
        permit = self._registered.permit
        if not team:
            return True
        if permit.state != "asked":
            self._set_permit(AgentPermit(team=team, number=permit.number + 1, state="asked"))
        wait = FLEET_PERMIT_SHOW_SECONDS
        while await self._tell_team("ask"):
            try:
                await workflow.wait_condition(self._is_answered, timeout=timedelta(seconds=wait))
            except TimeoutError:
                self._listing.show(self._registered, "capped", self._registered.host)
                wait = FLEET_PERMIT_ASK_SECONDS
            else:
                return self._registered.permit.state == "held"
        # The team has no caps. The agent asks again before its next cycle.
        self._set_permit(AgentPermit(number=self._registered.permit.number))
        return True

    def _is_answered(self) -> bool:
        is_held = self._registered.permit.state == "held"
        return is_held or self._messages != self._decided_messages

    async def _release_permit(self) -> None:
        """Return the permit or the request for one, if the agent has one."""
        permit = self._registered.permit
        if permit.state != "none":
            self._set_permit(AgentPermit(number=permit.number))
            await self._tell_team("release", permit)

    async def _tell_team(self, signal: str, permit: AgentPermit | None = None) -> bool:
        """Send a signal to the team, and return False if the team has no caps."""
        permit = permit or self._registered.permit
        request = PermitRequest(
            workflow=workflow.info().workflow_id,
            number=permit.number,
            usd=self._registered.projection.run.run_spending().usd,
        )
        team = make_team_id(workflow.info().namespace, permit.team)
        try:
            await workflow.get_external_workflow_handle(team).signal(signal, request)
        except FailureError as error:
            if is_cancelled_exception(error):
                raise
            return False
        return True

    def _set_permit(self, permit: AgentPermit) -> None:
        self._registered = msgspec.structs.replace(self._registered, permit=permit)

    @workflow.signal(name=GRANT_SIGNAL)
    def grant_permit(self, number: int) -> None:
        permit = self._registered.permit
        if permit.number == number and permit.state == "asked":
            self._set_permit(msgspec.structs.replace(permit, state="held"))

    @workflow.signal(name=CHECK_SIGNAL)
    async def check_permit(self, number: int) -> None:
        """Report the spending of a running agent, or return a permit that it does not use."""
        permit = self._registered.permit
        if permit.number == number and permit.state != "none":
            await self._tell_team("report")
        else:
            unused = AgentPermit(team=self._registered.definition.team, number=number)
            await self._tell_team("release", unused)
