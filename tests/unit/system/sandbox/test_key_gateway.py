"""The gateway that adds keys, in front of a host with its own certificate authority."""

import json
import os
import select
import socket
import ssl
import subprocess
import sys
import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec
import pytest

from rekindle.documents.launches.launch_credentials import ModelKey
from rekindle.system.sandbox import key_gateway, sandbox_entry
from rekindle.system.sandbox.egress import EgressProxy
from rekindle.system.sandbox.gateway_setup import GatewaySetup
from rekindle.system.sandbox.key_gateway import KeyGateway, KeyRing
from tls_host import OK, say, serve_tls

KEY = ModelKey("x-api-key", "sk-real")
NOW = datetime(2026, 1, 31, 12, tzinfo=UTC)


@pytest.fixture
def host(tmp_path):
    with serve_tls(tmp_path) as (host, ca):
        host.ca = ca
        yield host


def make_setup(host, program="/missing", expires=None):
    return GatewaySetup(str(program), "{}", {"PATH": "/usr/bin:/bin"}, {host.address: KEY}, expires)


@pytest.fixture
def gateway(host, monkeypatch):
    monkeypatch.setenv("SSL_CERT_FILE", str(host.ca))
    return KeyGateway([], KeyRing(make_setup(host)))


def ask(gateway, *parts: bytes, ends: bool = False) -> bytes:
    """Send a request in pieces, and return the whole answer."""
    ours, its = socket.socketpair()
    ours.settimeout(30)
    serving = threading.Thread(target=serve, args=(gateway, its), daemon=True)
    serving.start()
    with ours:
        for part in parts:
            ours.sendall(part)
        if ends:
            ours.shutdown(socket.SHUT_WR)
        answer = b"".join(iter(lambda: ours.recv(65536), b""))
    serving.join(30)
    assert not serving.is_alive()
    return answer


def serve(gateway, client):
    with client:
        try:
            gateway.serve(client)
        except OSError:
            client.close()


def request(host, *lines: str, first="GET /{host}/v1/models HTTP/1.1") -> bytes:
    return "\r\n".join((first.format(host=host.address), *lines, "", "")).encode()


def test_the_key_is_added_and_the_placeholder_is_not_sent(gateway, host):
    answer = ask(gateway, request(host, "x-api-key: placeholder"))
    assert answer == b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok"
    (sent,) = host.requests
    assert sent.startswith(b"GET /v1/models HTTP/1.1\r\nHost: " + host.address.encode())
    assert b"x-api-key: sk-real\r\n" in sent
    assert b"placeholder" not in sent


@pytest.mark.parametrize("status", ["429 Too Many Requests", "500 x", "529 Overloaded", "401 x"])
def test_an_error_passes_unchanged(gateway, host, status):
    body = b'{"type":"error"}'
    told = f"HTTP/1.1 {status}\r\nretry-after: 30\r\nContent-Length: {len(body)}\r\n".encode()
    host.answer = say(told + b"\r\n" + body)
    answer = ask(gateway, request(host))
    assert answer == told + b"Connection: close\r\n\r\n" + body


def test_a_stream_arrives_piece_by_piece(gateway, host):
    """The second piece is sent only after the client has read the first one."""
    seen = threading.Event()

    def stream(connection, _):
        connection.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\none\r\n")
        assert seen.wait(30)
        connection.sendall(b"3\r\ntwo\r\n0\r\n\r\n")

    host.answer = stream
    ours, its = socket.socketpair()
    threading.Thread(target=serve, args=(gateway, its), daemon=True).start()
    with ours:
        ours.settimeout(30)
        ours.sendall(request(host))
        data = b""
        while b"one" not in data:
            data += ours.recv(65536)
        assert b"two" not in data
        seen.set()
        assert b"".join(iter(lambda: ours.recv(65536), b"")) == b"3\r\ntwo\r\n0\r\n\r\n"


def read_body(connection, head, count):
    body = head.partition(b"\r\n\r\n")[2]
    while len(body) < count:
        body += connection.recv(65536)
    return body


def test_a_body_in_pieces_and_nothing_after_it(gateway, host):
    """A second request behind the body does not reach the host."""
    bodies = []

    def answer(connection, head):
        bodies.append(read_body(connection, head, 10))
        connection.sendall(OK)
        connection.settimeout(0.2)
        with pytest.raises(TimeoutError):
            bodies.append(connection.recv(1))

    host.answer = answer
    head = request(host, "Content-Length: 10", first="POST /{host}/v1/messages HTTP/1.1")
    hidden = request(host, "x-api-key: sk-other")
    assert ask(gateway, head + b"01234", b"56789" + hidden).endswith(b"ok")
    assert bodies == [b"0123456789"]
    assert len(host.requests) == 1


