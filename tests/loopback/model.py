"""The model behind an agent CLI, scripted by the test: an HTTP server that tells what it was asked.

    model = Model(Anthropic(), namespace.listener)
    model.play(ToolCall("Bash", {"command": "echo hi"}), Text("all done"))
    ...                                       # run the CLI against it
    assert model.log.main[1].results[0].text == "hi"

The server knows HTTP, and how an answer fails: late, in pieces, or not at all. How a step looks on
the wire, and which requests belong to the main conversation, is the dialect's to know. All others
(titles, summaries, sub-agents) consume none of its steps; a kind of them can have its own script.
"""

import functools
import socket
import threading
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, Protocol, Self

from loopback.log import MAIN, Log, Part, Request
from loopback.script import Answer, Cut, Fail, Forever, Hang, Script, Slow, Step
from loopback.wire import Client, Reply, Server


class Dialect(Protocol):
    """One API: the meaning of its requests, and the form of its answers."""

    def classify(self, method: str, path: str, headers: Mapping[str, str], body: Any) -> str:
        """Return `MAIN`, or the name of a side request."""

    def parts(self, body: Any) -> Iterable[Part]:
        """Return the parts of a request to the model."""

    def unscripted(self, kind: str, body: Any) -> Step | None:
        """Return the answer without a script; None if the request is not for a model."""

    def plain(self, request: Request) -> Reply:
        """Return the answer to a request that is not for a model."""

    def say(self, request: Request, answer: Answer) -> Reply:
        """Return the answer in the form that the request asked for."""

    def fail(self, request: Request, fail: Fail) -> Reply:
        """Return the error."""


class Model:
    """A server on a listening socket, with its script and the log of its requests."""

    def __init__(self, dialect: Dialect, listener: socket.socket) -> None:
        self.log = Log()
        self.headers: dict[str, str] = {}
        """Headers of every answer, such as those about the quota."""
        self.url = "http://{}:{}".format(*listener.getsockname())
        self._dialect = dialect
        self._scripts: dict[str, Script] = {}
        self._hangs: list[Hang] = []
        self._closing = threading.Event()
        self._server = Server(listener, self._exchange)

    @property
    def secrets(self) -> set[tuple[str, str]]:
        """Return all headers with credentials that the requests had."""
        return set().union(*self._server.secrets)

    def play(self, *steps: Step | Forever, to: str = MAIN) -> Script:
        """Answer the main conversation, or side requests of a kind, with these steps."""
        script = self._scripts[to] = Script(*steps)
        return script

    def close(self) -> None:
        """Drop the requests that still wait for an answer, and stop."""
        self._closing.set()
        for hang in self._hangs:
            hang.release.set()
        self._server.stop()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def _exchange(
        self, client: Client, method: str, path: str, headers: Mapping[str, str], body: Any
    ) -> None:
        kind = self._dialect.classify(method, path, headers, body)
        parts = tuple(self._dialect.parts(body))

        def received(number: int) -> Request:
            script = self._scripts.get(kind, Script())
            place, step = script.take() or (None, self._dialect.unscripted(kind, body))
            if isinstance(step, Hang):
                self._hangs.append(step)
                if self._closing.is_set():  # and the list may have been read already
                    step.release.set()
            return Request(number, method, path, headers, body, parts, kind, step, place)

        request = self.log.append(received)
        self._answer(request, request.step, client)

    def _answer(self, request: Request, step: Step | None, client: Client) -> None:
        match step:
            case Hang():
                step.release.wait()
                self._answer(request, step.answer, client)
            case _ if self._closing.is_set():
                client.drop()
            case None:
                client.send(self._dialect.plain(request))
            case Fail():
                client.send(self._dialect.fail(request, step))
            case Cut():
                client.send_half(self._dialect.say(request, step.answer))
            case Slow():
                # A pause ends when the server does: no thread outlives its test.
                pause = functools.partial(self._closing.wait, step.seconds)
                client.send(self._dialect.say(request, step.answer), pause)
            case _:
                reply = self._dialect.say(request, step)
                client.send(replace(reply, headers={**reply.headers, **self.headers}))
