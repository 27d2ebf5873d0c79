"""A proxy that lets a sandbox reach only the hosts that its agent may use.

    python -I -S egress_proxy.py DESCRIPTOR HOST:PORT...

It runs outside the sandbox, once per launch. `sandbox_entry` passes it a listening socket from the
sandbox's network over the socket DESCRIPTOR. It serves CONNECT and plain HTTP, prints each refused
host once, and exits when its standard input is closed, which happens when the supervisor exits. It
starts before each launch, so it imports no other part of Rekindle.
"""

import os
import socket
import sys
import threading
from collections.abc import Callable, Iterable

ANY_HOST = "*"
HEAD_BYTES = 64 * 1024
CONNECT_SECONDS = 30.0
PIECE_BYTES = 64 * 1024
REPORTED_HOSTS = 100
CONNECTIONS = 256
NAME_CHARACTERS = 253
_DROPPED = (b"host:", b"connection:", b"proxy-connection:", b"proxy-authorization:")
_LAST_PORT = 65535
_EMBEDDED = (bytes(10) + b"\xff\xff", bytes(12), b"\x00\x64\xff\x9b" + bytes(8))
"""Prefixes of IPv6 addresses that contain an IPv4 address."""
_LOOPBACK, _LOOPBACK_4 = f"{1:0128b}", f"{127:08b}"
_REFUSED_4 = (f"{0:08b}", f"{169:08b}{254:08b}", "111", f"{0x646464C8:032b}")
"""Bit prefixes that a host name must not resolve to: this host, link-local, multicast, and a
cloud's credential service.
"""
_REFUSED = (
    *("1111111010", "11111111", f"{0x2002:016b}"),
    f"{0xFD000EC2_00000000_00000000_00000254:0128b}",
    f"{0xFD2000CE_00000000_00000000_00000254:0128b}",
)
"""The same for IPv6: link-local, multicast, tunnels to IPv4, and clouds' credential services."""


class Proxy:
    def __init__(self, allowed: Iterable[str]) -> None:
        self._allowed = frozenset(allowed)
        self._reported: set[str] = set()
        self._lock = threading.Lock()

    def serve(self, client: socket.socket) -> None:
        """Serve one connection from the sandbox."""
        with client:
            self.serve_head(client, *read_head(client))

    def serve_head(self, client: socket.socket, head: bytes, rest: bytes) -> None:
        """Serve a request whose header was read."""
        method, target, _ = (*head.split(b"\r\n", 1)[0].split(b" ", 2), b"", b"")[:3]
        host, path = parse_target(method, target)
        is_named = host in self._allowed
        if not is_named and (not host or ANY_HOST not in self._allowed):
            self._refuse(client, host)
            return
        try:
            server = connect(host, is_named=is_named)
        except PermissionError:
            words = f"{host} is allowed, but leads to this host or its link\n"
            answer(client, "403 Forbidden", words)
            return
        except OSError:
            answer(client, "502 Bad Gateway", f"{host} cannot be reached\n")
            return
        with server:
            server.settimeout(None)
            if method == b"CONNECT":
                client.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
            else:
                rest = rewrite_head(method, path, head, host) + rest
            server.sendall(rest)
            relay(client, server)

    def _refuse(self, client: socket.socket, host: str) -> None:
        with self._lock:
            is_new = host not in self._reported and len(self._reported) < REPORTED_HOSTS
            self._reported.add(host)
        if is_new and host:
            os.write(1, f"{host}\n".encode("ascii", "replace"))
        answer(client, "403 Forbidden", f"the sandbox of this agent does not allow {host}\n")


def read_head(client: socket.socket) -> tuple[bytes, bytes]:
    """Return a request's header, including the empty line, and the bytes read after it."""
    data = b""
    while b"\r\n\r\n" not in data and len(data) < HEAD_BYTES:
        piece = client.recv(PIECE_BYTES)
        if not piece:
            break
        data += piece
    head, end, rest = data.partition(b"\r\n\r\n")
    return head + end, rest


def parse_target(method: bytes, target: bytes) -> tuple[str, bytes]:
    """Return a request's host as `name:port` (empty if unclear), and the path on that host."""
    text = target.decode("ascii", "replace")
    if method == b"CONNECT":
        place, path = text, ""
    else:
        scheme, _, rest = text.partition("://")
        place, _, path = rest.partition("/")
        if scheme.lower() != "http" or "@" in place:
            return "", b""
    name, _, port = place.rpartition(":") if ":" in place else (place, "", "80")
    name = name.removesuffix(".").lower()  # a final dot does not change the host
    is_clear = (
        name.replace("-", "").replace(".", "").isalnum()
        and len(name) <= NAME_CHARACTERS
        and not name.endswith(".")
        and port.isdecimal()
        and 0 < int(port) <= _LAST_PORT
    )
    return (f"{name}:{int(port)}" if is_clear else ""), f"/{path}".encode()


