"""`rekindle ui` prints a link, exits at once on SIGTERM, and explains what is missing."""

import re
import signal
import socket
import subprocess
import sys
import urllib.request

import pytest

from rekindle.web.page_links import PageLinks

MANIFEST = 'version: 1\nagents:\n  trades: {harness: command, command: ["true"]}\n'


@pytest.fixture
def project(tmp_path, monkeypatch):
    (tmp_path / "rekindle.yaml").write_text(MANIFEST)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def server(project):
    command = [sys.executable, "-m", "rekindle", "ui", "--port", "0", "--no-open"]
    with subprocess.Popen(command, cwd=project, stdout=subprocess.PIPE, text=True) as process:
        yield process
        process.kill()


def read_link(server):
    link = server.stdout.readline().strip()
    found = re.fullmatch(r"http://127\.0\.0\.1:(\d+)/open#([\w-]{43})", link)
    assert found, link
    return int(found[1]), found[2]


def post(port, path, data, **headers):
    own = f"http://127.0.0.1:{port}"
    every = {"Content-Type": "application/json", "Origin": own, "Sec-Fetch-Site": "same-origin"}
    request = urllib.request.Request(own + path, data, every | headers)  # noqa: S310 - our own
    return urllib.request.urlopen(request, timeout=120)  # noqa: S310 - as above


def test_it_serves_its_pages_and_exits_with_an_open_stream(server, rekindle):
    port, token = read_link(server)
    session = post(port, "/api/session", b'{"link": "%s"}' % token.encode()).read()
    found = re.search(rb'"session":"([\w-]+)"', session)
    with socket.create_connection(("127.0.0.1", port), timeout=120) as stream:
        request = f"GET /api/stream HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n"
        stream.sendall(f"{request}Authorization: Bearer {found[1].decode()}\r\n\r\n".encode())
        received = b""
        while b"trades" not in received:
            received += stream.recv(65536)
        assert b"text/event-stream" in received
        code, out, _ = rekindle("ui", "--link", "--port", port)
        assert code == 0
        assert out.startswith(f"http://127.0.0.1:{port}/open#")
        server.send_signal(signal.SIGTERM)
        server.wait(120)
    assert rekindle("ui", "--link", "--port", port)[0] == 7


def test_it_listens_on_this_host_only(server):
    port, _ = read_link(server)
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.2", port), timeout=120)


def test_a_busy_port_is_explained(project, rekindle):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        code, _, err = rekindle("ui", "--no-open", "--port", port)
    assert code == 2
    assert f"port {port} is already in use" in err


def test_without_a_server_there_is_no_link(project, rekindle):
    code, _, err = rekindle("ui", "--link", "--port", 1)
    assert code == 7
    assert "start one with `rekindle ui`" in err


def test_a_link_can_have_the_name_of_a_proxy(project, rekindle):
    links = PageLinks(18380)
    with links.hold():
        _, out, _ = rekindle("ui", "--link", "--port", 18380, "--behind-proxy", "agents.example")
    assert out.startswith("https://agents.example/open#")


def test_a_missing_extra_is_explained(project):
    code = (
        "import sys, importlib.util as u\n"
        "find = u.find_spec\n"
        "u.find_spec = lambda name, *a: None if name == 'uvicorn' else find(name, *a)\n"
        "from rekindle.cli import main\n"
        "sys.exit(main.run(['ui', '--no-open']))\n"
    )
    ended = subprocess.run(
        [sys.executable, "-c", code], cwd=project, capture_output=True, text=True, check=False
    )
    assert ended.returncode == 1
    assert "pip install 'rekindle-agents[ui]'" in ended.stderr


@pytest.mark.parametrize("name", ["https://agents.example", "agents.example/", "a b", "a:x"])
def test_a_proxy_needs_a_host_name(project, rekindle, name):
    """The server would refuse every request through the proxy."""
    code, _, err = rekindle("ui", "--link", "--port", 1, "--behind-proxy", name)
    assert code == 2
    assert "is not a host name" in err
