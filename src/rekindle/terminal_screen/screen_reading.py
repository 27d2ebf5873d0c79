"""What a screen shows at one time: the agents' rows and their open questions."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

from rekindle.api.agent_store import read_known
from rekindle.api.home import Home
from rekindle.documents.events import QuestionAsked
from rekindle.documents.relay import RelayField
from rekindle.documents.screens.agent_row import STATES, AgentRow
from rekindle.errors import RekindleError
from rekindle.policy.handoff.window_rule import find_threshold
from rekindle.policy.operator.questions import list_open_questions
from rekindle.system import clock


class ScreenReading(NamedTuple):
    """The agents of a project at one time."""

    at: datetime
    rows: tuple[AgentRow, ...]
    asked: Mapping[str, Sequence[QuestionAsked]]
    """The open questions of each agent that has some, oldest first."""
    thresholds: Mapping[str, int | None]
    """Context-window usage at which a handoff is due, by agent; None if handoffs are disabled."""

    @property
    def questions(self) -> dict[str, QuestionAsked]:
        """Return the newest open question of each agent that has one."""
        return {name: asked[-1] for name, asked in self.asked.items()}

    def find_row(self, agent: str) -> AgentRow | None:
        return next((row for row in self.rows if row.agent == agent), None)

    def list_waiting(self) -> list[AgentRow]:
        """Return the agents that need a person."""
        return [
            row for row in self.rows if STATES[row.state].needs_person or row.agent in self.asked
        ]


class ScreenReader:
    """Reads the agents of a project. It reads an agent's questions only if its log has changed."""

    def __init__(self, home: Home) -> None:
        self._home = home
        self._questions: dict[str, tuple[int, Sequence[QuestionAsked]]] = {}

    def read(self) -> ScreenReading:
        now = clock.read_clock()
        rows = tuple(self._home.rows())
        project = self._home.project
        asked = {row.agent: self._list_questions(row, now) for row in rows}
        agents = project.manifest.agents
        return ScreenReading(
            now,
            rows,
            {name: opened for name, opened in asked.items() if opened},
            {
                name: find_threshold(entry.handover, project.settings.runtime.relay)
                for name, entry in agents.items()
            },
        )

    def _list_questions(self, row: AgentRow, now: datetime) -> Sequence[QuestionAsked]:
        if not row.open_questions:
            return ()
        at, opened = self._questions.get(row.agent, (-1, ()))
        if at != row.at:
            opened = list_open_questions(read_known(self._home.store, row.agent), now)
            self._questions[row.agent] = row.at, opened
        return opened


def read_peek(home: Home, agent: str) -> list[tuple[str, str]]:
    """Return facts about an agent that the table has no room for, each with its name."""
    manifest = home.project.manifest
    entry = manifest.agents.get(agent)
    persona = manifest.personas.get(entry.persona) if entry and entry.persona else None
    facts = [("model", persona.model)] if persona and persona.model else []
    try:
        relay = home.agent(agent).relay.read()
    except RekindleError as error:
        return [*facts, ("relay", str(error))]
    fields = (("phase", RelayField.CURRENT_PHASE), ("did", RelayField.WHAT_WE_DID))
    return [*facts, *((name, relay.content(field) or "–") for name, field in fields)]