def test_a_chunked_body_is_framed_again(gateway, host):
    bodies = []
    expected = b"5\r\n01234\r\n3\r\n567\r\n0\r\n\r\n"

    def answer(connection, head):
        bodies.append(read_body(connection, head, len(expected)))
        connection.sendall(OK)

    host.answer = answer
    head = request(host, "Transfer-Encoding: chunked", first="POST /{host}/v1 HTTP/1.1")
    body = b"5;x=1\r\n01234\r\n0003\r\n567\r\n0\r\nx-api-key: sk-other\r\n\r\nGET / HTTP/1.1\r\n"
    assert ask(gateway, head, body).endswith(b"ok")
    assert bodies == [expected]


@pytest.mark.parametrize("body", [b"x\r\n", b"5\r\n01234xx\r\n", b"5\r\n0123456\r\n", b"1" * 3000])
def test_a_broken_chunk_is_refused(gateway, host, body):
    host.answer = lambda connection, _: connection.recv(1)
    head = request(host, "Transfer-Encoding: chunked", first="POST /{host}/v1 HTTP/1.1")
    assert ask(gateway, head, body).startswith(b"HTTP/1.1 400 ")


def test_a_client_that_stops_in_its_body_is_refused(gateway, host):
    host.answer = lambda connection, _: connection.recv(1)
    head = request(host, "Content-Length: 10", first="POST /{host}/v1 HTTP/1.1")
    assert ask(gateway, head + b"0123", ends=True).startswith(b"HTTP/1.1 400 ")


def test_a_slow_client_does_not_wait_forever(gateway, host, monkeypatch):
    monkeypatch.setattr(key_gateway, "GATEWAY_IDLE_SECONDS", 0.1)
    host.answer = lambda connection, _: connection.recv(1)
    head = request(host, "Content-Length: 10", first="POST /{host}/v1 HTTP/1.1")
    assert ask(gateway, head + b"0123").startswith(b"HTTP/1.1 408 ")
    assert ask(gateway, b"GET /") == b""


@pytest.mark.parametrize(
    ("first", "lines", "status"),
    [
        ("GET /api.example.org/v1 HTTP/1.1", (), b"403"),
        ("GET https://{host}/v1 HTTP/1.1", (), b"403"),
        ("GET http://{host}/v1 HTTP/1.1", (), b"403"),
        ("CONNECT {host} HTTP/1.1", (), b"403"),
        ("TRACE /{host}/v1 HTTP/1.1", (), b"405"),
        ("POST /{host}/v1 HTTP/1.1", ("Content-Length: 4", "Transfer-Encoding: chunked"), b"400"),
        ("GET /{host}/v1 HTTP/1.1", (f"A: {'b' * 70_000}",), b"431"),
    ],
)
def test_an_attack_does_not_reach_the_host(gateway, host, first, lines, status):
    answer = ask(gateway, request(host, *lines, first=first))
    assert answer.startswith(b"HTTP/1.1 " + status)
    assert host.requests == []


def test_a_redirection_is_not_followed(gateway, host, tmp_path):
    (tmp_path / "other").mkdir()
    with serve_tls(tmp_path / "other") as (other, _):
        location = f"location: https://{other.address}/v1\r\n".encode()
        host.answer = say(b"HTTP/1.1 307 x\r\n" + location + b"Content-Length: 0\r\n\r\n")
        assert location in ask(gateway, request(host))
        assert other.requests == []


def test_a_host_that_answers_before_the_end_of_the_body(gateway, host):
    """The rest of the body is not needed, and the client reads the answer."""
    size, read = 50_000_000, []

    def refuse(connection, _):
        connection.sendall(b"HTTP/1.1 413 Too Large\r\nContent-Length: 2\r\n\r\nno")
        read.extend(map(len, iter(lambda: connection.recv(65536), b"")))

    host.answer = refuse
    ours, its = socket.socketpair()
    serving = threading.Thread(target=serve, args=(gateway, its), daemon=True)
    serving.start()
    with ours:
        ours.settimeout(30)
        head = request(host, f"Content-Length: {size}", first="POST /{host}/v1 HTTP/1.1")
        ours.sendall(head + bytes(1_000_000))
        data = b""
        while not data.endswith(b"no"):
            data += ours.recv(65536)
    assert data.startswith(b"HTTP/1.1 413 ")
    serving.join(30)
    assert not serving.is_alive()
    assert sum(read) < size


def test_the_host_notices_that_the_client_left(gateway, host):
    left = threading.Event()

    def wait_for_end(connection, _):
        connection.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        assert connection.recv(1) == b""
        left.set()

    host.answer = wait_for_end
    ours, its = socket.socketpair()
    threading.Thread(target=serve, args=(gateway, its), daemon=True).start()
    with ours:
        ours.sendall(request(host))
        assert ours.recv(100).startswith(b"HTTP/1.1 200")
    assert left.wait(30)


