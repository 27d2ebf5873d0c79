"""Start a launch's proxy, and read which hosts it refused."""

import contextlib
import os
import secrets
import socket
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from rekindle.errors import SandboxError
from rekindle.system.processes import launch_processes
from rekindle.system.sandbox import egress_proxy
from rekindle.thresholds.credential_limits import GATEWAY_EXIT_SECONDS
from rekindle.thresholds.sandbox_limits import REFUSAL_BYTES

_GATEWAY = "rekindle.system.sandbox.key_gateway"
_TRUST_VARIABLES = ("SSL_CERT_FILE", "SSL_CERT_DIR")
"""Variables that name the certificates which the operator trusts."""


class EgressProxy:
    """A launch's proxy. It ends when it is closed or when this process exits."""

    def __init__(self, folder: Path, hosts: Sequence[str], setup: bytes = b"") -> None:
        """Start the proxy. `folder` must be visible in the sandbox.

        With `setup`, one line for `key_gateway`, the proxy also adds keys.

        Raises:
            SandboxError: The proxy cannot be started.
        """
        self._folder, self._name = folder, f"proxy-{secrets.token_hex(4)}"
        self._rest, self._is_gateway = b"", bool(setup)
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as channel:
                self._bind(channel)
                self._start(channel, hosts, setup)
        except OSError as error:
            raise SandboxError(
                f"the proxy of the sandbox cannot be started: {error}",
                hint=f"check the folder {folder}",
            ) from error

    def _bind(self, channel: socket.socket) -> None:
        # A socket path must be short, so the folder is addressed through a descriptor.
        place = os.open(self._folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            channel.bind(f"/proc/self/fd/{place}/{self._name}")
        finally:
            os.close(place)
        channel.listen(1)

    def _start(self, channel: socket.socket, hosts: Sequence[str], setup: bytes) -> None:
        number = channel.fileno()
        program = ["-P", "-m", _GATEWAY] if setup else ["-I", "-S", egress_proxy.__file__]
        trust = {name: os.environ[name] for name in _TRUST_VARIABLES if name in os.environ}
        with launch_processes.START_LOCK:
            self._child = subprocess.Popen(  # noqa: S603 - our own program, no shell
                [sys.executable, *program, str(number), *hosts],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                # The gateway and its helper report their errors there.
                stderr=None if setup else subprocess.DEVNULL,
                env=trust if setup else {},
                pass_fds=[number],
                start_new_session=True,  # Ctrl-C must reach only the supervisor
            )
            launch_processes.UNRELATED_CHILDREN.add(self._child.pid)
        if self._child.stdin is not None and setup:
            self._child.stdin.write(setup + b"\n")
            self._child.stdin.flush()
        if self._child.stdout is not None:
            os.set_blocking(self._child.stdout.fileno(), False)

    @property
    def address(self) -> tuple[str, str]:
        """Return the folder and name of the socket on which the proxy waits for the sandbox."""
        return str(self._folder), self._name

    def read_refused(self) -> list[str]:
        """Return the hosts that were refused since the last call."""
        if self._child.stdout is None or self._child.stdout.closed:
            return []
        with contextlib.suppress(BlockingIOError):
            self._rest += os.read(self._child.stdout.fileno(), REFUSAL_BYTES)
        *lines, self._rest = self._rest.split(b"\n")
        return [line.decode("ascii", "replace") for line in lines]

    def close(self) -> None:
        """End the proxy and all its connections."""
        (self._folder / self._name).unlink(missing_ok=True)
        for stream in (self._child.stdin, self._child.stdout):
            if stream is not None:
                stream.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            # At the end of its input, a gateway ends its helper and exits.
            self._child.wait(GATEWAY_EXIT_SECONDS if self._is_gateway else 0)
        self._child.kill()
        self._child.wait()
        launch_processes.UNRELATED_CHILDREN.discard(self._child.pid)
