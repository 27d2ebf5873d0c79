"""Serve the Model Context Protocol on standard input and output.

`initialize` and the lists are answered at once. The rest of Rekindle is imported on the first call
of a tool. Each call runs in its own thread, so a question that waits for a person does not block
the other tools.
"""

import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any, BinaryIO

from rekindle.mcp import messages
from rekindle.mcp.messages import ProtocolError
from rekindle.mcp.tool_table import RESOURCES, TOOLS, Tool, to_short
from rekindle.thresholds.proposal_limits import CALLS_AT_ONCE, CALLS_END_SECONDS, MESSAGE_BYTES

RunTool = Callable[[str, dict[str, Any], threading.Event], messages.Message]
"""Runs a tool by name. The event is set if the CLI no longer waits for the result."""


class Server:
    """Answers the messages of one CLI."""

    def __init__(self, send: Callable[[bytes], None], run_tool: RunTool) -> None:
        self._send_line, self._run_tool = send, run_tool
        self._lock = threading.Lock()
        self._running: dict[str | int, threading.Event] = {}
        self._threads: list[threading.Thread] = []
        self._is_closing = False

    def take(self, line: bytes) -> None:
        """Answer a message, now or from another thread."""
        identity = None
        try:
            message = messages.parse(line)
            identity = messages.find_id(message)
            if "result" in message or "error" in message:
                return  # This server sends no requests, so it does not expect a response.
            method, params = messages.find_method(message), messages.read_params(message)
            if identity is None:
                self._take_notification(method, params)
            else:
                self._answer(identity, method, params)
        except ProtocolError as error:
            self._send(messages.render_error(identity, error))

    def close(self) -> None:
        """End waiting calls, and let the others finish."""
        with self._lock:
            self._is_closing = True
            for cancelled in self._running.values():
                cancelled.set()
        deadline = time.monotonic() + CALLS_END_SECONDS
        for thread in self._threads:
            thread.join(max(0.0, deadline - time.monotonic()))

    def _take_notification(self, method: str, params: dict[str, Any]) -> None:
        if method == "notifications/cancelled":
            request = params.get("requestId")
            with self._lock:
                cancelled = self._running.get(request) if isinstance(request, str | int) else None
            if cancelled is not None:
                cancelled.set()

    def _answer(self, identity: str | int, method: str, params: dict[str, Any]) -> None:
        result = messages.answer_directly(method, params)
        if result is not None:
            self._send(messages.render_result(identity, result))
        elif method == "tools/call":
            self._start(identity, _find_tool(params), params.get("arguments", {}))
        elif method == "resources/read":
            uri = _find_uri(params)
            self._start(identity, TOOLS[uri.rpartition("/")[2]], {}, uri)
        else:
            raise ProtocolError(messages.METHOD_NOT_FOUND, f"unknown method {to_short(method)!r}")

    def _start(self, identity: str | int, tool: Tool, arguments: Any, uri: str = "") -> None:
        """Start a call in its own thread, unless its arguments are wrong."""
        if fault := tool.find_fault(arguments):
            text = f"{tool.name}: {fault}"
            result = messages.make_text_result(text, is_error=True)
            self._send(messages.render_result(identity, result))
            return
        cancelled = threading.Event()
        with self._lock:
            if identity in self._running:
                raise ProtocolError(
                    messages.INVALID_REQUEST, "a call with this id is running; use another id"
                )
            if len(self._running) >= CALLS_AT_ONCE:
                raise ProtocolError(
                    messages.INVALID_REQUEST,
                    f"{len(self._running)} calls are running; wait for them, then call again",
                )
            self._running[identity] = cancelled
        thread = threading.Thread(
            target=self._run, args=(identity, tool.name, arguments, cancelled, uri), daemon=True
        )
        self._threads = [one for one in self._threads if one.is_alive()] + [thread]
        thread.start()

    def _run(
        self,
        identity: str | int,
        tool: str,
        arguments: dict[str, Any],
        cancelled: threading.Event,
        uri: str,
    ) -> None:
        try:
            result = self._run_tool(tool, arguments, cancelled)
        except Exception as error:  # noqa: BLE001 - a bug must not leave the CLI waiting
            sys.stderr.write(f"rekindle mcp: {tool}: {type(error).__name__}\n")
            result = messages.make_text_result(f"{tool}: a bug in Rekindle", is_error=True)
        finally:
            with self._lock:
                del self._running[identity]
        if self._is_closing or not cancelled.is_set():
            self._send(_render_outcome(identity, result, uri))

    def _send(self, line: bytes) -> None:
        with self._lock:
            self._send_line(line)


def serve() -> None:
    """Serve on standard input and output until the CLI closes the input."""
    output = os.dup(1)
    os.dup2(2, 1)  # Anything that is printed by mistake must not end up between messages.
    server = Server(lambda line: _write_all(output, line), _run_lazily)
    with suppress(BrokenPipeError, KeyboardInterrupt):
        for line in read_messages(sys.stdin.buffer):
            server.take(line)
    with suppress(BrokenPipeError, KeyboardInterrupt):
        server.close()


def read_messages(stream: BinaryIO) -> Iterator[bytes]:
    """Yield the lines that are not blank. A line that is too long is yielded as an empty one."""
    while line := stream.readline(MESSAGE_BYTES):
        if len(line) == MESSAGE_BYTES and not line.endswith(b"\n"):
            while (rest := stream.readline(MESSAGE_BYTES)) and not rest.endswith(b"\n"):
                pass
            yield b""
        elif line.strip():
            yield line


def _run_lazily(
    tool: str, arguments: dict[str, Any], cancelled: threading.Event
) -> messages.Message:
    from rekindle.mcp.run_tools import run_tool  # noqa: PLC0415 - `initialize` must not wait for it

    return run_tool(tool, arguments, cancelled)


def _find_tool(params: dict[str, Any]) -> Tool:
    name = params.get("name")
    tool = TOOLS.get(name) if isinstance(name, str) else None
    if tool is None:
        raise ProtocolError(
            messages.INVALID_PARAMS, f"unknown tool; the tools are {', '.join(TOOLS)}"
        )
    return tool


def _find_uri(params: dict[str, Any]) -> str:
    uri = params.get("uri")
    if not isinstance(uri, str) or uri not in {resource["uri"] for resource in RESOURCES}:
        raise ProtocolError(messages.RESOURCE_NOT_FOUND, "there is no such resource")
    return uri


def _render_outcome(identity: str | int, result: messages.Message, uri: str) -> bytes:
    """Render the response to a call, or to the reading of a resource if there is a URI."""
    text = result["content"][0]["text"]
    if not uri:
        return messages.render_result(identity, result)
    if result["isError"]:
        return messages.render_error(identity, ProtocolError(messages.INTERNAL_ERROR, text))
    return messages.render_result(identity, {"contents": [{"uri": uri, "text": text}]})


def _write_all(descriptor: int, line: bytes) -> None:
    while line:
        line = line[os.write(descriptor, line) :]
