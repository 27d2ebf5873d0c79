"""A sandbox's proxy that is also a gateway: it adds keys which the sandbox does not contain.

    python -P -m rekindle.system.sandbox.key_gateway DESCRIPTOR HOST:PORT...

It works like `egress_proxy`. The first line on standard input has the keys, and describes how to
renew them. A request to the gateway is a plain one for `/HOST/PATH`, which the gateway sends to
HOST over TLS. An answer passes unchanged, in the pieces in which it arrives. If it redirects to
another host, the sandbox has to follow it on its own, without the key.
"""

import os
import re
import select
import signal
import socket
import ssl
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime

import msgspec

from rekindle.documents.launches.launch_credentials import (
    LaunchCredentials,
    ModelKey,
    parse_credentials,
)
from rekindle.errors import CredentialsError
from rekindle.policy.sandbox import gateway_requests
from rekindle.policy.sandbox.gateway_access import add_port
from rekindle.policy.sandbox.gateway_requests import RefusedRequest
from rekindle.system import credential_program
from rekindle.system.processes import launch_processes
from rekindle.system.sandbox.egress_proxy import (
    CONNECT_SECONDS,
    HEAD_BYTES,
    PIECE_BYTES,
    Proxy,
    answer,
    connect,
    exit_with_supervisor,
    read_head,
    receive_listener,
    serve_all,
)
from rekindle.system.sandbox.gateway_setup import GatewaySetup, unpack_environment
from rekindle.thresholds.credential_limits import (
    GATEWAY_DRAIN_PIECES,
    GATEWAY_DRAIN_SECONDS,
    GATEWAY_IDLE_SECONDS,
    GATEWAY_LINE_BYTES,
    KEY_REFRESH_SECONDS,
    KEY_REFRESH_SHARE,
    KEY_RETRY_SECONDS,
)

_END = b"\r\n"
_SWITCHING, _FIRST_FINAL = 101, 200


class KeyRing:
    """A launch's keys, which the helper renews before they expire.

    While a key is valid, no request waits for the helper, which may hang.
    """

    def __init__(
        self, setup: GatewaySetup, now: Callable[[], datetime] = lambda: datetime.now(UTC)
    ) -> None:
        self._setup, self._now = setup, now
        self.hosts = frozenset(setup.keys)
        self._lock = threading.Lock()
        self._keys, self._expires = setup.keys, setup.expires
        self._due = self._find_due()
        self._renewal: threading.Thread | None = None

    def find(self, host: str) -> ModelKey | None:
        """Return the key for a host, or None if it has expired and the helper gives no other."""
        with self._lock:
            if self._renewal is None and self._due is not None and self._now() >= self._due:
                self._renewal = threading.Thread(target=self._renew, daemon=True)
                self._renewal.start()
            if self._is_valid():
                return self._keys.get(host)
        self.wait()
        with self._lock:
            return self._keys.get(host) if self._is_valid() else None

    def wait(self) -> None:
        """Wait until the helper has answered, if it is running."""
        with self._lock:
            renewal = self._renewal
        if renewal is not None:
            renewal.join()

    def _is_valid(self) -> bool:
        return self._expires is None or self._now() < self._expires

    def _renew(self) -> None:
        renewed = None
        try:
            renewed = self._ask_helper()
        except CredentialsError as error:
            sys.stderr.write(f"the keys were not renewed: {error}\n")
        finally:
            with self._lock:
                self._renewal = None
                if renewed is None:
                    retry = self._now().timestamp() + KEY_RETRY_SECONDS
                    self._due = datetime.fromtimestamp(retry, UTC)
                else:
                    self._keys, self._expires = renewed.keys, renewed.expires
                    self._due = self._find_due()

    def _ask_helper(self) -> LaunchCredentials:
        """Return new keys.

        Raises:
            CredentialsError: The helper failed, or does not print all keys.
        """
        setup = self._setup
        output = credential_program.run_helper(
            setup.program, setup.request.encode(), unpack_environment(setup.environment)
        )
        renewed = parse_credentials(output, setup.program, self._now())
        if not self.hosts <= renewed.keys.keys():
            raise CredentialsError(setup.program, "printed no key for some hosts")
        return renewed

    def _find_due(self) -> datetime | None:
        if self._expires is None:
            return None
        life = (self._expires - self._now()).total_seconds()
        before = min(KEY_REFRESH_SECONDS, life * KEY_REFRESH_SHARE)
        return datetime.fromtimestamp(self._expires.timestamp() - before, UTC)