def connect(host: str, *, is_named: bool = True) -> socket.socket:
    """Connect to the first address of a host that answers.

    If the operator did not name the host, not even its address may lead to this host or its link.

    Raises:
        PermissionError: The name resolves only to addresses that are not permitted.
        OSError: The host cannot be reached.
    """
    name, _, port = host.rpartition(":")
    known = name if is_named else ""
    found = socket.getaddrinfo(name, int(port), type=socket.SOCK_STREAM)
    permitted = [entry for entry in found if is_permitted_address(known, str(entry[4][0]))]
    if not permitted:
        raise PermissionError(host)
    error = OSError(host)
    for family, kind, protocol, _, address in permitted:
        server = socket.socket(family, kind, protocol)
        try:
            server.settimeout(CONNECT_SECONDS)
            server.connect(address)
        except OSError as failed:
            server.close()
            error = failed
        else:
            return server
    raise error


def is_permitted_address(name: str, address: str) -> bool:
    """Return whether a host name that the operator allowed may resolve to this address.

    The owner of a domain could point it to a service on this host, or to one that hands out this
    host's credentials. The operator must allow those as `localhost` or by address.
    """
    if name == address:
        return True
    try:
        packed = _EMBEDDED[0] + socket.inet_pton(socket.AF_INET, address)
    except OSError:
        packed = socket.inet_pton(socket.AF_INET6, address.partition("%")[0])
    bits = "".join(f"{byte:08b}" for byte in packed)
    if bits == _LOOPBACK:
        return is_local_name(name)
    for prefix in _EMBEDDED:
        if packed.startswith(prefix):
            bits = "".join(f"{byte:08b}" for byte in packed.removeprefix(prefix))
            if bits.startswith(_LOOPBACK_4):
                return is_local_name(name)
            return not bits.startswith(_REFUSED_4)
    return not bits.startswith(_REFUSED)


def is_local_name(name: str) -> bool:
    return name == "localhost" or name.endswith(".localhost")


def rewrite_head(method: bytes, path: bytes, head: bytes, host: str) -> bytes:
    """Return a request's header as a server expects it: with only the path and the checked host.

    The connection closes after one request.
    """
    _, *lines = head.removesuffix(b"\r\n\r\n").split(b"\r\n")
    kept = [line for line in lines if not line.lower().startswith(_DROPPED)]
    first = method + b" " + path + b" HTTP/1.1"
    field = b"Host: " + host.removesuffix(":80").encode()
    return b"\r\n".join([first, field, *kept, b"Connection: close"]) + b"\r\n\r\n"


def answer(client: socket.socket, status: str, text: str) -> None:
    head = f"HTTP/1.1 {status}\r\nContent-Type: text/plain\r\nContent-Length: {len(text)}\r\n"
    client.sendall(f"{head}Connection: close\r\n\r\n{text}".encode("ascii", "replace"))


def relay(client: socket.socket, server: socket.socket) -> None:
    """Copy data in both directions until both sides have closed."""
    other = threading.Thread(target=copy, args=(server, client), daemon=True)
    other.start()
    copy(client, server)
    other.join()


def copy(source: socket.socket, sink: socket.socket) -> None:
    try:
        while piece := source.recv(PIECE_BYTES):
            sink.sendall(piece)
        sink.shutdown(socket.SHUT_WR)
    except OSError:
        for end in (source, sink):
            shut(end)


def shut(end: socket.socket) -> None:
    try:  # noqa: SIM105 - contextlib slows the start
        end.shutdown(socket.SHUT_RDWR)
    except OSError:
        pass


def receive_listener(channel: socket.socket) -> socket.socket:
    """Return the listening socket that the sandbox sends."""
    inner, _ = channel.accept()
    with inner, channel:
        _, numbers, _, _ = socket.recv_fds(inner, 1, 1)
    return socket.socket(fileno=numbers[0])


def exit_with_supervisor(clean_up: Callable[[], None] = lambda: None) -> None:
    while os.read(0, 1):
        pass
    clean_up()
    os._exit(0)


def serve_all(proxy: Proxy, listener: socket.socket) -> None:
    """Serve each connection in a thread. If there are too many, the next ones wait."""
    free = threading.Semaphore(CONNECTIONS)

    def serve_one(client: socket.socket) -> None:
        try:
            proxy.serve(client)
        except OSError:
            pass  # one side has closed the connection
        finally:
            free.release()

    while True:
        free.acquire()
        client, _ = listener.accept()
        threading.Thread(target=serve_one, args=(client,), daemon=True).start()


def main(arguments: list[str]) -> None:
    threading.Thread(target=exit_with_supervisor, daemon=True).start()
    proxy = Proxy(arguments[1:])
    listener = receive_listener(socket.socket(fileno=int(arguments[0])))
    serve_all(proxy, listener)


if __name__ == "__main__":
    main(sys.argv[1:])
