"""Workflow for one team with caps, which grants permits to the team's agents."""

import asyncio
from datetime import timedelta

from temporalio import workflow
from temporalio.exceptions import FailureError, is_cancelled_exception

from rekindle.fleet.agent.continued_runs import continue_run
from rekindle.fleet.agent.refresh_signal import RefreshSignal
from rekindle.fleet.agent.team_permit import CHECK_SIGNAL, GRANT_SIGNAL

with workflow.unsafe.imports_passed_through():
    import msgspec

    from rekindle.policy.fleet import team_permits
    from rekindle.policy.fleet.team_permits import PermitRequest, TeamCaps, TeamState
    from rekindle.policy.settings.runtime_settings import (
        FLEET_HISTORY_EVENTS,
        FLEET_PERMIT_CHECK_SECONDS,
    )

_CHECK = timedelta(seconds=FLEET_PERMIT_CHECK_SECONDS)


@workflow.defn(name="Team")
class TeamWorkflow(RefreshSignal):
    """Exists from the first cap of the team on. One workflow decides, so the caps are exact."""

    @workflow.init
    def __init__(self, team: TeamState) -> None:
        self._team = team
        self._messages = self._decided_messages = 0

    @workflow.run
    async def run(self, team: TeamState) -> None:  # noqa: ARG002 - taken by __init__
        while True:
            self._decided_messages = self._messages
            self._team, granted = team_permits.grant_permits(self._team, workflow.now())
            if granted:
                sent = (self._tell(GRANT_SIGNAL, one.workflow, one.number) for one in granted)
                await asyncio.gather(*sent)
            elif self._must_continue(FLEET_HISTORY_EVENTS):
                await workflow.wait_condition(workflow.all_handlers_finished)
                continue_run(self._team)
            else:
                await self._wait()

    async def _wait(self) -> None:
        """Wait for a message. If agents are waiting, check the running ones regularly."""
        most = None
        if self._team.waiting:
            now = workflow.now()
            most = min(_CHECK, team_permits.find_next_day(now) - now)
        try:
            await workflow.wait_condition(
                lambda: self._messages != self._decided_messages, timeout=most
            )
        except TimeoutError:
            held = list(self._team.held.items())
            await asyncio.gather(
                *(self._tell(CHECK_SIGNAL, agent, permit.number) for agent, permit in held)
            )

    async def _tell(self, signal: str, agent: str, number: int) -> None:
        """Send a signal to an agent. If the agent is not there anymore, its permit ends."""
        try:
            await workflow.get_external_workflow_handle(agent).signal(signal, number)
        except FailureError as error:
            if is_cancelled_exception(error):
                raise
            self._team = team_permits.drop_agent(self._team, agent)

    @workflow.signal
    async def ask(self, request: PermitRequest) -> None:
        self._team = team_permits.record_request(self._team, request, workflow.now())
        self._messages += 1
        if request.workflow in self._team.held:  # a repeated request, because the answer was lost
            await self._tell(GRANT_SIGNAL, request.workflow, request.number)

    @workflow.signal
    def report(self, report: PermitRequest) -> None:
        """Take a running agent's report on its spending."""
        self._team = team_permits.record_spending(self._team, report, workflow.now())
        self._messages += 1

    @workflow.signal
    def release(self, report: PermitRequest) -> None:
        self._team = team_permits.end_permit(self._team, report, workflow.now())
        self._messages += 1

    @workflow.update
    def set_caps(self, caps: TeamCaps) -> None:
        self._team = msgspec.structs.replace(self._team, caps=caps)
        self._messages += 1

    @workflow.query
    def state(self) -> TeamState:
        return self._team
