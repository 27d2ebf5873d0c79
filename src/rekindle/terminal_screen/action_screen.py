"""The base of all screens with actions: it asks, runs an action and shows its result."""

import asyncio
from abc import abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar, cast

import msgspec
from textual.binding import Binding, BindingType
from textual.screen import Screen

from rekindle.documents.events import QuestionAsked
from rekindle.documents.screens.agent_row import AgentRow
from rekindle.errors import RekindleError
from rekindle.formats.identifiers import strip_invisible
from rekindle.policy.operator import answers
from rekindle.terminal_screen.action_dialog import ActionDialog
from rekindle.terminal_screen.agent_actions import ACTIONS, ActionTarget, AgentAction
from rekindle.terminal_screen.fleet_columns import render_spent
from rekindle.thresholds.screens import TOP_NOTICE_SECONDS

if TYPE_CHECKING:
    from rekindle.terminal_screen.top_app import TopApp


_RARE = {"fresh", "budget", "approve", "deny", "tell"}
"""Actions whose keys are only in the list of all keys."""
_CHOICES = {"approve": answers.APPROVALS, "deny": answers.DENIALS}
"""Answers that count as yes and as no."""


class ActionScreen(Screen[None]):
    """A screen whose keys act on one agent."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding(action.key, f"act('{name}')", action.label, show=name not in _RARE)
        for name, action in ACTIONS.items()
        if name != "resolve"
    ]

    @property
    def top(self) -> "TopApp":
        return cast("TopApp", self.app)

    @abstractmethod
    def find_selected(self) -> AgentRow | None:
        """Return the agent that the keys act on."""

    @abstractmethod
    def show_reading(self) -> None:
        """Show the newest reading, or that it could not be read."""

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Hide the actions of a read-only screen, and disable those that are not possible."""
        if action != "act":
            return super().check_action(action, parameters)
        if self.top.is_read_only:
            return False
        row = self.find_selected()
        can_act = row is not None and not self.top.lost
        return True if can_act else None

    def action_act(self, name: str) -> None:
        """Ask whether to run an action on the selected agent, then run it."""
        row = self.find_selected()
        if row is None:
            return
        target, context = ActionTarget(row.agent), row.reason
        reading = self.top.reading
        question = reading.questions.get(row.agent) if reading else None
        if name == "answer":
            context = "No question is open. Your text is sent to the agent's next cycle."
            if question:
                target = target._replace(item=question.question)
                choices = ", ".join(question.choices)
                context = f"{question.text}\n\nPossible answers: {choices}"
        if name in _CHOICES:
            chosen = _choose_answer(reading.asked.get(row.agent, ()), name) if reading else None
            if chosen is None:
                self.app.notify(f"{row.agent}: no question takes yes or no", severity="warning")
                return
            target, context = chosen
        if name == "budget":
            has_tokens = row.spend.tokens_cap and not row.spend.usd_cap
            target = target._replace(item="tokens" if has_tokens else "usd")
            context = f"Spent, and the cap: {render_spent(row.spend)}"
        self.ask(ACTIONS[name], target, context)

    def ask(self, action: AgentAction, target: ActionTarget, context: str = "") -> None:
        """Ask whether to run an action, then run it."""

        def run(confirmed: ActionTarget | None) -> None:
            if confirmed is not None:
                self.app.run_worker(self._run(action, confirmed))

        self.app.push_screen(ActionDialog(action, target, context), run)

    async def _run(self, action: AgentAction, target: ActionTarget) -> None:
        def run() -> str:
            return action.run(self.top.home.agent(target.agent), target)

        try:
            result = await asyncio.to_thread(run)
        except (RekindleError, OSError) as error:
            hint = getattr(error, "hint", "")
            self._tell(action, target, f"{error}\n→ {hint}" if hint else str(error), failed=True)
        else:
            self._tell(action, target, f"{target.agent}: {result}")
        self.top.request_reading()

    def _tell(
        self, action: AgentAction, target: ActionTarget, words: str, *, failed: bool = False
    ) -> None:
        self.app.notify(
            strip_invisible(f"{words}\n$ {action.render_command(target)}"),
            severity="error" if failed else "information",
            timeout=TOP_NOTICE_SECONDS,
            markup=False,
        )


def _choose_answer(asked: Sequence[QuestionAsked], name: str) -> tuple[ActionTarget, str] | None:
    """Return the newest question that takes yes or no with this answer, and its text."""
    for question in reversed(asked):
        for choice in _CHOICES[name]:
            if choice in question.choices:
                request = msgspec.json.encode(question.request).decode() if question.request else ""
                agent = question.question.rpartition("-")[0]
                return ActionTarget(agent, question.question, choice), f"{question.text}\n{request}"
    return None
