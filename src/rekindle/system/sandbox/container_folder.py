"""The folder of one container: its configuration, its root and its runtime's state.

The supervisor holds a lock on the folder. A folder without a lock is from a killed supervisor, and
the next container removes it.
"""

import contextlib
import fcntl
import os
import secrets
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from rekindle.errors import RekindleError, SandboxError
from rekindle.system.files import durable_files
from rekindle.system.processes import launch_processes
from rekindle.system.remove_folder import remove_folder
from rekindle.system.sandbox import container_group
from rekindle.thresholds.sandbox_limits import PROBE_SECONDS

_RUNTIME = "runtime"
"""File that names the runtime which created the container."""


class ContainerFolder:
    """A new container's folder, which is removed with the container."""

    def __init__(self, parent: Path, runtime: str, mark: str = "") -> None:
        """Create the folder, and remove those of killed supervisors.

        Raises:
            RekindleError: The folder cannot be created.
        """
        self.name = f"{container_group.PARENT}-{mark or 'probe'}-{secrets.token_hex(4)}"
        self._path, self._runtime = parent / self.name, runtime
        durable_files.make_folder(parent)
        try:
            _sweep_leftovers(parent)
            try:
                self._lock = self._make()
            except FileNotFoundError:  # another supervisor swept the folder before it was locked
                self._lock = self._make()
        except OSError as error:
            raise SandboxError(
                f"the folder of a container cannot be created: {error}",
                hint=f"check the folder {parent}",
            ) from error

    def _make(self) -> int:
        """Create the folder, and return the lock on it."""
        self._path.mkdir()
        lock = os.open(self._path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            fcntl.flock(lock, fcntl.LOCK_SH)
            self.root.mkdir()
            (self._path / _RUNTIME).write_text(self._runtime, encoding="utf-8")
        except BaseException:
            os.close(lock)
            raise
        return lock

    @property
    def root(self) -> Path:
        """Return the empty folder in which the runtime creates mount points."""
        return self._path / "root"

    def write(self, configuration: dict[str, Any], links: Mapping[str, str]) -> None:
        """Write the configuration, and the links of the container's root."""
        (self._path / "config.json").write_bytes(msgspec.json.encode(configuration))
        for link, target in links.items():
            (self.root / link[1:]).symlink_to(target)

    def render_run(self, *options: str, descriptors: int = 0) -> list[str]:
        """Return the command that runs the container. `options` are for the runtime itself."""
        passed = [f"--preserve-fds={descriptors}"] if descriptors else []
        state = ["--root", str(self._path / "state"), *options]
        return [self._runtime, *state, "run", "--bundle", str(self._path), *passed, self.name]

    def remove(self) -> None:
        """End the container's processes, and remove everything that belongs to it."""
        _remove(self._path)
        os.close(self._lock)


def _sweep_leftovers(parent: Path) -> None:
    for folder in parent.iterdir():
        with contextlib.suppress(OSError):
            lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                _remove(folder)
            finally:
                os.close(lock)


def _remove(folder: Path) -> None:
    with contextlib.suppress(OSError, RekindleError, subprocess.SubprocessError):
        runtime = (folder / _RUNTIME).read_text(encoding="utf-8")
        state = folder / "state"
        if (state / folder.name).exists():
            _run([runtime, "--root", str(state), "delete", "--force", folder.name])
    if not container_group.remove_group(folder.name):
        return  # processes are still ending in it, and the next container tries again
    with contextlib.suppress(RekindleError):  # as above
        remove_folder(folder)


def _run(argv: list[str]) -> None:
    with launch_processes.START_LOCK:
        child = subprocess.Popen(  # noqa: S603 - our own arguments, no shell
            argv,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        launch_processes.UNRELATED_CHILDREN.add(child.pid)
    try:
        child.wait(PROBE_SECONDS)
    finally:
        child.kill()
        child.wait()
        launch_processes.UNRELATED_CHILDREN.discard(child.pid)
