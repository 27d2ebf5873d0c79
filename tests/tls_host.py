"""A host with a certificate, which records the requests that it gets and answers as a test says."""

import contextlib
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

from fleet.gateway import Authority

Answer = Callable[[ssl.SSLSocket, bytes], None]
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


def make_tls(folder: Path, name: str = "127.0.0.1") -> tuple[ssl.SSLContext, Path]:
    """Return a server's settings, and the file of the authority that vouches for them."""
    authority = Authority(folder, "authority")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*authority.issue(name))
    return context, authority.ca


def say(data: bytes) -> Answer:
    return lambda connection, _: connection.sendall(data)


class TlsHost:
    def __init__(self, listener: socket.socket, tls: ssl.SSLContext) -> None:
        self.address = "{}:{}".format(*listener.getsockname())
        self.requests: list[bytes] = []
        """Everything that the clients have sent, one entry for each connection."""
        self.answer: Answer = say(OK)
        self._listener, self._tls = listener, tls
        self._threads = [threading.Thread(target=self._accept)]
        self._threads[0].start()

    def _accept(self) -> None:
        while True:
            try:
                plain, _ = self._listener.accept()
            except OSError:
                return
            self._threads.append(threading.Thread(target=self._serve, args=(plain,)))
            self._threads[-1].start()

    def _serve(self, plain: socket.socket) -> None:
        plain.settimeout(30)
        with contextlib.suppress(OSError), self._tls.wrap_socket(plain, server_side=True) as client:
            head = b""
            while b"\r\n\r\n" not in head:
                piece = client.recv(65536)
                if not piece:
                    return
                head += piece
            number = len(self.requests)
            self.requests.append(head)
            self.answer(client, head)
            with contextlib.suppress(OSError):
                client.unwrap()
            assert number < len(self.requests)
        plain.close()

    def close(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for thread in self._threads:
            thread.join(30)


@contextlib.contextmanager
def serve_tls(folder: Path, name: str = "127.0.0.1") -> Iterator[tuple[TlsHost, Path]]:
    tls, ca = make_tls(folder, name)
    host = TlsHost(socket.create_server(("127.0.0.1", 0)), tls)
    try:
        yield host, ca
    finally:
        host.close()