@pytest.mark.parametrize("told", [b"", b"SSH-2.0-x\r\n\r\n", b"HTTP/1.1 101 x\r\n\r\n"])
def test_a_host_without_an_http_answer_is_a_bad_gateway(gateway, host, told):
    host.answer = say(told)
    assert ask(gateway, request(host)).startswith(b"HTTP/1.1 502 ")


def test_an_early_hint_is_skipped(gateway, host):
    host.answer = say(b"HTTP/1.1 103 x\r\nlink: y\r\n\r\n" + OK)
    assert ask(gateway, request(host)).startswith(b"HTTP/1.1 200 OK")


def test_a_host_whose_certificate_is_not_trusted_gets_no_key(host, monkeypatch):
    monkeypatch.delenv("SSL_CERT_FILE", raising=False)
    answer = ask(KeyGateway([], KeyRing(make_setup(host))), request(host))
    assert answer.startswith(b"HTTP/1.1 502 ")
    assert b"no valid certificate: CERTIFICATE_VERIFY_FAILED" in answer
    assert host.requests == []


def test_a_host_with_the_certificate_of_another_name_gets_no_key(gateway, host, tmp_path):
    (tmp_path / "other").mkdir()
    name = f"localhost:{host.address.rpartition(':')[2]}"
    named = GatewaySetup("/missing", "{}", {}, {name: KEY}, None)
    answer = ask(KeyGateway([], KeyRing(named)), f"GET /{name}/v1 HTTP/1.1\r\n\r\n".encode())
    assert b"no valid certificate: CERTIFICATE_VERIFY_FAILED" in answer
    assert host.requests == []


@pytest.mark.parametrize("name", ["localhost.example.org:443"])
def test_a_name_that_leads_to_this_host_gets_no_key(name, monkeypatch):
    found = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", 443))]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: found)
    setup = GatewaySetup("/missing", "{}", {}, {name: KEY}, None)
    answer = ask(KeyGateway([], KeyRing(setup)), f"GET /{name}/v1 HTTP/1.1\r\n\r\n".encode())
    assert answer.startswith(b"HTTP/1.1 403 ")


class Clock:
    def __init__(self):
        self.now = NOW

    def __call__(self):
        return self.now


@pytest.fixture
def helper(tmp_path):
    """Return a helper that prints the file `output`, and counts its calls."""
    program = tmp_path / "helper"
    script = f"#!/bin/sh\necho called >>{tmp_path}/calls\ncat {tmp_path}/output\n"
    program.write_text(script)
    program.chmod(0o755)
    program.parent.joinpath("calls").touch()
    return program


def render_keys(host, value, expires):
    keys = {host: {"header": "x-api-key", "value": value}}
    return json.dumps({"keys": keys, "expires": expires.isoformat()}) + "\n"


def print_keys(helper, *key):
    (helper.parent / "output").write_text(render_keys(*key))


def count(helper):
    return len((helper.parent / "calls").read_text().split())


def test_keys_are_renewed_before_they_expire(helper, capfd):
    clock = Clock()
    setup = GatewaySetup(
        str(helper), "{}", dict(os.environ), {"a.example": KEY}, NOW + timedelta(hours=1)
    )
    ring = KeyRing(setup, clock)
    clock.now += timedelta(minutes=58, seconds=59)
    assert ring.find("a.example") == KEY
    assert count(helper) == 0
    clock.now += timedelta(seconds=1)
    print_keys(helper, "a.example", "sk-next", NOW + timedelta(hours=2))
    assert ring.find("a.example") == KEY
    ring.wait()
    assert ring.find("a.example").value == "sk-next"
    assert ring.find("a.example").value == "sk-next"
    assert count(helper) == 1
    assert "sk-" not in "".join(capfd.readouterr())


def test_a_valid_key_does_not_wait_for_a_helper_that_hangs(helper):
    helper.write_text(helper.read_text().replace("cat ", "head -n 1 "))
    os.mkfifo(output := helper.parent / "output")
    pipe = os.open(output, os.O_RDWR)
    setup = GatewaySetup(
        str(helper), "{}", dict(os.environ), {"a.example": KEY}, NOW + timedelta(hours=1)
    )
    ring = KeyRing(setup, clock := Clock())
    clock.now += timedelta(minutes=59, seconds=30)
    assert [ring.find("a.example") for _ in range(3)] == [KEY] * 3
    os.write(pipe, render_keys("a.example", "sk-next", NOW + timedelta(hours=2)).encode())
    ring.wait()
    os.close(pipe)
    assert count(helper) == 1
    assert ring.find("a.example").value == "sk-next"


