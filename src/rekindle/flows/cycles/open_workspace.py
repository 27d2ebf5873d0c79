"""Open the agent's own clone or work tree before a launch, and create it if it is missing."""

from rekindle.documents import events
from rekindle.errors import AgentError, RekindleError
from rekindle.flows.cycles.agent_log import AgentLog
from rekindle.flows.launches.checked_command import CheckedCommand
from rekindle.flows.supervisor_ports import AgentSpec, SupervisorPorts, TroubleReport
from rekindle.thresholds.supervision import PREPARE_SECONDS


class WorkspaceOpener:
    """Opens one agent's workspace."""

    def __init__(self, agent: AgentSpec, world: SupervisorPorts, log: AgentLog) -> None:
        self._agent, self._ports, self._log = agent, world, log

    def open(self, *, is_first: bool) -> AgentError | None:
        """Create the workspace, or update it before the first launch of a cycle.

        Return the error if that fails, so that the caller can record a launch that did not start.
        """
        if self._ports.open_workspace is None:
            return None
        try:
            new = self._ports.open_workspace(self._prepare, is_first)
        except RekindleError as error:
            words = str(error).removeprefix("workspace: ")
            return AgentError(f"the workspace of {self._agent.name}: {words}", hint=error.hint)
        if new is not None:
            created = events.WorkspaceCreated(
                ts=self._ports.clock(),
                folder=self._agent.folder,
                branch=self._agent.branch,
                base=new.base,
            )
            self._log.append(created)
            if new.moved:
                words = "created its folder again, because git did not accept the old one"
                self._ports.tell(TroubleReport(f"{words}, which is now {new.moved}"))
        return None

    def _prepare(self) -> None:
        """Run the `prepare:` command.

        Raises:
            AgentError: It failed, or the supervisor was stopped.
        """
        command = CheckedCommand(
            self._agent.prepare,
            self._agent,
            self._ports,
            seconds=PREPARE_SECONDS,
            has_network=True,
        )
        result = command.run()
        if result.verdict not in {"", "passed"}:
            words = result.words or "it was stopped"
            raise AgentError(f"`prepare:` failed: {words}", hint="correct it in rekindle.yaml")
