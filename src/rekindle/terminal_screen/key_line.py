"""The last line of a screen: as many of its keys as fit."""

from collections.abc import Iterable

from rich.text import Text
from textual.binding import ActiveBinding
from textual.screen import Screen

from rekindle.documents.screens.status_table import display_width
from rekindle.terminal_screen.plain_static import PlainStatic

_ALWAYS = ("?", "esc")


class KeyLine(PlainStatic):
    """Shows the keys of the screen. The keys that list all keys and go back are always visible."""

    def on_mount(self) -> None:
        self.screen.bindings_updated_signal.subscribe(self, self._show)
        self._show(self.screen)

    def on_resize(self) -> None:
        self._show(self.screen)

    def _show(self, screen: Screen[object]) -> None:
        if self.is_attached and self.size.width:
            keys = self._list_keys(screen.active_bindings.values())
            self.show(render_keys(keys, self.size.width))

    def _list_keys(self, bindings: Iterable[ActiveBinding]) -> list[tuple[str, str]]:
        return [
            (self.app.get_key_display(active.binding), active.binding.description)
            for active in bindings
            if active.binding.show and active.enabled
        ]


def render_keys(keys: Iterable[tuple[str, str]], columns: int) -> Text:
    """Return the first keys that fit beside those that are always shown."""
    parts = [(key, f" {label}  ") for key, label in keys]
    always = [part for part in parts if part[0] in _ALWAYS]
    room = columns - sum(_measure(part) for part in always)
    shown = []
    for part in parts:
        if part in always:
            shown.append(part)
        elif _measure(part) <= room:
            room -= _measure(part)
            shown.append(part)
        else:
            room = 0
    return Text.assemble(*(piece for key, label in shown for piece in ((key, "bold"), label)))


def _measure(part: tuple[str, str]) -> int:
    return display_width("".join(part))
