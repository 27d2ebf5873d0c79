"""A throwaway host for one cell: a home, a project, a network and processes of its own."""

import contextlib
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from loopback.namespace import Namespace
from loopback.place import Place, Started
from survival import stuck

CLI_NAMES: Final = {"claude": "claude-code", "codex": "codex", "gemini": "gemini"}
"""Names of the CLIs' programs."""
_RESTART_SECONDS: Final = 2.0
"""The pause before the service manager starts a service again, as in the units that tools write."""


class Host:
    """The host, its service manager, and what a fault or a person can do on it."""

    def __init__(
        self, root: Path, network: Namespace, project: Path, environment: Mapping[str, str]
    ) -> None:
        self.root, self.project = root, project
        self.environment = dict(environment)
        self._network = network
        self._boots = 0
        self._service: list[str] = []
        self._running: Started | None = None
        self._service_ended = 0.0
        self.place = self._boot()

    def _boot(self) -> Place:
        self._boots += 1
        return Place(self._network, self.root / f"boot-{self._boots}")

    # Programs

    def start(self, argv: Sequence[str], **more: str) -> Started:
        """Start a program in the project."""
        return self.place.start(argv, env={**self.environment, **more}, cwd=self.project)

    def run(self, argv: Sequence[str], *, timeout: float = 120, **more: str) -> Started:
        """Run a command of the operator to its end."""
        started = self.start(argv, **more)
        started.wait(timeout)
        return started

    def living(self) -> dict[int, list[str]]:
        return self.place.living()

    def clis(self) -> list[int]:
        """Return the processes of agent CLIs."""
        return [pid for pid, argv in self.living().items() if _cli(argv)]

    def wrappers(self) -> list[int]:
        """Return all processes that neither are an agent CLI nor descend from one."""
        parents, clis = self.place.parents(), set(self.clis())

        def is_below(pid: int) -> bool:
            while pid in parents:
                if pid in clis:
                    return True
                pid = parents[pid]
            return False

        return [pid for pid in parents if not is_below(pid)]

    # Its service manager

    def install(self, argv: Sequence[str]) -> None:
        """Start a service, and start it again whenever it exits."""
        self._service = list(argv)
        self._start_service()

    def _start_service(self) -> None:
        if self._service:
            self._running = self.start(self._service)
            self._service_ended = 0.0

    def tend(self) -> None:
        """Start the service again if it is due; to be called all the time."""
        if self._running is None or self._running.pid not in self.place.ended:
            return
        self._service_ended = self._service_ended or time.monotonic()
        if time.monotonic() - self._service_ended >= _RESTART_SECONDS:
            self._start_service()

    def stop_service(self) -> None:
        service, self._running, self._service = self._running, None, []
        if service is not None and service.pid not in self.place.ended:
            service.signal(signal.SIGTERM)
            with contextlib.suppress(TimeoutError):
                service.wait(15)

    # Faults

    def kill(self, pids: Sequence[int]) -> None:
        """Kill all of them at once."""
        for number in (signal.SIGSTOP, signal.SIGKILL):
            for pid in pids:
                with contextlib.suppress(AssertionError):  # it may have exited by itself
                    self.place.signal(pid, number)
        self.place.wait_for(lambda: not set(pids) & set(self.living()))

    def hang(self, pid: int) -> int:
        """Make a process hang; return the number of its threads."""
        return stuck.hang(self.place, pid)

    def reboot(self) -> None:
        """Kill every process, and start only what the service manager starts."""
        self.place.kill()
        self.place = self._boot()
        self._running = None
        self._start_service()

    def fill_disk(self) -> int:
        """Write until nothing fits any more; return the free bytes."""
        with (self.root / "disk/ballast").open("ab", buffering=0) as ballast:
            for size in (65536, 4096, 1):
                with contextlib.suppress(OSError):
                    while True:
                        ballast.write(b"x" * size)
        return shutil.disk_usage(self.root / "disk").free

    def free_disk(self) -> None:
        (self.root / "disk/ballast").unlink()

    def close(self) -> None:
        self.place.close()


def _cli(argv: Sequence[str]) -> str:
    names = [Path(word).name for word in argv[:2]]
    is_script = names[:1] == ["node"]
    return next((CLI_NAMES.get(name, "") for name in names[is_script:]), "")


@contextlib.contextmanager
def small_disk(at: Path, megabytes: int = 64) -> Iterator[Path]:
    """Mount a small file system in memory, for this process and its children."""
    at.mkdir(parents=True, exist_ok=True)
    options = f"size={megabytes}m,mode=0755"
    subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(at)], check=True)
    try:
        yield at
    finally:
        subprocess.run(["umount", "-l", str(at)], check=True)