class KeyGateway(Proxy):
    def __init__(self, allowed: list[str], ring: KeyRing) -> None:
        super().__init__(allowed)
        self._ring = ring
        self._tls = ssl.create_default_context()
        self._tls.set_alpn_protocols(["http/1.1"])

    def serve(self, client: socket.socket) -> None:
        with client:
            client.settimeout(GATEWAY_IDLE_SECONDS)
            head, rest = read_head(client)
            if re.match(rb"[^ ]* /", head):
                self._serve_gateway(client, head, rest)
                _drain(client)
            elif head:
                client.settimeout(None)
                self.serve_head(client, head, rest)

    def _serve_gateway(self, client: socket.socket, head: bytes, rest: bytes) -> None:
        request = gateway_requests.parse_request(head, self._ring.hosts)
        if isinstance(request, RefusedRequest):
            answer(client, request.status, f"{request.words}\n")
            return
        key = self._ring.find(request.host)
        if key is None:
            words = "the credential helper of this host does not renew the key\n"
            answer(client, "503 Service Unavailable", words)
            return
        try:
            server = self._open(request.host)
        except PermissionError:
            answer(client, "403 Forbidden", f"{request.host} leads to this host or its link\n")
            return
        except ssl.SSLError as error:
            words = f"{request.host} has no valid certificate: {error.reason}\n"
            answer(client, "502 Bad Gateway", words)
            return
        except OSError:
            answer(client, "502 Bad Gateway", f"{request.host} cannot be reached\n")
            return
        with server:
            if request.expects:
                client.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")
            sent = gateway_requests.render_request(request, key)
            _exchange(client, server, sent, rest, request.length)

    def _open(self, host: str) -> ssl.SSLSocket:
        """Connect to a host, and check its certificate.

        Raises:
            PermissionError: The name resolves only to addresses that are not permitted.
            ssl.SSLError: The certificate is not valid for the host.
            OSError: The host cannot be reached.
        """
        plain = connect(add_port(host))
        try:
            plain.settimeout(CONNECT_SECONDS)
            server = self._tls.wrap_socket(plain, server_hostname=host.partition(":")[0])
        except BaseException:
            plain.close()
            raise
        server.settimeout(None)
        return server


class _UnclearBodyError(Exception):
    """Raised when a request's body is not well-formed."""


class _RequestBody:
    """Sends exactly the request's body, whatever else the sandbox sends after it.

    A host may answer before it has read everything, for example with an error. The rest of the body
    is then not sent.
    """

    def __init__(self, client: socket.socket, server: ssl.SSLSocket, rest: bytes) -> None:
        self._client, self._server, self._rest = client, server, rest
        self.answer = b""
        """Beginning of an early answer; empty if there is none."""

    def send(self, length: int | None) -> None:
        if length is None:
            self._send_chunks()
        else:
            self._send_bytes(length)

    def _send_bytes(self, count: int) -> bool:
        """Send a part of the body. Return False if the host has answered before its end."""
        while count:
            piece = self._rest[:count] or self._receive(min(count, PIECE_BYTES))
            self._rest = self._rest[len(piece) :]
            if not self._write(piece):
                return False
            count -= len(piece)
        return True

    def _send_chunks(self) -> None:
        while True:
            size = gateway_requests.parse_chunk_size(self._read_line())
            if size is None:
                raise _UnclearBodyError
            if not size:
                break
            self._write(f"{size:x}\r\n".encode())
            if not self._send_bytes(size):
                return
            if self._read_line() != _END:
                raise _UnclearBodyError
            self._write(_END)
        while self._read_line() != _END:
            pass  # trailers could contain a credential
        self._write(b"0\r\n\r\n")

    def _write(self, piece: bytes) -> bool:
        if not self.answer and select.select([self._server], [], [], 0)[0]:
            self._server.settimeout(0)
            try:
                self.answer = self._server.recv(PIECE_BYTES)
            except ssl.SSLWantReadError:
                pass  # a part of the handshake
            finally:
                self._server.settimeout(GATEWAY_IDLE_SECONDS)
        if not self.answer:
            self._server.sendall(piece)
        return not self.answer

    def _read_line(self) -> bytes:
        while b"\n" not in self._rest:
            if len(self._rest) > GATEWAY_LINE_BYTES:
                raise _UnclearBodyError
            self._rest += self._receive(PIECE_BYTES)
        line, end, self._rest = self._rest.partition(b"\n")
        return line + end

    def _receive(self, count: int) -> bytes:
        piece = self._client.recv(count)
        if not piece:
            raise _UnclearBodyError
        return piece


