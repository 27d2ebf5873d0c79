"""An agent's process, and the JSON-RPC messages that the bridge exchanges with it.

The agent gets its own process group, so a signal to the bridge's group does not reach it before the
bridge has closed its standard input. Every agent that was tried exits at the end of its input, with
its tools. The same happens if the bridge is killed, because the kernel then closes the pipe.
"""

import contextlib
import json
import os
import queue
import signal
import subprocess
import threading
from collections.abc import Sequence
from typing import Any, BinaryIO

from rekindle.thresholds.bridge_limits import (
    ACP_CLOSE_SECONDS,
    ACP_QUEUED_MESSAGES,
    ACP_TERM_SECONDS,
)
from rekindle.thresholds.storage import JSON_LINE_BYTES

Message = dict[str, Any]
ENDED: Message = {}
"""Message that stands for the end of the agent's output."""


class AgentLink:
    """Starts an agent, and passes messages in both directions.

    Only one thread may send messages.
    """

    def __init__(self, argv: Sequence[str]) -> None:
        """Start the agent. Its standard error is the bridge's own.

        Raises:
            OSError: The program cannot be started.
        """
        self.messages: queue.SimpleQueue[Message] = queue.SimpleQueue()
        """Everything that the agent sent, in order, and finally `ENDED`."""
        self._places = threading.Semaphore(ACP_QUEUED_MESSAGES)
        self._is_closed = False
        self._popen = subprocess.Popen(  # noqa: S603 - the operator's command, no shell
            list(argv), stdin=subprocess.PIPE, stdout=subprocess.PIPE, process_group=0
        )
        self._number = 0
        threading.Thread(target=self._read, daemon=True).start()

    def take(self, seconds: float | None) -> Message:
        """Return the next message.

        Raises:
            queue.Empty: There was none in time.
        """
        message = self.messages.get(timeout=seconds)
        self._places.release()
        return message

    def request(self, method: str, params: Message) -> int:
        """Send a request, and return its number."""
        self._number += 1
        self._send({"id": self._number, "method": method, "params": params})
        return self._number

    def notify(self, method: str, params: Message) -> None:
        self._send({"method": method, "params": params})

    def answer(self, number: object, result: Message) -> None:
        self._send({"id": number, "result": result})

    def refuse(self, number: object, code: int, message: str) -> None:
        self._send({"id": number, "error": {"code": code, "message": message}})

    def _send(self, message: Message) -> None:
        line = json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n"
        pipe = self._popen.stdin
        # An agent that has exited is reported by `ENDED`.
        with contextlib.suppress(OSError, ValueError):
            if pipe is not None:
                pipe.write(line)
                pipe.flush()

    def _read(self) -> None:
        pipe: Any = self._popen.stdout
        with contextlib.suppress(OSError, ValueError), pipe:
            while line := _read_line(pipe):
                if self._is_closed:
                    continue  # an agent that cannot write does not notice the end of its input
                if message := _parse_message(line):
                    self._places.acquire()
                    self.messages.put(message)
        self.messages.put(ENDED)

    def close(self) -> int:
        """End the agent and return its exit code. First close its standard input, then signal."""
        self._is_closed = True
        self._places.release()
        with contextlib.suppress(OSError, ValueError):
            if self._popen.stdin is not None:
                self._popen.stdin.close()
        for number, seconds in (
            (signal.SIGTERM, ACP_CLOSE_SECONDS),
            (signal.SIGKILL, ACP_TERM_SECONDS),
        ):
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._popen.wait(seconds)
                break
            self._signal(number)
        # The supervisor ends what the agent left running, except for processes to keep.
        return self._popen.wait()

    def _signal(self, number: signal.Signals) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._popen.pid, number)


def _read_line(pipe: BinaryIO | Any) -> bytes:
    """Return the next line, or nothing at the end. A line that is too long is returned empty."""
    line: bytes = pipe.readline(JSON_LINE_BYTES)
    if len(line) < JSON_LINE_BYTES or line.endswith(b"\n"):
        return line
    while (rest := pipe.readline(JSON_LINE_BYTES)) and not rest.endswith(b"\n"):
        pass
    return b"\n"


def _parse_message(line: bytes) -> Message:
    """Return the message in a line. Agents also print other texts there, which are ignored."""
    try:
        message = json.loads(line)
    except (ValueError, RecursionError):
        return {}
    return message if isinstance(message, dict) else {}
