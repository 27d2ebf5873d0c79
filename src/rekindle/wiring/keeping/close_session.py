"""Close a running session: when its turn is over, or at once if the user asks for that."""

import time
from collections.abc import Callable

from rekindle.errors import OwnershipError
from rekindle.policy.keeping.session_match import SessionProcesses
from rekindle.system.processes import cli_processes
from rekindle.thresholds.keep_limits import KEEP_CLOSE_SECONDS, KEEP_POLL_SECONDS
from rekindle.wiring.keeping.find_sessions import FoundSession, read_session_state

Refresh = Callable[[], FoundSession]
"""Return the session as it is now."""


def wait_until_idle(refresh: Refresh) -> FoundSession:
    """Wait until a session's turn is over or the session has exited, and return it as it is then.

    A turn can end and the next one begin between two looks, so two looks in a row must agree.
    """
    quiet = 0
    while True:
        found = refresh()
        if not found.is_running:
            return found
        quiet = 0 if read_session_state(found).is_working else quiet + 1
        if quiet > 1:
            return found
        time.sleep(KEEP_POLL_SECONDS)


def wait_for_exit(refresh: Refresh) -> None:
    """Wait until the session has no process any more."""
    while True:
        found = refresh()
        if found.processes is None or not found.processes.own:
            return
        time.sleep(KEEP_POLL_SECONDS)


def close_session(found: FoundSession, refresh: Refresh) -> None:
    """Ask a session's processes to exit, and wait for them.

    Raises:
        OwnershipError: The session has not exited, or runs in a server with other sessions.
    """
    processes = found.processes
    if processes is None:
        return
    _refuse_shared_server(processes, found)
    cli_processes.ask_to_exit(processes.own)
    _require_exit(processes.own, found)
    release_server(refresh())


def release_server(found: FoundSession) -> None:
    """Ask the background server that runs a session to exit, unless it runs other sessions too.

    The server finishes a tool call first.

    Raises:
        OwnershipError: The server runs other sessions, or has not exited.
    """
    if found.processes is None or found.processes.server is None:
        return
    _refuse_shared_server(found.processes, found)
    cli_processes.ask_to_exit([found.processes.server])
    _require_exit((found.processes.server,), found)


def _refuse_shared_server(processes: SessionProcesses, found: FoundSession) -> None:
    if processes.others and processes.server:
        raise OwnershipError(
            f"the background server of {found.harness} (process {processes.server[0]}) also runs "
            f"{len(processes.others)} other session(s), so it was not stopped",
            hint=f"close those sessions, then run `rekindle keep {found.session}` again",
        )


def _require_exit(processes: tuple[tuple[int, int], ...], found: FoundSession) -> None:
    deadline = time.monotonic() + KEEP_CLOSE_SECONDS
    while any(map(cli_processes.is_running, processes)):
        if time.monotonic() > deadline:
            pids = ", ".join(str(pid) for pid, _ in processes)
            raise OwnershipError(
                f"the session {found.session} did not exit within {KEEP_CLOSE_SECONDS:g} seconds "
                f"(process {pids})",
                hint=f"close it yourself, then run `rekindle keep {found.session}` again",
            )
        time.sleep(KEEP_POLL_SECONDS)