def _exchange(
    client: socket.socket, server: ssl.SSLSocket, head: bytes, rest: bytes, length: int | None
) -> None:
    """Send a request to its host, and the host's answer to the sandbox."""
    body = _RequestBody(client, server, rest)
    server.settimeout(GATEWAY_IDLE_SECONDS)
    try:
        server.sendall(head)
        body.send(length)
    except _UnclearBodyError:
        answer(client, "400 Bad Request", "the body of the request is not complete\n")
        return
    except TimeoutError:
        answer(client, "408 Request Timeout", "the request took too long\n")
        return
    except OSError:
        pass  # the host may have answered before it closed the connection
    for end in (client, server):
        end.settimeout(None)
    head, rest = _read_answer(server, client, body.answer)
    if not head:
        answer(client, "502 Bad Gateway", "the host gave no answer\n")
        return
    client.sendall(gateway_requests.rewrite_answer(head) + rest)
    while _wait_for_answer(server, client) and (piece := server.recv(PIECE_BYTES)):
        client.sendall(piece)


def _read_answer(server: ssl.SSLSocket, client: socket.socket, data: bytes) -> tuple[bytes, bytes]:
    """Return the header of the final answer, or an empty one, and the bytes read after it."""
    while True:
        while b"\r\n\r\n" not in data:
            if len(data) > HEAD_BYTES or not _wait_for_answer(server, client):
                return b"", b""
            piece = server.recv(PIECE_BYTES)
            if not piece:
                return b"", b""
            data += piece
        head, end, data = data.partition(b"\r\n\r\n")
        status = gateway_requests.parse_status(head)
        if status in {0, _SWITCHING}:
            return b"", b""
        if status >= _FIRST_FINAL:
            return head + end, data


def _wait_for_answer(server: ssl.SSLSocket, client: socket.socket) -> bool:
    """Wait for the next piece. Return False if the sandbox has closed the connection.

    Its host then stops working on an answer that is not read any more.
    """
    while not server.pending():
        ready, _, _ = select.select([server, client], [], [])
        if server in ready:
            return True
        if not client.recv(PIECE_BYTES):
            return False
    return True


def _drain(client: socket.socket) -> None:
    """Read the rest of a refused request, because closing earlier would discard the answer."""
    client.shutdown(socket.SHUT_WR)
    client.settimeout(GATEWAY_DRAIN_SECONDS)
    for _ in range(GATEWAY_DRAIN_PIECES):
        if not client.recv(PIECE_BYTES):
            return


def read_setup(number: int) -> GatewaySetup:
    """Return the setup from the first line of a pipe, without reading more."""
    data = bytearray()
    while (piece := os.read(number, 1)) not in {b"", b"\n"}:
        data += piece
    return msgspec.json.decode(bytes(data), type=GatewaySetup)


def _end_helper() -> None:
    """End the helper with all its processes, if it is running, and start no other one."""
    launch_processes.START_LOCK.acquire()
    for pid in tuple(launch_processes.UNRELATED_CHILDREN):
        with suppress(ProcessLookupError):
            os.killpg(pid, signal.SIGKILL)


def main(arguments: list[str]) -> None:
    setup = read_setup(0)
    threading.Thread(target=exit_with_supervisor, args=(_end_helper,), daemon=True).start()
    gateway = KeyGateway(arguments[1:], KeyRing(setup))
    serve_all(gateway, receive_listener(socket.socket(fileno=int(arguments[0]))))


if __name__ == "__main__":
    main(sys.argv[1:])
