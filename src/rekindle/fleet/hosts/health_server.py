"""Answer over HTTP whether a worker lives, and whether it can take agents.

`/healthz` fails only if the process hangs, so a restart helps. `/readyz` also asks the engine
whether this worker polls for work, so it fails while the engine is down or the worker drains. A
restart would not help then.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from datetime import timedelta

from temporalio.client import Client
from temporalio.service import RPCError

from rekindle.errors import UsageError
from rekindle.fleet.agent.host_orders import make_host_queue
from rekindle.fleet.engine import queue_pollers
from rekindle.thresholds.fleet_limits import FLEET_GLANCE_SECONDS
from rekindle.thresholds.host_limits import FLEET_HEALTH_BYTES, FLEET_HEALTH_SECONDS

_MOST = timedelta(seconds=FLEET_GLANCE_SECONDS)
_STARTING = "not connected to the engine, or not admitted yet"
_STATUS = {200: "OK", 404: "Not Found", 503: "Service Unavailable"}


class WorkerHealth:
    """The state of one worker."""

    def __init__(self) -> None:
        self._client: Client | None = None
        self._host = ""
        self._obstacle = _STARTING

    @contextlib.asynccontextmanager
    async def polling(self, client: Client, host: str) -> AsyncIterator[None]:
        """Record that the worker polls for work, and that it drains as soon as the block ends."""
        self._client, self._host, self._obstacle = client, host, ""
        try:
            yield
        finally:
            self._obstacle = "draining: this worker takes no more agents"

    async def find_obstacle(self) -> str:
        """Return why the worker cannot take an agent, or "" if it can."""
        if self._obstacle or self._client is None:
            return self._obstacle
        try:
            workers = await queue_pollers.list_host_workers(
                self._client, make_host_queue(self._host), _MOST
            )
        except RPCError as failed:
            return f"the engine does not answer: {failed.message}"
        is_polling = self._client.identity in workers
        return "" if is_polling else "this worker does not poll the engine for work"


@contextlib.asynccontextmanager
async def serve_health(address: str | None, health: WorkerHealth) -> AsyncIterator[None]:
    """Serve the state of a worker at HOST:PORT, or do nothing without an address."""
    if address is None:
        yield
        return
    host, port = _parse_address(address)

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(FLEET_HEALTH_SECONDS):
                writer.write(await _answer_request(reader, health))
                await writer.drain()
        except (OSError, ValueError, TimeoutError, asyncio.IncompleteReadError):
            pass  # the client is gone, or sent something else than a request
        finally:  # also if the worker exits during the answer
            writer.close()

    try:
        server = await asyncio.start_server(answer, host, port, limit=FLEET_HEALTH_BYTES)
    except OSError as failed:
        raise UsageError(
            f"cannot listen on {address}: {failed.strerror or failed}",
            hint="choose another address with --health; two workers on one machine need two",
        ) from failed
    async with server:
        yield


def _parse_address(address: str) -> tuple[str, int]:
    host, _, port = address.rpartition(":")
    if not (port.isascii() and port.isdecimal()):
        raise UsageError(
            f"{address!r} is not an address to listen on",
            hint="use a host and a port, as in `--health 127.0.0.1:8080`",
        )
    return host.strip("[]") or "127.0.0.1", int(port)


async def _answer_request(reader: asyncio.StreamReader, health: WorkerHealth) -> bytes:
    request = await reader.readuntil(b"\r\n\r\n")
    method, path, *_ = request.split(b"\r\n", 1)[0].decode("latin-1").split(" ")
    match method, path.partition("?")[0]:
        case "GET" | "HEAD", "/healthz":
            obstacle, status = "", 200
        case "GET" | "HEAD", "/readyz":
            obstacle = await health.find_obstacle()
            status = 503 if obstacle else 200
        case _:
            obstacle, status = "use GET /healthz or GET /readyz", 404
    body = f"{obstacle or 'ok'}\n".encode()
    head = (
        f"HTTP/1.1 {status} {_STATUS[status]}\r\nContent-Type: text/plain; charset=utf-8\r\n"
        f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    )
    return head.encode() + (b"" if method == "HEAD" else body)
