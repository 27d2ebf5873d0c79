"""Wait for the user to press Enter. Typed text is never used as an answer."""

import os
import select
import sys
import time
from collections.abc import Callable


class Keyboard:
    def __init__(self, on_text: Callable[[], None] = lambda: None) -> None:
        """Watch the terminal. If the user types text, it is ignored and `on_text` is called."""
        self._on_text = on_text
        self._is_there = sys.stdin is not None and sys.stdin.isatty()
        self._pressed = False

    def rest(self, seconds: float) -> None:
        """Sleep for `seconds`, or until Enter is pressed."""
        if not self._is_there or not self._is_ours():
            time.sleep(seconds)
            return
        try:
            if select.select([sys.stdin], [], [], seconds)[0]:
                typed = self._read_keys()
                self._pressed = bool(typed) and not typed.strip()
                if typed.strip():
                    self._on_text()
        except (OSError, ValueError):
            self._is_there = False  # the terminal was closed

    def was_pressed(self) -> bool:
        """Return whether Enter was pressed since the last call."""
        pressed, self._pressed = self._pressed, False
        return pressed

    def _read_keys(self) -> bytes:
        typed = os.read(sys.stdin.fileno(), 4096)
        self._is_there = bool(typed)
        return typed

    @staticmethod
    def _is_ours() -> bool:
        """Return whether we are in the foreground. Reading in the background would suspend us."""
        return os.tcgetpgrp(sys.stdin.fileno()) == os.getpgrp()
