"""Hosts of a fleet: each with its own network, processes, home and name.

A host reaches the engine, and the model of its agents, through a relay: the same port on its own
loopback. A kill, a freeze or a cut affects the whole host.
"""

import contextlib
import json
import signal
import socket
import sys
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Self

from loopback.namespace import Namespace
from loopback.place import Place, Started

_INSIDE = Path(__file__).with_name("inside.py")


class Relay:
    """Forward connections of one socket to a port of this side's loopback, and back."""

    def __init__(self, listener: socket.socket, port: int) -> None:
        self._listener, self._port = listener, port
        self._open: set[socket.socket] = set()
        self._threads: list[threading.Thread] = []
        self._is_closing = False
        self._begin(self._accept)

    def close(self) -> None:
        self._is_closing = True
        for one in (self._listener, *self._open):
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join(10)
        self._listener.close()

    def _begin(self, work: Any, *args: Any) -> None:
        thread = threading.Thread(target=work, args=args, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        while not self._is_closing:
            try:
                inner, _ = self._listener.accept()
            except OSError:
                return
            try:
                outer = socket.create_connection(("127.0.0.1", self._port))
            except OSError:
                inner.close()  # no service behind it: the client sees this at once
                continue
            for one in (inner, outer):
                one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._open |= {inner, outer}
            ended = threading.Barrier(2)
            self._begin(self._carry, inner, outer, ended)
            self._begin(self._carry, outer, inner, ended)

    def _carry(self, source: socket.socket, to: socket.socket, ended: threading.Barrier) -> None:
        with contextlib.suppress(OSError):
            while piece := source.recv(65536):
                to.sendall(piece)
        for one in (source, to):
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
        with contextlib.suppress(threading.BrokenBarrierError):
            ended.wait(10)
        source.close()
        self._open.discard(source)


class Host:
    patience = 60.0
    """Seconds that a busy machine may need to start a worker, or to answer."""

    def __init__(
        self,
        name: str,
        folder: Path,
        *,
        project: Path,
        ports: tuple[int, ...],
        network: Namespace,
        environment: Mapping[str, str],
        slots: int,
        options: Sequence[str] = ("--sandbox", "off"),  # agents in tests leave files elsewhere
    ) -> None:
        self.name, self.root = name, folder / "root"
        self._folder, self._project, self._slots = folder, project, slots
        self._options = tuple(options)
        self._environment, self.network = environment, network
        self._relays = [Relay(network.listen(port), port) for port in ports]
        self._lives = 0
        self._place: Place | None = None
        self._worker: Started | None = None

    def start(self, build: Path | None = None) -> None:
        """Start a worker, if given of another build; return when it takes agents."""
        if self._place is None:
            self._lives += 1
            self._place = Place(
                self.network, self._folder / f"life-{self._lives}", hostname=self.name
            )
        argv = [sys.executable, "-m", "rekindle", "fleet", "worker", "--host", self.name]
        argv += ["--slots", str(self._slots), "--root", str(self.root), *self._options]
        own = {"PYTHONPATH": str(build)} if build else {}
        self._worker = worker = self._place.start(
            argv, env={**self._environment, **own}, cwd=self._project
        )
        self._place.wait_for(lambda: self._has_begun(worker), self.patience)

    def stop(self) -> int:
        """Ask the worker to exit, and wait for it."""
        assert self._worker is not None
        self._worker.signal(signal.SIGTERM)
        return self._worker.wait(60)

    def kill(self) -> None:
        """Kill every process of the host with -9."""
        assert self._place is not None
        self._place.kill()
        self._place = None

    @property
    def is_up(self) -> bool:
        return self._place is not None

    def look(self) -> list[dict[str, Any]]:
        """Return all processes of the host."""
        return self._inside("look")

    def sessions(self) -> dict[str, dict[str, Any]]:
        """Return the first process of each running launch, by launch."""
        found: dict[str, dict[str, Any]] = {}
        for one in sorted(self.look(), key=lambda one: one["pid"], reverse=True):
            if one["launch"]:
                found[one["launch"]] = one
        return found

    def freeze(self) -> list[dict[str, Any]]:
        return self._inside("freeze")

    def wake(self) -> None:
        self._inside("wake")

    def can_reach(self, port: int) -> bool:
        """Return whether a program on the host gets a connection."""
        connect = "import socket,sys; socket.create_connection(('127.0.0.1', int(sys.argv[1])), 2)"
        assert self._place is not None
        argv = [sys.executable, "-I", "-c", connect, str(port)]
        return self._place.start(argv, env={}, cwd=self._project).wait(self.patience) == 0

    @property
    def said(self) -> str:
        """Return the output of the last worker."""
        return self._worker.out + self._worker.err if self._worker else "nothing"

    def close(self) -> None:
        if self._place is not None:
            self.kill()
        for relay in self._relays:
            relay.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def _has_begun(self, worker: Started) -> bool:
        assert self._place is not None
        assert worker.pid not in self._place.ended, worker.out + worker.err
        return f"host {self.name} of pool" in worker.out

    def _inside(self, what: str) -> list[dict[str, Any]]:
        assert self._place is not None
        argv = [sys.executable, "-I", str(_INSIDE), what]
        asked = self._place.start(argv, env={}, cwd=self._project)
        assert asked.wait(self.patience) == 0, asked.err
        found: list[dict[str, Any]] = json.loads(asked.out)
        return found
