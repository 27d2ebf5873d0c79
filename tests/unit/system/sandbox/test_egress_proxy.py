"""The proxy of a sandbox: names that are allowed lead out, all others do not."""

import contextlib
import os
import socket
import subprocess
import sys
import threading

import pytest

from rekindle.system.sandbox import egress_proxy, sandbox_entry
from rekindle.system.sandbox.egress import EgressProxy
from rekindle.system.sandbox.egress_proxy import (
    Proxy,
    is_permitted_address,
    parse_target,
    rewrite_head,
)


@pytest.fixture
def server():
    """Return the address of a server that answers with the request it got."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve():
            while True:
                try:
                    client, _ = listener.accept()
                except OSError:
                    return
                with client:
                    data = client.recv(65536)
                    client.sendall(b"HTTP/1.1 200 OK\r\n\r\n" + data)

        threading.Thread(target=serve, daemon=True).start()
        yield f"127.0.0.1:{listener.getsockname()[1]}"
        listener.shutdown(socket.SHUT_RDWR)


def ask(proxy, request):
    ours, its = socket.socketpair()
    serving = threading.Thread(target=proxy.serve, args=(its,), daemon=True)
    serving.start()
    with ours:
        ours.sendall(request)
        if request.startswith(b"CONNECT") and b"200" in (first := ours.recv(100)):
            ours.sendall(b"through the tunnel")
            ours.shutdown(socket.SHUT_WR)
        else:
            first = first if request.startswith(b"CONNECT") else b""
        answer = b"".join(iter(lambda: ours.recv(65536), b""))
    serving.join(10)
    return first + answer


def test_a_tunnel_to_an_allowed_host(server):
    request = f"CONNECT {server} HTTP/1.1\r\nHost: {server}\r\n\r\n".encode()
    answer = ask(Proxy([server]), request)
    assert answer.startswith(b"HTTP/1.1 200 OK\r\n\r\n")
    assert answer.endswith(b"through the tunnel")


def test_a_plain_request_to_an_allowed_host(server):
    request = (
        f"GET http://{server}/a/b?c HTTP/1.1\r\nHost: {server}\r\n"
        "Proxy-Connection: keep-alive\r\nX-Own: 1\r\n\r\nbody"
    )
    answer = ask(Proxy([server]), request.encode())
    assert b"GET /a/b?c HTTP/1.1\r\n" in answer
    assert b"X-Own: 1\r\nConnection: close\r\n\r\nbody" in answer
    assert b"Proxy-Connection" not in answer


@pytest.mark.parametrize("method", ["CONNECT {host}", "GET http://{host}/x"])
def test_another_host_is_refused_and_reported_once(server, method, monkeypatch):
    reported = []
    monkeypatch.setattr(egress_proxy.os, "write", lambda _, data: reported.append(data))
    proxy = Proxy(["api.example.com:443"])
    line = method.format(host=server)
    for _ in range(2):
        answer = ask(proxy, f"{line} HTTP/1.1\r\n\r\n".encode())
        assert answer.startswith(b"HTTP/1.1 403 Forbidden\r\n")
        assert f"does not allow {server}".encode() in answer
    assert reported == [f"{server}\n".encode()]


def test_a_host_that_does_not_answer_is_a_bad_gateway():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        gone = f"127.0.0.1:{listener.getsockname()[1]}"
    answer = ask(Proxy([gone]), f"CONNECT {gone} HTTP/1.1\r\n\r\n".encode())
    assert answer.startswith(b"HTTP/1.1 502 Bad Gateway\r\n")


@pytest.mark.parametrize(
    ("method", "target", "host"),
    [
        (b"CONNECT", b"API.example.com:443", "api.example.com:443"),
        (b"CONNECT", b"api.example.com", "api.example.com:80"),
        (b"GET", b"http://example.com/x", "example.com:80"),
        (b"GET", b"http://example.com:8080/x", "example.com:8080"),
        (b"GET", b"/x", ""),
        (b"GET", b"ftp://example.com/x", ""),
        (b"GET", b"http://allowed.com@example.com/x", ""),
        (b"CONNECT", b"api.example.com.:443", "api.example.com:443"),
        (b"CONNECT", b"API.EXAMPLE.COM.:443", "api.example.com:443"),
        (b"CONNECT", b"api.example.com..:443", ""),
        (b"CONNECT", b".:443", ""),
        (b"CONNECT", b"api.example.com:0443", "api.example.com:443"),
        (b"CONNECT", b"api.example.com:65536", ""),
        (b"CONNECT", b"api.example.com:0", ""),
        (b"CONNECT", b"api.example.com:+443", ""),
        (b"CONNECT", b"api.example.com:443:443", ""),
        (b"CONNECT", b"api.example.com:443#x", ""),
        (b"CONNECT", b"api.example.com:443/x", ""),
        (b"CONNECT", b"api.example.com\x00.evil.com:443", ""),
        (b"CONNECT", b"x@api.example.com:443", ""),
        (b"CONNECT", b"api.example.com%2eevil.com:443", ""),
        (b"CONNECT", "api.ex\u00e4mple.com:443".encode(), ""),
        (b"CONNECT", b"a" * 254 + b":443", ""),
        (b"CONNECT", b"2130706433:80", "2130706433:80"),
        (b"CONNECT", b"0x7f.1:80", "0x7f.1:80"),
        (b"GET", b"http:///x", ""),
        (b"GET", b"http://[::1]/x", ""),
        (b"GET", b"http://example.com?x", ""),
        (b"GET", b"http://example.com\\@evil.com/", ""),
        (b"CONNECT", b"[::1]:443", ""),
        (b"CONNECT", b"a b:443", ""),
        (b"", b"", ""),
    ],
)
def test_the_host_of_a_request(method, target, host):
    assert parse_target(method, target)[0] == host


def test_a_head_without_fields():
    made = rewrite_head(b"GET", b"/", b"GET http://a/ HTTP/1.1\r\n\r\n", "a:80")
    assert made == b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"


def test_the_host_field_is_the_host_that_was_checked():
    """Otherwise, a server for several hosts would answer for one that is not allowed."""
    head = b"GET http://a:8080/ HTTP/1.1\r\nhost: evil\r\nX: 1\r\nHOST:evil\r\n\r\n"
    made = rewrite_head(b"GET", b"/", head, "a:8080")
    assert made == b"GET / HTTP/1.1\r\nHost: a:8080\r\nX: 1\r\nConnection: close\r\n\r\n"


@pytest.mark.parametrize(
    ("name", "address", "is_permitted"),
    [
        ("api.example.com", "93.184.216.34", True),
        ("api.example.com", "10.1.2.3", True),
        ("api.example.com", "2606:2800:220:1::1", True),
        ("api.example.com", "127.0.0.1", False),
        ("api.example.com", "127.8.8.8", False),
        ("api.example.com", "0.0.0.0", False),  # noqa: S104 - nothing listens here
        ("api.example.com", "169.254.169.254", False),
        ("api.example.com", "224.0.0.1", False),
        ("api.example.com", "255.255.255.255", False),
        ("api.example.com", "::1", False),
        ("api.example.com", "::", False),
        ("api.example.com", "::ffff:127.0.0.1", False),
        ("api.example.com", "::ffff:169.254.169.254", False),
        ("api.example.com", "::127.0.0.1", False),
        ("api.example.com", "64:ff9b::7f00:1", False),
        ("api.example.com", "64:ff9b::5db8:d822", True),
        ("api.example.com", "fe80::1", False),
        ("api.example.com", "fe80::1%eth0", False),
        ("api.example.com", "ff02::1", False),
        ("api.example.com", "fd00:ec2::254", False),
        ("api.example.com", "fd20:ce::254", False),
        ("api.example.com", "2002:a9fe:a9fe::1", False),
        ("api.example.com", "100.100.100.200", False),
        ("localhost", "127.0.0.1", True),
        ("localhost", "::1", True),
        ("model.localhost", "127.0.0.1", True),
        ("localhost", "169.254.169.254", False),
        ("127.0.0.1", "127.0.0.1", True),
        ("169.254.169.254", "169.254.169.254", True),
        ("2130706433", "127.0.0.1", False),
        ("evil.localhost.example.com", "127.0.0.1", False),
    ],
)
def test_a_name_does_not_lead_to_this_host_or_its_link(name, address, is_permitted):
    """The owner of an allowed name chooses its addresses. Only the operator names this host."""
    assert is_permitted_address(name, address) is is_permitted


def test_a_name_that_leads_to_this_host_is_refused(server, monkeypatch):
    port = int(server.rpartition(":")[2])
    real = socket.getaddrinfo
    asked = []

    def resolve(name, *more, **options):
        asked.append(name)
        return real("127.0.0.1" if name == "rebound.example.com" else name, *more, **options)

    monkeypatch.setattr(egress_proxy.socket, "getaddrinfo", resolve)
    proxy = Proxy([f"rebound.example.com:{port}"])
    answer = ask(proxy, f"CONNECT rebound.example.com:{port} HTTP/1.1\r\n\r\n".encode())
    assert answer.startswith(b"HTTP/1.1 403 Forbidden\r\n")
    assert b"leads to this host" in answer
    assert asked == ["rebound.example.com"]


def test_with_any_host_allowed_only_other_hosts_are_reached(server, monkeypatch):
    """An address that the operator did not name must not lead to this host either."""
    port = int(server.rpartition(":")[2])
    real = socket.getaddrinfo
    packages = "packages.example.com"

    def resolve(name, *more, **options):
        return real("127.0.0.1" if name == packages else name, *more, **options)

    monkeypatch.setattr(egress_proxy.socket, "getaddrinfo", resolve)
    proxy = Proxy([egress_proxy.ANY_HOST])
    for name in ("127.0.0.1", "localhost", "169.254.169.254", packages):
        answer = ask(proxy, f"CONNECT {name}:{port} HTTP/1.1\r\n\r\n".encode())
        assert answer.startswith(b"HTTP/1.1 403 Forbidden\r\n"), name
    assert ask(proxy, b"CONNECT  HTTP/1.1\r\n\r\n").startswith(b"HTTP/1.1 403 Forbidden\r\n")
    monkeypatch.setattr(egress_proxy, "is_permitted_address", lambda *_: True)
    answer = ask(proxy, f"CONNECT {packages}:{port} HTTP/1.1\r\n\r\n".encode())
    assert answer.startswith(b"HTTP/1.1 200 OK\r\n")


def test_the_number_of_connections_is_limited(server, monkeypatch):
    """The proxy runs outside the sandbox, where no limit applies to it."""
    monkeypatch.setattr(egress_proxy, "CONNECTIONS", 2)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        address = listener.getsockname()

        def accept():
            with contextlib.suppress(OSError):  # the test closes the socket
                egress_proxy.serve_all(Proxy([server]), listener)

        accepting = threading.Thread(target=accept, daemon=True)
        accepting.start()
        idle = [socket.create_connection(address) for _ in range(2)]
        late = socket.create_connection(address)
        late.sendall(b"CONNECT other:443 HTTP/1.1\r\n\r\n")
        late.settimeout(0.3)
        with pytest.raises(TimeoutError):
            late.recv(100)
        idle[0].close()
        late.settimeout(20)
        assert late.recv(100).startswith(b"HTTP/1.1 403")
        for client in (idle[1], late):
            client.close()
        listener.shutdown(socket.SHUT_RDWR)
        accepting.join(20)


def test_the_sandbox_passes_its_listening_socket_out(server, tmp_path):
    """The proxy serves connections of a network that it is not in; it ends when it is closed."""
    folder = tmp_path / ("long-" * 20)  # longer than the path of a socket may be
    folder.mkdir()
    proxy = EgressProxy(folder, ["example.org:443"])
    code = (
        "import socket\n"
        "with socket.create_connection(('127.0.0.1', PORT)) as made:\n"
        f"    made.sendall(b'CONNECT {server} HTTP/1.1\\r\\n\\r\\n')\n"
        "    print(made.recv(100).split(b'\\r\\n')[0].decode())\n"
    )
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = str(free.getsockname()[1])
    words = [sys.executable, "-I", "-S", sandbox_entry.__file__, "", *proxy.address, port]
    words += [sys.executable, "-c", code.replace("PORT", port)]
    try:
        ran = subprocess.run(words, capture_output=True, text=True, timeout=30, check=True)
        assert ran.stdout == "HTTP/1.1 403 Forbidden\n"
        assert proxy.read_refused() == [server]
        assert proxy.read_refused() == []
    finally:
        proxy.close()
    assert os.listdir(folder) == []  # noqa: PTH208 - only names
