"""Codex's own goals, in its terminal: it starts another turn until the goal is complete."""

import contextlib
import json
import os
import re
import shlex
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from loopback import install
from loopback.log import Part
from loopback.script import Text, ToolCall
from survival import player, task
from survival.contender import About, Contender
from survival.host import Host
from survival.player import Move, Say

CLIS = ("codex",)
_CODEX: Final = ("codex", "--no-daemon", "--dangerously-bypass-approvals-and-sandbox")
_GOAL: Final = f"/goal Complete the task in PROMPT.md without stopping until `{task.CHECK}` passes."
_SETUP: Final = f"""\
{" ".join(_CODEX)}
{_GOAL}
"""
_RESUME: Final = "/goal resume"
_ANSWERED: Final = """
[projects."{project}"]
trust_level = "trusted"
[notice.model_migrations]
"gpt-5.5" = "gpt-6-sol"
"""
"""The questions that it asks once, before the first goal: they are answered already."""
_COMPLETE: Final = {"status": "complete"}
_STATE: Final = re.compile(r"\x1b\]7501;state=(\w+)")
"""What it reports to a terminal."""
_CONTROL: Final = re.compile(
    r"\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b\[[0-9;?<>=]*[ -/]*[@-~]|\x1b."
)
_INTERRUPT: Final = "\x03"
_QUIT: Final = "\x04"
_QUERIES: Final = {"\x1b[6n": "\x1b[1;1R", "\x1b[c": "\x1b[?1;2c"}


class Terminal:
    """The person's terminal, outside the host, so that no fault kills it.

    The person leaves the program once it says that the goal is achieved.
    """

    def __init__(self, line: str) -> None:
        self._master, self._slave = os.openpty()
        self._line = line
        self.path = os.ttyname(self._slave)
        self.shown = ""
        threading.Thread(target=self._read, daemon=True).start()

    @property
    def state(self) -> str:
        """Return the state that Codex reported last."""
        return next(reversed(_STATE.findall(self.shown)), "")

    @property
    def text(self) -> str:
        """Return everything that was shown, without positions and colours."""
        return re.sub(r"\s*\n\s*", "\n", _CONTROL.sub("\n", self.shown))

    @property
    def is_complete(self) -> bool:
        """Return whether it said that the goal is achieved."""
        return "Goal achieved" in self.text.replace("\n", " ")

    def close(self) -> None:
        """End the reader, once the program has ended too."""
        os.close(self._slave)

    def _read(self) -> None:
        with contextlib.suppress(OSError):  # the program has ended
            self._follow()
        os.close(self._master)

    def _follow(self) -> None:
        is_left = False
        while piece := os.read(self._master, 65536).decode(errors="replace"):
            self.shown += piece
            for query, answer in _QUERIES.items():
                if query in piece:
                    self.press(answer)
            if self._line and self.state == "idle":
                line, self._line = self._line, ""
                self.enter(line)
            if not is_left and self.state == "done" and self.is_complete:
                is_left = True
                self.press(_QUIT)

    def press(self, keys: str) -> None:
        os.write(self._master, keys.encode())

    def enter(self, line: str) -> None:
        """Paste a line, and press Enter."""
        self.press(f"\x1b[200~{line}\x1b[201~\r")


class CodexGoal(Contender):
    def __init__(self, cli: str) -> None:
        super().__init__()
        self.about = About(name="codex-goal", cli=cli, version=install.CODEX.version, setup=_SETUP)
        self._terminals: list[Terminal] = []

    def prepare(self, host: Host) -> None:
        super().prepare(host)
        with (Path(host.environment["HOME"]) / ".codex/config.toml").open("a") as settings:
            settings.write(_ANSWERED.format(project=host.project))

    def argv(self, host: Host) -> Sequence[str]:
        return _CODEX

    def argv_again(self, host: Host) -> Sequence[str]:
        return [*_CODEX, "resume", "--last"]

    def start(self, host: Host) -> None:
        self._open(host, self.argv(host), _GOAL)

    def _open(self, host: Host, argv: Sequence[str], line: str) -> None:
        terminal = Terminal(line)
        self._terminals.append(terminal)
        at = shlex.quote(terminal.path)
        size = f"stty rows 40 cols 120 < {at}"
        program = f"{size}; exec {shlex.join(argv)} < {at} > {at} 2>&1"
        argv = ["setsid", "sh", "-c", program]
        self._running.append(host.start(argv, TERM="xterm-256color"))

    def stop_as_operator(self, host: Host) -> None:
        """Press Ctrl-C, which the program reads as a key."""
        self._terminals[-1].press(_INTERRUPT)

    def revive(self, host: Host) -> None:
        """Resume the goal, in its session; or set it again if it was complete or cannot resume."""
        terminal = self._terminals[-1]
        if self.is_running(host) and terminal.state != "working":
            terminal.enter(_RESUME)
            return
        if self.is_running(host):
            host.kill(host.clis())
        if terminal.is_complete or not terminal.state:
            self.start(host)
        else:
            self._open(host, self.argv_again(host), _RESUME)

    def own_step(self, parts: Sequence[Part], move: Move) -> Text | ToolCall | None:
        """Mark the goal as complete, and then report the end."""
        calls = {part.call: part.text for part in parts if part.form == "call"}
        if _is_complete(calls.get(parts[-1].call, "")):
            return Text(player.SENTENCE)
        is_end = isinstance(move, Say) and player.SENTENCE in move.text
        return ToolCall("update_goal", _COMPLETE) if is_end else None

    def work_parts(self, parts: Sequence[Part]) -> Sequence[Part]:
        return list(_without_own_calls(parts))

    def shut_down(self, host: Host) -> None:
        """Leave the program, which waits for the next prompt."""
        if self.is_running(host):
            self._terminals[-1].press(_QUIT)
            with contextlib.suppress(TimeoutError):
                self._running[-1].wait(15)
        for terminal in self._terminals:
            terminal.close()

    def state_files(self, host: Host) -> list[Path]:
        return [Path(host.environment["HOME"]) / ".codex/goals_1.sqlite"]

    def messages(self, host: Host) -> str:
        return "\n".join(terminal.text for terminal in self._terminals)


def _is_complete(call: str) -> bool:
    return bool(call) and json.loads(call) == _COMPLETE


def _without_own_calls(parts: Sequence[Part]) -> Iterator[Part]:
    own = {part.call for part in parts if part.form == "call" and _is_complete(part.text)}
    return (part for part in parts if part.call not in own)


contender = CodexGoal
