"""A handle for one agent, as programs and screens use it."""

import time
from collections.abc import Collection, Iterator
from datetime import datetime
from functools import cached_property
from typing import TYPE_CHECKING

from rekindle.api import answer_questions, budgets, restart_agents, start_agents, stop_agents
from rekindle.api.agent_relays import AgentRelays
from rekindle.api.decisions import AgentDecisions
from rekindle.api.hand_off import request_handoff
from rekindle.api.loops import AgentLoops
from rekindle.api.restart_agents import RestartResult
from rekindle.api.tell_agent import SentMessage, tell_agent
from rekindle.documents.events import Event, QuestionAnswered
from rekindle.documents.events.event import UnknownEvent
from rekindle.documents.manifest_keys import Budget
from rekindle.documents.screens.agent_row import AgentRow, AgentState
from rekindle.errors import UnknownQuestionError, WaitTimeoutError
from rekindle.policy.settings.runtime_settings import POLL_SECONDS
from rekindle.thresholds.screens import EVENTS_POLL_SECONDS, SHOWN_LAST
from rekindle.wiring.access.operator_check import refuse_agent

if TYPE_CHECKING:
    from rekindle.api.activity_log import ActivityLog
    from rekindle.api.home import Home
    from rekindle.documents.screens.agent_night import AgentNight


class Agent:
    """An agent of a project. Creating a handle reads nothing."""

    def __init__(self, home: "Home", name: str) -> None:
        self.home, self.name = home, name

    @cached_property
    def relay(self) -> AgentRelays:
        return AgentRelays(self.home, self.name)

    @cached_property
    def loops(self) -> AgentLoops:
        return AgentLoops(self.home, self.name)

    @cached_property
    def decisions(self) -> AgentDecisions:
        return AgentDecisions(self.home, self.name)

    def row(self) -> AgentRow:
        """Return the agent's state."""
        return self.home.rows([self.name])[0]

    def events(self, *, after: int = 0, follow: bool = False) -> Iterator[Event | UnknownEvent]:
        """Yield the events after a number. With `follow`, wait for new ones and never return."""
        store, end, last = self.home.store, 0, after
        seconds = EVENTS_POLL_SECONDS if self.home.project.settings.fleet is None else POLL_SECONDS
        while True:
            if store.exists(self.name):
                # Lines after the confirmed end may be forged, or an interrupted append.
                confirmed = store.read(self.name).end
                if confirmed < end:
                    end = 0  # the log was replaced by a shorter one
                for entry in store.entries_since(self.name, end):
                    if entry.end > confirmed:
                        break
                    end = entry.end
                    if entry.event.seq > last:
                        last = entry.event.seq
                        yield entry.event
            if not follow:
                return
            time.sleep(seconds)

    def night(self, since: datetime | None = None, until: datetime | None = None) -> "AgentNight":
        """Return what happened in the last hours: sessions, crashes, handoffs, waits and more."""
        from rekindle.api.agent_nights import read_agent_night  # noqa: PLC0415 - only screens need it

        return read_agent_night(self.home.project, self.home.store, self.name, since, until)

    def log(self) -> "ActivityLog":
        """Return a reader of what the agent did, line by line, as in `rekindle logs`."""
        from rekindle.api.activity_log import ActivityLog  # noqa: PLC0415 - only screens need it

        return ActivityLog(self.home.project, self.home.store, self.name)

    def output(self, last: int = SHOWN_LAST) -> list[str]:
        """Return the last lines of what the agent did, each with its time in UTC."""
        return [f"{each.at:%H:%M:%S}  {each.line.text}" for each in self.log().read(last)]

    def start(self, *, cycles: int | None = None) -> str:
        """Start the agent in the background, or on the fleet, and return what happened.

        Its settings in rekindle.yaml are accepted.

        Raises:
            UntrustedError: The folder is not trusted.
            AgentError: The agent could not be started.
        """
        self._require_operator("up")
        self.home.operator.ensure_trust(self.home.project)
        return start_agents.start_agent(self.home, self.name, cycles)

    def stop(self) -> bool:
        """Stop the agent and keep it stopped. Return whether it was running.

        This works even if rekindle.yaml is broken now, or does not name the agent.
        """
        opened = self.home.open_last()
        refuse_agent(opened.project, "rekindle stop")
        return stop_agents.stop_agent(opened.store, self.name)

    def restart(self, *, fresh: bool = False) -> RestartResult:
        """Restart the agent now. With `fresh`, start a fresh session instead of resuming."""
        self._require_operator("restart")
        home = self.home
        home.operator.ensure_trust(home.project)
        return restart_agents.request_restart(
            home.project, lambda: home.store, self.name, home.operator, fresh=fresh
        )

    def hand_off(self, to: str = "") -> None:
        """Continue the work in a fresh session, which starts from a checkpoint.

        With `to`, it continues on another CLI or account of the agent, such as `codex`.
        """
        self._require_operator("handoff")
        request_handoff(self.home.project, self.home.store, self.name, to)

    def answer(self, words: str, *, question: str = "") -> QuestionAnswered | None:
        """Answer a question: the named one, or the one that the agent is waiting for.

        If the agent has no open question, send the words to its next cycle, and return None.

        Raises:
            AnswerError: The question does not offer this answer.
            ClosedQuestionError: The question is closed.
            UnknownQuestionError: There is no such question.
        """
        self._require_operator("answer")
        home = self.home
        selected = answer_questions.select_question(home.project, home.store, self.name)
        asked = selected.known.questions.get(question) if question else selected.question
        if asked is None:
            if question:
                raise UnknownQuestionError(question)
            answer_questions.send_message(selected, words)
            return None
        return answer_questions.record_answer(selected, asked, words, home.operator)

    def tell(self, text: str) -> SentMessage:
        """Send a message to the agent without interrupting it. The agent receives it once.

        Raises:
            UsageError: The message is empty or too long.
            AgentError: Too many messages already wait for this agent.
        """
        return tell_agent(self.home, self.name, text, self.home.operator)

    def budget(self) -> budgets.RunBudget:
        """Return the caps of the agent's run, and its spending."""
        return budgets.read_budget(self.home, self.name)

    def raise_budget(
        self, *, usd: float | None = None, tokens: int | None = None, hours: float | None = None
    ) -> budgets.RunBudget:
        """Raise caps of the agent's run. The next run has the caps in rekindle.yaml again.

        Raises:
            UsageError: The agent does not have this cap, or the new cap is not above it.
            AgentError: The agent has no run, or asks whether to raise its budget.
        """
        self._require_operator("budget")
        return budgets.raise_budget(self.home, self.name, Budget(usd, tokens, hours))

    def wait(
        self,
        until: Collection[AgentState] = ("done", "needs you", "broken", "stopped"),
        *,
        timeout: float | None = None,
    ) -> AgentRow:
        """Wait until the agent is in one of these states, and return its row.

        Raises:
            WaitTimeoutError: The time has passed. The agent is not affected.
        """
        deadline = None if timeout is None else time.monotonic() + timeout
        while (row := self.row()).state not in until:
            if deadline is not None and time.monotonic() > deadline:
                raise WaitTimeoutError(self.name, row.state)
            time.sleep(EVENTS_POLL_SECONDS)
        return row

    def _require_operator(self, command: str) -> None:
        """Refuse the action if one of the project's agents runs this program."""
        refuse_agent(self.home.project, f"rekindle {command}")
