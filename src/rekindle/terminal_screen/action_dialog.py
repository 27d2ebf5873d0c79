"""The question before an action is run, with its command."""

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widgets import Input, Static

from rekindle.terminal_screen.agent_actions import ActionTarget, AgentAction
from rekindle.terminal_screen.plain_text import make_block, make_line


class ActionDialog(ModalScreen[ActionTarget | None]):
    """Asks once whether to run an action, and for its text. It returns None if you cancel."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "confirm", "run"),
        Binding("escape", "cancel", "cancel"),
    ]

    def __init__(self, action: AgentAction, target: ActionTarget, context: str = "") -> None:
        """Prepare the dialog; `context` is the question, or another text from the agent."""
        super().__init__()
        self._agent_action, self._target, self._words = action, target, context

    def compose(self) -> ComposeResult:
        action = self._agent_action
        with Vertical(id="dialog"):
            yield Static(make_line(f"{action.label} {self._target.agent}", "bold"), id="heading")
            if self._words:
                yield Static(make_block(self._words), id="context")
            yield Static(make_block(action.about, "dim"), id="about")
            if action.field:
                yield Input(id="text", placeholder=action.field)
            yield Static(id="command")
            yield Static("enter: run   escape: cancel", id="hint")

    def on_mount(self) -> None:
        self._show_command()

    def on_input_changed(self) -> None:
        self._show_command()

    def on_input_submitted(self) -> None:
        self.action_confirm()

    def action_confirm(self) -> None:
        target = self._read_target()
        if self._agent_action.field and not target.text:
            self.app.notify(f"the {self._agent_action.field} is missing", severity="warning")
            return
        self.dismiss(target)

    def action_cancel(self) -> None:
        self.dismiss(None)

    def _read_target(self) -> ActionTarget:
        if not self._agent_action.field:
            return self._target
        return self._target._replace(text=self.query_one("#text", Input).value.strip())

    def _show_command(self) -> None:
        command = self._agent_action.render_command(self._read_target())
        self.query_one("#command", Static).update(make_block(f"$ {command}", "bold"))
