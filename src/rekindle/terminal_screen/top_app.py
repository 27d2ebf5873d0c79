"""The program behind `rekindle top`."""

import asyncio
from pathlib import Path
from typing import ClassVar

from textual.app import App
from textual.binding import Binding, BindingType

from rekindle.api.home import Home
from rekindle.api.operator import Operator
from rekindle.errors import RekindleError
from rekindle.formats.identifiers import strip_invisible
from rekindle.terminal_screen.action_screen import ActionScreen
from rekindle.terminal_screen.fleet_screen import FleetScreen
from rekindle.terminal_screen.keys_dialog import KeysDialog
from rekindle.terminal_screen.screen_reading import ScreenReader, ScreenReading
from rekindle.thresholds.screens import TOP_NOTICE_SECONDS, TOP_POLL_SECONDS, TOP_WIDE_COLUMNS


class TopApp(App[None]):
    """Reads the agents every second, and shows them on the open screens."""

    TITLE = "rekindle top"
    CSS_PATH = "top.tcss"
    HORIZONTAL_BREAKPOINTS = [  # noqa: RUF012 - textual declares it as a variable of instances
        (0, "-narrow"),
        (TOP_WIDE_COLUMNS, "-wide"),
    ]
    ENABLE_COMMAND_PALETTE = False
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("question_mark", "keys", "keys", key_display="?"),
        Binding("q", "quit", "quit"),
    ]

    def __init__(self, folder: Path, *, read_only: bool = False) -> None:
        super().__init__()
        operator = Operator(tell=self._tell, origin="top")
        self.home = Home(folder, operator)
        self.is_read_only = read_only
        self.reading: ScreenReading | None = None
        self.lost = ""
        """Why there is no newer reading, or empty."""
        self._reader = ScreenReader(self.home)
        self._is_reading = False

    def get_default_screen(self) -> FleetScreen:
        return FleetScreen()

    def on_mount(self) -> None:
        self.set_interval(TOP_POLL_SECONDS, self.request_reading)
        self.request_reading()

    def on_unmount(self) -> None:
        self.home.close()

    def request_reading(self) -> None:
        """Read the agents, unless this is still being done."""
        if not self._is_reading:
            self._is_reading = True
            self.run_worker(self.read())

    async def read(self) -> None:
        """Read the agents in a thread, then show them."""
        try:
            self.reading, self.lost = await asyncio.to_thread(self._reader.read), ""
        except (RekindleError, OSError) as error:
            at = self.reading.at.astimezone() if self.reading else None
            self.lost = f"no updates since {at:%H:%M:%S}: {error}" if at else str(error)
        finally:
            self._is_reading = False
        for screen in self.screen_stack:
            if isinstance(screen, ActionScreen) and screen.is_mounted:
                screen.show_reading()

    def action_keys(self) -> None:
        self.push_screen(KeysDialog(self.screen.active_bindings.values()))

    def _tell(self, words: str) -> None:
        self.notify(strip_invisible(words), timeout=TOP_NOTICE_SECONDS, markup=False)
