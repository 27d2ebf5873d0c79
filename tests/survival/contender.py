"""A contender: what it says about itself, and how a person sets up, starts and stops it.

Each contender is one small file in contenders/. Most of them are a program that a person starts in
a terminal and stops with Ctrl-C: they derive from `Contender` and replace what differs.
"""

import contextlib
import signal
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from loopback.log import Part
from loopback.place import Started
from loopback.script import Step, Text, ToolCall
from survival import task
from survival.host import Host
from survival.player import Move


@dataclass(frozen=True, slots=True)
class About:
    """A contender with one CLI, as the page describes it."""

    name: str
    cli: str
    """`claude-code` or `codex`."""
    version: str
    setup: str
    """The commands that its own documentation recommends for unattended work."""
    ending: str = ""
    """The sentence that the task's prompt needs, so that the tool notices the end."""
    word: str = ""
    """The text by which the model reports the end to this tool."""
    finish: str = ""
    """The shell command by which the model reports the end to this tool, before the text."""
    not_its_job: frozenset[str] = frozenset()
    """Faults that the tool does not claim to handle, by its own documentation."""

    @property
    def key(self) -> str:
        return f"{self.name}-{self.cli}"


class Contender:
    """A program that runs in the foreground of a terminal."""

    about: About
    prefix: Path
    """The folder into which it was installed."""

    def __init__(self) -> None:
        self._running: list[Started] = []

    def install(self, prefix: Path) -> None:
        """Install it into an empty folder; called once for all of its cells."""

    def prepare(self, host: Host) -> None:
        """Set the tool up in `host.project`, which has the task's check but no prompt yet."""
        (host.project / "PROMPT.md").write_text(task.prompt(self.about.ending))

    def argv(self, host: Host) -> Sequence[str]:
        """Return the command that starts the work."""
        raise NotImplementedError

    def argv_again(self, host: Host) -> Sequence[str]:
        """Return the command that a person uses if the work does not continue."""
        return self.argv(host)

    def start(self, host: Host) -> None:
        """Start the work, as the operator does in the evening."""
        self._start(host, self.argv(host))

    def _start(self, host: Host, argv: Sequence[str]) -> None:
        # A process group of its own, as a shell with job control gives it.
        self._running.append(host.start(["setsid", *argv]))

    def service(self, host: Host) -> Sequence[str]:
        """Return the program that its service runs, which the host starts again; or nothing."""
        return ()

    def is_running(self, host: Host) -> bool:
        """Return whether the tool itself runs, apart from its service and the CLIs."""
        return bool(self._running) and self._running[-1].pid in host.living()

    def stop_as_operator(self, host: Host) -> None:
        """Press Ctrl-C, which the terminal sends to the whole foreground group."""
        with contextlib.suppress(AssertionError):  # it may have exited
            host.place.signal(-self._running[-1].pid, signal.SIGINT)

    def revive(self, host: Host) -> None:
        """Do what a person does if the work does not continue.

        A person kills a CLI that hangs, and lets the tool react; otherwise, the person starts the
        tool again.
        """
        clis, is_running = host.clis(), self.is_running(host)
        if is_running:
            host.kill(clis or [self._running[-1].pid])
        if is_running and clis:
            return
        self._start(host, self.argv_again(host))

    def shut_down(self, host: Host) -> None:
        """Leave nothing behind, as its documentation says, after the work."""

    def state_files(self, host: Host) -> list[Path]:
        """Return the files in which it keeps its state."""
        return []

    def answer_side(self, kind: str, body: Any, parts: Sequence[Part]) -> Step | None:
        """Return the model's answer to a question of the tool itself; None: as the CLI's own."""
        return None

    def own_step(self, parts: Sequence[Part], move: Move) -> Text | ToolCall | None:
        """Return what the model does with the CLI's own tools instead of a move; or None."""
        return None

    def work_parts(self, parts: Sequence[Part]) -> Sequence[Part]:
        """Return the parts of a conversation without these calls."""
        return parts

    def messages(self, host: Host) -> str:
        """Return what it told the person, with its output after its errors."""
        return "\n".join(started.err + started.out for started in self._running)
