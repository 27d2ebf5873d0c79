"""A worker reports over HTTP whether it lives, and whether it can take agents."""

import asyncio
import contextlib
import http.client
import subprocess
import sys
import time

import pytest

from fleet.apart import Apart
from fleet.engine import Engine, free_port
from rekindle.errors import UsageError
from rekindle.fleet.hosts import health_server
from rekindle.fleet.hosts.health_server import WorkerHealth, serve_health

SECONDS = 120


def ask(port, path, method="GET"):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=SECONDS)
    connection.request(method, path)
    answer = connection.getresponse()
    return answer.status, answer.read().decode()


def until(port, path, status):
    """Return the body of the first answer with this status."""
    deadline = time.monotonic() + SECONDS
    while True:
        with contextlib.suppress(OSError):
            found, body = ask(port, path)
            if found == status:
                return body
        assert time.monotonic() < deadline, f"{path} never answered {status}"
        time.sleep(0.05)


def test_a_worker_is_ready_while_the_engine_answers(tmp_path):
    """It lives all the time: before the engine starts, and while the engine is down."""
    folder, port = tmp_path / "engine", free_port()
    folder.mkdir()
    engine = Engine(folder)
    (tmp_path / "rekindle.yaml").write_text(
        f"version: 1\nagents: {{}}\nfleet: {{address: '{engine.address}', pool: health}}\n"
    )
    argv = [sys.executable, "-m", "rekindle", "fleet", "worker", "--trust", "--host", "one"]
    argv += ["--root", str(tmp_path / "root"), "--health", f"127.0.0.1:{port}"]
    process = Apart(argv, cwd=tmp_path, stdout=subprocess.PIPE, text=True)
    try:
        assert until(port, "/healthz", 200) == "ok\n"
        assert ask(port, "/readyz") == (503, "not connected to the engine, or not admitted yet\n")
        with engine:
            assert until(port, "/readyz", 200) == "ok\n"
            assert ask(port, "/readyz", "HEAD") == (200, "")
            assert ask(port, "/other")[0] == 404
        assert "the engine does not answer" in until(port, "/readyz", 503)
        assert ask(port, "/healthz") == (200, "ok\n")
    finally:
        process.terminate()
        process.wait(SECONDS)
        process.close()


def test_a_draining_worker_is_not_ready():
    health, port = WorkerHealth(), free_port()

    async def run():
        async with health.polling(None, "one"):
            pass
        async with serve_health(f"127.0.0.1:{port}", health):
            return await asyncio.to_thread(ask, port, "/readyz")

    assert asyncio.run(run()) == (503, "draining: this worker takes no more agents\n")


def test_a_worker_that_no_longer_polls_is_not_ready(monkeypatch):
    """Although its process lives and the engine answers."""

    async def none(*_):
        return ["another worker"]

    class Client:
        identity = "this worker"

    monkeypatch.setattr(health_server.queue_pollers, "list_host_workers", none)
    health = WorkerHealth()

    async def run():
        async with health.polling(Client(), "one"):
            return await health.find_obstacle()

    assert "does not poll" in asyncio.run(run())


@pytest.mark.parametrize("request_bytes", [b"GET / HTTP/1.1", b"\r\n\r\n", b"x" * 100_000])
def test_a_bad_request_harms_nothing(request_bytes, monkeypatch):
    monkeypatch.setattr(health_server, "FLEET_HEALTH_SECONDS", 0.2)
    port = free_port()

    async def run():
        async with serve_health(f"127.0.0.1:{port}", WorkerHealth()):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(request_bytes)
            with contextlib.suppress(OSError):
                await asyncio.wait_for(reader.read(), SECONDS)
            writer.close()
            return await asyncio.to_thread(ask, port, "/healthz")

    assert asyncio.run(run()) == (200, "ok\n")


@pytest.mark.parametrize(
    ("address", "words"), [("8080x", "is not an address"), ("192.0.2.1:1", "cannot listen on")]
)
def test_an_address_that_cannot_be_used_is_refused(address, words):
    async def run():
        async with serve_health(address, WorkerHealth()):
            pass

    with pytest.raises(UsageError, match=words) as refused:
        asyncio.run(run())
    assert refused.value.hint
