"""HTTP, and the ways in which an answer can break off."""

import contextlib
import json
import socket
import sys
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final, Self

_SECRET: Final = frozenset({"x-api-key", "authorization", "x-goog-api-key", "cookie"})


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer on the wire: one document, or the pieces of a stream."""

    chunks: list[bytes]
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    stream: bool = False

    @classmethod
    def json(cls, body: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Self:
        """One document."""
        return cls([json.dumps(body).encode()], status, headers or {})


class Client(BaseHTTPRequestHandler):
    """One connection; it is kept for as many requests as the other side likes."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # or every small piece would wait for the last one's receipt
    server: "Server"

    def send(self, reply: Reply, pause: Callable[[], object] = lambda: None) -> None:
        """Send all of it, with a pause before every piece."""
        self._head(reply)
        for chunk in reply.chunks:
            pause()
            self._write(reply, chunk)
        if reply.stream:
            self._write(reply, b"")  # the end of a chunked body

    def send_half(self, reply: Reply) -> None:
        """Send the first half, and drop the connection."""
        self._head(reply)
        half = reply.chunks[: len(reply.chunks) // 2]
        for chunk in half or [reply.chunks[0][: len(reply.chunks[0]) // 2]]:
            self._write(reply, chunk)
        self.drop()

    def drop(self) -> None:
        """Leave the other side without another word."""
        self.close_connection = True
        _hang_up(self.connection)

    def _head(self, reply: Reply) -> None:
        self.send_response(reply.status)
        for name, value in reply.headers.items():
            self.send_header(name, value)
        if reply.stream:
            self.send_header("content-type", "text/event-stream")
            self.send_header("transfer-encoding", "chunked")
        else:
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(sum(map(len, reply.chunks))))
        self.end_headers()

    def _write(self, reply: Reply, chunk: bytes) -> None:
        if self.command != "HEAD":
            framed = b"%x\r\n%s\r\n" % (len(chunk), chunk)
            self.wfile.write(framed if reply.stream else chunk)

    def _serve(self) -> None:
        body = self._body()
        headers = {name.lower(): value for name, value in self.headers.items()}
        kept = {name: value for name, value in headers.items() if name not in _SECRET}
        self.server.secrets.append(headers.items() - kept.items())
        self.server.exchange(self, self.command, self.path, kept, body)

    do_HEAD = do_GET = do_POST = do_PUT = do_DELETE = _serve  # noqa: N815

    def _body(self) -> Any:
        size = int(self.headers.get("content-length", 0))
        raw = self.rfile.read(size)
        if len(raw) < size:  # a program that is killed may leave half a request
            raise ConnectionAbortedError(f"{len(raw)} of {size} bytes")
        return json.loads(raw) if raw else None

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        """Say nothing: the log of requests is elsewhere."""


Exchange = Callable[[Client, str, str, Mapping[str, str], Any], None]


class Server(ThreadingHTTPServer):
    """Serves a socket that is listening already, one thread for each connection."""

    daemon_threads = False  # they are joined, so that no thread outlives its test

    def __init__(self, listener: socket.socket, exchange: Exchange) -> None:
        super().__init__(listener.getsockname(), Client, bind_and_activate=False)
        self.socket.close()  # the one that was made here would be in this process's own network
        self.socket = listener
        self.exchange = exchange
        self.errors: list[Exception] = []
        self.secrets: list[set[tuple[str, str]]] = []
        """Credentials of the requests, which are not in the log."""
        self._open: set[socket.socket] = set()
        self._guard = threading.Lock()
        self._accepting = threading.Thread(target=self.serve_forever, args=(0.02,))
        self._accepting.start()

    def stop(self) -> None:
        """Drop all connections, end all threads, and tell what went wrong in them."""
        self.shutdown()
        self._accepting.join()
        with self._guard:
            for connection in self._open:
                _hang_up(connection)
        self.server_close()
        if self.errors:
            raise ExceptionGroup("the loopback model failed", self.errors)

    def process_request(self, request: Any, client_address: Any) -> None:
        with self._guard:
            self._open.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        with self._guard:
            self._open.discard(request)
        super().shutdown_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        error = sys.exception()
        # A program under test that was killed, or has heard enough, just hangs up.
        if isinstance(error, Exception) and not isinstance(error, ConnectionError):
            self.errors.append(error)


def _hang_up(connection: socket.socket) -> None:
    with contextlib.suppress(OSError):  # the other side may have been first
        connection.shutdown(socket.SHUT_RDWR)
