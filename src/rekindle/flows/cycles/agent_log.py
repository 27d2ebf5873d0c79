"""Let the supervisor read the agent's log and append to it."""

from rekindle.documents import events
from rekindle.errors import StoreError, TamperedLogError
from rekindle.flows.operator.ask_operator import QuestionAsker
from rekindle.flows.supervisor_ports import AgentSpec, SupervisorPorts
from rekindle.policy.projection.projection import Projection
from rekindle.policy.settings.runtime_settings import STOP_SECONDS


class AgentLog:
    """One agent's log, as used by its supervisor."""

    def __init__(self, agent: AgentSpec, world: SupervisorPorts) -> None:
        self._agent, self._ports = agent.name, world
        self.person = QuestionAsker(agent, world)

    def known(self) -> Projection:
        """Return the current projection, including records that are still in the inbox."""
        seen = self._ports.store.read(self._agent)
        if seen.is_tampered:
            raise TamperedLogError(self._agent, seen.condition)
        if not seen.pending and seen.projection.run.command == seen.committed.run.command:
            return seen.committed
        # A full disk must not block a stop command. Every step that starts a process appends to the
        # log first, and fails there if the disk is full.
        with (
            self._ports.report_trouble(StoreError),
            self._ports.store.writer(self._agent, wait=STOP_SECONDS) as writer,
        ):
            writer.fold()
            return writer.projection
        return seen.projection

    def append(self, *new: events.AnyEvent) -> Projection:
        """Append events, and add a question after each event that needs the operator."""
        with self._ports.store.writer(self._agent, wait=STOP_SECONDS) as writer:
            writer.fold()
            writer.append(*self.person.with_questions(writer.projection, new))
            writer.project()
            return writer.projection
