"""Forked children that report line by line, for whoever wants to see them killed.

A child is ended by its own number, and only while it has not been waited for: no other process can
have that number then.
"""

import os
import select
import signal
import time
from collections.abc import Callable

from rekindle.system import signals

Say = Callable[[str], None]
_ERROR = "!"


class Child:
    """A process of ours that does one work and says what it has done."""

    def __init__(self, work: Callable[[Say], None]) -> None:
        self._pipe, report = os.pipe()
        self._heard = b""
        self._pid = os.fork()
        if self._pid == 0:
            _live(work, report)
        os.close(report)

    def hear(self, lines: int, wait: float) -> list[str]:
        """All that it has said, once that is so many lines, or it ended, or the time is over."""
        deadline = time.monotonic() + wait
        while self._heard.count(b"\n") < lines and (rest := deadline - time.monotonic()) > 0:
            if not select.select([self._pipe], [], [], rest)[0]:
                break
            piece = os.read(self._pipe, 65536)
            if not piece:
                break
            self._heard += piece
        complete = self._heard.decode(errors="replace").split("\n")[:-1]
        return [line for line in complete if not line.startswith(_ERROR)]

    @property
    def error(self) -> str:
        """What stopped it, in its own words; empty where nothing did."""
        return self._stopped_by()[1]

    @property
    def errno(self) -> int:
        """The number of what stopped it, where the system refused something; else 0."""
        return self._stopped_by()[0]

    def _stopped_by(self) -> tuple[int, str]:
        said = self._heard.decode(errors="replace").split("\n")[:-1]
        found = next((line[1:] for line in said if line.startswith(_ERROR)), "0 ")
        number, _, words = found.partition(" ")
        return int(number), words

    def kill(self) -> None:
        """End it at once, if it has not ended; it says nothing more."""
        # A signal that came between waiting for it and forgetting its number would have who cleans
        # up kill it once more, and by then the number may be another's.
        with signals.held_back():
            if self._pid:
                os.kill(self._pid, signal.SIGKILL)
                os.waitpid(self._pid, 0)
                self._pid = 0

    def is_over(self) -> bool:
        with signals.held_back():
            if self._pid and os.waitpid(self._pid, os.WNOHANG)[0]:
                self._pid = 0
        return not self._pid

    def close(self) -> None:
        self.kill()
        os.close(self._pipe)


def _live(work: Callable[[Say], None], report: int) -> None:
    """All that a child does; it never returns into what its parent was doing."""

    def say(line: str) -> None:
        os.write(report, f"{line}\n".encode())

    try:
        signals.end_at_once()
        work(say)
    except BaseException as error:  # noqa: BLE001 - whatever it is, the parent tells it
        words = " ".join(str(error).split()) or type(error).__name__
        say(f"{_ERROR}{getattr(error, 'errno', None) or 0} {words}")
    finally:
        os._exit(0)