def test_keys_with_a_short_life_are_not_renewed_for_each_request(helper):
    clock = Clock()
    setup = GatewaySetup(
        str(helper), "{}", dict(os.environ), {"a.example": KEY}, NOW + timedelta(seconds=8)
    )
    ring = KeyRing(setup, clock)
    clock.now += timedelta(seconds=5)
    assert ring.find("a.example") == KEY
    assert count(helper) == 0


@pytest.mark.parametrize("output", ["", "garbage sk-secret", '{"keys": {}}'])
def test_a_helper_that_fails_later_is_asked_again_until_the_keys_expire(helper, capfd, output):
    clock = Clock()
    (helper.parent / "output").write_text(output)
    setup = GatewaySetup(
        str(helper), "{}", dict(os.environ), {"a.example": KEY}, NOW + timedelta(minutes=10)
    )
    ring = KeyRing(setup, clock)
    clock.now += timedelta(minutes=9, seconds=30)
    assert ring.find("a.example") == KEY
    ring.wait()
    assert ring.find("a.example") == KEY
    ring.wait()
    assert count(helper) == 1
    clock.now += timedelta(minutes=1)
    assert ring.find("a.example") is None
    assert count(helper) == 2
    told = capfd.readouterr().err
    assert told.count("the keys were not renewed") == 2
    assert "sk-secret" not in told
    clock.now += timedelta(minutes=1)
    print_keys(helper, "a.example", "sk-next", NOW + timedelta(hours=2))
    assert ring.find("a.example").value == "sk-next"


def test_without_a_valid_key_the_service_is_unavailable(host, monkeypatch):
    monkeypatch.setenv("SSL_CERT_FILE", str(host.ca))
    ring = KeyRing(make_setup(host, expires=NOW), Clock())
    answer = ask(KeyGateway([], ring), request(host))
    assert answer.startswith(b"HTTP/1.1 503 ")
    assert b"does not renew the key" in answer
    assert host.requests == []


def test_the_program_serves_the_socket_of_the_sandbox(host, tmp_path, monkeypatch):
    """Its keys are in neither its arguments nor its environment."""
    monkeypatch.setenv("SSL_CERT_FILE", str(host.ca))
    setup = msgspec.json.encode(make_setup(host))
    proxy = EgressProxy(tmp_path, [], setup)
    try:
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        entry = [sys.executable, "-I", "-S", sandbox_entry.__file__, "", *proxy.address, str(port)]
        client = (
            "import urllib.request as r; r.install_opener(r.build_opener(r.ProxyHandler({})));"
            f"print(r.urlopen('http://127.0.0.1:{port}/{host.address}/v1/x').read().decode())"
        )
        done = subprocess.run(
            [*entry, sys.executable, "-c", client],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert done.stdout == "ok\n", done.stderr
        assert b"x-api-key: sk-real" in host.requests[0]
        pid = proxy._child.pid
        for name in ("cmdline", "environ"):
            assert b"sk-real" not in Path(f"/proc/{pid}/{name}").read_bytes()
    finally:
        proxy.close()


@pytest.mark.parametrize(
    ("command", "end"),
    [("sleep 600", EgressProxy.close), ("exec sleep 600", lambda proxy: proxy._child.kill())],
)
def test_a_helper_does_not_outlive_the_gateway(tmp_path, command, end):
    """If the gateway is killed, only processes that the helper started can stay."""
    (helper := tmp_path / "helper").write_text(f"#!/bin/sh\nexec 9>{tmp_path}/pipe\n{command}\n")
    helper.chmod(0o755)
    os.mkfifo(tmp_path / "pipe")
    environment = {"PATH": os.defpath}
    setup = GatewaySetup(str(helper), "{}", environment, {"a.example": KEY}, NOW)
    proxy = EgressProxy(tmp_path, [], msgspec.json.encode(setup))
    try:
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        entry = [sys.executable, "-I", "-S", sandbox_entry.__file__, "", *proxy.address, str(port)]
        subprocess.run([*entry, "true"], timeout=60, check=True)
        with socket.create_connection(("127.0.0.1", port)) as client:
            client.sendall(b"GET /a.example/v1 HTTP/1.1\r\n\r\n")
            with (tmp_path / "pipe").open("rb", buffering=0) as pipe:  # waits for the helper
                end(proxy)
                assert select.select([pipe], [], [], 60)[0]
                assert pipe.read(1) == b""
    finally:
        proxy.close()


def test_tls_is_checked_by_default(gateway):
    assert gateway._tls.verify_mode == ssl.CERT_REQUIRED
    assert gateway._tls.check_hostname
