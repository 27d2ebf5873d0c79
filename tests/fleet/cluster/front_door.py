"""One address for all frontends of a cluster, as a load balancer offers it.

Each connection goes to the next frontend that answers. A frontend that does not answer its health
check is taken out, and its connections are closed, so that clients connect again. In production, a
load balancer with health checks does this (such as a Kubernetes service with readiness probes, or
HAProxy with `on-marked-down shutdown-sessions`).
"""

import argparse
import asyncio
import contextlib
import itertools
import json
import socket
import struct
import sys

CHECK_SECONDS = 1.0
"""Seconds between two health checks of a frontend, and the longest wait for its answer."""
FAILED_CHECKS = 3
"""Failed checks in a row after which a frontend is down: a busy machine answers late."""
_PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + struct.pack(">I", 0)[1:] + b"\4\0\0\0\0\0"
"""The first bytes of an HTTP/2 client; a server that works answers with its settings."""
Address = tuple[str, int]


class FrontDoor:
    def __init__(self, frontends: list[Address], check_seconds: float = CHECK_SECONDS) -> None:
        self._frontends, self._check_seconds = frontends, check_seconds
        self._live: set[Address] = set()
        self._open: dict[Address, set[asyncio.StreamWriter]] = {one: set() for one in frontends}
        self._turns = itertools.count()

    async def serve(self, listener: socket.socket) -> None:
        server = await asyncio.start_server(self._connect, sock=listener)
        async with server, asyncio.TaskGroup() as tasks:
            for frontend in self._frontends:
                tasks.create_task(self._watch(frontend))

    async def _watch(self, frontend: Address) -> None:
        failed = FAILED_CHECKS
        while True:
            failed = 0 if await self._answers(frontend) else failed + 1
            is_live = failed < FAILED_CHECKS
            if is_live != (frontend in self._live):
                print(json.dumps({"frontend": frontend, "live": is_live}), flush=True)
            if is_live:
                self._live.add(frontend)
            else:
                self._live.discard(frontend)
                for writer in self._open[frontend]:
                    writer.transport.abort()
            await asyncio.sleep(self._check_seconds / (4 if failed else 1))

    async def _connect(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        live = [one for one in self._frontends if one in self._live]
        first = next(self._turns)
        for frontend in (live[(first + number) % len(live)] for number in range(len(live))):
            try:
                async with asyncio.timeout(self._check_seconds):
                    there = await asyncio.open_connection(*frontend)
            except OSError:
                continue
            pair = {writer, there[1]}
            self._open[frontend] |= pair
            with contextlib.suppress(OSError):
                await asyncio.gather(_carry(reader, there[1]), _carry(there[0], writer))
            self._open[frontend] -= pair
            there[1].close()
            break
        writer.close()

    async def _answers(self, frontend: Address) -> bool:
        """Return whether the server behind an address takes part in HTTP/2."""
        try:
            async with asyncio.timeout(self._check_seconds):
                reader, writer = await asyncio.open_connection(*frontend)
                try:
                    writer.write(_PREFACE)
                    return len(await reader.readexactly(9)) > 0
                finally:
                    writer.close()
        except (OSError, asyncio.IncompleteReadError):
            return False


async def _carry(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while piece := await reader.read(65536):
            writer.write(piece)
            await writer.drain()
    finally:
        writer.close()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--listener", type=int, required=True, help="number of an open socket")
    parser.add_argument("--check-seconds", type=float, default=CHECK_SECONDS)
    parser.add_argument("frontends", nargs="+", help="addresses, as HOST:PORT")
    args = parser.parse_args()
    frontends = [(host, int(port)) for host, port in (one.split(":") for one in args.frontends)]
    door = FrontDoor(frontends, args.check_seconds)
    asyncio.run(door.serve(socket.socket(fileno=args.listener)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
