"""Faults on the host: processes that are killed, a stop, a full disk, a truncated file."""

import time
from collections.abc import Callable
from pathlib import Path

from survival.fault import Asked, Fault, Host
from survival.player import Move, Say
from survival.refusals import Refusals


class InToolCall(Fault):
    """A fault that acts while an item call runs, which continues afterwards if it can.

    The call waits until the model makes another item call, or until the fault releases it. If it
    outlives its CLI, its item is therefore written although another session does it again.
    """

    def __init__(self, signals: Path, refusals: Refusals) -> None:
        super().__init__(signals, refusals)
        self._began, self._released = signals / "began", signals / "released"
        self._is_applied = False

    def wrap(self, number: int, line: str) -> str:
        if number == self.call:
            wait = f"while [ ! -e {self._released} ]; do sleep 0.05; done"
            return f"touch {self._began}; {wait}; {line}"
        if number > self.call:
            self.release()
        return line

    def release(self) -> None:
        self._released.touch()

    def is_due(self) -> bool:
        return not self._is_applied and self._began.exists()

    def apply(self, host: Host) -> None:
        self._is_applied = True
        self.at = time.monotonic()
        before = set(host.clis())
        assert before, "no CLI runs the tool call"
        self.evidence = self.strike(host)
        if before & set(host.clis()):
            self.release()

    def strike(self, host: Host) -> str:
        """Do it; return the evidence."""
        raise NotImplementedError


class CliKilled(InToolCall):
    title = "the CLI is killed in a tool call"

    def strike(self, host: Host) -> str:
        pids = host.clis()
        host.kill(pids)
        return f"killed {len(pids)} process of the CLI in item call {self.call}"


class WrapperKilled(InToolCall):
    title = "the tool itself is killed in a tool call"

    def strike(self, host: Host) -> str:
        pids = host.wrappers() or host.clis()  # some tools are a mode of the CLI itself
        host.kill(pids)
        return f"killed {len(pids)} processes of the tool in item call {self.call}"


class BothKilled(InToolCall):
    title = "the tool and the CLI are killed in a tool call"

    def strike(self, host: Host) -> str:
        pids = [*host.wrappers(), *host.clis()]
        host.kill(pids)
        return f"killed {len(pids)} processes in item call {self.call}"


class Rebooted(InToolCall):
    title = "everything is killed; only the installed services start again"

    def strike(self, host: Host) -> str:
        host.reboot()
        return f"every process was killed in item call {self.call}"


class OperatorStops(InToolCall):
    title = "the operator stops it in a tool call"
    must_stop = True

    def strike(self, host: Host) -> str:
        host.stop_as_operator()
        return f"stopped by the operator in item call {self.call}"


class StateTruncated(InToolCall):
    title = "a crash truncates the tool's state file"

    def strike(self, host: Host) -> str:
        host.kill([*host.wrappers(), *host.clis()])
        cut = ", ".join(host.truncate_state()) or "nothing"
        return f"killed everything in item call {self.call}; cut in half: {cut}"


class BackgroundLeft(Fault):
    title = "a tool call leaves a background process"

    def wrap(self, number: int, line: str) -> str:
        if number != self.call:
            return line
        left = self.signals / "left"
        program = f"echo $$ > {left}; exec sleep 100000"
        return f"setsid sh -c '{program}' </dev/null >/dev/null 2>&1 & {line}"

    def is_due(self) -> bool:
        return not self.evidence and (self.signals / "left").exists()

    def apply(self, host: Host) -> None:
        self.happened("a `sleep` of a day runs in its own session")


class DiskFull(InToolCall):
    """The disk is full from an item call on, until the model has failed to write six times."""

    title = "the disk is full for a while"
    MOST = 6

    def __init__(self, signals: Path, refusals: Refusals) -> None:
        super().__init__(signals, refusals)
        self.failed = 0
        self._free: Callable[[], None] | None = None
        self._freed_at = 0.0

    @property
    def ended_at(self) -> float:
        return self._freed_at or self.at

    def strike(self, host: Host) -> str:
        self._free = host.free_disk
        return f"{host.fill_disk()} bytes were free in item call {self.call}"

    def steer(self, asked: Asked, move: Move) -> Move:
        if self._free and asked.parts[-1].form == "result" and asked.view.errors:
            self.failed += 1
            if self.failed >= self.MOST:
                self._repair()
            if asked.view.errors > 1:
                return Say("I cannot write the files: no space left on device.")
        return move

    def is_idle(self, host: Host) -> bool:
        return self._repair()

    def _repair(self) -> bool:
        free, self._free = self._free, None
        if free:
            free()
            self._freed_at = time.monotonic()
        return bool(free)
