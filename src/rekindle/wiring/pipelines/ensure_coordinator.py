"""Make sure that a run has a coordinator, and that it has read the operator's commands."""

import time

from rekindle.config import Project
from rekindle.errors import AgentError
from rekindle.formats.identifiers import to_one_line
from rekindle.stores.pipelines.run_folder import RunFolder
from rekindle.system.files import durable_files
from rekindle.thresholds.screens import (
    PIPELINE_START_SECONDS,
    UP_POLL_SECONDS,
    UP_SECONDS,
    WATCH_LAST_BYTES,
    WATCH_LAST_LINES,
)
from rekindle.wiring.pipelines.start_run import start_coordinator


def ensure_coordinator(project: Project, folder: RunFolder) -> None:
    """Start a coordinator if there is none, and wait until it has read all commands.

    A coordinator that is exiting may still hold its lock, which makes a new one exit. A coordinator
    may therefore be started several times.

    Raises:
        AgentError: No coordinator started in time.
    """
    deadline = time.monotonic() + UP_SECONDS
    retry = 0.0
    while time.monotonic() < deadline:
        is_coordinated = folder.is_coordinated()
        if not folder.read_commands() and (is_coordinated or not folder.is_open()):
            return
        if not is_coordinated and time.monotonic() >= retry:
            start_coordinator(project, folder)
            retry = time.monotonic() + PIPELINE_START_SECONDS
        time.sleep(UP_POLL_SECONDS)
    raise AgentError(
        f"the coordinator of {folder.pipeline} {folder.run} failed to start: {_read_end(folder)}",
        hint=f"its output is in {folder.output_log}",
    )


class CoordinatorKeeper:
    """Restarts a run's coordinator if it is gone, while a command displays the run."""

    def __init__(self, project: Project, folder: RunFolder) -> None:
        self._project, self._folder = project, folder
        self._retry = 0.0

    def check(self) -> None:
        """Start a coordinator if there is none, unless one was started a moment ago."""
        if time.monotonic() < self._retry or self._folder.is_coordinated():
            return
        if self._folder.is_open():
            start_coordinator(self._project, self._folder)
            self._retry = time.monotonic() + PIPELINE_START_SECONDS


def _read_end(folder: RunFolder) -> str:
    """Return the last lines of the coordinator's output, as one line."""
    data = durable_files.read_bytes(folder.output_log) or b""
    lines = data[-WATCH_LAST_BYTES:].decode(errors="replace").splitlines()
    return to_one_line("; ".join(lines[-WATCH_LAST_LINES:])) or "it has no output"
