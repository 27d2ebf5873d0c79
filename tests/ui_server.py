"""The server of `rekindle ui` in its own process, and a server without any protection beside it."""

import contextlib
import http.client
import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from rekindle.web.page_links import PageLinks

PATIENCE = 120.0
"""Seconds to wait for a program or a page on a slow machine."""
COMMAND = (sys.executable, "-m", "rekindle", "ui")


@dataclass
class UiServer:
    """A running server of `rekindle ui`."""

    process: subprocess.Popen[str]
    project: Path
    link: str
    """The link that the server printed, which can be used once."""

    @property
    def origin(self) -> str:
        return self.link.partition("/open#")[0]

    @property
    def port(self) -> int:
        return int(self.origin.rpartition(":")[2])

    def make_link(self) -> str:
        """Return a new link, as `rekindle ui --link` does."""
        return PageLinks(self.port).make_link()

    def open_session(self, link: str = "") -> str:
        """Exchange a link for a session token."""
        body = json.dumps({"link": (link or self.make_link()).partition("#")[2]})
        answer = self.request("/api/session", body, headers=self.own_headers())
        assert answer.status == 200
        return str(json.loads(answer.body)["session"])

    def open_stream(self, session: str, *, buffer: int | None = None) -> socket.socket:
        """Open the stream of all rows without a browser."""
        client = socket.socket()
        if buffer:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer)
        client.settimeout(PATIENCE)
        client.connect(("127.0.0.1", self.port))
        lines = ["GET /api/stream HTTP/1.1", f"Host: 127.0.0.1:{self.port}"]
        lines += [f"Authorization: Bearer {session}", "", ""]
        client.sendall("\r\n".join(lines).encode())
        return client

    def own_headers(self, session: str = "") -> dict[str, str]:
        """Return the headers of a request that the server's own page sends."""
        sent = {"Origin": self.origin, "Sec-Fetch-Site": "same-origin"}
        sent["Content-Type"] = "application/json"
        return sent | ({"Authorization": f"Bearer {session}"} if session else {})

    def request(
        self, path: str, body: str | None = None, *, method: str = "", headers: dict[str, str]
    ) -> "Answer":
        """Send a request without a browser, and return the answer."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)
        with contextlib.closing(connection):
            connection.request(method or ("GET" if body is None else "POST"), path, body, headers)
            response = connection.getresponse()
            return Answer(response.status, response.read())


@dataclass(frozen=True)
class Answer:
    """An answer of a server."""

    status: int
    body: bytes


def read_until(client: socket.socket, end: bytes) -> bytes:
    """Read from a stream until a text has arrived."""
    read = bytearray()
    while end not in read[-100_000:]:
        part = client.recv(65_536)
        assert part
        read += part
    return bytes(read)


@contextlib.contextmanager
def supervise_elsewhere(project: Path) -> Iterator[None]:
    """Hold the supervisor locks of a recorded night in another process, until the block ends.

    This process cannot hold them: the commands that it starts would be those of an agent.
    """
    code = (
        "import sys, pathlib, recorded_night\n"
        "with recorded_night.keep_supervised(pathlib.Path(sys.argv[1])):\n"
        "    print('held', flush=True)\n"
        "    sys.stdin.read()\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parent)}
    argv = [sys.executable, "-c", code, str(project)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen(argv, env=environment, text=True, **pipes) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        yield
        holder.communicate()


@contextlib.contextmanager
def serve_pages(
    project: Path, *options: str, program: tuple[str, ...] = (*COMMAND, "--port", "0", "--no-open")
) -> Iterator[UiServer]:
    """Run `rekindle ui`, or another program like it, on a free port until the block ends."""
    argv = [*program, *options]
    environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
    with subprocess.Popen(
        argv, cwd=project, env=environment, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        try:
            link = process.stdout.readline().strip()
            assert "/open#" in link
            yield UiServer(process, project, link)
        finally:
            process.terminate()
            process.wait(PATIENCE)


@dataclass
class PlainServer:
    """A server that answers every request with the same page, and keeps what it is sent."""

    port: int
    page: bytes = b"<!doctype html><title>plain</title><p>plain</p>"
    headers: dict[str, str] = field(default_factory=dict)
    posts: list[bytes] = field(default_factory=list)

    @property
    def origin(self) -> str:
        return self.name_origin("127.0.0.1")

    def name_origin(self, name: str) -> str:
        return f"http://{name}:{self.port}"


@contextlib.contextmanager
def serve_plainly() -> Iterator[PlainServer]:
    """Run a server without any protection on a free port, until the block ends."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._answer()

        def do_POST(self) -> None:
            plain.posts.append(self.rfile.read(int(self.headers["Content-Length"])))
            self._answer()

        def _answer(self) -> None:
            self.send_response(200)
            kind = "text/javascript" if self.path.endswith(".js") else "text/html"
            for name, value in {"Content-Type": kind, **plain.headers}.items():
                self.send_header(name, value)
            self.end_headers()
            script = b"globalThis.loaded = true;"
            self.wfile.write(script if kind == "text/javascript" else plain.page)

        def log_message(self, *_args: object) -> None:
            """Print nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        plain = PlainServer(server.server_port)
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield plain
        finally:
            server.shutdown()
            thread.join()
