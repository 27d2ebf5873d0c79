"""A handle to read one agent of a fleet."""

import time
from collections.abc import Iterator

from rekindle.documents import events, manifest, relay
from rekindle.documents.events import Event, QuestionAsked
from rekindle.documents.events.event import UnknownEvent
from rekindle.documents.relay import Relay
from rekindle.documents.screens.agent_row import AgentRow
from rekindle.errors import NotFoundError
from rekindle.fleet.commands.fleet_store import FleetStore
from rekindle.fleet.engine.agent_client import AgentClient
from rekindle.fleet.engine.engine_thread import EngineThread
from rekindle.policy.fleet.agent_registry import RegisteredAgent
from rekindle.policy.operator.build_row import RowInputs, build_row
from rekindle.policy.operator.questions import list_open_questions
from rekindle.policy.settings.runtime_settings import POLL_SECONDS
from rekindle.system import clock


class FleetAgent:
    """An agent of a fleet. Each method asks the agent's workflow, so a worker must be running."""

    def __init__(self, agents: AgentClient, thread: EngineThread, name: str) -> None:
        self._agents, self._thread, self.name = agents, thread, name

    def row(self) -> AgentRow:
        """Return the agent's whole state.

        Raises:
            NotOnFleetError: The agent is not on the fleet.
        """
        registered = self._read()
        definition = registered.definition
        entry = manifest.parse(definition.manifest).agents[self.name]
        inputs = RowInputs(
            now=clock.read_clock(),
            is_supervised=FleetStore.is_kept_alive(registered),
            budget=entry.budget,
            loops=definition.limits.runtime.loops,
        )
        return build_row(registered.projection, inputs, entry.harness)

    def events(self, *, after: int = 0, follow: bool = False) -> Iterator[Event | UnknownEvent]:
        """Yield the events after a number, as far as the engine still has them.

        With `follow`, wait for new ones and never return.
        """
        last = after
        while True:
            for line in self._read().tail:
                event = events.parse(line.encode())
                if event.seq > last:
                    last = event.seq
                    yield event
            if not follow:
                return
            time.sleep(POLL_SECONDS)

    def relay(self) -> Relay:
        """Return the agent's current relay.

        Raises:
            NotFoundError: The agent has no relay yet.
        """
        registered = self._read()
        committed = registered.projection.documents.get("relay")
        text = registered.documents.get(committed.path) if committed else None
        if text is None:
            hint = "the agent's first cycle will write one"
            raise NotFoundError(f"{self.name} has no relay yet", hint=hint)
        return relay.parse(text.encode())

    def questions(self) -> list[QuestionAsked]:
        """Return the agent's open questions, oldest first."""
        return list_open_questions(self._read().projection, clock.read_clock())

    def _read(self) -> RegisteredAgent:
        return self._thread.wait_for(self._agents.kept(self.name))
