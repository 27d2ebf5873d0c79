"""What the tabs of the agent screen show."""

from collections import deque
from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeVar

from rekindle.api.home import Home
from rekindle.documents.screens.agent_night import AgentNight
from rekindle.documents.state import OpenLoop
from rekindle.errors import RekindleError
from rekindle.thresholds.screens import TOP_OUTPUT_LINES

_Value = TypeVar("_Value")


class AgentDetails(NamedTuple):
    """One agent in detail. A part that could not be read is empty and has a problem instead."""

    night: AgentNight | None
    relay: str
    diff: Sequence[str]
    """Lines of a unified diff with the previous relay."""
    loops: Sequence[OpenLoop]
    decisions: Sequence[str]
    problems: dict[str, str]
    """Why a part could not be read, by its name."""


def read_details(home: Home, name: str) -> AgentDetails:
    """Read everything about an agent except its output."""
    agent, problems = home.agent(name), dict[str, str]()

    def attempt(part: str, read: Callable[[], _Value], otherwise: _Value) -> _Value:
        try:
            return read()
        except RekindleError as error:
            problems[part] = f"{error}\n→ {error.hint}" if error.hint else str(error)
            return otherwise

    return AgentDetails(
        attempt("night", agent.night, None),
        attempt("relay", agent.relay.text, ""),
        attempt("diff", agent.relay.diff, []),
        attempt("loops", agent.loops.list, ()),
        attempt("decisions", lambda: [entry.decision.text for entry in agent.decisions.list()], []),
        problems,
    )


class OutputTail:
    """The last lines of an agent's output. Each call reads only what is new."""

    def __init__(self, home: Home, name: str) -> None:
        self._log = home.agent(name).log()
        self._lines: deque[str] | None = None

    def read(self) -> str:
        """Return the last lines, each with its time."""
        if self._lines is None:
            lines = self._log.read(TOP_OUTPUT_LINES)
            self._lines = deque(maxlen=TOP_OUTPUT_LINES)
        else:
            lines = list(self._log.read_new())
        self._lines.extend(f"{each.at.astimezone():%H:%M:%S}  {each.line.text}" for each in lines)
        return "\n".join(self._lines)
