"""A git server on the loopback interface: real git behind HTTP, with counted bytes and a limit."""

import base64
import os
import subprocess
import threading
import time
from collections import deque
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Self

_PIECE = 1 << 16


class GitServer:
    """Serve the bare repositories of a folder.

    With `pushes`, at most this many pushes are accepted within `seconds`; others get 429. With
    `login` as `user:password`, all requests need it.
    """

    def __init__(
        self, folder: Path, *, pushes: int = 0, seconds: float = 60.0, login: str = ""
    ) -> None:
        self.folder, self.most, self.seconds = folder, pushes, seconds
        self.login = f"Basic {base64.b64encode(login.encode()).decode()}" if login else ""
        self.transferred = 0
        """Bytes of all requests' and answers' bodies."""
        self.accepted: list[float] = []
        self.refused = 0
        self._recent: deque[float] = deque()
        self._lock = threading.Lock()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
        self._server.git = self  # type: ignore[attr-defined]
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._thread.join(60)
        self._server.server_close()

    def add(self, count: int) -> None:
        with self._lock:
            self.transferred += count

    def may_push(self) -> bool:
        with self._lock:
            now = time.monotonic()
            while self._recent and now - self._recent[0] >= self.seconds:
                self._recent.popleft()
            if self.most and len(self._recent) >= self.most:
                self.refused += 1
                return False
            self._recent.append(now)
            self.accepted.append(now)
            return True


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self._answer()

    def do_POST(self) -> None:
        self._answer()

    def log_message(self, *_: Any) -> None:
        """Print nothing."""

    def _answer(self) -> None:
        server: GitServer = self.server.git  # type: ignore[attr-defined]
        body = self._read_body()
        server.add(len(body))
        if server.login and self.headers.get("Authorization") != server.login:
            self.send_response(HTTPStatus.UNAUTHORIZED)
            self.send_header("WWW-Authenticate", 'Basic realm="git"')
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        path, _, query = self.path.partition("?")
        # A client first asks for the refs. A server limits pushes there, before any data is sent.
        if query == "service=git-receive-pack" and not server.may_push():
            self.send_response(HTTPStatus.TOO_MANY_REQUESTS)
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        environment = {
            **{key: os.environ[key] for key in ("PATH", "HOME") if key in os.environ},
            "GIT_PROJECT_ROOT": str(server.folder),
            "GIT_HTTP_EXPORT_ALL": "1",
            "REMOTE_USER": "someone",
            "REMOTE_ADDR": "127.0.0.1",
            "REQUEST_METHOD": self.command,
            "PATH_INFO": path,
            "QUERY_STRING": query,
            "CONTENT_TYPE": self.headers.get("Content-Type", ""),
            "HTTP_CONTENT_ENCODING": self.headers.get("Content-Encoding", ""),
            "GIT_PROTOCOL": self.headers.get("Git-Protocol", ""),
        }
        with subprocess.Popen(
            ["git", "http-backend"],
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        ) as backend:
            assert backend.stdin is not None
            assert backend.stdout is not None
            feeding = threading.Thread(target=_feed, args=(backend.stdin, body))
            feeding.start()
            self._send(backend.stdout, server)
            feeding.join()

    def _send(self, output: Any, server: GitServer) -> None:
        status, headers = 200, []
        while line := output.readline().strip():
            name, _, value = line.decode().partition(": ")
            if name == "Status":
                status = int(value.split()[0])
            else:
                headers.append((name, value))
        self.send_response(status)
        for name, value in headers:
            self.send_header(name, value)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        while piece := output.read(_PIECE):
            server.add(len(piece))
            self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))
        self.wfile.write(b"0\r\n\r\n")

    def _read_body(self) -> bytes:
        if self.headers.get("Transfer-Encoding") != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length") or 0))
        pieces = []
        while size := int(self.rfile.readline().split(b";")[0], 16):
            pieces.append(self.rfile.read(size))
            self.rfile.readline()
        self.rfile.readline()
        return b"".join(pieces)


def _feed(pipe: Any, body: bytes) -> None:
    try:
        pipe.write(body)
        pipe.close()
    except BrokenPipeError:
        pass
