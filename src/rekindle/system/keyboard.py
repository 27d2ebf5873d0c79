"""A person at the terminal: resting until they press Enter. No shell, ever: only that they did."""

import os
import select
import sys
import time


class Keyboard:
    def __init__(self) -> None:
        self._is_there = sys.stdin is not None and sys.stdin.isatty()
        self._pressed = False

    def rest(self, seconds: float) -> None:
        """Sleep, or less where Enter is pressed; without a terminal it is only sleep."""
        if not self._is_there or not self._is_ours():
            time.sleep(seconds)
            return
        try:
            if select.select([sys.stdin], [], [], seconds)[0]:
                # What else was typed is thrown away: nobody's words become commands here.
                self._pressed = b"\n" in self._read()
        except (OSError, ValueError):
            self._is_there = False  # the terminal was closed

    def was_pressed(self) -> bool:
        """Whether Enter was pressed since this was asked last."""
        pressed, self._pressed = self._pressed, False
        return pressed

    def _read(self) -> bytes:
        typed = os.read(sys.stdin.fileno(), 4096)
        self._is_there = bool(typed)
        return typed

    @staticmethod
    def _is_ours() -> bool:
        """In the background, reading would stop us."""
        return os.tcgetpgrp(sys.stdin.fileno()) == os.getpgrp()
