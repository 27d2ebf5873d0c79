"""The list of all keys of a screen."""

from collections.abc import Iterable
from typing import ClassVar

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import ActiveBinding, Binding, BindingType
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widgets import Static


class KeysDialog(ModalScreen[None]):
    """Lists the keys of the screen below."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,question_mark,q,enter", "dismiss", "close")
    ]

    def __init__(self, bindings: Iterable[ActiveBinding]) -> None:
        super().__init__()
        # Our descriptions start with a small letter, those of textual's own keys do not.
        self._active = [
            active.binding
            for active in bindings
            if active.binding.description[:1].islower() and active.enabled
        ]

    def compose(self) -> ComposeResult:
        lines = [
            Text.assemble((f"{self.app.get_key_display(key):>12}  ", "bold"), key.description)
            for key in self._active
        ]
        with Vertical(id="dialog"):
            yield Static(Text("keys", "bold"), id="heading")
            yield Static(Text("\n").join(lines))
            yield Static("escape: close", id="hint")
